//! A contract as a tree: YAML or JSON whose scalars keep their meaning and whose keys are
//! distinct, so that no part of it is lost before it is read.

use crate::ImportError;
use crate::syntax;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Longest contract in bytes.
const MAX_BYTES: usize = 4 << 20;

/// A part of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number, as text.
    Number(String),
    /// A word or text.
    Text(String),
    /// Items in order.
    List(Vec<Tree>),
    /// Keys in order; no key appears twice.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads JSON or YAML.
    ///
    /// # Errors
    /// If the text is neither, is too long, or has a key twice.
    pub fn parse(text: &str) -> Result<Tree, ImportError> {
        if text.len() > MAX_BYTES {
            return Err(ImportError::TooLong { max: MAX_BYTES });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let first = text.trim_start().chars().next();
        let tree = match first {
            None => return Err(ImportError::Empty),
            Some('{' | '[') => json(text).or_else(|error| yaml(text).map_err(|_| error))?,
            Some(_) => yaml(text)?,
        };
        if tree == Tree::Null { Err(ImportError::Empty) } else { Ok(tree) }
    }

    /// The value of a key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        match self {
            Tree::Map(entries) => entries.iter().find(|(own, _)| own == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text of a scalar.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Tree::Number(text) | Tree::Text(text) => Some(text),
            Tree::Boolean(true) => Some("true"),
            Tree::Boolean(false) => Some("false"),
            _ => None,
        }
    }

    /// A text in quotes that both YAML and JSON read.
    #[must_use]
    pub fn quoted(text: &str) -> String {
        serde_json::Value::from(text).to_string()
    }

    /// Whether it has no parts: a scalar, nothing, or an empty list or map.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        match self {
            Tree::List(items) => items.is_empty(),
            Tree::Map(entries) => entries.is_empty(),
            _ => true,
        }
    }
}

fn json(text: &str) -> Result<Tree, ImportError> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        ImportError::Syntax(message.replace("recursion limit exceeded", "nested too deeply"))
    })
}

/// `y` and `no` are words, as in YAML 1.2, and errors show no part of the contract.
fn yaml(text: &str) -> Result<Tree, ImportError> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error: serde_saphyr::Error| ImportError::Syntax(syntax::message(&error)))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Tree, D::Error> {
        input.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, a map or a scalar")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Tree, D::Error> {
        Tree::deserialize(input)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom("a key appears twice; remove one of them"));
            }
            entries.push((key, map.next_value()?));
        }
        Ok(Tree::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_read_alike() {
        let yaml = "a: [1, -2.5, 'x', true, null]\nb: {c: 99999999999999999999}\n5: y\n";
        let json =
            r#"{"a": [1, -2.5, "x", true, null], "b": {"c": 99999999999999999999}, "5": "y"}"#;
        let (one, other) = (Tree::parse(yaml).unwrap(), Tree::parse(json).unwrap());
        assert_eq!(one.get("a"), other.get("a"));
        assert_eq!(one.get("5"), Some(&Tree::Text("y".into())));
        assert_eq!(Tree::parse("y: no").unwrap(), Tree::parse(r#"{"y": "no"}"#).unwrap());
        assert_eq!(one.get("b"), other.get("b"));
    }

    #[test]
    fn a_key_that_appears_twice_is_an_error_and_not_dropped() {
        for text in ["a: 1\na: 2\n", r#"{"a": 1, "a": 2}"#] {
            let error = Tree::parse(text).unwrap_err().to_string();
            assert!(error.contains("a key appears twice") && error.contains("line"), "{error}");
        }
    }

    #[test]
    fn an_error_says_what_to_change_in_the_file() {
        let repeated =
            |name: char, of: char| format!("{name}: &{name} [{}]\n", format!("*{of},").repeat(9));
        let many: String = ('b'..='i').zip('a'..).map(|(name, of)| repeated(name, of)).collect();
        for (text, says) in [
            ("a: 1\n---\na: 2\n".to_owned(), "several YAML documents"),
            (
                "a: 1\nb: 2\na: 3\n".to_owned(),
                "a key appears twice; remove one of them: the second is",
            ),
            ("a: &x [1, *x]\n".to_owned(), "an alias stands inside the part"),
            (format!("a: &a [x, x]\n{many}"), "too many parts"),
            ("a: *x\n".to_owned(), "write `&NAME` at that part"),
            ("a: {{ name }}\n".to_owned(), "put a template such as `{{ name }}` in quotes"),
            ("? [a, b]\n: c\n".to_owned(), "a map or list stands where a key belongs"),
            ("a: {max: .inf}\n".to_owned(), "a number is infinite"),
            ("a: [.nan]\n".to_owned(), "a number is infinite, or none at all"),
            ("~: c\n".to_owned(), "a key is empty or null"),
            (format!("a: {}\n", "[".repeat(2000)), "nested too deeply"),
        ] {
            let error = Tree::parse(&text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("line "), "{text}: {error}");
            for library in ["Option", "from_str", "weak", "budget", "policy", "scalar"] {
                assert!(!error.contains(library), "{error}");
            }
        }
    }

    #[test]
    fn anchors_and_merges_are_written_out() {
        let tree = Tree::parse("x: &x {pii: true}\ny: *x\nz: {<<: *x, a: 1}\n").unwrap();
        assert_eq!(tree.get("y").unwrap().get("pii"), Some(&Tree::Boolean(true)));
        assert_eq!(tree.get("z").unwrap().get("pii"), Some(&Tree::Boolean(true)));
    }

    #[test]
    fn nothing_is_no_contract() {
        for text in ["", "  \n", "# only a comment\n", "~"] {
            assert_eq!(Tree::parse(text), Err(ImportError::Empty), "{text:?}");
        }
    }
}
