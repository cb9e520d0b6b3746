//! One cell of a recorded file: its text as a time or a value of the schema.

use super::refusals::RowError;
use super::source::Time;
use alpheus_policy::decimal::{format_scaled, parse_scaled};
use alpheus_policy::schema::{Attribute, AttributeKind};
use alpheus_time::Timestamp;

/// One attribute of one event.
#[derive(Clone, PartialEq, Eq)]
pub enum Cell {
    /// Empty.
    Absent,
    /// Scaled.
    Number(i64),
    /// `true`, `false`, `1`, `0`.
    Boolean(bool),
    /// Text.
    Text(Box<str>),
}

/// Parses a cell as a time.
///
/// # Errors
/// The text is not a time of this form, or is out of range.
pub fn parse_time(text: &str, time: &Time) -> Result<Timestamp, RowError> {
    let number = text.strip_prefix(time.prefix.as_str()).ok_or(RowError::BadTime)?;
    let micros = match time.steps {
        None => parse_scaled(number, time.unit.places()).map_err(|_| RowError::BadTime)?,
        Some(steps) => {
            let number: i128 = number.parse::<u64>().map_err(|_| RowError::BadTime)?.into();
            let seconds = (number - i128::from(steps.first)) * i128::from(steps.length);
            let micros = (seconds + i128::from(steps.origin)).checked_mul(1_000_000);
            micros.and_then(|t| i64::try_from(t).ok()).ok_or(RowError::TimeOutOfRange)?
        }
    };
    let micros = u64::try_from(micros).map_err(|_| RowError::TimeOutOfRange)?;
    if micros < Timestamp::LIMIT.0 { Ok(Timestamp(micros)) } else { Err(RowError::TimeOutOfRange) }
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
            let value = parse_scaled(text, scale).map_err(|_| RowError::NotANumber)?;
            if (min..=max).contains(&value) {
                Ok(Cell::Number(value))
            } else {
                Err(RowError::OutOfBounds)
            }
        }
        AttributeKind::Boolean => match text {
            "true" | "1" => Ok(Cell::Boolean(true)),
            "false" | "0" => Ok(Cell::Boolean(false)),
            _ => Err(RowError::NotABoolean),
        },
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
