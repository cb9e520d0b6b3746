//! Decimals before an attribute's scale is known.

use super::{format_scaled, parse_exact};
use std::cmp::Ordering;
use std::fmt;

/// A decimal of at most 18 places that fits in 64 bits without its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i64,
    /// The smallest number of places that is exact.
    places: u8,
}

impl Decimal {
    /// 0.
    pub const ZERO: Decimal = Decimal { digits: 0, places: 0 };

    /// `scaled × 10^-scale`.
    #[must_use]
    pub fn from_scaled(scaled: i64, scale: u8) -> Decimal {
        let mut number = Decimal { digits: scaled, places: scale };
        while number.places > 0 && number.digits % 10 == 0 {
            number = Decimal { digits: number.digits / 10, places: number.places - 1 };
        }
        number
    }

    /// Parses digits with an optional sign, point and exponent. `None` if the text is something
    /// else, or needs more than 18 places or 64 bits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Decimal> {
        (0..=18)
            .find_map(|places| Some(Decimal { digits: parse_exact(text, places).ok()?, places }))
    }

    /// This number as an integer in units of `10^-scale`. `None` if it has more places or does
    /// not fit in 64 bits.
    #[must_use]
    pub fn scaled(self, scale: u8) -> Option<i64> {
        let factor = 10i64.checked_pow(u32::from(scale.checked_sub(self.places)?))?;
        self.digits.checked_mul(factor)
    }

    /// This number in units of `10^-scale`, rounded towards zero.
    #[must_use]
    pub fn scaled_towards_zero(self, scale: u8) -> Option<i64> {
        match self.places.checked_sub(scale) {
            Some(excess) => Some(self.digits / 10i64.checked_pow(excess.into())?),
            None => self.scaled(scale),
        }
    }

    /// Numerator and denominator (a power of ten), if both fit in 32 bits and the number is not
    /// negative.
    #[must_use]
    pub fn fraction(self) -> Option<(u32, u32)> {
        Some((u32::try_from(self.digits).ok()?, 10u32.checked_pow(u32::from(self.places))?))
    }

    /// The negated number. `None` for `i64::MIN`.
    #[must_use]
    pub fn negated(self) -> Option<Decimal> {
        Some(Decimal { digits: self.digits.checked_neg()?, ..self })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        // 19 digits and at most 18 more places fit in 128 bits.
        let places = self.places.max(other.places);
        let at = |number: &Decimal| {
            i128::from(number.digits) * 10i128.saturating_pow(u32::from(places - number.places))
        };
        at(self).cmp(&at(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_scaled(self.digits, self.places))
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn reads_and_writes_exactly() {
        for (text, same) in [
            ("0", "0"),
            ("1.50", "1.5"),
            ("-0.05", "-0.05"),
            (".5", "0.5"),
            ("1e3", "1000"),
            ("1e-9", "0.000000001"),
            ("12.5e-1", "1.25"),
        ] {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), same, "{text}");
        }
        for bad in ["", "-", ".", "1.2.3", "1e", "1e99", "1e-99", "0x1", "9223372036854775808"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn scaling_is_exact() {
        let number = Decimal::parse("-12.34").unwrap();
        assert_eq!(number.scaled(2), Some(-1234));
        assert_eq!(number.scaled(3), Some(-12340));
        assert_eq!(number.scaled(1), None);
        assert_eq!(number.scaled_towards_zero(1), Some(-123));
        assert_eq!(Decimal::from_scaled(-1230, 2), Decimal::parse("-12.3").unwrap());
        assert!(number < Decimal::parse("-12.339").unwrap());
    }
}
