//! Which values are allowed: an interval of whole steps, and what its sums mean.

use crate::error::{IntervalError, OutOfIntervalError};
use serde::{Deserialize, Serialize};

/// The values `lowest ..= highest`, in steps of the definition's unit, and whether their squares
/// are summed too. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Interval {
    lowest: i64,
    highest: i64,
    square: bool,
}

/// The stored and sent form of an interval.
#[derive(Serialize, Deserialize)]
struct Fields {
    lowest: i64,
    highest: i64,
    square: bool,
}

/// Exact sums over the samples of an aggregate, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// N, the number of samples.
    pub count: u64,
    /// Σ v.
    pub sum: i128,
    /// Σ v², for intervals with squares.
    pub squares: Option<i128>,
}

impl Interval {
    /// Bytes of [`Interval::encode`].
    pub const LENGTH: usize = 17;

    /// An interval of at least two and at most 2³² values.
    ///
    /// # Errors
    /// [`IntervalError`].
    pub fn new(lowest: i64, highest: i64, square: bool) -> Result<Self, IntervalError> {
        let width = i128::from(highest) - i128::from(lowest);
        // Σ v² must stay exact for any number of samples that fits in 2⁴⁶.
        let moderate = |end: i64| end.unsigned_abs() < 1 << 40;
        match (width, moderate(lowest) && moderate(highest)) {
            (i128::MIN..=0, _) => Err(IntervalError::Empty),
            (1..=0xffff_ffff, true) => Ok(Self { lowest, highest, square }),
            _ => Err(IntervalError::TooWide),
        }
    }

    /// a, the lowest value.
    #[must_use]
    pub fn lowest(&self) -> i64 {
        self.lowest
    }

    /// b, the highest value.
    #[must_use]
    pub fn highest(&self) -> i64 {
        self.highest
    }

    /// Whether squares are summed, for a deviation.
    #[must_use]
    pub fn square(&self) -> bool {
        self.square
    }

    /// w = b − a, the largest v'.
    #[must_use]
    pub fn width(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an interval's width is positive and below 2^32"
        )]
        let width = (self.highest - self.lowest) as u32;
        width
    }

    /// Bits of the range proof: the smallest power of two from 2 to 32 that covers the width.
    #[must_use]
    pub fn bits(&self) -> usize {
        let needed = 32 - self.width().leading_zeros();
        needed.max(2).next_power_of_two() as usize
    }

    /// Whether w − v' needs a range proof too: the width is not 2^bits − 1.
    #[must_use]
    pub fn two_sided(&self) -> bool {
        u64::from(self.width()) + 1 != 1 << self.bits()
    }

    /// lowest:64 ‖ highest:64 ‖ square:8.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.lowest.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.highest.to_be_bytes());
        bytes[16] = self.square.into();
        bytes
    }

    /// v' = value − lowest, the number that is encrypted.
    pub(crate) fn offset(&self, value: i64) -> Result<u32, OutOfIntervalError> {
        if value < self.lowest || value > self.highest {
            return Err(OutOfIntervalError);
        }
        u32::try_from(value - self.lowest).map_err(|_| OutOfIntervalError)
    }

    /// What decrypted sums mean: Σv = aN + Σv', Σv² = Σv'² + 2aΣv' + a²N.
    #[must_use]
    pub fn moments(&self, count: u64, offsets: u64, squares: Option<u64>) -> Moments {
        let (a, n, s) = (i128::from(self.lowest), i128::from(count), i128::from(offsets));
        let squares = squares.map(|q| i128::from(q) + 2 * a * s + a * a * n);
        Moments { count, sum: a * n + s, squares }
    }

    /// The smallest and largest Σv' that `count` samples can have.
    #[must_use]
    pub fn offsets_of(&self, count: u64) -> (u64, u64) {
        (0, count.saturating_mul(u64::from(self.width())))
    }

    /// The smallest and largest Σv'² that `count` samples with a sum of offsets can have: all
    /// equal, or as many as fit at the ends. The largest is capped at 2⁶⁴ − 1.
    #[must_use]
    pub fn squares_of(&self, count: u64, offsets: u64) -> (u64, u64) {
        let (n, s, w) = (u128::from(count), u128::from(offsets), u128::from(self.width()));
        if n == 0 {
            return (0, 0);
        }
        let (each, rest) = (s / n, s % n);
        let least = (n - rest) * each * each + rest * (each + 1) * (each + 1);
        let greatest = (s / w) * w * w + (s % w) * (s % w);
        let bounded = |q: u128| u64::try_from(q).unwrap_or(u64::MAX);
        (bounded(least), bounded(greatest))
    }
}

impl TryFrom<Fields> for Interval {
    type Error = IntervalError;

    fn try_from(fields: Fields) -> Result<Self, IntervalError> {
        Self::new(fields.lowest, fields.highest, fields.square)
    }
}

impl From<Interval> for Fields {
    fn from(interval: Interval) -> Self {
        let Interval { lowest, highest, square } = interval;
        Self { lowest, highest, square }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_width_determines_the_proof() {
        let shape = |w: i64| {
            let interval = Interval::new(-5, w - 5, false).unwrap();
            (interval.bits(), interval.two_sided())
        };
        assert_eq!(
            [1, 3, 4, 15, 16].map(shape),
            [(2, true), (2, false), (4, true), (4, false), (8, true)]
        );
        assert_eq!([255, 65_535, 65_536].map(shape), [(8, false), (16, false), (32, true)]);
        assert_eq!([100_000, (1 << 32) - 1].map(shape), [(32, true), (32, false)]);
    }

    #[test]
    fn an_unusable_interval_is_rejected() {
        let new = |a, b| Interval::new(a, b, true).err();
        assert_eq!(
            [new(3, 3), new(4, 3), new(i64::MAX, i64::MIN)],
            [Some(IntervalError::Empty); 3]
        );
        assert_eq!(new(0, 1 << 32), Some(IntervalError::TooWide));
        assert_eq!(new(1 << 40, (1 << 40) + 9), Some(IntervalError::TooWide));
        assert_eq!(new(i64::MIN, i64::MAX), Some(IntervalError::TooWide));
        let bytes = postcard::to_allocvec(&(3_i64, 3_i64, true)).unwrap();
        assert!(postcard::from_bytes::<Interval>(&bytes).is_err());
    }

    proptest! {
        /// Decoded sums match plain arithmetic, and the bounds hold.
        #[test]
        fn moments_match_plain_arithmetic(
            lowest in -1000_i64..1000,
            width in 1_i64..5000,
            parts in proptest::collection::vec(0.0_f64..=1.0, 0..50),
        ) {
            let interval = Interval::new(lowest, lowest + width, true).unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "below 5000")]
            let values: Vec<i64> = parts.iter().map(|p| lowest + (p * width as f64) as i64).collect();
            let offsets: Vec<u64> =
                values.iter().map(|v| u64::from(interval.offset(*v).unwrap())).collect();
            let (n, s) = (values.len() as u64, offsets.iter().sum::<u64>());
            let q = offsets.iter().map(|o| o * o).sum::<u64>();
            let moments = interval.moments(n, s, Some(q));
            prop_assert_eq!(moments.sum, values.iter().map(|v| i128::from(*v)).sum::<i128>());
            let squares = values.iter().map(|v| i128::from(*v) * i128::from(*v)).sum::<i128>();
            prop_assert_eq!(moments.squares, Some(squares));
            prop_assert!((interval.offsets_of(n).0..=interval.offsets_of(n).1).contains(&s));
            let (least, greatest) = interval.squares_of(n, s);
            prop_assert!(least <= q && q <= greatest);
        }
    }
}
