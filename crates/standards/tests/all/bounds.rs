//! Bounds of numbers from types, sets of allowed values and tests, in every standard.

use crate::common::{imported, parsed, verdict};
use alpheus_policy::schema::AttributeKind;
use alpheus_standards::Import;

/// The decimal places and bounds of an attribute of the first table.
fn number(import: &Import, attribute: &str) -> (u8, i64, i64) {
    let (schema, _) = parsed(&import.tables[0]);
    let position = schema.position(attribute).unwrap();
    let own = &schema.attributes[usize::from(position)];
    let AttributeKind::Number { scale, min, max } = own.kind else { panic!("{attribute}") };
    (scale, min, max)
}

fn odcs(properties: &str) -> Import {
    let head = "kind: DataContract\napiVersion: v3.2.0\nschema:\n  - name: t\n    properties:\n";
    let lines = properties.lines().map(|line| format!("      - {}\n", line.trim()));
    imported(&(head.to_owned() + &lines.collect::<String>()))
}

#[test]
fn sets_of_numbers_are_bounds_in_every_standard() {
    let import = odcs(
        "{ name: a, logicalType: integer, enum: [{ value: 3 }, { value: 1 }, { value: 2 }] }
         { name: b, logicalType: integer, logicalTypeOptions: { enum: [4, 9] } }
         { name: c, logicalType: integer, quality: [{ metric: invalidValues, arguments: { validValues: [1, 5] }, mustBe: 0 }] }
         { name: d, logicalType: integer, quality: [{ metric: invalidValues, arguments: { validValues: [1, 5] }, mustBeLessThan: 9 }] }
         { name: e, logicalType: string, enum: [{ value: '1' }] }",
    );
    assert_eq!(number(&import, "a"), (0, 1, 3));
    assert_eq!(number(&import, "b"), (0, 4, 9));
    assert_eq!(number(&import, "c"), (0, 1, 5));
    assert_eq!(number(&import, "d").1, -i64::MAX);
    for (path, carried) in [
        ("schema[0].properties[0].enum[0].value", true),
        ("schema[0].properties[0].enum[2].value", false),
        ("schema[0].properties[2].quality[0]", true),
        ("schema[0].properties[2].quality[0].arguments.validValues[1]", true),
        ("schema[0].properties[3].quality[0]", false),
        ("schema[0].properties[4].enum[0].value", false),
    ] {
        assert_eq!(verdict(&import, path).0, carried, "{path}");
    }
    let import = imported(
        "dataContractSpecification: 1.1.0\nmodels: { t: { fields: { a: { type: int, enum: [2, 7, null] }, b: { type: long, enum: ['1', '7'] } } } }",
    );
    assert_eq!((number(&import, "a"), number(&import, "b")), ((0, 2, 7), (0, 1, 7)));
    let import = imported(
        "models:\n- name: t\n  columns:\n  - { name: a, data_type: int64, data_tests: [{ accepted_values: { arguments: { values: [1, 9] }, quote: false } }] }\n",
    );
    assert_eq!(number(&import, "a"), (0, 1, 9));
    assert!(verdict(&import, "models[0].columns[0].data_tests[0]").0);
}

#[test]
fn types_without_a_sign_and_widths_are_bounds() {
    let import = odcs(
        "{ name: a, logicalType: integer, physicalType: UBIGINT }
         { name: b, logicalType: integer, logicalTypeOptions: { format: u64, minimum: -5 } }
         { name: c, logicalType: number, physicalType: 'decimal(5,2) unsigned' }
         { name: d, logicalType: integer, physicalType: smallint, logicalTypeOptions: { precision: 3 } }
         { name: e, logicalType: number, physicalType: 'NUMBER(*,2)' }
         { name: f, logicalType: number, physicalType: 'NUMERIC(5,-2)' }
         { name: g, logicalType: integer, logicalTypeOptions: { minimum: 99999999999999999999 } }
         { name: h, logicalType: number, logicalTypeOptions: { minimum: 1e-20, maximum: 0.0010000000000000002 } }
         { name: i, logicalType: integer, physicalType: smallint, logicalTypeOptions: { precision: 9, scale: 2 } }",
    );
    assert_eq!(number(&import, "a"), (0, 0, i64::MAX));
    assert_eq!(number(&import, "b"), (0, 0, i64::MAX));
    assert_eq!(number(&import, "c"), (2, 0, 99_999));
    assert_eq!(number(&import, "d"), (0, -999, 999));
    assert_eq!(number(&import, "e").0, 2);
    assert_eq!(number(&import, "f"), (0, -9_999_999, 9_999_999));
    assert_eq!(number(&import, "h"), (6, 1, 1000));
    assert_eq!(number(&import, "i"), (2, -3_276_800, 3_276_700));
    assert!(verdict(&import, "schema[0].properties[0].physicalType").0);
    assert!(!verdict(&import, "schema[0].properties[1].logicalTypeOptions.minimum").0);
    let (is_carried, why) = verdict(&import, "schema[0].properties[6]");
    assert!(!is_carried && why.starts_with("no value is allowed"), "{why}");
    let import = imported(
        r#"{"title": "T", "properties": {"a": {"type": "integer", "format": "int32"}, "b": {"type": "integer", "format": "uint8"}, "c": {"type": "integer", "connect.type": "int16"}}}"#,
    );
    assert_eq!(number(&import, "a").2, i64::from(i32::MAX));
    assert_eq!(number(&import, "b"), (0, 0, 255));
    assert_eq!(number(&import, "c").1, i64::from(i16::MIN));
}

