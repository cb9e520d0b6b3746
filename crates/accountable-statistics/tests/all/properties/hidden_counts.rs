//! What the aggregator gets does not reveal how many samples there were: its features at two very
//! different counts with one U have one distribution.

use crate::properties::helpers::{begun, opened, people};
use crate::support::{Person, Town, at};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{Release, decode};
use alpheus_accountable_statistics::role_error::ReleaseError;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_time::Timestamp;

const SLOTS: u32 = 24;
/// Towns at each count.
const RUNS: u8 = 12;

/// One aggregate with so many samples, a third of them from clients that ask for one more slot and
/// never use it. One smoother is down during the interval. All of that would show up in a careless
/// design.
fn released(seed: u8, samples: usize) -> (Town, AgreedDefinition, Vec<Release>, Vec<u32>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let definition = town.definition("speed/a", SLOTS).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 20);
    town.cut_off = vec![SmootherId(u16::from(seed % 4))];
    let mut real = Vec::new();
    for (n, person) in people.iter_mut().take(samples).enumerate() {
        if n % 3 == 0 {
            let mut vain = begun(&mut town, person, &agreed, 1);
            drop(town.ask(person, &mut vain, at(70)));
        }
        if let Ok(attempt) = town.upload(person, &agreed, at(75), Contribution::Sample(50)) {
            real.extend(attempt.entry().map(|entry| entry.slot));
        }
    }
    let away = usize::from(seed % 4);
    town.cut_off.clear();
    fill_twice(&mut town, &mut people, &agreed);
    // The smoother that was down lacks the deposits of that time, and releases nothing until it has
    // fetched them.
    let lacking = town.smoothers[away].missing_deposits(&agreed.name());
    let early = town.smoothers[away].release(&agreed.name(), agreed.release());
    let sooner = |smoother: &alpheus_accountable_statistics::smoother::Smoother| {
        smoother.release(&agreed.name(), Timestamp(agreed.release().0 - 1)).err()
    };
    let refused: Vec<_> = town.smoothers.iter().map(sooner).collect();
    assert_eq!(refused, [Some(ReleaseError::Early); 4], "whether something is lacking or not");
    assert_eq!((lacking.is_empty(), early.err()), (false, Some(ReleaseError::NotFilled)));
    town.sync(&agreed, at(150)).unwrap();
    let release = |now| {
        let of = |smoother: &alpheus_accountable_statistics::smoother::Smoother| {
            smoother.release(&agreed.name(), now).unwrap()
        };
        town.smoothers.iter().map(of).collect::<Vec<Release>>()
    };
    let releases = release(agreed.release());
    for later in [0, 1, 60_000_000, agreed.closing.patience.0] {
        let again = release(Timestamp(agreed.release().0 + later));
        assert_eq!(again, releases, "the same for every caller at every time");
    }
    (town, agreed, releases, real)
}

/// Smoothers know what is certified; they fetch the sealed uploads in the end.
fn fill_twice(town: &mut Town, people: &mut [Person], agreed: &AgreedDefinition) {
    for minute in [121, 131] {
        let name = agreed.name();
        let certificates: Vec<_> =
            town.smoothers.iter().flat_map(|s| s.certificates(&name)).collect();
        for certificate in certificates {
            for (smoother, ledger) in town.smoothers.iter_mut().zip(&mut town.ledgers) {
                let step = smoother.handle_certificate(&certificate, at(minute)).unwrap();
                step.commit(ledger).unwrap();
            }
        }
        town.fill(people, agreed, at(minute)).unwrap();
    }
}

/// Numbers between 0 and 1 that an aggregator can compute from a release.
fn features(agreed: &AgreedDefinition, release: &Release) -> Vec<f64> {
    let entries: Vec<_> = release.slots.iter().map(|release| release.entry).collect();
    let n = entries.len() as f64;
    let mean = |of: &dyn Fn(usize) -> f64| (0..entries.len()).map(of).sum::<f64>() / n;
    let revision = |at: usize| entries[at].revision as f64 / u64::MAX as f64;
    let shown = opened(agreed, release);
    vec![
        n / f64::from(SLOTS),
        mean(&revision),
        mean(&|at| revision(at) * revision((at + 1) % entries.len())),
        mean(&|at| revision(at) * f64::from(entries[at].slot) / f64::from(SLOTS)),
        mean(&|at| f64::from(entries[at].ephemeral.as_bytes()[0]) / 255.0),
        mean(&|at| f64::from(entries[at].content.as_bytes()[0]) / 255.0),
        mean(&|at| f64::from(shown[at].1.tag.as_bytes()[0]) / 255.0),
        mean(&|at| f64::from(shown[at].1.tuple[0]) / 255.0),
        f64::from(u8::from(entries.iter().any(|entry| entry.revision < 1 << 32))),
    ]
}

