//! Documents that people write: YAML or JSON as one tree whose every node
//! knows where it stands.
//!
//! Scalars keep their text, so that `0.10` never passes through a float, and
//! nothing is guessed from them (`no` is a word, not a truth value). Anchors,
//! aliases and tags are refused: a short file cannot unfold into a long one.

mod error;
mod fields;
mod json;
mod scalar;
mod yaml;

pub use error::{DocumentError, Position, Problem};
pub(crate) use fields::Fields;
pub use scalar::parse_duration;

/// Longest document in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Greatest depth of lists and maps.
const MOST_DEPTH: usize = 24;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it stands.
    pub at: Position,
    /// What stands there.
    pub value: Value,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A word, number or text.
    Scalar {
        /// As written, escapes resolved.
        text: String,
        /// Whether it stands without quotes.
        plain: bool,
    },
    /// Items in order.
    List(Vec<Node>),
    /// Keys in order, each with its value; no key stands twice.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads a YAML document.
    ///
    /// # Errors
    /// With line and column, where it is no single YAML document of plain
    /// lists, maps and scalars.
    pub fn from_yaml(text: &str) -> Result<Node, DocumentError> {
        check_length(text)?;
        yaml::read(text)
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// With the JSON path, where it is no JSON, names a key twice, or holds a
    /// number with a fraction (write it in quotes: it is read exactly there).
    pub fn from_json(text: &str) -> Result<Node, DocumentError> {
        check_length(text)?;
        json::read(text)
    }

    /// An error about this node.
    #[must_use]
    pub fn error(&self, problem: Problem) -> DocumentError {
        DocumentError { at: self.at.clone(), problem }
    }
}

fn check_length(text: &str) -> Result<(), DocumentError> {
    if text.len() > MOST_BYTES {
        let problem = Problem::TooLong { most: MOST_BYTES };
        return Err(DocumentError { at: Position::default(), problem });
    }
    Ok(())
}
