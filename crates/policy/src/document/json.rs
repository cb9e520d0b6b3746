//! Reads JSON text as a tree.

use super::{ContentError, DocumentError, Node, Position, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// Reads one document. The JSON library limits nesting to 128 levels.
pub(super) fn read(text: &str) -> Result<Node, DocumentError> {
    let found = RefCell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let seed = Seed { at: Position::default(), found: &found };
    match seed.deserialize(&mut json).and_then(|node| json.end().map(|()| node)) {
        Ok(node) => Ok(node),
        Err(error) => Err(found.into_inner().unwrap_or_else(|| DocumentError {
            at: Position { line: Some((error.line(), error.column())), path: String::new() },
            problem: ContentError::Syntax(error.to_string()),
        })),
    }
}

/// Reads the node at one position. `found` receives the problem with its path, which the
/// JSON library's own errors do not have.
struct Seed<'a> {
    at: Position,
    found: &'a RefCell<Option<DocumentError>>,
}

impl Seed<'_> {
    fn fail<E: Error>(&self, at: Position, problem: ContentError) -> E {
        *self.found.borrow_mut() = Some(DocumentError { at, problem });
        E::custom("refused")
    }

    fn inner(&self, at: Position) -> Seed<'_> {
        Seed { at, found: self.found }
    }

    fn plain<E>(self, text: String) -> Result<Node, E> {
        Ok(Node { at: self.at, value: Value::Scalar { text, plain: true } })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Node, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node { at: self.at, value: Value::Null })
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        self.plain(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        self.plain(value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        self.plain(value.to_string())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
        Err(self.fail(self.at.clone(), ContentError::InexactNumber))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node { at: self.at, value: Value::Scalar { text: text.to_owned(), plain: false } })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.inner(self.at.item(items.len())))? {
            items.push(item);
        }
        Ok(Node { at: self.at, value: Value::List(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        while let Some(key) = map.next_key::<String>()? {
            let at = self.at.key(&key);
            if !seen.insert(key.clone()) {
                return Err(self.fail(at, ContentError::DuplicateKey { key }));
            }
            let value = map.next_value_seed(self.inner(at))?;
            entries.push((key, value));
        }
        Ok(Node { at: self.at, value: Value::Map(entries) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_the_path() {
        for (text, place) in
            [(r#"{"a": [1, {"b": 0.5}]}"#, "$.a[1].b"), (r#"{"a": {"b": 1, "b": 2}}"#, "$.a.b")]
        {
            assert_eq!(read(text).unwrap_err().at.to_string(), place);
        }
        assert_eq!(read("{\"a\": 1,\n}").unwrap_err().at.line.map(|(line, _)| line), Some(2));
        assert!(read("{} {}").is_err());
        assert!(read(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn scalars_keep_their_text() {
        let Value::List(items) = read(r#"[1, "0.10", true, null]"#).unwrap().value else {
            panic!("a list")
        };
        assert_eq!(items[0].value, Value::Scalar { text: "1".into(), plain: true });
        assert_eq!(items[1].value, Value::Scalar { text: "0.10".into(), plain: false });
        assert_eq!(items[2].value, Value::Scalar { text: "true".into(), plain: true });
        assert_eq!(items[3].value, Value::Null);
    }
}
