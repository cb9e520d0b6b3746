//! Reads a decrypted sum: m from m·M, by baby steps that are computed once and giant steps over
//! what the other sums allow (Shanks 1971).
//!
//! Sums are public once decrypted: everything here takes variable time.

mod table;

pub use table::Table;

use crate::error::LogarithmError;
use crate::interval::Interval;
use crate::tuple::message_base;
use alpheus_crypto::group::Total;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;

/// Giant steps per batch: their encodings share one inversion.
const BLOCK: u64 = 1024;
/// The maximum number of giant steps of a search: some fifteen seconds.
const MAX_STEPS: u64 = 1 << 24;

/// Where a sum can lie: `lowest`, `lowest` + `stride`, … up to `highest`. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    lowest: u64,
    highest: u64,
    stride: u64,
    likely: u64,
}

impl Bounds {
    /// Every number between two, the lower ones first.
    #[must_use]
    pub fn between(lowest: u64, highest: u64) -> Self {
        Self { lowest, highest, stride: 1, likely: lowest }
    }

    /// Bounds of Σc for an aggregate of so many slots.
    #[must_use]
    pub fn count(slots: u32) -> Self {
        Self::between(0, slots.into())
    }

    /// Bounds of Σv', once the count is known.
    #[must_use]
    pub fn value(interval: &Interval, count: u64) -> Self {
        let (lowest, highest) = interval.offsets_of(count);
        Self::between(lowest, highest).likely(u64::midpoint(lowest, highest))
    }

    /// Bounds of Σv'², once count and Σv' are known. It has the parity of Σv', because a number and
    /// its square have the same parity.
    #[must_use]
    pub fn square(interval: &Interval, count: u64, offsets: u64) -> Self {
        let (lowest, highest) = interval.squares_of(count, offsets);
        let lowest = lowest.saturating_add((lowest ^ offsets) % 2);
        Self { stride: 2, ..Self::between(lowest, highest) }
    }

    /// The same, searched outwards from a guess.
    #[must_use]
    pub fn likely(self, likely: u64) -> Self {
        Self { likely: likely.clamp(self.lowest, self.highest.max(self.lowest)), ..self }
    }

    /// How many numbers lie between, less one; none if even the lowest is too high.
    fn reach(&self) -> Option<u64> {
        Some(self.highest.checked_sub(self.lowest)? / self.stride)
    }
}

/// Whether every sum of an aggregate of so many slots can be read with a table of so many bits:
/// ask before agreeing to a definition.
#[must_use]
pub fn readable(interval: &Interval, slots: u32, bits: u8) -> bool {
    let (slots, width) = (u128::from(slots), u128::from(interval.width()));
    let reach = u128::from(table::reach(bits));
    let near = |apart: u128| apart / reach < u128::from(MAX_STEPS);
    // Σv'² lies between (Σv')²/N and w·Σv', at most N·w²/4 apart but for rounding.
    let squares = slots * width * width;
    let squares_fit = u64::try_from(squares + width * width).is_ok();
    let square = !interval.square() || (squares_fit && near(squares / 8 + width * width));
    near(slots * width) && square
}

impl Table {
    /// The number within bounds whose multiple of M this is.
    ///
    /// # Errors
    /// [`LogarithmError`].
    pub fn read(&self, total: &Total, bounds: &Bounds) -> Result<u64, LogarithmError> {
        let reach = bounds.reach().ok_or(LogarithmError::NotThere)?;
        let steps = reach / self.reach() + 1;
        if steps > MAX_STEPS {
            return Err(LogarithmError::TooFar);
        }
        let start = self.start(total, bounds);
        let guess = (bounds.likely - bounds.lowest) / bounds.stride / self.reach();
        let found = outwards(steps.div_ceil(BLOCK), guess / BLOCK)
            .find_map(|block| self.search(&start, block * BLOCK, BLOCK.min(steps - block * BLOCK)))
            .filter(|found| *found <= reach);
        found.map(|found| bounds.lowest + found * bounds.stride).ok_or(LogarithmError::NotThere)
    }

    /// k·M for the number lowest + k·stride.
    fn start(&self, total: &Total, bounds: &Bounds) -> RistrettoPoint {
        #[expect(clippy::expect_used, reason = "a total is canonical by type")]
        let point = CompressedRistretto(total.to_bytes()).decompress().expect("a sum of elements");
        let shifted = point - base() * Scalar::from(bounds.lowest);
        match bounds.stride {
            1 => shifted,
            stride => shifted * Scalar::from(stride).invert(),
        }
    }

    /// k, if start is k·M for a k within `steps` giant steps from the `first` on.
    fn search(&self, start: &RistrettoPoint, first: u64, steps: u64) -> Option<u64> {
        let stride = base() * Scalar::from(self.reach());
        let mut points = Vec::with_capacity(usize::try_from(steps).ok()?);
        let mut point = start - stride * Scalar::from(first);
        for _ in 0..steps {
            points.push(point);
            point -= stride;
        }
        let encodings = RistrettoPoint::double_and_compress_batch(&points);
        let candidates = (first..).zip(&encodings).flat_map(|(step, encoding)| {
            self.candidates(encoding).map(move |baby| step * self.reach() + baby)
        });
        candidates.into_iter().find(|k| base() * Scalar::from(*k) == *start)
    }
}