/// |difference of means| in units of its standard error.
fn apart(few: &[f64], many: &[f64]) -> f64 {
    let moments = |of: &[f64]| {
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        let spread = of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (of.len() - 1) as f64;
        (mean, spread / of.len() as f64)
    };
    let ((a, u), (b, v)) = (moments(few), moments(many));
    if a == b { 0.0 } else { (a - b).abs() / (u + v).sqrt().max(1e-9) }
}

#[test]
fn releases_at_two_counts_have_one_distribution() {
    let (mut few, mut many, mut places) = (Vec::new(), Vec::new(), [0_u32; 4]);
    for seed in 0..RUNS {
        for (samples, into) in [(2, &mut few), (18, &mut many)] {
            let (_, agreed, releases, real) = released(100 + seed, samples);
            assert!(releases.iter().all(|release| release.slots.len() == SLOTS as usize));
            let sizes = releases[0].slots.iter().map(|release| release.sealed.as_bytes().len());
            assert_eq!(sizes.collect::<std::collections::BTreeSet<_>>().len(), 1);
            // The smoother that was down releases the same as the others.
            assert!(releases.iter().all(|release| *release == releases[0]));
            into.push(features(&agreed, &releases[0]));
            for slot in real {
                places[(slot / (SLOTS / 4)) as usize] += 1;
            }
        }
    }
    for feature in 0..few[0].len() {
        let column = |of: &[Vec<f64>]| of.iter().map(|run| run[feature]).collect::<Vec<f64>>();
        let apart = apart(&column(&few), &column(&many));
        assert!(apart < 4.5, "feature {feature} tells the counts apart: {apart}");
    }
    // Samples lie anywhere among the slots: chi-square with three degrees of freedom, 1e-4.
    let total: u32 = places.iter().sum();
    let expected = f64::from(total) / 4.0;
    let chi: f64 = places.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi < 21.1, "{places:?}");
}

/// A slot is drawn among all that its keeper can give. The first free one would show, by how far the
/// slots are filled, how many samples there are; pooled over keepers and turns it looks uniform, so
/// each keeper is looked at alone.
#[test]
fn each_keeper_draws_a_slot_among_all_its_free_ones() {
    const MANY: u32 = 400;
    let mut town = Town::new(4, 2, 90).unwrap();
    let definition = town.definition("speed/a", MANY).unwrap();
    let agreed = town.define(&definition).unwrap();
    let turn = agreed.granting(at(70)).unwrap();
    let mut free: Vec<Vec<u32>> = (0..4).map(|_| Vec::new()).collect();
    for slot in 0..MANY {
        free[usize::from(agreed.keeper(&town.pinned, slot, turn).0)].push(slot);
    }
    let mut ranks = Vec::new();
    for person in &mut people(&mut town, 60) {
        let mut attempt = begun(&mut town, person, &agreed, 1);
        town.ask(person, &mut attempt, at(70)).unwrap();
        let slot = attempt.entry().unwrap().slot;
        let left = &mut free[usize::from(agreed.keeper(&town.pinned, slot, turn).0)];
        let rank = left.iter().position(|free| *free == slot).unwrap();
        ranks.push(rank as f64 / (left.len() - 1) as f64);
        left.remove(rank);
    }
    // Uniform between 0 and 1: by mean, at 4.5 standard errors, and in every quarter.
    let n = ranks.len() as f64;
    let mean = ranks.iter().sum::<f64>() / n;
    assert!((mean - 0.5).abs() < 4.5 / (12.0 * n).sqrt(), "{mean}");
    for quarter in [0.0, 0.25, 0.5, 0.75] {
        let inside = ranks.iter().filter(|rank| (quarter..quarter + 0.25).contains(*rank)).count();
        assert!(inside > 3, "{inside} of {n} in the quarter from {quarter}");
    }
}

/// Nothing in a release contains a turn or a receipt.
#[test]
fn a_release_holds_entries_and_sealed_uploads_only() {
    let (_, _, releases, _) = released(99, 5);
    let bytes = postcard::to_allocvec(&releases[0]).unwrap();
    let release: Release = decode(&bytes).unwrap();
    let again: Vec<u8> = release
        .slots
        .iter()
        .flat_map(|l| postcard::to_allocvec(&(l.entry, &l.sealed)).unwrap())
        .collect();
    let head = postcard::to_allocvec(&(release.aggregate, release.slots.len())).unwrap();
    assert_eq!([head, again].concat(), bytes);
}
