//! References, patterns and rules that hold in part: what they say limits, wherever it stands, and
//! none of them makes an import endless.

use crate::common::{imported, offers, parsed, verdict};
use alpheus_policy::schema::{AttributeKind, Schema};
use alpheus_standards::{ImportError, import};

/// The smallest crowd that an attribute is released in; none if it is not.
fn crowd(schema: &Schema, attribute: &str) -> Option<u32> {
    assert!(schema.position(attribute).is_some(), "no attribute {attribute}");
    offers(schema, attribute).iter().map(|option| option.clients[0]).min()
}

fn bounds(schema: &Schema, attribute: &str) -> (i64, i64) {
    let own = &schema.attributes[usize::from(schema.position(attribute).unwrap())];
    let AttributeKind::Number { min, max, .. } = own.kind else {
        panic!("{attribute} is no number")
    };
    (min, max)
}

fn schema_of(text: &str) -> Schema {
    parsed(&imported(text).tables[0]).0
}

const JSON: &str = r##"{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Person", "required": ["email", "age", "maybe"],
 "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"extra": {"type": "integer"}}}],
 "properties": {
  "email": {"$ref": "#/$defs/Email", "confluent:tags": ["PII"]},
  "age": {"allOf": [{"$ref": "#/$defs/Age"}, {"maximum": 120}], "classification": "confidential"},
  "mix": {"type": ["integer", "string"]},
  "any": {"type": ["integer", "number"]},
  "maybe": {"oneOf": [{"type": "null"}, {"type": "integer", "minimum": 0, "maximum": 9}]},
  "grade": {"enum": [3, 1, 2], "type": "integer"},
  "k": {"const": 7, "type": "integer"},
  "node": {"$ref": "#/$defs/Node"}},
 "$defs": {"Email": {"type": "string"}, "Age": {"type": "integer", "minimum": 0, "pii": true},
  "Base": {"properties": {"base": {"type": "integer", "classification": "restricted"}}},
  "Node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}}}"##;

#[test]
fn what_is_said_beside_or_behind_a_reference_limits() {
    let import = imported(JSON);
    let (schema, _) = parsed(&import.tables[0]);
    assert_eq!(crowd(&schema, "email"), Some(1000));
    assert_eq!(crowd(&schema, "age"), None);
    assert_eq!(crowd(&schema, "base"), None);
    assert_eq!(crowd(&schema, "extra"), Some(100));
    assert_eq!(bounds(&schema, "age"), (0, 120));
    assert_eq!(bounds(&schema, "maybe"), (0, 9));
    assert_eq!(bounds(&schema, "grade"), (1, 3));
    assert_eq!(bounds(&schema, "k"), (7, 7));
    assert!(schema.position("mix").is_none(), "values of two kinds are of none");
    assert!(schema.position("any").is_some());
    let optional = |name| schema.is_optional(schema.position(name).unwrap());
    assert!(!optional("email") && !optional("age") && optional("maybe"));
    assert!(schema.position("node_v").is_some() && schema.position("node_next_next_v").is_none());
    for path in ["properties.email", "properties.email.$ref", "required[0]"] {
        assert!(verdict(&import, path).0, "{path}");
    }
}

#[test]
fn a_schema_that_is_a_reference_is_followed() {
    let text = r##"{"$ref": "#/definitions/W", "definitions": {"W": {"title": "W", "properties": {"a": {"type": "integer", "minimum": 1}}}}}"##;
    let schema = schema_of(text);
    assert_eq!((schema.name.as_str(), bounds(&schema, "a").0), ("W", 1));
}

const AVRO: &str = r#"{"type": "record", "name": "Person", "namespace": "com.acme", "fields": [
 {"name": "home", "type": {"type": "record", "name": "Address", "classification": "restricted", "fields": [{"name": "zip", "type": "int"}]}},
 {"name": "work", "type": "Address"},
 {"name": "other", "type": ["null", "com.acme.Address"]},
 {"name": "int", "type": "string"},
 {"name": "n", "type": "int"},
 {"name": "next", "type": ["null", "Person"]},
 {"name": "said", "type": "int", "metadata": {"pii": true}}]}"#;

