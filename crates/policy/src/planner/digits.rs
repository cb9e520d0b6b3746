//! Numbers of few digits.

use crate::guarantee::RoundedNumber;
use crate::query::Decimal;

/// One in the third digit of a number.
pub(super) fn step(micro: u64) -> u64 {
    10u64.pow(micro.max(1).ilog10().saturating_sub(2))
}

/// Rounded up to three digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of millionths above 0, and casts saturate"
)]
pub(super) fn three_digits(micro: f64) -> u64 {
    let whole = micro.ceil() as u64;
    let step = step(whole);
    whole.div_ceil(step).saturating_mul(step)
}

/// Rounded up to two digits. `None` if that does not fit.
pub(super) fn two_digits(size: f64) -> Option<Decimal> {
    let exponent = size.log10().floor() - 1.0;
    let digits = (size / 10f64.powf(exponent) - 1e-9).ceil();
    Decimal::parse(&format!("{digits}e{exponent}"))
}

/// A number in words, with three digits at most.
pub(super) fn short(number: f64) -> String {
    let text = RoundedNumber(number).to_string();
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number of things in words.
pub(super) fn many(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_to_few_digits() {
        assert_eq!([1.0, 999.2, 1234.0, 100_000.1].map(three_digits), [1, 1000, 1240, 101_000]);
        assert_eq!([1, 99, 1000, 123_456].map(step), [1, 1, 10, 1000]);
        let rounded = |size| two_digits(size).map(|own| own.to_string());
        assert_eq!(rounded(0.04911).as_deref(), Some("0.05"));
        assert_eq!(rounded(1234.5).as_deref(), Some("1300"));
        assert_eq!(rounded(5.0).as_deref(), Some("5"));
    }
}
