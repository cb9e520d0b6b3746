//! Documents that people write: YAML or JSON as a tree whose nodes know their position.
//!
//! Scalars keep their text: `0.10` never passes through a float, and no type is guessed
//! (`no` is a word, not a truth value). Anchors, aliases and tags are rejected, so a
//! short file cannot expand into a long one.

mod error;
mod fields;
mod json;
mod scalar;
mod yaml;

pub use error::{ContentError, DocumentError, Position};
pub(crate) use fields::Fields;
pub use scalar::parse_duration;

/// Longest document in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Greatest depth of lists and maps.
const MAX_DEPTH: usize = 24;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its position in the document.
    pub at: Position,
    /// Its value.
    pub value: Value,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A word, number or text.
    Scalar {
        /// As written, escapes resolved.
        text: String,
        /// Whether it is written without quotes.
        plain: bool,
    },
    /// Items in order.
    List(Vec<Node>),
    /// Keys in order, each with its value. No key appears twice.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads a YAML document.
    ///
    /// # Errors
    /// If it is not a single YAML document of plain lists, maps and scalars. The error has
    /// the line and column.
    pub fn from_yaml(text: &str) -> Result<Node, DocumentError> {
        check_length(text)?;
        yaml::read(text)
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// If it is not JSON, has a key twice, or has a number with a fraction, which must be
    /// quoted to be read exactly. The error has the JSON path.
    pub fn from_json(text: &str) -> Result<Node, DocumentError> {
        check_length(text)?;
        json::read(text)
    }

    /// An error about this node.
    #[must_use]
    pub fn error(&self, problem: ContentError) -> DocumentError {
        DocumentError { at: self.at.clone(), problem }
    }
}

fn check_length(text: &str) -> Result<(), DocumentError> {
    if text.len() > MAX_BYTES {
        let problem = ContentError::TooLong { max: MAX_BYTES };
        return Err(DocumentError { at: Position::default(), problem });
    }
    Ok(())
}
