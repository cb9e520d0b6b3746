//! What is published of decrypted sums, and how.

use crate::definition::ReleaseRule;
use crate::interval::Moments;
use crate::messages::PublishedResult;

/// What a rule leaves of exact sums over so many uploads, dummies included.
///
/// # Privacy
/// A mean is rounded to the rule's grain, half away from zero. A mean to nine digits reveals the
/// count.
#[must_use]
pub fn publish(rule: ReleaseRule, moments: &Moments, uploads: u32) -> PublishedResult {
    let Moments { count, sum, squares } = *moments;
    match rule {
        ReleaseRule::Full => PublishedResult::Full { count, sum, squares, uploads },
        ReleaseRule::Mean { grain, .. } => {
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
    use std::collections::BTreeSet;

    #[test]
    fn means_are_rounded_half_away_from_zero_to_the_grain() {
        let mean = |sum, count, grain| {
            let rule = ReleaseRule::Mean { grain, resolution: 1 };
            publish(rule, &Moments { count, sum, squares: None }, 9)
        };
        assert_eq!(mean(7, 2, 1), PublishedResult::Mean(4));
        assert_eq!(mean(-7, 2, 1), PublishedResult::Mean(-4));
        assert_eq!(mean(-10, 3, 1), PublishedResult::Mean(-3));
        assert_eq!(mean(61_234 * 9, 9, 500), PublishedResult::Mean(61_000));
        assert_eq!(mean(61_250 * 9, 9, 500), PublishedResult::Mean(61_500));
        assert_eq!(mean(5, 0, 1), PublishedResult::Mean(0));
    }

    /// All means that so many samples in 0, r, 2r … 60 can have, as published.
    fn published(count: u64, resolution: u32, grain: u32) -> BTreeSet<i64> {
        let rule = ReleaseRule::Mean { grain, resolution };
        let sums = (0..=i128::from(count) * 60).step_by(resolution as usize);
        let means = sums.map(|sum| publish(rule, &Moments { count, sum, squares: None }, 9));
        means
            .filter_map(
                |mean| if let PublishedResult::Mean(mean) = mean { Some(mean) } else { None },
            )
            .collect()
    }

    /// A mean reveals nothing of the count: each that is published could be that of any count, from
    /// the smallest that is opened on. With a finer grain, some could not.
    #[test]
    fn a_coarse_mean_could_be_that_of_any_count() {
        for (resolution, smallest) in [(12_u32, 3_u64), (12, 4), (20, 5), (30, 7), (4, 9)] {
            let grain = resolution.div_ceil(u32::try_from(smallest).unwrap());
            let same = |grain| {
                let mut counts = (smallest..=40).map(|count| published(count, resolution, grain));
                let first = counts.next().unwrap();
                counts.all(|other| other == first)
            };
            assert!(same(grain), "{resolution} over {smallest}");
            assert!(grain == 1 || !same(grain - 1), "{resolution} over {smallest}");
        }
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
