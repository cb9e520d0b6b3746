//! Values of rows as typed columns.
//!
//! A row is a JSON object. Counts are numbers, sums are decimals in texts, means are floats. A column's type follows
//! from the values that it has had, and becomes wider when another kind comes.

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use serde_json::Value;
use std::sync::Arc;

/// The most digits of an exact decimal.
const DIGITS: u8 = 38;

/// The kind of values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There was no value yet.
    Unknown,
    /// Milliseconds since 1970, shown as a time.
    Time,
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// An exact number with so many decimal places.
    Decimal(i8),
    /// A rounded number.
    Float,
    /// A text; lists and objects as JSON.
    Text,
}

impl Kind {
    /// The kind of one value.
    pub(crate) fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Unknown,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(number) if number.is_i64() => Kind::Integer,
            Value::Number(number) if number.is_f64() => Kind::Float,
            Value::Number(_) => Kind::Decimal(0),
            Value::String(text) => decimal_places(text).map_or(Kind::Text, Kind::Decimal),
            Value::Array(_) | Value::Object(_) => Kind::Text,
        }
    }

    /// The kind that holds values of both.
    pub(crate) fn and(self, other: Kind) -> Kind {
        use Kind::{Decimal, Float, Integer, Text, Unknown};
        match (self, other) {
            (own, other) if own == other => own,
            (Unknown, own) | (own, Unknown) => own,
            (Integer, Decimal(places)) | (Decimal(places), Integer) => Decimal(places),
            (Decimal(own), Decimal(other)) => Decimal(own.max(other)),
            (Integer | Decimal(_), Float) | (Float, Integer | Decimal(_)) => Float,
            _ => Text,
        }
    }

    /// The type of the column. One that has had no value is one of numbers.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Kind::Unknown | Kind::Float => DataType::Float64,
            Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Decimal(places) => DataType::Decimal128(DIGITS, places),
            Kind::Text => DataType::Utf8,
        }
    }

    /// Values as a column of this kind. A value that does not fit is null.
    pub(crate) fn array<'a>(self, values: impl Iterator<Item = &'a Value>) -> ArrayRef {
        match self {
            Kind::Time => {
                let mut array = TimestampMicrosecondBuilder::new().with_timezone("+00:00");
                let micros = |value: &Value| value.as_i64().and_then(|own| own.checked_mul(1000));
                values.for_each(|value| array.append_option(micros(value)));
                Arc::new(array.finish())
            }
            Kind::Boolean => {
                let mut array = BooleanBuilder::new();
                values.for_each(|value| array.append_option(value.as_bool()));
                Arc::new(array.finish())
            }
            Kind::Integer => {
                let mut array = Int64Builder::new();
                values.for_each(|value| array.append_option(value.as_i64()));
                Arc::new(array.finish())
            }
            Kind::Decimal(places) => {
                let mut array = Decimal128Builder::new().with_data_type(self.data_type());
                values.for_each(|value| array.append_option(scaled(value, places)));
                Arc::new(array.finish())
            }
            Kind::Unknown | Kind::Float => {
                let mut array = Float64Builder::new();
                values.for_each(|value| array.append_option(float(value)));
                Arc::new(array.finish())
            }
            Kind::Text => {
                let mut array = StringBuilder::new();
                values.for_each(|value| array.append_option(text(value)));
                Arc::new(array.finish())
            }
        }
    }
}

/// The decimal places of a text that is an exact number, as `-12.50`.
fn decimal_places(text: &str) -> Option<i8> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = whole.len() + places.len() <= usize::from(DIGITS);
    let is_number = !whole.is_empty() && all(whole) && all(places) && fits;
    (is_number && !text.ends_with('.')).then(|| i8::try_from(places.len()).ok()).flatten()
}

/// A number in units of its last place.
fn scaled(value: &Value, places: i8) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let own = decimal_places(&text)?;
    let missing = u32::try_from(places.checked_sub(own)?).ok()?;
    let digits: i128 = text.replace('.', "").parse().ok()?;
    digits.checked_mul(10_i128.checked_pow(missing)?)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::Decimal128Type;
    use serde_json::json;

    #[test]
    fn sums_stay_exact() {
        let values =
            [json!("12.50"), json!("-0.07"), json!(null), json!("99999999999999999999.01")];
        let kind = values.iter().map(Kind::of).fold(Kind::Unknown, Kind::and);
        assert_eq!(kind, Kind::Decimal(2));
        let array = kind.array(values.iter());
        let array = array.as_primitive::<Decimal128Type>();
        let expected = [Some(1250), Some(-7), None, Some(9_999_999_999_999_999_999_901)];
        assert_eq!(array.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_column_becomes_as_wide_as_its_values_need() {
        let of = |values: &[Value]| values.iter().map(Kind::of).fold(Kind::Unknown, Kind::and);
        assert_eq!(of(&[json!(null), json!(3)]), Kind::Integer);
        assert_eq!(of(&[json!(3), json!("1.5")]), Kind::Decimal(1));
        assert_eq!(of(&[json!(3), json!(2.5)]), Kind::Float);
        assert_eq!(of(&[json!(3), json!([1, 2])]), Kind::Text);
        assert_eq!(of(&[json!("1."), json!(true)]), Kind::Text);
        assert_eq!(of(&[json!(u64::MAX)]), Kind::Decimal(0));
        let text = Kind::Text.array([json!([1, 2]), json!("a"), json!(null)].iter());
        let text = text.as_string::<i32>();
        assert_eq!((text.value(0), text.value(1), text.is_null(2)), ("[1,2]", "a", true));
    }
}
