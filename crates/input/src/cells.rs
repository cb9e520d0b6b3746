//! One cell of a recorded file: its text as a time or a value of the schema.

use super::refusals::RowError;
use alpheus_discover::truth;
use alpheus_policy::decimal::{format_scaled, parse_scaled};
use alpheus_policy::schema::{Attribute, AttributeKind};

/// One attribute of one event.
#[derive(Clone, PartialEq, Eq)]
pub enum Cell {
    /// Empty.
    Absent,
    /// Scaled.
    Number(i64),
    /// `true`, `false`, `yes`, `no`, `1`, `0`.
    Boolean(bool),
    /// Text.
    Text(Box<str>),
}

/// Parses a cell as a value of an attribute.
///
/// # Errors
/// The text is not a value of this attribute.
pub fn parse_cell(text: &str, attribute: &Attribute) -> Result<Cell, RowError> {
    if text.is_empty() {
        return if attribute.optional { Ok(Cell::Absent) } else { Err(RowError::Missing) };
    }
    match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            let word = || truth(text).filter(|_| attribute.kind.is_zero_or_one());
            let read = parse_scaled(text, scale).ok().or_else(|| word().map(i64::from));
            let value = read.ok_or(RowError::NotANumber)?;
            if (min..=max).contains(&value) {
                Ok(Cell::Number(value))
            } else {
                Err(RowError::OutOfBounds)
            }
        }
        AttributeKind::Boolean => truth(text).map(Cell::Boolean).ok_or(RowError::NotABoolean),
        AttributeKind::Text { max_bytes } if text.len() > usize::from(max_bytes) => {
            Err(RowError::OutOfBounds)
        }
        AttributeKind::Text { .. } => Ok(Cell::Text(text.into())),
    }
}

/// The allowed values of an attribute, in natural units.
pub(crate) fn allowed(attribute: &Attribute) -> String {
    match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            format!("{} to {}", format_scaled(min, scale), format_scaled(max, scale))
        }
        AttributeKind::Boolean => "true or false".to_owned(),
        AttributeKind::Text { max_bytes } => format!("texts of at most {max_bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, max: i64) -> Option<i64> {
        let kind = AttributeKind::Number { scale: 0, min: 0, max };
        let own = Attribute {
            name: "on".to_owned(),
            kind,
            unit: String::new(),
            optional: false,
            aggregations: Vec::new(),
        };
        match parse_cell(text, &own) {
            Ok(Cell::Number(value)) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn yes_and_no_are_numbers_only_from_0_to_1() {
        let words = ["yes", "nein", "1", "true", "maybe", "2"];
        assert_eq!(
            words.map(|word| read(word, 1)),
            [Some(1), Some(0), Some(1), Some(1), None, None]
        );
        assert_eq!([read("yes", 2), read("no", 9)], [None, None]);
    }
}
