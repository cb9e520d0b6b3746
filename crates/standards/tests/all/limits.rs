//! What a contract says is never widened: whatever is said to limit an attribute, no option
//! releases more.

use crate::common::{default, imported, offers, parsed, verdict};
use alpheus_policy::schema::{AttributeKind, OptionKind};

const ORDERS: &str = "\
kind: DataContract
apiVersion: v3.1.0
name: Orders
tenant: shop
schema:
  - name: orders
    properties:
      - { name: order_id, logicalType: string, primaryKey: true, required: true }
      - { name: customer_id, logicalType: string, classification: restricted }
      - { name: ordered_at, logicalType: timestamp }
      - { name: total, logicalType: number, physicalType: 'DECIMAL(12,2)', LABEL, logicalTypeOptions: { minimum: 0, maximum: 5000 }, customProperties: [{ property: unit, value: EUR }] }
      - { name: address, logicalType: object, classification: restricted, properties: [{ name: zip, logicalType: integer }] }
      - { name: tries, logicalType: array, items: { logicalType: object, properties: [{ name: n, logicalType: integer }] } }
";

/// The smallest population that any option releases `total` at, and who may receive it.
fn offered(label: &str) -> Option<(u32, Vec<String>)> {
    let import = imported(&ORDERS.replace("LABEL", label));
    let (schema, policies) = parsed(&import.tables[0]);
    let options = offers(&schema, "total");
    assert!(options.iter().all(|option| option.kind == OptionKind::Aggregate));
    let position = schema.position("total").unwrap();
    let chosen = &default(&policies).attribute(position).unwrap().alternatives;
    assert!(schema.offers(default(&policies)).is_ok());
    assert!(chosen.len() <= options.len());
    options.iter().map(|option| (option.clients[0], option.to.clone())).min()
}

#[test]
fn each_level_is_released_as_narrowly_as_the_contract_says() {
    let house = || vec!["shop".to_owned()];
    for (label, expected) in [
        ("classification: public", Some((10, vec![]))),
        ("title: nothing", Some((100, vec![]))),
        ("classification: internal", Some((100, house()))),
        ("tags: ['pii:true']", Some((1000, vec![]))),
        ("tags: ['pii:false']", Some((100, vec![]))),
        ("classification: restricted", None),
        ("classification: confidential", None),
        ("classification: amber", None),
        ("classification: public, tags: [secret]", None),
        ("classification: internal, tags: [pii]", Some((1000, house()))),
        ("tags: [public]", Some((100, vec![]))),
        ("encryptedName: total_enc", None),
        ("sensitivityLabel: Secret", None),
        ("dataProtectionClass: public", Some((100, vec![]))),
        ("visibility: public", Some((100, vec![]))),
        ("hasPIIData: true", Some((1000, vec![]))),
        ("tags: [sensitivity/high]", None),
        ("tags: ['category:medical']", None),
        ("description: Values restricted to 0-100", Some((100, vec![]))),
        ("access_level: restricted", None),
        ("$ref: '#/other'", None),
        ("description: 'Limitations: none. PII included'", Some((1000, vec![]))),
    ] {
        assert_eq!(offered(label), expected, "{label}");
    }
}

#[test]
fn personal_values_are_released_only_by_owners_who_choose_so() {
    let import = imported(&ORDERS.replace("LABEL", "tags: [pii]"));
    let (schema, policies) = parsed(&import.tables[0]);
    let position = schema.position("total").unwrap();
    assert!(default(&policies).attribute(position).unwrap().alternatives.is_empty());
}

#[test]
fn a_contract_that_names_its_readers_releases_to_them_alone() {
    let readers = "roles: [{ role: analyst, access: read }, { role: loader, access: write }]\n";
    let import = imported(&(ORDERS.replace("LABEL", "title: x") + readers));
    let (schema, _) = parsed(&import.tables[0]);
    assert!(offers(&schema, "total").iter().all(|option| option.to == ["analyst"]));
    assert!(verdict(&import, "roles[0].role").0);
    assert!(!verdict(&import, "roles[1].role").0);
}

#[test]
fn a_label_on_the_table_or_the_contract_holds_for_each_property() {
    for label in [
        "tags: [restricted]\n",
        "customProperties: [{ property: classification, value: secret }]\n",
    ] {
        let import = imported(&(ORDERS.replace("LABEL", "classification: public") + label));
        let (schema, _) = parsed(&import.tables[0]);
        assert!(schema.options.iter().all(|option| option.kind == OptionKind::Private), "{label}");
    }
}

