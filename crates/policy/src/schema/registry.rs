//! Checks Avro's own rules for a record schema (names, defaults, decimals), so that an
//! ordinary registry accepts it. Tests compare with `apache-avro`.

use crate::document::{ContentError, DocumentError, Fields, Node, Value};
use std::collections::HashSet;

const NAME: &str = "a name of letters, digits and _ that does not start with a digit";
const TEXT: &str = "a quoted text";
const DEFAULT: &str = "a value of the field's type, or of the first type of a union";

/// Checks the keys of a field that other Avro readers use.
pub(super) fn field(fields: &Fields<'_>) -> Result<(), DocumentError> {
    simple(fields.required("name")?)?;
    described(fields)?;
    if let Some(order) = fields.get("order") {
        order.word(&["ascending", "descending", "ignore"], &[(); 3])?;
    }
    let kind = fields.required("type")?;
    fields.get("default").map_or(Ok(()), |value| default(kind, value))
}

/// Checks the keys of a record that other Avro readers use.
pub(super) fn record(fields: &Fields<'_>) -> Result<(), DocumentError> {
    full(fields.required("name")?)?;
    described(fields)?;
    if let Some(namespace) = fields.get("namespace").filter(|it| it.text() != Ok("")) {
        full(namespace)?;
    }
    let mut seen = HashSet::new();
    for node in fields.required("fields")?.list()? {
        let name = Fields::of(node, super::avro::FIELD)?.required("name")?;
        let key = name.text()?;
        if !seen.insert(key) {
            return Err(name.error(ContentError::DuplicateKey { key: key.to_owned() }));
        }
    }
    Ok(())
}

/// Checks a decimal: bytes, or a fixed type with room for its digits.
pub(super) fn decimal(fields: &Fields<'_>, name: &str) -> Result<(), DocumentError> {
    let precision: u8 = fields.required("precision")?.integer(1, 38)?;
    fields.get("scale").map_or(Ok(0), |scale| scale.integer(0_u8, precision))?;
    if name == "bytes" {
        return Ok(());
    }
    full(fields.required("name")?)?;
    let size = fields.required("size")?;
    let bytes: u32 = size.integer(1, 1 << 10)?;
    // log10 of 2^(8·bytes − 1), rounded down.
    let digits = (f64::from(8 * bytes - 1) * std::f64::consts::LOG10_2).floor();
    if f64::from(precision) <= digits {
        Ok(())
    } else {
        Err(size.expected("a size with room for `precision` digits"))
    }
}

fn described(fields: &Fields<'_>) -> Result<(), DocumentError> {
    fields.get("doc").map_or(Ok(()), quoted)?;
    let aliases = fields.get("aliases").map_or(Ok(&[][..]), Node::list)?;
    aliases.iter().try_for_each(full)
}

fn quoted(node: &Node) -> Result<(), DocumentError> {
    match node.value {
        Value::Scalar { plain: false, .. } => Ok(()),
        _ => Err(node.expected(TEXT)),
    }
}

fn simple(node: &Node) -> Result<(), DocumentError> {
    quoted(node)?;
    if is_name(node.text()?) { Ok(()) } else { Err(node.expected(NAME)) }
}

/// Checks names separated by dots.
fn full(node: &Node) -> Result<(), DocumentError> {
    quoted(node)?;
    if node.text()?.split('.').all(is_name) { Ok(()) } else { Err(node.expected(NAME)) }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn default(kind: &Node, value: &Node) -> Result<(), DocumentError> {
    let name = match &kind.value {
        Value::List(union) => {
            return union.first().map_or(Ok(()), |first| default(first, value));
        }
        Value::Map(_) => Fields::of(kind, super::avro::TYPE)?.required("type")?.text()?,
        _ => kind.text()?,
    };
    let fits = match (name, &value.value) {
        ("null", Value::Null) => true,
        ("boolean", _) => value.boolean().is_ok(),
        ("int", Value::Scalar { text, plain: true }) => text.parse::<i32>().is_ok(),
        ("long", Value::Scalar { text, plain: true }) => text.parse::<i64>().is_ok(),
        ("string" | "bytes" | "fixed", Value::Scalar { plain: false, .. }) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(value.expected(DEFAULT)) }
}
