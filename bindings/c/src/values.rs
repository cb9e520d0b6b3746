//! An event's values by name, as the schema's attributes take them.

use crate::codes::Code;
use crate::refusal::Refusal;
use alpheus_encrypted_stream::encode::{EncodeError, Value};
use alpheus_policy::decimal::parse_scaled;
use alpheus_policy::schema::{Attribute, AttributeKind, Schema};

/// A value as C gives it.
#[derive(Clone, Copy, Debug)]
pub enum InputValue<'a> {
    /// `units` × 10^-`decimals`.
    Decimal {
        /// The units.
        units: i64,
        /// Their decimal places.
        decimals: u32,
    },
    /// A float in natural units, read by its shortest digits.
    Number(f64),
    /// A truth value.
    Boolean(bool),
    /// A text's bytes.
    Text(&'a [u8]),
}

/// The values of an event, in the order of the schema's attributes. A name that the schema lacks, or
/// that comes twice, is an error: it may be misspelt.
///
/// # Errors
/// [`Code::LineRefused`].
pub fn row<'a>(
    schema: &Schema,
    given: &[(&str, InputValue<'a>)],
) -> Result<Vec<Value<'a>>, Refusal> {
    let mut row = vec![Value::Absent; schema.attributes.len()];
    for (name, value) in given {
        let position = schema.position(name).map(usize::from);
        let found = position.and_then(|at| Some((row.get_mut(at)?, schema.attributes.get(at)?)));
        let Some((place, attribute)) = found else {
            let what = format!("the schema {} has no attribute `{name}`", schema.name);
            return Err(Refusal::new(Code::LineRefused, "UnknownAttribute", what));
        };
        if *place != Value::Absent {
            let what = format!("`{name}` stands twice in the event");
            return Err(Refusal::new(Code::LineRefused, "AttributeTwice", what));
        }
        let converted = converted(value, attribute);
        *place = converted.map_err(|error| Refusal::of(Code::LineRefused, &error))?;
    }
    Ok(row)
}

/// Whether its type and bounds are those of the attribute, the encoder checks.
fn converted<'a>(given: &InputValue<'a>, attribute: &Attribute) -> Result<Value<'a>, EncodeError> {
    match *given {
        InputValue::Text(bytes) => Ok(Value::Text(bytes)),
        InputValue::Boolean(truth) if attribute.kind.is_zero_or_one() => {
            Ok(Value::Number(truth.into()))
        }
        InputValue::Boolean(truth) => Ok(Value::Boolean(truth)),
        InputValue::Number(number) if number.is_finite() => {
            number_of(&number.to_string(), attribute)
        }
        InputValue::Number(_) => Err(out_of_bounds(attribute)),
        InputValue::Decimal { units, decimals: 0 } if scale(attribute) == 0 => {
            Ok(Value::Number(units))
        }
        InputValue::Decimal { units, decimals } => {
            number_of(&format!("{units}e-{decimals}"), attribute)
        }
    }
}

/// A number by its digits, rounded to the attribute's decimal places.
fn number_of(text: &str, attribute: &Attribute) -> Result<Value<'static>, EncodeError> {
    let scaled = parse_scaled(text, scale(attribute));
    scaled.map(Value::Number).map_err(|_| out_of_bounds(attribute))
}

fn scale(attribute: &Attribute) -> u8 {
    match attribute.kind {
        AttributeKind::Number { scale, .. } => scale,
        AttributeKind::Boolean | AttributeKind::Text { .. } => 0,
    }
}

/// A number that no attribute of this kind takes.
fn out_of_bounds(attribute: &Attribute) -> EncodeError {
    let name = attribute.name.clone();
    match attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            EncodeError::OutOfBounds { attribute: name, min, max, scale }
        }
        AttributeKind::Boolean => {
            EncodeError::WrongType { attribute: name, expected: "truth value" }
        }
        AttributeKind::Text { .. } => EncodeError::WrongType { attribute: name, expected: "text" },
    }
}
