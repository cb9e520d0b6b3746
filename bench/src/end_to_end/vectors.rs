//! The same vectors unencrypted: summed by stream and window as the transformer
//! does, released rows merged at the window's end.

use super::application::Application;
use super::plain_job::Job;
use crate::BenchError;
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_input::rows::Cell;
use alpheus_policy::plan::Release;
use alpheus_stream_runtime::devices::value_of;
use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use std::collections::HashMap;

pub(super) struct Vectors<'a> {
    encoder: &'a Encoder,
    words: usize,
    release: Release,
    rng: ChaCha12Rng,
    vector: Vec<u64>,
    sums: HashMap<[u8; 16], Vec<u64>>,
    merged: Vec<u64>,
}

impl Vectors<'_> {
    pub(super) fn new(application: &Application, release: Release) -> Vectors<'_> {
        let words = usize::from(application.layout.words);
        Vectors {
            encoder: &application.encoder,
            words,
            merged: vec![0; release.outputs()],
            release,
            rng: ChaCha12Rng::from_seed([7; 32]),
            vector: vec![0; words],
            sums: HashMap::new(),
        }
    }
}

impl Job for Vectors<'_> {
    fn write(&mut self, values: &[Cell], frame: &mut Vec<u8>) -> Result<(), BenchError> {
        let Vectors { encoder, vector, rng, .. } = self;
        vector.fill(0);
        let values: Vec<_> = values.iter().map(value_of).collect();
        encoder
            .encode(&values, rng, |word, addend| {
                let word = &mut vector[usize::from(word)];
                *word = word.wrapping_add(addend);
            })
            .map_err(|_| BenchError::Schema)?;
        vector.iter().for_each(|word| frame.extend_from_slice(&word.to_le_bytes()));
        Ok(())
    }

    fn take(&mut self, device: [u8; 16], frame: &[u8]) -> Result<(), BenchError> {
        let (words, rest) = frame.as_chunks::<8>();
        if words.len() != self.words || !rest.is_empty() {
            return Err(BenchError::Schema);
        }
        let sum = self.sums.entry(device).or_insert_with(|| vec![0; words.len()]);
        for (sum, word) in sum.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        Ok(())
    }

    fn border(&mut self, device: [u8; 16]) {
        if let Some(sum) = self.sums.remove(&device) {
            self.release.add(&sum, &mut self.merged);
        }
    }

    fn rows(&mut self) -> Vec<u64> {
        let fresh = vec![0; self.merged.len()];
        std::mem::replace(&mut self.merged, fresh)
    }
}