#[test]
fn types_bounds_and_places_are_those_of_the_contract() {
    let import = imported(&ORDERS.replace("LABEL", "required: true"));
    let (schema, _) = parsed(&import.tables[0]);
    let total = &schema.attributes[usize::from(schema.position("total").unwrap())];
    assert_eq!(total.kind, AttributeKind::Number { scale: 2, min: 0, max: 500_000 });
    assert_eq!((total.unit.as_str(), total.optional), ("EUR", false));
    let names: Vec<_> = schema.attributes.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["order_id", "total", "address_zip"]);
    // Parts of a restricted object are restricted, and lists are not carried.
    assert!(offers(&schema, "address_zip").is_empty());
    assert!(!verdict(&import, "schema[0].properties[5].items.properties[0]").0);
    let report = &import.report.tables[0];
    assert_eq!(
        (report.owner.as_deref(), report.time.as_deref()),
        (Some("customer_id"), Some("ordered_at"))
    );
}

#[test]
fn rules_become_statistics_or_are_listed_with_the_reason() {
    let rules = "    quality:
      - { metric: rowCount, mustBeGreaterThan: 1000, type: library }
      - { type: sql, query: SELECT COUNT(*) FROM orders, mustBe: 7 }
      - { type: sql, query: SELECT AVG(x) FROM orders, mustBe: 7 }
      - { metric: duplicateValues, mustBe: 0 }
";
    let label = "quality: [{ metric: nullValues, mustBe: 0 }, { type: text, description: fine }]";
    let import = imported(&(ORDERS.replace("LABEL", label) + rules));
    for (path, carried) in [
        ("schema[0].quality[0]", true),
        ("schema[0].quality[0].metric", true),
        ("schema[0].quality[0].mustBeGreaterThan", false),
        ("schema[0].quality[1]", true),
        ("schema[0].quality[2]", false),
        ("schema[0].quality[3]", false),
        ("schema[0].properties[3].quality[0]", true),
        ("schema[0].properties[3].quality[1]", false),
    ] {
        assert_eq!(verdict(&import, path).0, carried, "{path}");
    }
    let query = import.tables[0].quality.as_deref().unwrap();
    assert!(query.contains("SELECT COUNT(order_id), COUNT(total)\n"), "{query}");
}

#[test]
fn the_query_of_a_rule_decides_and_not_its_name() {
    let rules = "    quality:
      - { name: row_count, type: sql, query: SELECT COUNT(*) FROM orders WHERE ordered_at > 3 }
      - { name: rowCount, type: custom, engine: x, implementation: some }
      - { name: rowCount, implementation: some }
      - { name: rowCount, type: text, description: fine }
      - { metric: rowCount, type: sql, query: SELECT COUNT(DISTINCT a) FROM orders }
      - { name: rowCount, type: library }
      - { name: newest, type: sql, query: SELECT COUNT(*) FROM orders }
";
    let label = "quality: [{ name: Completeness, type: sql, query: SELECT 1 WHERE total IS NULL AND x = 1 }, { name: free, metric: nullValues }]";
    let import = imported(&(ORDERS.replace("LABEL", label) + rules));
    for (path, says) in [
        ("quality[0]", Some("a query over rows")),
        ("quality[0].query", Some("a query over rows")),
        ("quality[1]", Some("a check by a tool")),
        ("quality[2]", Some("a check by a tool")),
        ("quality[3]", Some("a rule in words")),
        ("quality[4]", Some("a query over rows")),
        ("quality[5]", None),
        ("quality[6]", None),
        ("properties[3].quality[0]", Some("a query over rows")),
        ("properties[3].quality[1]", None),
    ] {
        let (is_carried, why) = verdict(&import, &format!("schema[0].{path}"));
        assert_eq!(is_carried, says.is_none(), "{path}: {why}");
        assert!(says.is_none_or(|says| why.starts_with(says)), "{path}: {why}");
    }
}

