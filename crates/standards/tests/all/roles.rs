//! The columns of an owner and a time: where a contract leaves them open, `unsure` says so.

use crate::common::imported;

#[test]
fn a_doubtful_owner_is_the_person_and_is_asked_about() {
    let import = imported(
        "models:
- name: customer_contacts
  columns:
  - { name: id, data_type: int, data_tests: [unique, not_null] }
  - { name: customer_id, data_type: int }
",
    );
    assert_eq!(import.report.tables[0].owner.as_deref(), Some("customer_id"));
    let says = "customer_contacts: customer_id seems to say whose data an event is, but id may say it too; name the right column as `owner` in the source file";
    assert!(import.report.unsure.iter().any(|own| own == says), "{:?}", import.report.unsure);
}

#[test]
fn a_doubtful_time_is_the_events_and_is_asked_about() {
    let import = imported(
        "kind: DataContract
schema:
- name: orders
  properties:
  - { name: order_ts, logicalType: timestamp, required: true }
  - { name: ingested_at, logicalType: timestamp }
slaProperties: [{ property: freshness, value: 24, unit: h, element: orders.ingested_at }]
",
    );
    assert_eq!(import.report.tables[0].time.as_deref(), Some("order_ts"));
    let is_asked = |own: &String| own.contains("ingested_at may say it too");
    assert!(import.report.unsure.iter().any(is_asked), "{:?}", import.report.unsure);
}
