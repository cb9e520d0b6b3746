//! Bounds of attributes: generous and round, from the data and the unit. A choice, not a fact.

use crate::number::{Decimal, scaled_text};

/// Most decimal places that a schema takes.
const MAX_SCALE: u8 = 18;
/// The greatest scaled bound.
const MAX_BOUND: i128 = 9_000_000_000_000_000_000;

/// What a schema lets an attribute take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Decimal places.
    pub scale: u8,
    /// The least value, in units of `10^-scale`.
    pub min: i128,
    /// The greatest value.
    pub max: i128,
}

impl Bounds {
    /// Bounds for values in a range, with so many decimal places in their texts.
    #[must_use]
    pub fn of(range: Option<(Decimal, Decimal)>, places: u8, unit: Option<&str>) -> Bounds {
        let (lo, hi) = range.unwrap_or((Decimal::ZERO, Decimal::ZERO));
        let hundred = Decimal { digits: 100, places: 0 };
        let (min, max) = if unit == Some("%") && lo >= Decimal::ZERO && hi <= hundred {
            (Decimal::ZERO, hundred)
        } else {
            let max = if hi > Decimal::ZERO { round_up(hi.times(2)) } else { Decimal::ZERO };
            let min = if lo < Decimal::ZERO {
                negative(round_up(negative(lo.times(2))))
            } else {
                Decimal::ZERO
            };
            let nothing = min == max;
            (min, if nothing { Decimal { digits: 1, places: 0 } } else { max })
        };
        let mut scale = places.min(MAX_SCALE);
        while scale > 0 && (scaled(max, scale) > MAX_BOUND || -scaled(min, scale) > MAX_BOUND) {
            scale -= 1;
        }
        let bound = |value: i128| value.clamp(-MAX_BOUND, MAX_BOUND);
        Bounds { scale, min: bound(scaled(min, scale)), max: bound(scaled(max, scale)) }
    }

    /// The bounds as texts.
    #[must_use]
    pub fn texts(&self) -> (String, String) {
        let text = |value: i128| {
            let text = scaled_text(&value.to_string(), usize::from(self.scale));
            let short = if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.')
            } else {
                &text
            };
            short.to_owned()
        };
        (text(self.min), text(self.max))
    }

    /// Whether the squares of so many values surely fit where sums of squares are kept: in two
    /// words, each half of which counts up to 2^63.
    #[must_use]
    pub fn squares_fit(&self, values: u64) -> bool {
        let reach = self.max.max(-self.min);
        let squares =
            reach.checked_mul(reach).and_then(|square| square.checked_mul(i128::from(values)));
        squares.is_some_and(|sum| sum < 1 << 94)
    }
}

fn negative(value: Decimal) -> Decimal {
    Decimal { digits: -value.digits, places: value.places }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on, in units of the last place.
fn round_up(value: Decimal) -> Decimal {
    let mut power: i128 = 1;
    loop {
        for step in [1, 2, 5] {
            let digits = power.saturating_mul(step);
            if digits >= value.digits || digits == i128::MAX {
                return Decimal { digits, places: value.places };
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A round value in units of `10^-scale`, away from zero.
fn scaled(value: Decimal, scale: u8) -> i128 {
    if scale >= value.places {
        let power = 10i128.saturating_pow(u32::from(scale - value.places));
        return value.digits.saturating_mul(power);
    }
    let divisor = 10i128.saturating_pow(u32::from(value.places - scale));
    let up = if value.digits % divisor == 0 { 0 } else { value.digits.signum() };
    value.digits / divisor + up
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lo: &str, hi: &str, unit: Option<&str>) -> (u8, String, String) {
        let (lo, hi) = (Decimal::read(lo).unwrap(), Decimal::read(hi).unwrap());
        let bounds = Bounds::of(Some((lo, hi)), lo.places.max(hi.places), unit);
        let (min, max) = bounds.texts();
        (bounds.scale, min, max)
    }

    #[test]
    fn bounds_are_generous_and_round() {
        let text = |scale, min: &str, max: &str| (scale, min.to_owned(), max.to_owned());
        assert_eq!(of("0", "10554", None), text(0, "0", "50000"));
        assert_eq!(of("-75", "331", None), text(0, "-200", "1000"));
        assert_eq!(of("12.5", "99.9", Some("%")), text(1, "0", "100"));
        assert_eq!(of("0.0057637691497802734", "243.465813", None), text(16, "0", "500"));
        assert_eq!(of("-7.0448303", "-5.52", None), text(7, "-20", "0"));
        assert_eq!(of("0", "0", None), text(0, "0", "1"));
        assert_eq!(of("0", "9000000000000000000", None).2, "9000000000000000000");
    }
}
