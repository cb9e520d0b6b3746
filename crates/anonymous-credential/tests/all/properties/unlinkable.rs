//! Presentations of one holder look like presentations of two: the same sizes, nothing in
//! common, and no statistic that separates them. The same statistic does find a holder that
//! randomises badly.

use crate::properties::town::{Town, rng};
use crate::support::{Ledger, NOTHING, at};
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::Applicant;
use alpheus_anonymous_credential::limit::Limit;
use std::collections::HashSet;

/// The epoch precedes the holder's key.
const HEAD: usize = 8;

/// Presentations of one pass, one in each epoch.
fn presentations(town: &mut Town, account: &[u8], count: u64) -> Vec<Vec<u8>> {
    let mut device = town.device(account);
    let mut show = |epoch| {
        let now = at(1 + 15 * epoch);
        let sent = town.present(&mut device, Timing::Running, now).unwrap();
        device.holder.prune().commit(&mut device.store).unwrap();
        sent.bytes
    };
    (0..count).map(&mut show).collect()
}

#[test]
fn presentations_have_one_size_and_nothing_in_common() {
    for (limit, indices) in [(1, 1), (5, 5)] {
        let mut town = Town::new(limit, 60);
        let mut all = Vec::new();
        for account in [b"ada", b"bob"] {
            let mut device = town.device(account);
            for epoch in 0..20 {
                for _ in 0..indices {
                    let now = at(1 + 15 * epoch);
                    all.push(town.present(&mut device, Timing::Running, now).unwrap().bytes);
                }
            }
        }
        let bits = Limit::try_from(limit).unwrap().bits();
        assert!(all.iter().all(|bytes| bytes.len() == 392 + 192 * bits));
        // The key, then, after the message, every element and scalar.
        let fields =
            all.iter().flat_map(|b| b[HEAD..HEAD + 32].chunks(32).chain(b[72..].chunks(32)));
        let (mut seen, mut count) = (HashSet::new(), 0);
        fields.for_each(|field| {
            seen.insert(field.to_vec());
            count += 1;
        });
        assert_eq!(seen.len(), count, "a field occurs twice");
    }
}

fn bits(a: &[u8], b: &[u8]) -> Vec<f64> {
    let differ = a.iter().zip(b).flat_map(|(a, b)| (0..8).map(move |bit| (a ^ b) >> bit & 1));
    differ.map(f64::from).collect()
}

/// The largest difference, over all bits, between how often a bit differs in pairs of one kind
/// and in pairs of the other, in standard deviations. Also the same for the number of differing
/// bits.
fn distinguish(same: &[(&[u8], &[u8])], different: &[(&[u8], &[u8])]) -> (f64, f64) {
    let tables = [same, different].map(|pairs| -> Vec<Vec<f64>> {
        pairs.iter().map(|(a, b)| bits(&a[HEAD..], &b[HEAD..])).collect()
    });
    let score = |of: &dyn Fn(&Vec<f64>) -> f64| {
        let [(m, v, n), (m2, v2, n2)] = [&tables[0], &tables[1]].map(|table| {
            let n = f64::from(u32::try_from(table.len()).unwrap());
            let mean = table.iter().map(of).sum::<f64>() / n;
            let variance = table.iter().map(|row| (of(row) - mean).powi(2)).sum::<f64>() / n;
            (mean, variance, n)
        });
        let spread = (v / n + v2 / n2).sqrt();
        if (m - m2).abs() < 1e-12 { 0.0 } else { (m - m2).abs() / spread.max(1e-9) }
    };
    let positions = 0..tables[0][0].len();
    let worst = positions.map(|at| score(&|row: &Vec<f64>| row[at])).fold(0.0, f64::max);
    (worst, score(&|row: &Vec<f64>| row.iter().sum()))
}

fn pairs<'a>(a: &'a [Vec<u8>], b: &'a [Vec<u8>]) -> Vec<(&'a [u8], &'a [u8])> {
    a.iter().zip(&b[1..]).map(|(a, b)| (a.as_slice(), b.as_slice())).collect()
}

#[test]
fn no_statistic_tells_one_holder_from_two() {
    const COUNT: u64 = 400;
    let mut town = Town::new(1, 61);
    let ada = presentations(&mut town, b"ada", COUNT);
    let bob = presentations(&mut town, b"bob", COUNT);
    let (bit, count) = distinguish(&pairs(&ada, &ada), &pairs(&ada, &bob));
    // Some 3000 bits: the largest of that many normal deviations is about 3.5.
    assert!(bit < 5.0 && count < 4.5, "{bit} {count}");

    // The same test finds a holder that presents its U unblinded, and one that randomises only a
    // few of its bits.
    let weaken = |all: &[Vec<u8>], u: [u8; 32], keep: usize| -> Vec<Vec<u8>> {
        let weakened = |bytes: &Vec<u8>| {
            let mut bytes = bytes.clone();
            bytes[72..72 + keep].copy_from_slice(&u[..keep]);
            bytes
        };
        all.iter().map(weakened).collect()
    };
    for keep in [32, 1] {
        let (ada, bob) = (weaken(&ada, [0xa5; 32], keep), weaken(&bob, [0x5a; 32], keep));
        let (bit, _) = distinguish(&pairs(&ada, &ada), &pairs(&ada, &bob));
        assert!(bit > 20.0, "{keep}: {bit}");
    }
}

/// As after a device's or the issuer's snapshot is resumed: nothing drawn before is drawn again.
#[test]
fn a_generator_that_repeats_itself_links_nothing() {
    let mut town = Town::new(5, 62);
    let devices = [town.device(b"ada"), town.device(b"bob")];
    let compared = town.compared();
    let mut fields = Vec::new();
    for mut device in devices {
        for epoch in [0, 0, 1] {
            let (now, same) = (at(1 + 15 * epoch), &mut rng(63));
            let step = device.holder.log_in(Timing::Running, &compared, &NOTHING, now, same);
            let bytes = step.unwrap().commit(&mut device.store).unwrap().bytes;
            fields.extend(bytes[HEAD..HEAD + 32].chunks(32).map(<[u8]>::to_vec));
            fields.extend(bytes[72..].chunks(32).map(<[u8]>::to_vec));
        }
    }
    let mut responses = |account: &[u8]| {
        let pinned = town.pinned();
        let pending = PendingRequest::begin(pinned, account, Timing::Next, at(0), &mut rng(64));
        let pending = pending.unwrap().commit(&mut Ledger::new()).unwrap();
        let answer = town
            .service
            .issuer
            .issue(Applicant::named(account), &pending.bytes(), at(0), &mut rng(65))
            .unwrap();
        let answer = answer.commit(&mut town.service.books).unwrap();
        assert_eq!((pending.bytes().len(), answer.len()), (136, 768));
        [&pending.bytes()[8..], &answer].concat()
    };
    for account in [b"ada", b"bob"] {
        fields.extend(responses(account).chunks(32).map(<[u8]>::to_vec));
    }
    let seen: HashSet<&Vec<u8>> = fields.iter().collect();
    assert_eq!(seen.len(), fields.len(), "a field occurs twice");
}
