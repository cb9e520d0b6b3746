//! Seeded windows with a service that lies about sums, sets, receipts and rows: every wrong row is
//! refused, and every row that holds is the truth.

use std::collections::BTreeMap;

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::WindowRefusalError;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{Segments, SummonedStream};
use alpheus_encrypted_stream::receipt::Receipt;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use super::{advance, gather, long, longer, truth_in, try_receipt};
use crate::protocol::evil::Evil;

/// What happened in a window.
#[derive(Debug, Default)]
struct Tally {
    /// Receipts that held.
    held: u32,
    /// Receipts and rows that were refused.
    refused: u32,
    /// Streams that were left out.
    left_out: u32,
    /// Windows that the members did not open, by the first one's reason.
    unopened: BTreeMap<WindowRefusalError, u32>,
}

struct Dice(ChaCha20Rng);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0.next_u32() as usize % most.max(1)
    }

    fn says(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// Damages what the service says of a stream.
fn damage(stream: &mut SummonedStream, other: &SummonedStream, dice: &mut Dice) {
    let Segments::OfTicks { claims, sums, .. } = &mut stream.segments else { return };
    let Segments::OfTicks { claims: their_claims, sums: their_sums, .. } = &other.segments else {
        return;
    };
    let part = dice.below(sums[0].len());
    match dice.below(8) {
        0 => {
            let word = dice.below(sums[0][part].words.len());
            sums[0][part].words[word] ^= 1 << dice.below(64);
        }
        1 => *sums = their_sums.clone(),
        2 => (*claims, *sums) = (their_claims.clone(), their_sums.clone()),
        3 => sums[0].reverse(),
        4 => drop(sums[0].remove(part)),
        5 => {
            let last = sums[0].len() - 1;
            sums[0].swap(part, last);
        }
        6 => claims[0][part].masked_count ^= 1,
        _ => drop(claims[0].remove(part)),
    }
}

/// Changes a receipt as the service can: it signs anything of its own, and nothing of others.
fn lie(evil: &Evil, receipt: &mut Receipt, other: &Receipt, dice: &mut Dice) {
    let count = receipt.shares.len();
    let (one, two) = (dice.below(count), dice.below(count));
    let roster = evil.world.setup.controllers;
    match dice.below(9) {
        0 => receipt.shares.swap(one, two),
        1 => receipt.shares[one] = receipt.shares[two].clone(),
        2 => drop(receipt.shares.remove(one)),
        3 => receipt.shares[one].opening = receipt.shares[two].opening.clone(),
        4 => receipt.shares[one] = other.shares[dice.below(other.shares.len())].clone(),
        5 => {
            let mut own = receipt.membership.dangerous_unverified().unwrap();
            let at = dice.below(own.owners.len());
            own.owners[at] = own.owners[at].wrapping_add(1);
            receipt.membership = Signed::new(&own, &evil.world.service);
        }
        6 => {
            let set = receipt.opening_set.as_ref().unwrap();
            let mut own = set.dangerous_unverified().unwrap();
            own.set = RosterSet::of(roster, own.set.iter().skip(1));
            receipt.opening_set = Some(Signed::new(&own, &evil.world.service));
            receipt.shares.remove(0);
        }
        7 => {
            let set = receipt.opening_set.as_ref().unwrap();
            let mut own = set.dangerous_unverified().unwrap();
            own.set = RosterSet::of(roster + 1, own.set.iter());
            receipt.opening_set = Some(Signed::new(&own, &evil.world.service));
        }
        _ => *receipt = other.clone(),
    }
}

/// Windows that are played with one deployment, whose keys and frames cost more than its windows.
const WINDOWS: u64 = 20;

fn play(seed: u64, tally: &mut Tally) {
    let mut dice = Dice(ChaCha20Rng::seed_from_u64(seed));
    let controllers = 3 + u32::try_from(dice.below(3)).unwrap();
    let each = 1 + u32::try_from(dice.below(2)).unwrap();
    let mut evil = longer(WINDOWS, controllers, each, 1 + u8::try_from(seed % 16).unwrap());
    // A window of the same owners, under another roster.
    let mut elsewhere = long(controllers, each, 100 + u8::try_from(seed % 16).unwrap());
    let (draft, _) = gather(&mut elsewhere, |_, streams| streams);
    let all: Vec<u32> = (0..controllers).collect();
    let mut others = vec![try_receipt(&mut elsewhere, &draft, &all).unwrap()];
    for number in 0..WINDOWS {
        if number > 0 {
            advance(&mut evil);
        }
        match play_window(&mut evil, &mut dice, tally) {
            Err(why) => *tally.unopened.entry(why).or_default() += 1,
            Ok((receipt, expected)) => {
                let other = &others[dice.below(others.len())];
                publish_lies(&evil, (&receipt, &expected), other, &mut dice, tally);
                // Later ones may be replaced by it: an earlier window of the same plan.
                others.truncate(1);
                others.push(receipt);
            }
        }
    }
}

/// Whether a window that the members did not open is the service's own doing: it asked too few of them, or
/// had streams left out.
fn is_its_own_doing(why: WindowRefusalError, asked_all: bool, all_took_part: bool) -> bool {
    match why {
        WindowRefusalError::BelowQuorum { .. } => !asked_all,
        WindowRefusalError::PopulationTooSmall { .. } => !all_took_part,
        _ => false,
    }
}

/// A window whose service lies about sums: its receipt, and the truth. Or why the members did not open it.
fn play_window(
    evil: &mut Evil,
    dice: &mut Dice,
    tally: &mut Tally,
) -> Result<(Receipt, Vec<u64>), WindowRefusalError> {
    let controllers = evil.world.setup.controllers;
    let all = evil.report.complete.clone();
    let mut summoned = 0;
    let (draft, accepted) = gather(evil, |_, mut streams| {
        for stream in &mut streams {
            if dice.says(4) {
                let other = &all[dice.below(all.len())];
                damage(stream, other, dice);
            }
        }
        if dice.says(8) && !streams.is_empty() {
            streams.remove(0);
        }
        summoned += streams.len();
        streams
    });
    tally.left_out += u32::try_from(summoned - accepted.len()).unwrap();
    let mut members: Vec<u32> = (0..controllers).collect();
    if controllers > 3 && dice.says(2) {
        members.remove(dice.below(controllers as usize));
    }
    let (asked_all, all_took_part) =
        (members.len() == controllers as usize, accepted.len() == all.len());
    let receipt = try_receipt(evil, &draft, &members).inspect_err(|why| {
        assert!(is_its_own_doing(*why, asked_all, all_took_part), "an honest window: {why}");
    })?;
    let window = evil.report.window;
    let of_members = |at: &u32| members.contains(&evil.world.plan.streams[*at as usize].controller);
    let accepted: Vec<u32> = accepted.into_iter().filter(of_members).collect();
    let expected = truth_in(evil, &accepted, window);
    let row = receipt.verify(&evil.world.announced, window).unwrap();
    assert_eq!(row.words(), expected, "{window:?}");
    tally.held += 1;
    Ok((receipt, expected))
}

/// Receipts and rows that a lying service publishes in the place of the honest ones.
fn publish_lies(
    evil: &Evil,
    (receipt, expected): (&Receipt, &[u64]),
    other: &Receipt,
    dice: &mut Dice,
    tally: &mut Tally,
) {
    let (announced, window) = (&evil.world.announced, evil.report.window);
    let row = receipt.verify(announced, window).unwrap();
    for _ in 0..4 {
        let mut lied = receipt.clone();
        lie(evil, &mut lied, other, dice);
        match lied.verify(announced, window) {
            Ok(row) => assert_eq!(row.words(), expected, "{window:?}"),
            Err(_) => tally.refused += 1,
        }
        let mut words = expected.to_vec();
        let word = dice.below(words.len());
        words[word] ^= 1 << dice.below(64);
        assert!(row.check(&words, row.population()).is_err(), "{window:?}");
        tally.refused += 1;
    }
}

fn play_all(seeds: std::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    seeds.for_each(|seed| play(seed, &mut tally));
    tally
}

#[test]
fn a_hundred_windows_of_a_lying_service() {
    let tally = play_all(0..5);
    assert!(tally.held > 50 && tally.refused > 300 && tally.left_out > 30, "{tally:?}");
}

#[test]
#[ignore = "drill: 10,000 windows, minutes of one processor"]
fn ten_thousand_windows_of_a_lying_service() {
    let tally = play_all(1000..1500);
    println!("{tally:?}");
    assert!(tally.held > 5000 && tally.refused > 30_000, "{tally:?}");
}
