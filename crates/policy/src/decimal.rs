//! Decimal text to scaled integers and back, without floats.
//!
//! A value `v` of an attribute with scale `s` is the integer `v × 10^s`. Parsing
//! works on the digits of the text, so `0.285` at scale 2 is 29, never 28.

mod plain_decimal;

pub use plain_decimal::Decimal;

/// Longest text that is read as a number.
const MAX_BYTES: usize = 400;

/// Greatest magnitude of an exponent (`1e-9`).
const MAX_EXPONENT: i64 = 400;

/// The text is not a scaled integer. The error never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is empty.
    #[error("the number is empty; omit the field, or write a number such as 12.5")]
    Empty,
    /// A character that numbers do not have.
    #[error(
        "not a number: unexpected character at position {position}; write digits such as 12.5, -3 or 1e-9"
    )]
    Malformed {
        /// Position of the character, counted from 1.
        position: usize,
    },
    /// The scaled integer does not fit in 64 bits.
    #[error("the number times 10^{scale} does not fit in 64 bits; use a smaller scale or unit")]
    TooLarge {
        /// The decimal places requested.
        scale: u8,
    },
    /// Digits beyond the scale, in a number that must be exact.
    #[error("the number has more than {scale} decimal places; round it or raise the scale")]
    TooFine {
        /// The decimal places allowed.
        scale: u8,
    },
}

/// Reads `text × 10^scale`, rounding digits beyond the scale half away from
/// zero.
///
/// # Errors
/// If the text is not a decimal number or the result does not fit in an `i64`.
pub fn parse_scaled(text: &str, scale: u8) -> Result<i64, DecimalError> {
    if let Some(short) = short(text, scale) {
        return Ok(short);
    }
    Digits::read(text)?.scaled(scale)?.rounded(scale)
}

/// Reads `text × 10^scale` and rejects digits beyond the scale.
///
/// # Errors
/// As [`parse_scaled`], and if a digit beyond the scale is not 0.
pub fn parse_exact(text: &str, scale: u8) -> Result<i64, DecimalError> {
    let parts = Digits::read(text)?.scaled(scale)?;
    if parts.exact { parts.rounded(scale) } else { Err(DecimalError::TooFine { scale }) }
}

/// Writes a scaled integer with exactly `scale` decimal places.
#[must_use]
pub fn format_scaled(scaled: impl Into<i128>, scale: u8) -> String {
    let scaled = scaled.into();
    let places = usize::from(scale);
    let digits = format!("{:0>width$}", scaled.unsigned_abs(), width = places + 1);
    let (whole, behind) = digits.split_at(digits.len() - places);
    let sign = if scaled < 0 { "-" } else { "" };
    if behind.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{behind}") }
}

/// Reads a number without exponent and without digits beyond the scale that surely fits, as nearly
/// all do.
fn short(text: &str, scale: u8) -> Option<i64> {
    const MAX_DIGITS: usize = 18;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let zeros = usize::from(scale).checked_sub(behind.len())?;
    let digits = whole.len() + behind.len();
    if digits == 0 || digits + zeros > MAX_DIGITS {
        return None;
    }
    let mut magnitude = 0i64;
    for byte in whole.bytes().chain(behind.bytes()).chain(std::iter::repeat_n(b'0', zeros)) {
        if !byte.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + i64::from(byte - b'0');
    }
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// A parsed decimal: `±digits × 10^exponent`.
struct Digits {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// The integer part of a scaled number and how to round it.
struct Parts {
    negative: bool,
    magnitude: u128,
    up: bool,
    exact: bool,
}

impl Digits {
    fn read(text: &str) -> Result<Digits, DecimalError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(DecimalError::Empty);
        }
        if bytes.len() > MAX_BYTES {
            return Err(DecimalError::Malformed { position: MAX_BYTES + 1 });
        }
        let signed = matches!(bytes.first(), Some(b'+' | b'-'));
        let (mut digits, mut behind, mut point) = (Vec::with_capacity(bytes.len()), 0i64, false);
        let mut at = usize::from(signed);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits.push(byte - b'0');
                    behind += i64::from(point);
                }
                b'.' if !point => point = true,
                b'e' | b'E' if !digits.is_empty() => break,
                _ => return Err(DecimalError::Malformed { position: at + 1 }),
            }
            at += 1;
        }
        if digits.is_empty() {
            return Err(DecimalError::Malformed { position: at + 1 });
        }
        let exponent = read_exponent(text, at)? - behind;
        Ok(Digits { negative: bytes.first() == Some(&b'-'), digits, exponent })
    }

    fn scaled(&self, scale: u8) -> Result<Parts, DecimalError> {
        // The number of digits before the point of the scaled number.
        let kept =
            i64::try_from(self.digits.len()).unwrap_or(i64::MAX) + self.exponent + i64::from(scale);
        let split = usize::try_from(kept.max(0)).unwrap_or(usize::MAX).min(self.digits.len());
        let (before, after) = self.digits.split_at(split);
        let zeros = usize::try_from(kept).unwrap_or(0).saturating_sub(before.len());
        let mut magnitude = 0u128;
        for digit in before.iter().copied().chain(std::iter::repeat_n(0, zeros)) {
            magnitude = magnitude * 10 + u128::from(digit);
            if magnitude > 1 << 64 {
                return Err(DecimalError::TooLarge { scale });
            }
        }
        let up = kept >= 0 && after.first().is_some_and(|digit| *digit >= 5);
        let exact = after.iter().all(|digit| *digit == 0);
        Ok(Parts { negative: self.negative, magnitude, up, exact })
    }
}

