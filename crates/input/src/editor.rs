//! The JSON Schema of source files, with which editors check and complete them while people type.
//!
//! It says less than the parser, which refuses everything that it refuses.

use alpheus_discover::cells::Delimiter;
use alpheus_policy::editor::{map, number, one_or_list, scalar, titled, truth, words};
use serde_json::{Value, json};

/// The JSON Schema of `source.yaml`.
#[must_use]
pub fn source_schema() -> Value {
    let rules = [
        ("schema", scalar()),
        ("file", file()),
        ("time", time()),
        ("stream", scalar()),
        ("single", scalar()),
        ("owner", scalar()),
        ("attributes", of_attributes(scalar())),
        ("missing", of_attributes(texts())),
        ("metadata", of_attributes(metadata())),
        ("wide", wide()),
        ("align", words(&["common-start"])),
        ("base", number()),
    ];
    titled("A source file of Alpheus", all(&["schema", "time"], &rules))
}

/// A map with these keys, of which some are required.
fn all(required: &[&str], rules: &[(&str, Value)]) -> Value {
    let keys: Vec<&str> = rules.iter().map(|(key, _)| *key).collect();
    map(&keys, required, rules)
}

/// Something for each attribute, by its name.
fn of_attributes(own: Value) -> Value {
    json!({"type": "object", "additionalProperties": own})
}

fn texts() -> Value {
    json!({"type": "array", "items": scalar()})
}

fn file() -> Value {
    let delimiters = Delimiter::ALL.map(Delimiter::name);
    let rules = [
        ("delimiter", words(&delimiters)),
        ("encoding", words(&["utf-8", "utf-16le", "utf-16be", "windows-1252"])),
        ("skip", number()),
        ("columns", texts()),
        ("below", number()),
        ("comment", scalar()),
        ("multiline", truth()),
        ("ragged", truth()),
        ("decimal", words(&[".", ",", "both"])),
        ("thousands", scalar()),
        ("around", texts()),
        ("missing", texts()),
        ("untimed", truth()),
        ("totals", json!({"type": "array", "items": number()})),
    ];
    all(&[], &rules)
}

fn time() -> Value {
    let numbers = ["first", "origin", "length"].map(|key| (key, number()));
    let rules = [
        ("column", scalar()),
        ("columns", texts()),
        ("date", scalar()),
        ("format", one_or_list(scalar())),
        ("zone", scalar()),
        ("unit", words(&["s", "ms", "us", "ns", "days", "spreadsheet-days"])),
        ("prefix", scalar()),
        ("steps", all(&["first", "origin", "length"], &numbers)),
    ];
    all(&[], &rules)
}

/// `streamKey`, or a map with one key.
fn metadata() -> Value {
    let one = |key: &str| all(&[key], &[(key, scalar())]);
    json!({"anyOf": [words(&["streamKey"]), one("column"), one("constant")]})
}

fn wide() -> Value {
    let keys = ["from", "to", "step"];
    let moments = all(&keys, &[("from", scalar()), ("to", scalar()), ("step", number())]);
    let columns =
        json!({"anyOf": [words(&["streams"]), all(&["moments"], &[("moments", moments)])]});
    let rules = [("attribute", scalar()), ("columns", columns), ("leaveOut", texts())];
    all(&["attribute", "columns"], &rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use alpheus_policy::schema::Schema;
    use std::path::PathBuf;

    /// All keys of a file with a row for each reading, and of a file with a column for each owner.
    const LONG: &str = "schema: S\nfile: { delimiter: ';', encoding: utf-8, skip: 1, columns: [a], below: 1, comment: '#', multiline: true, ragged: false, decimal: ',', thousands: '.', around: ['$'], missing: [NA], untimed: true, totals: [9] }\ntime: { columns: [day], date: '2024-03-01', format: ['%H:%M'], zone: UTC }\nstream: who\nowner: owner\nattributes: { v: value }\nmissing: { v: ['-'] }\nmetadata: { m: streamKey, n: { column: c }, o: { constant: x } }\nalign: common-start\nbase: 7\n";
    const WIDE: &str = "schema: S\ntime: { column: t, unit: ms, prefix: w, steps: { first: 1, origin: 2, length: 3 } }\nstream: who\nwide: { attribute: v, columns: { moments: { from: a, to: b, step: 3 } }, leaveOut: [n] }\n";
    const ONE: &str = "schema: S\ntime: { column: t, format: '%Y' }\nsingle: all\n";

    fn schema() -> Schema {
        let text = "name: S\nmetadataAttributes:\n  - { name: m, type: string, optional: true }\n  - { name: n, type: string, optional: true }\n  - { name: o, type: string, optional: true }\nstreamAttributes:\n  - { name: v, type: integer, min: 0, max: 9, optional: true }\n";
        Schema::from_yaml(text).unwrap()
    }

    fn examples() -> Vec<String> {
        let mut found: Vec<String> = [LONG, WIDE, ONE].map(str::to_owned).into();
        let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with("source.yaml") {
                    found.push(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        assert!(found.len() > 10);
        found
    }

    /// Every map and every value of a document, by its place.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(key, own)| places(own, &format!("{at}/{key}"), found));
            }
            Value::Array(list) => {
                let each = list.iter().enumerate();
                each.for_each(|(number, own)| places(own, &format!("{at}/{number}"), found));
            }
            _ => {}
        }
    }

    /// Every document that differs in one place: without it, with a word in it, or with a key more.
    fn changed(whole: &Value) -> Vec<Value> {
        let mut all = Vec::new();
        places(whole, "", &mut all);
        let mut found = Vec::new();
        for place in all {
            let change = |change: &dyn Fn(&mut Value)| {
                let mut other = whole.clone();
                change(other.pointer_mut(&place).unwrap());
                other
            };
            found.push(change(&|own| *own = json!("surprise")));
            found.push(change(&|own| *own = json!({"surprise": 1})));
            for key in whole.pointer(&place).and_then(Value::as_object).into_iter().flatten() {
                found.push(change(&|own| drop(own.as_object_mut().unwrap().remove(key.0))));
                found.push(change(&|own| own["surprise"] = json!(1)));
            }
        }
        found
    }

    #[test]
    fn the_json_schema_of_sources_agrees_with_the_parser() {
        let (editor, schema) = (jsonschema::validator_for(&source_schema()).unwrap(), schema());
        for full in [LONG, WIDE, ONE] {
            Source::parse(full, &schema).unwrap();
        }
        let mut refused = 0;
        for text in examples() {
            let whole: Value = serde_saphyr::from_str(&text).unwrap();
            assert!(editor.is_valid(&whole), "{whole}");
            for other in changed(&whole) {
                let parsed = serde_saphyr::from_str::<Source>(&other.to_string());
                let Err(error) = parsed.map_err(|error| error.to_string()) else {
                    assert!(editor.is_valid(&other), "only the editor refuses {other}");
                    continue;
                };
                // A wrong key, a missing one, a wrong word.
                if ["unknown field", "missing field", "unknown variant"]
                    .iter()
                    .any(|own| error.contains(own))
                {
                    assert!(!editor.is_valid(&other), "only the parser refuses: {error}\n{other}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 200, "{refused}");
    }
}
