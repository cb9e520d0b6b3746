//! Writes the Avro form of a schema given as YAML.

use crate::document::{DocumentError, Node, Value};
use serde_json::{Map, Value as Json, json};

/// Digits of the largest scaled value.
const PRECISION: u8 = 19;

/// Writes the document of a schema, which has been checked, as Avro.
pub(super) fn write(root: &Node) -> Result<String, DocumentError> {
    let (mut own, mut record) = (Map::new(), Map::new());
    record.insert("type".to_owned(), json!("record"));
    for (key, node) in root.map()? {
        match key.as_str() {
            "name" => {
                let name = node.text()?;
                record.insert("name".to_owned(), json!(avro_name(name)));
                if avro_name(name) != name {
                    own.insert("name".to_owned(), json!(name));
                }
            }
            "streamAttributes" => {
                let fields = node.list()?.iter().map(field).collect::<Result<Vec<_>, _>>()?;
                record.insert("fields".to_owned(), Json::Array(fields));
            }
            _ => {
                own.insert(key.clone(), value(node));
            }
        }
    }
    record.insert("alpheus".to_owned(), Json::Object(own));
    // Only maps, lists and texts, so writing cannot fail.
    Ok(serde_json::to_string_pretty(&record).unwrap_or_default())
}

fn field(node: &Node) -> Result<Json, DocumentError> {
    let (mut own, mut field) = (Map::new(), Map::new());
    let (mut scale, mut optional, mut kind) = (0, false, "long");
    for (key, node) in node.map()? {
        match key.as_str() {
            "name" => {
                let name = node.text()?;
                field.insert("name".to_owned(), json!(avro_name(name)));
                if avro_name(name) != name {
                    own.insert("name".to_owned(), json!(name));
                }
            }
            "type" => {
                for word in node.one_or_list() {
                    match word.text()? {
                        "optional" => optional = true,
                        "integer" => kind = "long",
                        "decimal" => kind = "decimal",
                        "boolean" => kind = "boolean",
                        _ => kind = "string",
                    }
                }
            }
            "optional" => optional = optional || node.boolean()?,
            "scale" => scale = node.integer(0u8, 18)?,
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
    Ok(Json::Object(field))
}

/// Avro names cannot have a `-`.
fn avro_name(name: &str) -> String {
    name.replace('-', "_")
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
