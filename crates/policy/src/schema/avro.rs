//! Reads an Avro record schema with Alpheus properties as the document of its YAML form.
//!
//! The properties are under the key `alpheus` of the record and of its fields, where
//! other Avro readers ignore them.

use crate::document::{ContentError, DocumentError, Fields, Node, Position, Value};
use crate::schema::registry;

const RECORD: &[&str] = &["type", "name", "namespace", "doc", "aliases", "fields", "alpheus"];
pub(super) const FIELD: &[&str] =
    &["name", "type", "doc", "default", "order", "aliases", "alpheus"];
pub(super) const TYPE: &[&str] =
    &["type", "logicalType", "precision", "scale", "name", "namespace", "size"];
const TYPES: &str =
    "int, long, boolean, string, a decimal of bytes or fixed, or a union of one of them with null";

type Entries = Vec<(String, Node)>;

/// Reads an `.avsc` that an ordinary registry accepts.
pub(super) fn document(text: &str) -> Result<Node, DocumentError> {
    record(&Node::from_json(text)?)
}

fn record(root: &Node) -> Result<Node, DocumentError> {
    let fields = Fields::of(root, RECORD)?;
    if fields.required("type")?.text()? != "record" {
        return Err(fields.required("type")?.expected("\"record\""));
    }
    registry::record(&fields)?;
    let mut entries = properties(&fields)?;
    if !has_name(&entries) {
        entries.push(("name".to_owned(), simple_name(fields.required("name")?)?));
    }
    let list = fields.required("fields")?;
    let read = list.list()?.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    entries.push(("streamAttributes".to_owned(), at(&list.at, Value::List(read))));
    Ok(at(&root.at, Value::Map(entries)))
}

/// Whether the properties have their own name, one that Avro does not allow, such as
/// `heart-rate`.
fn has_name(entries: &Entries) -> bool {
    entries.iter().any(|(key, _)| key == "name")
}

/// The entries under `alpheus`.
fn properties(fields: &Fields<'_>) -> Result<Entries, DocumentError> {
    fields.get("alpheus").map_or(Ok(Vec::new()), |node| node.map().map(<[_]>::to_vec))
}

/// A record's name without its namespace.
fn simple_name(node: &Node) -> Result<Node, DocumentError> {
    let name = node.text()?.rsplit('.').next().unwrap_or_default();
    Ok(text(&node.at, name))
}

/// A field as the stream attribute of the YAML form.
fn field(node: &Node) -> Result<Node, DocumentError> {
    let fields = Fields::of(node, FIELD)?;
    registry::field(&fields)?;
    let mut entries = properties(&fields)?;
    if let Some((key, value)) =
        entries.iter().find(|(key, _)| matches!(key.as_str(), "type" | "optional"))
    {
        let with = "an Avro type, which already states it; remove it";
        let key = if key == "type" { "type" } else { "optional" };
        return Err(value.error(ContentError::Conflict { key, with }));
    }
    if !has_name(&entries) {
        entries.push(("name".to_owned(), fields.required("name")?.clone()));
    }
    entries.extend(kind(fields.required("type")?)?);
    Ok(at(&node.at, Value::Map(entries)))
}

/// The entries `type`, `optional` and `scale` for an Avro type.
fn kind(node: &Node) -> Result<Entries, DocumentError> {
    match &node.value {
        Value::List(union) => {
            let is_null = |item: &&Node| matches!(item.text(), Ok("null"));
            let mut others = union.iter().filter(|item| !is_null(item));
            match (union.len(), others.next(), others.next()) {
                (2, Some(other), None) if !matches!(other.value, Value::List(_)) => {
                    let mut entries = kind(other)?;
                    entries.push(("optional".to_owned(), text(&node.at, "true")));
                    Ok(entries)
                }
                _ => Err(node.expected(TYPES)),
            }
        }
        Value::Map(_) => logical(node),
        _ => primitive(node, node.text()?),
    }
}

fn primitive(node: &Node, name: &str) -> Result<Entries, DocumentError> {
    let word = match name {
        "int" | "long" => "integer",
        "boolean" | "string" => name,
        _ => return Err(node.expected(TYPES)),
    };
    Ok(vec![("type".to_owned(), text(&node.at, word))])
}

fn logical(node: &Node) -> Result<Entries, DocumentError> {
    let fields = Fields::of(node, TYPE)?;
    let named = fields.required("type")?;
    match (named.text()?, fields.get("logicalType")) {
        (name @ ("bytes" | "fixed"), Some(logical)) if logical.text()? == "decimal" => {
            registry::decimal(&fields, name)?;
            let scale = fields.get("scale").cloned().unwrap_or_else(|| text(&node.at, "0"));
            Ok(vec![("type".to_owned(), text(&named.at, "decimal")), ("scale".to_owned(), scale)])
        }
        (name, None) => primitive(named, name),
        _ => Err(node.expected(TYPES)),
    }
}

fn text(position: &Position, text: &str) -> Node {
    at(position, Value::Scalar { text: text.to_owned(), plain: true })
}

fn at(position: &Position, value: Value) -> Node {
    Node { at: position.clone(), value }
}