#[test]
fn lengths_of_text_are_found_in_every_spelling() {
    let import = odcs(
        "{ name: a, logicalType: string, physicalType: 'character varying(10)' }
         { name: b, logicalType: string, physicalType: 'varchar[15]' }",
    );
    for (attribute, bytes) in [("a", 40), ("b", 60)] {
        let line = format!("name: {attribute}\n    type: string\n    maxBytes: {bytes}\n");
        assert!(import.tables[0].schema.contains(&line), "{}", import.tables[0].schema);
    }
}

#[test]
fn a_dbt_test_that_tolerates_values_bounds_nothing() {
    for (test, is_hard) in [
        ("accepted_range: { min_value: 0, max_value: 5 }", true),
        ("accepted_range: { min_value: 0, max_value: 5, config: { severity: ERROR } }", true),
        ("accepted_range: { min_value: 0, max_value: 5, config: { severity: warn } }", false),
        ("accepted_range: { min_value: 0, max_value: 5, config: { enabled: false } }", false),
        ("accepted_range: { min_value: 0, max_value: 5, config: { error_if: '>100' } }", false),
        ("accepted_range: { min_value: 0, max_value: 5, group_by_columns: [x] }", false),
        ("accepted_range: { arguments: { min_value: 0, max_value: 5, row_condition: x } }", false),
        ("accepted_range: { min_value: 0, max_value: 5, mostly: 0.9 }", false),
        ("accepted_values: { values: [0, 5], config: { severity: warn } }", false),
    ] {
        let text = format!(
            "models:\n- name: t\n  columns:\n  - {{ name: a, data_type: int, tests: [{{ {test} }}] }}\n"
        );
        let import = imported(&text);
        assert_eq!(number(&import, "a") == (0, 0, 5), is_hard, "{test}");
        assert_eq!(verdict(&import, "models[0].columns[0].tests[0]").0, is_hard, "{test}");
    }
    for (test, optional) in [
        ("not_null", false),
        ("not_null: { config: { severity: warn } }", true),
        ("not_null: { severity: warn }", true),
        ("not_null: { config: { enabled: false } }", true),
        ("not_null: { row_condition: 'x = 1' }", true),
    ] {
        let text = format!(
            "models:\n- name: t\n  columns:\n  - name: a\n    data_type: int\n    tests:\n    - {test}\n"
        );
        let (schema, _) = parsed(&imported(&text).tables[0]);
        assert_eq!(schema.attributes[0].optional, optional, "{test}");
    }
}

#[test]
fn a_count_of_another_table_and_a_measure_are_not_carried() {
    let import = imported(
        "kind: DataContract
schema:
  - name: orders
    physicalName: shop.tab_orders
    properties:
      - { name: a, logicalType: integer, required: true }
      - { name: b, logicalType: integer, semanticType: measure }
      - { name: c, logicalType: integer, transformLogic: SUM(a) }
      - { name: d, logicalType: integer, transformLogic: a }
    quality:
      - { type: sql, query: SELECT COUNT(*) FROM other }
      - { type: sql, query: 'SELECT COUNT(*) FROM tab_orders' }
      - { type: sql, query: 'SELECT COUNT(*) FROM ${object}' }
",
    );
    for (path, carried) in [
        ("schema[0].quality[0]", false),
        ("schema[0].quality[1]", true),
        ("schema[0].quality[2]", true),
        ("schema[0].properties[1]", false),
        ("schema[0].properties[2]", false),
        ("schema[0].properties[3]", true),
    ] {
        assert_eq!(verdict(&import, path).0, carried, "{path}");
    }
}