impl Parts {
    fn rounded(&self, scale: u8) -> Result<i64, DecimalError> {
        let magnitude = self.magnitude + u128::from(self.up);
        i128::try_from(magnitude)
            .ok()
            .map(|magnitude| if self.negative { -magnitude } else { magnitude })
            .and_then(|value| i64::try_from(value).ok())
            .ok_or(DecimalError::TooLarge { scale })
    }
}

/// Reads what follows the digits: nothing, or `e` and an integer.
fn read_exponent(text: &str, at: usize) -> Result<i64, DecimalError> {
    let Some(exponent) = text.get(at + 1..) else { return Ok(0) };
    let malformed = DecimalError::Malformed { position: at + 2 };
    match exponent.parse::<i64>() {
        Ok(exponent) if exponent.abs() <= MAX_EXPONENT => Ok(exponent),
        _ => Err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    #[test]
    fn rounds_half_away_from_zero_on_the_text() {
        for (text, scale, value) in [
            ("0", 0, 0),
            ("-0", 3, 0),
            ("0.285", 2, 29),
            ("-0.285", 2, -29),
            ("0.2849999999999999999999999", 2, 28),
            ("2.5", 0, 3),
            ("-2.5", 0, -3),
            (".5", 0, 1),
            ("0.05", 0, 0),
            ("0.5", 0, 1),
            ("5.", 1, 50),
            ("+7", 1, 70),
            ("1e3", 2, 100_000),
            ("12.34e-1", 2, 123),
            ("1e-9", 18, 1_000_000_000),
            ("1e-300", 2, 0),
            ("9223372036854775807", 0, i64::MAX),
            ("-9223372036854775808", 0, i64::MIN),
            ("-9223372036854775808.4", 0, i64::MIN),
        ] {
            assert_eq!(parse_scaled(text, scale), Ok(value), "{text} at {scale}");
        }
    }

    #[test]
    fn rejects_malformed_and_too_large_numbers() {
        assert_eq!(parse_scaled("", 0), Err(DecimalError::Empty));
        for (text, position) in [
            ("-", 2),
            (".", 2),
            ("1.2.3", 4),
            ("1e", 3),
            ("0x1", 2),
            ("1 ", 2),
            ("١", 1),
            ("NaN", 1),
            ("e5", 1),
        ] {
            assert_eq!(parse_scaled(text, 0), Err(DecimalError::Malformed { position }), "{text}");
        }
        for text in ["9223372036854775807.5", "-9223372036854775809", "1e19", "1e400"] {
            assert_eq!(parse_scaled(text, 0), Err(DecimalError::TooLarge { scale: 0 }), "{text}");
        }
        assert_eq!(parse_scaled("1", 19), Err(DecimalError::TooLarge { scale: 19 }));
        assert_eq!(parse_exact("1.25", 1), Err(DecimalError::TooFine { scale: 1 }));
        assert_eq!(parse_exact("1.20", 1), Ok(12));
    }

    /// The exact quotient of big integers, rounded half away from zero.
    fn reference(digits: &str, exponent: i64, scale: u8) -> Option<i64> {
        let value: BigInt = digits.parse().ok()?;
        let power = exponent + i64::from(scale);
        let factor = BigInt::from(10).pow(u32::try_from(power.abs()).ok()?);
        let rounded = if power >= 0 {
            value * factor
        } else {
            let half = &factor / 2;
            let shifted = if value < BigInt::ZERO { value - half } else { value + half };
            shifted / factor
        };
        i64::try_from(rounded).ok()
    }

    proptest! {
        #[test]
        fn agrees_with_exact_arithmetic(
            digits in "-?[0-9]{1,30}", exponent in -30i64..10, scale in 0u8..=18
        ) {
            let text = format!("{digits}e{exponent}");
            prop_assert_eq!(parse_scaled(&text, scale).ok(), reference(&digits, exponent, scale));
        }

        #[test]
        fn a_point_and_an_exponent_mean_the_same(whole in "[0-9]{1,12}", behind in "[0-9]{0,12}", scale in 0u8..=6) {
            let point = format!("-{whole}.{behind}");
            let exponent = format!("-{whole}{behind}e-{}", behind.len());
            prop_assert_eq!(parse_scaled(&point, scale), parse_scaled(&exponent, scale));
        }

        #[test]
        fn parses_what_it_formats(value: i64, scale in 0u8..=18) {
            prop_assert_eq!(parse_exact(&format_scaled(value, scale), scale), Ok(value));
        }

        #[test]
        fn never_panics(text: String, scale: u8) {
            let _ = parse_scaled(&text, scale);
        }
    }
}
