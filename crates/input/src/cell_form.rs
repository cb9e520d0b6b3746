//! How the cells of a recorded file are written: missing values, marks of numbers.

use super::source::Source;
use alpheus_discover::form::MissingTexts;
use alpheus_discover::number::Marks;
use alpheus_policy::schema::{AttributeKind, Schema};
use std::borrow::Cow;

/// Turns cells into what the schema's attributes take.
pub(crate) struct CellForm {
    /// Of files whose form the source file describes.
    form: Option<CellDescription>,
    /// By attribute: texts that stand for a missing value.
    missing: Vec<MissingTexts>,
    numbers: Vec<bool>,
}

struct CellDescription {
    marks: Marks,
    missing: MissingTexts,
    untimed: bool,
}

impl CellForm {
    pub(crate) fn new(source: &Source, schema: &Schema) -> CellForm {
        let form = source.file.as_ref().map(|form| CellDescription {
            marks: form.marks(),
            missing: MissingTexts::of(&form.missing),
            untimed: form.untimed,
        });
        let missing =
            |name: &String| MissingTexts::of(source.missing.get(name).into_iter().flatten());
        CellForm {
            form,
            missing: schema.attributes.iter().map(|attribute| missing(&attribute.name)).collect(),
            numbers: schema
                .attributes
                .iter()
                .map(|attribute| matches!(attribute.kind, AttributeKind::Number { .. }))
                .collect(),
        }
    }

    /// Whether a row without a time is left out rather than refused.
    pub(crate) fn may_be_untimed(&self) -> bool {
        self.form.as_ref().is_some_and(|form| form.untimed)
    }

    /// Whether a cell holds no value.
    pub(crate) fn is_missing(&self, cell: &str) -> bool {
        cell.is_empty() || self.form.as_ref().is_some_and(|form| form.missing.contains(cell))
    }

    /// The text of a cell as an attribute takes it; empty if it stands for a missing value.
    pub(crate) fn plain<'c>(&self, cell: &'c str, attribute: usize) -> Cow<'c, str> {
        let own = self.missing.get(attribute);
        if self.is_missing(cell) || own.is_some_and(|own| own.contains(cell)) {
            return Cow::Borrowed("");
        }
        match &self.form {
            Some(form) if self.numbers.get(attribute) == Some(&true) => {
                form.marks.plain(cell).unwrap_or(Cow::Borrowed(cell))
            }
            _ => Cow::Borrowed(cell),
        }
    }
}
