//! A file of which each column is one owner's.

use crate::form::Form;

/// A file with a column for each owner.
#[derive(Clone, Debug)]
pub struct WideFile {
    /// How it is written.
    pub(crate) form: Form,
    /// The columns that are nobody's: neither a time nor an owner.
    pub(crate) others: Vec<String>,
    /// What became of each column.
    pub(crate) fates: Vec<(String, String)>,
    /// The first and the last column that is an owner's.
    pub(crate) ends: (String, String),
    /// The same readings in long form, in UTF-8: the times, the owner and the value.
    pub(crate) long: String,
}

impl WideFile {
    /// The same readings with a row for each, in UTF-8: the times, the owner and the value.
    #[must_use]
    pub fn long(&self) -> &str {
        &self.long
    }

    /// The first and the last column that is an owner's.
    #[must_use]
    pub fn ends(&self) -> (&str, &str) {
        (&self.ends.0, &self.ends.1)
    }
}
