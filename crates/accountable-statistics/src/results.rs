//! What is published of decrypted sums, and how.

use crate::definition::ReleaseRule;
use crate::interval::Moments;
use crate::messages::PublishedResult;

/// What a rule leaves of exact sums.
///
/// # Privacy
/// A mean is rounded to the rule's grain, half away from zero. A mean to nine digits reveals the
/// count.
#[must_use]
pub fn publish(rule: ReleaseRule, moments: &Moments) -> PublishedResult {
    let Moments { count, sum, squares } = *moments;
    match rule {
        ReleaseRule::Full => PublishedResult::Full { count, sum, squares },
        ReleaseRule::Mean { grain } => {
            let grain = i128::from(grain);
            let mean = rounded(sum, i128::from(count).saturating_mul(grain)).saturating_mul(grain);
            let end = if mean < 0 { i64::MIN } else { i64::MAX };
            PublishedResult::Mean(i64::try_from(mean).unwrap_or(end))
        }
    }
}

/// a / b, rounded half away from zero; zero if b is zero.
fn rounded(a: i128, b: i128) -> i128 {
    let whole = a.checked_div(b).unwrap_or(0);
    let rest = a.checked_rem(b).unwrap_or(0);
    let further = rest.unsigned_abs().saturating_mul(2) >= b.unsigned_abs();
    if b != 0 && rest != 0 && further { whole + a.signum() * b.signum() } else { whole }
}

/// Mean and standard deviation of the population, in steps, from the exact sums.
#[must_use]
pub fn mean_and_deviation(
    count: u64,
    sum: i128,
    squares: Option<i128>,
) -> Option<(f64, Option<f64>)> {
    #[expect(clippy::cast_precision_loss, reason = "a result for people, rounded once")]
    let ratio = |a: i128, b: i128| a as f64 / b as f64;
    let n = i128::from(count);
    if n == 0 {
        return None;
    }
    // n·Σv² − (Σv)² exactly, so that nothing cancels in floating point.
    let spread = squares.and_then(|q| n.checked_mul(q)?.checked_sub(sum.checked_mul(sum)?));
    Some((ratio(sum, n), spread.map(|s| ratio(s, 1).sqrt() / ratio(n, 1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded_half_away_from_zero_to_the_grain() {
        let mean = |sum, count, grain| {
            publish(ReleaseRule::Mean { grain }, &Moments { count, sum, squares: None })
        };
        assert_eq!(mean(7, 2, 1), PublishedResult::Mean(4));
        assert_eq!(mean(-7, 2, 1), PublishedResult::Mean(-4));
        assert_eq!(mean(-10, 3, 1), PublishedResult::Mean(-3));
        assert_eq!(mean(61_234 * 9, 9, 500), PublishedResult::Mean(61_000));
        assert_eq!(mean(61_250 * 9, 9, 500), PublishedResult::Mean(61_500));
        assert_eq!(mean(5, 0, 1), PublishedResult::Mean(0));
    }

    #[test]
    fn deviations_are_those_of_the_population() {
        let (mean, deviation) = mean_and_deviation(4, 20, Some(4 + 16 + 36 + 64)).unwrap();
        assert!((mean - 5.0).abs() < 1e-12 && (deviation.unwrap() - 5.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_deviation(0, 0, Some(0)), None);
        // Equal values far from zero.
        let n = 1_u64 << 20;
        let big = 1_i128 << 39;
        let q = i128::from(n) * big * big;
        assert_eq!(mean_and_deviation(n, i128::from(n) * big, Some(q)).unwrap().1, Some(0.0));
    }
}