#[test]
fn a_check_counts_for_the_table_that_it_names_and_no_other() {
    let text = "dataContractSpecification: 1.1.0
models:
  items: { fields: { sku: { type: string, required: true } } }
  line_items: { fields: { line: { type: string, required: true } } }
  e: { fields: { z: { type: string, required: true } } }
quality:
  type: SodaCL
  specification:
    checks for shop.line_items: [row_count > 5]
    checks for e [daily]: [row_count > 5]
    checks for others: [row_count > 5]
";
    let import = imported(text);
    let queries: Vec<_> = import.tables.iter().map(|table| table.quality.is_some()).collect();
    assert_eq!(queries, [false, true, false]);
    let rule =
        |of: &str| verdict(&import, &format!(r#"quality.specification["checks for {of}"][0]"#));
    assert!(rule("shop.line_items").0);
    assert!(rule("e [daily]").1.starts_with("a check of some rows only"));
    assert!(rule("others").1.starts_with("it names no table of this contract"));
}

#[test]
fn a_check_of_a_sum_is_a_sum_and_one_of_a_mean_a_mean() {
    let text = "dataContractSpecification: 1.1.0
models:
  orders:
    fields:
      total: { type: integer, required: true }
      tip: { type: integer }
quality:
  type: SodaCL
  specification:
    checks for orders: [sum(total) > 5, avg(tip) < 9]
";
    let import = imported(text);
    let rule = |at: usize| format!(r#"quality.specification["checks for orders"][{at}]"#);
    for (at, function) in [(0, "`SUM`"), (1, "`AVG`")] {
        let (is_carried, why) = verdict(&import, &rule(at));
        assert!(is_carried && why.starts_with(function), "{why}");
    }
    let query = import.tables[0].quality.as_deref().unwrap();
    assert!(query.contains("SELECT SUM(total), AVG(tip)\n"), "{query}");
}

#[test]
fn fields_that_a_rule_encrypts_or_metadata_tag_are_not_released() {
    let text = r#"{
      "schemaType": "AVRO",
      "schema": "{\"type\":\"record\",\"name\":\"P\",\"fields\":[{\"name\":\"ssn\",\"type\":\"long\",\"confluent:tags\":[\"KEEP\"]},{\"name\":\"height\",\"type\":[\"null\",\"int\"]},{\"name\":\"pay\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}}]}",
      "metadata": {"tags": {"P.height": ["PRIVATE"]}},
      "ruleSet": {"domainRules": [{"name": "e", "kind": "TRANSFORM", "type": "ENCRYPT", "tags": ["KEEP"]}, {"name": "c", "type": "CEL", "expr": "message.pay > 0"}]}
    }"#;
    let import = imported(text);
    let (schema, _) = parsed(&import.tables[0]);
    assert!(offers(&schema, "ssn").is_empty() && offers(&schema, "height").is_empty());
    assert_eq!(offers(&schema, "pay").len(), 1);
    assert_eq!(
        schema.attributes[2].kind,
        AttributeKind::Number { scale: 2, min: -999_999_999, max: 999_999_999 }
    );
    assert!(schema.attributes[1].optional && !schema.attributes[2].optional);
    assert!(verdict(&import, "ruleSet.domainRules[0]").0);
    assert!(!verdict(&import, "ruleSet.domainRules[1]").0);
}

#[test]
fn fields_whose_values_a_rule_replaces_are_not_released() {
    const INNER: &str = r#"{"type":"record","name":"P","fields":[{"name":"pay","type":"int","confluent:tags":["FIN"]},{"name":"age","type":"int"},{"name":"size","type":"int"}]}"#;
    for (rule, released) in [
        (
            r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "tags": ["FIN"], "expr": "0"}"#,
            &["age", "size"][..],
        ),
        (r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "tags": ["NONE"], "expr": "0"}"#, &[]),
        (
            r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "expr": "name == 'age' ; 0"}"#,
            &["pay", "size"],
        ),
        (
            r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "expr": "name=='age' || name == \"size\" ; 0"}"#,
            &["pay"],
        ),
        (r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "expr": "name != 'age' ; 0"}"#, &[]),
        (
            r#"{"kind": "TRANSFORM", "type": "CEL_FIELD", "expr": "name == 'age' || typeName == 'INT' ; 0"}"#,
            &[],
        ),
        (r#"{"kind": "TRANSFORM", "type": "CEL", "expr": "message"}"#, &[]),
        (
            r#"{"kind": "CONDITION", "type": "CEL_FIELD", "expr": "name == 'age' ; value > 0"}"#,
            &["pay", "age", "size"],
        ),
    ] {
        let schema = serde_json::to_string(INNER).unwrap();
        let text = format!(r#"{{"schema": {schema}, "ruleSet": {{"domainRules": [{rule}]}}}}"#);
        let import = imported(&text);
        let (schema, _) = parsed(&import.tables[0]);
        let offered =
            ["pay", "age", "size"].into_iter().filter(|own| !offers(&schema, own).is_empty());
        assert_eq!(Vec::from_iter(offered), released, "{rule}");
        let (is_carried, _) = verdict(&import, "ruleSet.domainRules[0]");
        assert_eq!(is_carried, released.len() < 3, "{rule}");
    }
}

#[test]
fn every_table_has_files_of_its_own() {
    let text = "models:\n  - { name: a, columns: [{ name: x, data_type: int }] }\n  - { name: a b, columns: [{ name: y, data_type: int }] }\n";
    let import = imported(text);
    let names: Vec<_> = import.report.tables.iter().map(|t| t.schema.as_str()).collect();
    assert_eq!(names, ["schema.yaml", "schema-a_b.yaml"]);
    let chosen = alpheus_standards::import(text, Some("a b")).unwrap();
    assert_eq!(chosen.tables[0].table, "a b");
    assert!(alpheus_standards::import(text, Some("c")).is_err());
}

#[test]
fn rules_alone_make_a_schema_that_releases_nothing() {
    let import = imported(
        r#"{"defaultRuleSet": {"domainRules": [{"name": "x", "type": "CEL", "tags": ["A"]}]}}"#,
    );
    assert!(import.report.unsure[0].contains("nothing that can be an attribute"));
    let (schema, _) = parsed(&import.tables[0]);
    assert!(schema.options.iter().all(|option| option.kind == OptionKind::Private));
}
