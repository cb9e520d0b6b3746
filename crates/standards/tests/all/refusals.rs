//! Files that are refused, since a part that cannot be read might limit what is released.

use crate::common::{imported, verdict};
use alpheus_standards::{ImportError, import};

#[test]
fn a_registry_schema_that_cannot_be_read_is_refused() {
    let refused = |text: &str| import(text, None).unwrap_err();
    for text in [
        r#"{"schemaType": "PROTOBUF", "schema": "syntax = \"proto3\"; message M { string a = 1; }"}"#,
        r#"{"schema": "message M { string a = 1; }", "metadata": {"tags": {"M.a": ["PII"]}}}"#,
        r#"{"schemaType": "PROTOBUF", "schema": ""}"#,
        r#"{"schema": "// Note: a comment\nmessage M { string a = 1; }"}"#,
        r#"{"schema": "import \"a.proto\"; message M { string a = 1; }"}"#,
        r#"{"schema": "option x = true; message M { string a = 1; }"}"#,
    ] {
        assert_eq!(refused(text), ImportError::Protobuf, "{text}");
    }
    assert!(ImportError::Protobuf.to_string().starts_with("Protobuf schemas are not read"));
    for (text, says) in [
        (r#"{"schemaType": "AVRO", "schema": "{ not json"}"#, "line 1"),
        (r#"{"schema": "{\"type\": \"record\",\n\"name\": ]"}"#, "line 2"),
        (r#"{"schema": ""}"#, "it is empty"),
        (r#"{"schema": "service S { }"}"#, "neither a schema nor the name of a type"),
    ] {
        let said = refused(text).to_string();
        assert!(said.contains("under `schema`") && said.contains(says), "{said}");
    }
    // A type without fields hides none.
    assert!(import(r#"{"schema": "\"string\""}"#, None).is_ok());
}

#[test]
fn unknown_versions_and_files_of_other_tools_are_refused() {
    for text in [
        "kind: DataContract\napiVersion: banana\nschema: []\n",
        "kind: DataContract\napiVersion: v4.0.0\nschema: []\n",
        "kind: DataContract\napiVersion: v30\nschema: []\n",
        "kind: DataContract\napiVersion: [v3.0.0]\nschema: []\n",
        "dataContractSpecification: 2.0.0\nmodels: {}\n",
        "dataContractSpecification: latest\nmodels: {}\n",
    ] {
        let error = import(text, None).unwrap_err();
        assert!(matches!(error, ImportError::Version { .. }), "{text}: {error}");
    }
    for text in [
        "kind: Deployment\napiVersion: apps/v1\nmetadata: { name: x }\nspec: {}\n",
        r#"{"metadata": {"dbt_schema_version": "v12"}, "nodes": {}}"#,
    ] {
        assert_eq!(import(text, None).unwrap_err(), ImportError::UnknownStandard, "{text}");
    }
    for text in [
        "kind: DataContract\napiVersion: v3.1.0\nschema: []\n",
        "kind: DataContract\nschema: []\n",
        "dataContractSpecification: 0.9.3\nmodels: {}\n",
        r#"{"metadata": {"tags": {"a": ["PII"]}}}"#,
    ] {
        assert!(import(text, None).is_ok(), "{text}");
    }
}

#[test]
fn an_unknown_key_is_to_be_reviewed_and_a_known_one_has_no_place() {
    let import = imported(
        "kind: DataContract\nschema:\n- { name: t, properties: [{ name: a, logicalType: integer, tier: red, readOnly: true }] }\n",
    );
    let why = |key: &str| verdict(&import, &format!("schema[0].properties[0].{key}")).1;
    assert_eq!(why("tier"), "this key is not known here: review it");
    assert!(why("readOnly").starts_with("known, but"), "{}", why("readOnly"));
}

#[test]
fn a_part_of_another_form_is_refused_and_not_passed_over() {
    let odcs = |rest: &str| format!("kind: DataContract\napiVersion: v3.1.0\n{rest}\n");
    let dcs = |rest: &str| format!("dataContractSpecification: 0.9.2\n{rest}\n");
    for (text, path) in [
        (odcs("schema: { name: t, properties: [{ name: a, classification: secret }] }"), "schema"),
        (odcs("schema: [{ name: t, properties: { a: { pii: true } } }]"), "schema[0].properties"),
        (
            odcs(
                "schema: [{ name: t, properties: [{ name: o, properties: { a: { pii: true } } }] }]",
            ),
            "schema[0].properties[0].properties",
        ),
        (
            odcs("schema: [{ properties: [{ name: o, items: { properties: { a: {} } } }] }]"),
            "schema[0].properties[0].items.properties",
        ),
        (dcs("schema: { type: dbt, specification: 'models: []' }"), "schema"),
        (dcs("models: [{ name: t }]"), "models"),
        (dcs("models: { t: { fields: [{ name: a, pii: true }] } }"), "models.t.fields"),
        ("models: [{ name: t, columns: { a: { tags: [pii] } } }]".to_owned(), "models[0].columns"),
    ] {
        let error = import(&text, None).unwrap_err();
        assert!(matches!(&error, ImportError::Form { path: own, .. } if own == path), "{error}");
    }
    // What holds nothing hides nothing.
    for rest in ["schema: {}", "schema: ", "schema: [{ name: t, properties: {} }]"] {
        assert!(import(&odcs(rest), None).is_ok(), "{rest}");
    }
}

#[test]
fn several_records_in_one_file_are_refused_with_the_way_out() {
    const RECORD: &str =
        r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}"#;
    for text in [
        format!(r#"{{"type": "array", "items": {RECORD}}}"#),
        format!(r#"[{{"subject": "s", "schema": {}}}]"#, serde_json::to_string(RECORD).unwrap()),
    ] {
        let error = import(&text, None).unwrap_err();
        assert!(error.to_string().contains("a file of its own"), "{text}: {error}");
    }
}
