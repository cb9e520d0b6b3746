//! Random contracts: nothing is lost, nothing panics, and what is written can be read.

use crate::common::{imported, is_complete, parsed, verdict};
use alpheus_standards::tree::Tree;
use alpheus_standards::{ImportError, import};
use proptest::prelude::*;

/// An object in so many others, in each standard.
fn nested(levels: usize, [before, after, inner]: [&str; 3]) -> String {
    format!("{}{inner}{}", before.repeat(levels), after.repeat(levels))
}

#[test]
fn what_lies_too_deep_has_that_reason() {
    let odcs = r#"{"name": "p", "logicalType": "object", "properties": ["#;
    let odcs = nested(18, [odcs, "]}", r#"{"name": "p", "logicalType": "integer"}"#]);
    let odcs = format!(
        r#"{{"kind": "DataContract", "schema": [{{"name": "t", "properties": [{odcs}]}}]}}"#
    );
    let parts = [r#"{"type": "object", "properties": {"p": "#, "}}", r#"{"type": "integer"}"#];
    let json = nested(18, parts);
    let parts = [r#"{"type": "record", "fields": {"p": "#, "}}", r#"{"type": "integer"}"#];
    let dcs = nested(18, parts).replacen(r#""type": "record", "#, "", 1);
    let dcs = format!(r#"{{"dataContractSpecification": "1.1.0", "models": {{"t": {dcs}}}}}"#);
    for text in [odcs, json, dcs] {
        let import = imported(&text);
        let is_deep =
            |own: &&alpheus_standards::inventory::Entry| own.why.contains("what lies deeper");
        let deep: Vec<_> = import.report.not_carried.iter().filter(is_deep).collect();
        assert!(deep.len() > 2, "{text}");
        let never = "an object without listed parts";
        assert!(import.report.not_carried.iter().all(|own| !own.why.starts_with(never)), "{text}");
        assert_eq!(import.tables[0].schema.matches("  - name: p_p").count(), 0, "{text}");
    }
    let round =
        r#"{"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}"#;
    let import = imported(round);
    assert!(verdict(&import, "fields[0]").1.contains("one of its own parts"));
}

/// Keys that mean something to some reader, and some that mean nothing.
const KEYS: &[&str] = &[
    "name",
    "type",
    "logicalType",
    "physicalType",
    "properties",
    "items",
    "fields",
    "columns",
    "tags",
    "pii",
    "classification",
    "quality",
    "primaryKey",
    "required",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "$ref",
    "customProperties",
    "property",
    "value",
    "logicalTypeOptions",
    "description",
    "data_tests",
    "config",
    "meta",
    "contains_pii",
    "confluent:tags",
    "logicalType",
    "precision",
    "scale",
    "metric",
    "mustBe",
    "query",
    "unit",
    "roles",
    "role",
    "slaProperties",
    "element",
    "odd key",
    "",
    "enum",
    "unique",
    "constraints",
    "data_type",
];
const WORDS: &[&str] = &[
    "string",
    "integer",
    "number",
    "decimal(12,2)",
    "timestamp",
    "boolean",
    "array",
    "object",
    "record",
    "map",
    "restricted",
    "public",
    "internal",
    "PII",
    "rowCount",
    "nullValues",
    "not_null",
    "unique",
    "customer_id",
    "SELECT COUNT(*) FROM x",
    "#/definitions/a",
    "order",
    "null",
    "-5",
    "1e400",
    "Größe",
    "x.y",
    "int",
    "a\nb",
];

fn scalar() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Boolean),
        (-1000i32..1000).prop_map(|n| Tree::Number(n.to_string())),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| Tree::Number(x.to_string())),
        prop::sample::select(WORDS).prop_map(|word| Tree::Text(word.to_owned())),
        ".{0,12}".prop_map(Tree::Text),
    ]
}

fn map_of(inner: impl Strategy<Value = Tree> + Clone + 'static) -> impl Strategy<Value = Tree> {
    let key = prop_oneof![
        9 => prop::sample::select(KEYS).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
        let mut distinct: Vec<(String, Tree)> = Vec::new();
        for (key, value) in entries {
            if !distinct.iter().any(|(other, _)| *other == key) {
                distinct.push((key, value));
            }
        }
        Tree::Map(distinct)
    })
}

fn any_tree() -> impl Strategy<Value = Tree> {
    scalar().prop_recursive(5, 64, 6, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::List), map_of(inner)]
    })
}

/// A contract of one of the standards around random parts.
fn contract() -> impl Strategy<Value = Tree> {
    let parts = prop::collection::vec(any_tree(), 0..4);
    (0..6, parts, any_tree(), any_tree()).prop_map(|(standard, parts, one, other)| {
        let text = |word: &str| Tree::Text(word.to_owned());
        let map = |entries: Vec<(&str, Tree)>| {
            Tree::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let keyed = |parts: Vec<Tree>| {
            Tree::Map(
                parts
                    .into_iter()
                    .enumerate()
                    .map(|(n, part)| (format!("part {n}"), part))
                    .collect(),
            )
        };
        let columns = |key| map(vec![("name", text("orders")), (key, Tree::List(parts.clone()))]);
        match standard {
            0 => map(vec![
                ("kind", text("DataContract")),
                ("schema", Tree::List(vec![columns("properties"), one])),
                ("roles", other),
            ]),
            1 => {
                let model = map(vec![("fields", keyed(parts.clone())), ("quality", one)]);
                map(vec![
                    ("dataContractSpecification", text("1.1.0")),
                    ("models", map(vec![("orders", model)])),
                    ("definitions", other),
                ])
            }
            2 => map(vec![("models", Tree::List(vec![columns("columns"), one])), ("meta", other)]),
            3 => map(vec![
                ("type", text("record")),
                ("name", text("Order")),
                ("fields", Tree::List(parts.clone())),
                ("x", other),
            ]),
            4 => {
                map(vec![("properties", keyed(parts.clone())), ("required", one), ("$defs", other)])
            }
            _ => map(vec![
                ("schema", columns("fields")),
                ("ruleSet", map(vec![("domainRules", Tree::List(parts.clone()))])),
                ("metadata", map(vec![("tags", one), ("properties", other)])),
            ]),
        }
    })
}

fn json(tree: &Tree) -> serde_json::Value {
    match tree {
        Tree::Null => serde_json::Value::Null,
        Tree::Boolean(value) => (*value).into(),
        Tree::Number(text) => text.parse::<serde_json::Number>().unwrap().into(),
        Tree::Text(text) => text.clone().into(),
        Tree::List(items) => items.iter().map(json).collect(),
        Tree::Map(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_part_of_a_random_contract_is_in_exactly_one_list(tree in contract()) {
        let text = json(&tree).to_string();
        match import(&text, None) {
            Ok(import) => {
                is_complete(&text, &import);
                import.tables.iter().for_each(|table| { parsed(table); });
            }
            Err(error) => prop_assert!(!matches!(error, ImportError::Invalid { .. }), "{error}: {text}"),
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = import(&text, None);
    }
}
