//! The text of a statement, and where it came from.

use alpheus_node::failure::{Category, Failure};
use alpheus_node::files::read_text;
use std::path::Path;

/// The query's text and where it came from.
pub struct Query {
    /// The file, or the flag.
    pub place: String,
    /// The statement.
    pub text: String,
}

impl Query {
    /// Reads the file of this name. An argument of several words is the text itself, not
    /// a missing file.
    ///
    /// # Errors
    /// If the argument is empty, or the file cannot be read.
    pub fn of(argument: &str) -> Result<Query, Failure> {
        if argument.trim().is_empty() {
            return Err(Failure::new(Category::Usage, "the query is empty")
                .at("--query")
                .with_help("give a file, or a statement such as 'SHOW SCHEMAS', in quotes"));
        }
        let path = Path::new(argument);
        if is_file(path) {
            return Ok(Query { place: argument.to_owned(), text: read_text(path)? });
        }
        Ok(Query { place: "--query".to_owned(), text: argument.to_owned() })
    }

    /// A failure at the query's place.
    #[must_use]
    pub fn failure(&self, category: Category, message: String) -> Failure {
        Failure::new(category, message).at(self.place.clone())
    }
}

/// Whether an argument names a file. One of several words that is none is the text itself, not a
/// missing file.
pub fn is_file(argument: &Path) -> bool {
    let text = argument.to_string_lossy();
    argument.is_file() || !text.trim().contains(char::is_whitespace)
}
