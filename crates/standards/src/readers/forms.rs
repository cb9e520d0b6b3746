//! Parts that have another form than their standard gives them. They are refused: a reader would find
//! nothing there, and what is said in them would limit nothing.

use crate::cursor::Cursor;
use crate::error::ImportError;
use crate::tree::Tree;

/// That a list stands under a key, if anything does.
pub(super) fn list(at: &Cursor<'_>, key: &str, instead: &'static str) -> Result<(), ImportError> {
    let is_list = |own: &Cursor<'_>| matches!(own.tree(), Tree::List(_));
    form(at, key, is_list, "a list", instead)
}

/// That a map stands under a key, if anything does.
pub(super) fn map(at: &Cursor<'_>, key: &str, instead: &'static str) -> Result<(), ImportError> {
    let is_map = |own: &Cursor<'_>| matches!(own.tree(), Tree::Map(_));
    form(at, key, is_map, "a map", instead)
}

fn form(
    at: &Cursor<'_>,
    key: &str,
    fits: impl Fn(&Cursor<'_>) -> bool,
    form: &'static str,
    instead: &'static str,
) -> Result<(), ImportError> {
    let Some(part) = at.get(key) else { return Ok(()) };
    let is_empty = part.tree().is_leaf() && part.tree().text().is_none();
    if is_empty || fits(&part) {
        return Ok(());
    }
    Err(ImportError::Form { path: part.path().to_owned(), form, instead })
}
