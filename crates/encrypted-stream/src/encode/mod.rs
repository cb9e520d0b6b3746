//! Encodes one event's values as the words of a layout (Zeph §3.2).
//!
//! An [`Encoder`] is compiled once from a schema and its layout. Encoding an
//! event then allocates nothing. It checks every value against its declared bounds
//! and passes `(word, addend)` pairs to a sink. The sink adds each addend to its
//! word modulo 2^64, usually directly into a key stream. Words without a pair,
//! including the check word, are zero.

mod compile;
mod complete;
mod op;

pub use compile::LayoutMismatchError;

use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{AttributeKind, Schema};
use complete::CompleteEncoder;
use op::Op;
use rand_core::CryptoRng;

/// The value of one attribute in one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The event lacks the attribute and counts in none of its statistics.
    Absent,
    /// A fixed-point number: the scaled integer `value × 10^scale`.
    Number(i64),
    /// A truth value.
    Boolean(bool),
    /// A text's bytes.
    Text(&'a [u8]),
}

/// Why an event was rejected. Names the attribute and what is allowed, but never
/// the value, so errors can be logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The number of values differs from the number of attributes.
    #[error("the event has {found} values, the schema {expected} attributes")]
    WrongLength {
        /// Attributes in the schema.
        expected: usize,
        /// Values in the event.
        found: usize,
    },
    /// The event lacks a required attribute.
    #[error("`{attribute}` is missing and not optional")]
    Missing {
        /// The attribute's name.
        attribute: String,
    },
    /// The value's type differs from the declared one.
    #[error("`{attribute}` takes a {expected}")]
    WrongType {
        /// The attribute's name.
        attribute: String,
        /// The declared type.
        expected: &'static str,
    },
    /// The number lies outside its declared bounds. It is never wrapped or clamped.
    #[error(
        "`{attribute}` lies outside its bounds {min}..={max} (in units of 10^-{scale}); \
         fix the source or widen the schema's bounds"
    )]
    OutOfBounds {
        /// The attribute's name.
        attribute: String,
        /// Smallest scaled value.
        min: i64,
        /// Largest scaled value.
        max: i64,
        /// Decimal places of both.
        scale: u8,
    },
    /// The text exceeds its declared length.
    #[error("`{attribute}` is longer than {max_bytes} bytes")]
    TooLong {
        /// The attribute's name.
        attribute: String,
        /// Maximum length in bytes.
        max_bytes: u16,
    },
}

/// Turns events of one schema into addends to the words of its layout.
#[derive(Clone, Debug)]
pub struct Encoder {
    attributes: Vec<AttributeRule>,
    names: Vec<String>,
    ops: Vec<Op>,
    /// A faster encoding for events that have every attribute.
    complete: Option<CompleteEncoder>,
    words: u16,
}

/// The values that an attribute accepts.
#[derive(Clone, Debug)]
struct AttributeRule {
    kind: AttributeKind,
    optional: bool,
}

impl Encoder {
    /// Compiles the encoding of `schema` as `layout` places it.
    ///
    /// # Errors
    ///
    /// If the layout is not this schema's, or if a single value within its bounds
    /// would not fit where the layout places it.
    pub fn new(schema: &Schema, layout: &Layout) -> Result<Encoder, LayoutMismatchError> {
        let attributes = schema.attributes.iter();
        let ops = compile::ops(schema, layout)?;
        Ok(Encoder {
            names: attributes.clone().map(|attribute| attribute.name.clone()).collect(),
            attributes: attributes
                .map(|it| AttributeRule { kind: it.kind.clone(), optional: it.optional })
                .collect(),
            complete: CompleteEncoder::of(schema.attributes.len(), &ops),
            ops,
            words: layout.words,
        })
    }

    /// Words in an event's vector, including the check word.
    #[must_use]
    pub fn words(&self) -> u16 {
        self.words
    }

    /// Encodes one event. `values` are in the order of the schema's attributes.
    ///
    /// `rng` is used only for `any` and `all`, which add random words.
    ///
    /// # Errors
    ///
    /// If any value is not as declared. All values are checked before the first
    /// call of `sink`, so no event is ever partly encoded.
    #[inline]
    pub fn encode(
        &self,
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
        mut sink: impl FnMut(u16, u64),
    ) -> Result<(), EncodeError> {
        if let Some(complete) = &self.complete
            && complete.encode(&self.attributes, values, rng, &mut sink)
        {
            return Ok(());
        }
        self.check(values)?;
        for op in &self.ops {
            op.run(values, rng, &mut sink);
        }
        Ok(())
    }

    /// Checks an event without encoding it.
    ///
    /// # Errors
    ///
    /// As [`Encoder::encode`].
    #[inline]
    pub fn check(&self, values: &[Value<'_>]) -> Result<(), EncodeError> {
        if values.len() != self.attributes.len() {
            return Err(EncodeError::WrongLength {
                expected: self.attributes.len(),
                found: values.len(),
            });
        }
        for (i, (declared, value)) in self.attributes.iter().zip(values).enumerate() {
            if !declared.admits(*value) {
                return Err(self.rejection(i, *value));
            }
        }
        Ok(())
    }

    /// Why the attribute at `position` does not accept `value`.
    #[cold]
    fn rejection(&self, position: usize, value: Value<'_>) -> EncodeError {
        let attribute = self.names.get(position).cloned().unwrap_or_default();
        let kind = self.attributes.get(position).map(|declared| &declared.kind);
        match (kind, value) {
            (_, Value::Absent) => EncodeError::Missing { attribute },
            (Some(AttributeKind::Number { scale, min, max }), Value::Number(_)) => {
                EncodeError::OutOfBounds { attribute, min: *min, max: *max, scale: *scale }
            }
            (Some(AttributeKind::Text { max_bytes }), Value::Text(_)) => {
                EncodeError::TooLong { attribute, max_bytes: *max_bytes }
            }
            (Some(AttributeKind::Boolean), _) => {
                EncodeError::WrongType { attribute, expected: "truth value" }
            }
            (Some(AttributeKind::Text { .. }), _) => {
                EncodeError::WrongType { attribute, expected: "text" }
            }
            _ => EncodeError::WrongType { attribute, expected: "number" },
        }
    }
}

impl AttributeRule {
    #[inline]
    fn admits(&self, value: Value<'_>) -> bool {
        match (value, &self.kind) {
            (Value::Number(x), AttributeKind::Number { min, max, .. }) => *min <= x && x <= *max,
            (Value::Text(bytes), AttributeKind::Text { max_bytes }) => {
                bytes.len() <= usize::from(*max_bytes)
            }
            (Value::Boolean(_), AttributeKind::Boolean) => true,
            (Value::Absent, _) => self.optional,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
