//! Python's values as cells of a schema. A number is read as `alpheus produce` reads its shortest text,
//! so that an event is the same however it comes in.

use crate::errors;
use alpheus_encrypted_stream::encode::EncodeError;
use alpheus_input::rows::Cell;
use alpheus_policy::decimal::parse_scaled;
use alpheus_policy::schema::{Attribute, AttributeKind};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// Decimal places up to which powers of ten are exact in a float.
const EXACT_PLACES: u8 = 22;
/// Whole numbers up to this are exact in a float.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;
/// Names of the types of values that stand for a missing one.
const MISSING: [&str; 2] = ["NAType", "NaTType"];

/// The cell of one value. Whether its type and bounds are those of the attribute, the encoder checks.
pub(crate) fn cell(
    value: &Bound<'_, PyAny>,
    attribute: &Attribute,
    row: Option<usize>,
) -> PyResult<Cell> {
    if value.is_none() {
        return Ok(Cell::Absent);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(match attribute.kind.is_zero_or_one() {
            true => Cell::Number(truth.is_true().into()),
            false => Cell::Boolean(truth.is_true()),
        });
    }
    if let Ok(whole) = value.cast::<PyInt>() {
        return match whole.extract::<i64>() {
            Ok(whole) => integer(whole, attribute, row),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Err(out_of_bounds(attribute, row))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return number(float.value(), attribute, row);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Cell::Text(text.to_str()?.into()));
    }
    other(value, attribute, row)
}

/// Decimals, values of NumPy, and what pandas has for missing ones.
fn other(value: &Bound<'_, PyAny>, attribute: &Attribute, row: Option<usize>) -> PyResult<Cell> {
    let kind = value.get_type().name()?;
    let kind = kind.to_str()?;
    if kind == "Decimal" {
        let text = value.str()?;
        let text = text.to_str()?;
        return match text {
            "NaN" => Ok(Cell::Absent),
            text => decimal(text, attribute, row),
        };
    }
    if MISSING.contains(&kind) {
        return Ok(Cell::Absent);
    }
    match value.getattr_opt("item")? {
        Some(item) => {
            let plain = item.call0()?;
            // A value that gives itself would be asked for ever.
            if plain.get_type().is(value.get_type()) {
                Err(wrong_type(attribute, row))
            } else {
                cell(&plain, attribute, row)
            }
        }
        None => Err(wrong_type(attribute, row)),
    }
}

/// A whole number in natural units.
pub(crate) fn integer(value: i64, attribute: &Attribute, row: Option<usize>) -> PyResult<Cell> {
    let power = 10_i64.checked_pow(scale(attribute).into());
    let scaled = power.and_then(|power| value.checked_mul(power));
    scaled.map(Cell::Number).ok_or_else(|| out_of_bounds(attribute, row))
}

/// A float in natural units, as its shortest text says; what is no number is missing.
#[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
pub(crate) fn number(value: f64, attribute: &Attribute, row: Option<usize>) -> PyResult<Cell> {
    if value.is_nan() {
        return Ok(Cell::Absent);
    }
    if value.is_infinite() {
        return Err(out_of_bounds(attribute, row));
    }
    let scale = scale(attribute);
    if scale <= EXACT_PLACES {
        let power = 10_f64.powi(scale.into());
        let scaled = (value * power).round();
        // Then the float is the one nearest to that decimal.
        if scaled.abs() < EXACT_WHOLE && scaled / power == value {
            return Ok(Cell::Number(scaled as i64));
        }
    }
    decimal(&format!("{value}"), attribute, row)
}

fn decimal(text: &str, attribute: &Attribute, row: Option<usize>) -> PyResult<Cell> {
    let scaled = parse_scaled(text, scale(attribute));
    scaled.map(Cell::Number).map_err(|_| out_of_bounds(attribute, row))
}

fn scale(attribute: &Attribute) -> u8 {
    match attribute.kind {
        AttributeKind::Number { scale, .. } => scale,
        AttributeKind::Boolean | AttributeKind::Text { .. } => 0,
    }
}

fn out_of_bounds(attribute: &Attribute, row: Option<usize>) -> PyErr {
    let name = attribute.name.clone();
    let error = match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            EncodeError::OutOfBounds { attribute: name, min, max, scale }
        }
        AttributeKind::Boolean => {
            EncodeError::WrongType { attribute: name, expected: "truth value" }
        }
        AttributeKind::Text { .. } => EncodeError::WrongType { attribute: name, expected: "text" },
    };
    errors::encode(&error, row)
}

pub(crate) fn wrong_type(attribute: &Attribute, row: Option<usize>) -> PyErr {
    let expected = match attribute.kind {
        AttributeKind::Number { .. } => "number",
        AttributeKind::Boolean => "truth value",
        AttributeKind::Text { .. } => "text",
    };
    errors::encode(&EncodeError::WrongType { attribute: attribute.name.clone(), expected }, row)
}
