//! Failures by id: each kind of failure that people can act on, what it means and how to fix it.
//!
//! A command prints the id of its failure. The list is here once; the command `alpheus errors` and
//! the reference page are made from it. Kinds that share a remedy share an id, however many types
//! of errors they come from. [`error_ids`](mod@crate::error_ids) finds the
//! id of an error of this crate or of the system.

mod list;

pub use list::ErrorId;

impl ErrorId {
    /// The kind with this id.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.id() == id)
    }

    /// The kinds whose ids are the most similar to a word: those that contain it, else those
    /// that contain one of its parts.
    #[must_use]
    pub fn similar(word: &str) -> Vec<Self> {
        let having = |part: &str| -> Vec<Self> {
            Self::ALL.iter().copied().filter(|known| known.id().contains(part)).collect()
        };
        let whole = having(word);
        if !whole.is_empty() || word.is_empty() {
            return whole;
        }
        let parts = word.split('-').filter(|part| part.len() > 3);
        let mut found: Vec<Self> = parts.flat_map(having).collect();
        found.dedup();
        found
    }
}

impl std::fmt::Display for ErrorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

/// Finds the id of an error by its type: `error_ids!(error; Type as found => id, …)`, where the id may
/// depend on the error that was found, and be none.
#[macro_export]
macro_rules! error_ids {
    ($error:expr; $($kind:ty as $found:pat => $id:expr),+ $(,)?) => {{
        let error: &(dyn std::error::Error + 'static) = $error;
        $(if let Some($found) = error.downcast_ref::<$kind>() {
            return Option::<$crate::errors::ErrorId>::from($id);
        })+
        None
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_id_is_there_once_and_explained() {
        let ids: BTreeSet<&str> = ErrorId::ALL.iter().map(|known| known.id()).collect();
        assert_eq!(ids.len(), ErrorId::ALL.len(), "no two are the same");
        for known in ErrorId::ALL {
            let id = known.id();
            let plain = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(id.chars().all(plain) && !id.starts_with('-') && !id.ends_with('-'), "{id}");
            for text in [known.what(), known.why(), known.fix()] {
                assert!(text.len() > 15 && text.ends_with('.'), "{id}: {text}");
            }
            assert_eq!(ErrorId::parse(id), Some(*known));
        }
    }

    #[test]
    fn a_misspelt_id_finds_its_neighbours() {
        assert_eq!(ErrorId::parse("policy-forbid"), None);
        assert!(ErrorId::similar("policy-forbid").len() > 3);
        assert!(ErrorId::similar("window-to-short").contains(&ErrorId::PolicyForbidsWindow));
        assert!(ErrorId::similar("zzz").is_empty());
    }
}
