//! Showings of one holder look like showings of two: same sizes, nothing in
//! common, and no statistic that tells them apart, while the same statistic
//! finds a holder that randomises badly.

use crate::support::{Ledger, NOTHING, at};
use crate::town::{Town, rng};
use alpheus_anonymous_credential::holder::{Requesting, Which};
use alpheus_anonymous_credential::limit::Limit;
use std::collections::HashSet;

/// Before the holder's key: the epoch.
const HEAD: usize = 8;

/// Showings of one pass, one in each epoch.
fn showings(town: &mut Town, account: &[u8], count: u64) -> Vec<Vec<u8>> {
    let mut device = town.device(account);
    let mut show = |epoch| {
        let now = at(1 + 15 * epoch);
        let sent = town.show(&mut device, now, Which::Running).unwrap();
        device.holder.prune().commit(&mut device.store).unwrap();
        sent.bytes
    };
    (0..count).map(&mut show).collect()
}

#[test]
fn showings_have_one_size_and_nothing_in_common() {
    for (limit, indices) in [(1, 1), (5, 5)] {
        let mut town = Town::new(limit, 60);
        let mut all = Vec::new();
        for account in [b"ada", b"bob"] {
            let mut device = town.device(account);
            for epoch in 0..20 {
                for _ in 0..indices {
                    let now = at(1 + 15 * epoch);
                    all.push(town.show(&mut device, now, Which::Running).unwrap().bytes);
                }
            }
        }
        let bits = Limit::try_from(limit).unwrap().bits();
        assert!(all.iter().all(|bytes| bytes.len() == 392 + 192 * bits));
        // The key, then (after the message) every element and scalar.
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

/// The largest difference, over all bits, between how often a bit differs in
/// pairs of the one kind and in pairs of the other, in standard deviations;
/// and the same of the number of bits that differ.
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
    let ada = showings(&mut town, b"ada", COUNT);
    let bob = showings(&mut town, b"bob", COUNT);
    let (bit, count) = distinguish(&pairs(&ada, &ada), &pairs(&ada, &bob));
    // Some 3000 bits: the largest of so many normal deviations is about 3.5.
    assert!(bit < 5.0 && count < 4.5, "{bit} {count}");

    // The same eyes see a holder that shows its U as it is, and one that draws
    // but a few bits of it.
    let spoil = |all: &[Vec<u8>], u: [u8; 32], keep: usize| -> Vec<Vec<u8>> {
        let spoilt = |bytes: &Vec<u8>| {
            let mut bytes = bytes.clone();
            bytes[72..72 + keep].copy_from_slice(&u[..keep]);
            bytes
        };
        all.iter().map(spoilt).collect()
    };
    for keep in [32, 1] {
        let (ada, bob) = (spoil(&ada, [0xa5; 32], keep), spoil(&bob, [0x5a; 32], keep));
        let (bit, _) = distinguish(&pairs(&ada, &ada), &pairs(&ada, &bob));
        assert!(bit > 20.0, "{keep}: {bit}");
    }
}

/// As after a snapshot of a device, or of the issuer, is resumed: nothing that
/// was drawn is drawn again.
#[test]
fn a_generator_that_repeats_itself_links_nothing() {
    let mut town = Town::new(5, 62);
    let devices = [town.device(b"ada"), town.device(b"bob")];
    let compared = town.compared();
    let mut fields = Vec::new();
    for mut device in devices {
        for epoch in [0, 0, 1] {
            let (now, same) = (at(1 + 15 * epoch), &mut rng(63));
            let step = device.holder.log_in(now, Which::Running, &compared, &NOTHING, same);
            let bytes = step.unwrap().commit(&mut device.store).unwrap().bytes;
            fields.extend(bytes[HEAD..HEAD + 32].chunks(32).map(<[u8]>::to_vec));
            fields.extend(bytes[72..].chunks(32).map(<[u8]>::to_vec));
        }
    }
    let mut responses = |account: &[u8]| {
        let pinned = town.pinned();
        let asking = Requesting::begin(pinned, account, at(0), Which::Next, &mut rng(64));
        let asking = asking.unwrap().commit(&mut Ledger::new()).unwrap();
        let answer =
            town.service.issuer.issue(at(0), account, &asking.bytes(), &mut rng(65)).unwrap();
        let answer = answer.commit(&mut town.service.books).unwrap();
        assert_eq!((asking.bytes().len(), answer.len()), (136, 768));
        [&asking.bytes()[8..], &answer].concat()
    };
    for account in [b"ada", b"bob"] {
        fields.extend(responses(account).chunks(32).map(<[u8]>::to_vec));
    }
    let seen: HashSet<&Vec<u8>> = fields.iter().collect();
    assert_eq!(seen.len(), fields.len(), "a field occurs twice");
}
