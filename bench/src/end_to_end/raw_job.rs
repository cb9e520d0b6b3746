//! What a user without any privacy would run: raw attributes in the log, and an
//! aggregation that arrives at all of the application's statistics from them.

use super::application::Application;
use super::plain_job::Job;
use crate::BenchError;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_input::rows::Cell;
use alpheus_policy::plan::Release;
use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;

/// Stands for a value that is absent.
const ABSENT: i64 = i64::MIN;

pub(super) struct Raw<'a> {
    encoder: &'a Encoder,
    release: Release,
    rng: ChaCha12Rng,
    /// All statistics of the window: an event adds to a few of its words.
    sum: Vec<u64>,
}

impl Raw<'_> {
    pub(super) fn new(application: &Application, release: Release) -> Raw<'_> {
        Raw {
            encoder: &application.encoder,
            release,
            rng: ChaCha12Rng::from_seed([8; 32]),
            sum: vec![0; usize::from(application.layout.words)],
        }
    }
}

impl Job for Raw<'_> {
    fn write(&mut self, values: &[Cell], frame: &mut Vec<u8>) -> Result<(), BenchError> {
        for value in values {
            let value = match value {
                Cell::Absent => ABSENT,
                Cell::Number(number) => *number,
                // The applications have numbers only.
                Cell::Boolean(_) | Cell::Text(_) => return Err(BenchError::Schema),
            };
            frame.extend_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }

    fn take(&mut self, _: [u8; 16], frame: &[u8]) -> Result<(), BenchError> {
        let value = |bytes: &[u8; 8]| match i64::from_le_bytes(*bytes) {
            ABSENT => Value::Absent,
            number => Value::Number(number),
        };
        let values: Vec<Value<'_>> = frame.as_chunks::<8>().0.iter().map(value).collect();
        let Raw { encoder, rng, sum, .. } = self;
        encoder
            .encode(&values, rng, |word, addend| {
                let word = &mut sum[usize::from(word)];
                *word = word.wrapping_add(addend);
            })
            .map_err(|_| BenchError::Schema)
    }

    fn border(&mut self, _: [u8; 16]) {}

    fn rows(&mut self) -> Vec<u64> {
        let mut rows = vec![0; self.release.outputs()];
        self.release.add(&self.sum, &mut rows);
        self.sum.fill(0);
        rows
    }
}