#[test]
fn what_is_said_about_a_named_type_holds_wherever_it_is_named() {
    let schema = schema_of(AVRO);
    for name in ["home_zip", "work_zip", "other_zip"] {
        assert_eq!(crowd(&schema, name), None, "{name}");
    }
    assert_eq!(crowd(&schema, "said"), Some(1000));
    // A field's name is no type's name.
    assert_eq!(bounds(&schema, "n").1, i64::from(i32::MAX));
    assert!(schema.position("next_n").is_some() && schema.position("next_next_n").is_none());
}

#[test]
fn a_short_name_of_avro_is_one_of_the_namespace_around_it() {
    let inner = |more: &str| {
        format!(
            r#"{{"type":"record","name":"Site",{more}"fields":[{{"name":"n","type":"int"}},{{"name":"pay","type":"int","pii":true}}]}}"#
        )
    };
    let text = format!(
        r#"{{"type":"record","name":"Root","namespace":"r","fields":[
        {{"name":"open","type":{{"type":"record","name":"Site","namespace":"a","fields":[{{"name":"n","type":"int"}}]}}}},
        {{"name":"own","type":{{"type":"record","name":"Own","namespace":"b","fields":[{{"name":"home","type":{}}},{{"name":"work","type":["null","Site"]}}]}}}},
        {{"name":"there","type":"b.Site"}},
        {{"name":"none","type":"Site"}}]}}"#,
        inner(r#""doc":"confidential","#)
    );
    let import = imported(&text);
    let (schema, _) = parsed(&import.tables[0]);
    for name in ["own_home_n", "own_work_n", "own_work_pay", "there_n", "there_pay"] {
        assert_eq!(crowd(&schema, name), None, "{name}");
    }
    assert_eq!(crowd(&schema, "open_n"), Some(100));
    let (is_carried, why) = verdict(&import, "fields[3]");
    assert!(!is_carried && why.contains("type is not known"), "{why}");
    // The second type of a union has the same short name as the first.
    let money = |space: &str, doc: &str| {
        format!(
            r#"{{"type":"record","name":"Sum","namespace":"{space}","doc":"{doc}","fields":[{{"name":"n","type":"int"}}]}}"#
        )
    };
    let union = |two: &str| {
        format!(
            r#"[{},{},{{"type":"record","name":"Pay","namespace":"two","fields":[{{"name":"x","type":"Sum"}}]}}]"#,
            money("one", ""),
            money(two, "confidential")
        )
    };
    let import = imported(&union("two"));
    assert_eq!(crowd(&parsed(&import.tables[2]).0, "x_n"), None);
    // Of two types with one name, the stricter is meant.
    let twice = format!("[{},{},{}", money("two", ""), money("two", ""), &union("two")[1..]);
    let import = imported(&twice);
    assert_eq!(crowd(&parsed(&import.tables[4]).0, "x_n"), None);
}

#[test]
fn patterns_of_a_registry_select_by_full_names() {
    let inner = r#"{"type":"record","name":"Person","namespace":"com.acme","fields":[{"name":"ssn","type":"long"},{"name":"home","type":{"type":"record","name":"Address","fields":[{"name":"zip","type":"int"}]}},{"name":"height","type":"int"},{"name":"pay","type":"int"},{"name":"free","type":"int"}]}"#;
    let text = serde_json::json!({
        "subject": "p", "version": 2, "schema": inner,
        "metadata": {"tags": {"com.acme.Person.ssn": ["KEEP"], "com.acme.Address.*": ["CONFIDENTIAL"], "**.hei*": ["SECRET"], "other.Record.pay": ["PII"]}},
        "ruleSet": {"domainRules": [{"name": "e", "type": "ENCRYPT", "tags": ["KEEP"]}]},
    });
    let schema = schema_of(&text.to_string());
    for name in ["ssn", "home_zip", "height"] {
        assert_eq!(crowd(&schema, name), None, "{name}");
    }
    // A pattern that selects nothing here is taken for a field of that name.
    assert_eq!((crowd(&schema, "pay"), crowd(&schema, "free")), (Some(1000), Some(100)));
}

