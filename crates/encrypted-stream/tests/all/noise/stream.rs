//! Generators for tests: fast, counting, or adversarial.

use rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;

/// SplitMix64, eight little-endian bytes at a time. Counts bytes and calls.
pub(crate) struct Stream {
    state: u64,
    pub(crate) bytes: u64,
    pub(crate) calls: u64,
}

impl Stream {
    pub(crate) fn new(seed: u64) -> Stream {
        Stream { state: seed, bytes: 0, calls: 0 }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.bytes += bytes.len() as u64;
        self.calls += 1;
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Stream {}

/// Always the same byte, for the extremes of every comparison.
pub(crate) struct Stuck {
    pub(crate) byte: u8,
    pub(crate) bytes: u64,
}

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes([self.byte; 4]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes([self.byte; 8]))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.bytes += bytes.len() as u64;
        bytes.fill(self.byte);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}
