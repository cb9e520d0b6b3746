//! One cell of a recorded file: its text as a time or a value of the schema.

use super::refused::RowFault;
use super::source::Time;
use alpheus_encrypted_stream::encode::Value;
use alpheus_policy::decimal::{format_scaled, parse_scaled};
use alpheus_policy::schema::{Attribute, AttributeKind};
use alpheus_policy::time::Timestamp;

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

impl Cell {
    /// The cell as the encoder takes it.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        match self {
            Cell::Absent => Value::Absent,
            Cell::Number(number) => Value::Number(*number),
            Cell::Boolean(truth) => Value::Boolean(*truth),
            Cell::Text(text) => Value::Text(text.as_bytes()),
        }
    }
}

/// The time that a cell names.
pub(crate) fn parse_time(text: &str, time: &Time) -> Result<Timestamp, RowFault> {
    let number = text.strip_prefix(time.prefix.as_str()).ok_or(RowFault::BadTime)?;
    let micros = match time.steps {
        None => parse_scaled(number, time.unit.places()).map_err(|_| RowFault::BadTime)?,
        Some(steps) => {
            let number: i128 = number.parse::<u64>().map_err(|_| RowFault::BadTime)?.into();
            let seconds = (number - i128::from(steps.first)) * i128::from(steps.length);
            let micros = (seconds + i128::from(steps.origin)).checked_mul(1_000_000);
            micros.and_then(|t| i64::try_from(t).ok()).ok_or(RowFault::TimeOutOfRange)?
        }
    };
    let micros = u64::try_from(micros).map_err(|_| RowFault::TimeOutOfRange)?;
    if micros < Timestamp::LIMIT.0 { Ok(Timestamp(micros)) } else { Err(RowFault::TimeOutOfRange) }
}

/// The value that a cell holds for an attribute.
pub(crate) fn parse_cell(text: &str, attribute: &Attribute) -> Result<Cell, RowFault> {
    if text.is_empty() {
        return if attribute.optional { Ok(Cell::Absent) } else { Err(RowFault::Missing) };
    }
    match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            let value = parse_scaled(text, scale).map_err(|_| RowFault::NotANumber)?;
            if (min..=max).contains(&value) {
                Ok(Cell::Number(value))
            } else {
                Err(RowFault::OutOfBounds)
            }
        }
        AttributeKind::Boolean => match text {
            "true" | "1" => Ok(Cell::Boolean(true)),
            "false" | "0" => Ok(Cell::Boolean(false)),
            _ => Err(RowFault::NotABoolean),
        },
        AttributeKind::Text { max_bytes } if text.len() > usize::from(max_bytes) => {
            Err(RowFault::OutOfBounds)
        }
        AttributeKind::Text { .. } => Ok(Cell::Text(text.into())),
    }
}

/// What an attribute takes, in natural units.
pub(super) fn allowed(attribute: &Attribute) -> String {
    match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            format!("{} to {}", format_scaled(min, scale), format_scaled(max, scale))
        }
        AttributeKind::Boolean => "true or false".to_owned(),
        AttributeKind::Text { max_bytes } => format!("texts of at most {max_bytes} bytes"),
    }
}
