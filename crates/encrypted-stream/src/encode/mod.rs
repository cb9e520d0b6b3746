//! Encoding: one event's values as the words that a layout asks for (Zeph §3.2).
//!
//! An [`Encoder`] is compiled once from a schema and its layout. Encoding an
//! event then allocates nothing: it checks every value against its declared
//! bounds and hands `(word, addend)` pairs to a sink, which adds each addend to
//! that word modulo 2^64, usually straight into a key stream. Words that no pair
//! names, the check word among them, are zero.

mod compile;
mod op;
mod present;

pub use compile::LayoutMismatch;

use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{AttributeKind, Schema};
use op::Op;
use present::Present;
use rand_core::CryptoRng;

/// The value of one attribute in one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The event lacks it. It then counts in no statistic of the attribute.
    Absent,
    /// A fixed-point number, scaled: the integer `value × 10^scale`.
    Number(i64),
    /// A truth value.
    Boolean(bool),
    /// A text's bytes.
    Text(&'a [u8]),
}

/// Why an event was refused. It names the attribute and what is allowed, never
/// the value, so that an error can be logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Not one value for each attribute of the schema.
    #[error("the event has {found} values, the schema {expected} attributes")]
    WrongLength {
        /// Attributes of the schema.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The event lacks an attribute that is not optional.
    #[error("`{attribute}` is missing and not optional")]
    Missing {
        /// The attribute's name.
        attribute: String,
    },
    /// The value is of another type than the schema declares.
    #[error("`{attribute}` takes a {expected}")]
    WrongType {
        /// The attribute's name.
        attribute: String,
        /// The type declared.
        expected: &'static str,
    },
    /// The number lies outside its declared bounds. It is never wrapped or clamped.
    #[error(
        "`{attribute}` lies outside its bounds {min}..={max} (in units of 10^-{scale}); \
         correct the source or widen the schema's bounds"
    )]
    OutOfBounds {
        /// The attribute's name.
        attribute: String,
        /// Least scaled value.
        min: i64,
        /// Greatest scaled value.
        max: i64,
        /// Decimal places of both.
        scale: u8,
    },
    /// The text is longer than declared.
    #[error("`{attribute}` is longer than {max_bytes} bytes")]
    TooLong {
        /// The attribute's name.
        attribute: String,
        /// Longest text in bytes.
        max_bytes: u16,
    },
}

/// Turns events of one schema into addends to the words of its layout.
#[derive(Clone, Debug)]
pub struct Encoder {
    attributes: Vec<Declared>,
    names: Vec<String>,
    ops: Vec<Op>,
    /// The same for events that lack nothing.
    present: Option<Present>,
    words: u16,
}

/// What an attribute's values must be.
#[derive(Clone, Debug)]
struct Declared {
    kind: AttributeKind,
    optional: bool,
}

impl Encoder {
    /// Compiles the encoding of `schema` as `layout` places it.
    ///
    /// # Errors
    ///
    /// If the layout is not one of this schema, or a single value within its
    /// bounds would not fit where the layout puts it.
    pub fn new(schema: &Schema, layout: &Layout) -> Result<Encoder, LayoutMismatch> {
        let attributes = schema.attributes.iter();
        let ops = compile::ops(schema, layout)?;
        Ok(Encoder {
            names: attributes.clone().map(|attribute| attribute.name.clone()).collect(),
            attributes: attributes
                .map(|it| Declared { kind: it.kind.clone(), optional: it.optional })
                .collect(),
            present: Present::of(schema.attributes.len(), &ops),
            ops,
            words: layout.words,
        })
    }

    /// Words of an event's vector, the check word included.
    #[must_use]
    pub fn words(&self) -> u16 {
        self.words
    }

    /// Encodes one event: `values` in the order of the schema's attributes.
    ///
    /// `rng` is used only for `any` and `all`, which sum a random word.
    ///
    /// # Errors
    ///
    /// If any value is not as declared. All values are checked before `sink` is
    /// first called, so that no event is ever half encoded.
    #[inline]
    pub fn encode(
        &self,
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
        mut sink: impl FnMut(u16, u64),
    ) -> Result<(), EncodeError> {
        if let Some(present) = &self.present
            && present.encode(&self.attributes, values, rng, &mut sink)
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
    /// Those of [`Encoder::encode`].
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
                return Err(self.refusal(i, *value));
            }
        }
        Ok(())
    }

    /// Why `value` is not admitted for the attribute at `position`.
    #[cold]
    fn refusal(&self, position: usize, value: Value<'_>) -> EncodeError {
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

impl Declared {
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
