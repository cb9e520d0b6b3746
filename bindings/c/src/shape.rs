//! A schema, with what its events are encoded by.

use crate::codes::Code;
use crate::refusal::Refusal;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use rand_core::CryptoRng;

/// How a schema is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML.
    Yaml,
    /// An Avro schema, as JSON.
    Avro,
}

/// A schema that was checked, with its layout and encoder.
pub struct Shape {
    /// The schema.
    pub schema: Schema,
    /// Where statistics lie in the words of an event.
    pub layout: Layout,
    /// Encodes events.
    pub encoder: Encoder,
}

impl Shape {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`Code::SchemaInvalid`].
    pub fn read(text: &str, format: Format) -> Result<Shape, Refusal> {
        let read = match format {
            Format::Yaml => Schema::from_yaml(text),
            Format::Avro => Schema::from_avsc(text),
        };
        let schema = read.map_err(|error| Refusal {
            message: error.to_string(),
            ..Refusal::of(Code::SchemaInvalid, &error.problem)
        })?;
        let invalid = |error| Refusal::of(Code::SchemaInvalid, &error);
        let layout = Layout::of(&schema).map_err(invalid)?;
        let encoder = Encoder::new(&schema, &layout);
        let encoder = encoder.map_err(|error| Refusal::of(Code::SchemaInvalid, &error))?;
        Ok(Shape { schema, layout, encoder })
    }

    /// The words of an event in the clear: what is encrypted.
    ///
    /// # Errors
    /// [`Code::LineRefused`].
    pub fn encode(
        &self,
        values: &[Value<'_>],
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u64>, Refusal> {
        let mut words = vec![0_u64; self.layout.words.into()];
        let add = |at: u16, addend: u64| {
            if let Some(word) = words.get_mut(usize::from(at)) {
                *word = word.wrapping_add(addend);
            }
        };
        let encoded = self.encoder.encode(values, rng, add);
        encoded.map_err(|error| Refusal::of(Code::LineRefused, &error))?;
        Ok(words)
    }
}
