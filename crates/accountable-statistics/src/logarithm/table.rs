//! The baby steps: 2i·M for small i, found by their encodings.

use super::{BLOCK, base};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::traits::Identity;
use std::sync::OnceLock;

/// Bits of an entry that hold the number. The others hold a part of the encoding.
const NUMBER: u32 = 24;

/// Multiples of M by encoding, in memory: made once, for the first search, and shared by all.
pub struct Table {
    bits: u8,
    slots: OnceLock<Slots>,
}

/// Open addressing: an entry lies at its encoding's index or in one of the next. Zero is empty,
/// because an entry's number is one more than its multiple.
struct Slots(Vec<u64>);

impl Table {
    /// Minimum and maximum bits: 2 KiB to 128 MiB, of 8-byte entries, three quarters full.
    pub const BITS: std::ops::RangeInclusive<u8> = 8..=24;

    /// A table of 2^bits entries, with bits clamped to [`Table::BITS`]. The first search makes it, which
    /// takes about half a second for 20 bits; it divides the time of a search by 2^bits.
    #[must_use]
    pub fn new(bits: u8) -> Self {
        Self { bits, slots: OnceLock::new() }
    }

    /// How many multiples there are: 0·M up to (reach − 1)·M.
    pub(super) fn reach(&self) -> u64 {
        reach(self.bits)
    }

    /// Numbers whose doubled multiple may have this encoding.
    pub(super) fn candidates(&self, encoding: &CompressedRistretto) -> impl Iterator<Item = u64> {
        self.slots.get_or_init(|| Slots::made(self.bits)).candidates(encoding)
    }
}

impl Slots {
    fn made(bits: u8) -> Self {
        let reach = reach(bits);
        let mut slots = Self(vec![0; 1 << clamped(bits)]);
        let mut point = RistrettoPoint::identity();
        for first in (0..reach).step_by(1024) {
            let numbers = first..(first + BLOCK).min(reach);
            let points: Vec<RistrettoPoint> = numbers
                .map(|_| {
                    let this = point;
                    point += base_once();
                    this
                })
                .collect();
            let encodings = RistrettoPoint::double_and_compress_batch(&points);
            (first..).zip(&encodings).for_each(|(number, e)| slots.insert(number, e));
        }
        slots
    }

    fn insert(&mut self, number: u64, encoding: &CompressedRistretto) {
        let (place, mark) = self.place(encoding);
        let free = (0..self.0.len()).map(|step| (place + step) % self.0.len());
        let free = free.into_iter().find(|at| self.0.get(*at) == Some(&0));
        if let Some(slot) = free.and_then(|at| self.0.get_mut(at)) {
            *slot = mark | (number + 1);
        }
    }

    fn candidates(&self, encoding: &CompressedRistretto) -> impl Iterator<Item = u64> {
        let (place, mark) = self.place(encoding);
        let (before, from) = self.0.split_at(place);
        let entries = from.iter().chain(before).take_while(|slot| **slot != 0);
        let same = move |slot: &&u64| **slot >> NUMBER == mark >> NUMBER;
        entries.filter(same).map(|slot| (slot & ((1 << NUMBER) - 1)) - 1)
    }

    /// The index where an encoding's entry is looked for first, and the part of the encoding that
    /// is stored.
    fn place(&self, encoding: &CompressedRistretto) -> (usize, u64) {
        let [kept, low] = [8, 16].map(|at| {
            let part = encoding.0.get(at..at + 8).and_then(<[u8]>::first_chunk);
            part.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        });
        let place = usize::try_from(low % self.0.len() as u64).unwrap_or(0);
        (place, kept >> NUMBER << NUMBER)
    }
}

fn clamped(bits: u8) -> u8 {
    bits.clamp(*Table::BITS.start(), *Table::BITS.end())
}

/// How many multiples a table of so many bits has.
pub(super) fn reach(bits: u8) -> u64 {
    (1 << clamped(bits)) / 4 * 3
}

fn base_once() -> RistrettoPoint {
    static BASE: std::sync::LazyLock<RistrettoPoint> = std::sync::LazyLock::new(base);
    *BASE
}
