//! Values of output columns, and how they are serialised.

use alpheus_policy::decimal::format_scaled;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::fmt;

/// An exact decimal number: `scaled / 10^scale`. Written with all its decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The scaled integer.
    pub scaled: i128,
    /// Decimal places.
    pub scale: u8,
}

/// The value of one output column in one window. It serialises to JSON in the
/// published form. Decimals are strings, so that no reader rounds them.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An aggregate of nothing.
    Null,
    /// A count.
    Integer(i128),
    /// A sum, or an edge.
    Decimal(Decimal),
    /// A mean, a variance or a similar quotient, rounded once from the exact value.
    Float(f64),
    /// The result of `any` or `all`.
    Boolean(bool),
    /// The count of each bin of a histogram.
    Integers(Vec<i128>),
    /// The lower edge of each non-empty bucket, and its value.
    Buckets(Vec<(Decimal, Output)>),
    /// Lower edges of the fullest bins and their counts, fullest first.
    Top(Vec<(Decimal, i128)>),
}

impl Output {
    /// `scaled / 10^scale`.
    #[must_use]
    pub fn decimal(scaled: i128, scale: u8) -> Output {
        Output::Decimal(Decimal { scaled, scale })
    }
}

impl Decimal {
    /// The same number without trailing zeros: the form in which edges are written.
    #[must_use]
    pub fn trimmed(self) -> Decimal {
        let (mut scaled, mut scale) = (self.scaled, self.scale);
        while scale > 0 && scaled % 10 == 0 {
            (scaled, scale) = (scaled / 10, scale - 1);
        }
        Decimal { scaled, scale }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_scaled(self.scaled, self.scale))
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Output::Null => serializer.serialize_unit(),
            Output::Integer(value) => serialize_integer(*value, serializer),
            Output::Decimal(value) => value.serialize(serializer),
            Output::Float(value) => serializer.serialize_f64(*value),
            Output::Boolean(value) => serializer.serialize_bool(*value),
            Output::Integers(values) => {
                let mut sequence = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    sequence.serialize_element(&Output::Integer(*value))?;
                }
                sequence.end()
            }
            Output::Buckets(buckets) => {
                let mut map = serializer.serialize_map(Some(buckets.len()))?;
                for (edge, value) in buckets {
                    map.serialize_entry(&edge.trimmed(), value)?;
                }
                map.end()
            }
            Output::Top(bins) => {
                let mut sequence = serializer.serialize_seq(Some(bins.len()))?;
                for (edge, count) in bins {
                    sequence.serialize_element(&(edge.trimmed(), Output::Integer(*count)))?;
                }
                sequence.end()
            }
        }
    }
}

/// As a 64-bit integer where it fits, so that every JSON library can read it.
fn serialize_integer<S: Serializer>(value: i128, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(value) {
        Ok(value) => serializer.serialize_i64(value),
        Err(_) => serializer.serialize_i128(value),
    }
}
