//! The Avro form of a schema given as YAML: what an ordinary registry has.

use alpheus_policy::document::{Node, Value};
use alpheus_policy::schema::Schema;
use serde_json::{Map, Value as Json, json};

/// Digits of the largest scaled value.
const PRECISION: u8 = 19;

/// A valid schema as an Avro record with Alpheus properties. `None` if it is invalid.
pub(crate) fn avsc_of_yaml(text: &str) -> Option<String> {
    Schema::from_yaml(text).ok()?;
    let (mut own, mut record) = (Map::new(), Map::new());
    record.insert("type".to_owned(), json!("record"));
    for (key, node) in entries(&Node::from_yaml(text).ok()?) {
        match key.as_str() {
            "name" => named(node, &mut record, &mut own),
            "streamAttributes" => {
                let fields = items(node).iter().map(field).collect();
                record.insert("fields".to_owned(), Json::Array(fields));
            }
            _ => {
                own.insert(key.clone(), value(node));
            }
        }
    }
    record.insert("alpheus".to_owned(), Json::Object(own));
    serde_json::to_string_pretty(&record).ok()
}

fn field(node: &Node) -> Json {
    let (mut own, mut field) = (Map::new(), Map::new());
    let (mut scale, mut optional, mut kind) = (0u8, false, "long");
    for (key, node) in entries(node) {
        match key.as_str() {
            "name" => named(node, &mut field, &mut own),
            "type" => {
                for word in items(node) {
                    match word_of(word) {
                        "optional" => optional = true,
                        "integer" => kind = "long",
                        "decimal" => kind = "decimal",
                        "boolean" => kind = "boolean",
                        _ => kind = "string",
                    }
                }
            }
            "optional" => optional = optional || word_of(node) == "true",
            "scale" => scale = word_of(node).parse().unwrap_or_default(),
            _ => {
                own.insert(key.clone(), value(node));
            }
        }
    }
    let plain = match kind {
        "decimal" => json!({
            "type": "bytes", "logicalType": "decimal", "precision": PRECISION, "scale": scale
        }),
        kind => json!(kind),
    };
    field.insert("type".to_owned(), if optional { json!(["null", plain]) } else { plain });
    field.insert("alpheus".to_owned(), Json::Object(own));
    Json::Object(field)
}

/// Avro names cannot have a `-`.
fn named(node: &Node, form: &mut Map<String, Json>, own: &mut Map<String, Json>) {
    let name = word_of(node);
    form.insert("name".to_owned(), json!(name.replace('-', "_")));
    if name.contains('-') {
        own.insert("name".to_owned(), json!(name));
    }
}

fn entries(node: &Node) -> &[(String, Node)] {
    if let Value::Map(entries) = &node.value { entries } else { &[] }
}

/// The items of a list, or the node itself.
fn items(node: &Node) -> &[Node] {
    if let Value::List(items) = &node.value { items } else { std::slice::from_ref(node) }
}

fn word_of(node: &Node) -> &str {
    if let Value::Scalar { text, .. } = &node.value { text } else { "" }
}

/// A node as JSON. Words and decimals become strings, which are read exactly.
fn value(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Scalar { text, plain: true } if text == "true" || text == "false" => {
            Json::Bool(text == "true")
        }
        Value::Scalar { text, .. } => json!(text),
        Value::List(items) => items.iter().map(value).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, node)| (key.clone(), value(node)))
            .collect::<Map<_, _>>()
            .into(),
    }
}
