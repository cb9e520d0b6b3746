//! How far one client can move a mean: at most |I|·quota/N.

use crate::properties::helpers::people;
use crate::support::{Town, at};
use alpheus_accountable_statistics::definition::ReleaseRule;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::messages::PublishedResult;
use alpheus_accountable_statistics::results::{mean_and_deviation, publish};
use alpheus_accountable_statistics::tuple::Contribution;

/// One that gives the extreme value as often as it may, through the whole protocol, compared with
/// what the same people would have given honestly.
#[test]
fn a_client_moves_a_mean_by_at_most_interval_times_quota_over_count() {
    for (seed, lie) in [(80, 0), (81, 100)] {
        let mut town = Town::new(1, 1, seed).unwrap();
        let definition = town.definition("speed/a", 24).unwrap();
        let agreed = town.define(&definition).unwrap();
        let mut people = people(&mut town, 10);
        let (quota, mut honest) = (3, Vec::new());
        for (value, person) in (50..).zip(people.iter_mut().skip(1)) {
            town.upload(person, &agreed, at(70), Contribution::Sample(value)).unwrap();
            honest.push(value);
        }
        for _ in 0..quota {
            town.upload(&mut people[0], &agreed, at(71), Contribution::Sample(lie)).unwrap();
        }
        honest.extend([60; 3]);
        town.fill(&mut people, &agreed, at(121)).unwrap();
        let outcome = town.finish(&agreed).unwrap().unwrap();
        let Ok(PublishedResult::Full { count, sum, squares, .. }) = outcome.result else {
            panic!("none")
        };
        assert_eq!(count, honest.len() as u64);
        let (mean, _) = mean_and_deviation(count, sum, squares).unwrap();
        let truth = honest.iter().sum::<i64>() as f64 / honest.len() as f64;
        let bound = 100.0 * f64::from(quota) / honest.len() as f64;
        assert!((mean - truth).abs() <= bound, "{mean} for {truth}, bound {bound}");
        // The bound is not empty: most of it is reached.
        assert!((mean - truth).abs() > bound / 3.0);
    }
}

/// The paper's figures (section 9.2): N = 2000, quota 3, 0 to 100 mph give ±0.15 mph.
#[test]
fn the_bound_matches_the_papers_example() {
    let interval = Interval::new(0, 100_000, false).unwrap();
    let mean = |sum: u64| {
        let moments = interval.moments(2000, sum, None);
        match publish(ReleaseRule::Full, &moments, 9) {
            PublishedResult::Full { count, sum, .. } => {
                mean_and_deviation(count, sum, None).unwrap().0 / 1000.0
            }
            PublishedResult::Mean(_) => panic!("a full result"),
        }
    };
    let honest = 1997 * 60_000;
    let worst = (mean(honest + 3 * 100_000) - mean(honest)).abs();
    assert!((worst - 0.15).abs() < 1e-9, "{worst}");
    let relative = worst / mean(honest + 3 * 60_000);
    assert!((relative - 0.0025).abs() < 1e-4, "{relative}");
}