#[test]
fn ranges_hold_together_and_tests_of_some_rows_not_at_all() {
    let text = "models:
- name: t
  columns:
  - name: a
    data_type: integer
    data_tests:
    - accepted_range: { min_value: 0 }
    - accepted_range: { max_value: 100 }
    - accepted_range: { min_value: 5, where: b }
    - not_null: { config: { where: b } }
semantic_models: [{ measures: [{ name: x }] }]
";
    let import = imported(text);
    let (schema, _) = parsed(&import.tables[0]);
    assert_eq!(bounds(&schema, "a"), (0, 100));
    assert!(schema.is_optional(schema.position("a").unwrap()));
    let test = |number| format!("models[0].columns[0].data_tests[{number}]");
    let carried: Vec<bool> = (0..4).map(|n| verdict(&import, &test(n)).0).collect();
    assert_eq!(carried, [true, true, false, false]);
    // A property that no reader knows is listed as a whole.
    assert!(!verdict(&import, "semantic_models[0].measures[0]").0);
}

#[test]
fn a_definition_and_its_field_hold_together() {
    let text = "dataContractSpecification: 1.1.0
models:
  m:
    fields:
      age: { $ref: '#/definitions/age', maximum: 200 }
      odd: { type: integer, minimum: 5, maximum: 1 }
      loop: { $ref: '#/definitions/loop' }
definitions:
  age: { type: integer, minimum: 0, maximum: 150, pii: true }
  loop: { type: record, fields: { n: { type: integer }, more: { $ref: '#/definitions/loop' } } }
";
    let import = imported(text);
    let (schema, _) = parsed(&import.tables[0]);
    assert_eq!((bounds(&schema, "age"), crowd(&schema, "age")), ((0, 150), Some(1000)));
    assert!(schema.position("odd").is_none(), "limits that contradict each other allow nothing");
    assert!(verdict(&import, "models.m.fields.odd").1.contains("no value is allowed"));
    assert!(schema.position("loop_n").is_some() && schema.position("loop_more_more_n").is_none());
}

#[test]
fn readers_of_a_server_are_the_only_receivers() {
    let text = "kind: DataContract
apiVersion: v3.1.0
servers: [{ server: prod, type: postgres, roles: [{ role: analyst, access: read }] }]
schema: [{ name: t, properties: [{ name: a, logicalType: integer }] }]
";
    assert_eq!(offers(&schema_of(text), "a")[0].to, ["analyst"]);
}

#[test]
fn references_within_references_end() {
    let definitions: serde_json::Map<_, _> = (0..14)
        .map(|n| {
            let own =
                |p| (format!("p{p}"), serde_json::json!({"$ref": format!("#/$defs/D{}", n + 1)}));
            let properties: serde_json::Map<_, _> = (0..10).map(own).collect();
            (format!("D{n}"), serde_json::json!({"properties": properties}))
        })
        .collect();
    let bomb =
        serde_json::json!({"properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": definitions});
    let fields: Vec<_> = (0..8)
        .map(|n| serde_json::json!({"name": format!("n{n}"), "type": ["null", "Node"]}))
        .collect();
    let tree = serde_json::json!({"type": "record", "name": "Node", "fields": fields});
    let same: String = (0..19_000).map(|_| "  - { name: x, logicalType: integer }\n").collect();
    let same = format!(
        "kind: DataContract\napiVersion: v3.0.0\nschema:\n- name: t\n  properties:\n{same}"
    );
    assert!(matches!(import(&bomb.to_string(), None), Err(ImportError::TooMany { .. })));
    assert!(import(&tree.to_string(), None).is_ok());
    assert!(import(&same, None).is_ok());
}

#[test]
fn what_stands_around_a_definition_or_behind_a_path_of_it_limits() {
    let text = "dataContractSpecification: 1.1.0
models:
  m:
    fields:
      slash: { $ref: '#/definitions/a~1b' }
      escaped: { $ref: '#/definitions/%70ay' }
      inner: { $ref: '#/definitions/person/fields/age' }
      named: { $ref: '#/definitions/fields/fields/age' }
      nowhere: { type: integer, $ref: '#/definitions/none' }
      outside: { type: integer, $ref: 'https://example.com/age.yaml' }
      list: { type: integer, $ref: ['#/definitions/pay'] }
      round: { type: integer, $ref: '#/definitions/round' }
      chained: { type: integer, $ref: '#/definitions/chain/fields/age' }
      free: { type: integer, $ref: '#/definitions/free' }
  whole: { $ref: '#/definitions/model' }
definitions:
  a/b: { type: integer, pii: true }
  pay: { type: integer, classification: secret }
  person: { type: record, classification: restricted, fields: { age: { type: integer } } }
  fields: { type: record, classification: restricted, fields: { age: { type: integer } } }
  round: { $ref: '#/definitions/round' }
  chain: { $ref: '#/definitions/person', fields: { age: { type: integer } } }
  free: { title: nothing }
  model: { pii: true, fields: { n: { type: integer } } }
";
    let import = imported(text);
    let (schema, _) = parsed(&import.tables[0]);
    assert_eq!((crowd(&schema, "slash"), crowd(&schema, "free")), (Some(1000), Some(100)));
    for name in ["escaped", "inner", "named", "nowhere", "outside", "list", "round", "chained"] {
        assert_eq!(crowd(&schema, name), None, "{name}");
    }
    assert_eq!(crowd(&parsed(&import.tables[1]).0, "n"), Some(1000));
}