#[test]
fn a_number_with_too_many_digits_keeps_its_limits_and_is_asked_about() {
    let import = odcs(
        "{ name: big, logicalType: number, physicalType: 'DECIMAL(38,18)', logicalTypeOptions: { minimum: 0, maximum: 1000 } }
         { name: usd, logicalType: number, physicalType: 'DECIMAL(38,18)' }
         { name: few, logicalType: number, physicalType: 'DECIMAL(38,2)' }",
    );
    assert_eq!(number(&import, "big"), (15, 0, 10i64.pow(18)));
    assert_eq!(number(&import, "usd"), (6, -i64::MAX, i64::MAX));
    assert!(verdict(&import, "schema[0].properties[0].logicalTypeOptions.maximum").0);
    let schema = &import.tables[0].schema;
    assert!(schema.contains("scale: 15 # fewer places than the contract's"), "{schema}");
    let asked = |name: &str| {
        let start = format!("t: {name} has more digits than 64 bits hold");
        import.report.unsure.iter().any(|own| own.starts_with(&start))
    };
    assert!(asked("big") && asked("usd") && !asked("few"), "{:?}", import.report.unsure);
    for text in [
        "dataContractSpecification: 1.1.0\nmodels: { t: { fields: { a: { type: decimal, precision: 38, scale: 18, maximum: 1000, minimum: 0 } } } }",
        "models: [{ name: t, columns: [{ name: a, data_type: 'decimal(38,18)', data_tests: [{ accepted_range: { min_value: 0, max_value: 1000 } }] }] }]",
        r#"{"type":"record","name":"R","fields":[{"name":"a","minimum":0,"type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":18}}]}"#,
    ] {
        let import = imported(text);
        assert!(
            number(&import, "a").2 / 10i64.pow(number(&import, "a").0.into()) >= 1000,
            "{text}"
        );
        assert!(import.report.unsure.iter().any(|own| own.contains("64 bits")), "{text}");
    }
}

#[test]
fn alternatives_allow_what_one_of_them_allows_and_no_more() {
    let import = imported(
        r##"{"title": "T", "properties": {
        "a": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 10}, {"type": "integer", "minimum": 20, "maximum": 30}]},
        "b": {"type": "integer", "oneOf": [{"const": 1}, {"const": 2}, {"const": null}]},
        "c": {"type": "integer", "anyOf": [{"enum": [1, 2]}, {"enum": [5]}]},
        "d": {"type": "integer", "maximum": 9, "anyOf": [{"minimum": 3}, {"maximum": 5}]},
        "e": {"anyOf": [{"$ref": "#/$defs/low"}, {"anyOf": [{"type": "integer", "exclusiveMaximum": 8, "minimum": 4}, {"type": "null"}]}]},
        "f": {"type": "integer", "oneOf": [{"exclusiveMinimum": 0, "maximum": 5}, {"minimum": 0, "exclusiveMaximum": 5}]},
        "g": {"$ref": "#/$defs/round"},
        "h": {"type": "integer", "if": {"minimum": 3}, "then": {"maximum": 5}}},
        "$defs": {"low": {"type": "integer", "minimum": -3, "maximum": 0},
        "round": {"type": "integer", "anyOf": [{"$ref": "#/$defs/round"}, {"$ref": "#/$defs/round"}]}}}"##,
    );
    let all = i64::MAX;
    for (attribute, min, max) in [
        ("a", 0, 30),
        ("b", 1, 2),
        ("c", 1, 5),
        ("d", -all, 9),
        ("e", -3, 7),
        ("f", 0, 5),
        ("g", -all, all),
        ("h", -all, all),
    ] {
        assert_eq!(number(&import, attribute), (0, min, max), "{attribute}");
    }
    assert!(verdict(&import, "properties.a.anyOf[1].maximum").0);
    assert!(!verdict(&import, "properties.a.anyOf[0].maximum").0);
}

#[test]
fn digits_and_limits_of_other_spellings_are_bounds() {
    let import = odcs(
        "{ name: a, logicalType: number, physicalType: NUMERIC, customProperties: [{ property: precision, value: 5 }, { property: scale, value: '3' }] }",
    );
    assert_eq!(number(&import, "a"), (3, -99_999, 99_999));
    assert!(verdict(&import, "schema[0].properties[0].customProperties[0].value").0);
    let import = imported(
        "dataContractSpecification: 0.9.2\nmodels: { t: { fields: { a: { type: integer, minimumExclusive: 0, maximumExclusive: 20 } } } }",
    );
    assert_eq!(number(&import, "a"), (0, 1, 19));
    let import = imported(
        "models: [{ name: t, columns: [{ name: a, data_type: int, tests: [{ dbt_expectations.expect_column_values_to_be_in_set: { value_set: [1, 4] } }, dbt_expectations.expect_column_values_to_not_be_null] }] }]",
    );
    assert_eq!(number(&import, "a"), (0, 1, 4));
    let (schema, _) = parsed(&import.tables[0]);
    assert!(!schema.attributes[0].optional);
    for at in 0..2 {
        assert!(verdict(&import, &format!("models[0].columns[0].tests[{at}]")).0, "{at}");
    }
}

/// Digits that are stated beside a type make it no wider, and leave its places.
#[test]
fn digits_without_places_leave_the_width_and_the_places_of_the_type() {
    let import = odcs(
        "{ name: a, logicalType: integer, logicalTypeOptions: { format: i32 }, customProperties: [{ property: precision, value: 38 }] }
         { name: b, logicalType: number, physicalType: 'DECIMAL(12,2)', customProperties: [{ property: precision, value: 12 }] }",
    );
    assert_eq!(number(&import, "a"), (0, i32::MIN.into(), i32::MAX.into()));
    assert_eq!(number(&import, "b"), (2, -999_999_999_999, 999_999_999_999));
}