/// Block numbers below `blocks`, from `guess` outwards.
fn outwards(blocks: u64, guess: u64) -> impl Iterator<Item = u64> {
    let guess = guess.min(blocks.saturating_sub(1));
    let up = (guess..blocks).map(Some).chain(std::iter::repeat(None));
    let down = (0..guess).rev().map(Some).chain(std::iter::repeat(None));
    up.zip(down).map_while(|(up, down)| up.or(down).map(|_| [up, down])).flatten().flatten()
}

fn base() -> RistrettoPoint {
    #[expect(clippy::expect_used, reason = "an element is canonical by type")]
    CompressedRistretto(*message_base().as_bytes()).decompress().expect("an element")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::group::{Element, SecretScalar};
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(10));

    fn total(number: u64) -> Total {
        let scalar = Scalar::from(number);
        Total::from_bytes(&(base() * scalar).compress().to_bytes()).unwrap()
    }

    #[test]
    fn numbers_at_both_bounds_are_found_and_none_beyond() {
        for (lowest, highest) in
            [(0, 0), (0, 767), (0, 768), (5, 100_000), (1 << 40, (1 << 40) + 9)]
        {
            let bounds = Bounds::between(lowest, highest);
            assert_eq!(TABLE.read(&total(lowest), &bounds), Ok(lowest));
            assert_eq!(TABLE.read(&total(highest), &bounds), Ok(highest));
            let beyond = TABLE.read(&total(highest + 1), &bounds);
            assert_eq!(beyond, Err(LogarithmError::NotThere), "{highest}");
        }
        assert_eq!(TABLE.read(&total(4), &Bounds::between(5, 9)), Err(LogarithmError::NotThere));
        assert_eq!(TABLE.read(&total(4), &Bounds::between(5, 4)), Err(LogarithmError::NotThere));
        let far = Bounds::between(0, u64::MAX);
        assert_eq!(TABLE.read(&total(4), &far), Err(LogarithmError::TooFar));
        let interval = Interval::new(0, (1 << 32) - 1, true).unwrap();
        for offsets in [u64::MAX, u64::MAX - 1] {
            let beyond = Bounds::square(&interval, 1 << 32, offsets);
            assert!(TABLE.read(&total(4), &beyond).is_err());
        }
    }

    #[test]
    fn an_element_that_is_no_small_multiple_is_not_found() {
        let other = Element::second_base();
        let other = Total::from_bytes(other.as_bytes()).unwrap();
        assert_eq!(TABLE.read(&other, &Bounds::count(100_000)), Err(LogarithmError::NotThere));
        let minus = SecretScalar::from_small(0).minus(&SecretScalar::from_small(3));
        let minus = Total::from_bytes(message_base().times(&minus).unwrap().as_bytes()).unwrap();
        assert_eq!(TABLE.read(&minus, &Bounds::count(100_000)), Err(LogarithmError::NotThere));
    }

    #[test]
    fn every_block_is_searched_once_outwards_from_the_guess() {
        for (blocks, guess) in [(1, 0), (5, 0), (5, 2), (5, 4), (5, 9), (0, 3)] {
            let mut order: Vec<u64> = outwards(blocks, guess).collect();
            if blocks > 0 {
                assert_eq!(order[0], guess.min(blocks - 1));
            }
            order.sort_unstable();
            assert_eq!(order, (0..blocks).collect::<Vec<_>>());
        }
    }

    #[test]
    fn unreadable_sums_are_detected_in_advance() {
        let readable = |highest: i64, square, slots| {
            readable(&Interval::new(0, highest, square).unwrap(), slots, 20)
        };
        let widest = (1 << 32) - 1;
        assert!(readable(100_000, true, 3_000) && readable(65_535, true, 10_000));
        assert!(readable(widest, false, 3_000) && !readable(widest, false, 3_100));
        assert!(!readable(widest, true, 5) && !readable(1 << 20, true, 3_000));
        assert!(!readable(65_535, true, 100_000) && readable(255, true, 1_000_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        /// A sum that is readable is never too far, whatever the samples were.
        #[test]
        fn readable_sums_are_never_too_far(
            bits in 1_u32..32, below: u32, slots in 1_u32..100_000, count: u32, mean: u32,
        ) {
            let width = 1 + i64::from(below) % (1 << bits);
            let interval = Interval::new(0, width, true).unwrap();
            let count = u64::from(1 + count % slots);
            let offsets = u64::from(mean) % (count * width.unsigned_abs() + 1);
            if readable(&interval, slots, 10) {
                let near = |bounds: Bounds| {
                    bounds.reach().unwrap_or(0) / TABLE.reach() < MAX_STEPS
                };
                prop_assert!(near(Bounds::value(&interval, count)));
                prop_assert!(near(Bounds::square(&interval, count, offsets)));
                prop_assert!(interval.squares_of(count, offsets).1 < u64::MAX);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_number_is_read_from_any_guess(number in 0_u64..4_000_000, likely in 0_u64..5_000_000) {
            let bounds = Bounds::between(number / 3, 4_000_000).likely(likely);
            prop_assert_eq!(TABLE.read(&total(number), &bounds), Ok(number));
        }

        /// The bounds from other sums never exclude the true sum.
        #[test]
        fn sums_of_squares_are_read_within_their_bounds(values in proptest::collection::vec(0_u64..=300, 1..40)) {
            let interval = Interval::new(-7, 293, true).unwrap();
            let (n, s) = (values.len() as u64, values.iter().sum());
            let q = values.iter().map(|v| v * v).sum();
            prop_assert_eq!(TABLE.read(&total(s), &Bounds::value(&interval, n)), Ok(s));
            prop_assert_eq!(TABLE.read(&total(q), &Bounds::square(&interval, n, s)), Ok(q));
        }
    }
}