#[test]
fn references_of_json_schema_limit_wherever_they_lead() {
    let text = r##"{"properties": {
      "age": {"$ref": "#/$defs/Person/properties/age"}, "pay": {"$ref": "#/$defs/%50ay"},
      "nowhere": {"type": "integer", "$ref": "#/$defs/None"},
      "outside": {"type": "integer", "$ref": "other.json#/a"},
      "anchor": {"type": "integer", "$ref": "#none"},
      "dynamic": {"type": "integer", "$dynamicRef": "#x"},
      "twice": {"type": "integer"}, "then": {"type": "integer"}, "free": {"type": "integer"},
      "home": {"properties": {"zip": {"type": "integer"}}}},
     "allOf": [{"properties": {"twice": {"classification": "secret"}, "home": {"pii": true}}}],
     "then": {"properties": {"then": {"classification": "secret"}}},
     "$defs": {"Pay": {"type": "integer", "pii": true},
      "Person": {"classification": "restricted", "properties": {"age": {"type": "integer"}}}}}"##;
    let schema = schema_of(text);
    for name in ["age", "nowhere", "outside", "anchor", "dynamic", "twice", "then"] {
        assert_eq!(crowd(&schema, name), None, "{name}");
    }
    for name in ["pay", "home_zip"] {
        assert_eq!(crowd(&schema, name), Some(1000), "{name}");
    }
    assert_eq!(crowd(&schema, "free"), Some(100));
}

#[test]
fn a_rule_that_encrypts_restricts_all_that_it_may_mean() {
    let inner = |tags: &str| {
        format!(
            r#"{{"type":"record","name":"P",{tags}"fields":[{{"name":"a","type":"int","confluent:tags":["KEEP"]}},{{"name":"h","confluent:tags":["HOME"],"type":{{"type":"record","name":"H","fields":[{{"name":"zip","type":"int"}}]}}}}]}}"#
        )
    };
    let record = r#""confluent:tags":["ALL"],"#;
    let none = &[None, None][..];
    for (tags, rule, pattern, expected) in [
        ("", r#"{"type": "ENCRYPT"}"#, "x.y.a", none),
        ("", r#"{"type": "ENCRYPT", "tags": ["OTHER"]}"#, "P.a", none),
        ("", r#"{"type": "ENCRYPT", "tags": ["keep"]}"#, "P.a", &[None, Some(100)]),
        ("", r#"{"type": "ENCRYPT", "tags": ["HOME"]}"#, "P.a", &[Some(100), None]),
        ("", r#"{"type": "ENCRYPT_NEW", "tags": ["HOME"]}"#, "P.a", &[Some(100), None]),
        (record, r#"{"type": "ENCRYPT", "tags": ["ALL"]}"#, "P.a", none),
        ("", r#"{"type": "ENCRYPT", "tags": ["SET"]}"#, "P", none),
        ("", r#"{"type": "ENCRYPT", "tags": ["SET"]}"#, "H", &[Some(100), None]),
        ("", r#"{"type": "ENCRYPT", "tags": ["SET"]}"#, "no.such", none),
    ] {
        let set = if rule.contains("SET") { "SET" } else { "X" };
        let rule: serde_json::Value = serde_json::from_str(rule).unwrap();
        for key in ["domainRules", "migrationRules"] {
            let text = serde_json::json!({
                "subject": "p", "schema": inner(tags),
                "metadata": {"tags": {pattern: [set]}}, "ruleSet": {key: [rule]},
            });
            let schema = schema_of(&text.to_string());
            let found = [crowd(&schema, "a"), crowd(&schema, "h_zip")];
            assert_eq!(found, expected, "{rule} {pattern}");
        }
    }
}
