//! The JSON Schemas for editors agree with the parsers: on every example, and on examples with
//! one thing changed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_policy::document::{ContentError, DocumentError, Node, Value as Part};
use alpheus_policy::editor::{EditedFile, json_schema};
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Every file of this name among the examples.
fn examples(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Tables of the verifiable part have files of the same name and another form.
                if !path.ends_with("table") {
                    folders.push(path);
                }
            } else if path.file_name().is_some_and(|own| own == name) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 5);
    found
}

/// What an editor sees: a YAML file as JSON.
fn value(node: &Node) -> Value {
    match &node.value {
        Part::Null => Value::Null,
        Part::Scalar { text, plain: true } => match text.as_str() {
            "true" | "false" => (text == "true").into(),
            _ => text
                .parse::<serde_json::Number>()
                .map_or_else(|_| text.clone().into(), Value::Number),
        },
        Part::Scalar { text, .. } => text.clone().into(),
        Part::List(items) => items.iter().map(value).collect(),
        Part::Map(entries) => entries
            .iter()
            .map(|(key, own)| (key.clone(), value(own)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// Every document that differs from `whole` in one place.
fn mutations(whole: &Value) -> Vec<Value> {
    let mut pointers = Vec::new();
    collect(whole, String::new(), &mut pointers);
    let mut all = Vec::new();
    for pointer in pointers {
        for replacement in
            [json!({}), json!([]), json!(null), json!("surprise"), json!(7), json!([{"a": 1}])]
        {
            let mut changed = whole.clone();
            *changed.pointer_mut(&pointer).unwrap() = replacement;
            all.push(changed);
        }
        let mut changed = whole.clone();
        match changed.pointer_mut(&pointer).unwrap() {
            Value::Object(entries) => {
                for key in entries.keys().cloned().collect::<Vec<_>>() {
                    let mut without = whole.clone();
                    without
                        .pointer_mut(&pointer)
                        .unwrap()
                        .as_object_mut()
                        .unwrap()
                        .shift_remove(&key);
                    all.push(without);
                }
                entries.insert("surprise".to_owned(), json!(1));
            }
            Value::Array(items) => items.push(json!({"surprise": 1})),
            _ => continue,
        }
        all.push(changed);
    }
    all
}

fn collect(value: &Value, at: String, found: &mut Vec<String>) {
    found.push(at.clone());
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, inner)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            collect(inner, format!("{at}/{key}"), found);
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, inner)| collect(inner, format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// Whether an editor can know: a wrong key, a missing one, a wrong word, another form.
fn is_of_form(error: &DocumentError) -> bool {
    matches!(
        error.problem,
        ContentError::UnknownKey { .. }
            | ContentError::MissingKey { .. }
            | ContentError::UnknownWord { .. }
            | ContentError::Expected {
                expected: "a list" | "a map of keys and values" | "true or false"
            }
    )
}

fn agree(file: EditedFile, text: &str, read: impl Fn(&str) -> Result<(), DocumentError>) -> usize {
    let editor: Validator = jsonschema::validator_for(&json_schema(file)).unwrap();
    let whole = value(&Node::from_yaml(text).unwrap());
    assert!(
        editor.is_valid(&whole),
        "{:?}",
        editor.iter_errors(&whole).map(|e| e.to_string()).collect::<Vec<_>>()
    );
    let mut refused = 0;
    for changed in mutations(&whole) {
        // JSON is YAML, and keeps numbers as they are written.
        let parsed = read(&changed.to_string());
        let fine = editor.is_valid(&changed);
        match parsed {
            Ok(()) => assert!(fine, "only the editor refuses {changed}"),
            Err(error) if is_of_form(&error) => {
                assert!(!fine, "only the parser refuses: {error}\n{changed}");
                refused += 1;
            }
            Err(_) => {}
        }
    }
    refused
}

#[test]
fn the_json_schema_of_schemas_agrees_with_the_parser() {
    let mut refused = 0;
    for path in examples("schema.yaml") {
        let text = std::fs::read_to_string(&path).unwrap();
        refused += agree(EditedFile::Schema, &text, |text| Schema::from_yaml(text).map(drop));
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn the_json_schema_of_policies_agrees_with_the_parser() {
    let mut refused = 0;
    for path in examples("policies.yaml") {
        let text = std::fs::read_to_string(&path).unwrap();
        let schema = std::fs::read_to_string(path.with_file_name("schema.yaml")).unwrap();
        let schema = Schema::from_yaml(&schema).unwrap();
        refused +=
            agree(EditedFile::Policies, &text, |text| Policies::from_yaml(text, &schema).map(drop));
    }
    assert!(refused > 50, "{refused}");
}
