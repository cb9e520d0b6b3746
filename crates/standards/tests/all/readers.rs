//! Receivers of results: where a contract names those who may read, nobody else receives any.

use crate::common::{imported, offers, parsed, verdict};
use alpheus_policy::schema::OptionKind;
use alpheus_standards::Import;

/// The receivers of each option of a table that releases something.
fn receivers(import: &Import, table: usize) -> Vec<Vec<String>> {
    let (schema, _) = parsed(&import.tables[table]);
    let all = schema.options.iter().filter(|option| option.kind != OptionKind::Private);
    all.map(|option| option.to.clone()).collect()
}

fn contract(more: &str) -> Import {
    imported(&format!(
        "kind: DataContract
apiVersion: v3.1.0
name: Shop
{more}
schema:
  - name: orders
    properties:
      - {{ name: total, logicalType: integer }}
      - {{ name: open, logicalType: integer, classification: public }}
      - {{ name: own, logicalType: integer, classification: internal }}
"
    ))
}

#[test]
fn a_contract_with_roles_never_releases_to_anyone() {
    for (roles, to) in [
        ("[{ role: analyst, access: SELECT }]", "analyst"),
        ("[{ role: analyst, access: [read] }, { role: loader, access: write }]", "analyst"),
        ("[{ role: loader, access: write }]", "internal"),
        ("[{ role: x, access: none }, { role: y, access: denied }]", "internal"),
        ("[{ role: null, access: read }]", "internal"),
        ("[{ role: [l], access: read }]", "internal"),
        ("[{ role: { n: m }, access: read }]", "internal"),
        ("[{ role: '', access: read }]", "internal"),
    ] {
        let import = contract(&format!("roles: {roles}"));
        let all = receivers(&import, 0);
        assert_eq!(all.len(), 3, "{roles}");
        assert!(all.iter().all(|own| own == &[to]), "{roles}: {all:?}");
    }
    assert_eq!(receivers(&contract("roles: []"), 0)[0], [""; 0]);
    for (more, to) in [
        ("accessControl: { allowedGroups: [a], deniedGroups: [c], writeRoles: [etl] }", "a"),
        ("x-security: { readers: [a, c], denyList: [c] }", "a"),
        ("x-security: { denyList: [c] }", "internal"),
        ("roles: [{ group: ops, read: false, write: true }, { user: a, role: viewer }]", "a"),
        ("permissions: { a: { read: true }, b: { read: false } }", "a"),
        ("customProperties: [{ property: allowedGroups, value: [hr] }]", "hr"),
        ("x-allowed-groups: [a]", "a"),
        ("allowedGroups: []", "internal"),
        ("readers: []", "internal"),
    ] {
        let all = receivers(&contract(more), 0);
        assert!(all.iter().all(|own| own == &[to]), "{more}: {all:?}");
    }
}

#[test]
fn only_those_in_every_list_receive() {
    let import = contract("roles: [{ role: a }, { role: b }]\naccessControl: { readers: [b, c] }");
    assert!(receivers(&import, 0).iter().all(|own| own == &["b"]));
    assert!(verdict(&import, "accessControl.readers[0]").0);
    assert!(!verdict(&import, "accessControl.readers[1]").0);
    assert!(!verdict(&import, "roles[0].role").0);
    let import = contract("roles: [{ role: a }]\nx-security: { allowedGroups: [b] }");
    assert!(receivers(&import, 0).iter().all(|own| own == &["internal"]));
    for path in ["roles[0].role", "x-security.allowedGroups[0]"] {
        assert!(verdict(&import, path).1.starts_with("no reader is in all lists"), "{path}");
    }
    let (_, why) = verdict(&import, "schema[0].properties[2].classification");
    assert!(!why.contains("house alone"), "{why}");
    let import = contract("customProperties: [{ property: readers, value: [a] }]\nroles: [a, b]");
    assert!(!verdict(&import, "roles[1]").1.contains("not known here"));
}

#[test]
fn grants_of_a_dbt_model_name_its_receivers() {
    let import = imported(
        "models:
  - name: a
    config: { grants: { select: [hr, finance], insert: [loader], update: [b], delete: [c] } }
    columns: [{ name: x, data_type: int }]
  - { name: b, config: { +grants: { insert: [loader] } }, columns: [{ name: x, data_type: int }] }
  - { name: c, columns: [{ name: x, data_type: int }] }
",
    );
    assert_eq!(receivers(&import, 0), [["finance", "hr"]]);
    assert_eq!(receivers(&import, 1), [["internal"]]);
    assert_eq!(receivers(&import, 2), [[""; 0]]);
    assert!(verdict(&import, "models[0].config.grants.select[1]").0);
    assert!(!verdict(&import, "models[0].config.grants.insert[0]").0);
}

#[test]
fn a_property_with_readers_of_its_own_is_not_released() {
    let import = imported(
        "kind: DataContract
schema:
  - name: t
    allowedGroups: [hr]
    properties:
      - { name: a, logicalType: integer, accessRoles: [hr] }
      - { name: b, logicalType: integer }
      - { name: c, logicalType: integer, customProperties: [{ property: readers, value: [hr] }] }
",
    );
    let (schema, _) = parsed(&import.tables[0]);
    assert!(offers(&schema, "a").is_empty());
    assert_eq!(offers(&schema, "b")[0].to, ["hr"]);
    assert!(offers(&schema, "c").is_empty());
    let own = "schema[0].properties[2].customProperties[0].value[0]";
    assert!(!verdict(&import, own).1.contains("not known here"));
}
