//! Versions of a dbt model: the strictest that any of them says of a column holds.

use crate::common::{default, imported, offers, parsed, verdict};
use alpheus_policy::schema::AttributeKind;

const MODEL: &str = "models:
- name: people
  latest_version: 2
  columns:
  - { name: pay, data_type: int, data_tests: [not_null] }
  - { name: age, data_type: int }
  - { name: plan, data_type: int }
  - { name: gone, data_type: int, data_tests: [not_null] }
  - { name: size, data_type: int }
  versions:
  - v: 1
  - v: 2
    data_tests: [{ dbt_expectations.expect_table_row_count_to_be_between: { min_value: 1 } }]
    columns:
    - { include: all, exclude: [gone] }
    - { name: pay, data_type: int, config: { meta: { contains_pii: true } }, tags: [confidential] }
    - { name: Age, data_type: bigint, data_tests: [{ accepted_range: { min_value: 0, max_value: 120 } }] }
    - { name: plan, data_type: text }
    - { name: extra, data_type: int, meta: { pii: true }, data_tests: [not_null] }
";

#[test]
fn what_a_version_says_of_a_column_limits() {
    let import = imported(MODEL);
    let (schema, policies) = parsed(&import.tables[0]);
    let names: Vec<_> = schema.attributes.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["pay", "age", "gone", "size", "extra"]);
    assert!(offers(&schema, "pay").is_empty());
    assert_eq!(offers(&schema, "extra")[0].clients[0], 1000);
    let extra = schema.position("extra").unwrap();
    assert!(default(&policies).attribute(extra).unwrap().alternatives.is_empty());
    assert_eq!(offers(&schema, "size")[0].clients[0], 100);
    let AttributeKind::Number { min, max, .. } = schema.attributes[1].kind else { panic!() };
    assert_eq!((min, max), (0, 120));
    let optional = |name| schema.is_optional(schema.position(name).unwrap());
    assert!(!optional("pay") && optional("gone") && optional("extra"));
}

#[test]
fn each_part_of_a_version_has_a_true_reason() {
    let import = imported(MODEL);
    let path = |rest: &str| format!("models[0].versions[1].columns{rest}");
    for (rest, carried, says) in [
        ("[0].exclude[0]", false, ""),
        ("[1]", true, "the attribute `pay`"),
        ("[1].name", true, "the attribute `pay`"),
        ("[1].tags[0]", true, "not released"),
        ("[1].config.meta.contains_pii", true, ""),
        ("[2].data_tests[0]", true, "the bounds of the attribute"),
        ("[3]", false, "several types"),
        ("[4].meta.pii", true, "1000"),
        ("[4].data_tests[0]", false, "some versions of the model lack the column"),
    ] {
        let (is_carried, why) = verdict(&import, &path(rest));
        assert!(is_carried == carried && why.contains(says), "{rest}: {why}");
    }
    let of = import.report.carried.iter().find(|entry| entry.path == path("[1].name")).unwrap();
    assert_eq!(of.of, "people.pay");
}
