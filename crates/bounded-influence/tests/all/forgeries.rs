//! Random forgeries at the full size of a plan with count, sum and squares of 32 bits.

use crate::world::{World, cell, digest};
use alpheus_bounded_influence::check::{FaultError, FaultyError};
use alpheus_bounded_influence::terms::{Relation, Terms};
use alpheus_crypto::group::{Element, SecretScalar};
use chacha20::{ChaCha20Rng, rand_core::Rng, rand_core::SeedableRng};

fn terms() -> Terms {
    let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest: 0, highest: 1000 };
    let cells = [cell(0, 3600), cell(0, 3_600_000), cell(0, 3_600_000_000)];
    Terms::new(&cells, &[relation], 1000, 10).unwrap()
}

/// Changes one part of a valid message at random; or makes all of a proof's parts up.
fn forge(proof: &mut [u8], commitments: &mut [Element], rng: &mut ChaCha20Rng) {
    let (parts, cells) = (proof.len() / 32, commitments.len());
    let mut element = || {
        *Element::from_hash("alpheus/test-forged/v1", &[&rng.next_u64().to_be_bytes()]).as_bytes()
    };
    let random = [element(), element()];
    let scalar = *SecretScalar::random(rng).expose().expose();
    match rng.next_u32() % 4 {
        // One byte of the proof.
        0 => proof[rng.next_u32() as usize % (32 * parts)] ^= 1 << (rng.next_u32() % 8),
        // One part of it, by a valid element or scalar.
        1 => {
            let at = rng.next_u32() as usize % parts;
            let part = if [0, 4, 5].contains(&at) { scalar } else { random[0] };
            proof[32 * at..32 * (at + 1)].copy_from_slice(&part);
        }
        // A commitment.
        2 => {
            commitments[rng.next_u32() as usize % cells] = Element::from_bytes(&random[0]).unwrap()
        }
        // All of it.
        _ => (0..parts).for_each(|at| {
            let seed = rng.next_u64().to_be_bytes();
            let element = *Element::from_hash("alpheus/test-forged/v1", &[&seed]).as_bytes();
            let part = if [0, 4, 5].contains(&at) { scalar } else { element };
            proof[32 * at..32 * (at + 1)].copy_from_slice(&part);
        }),
    }
}

fn none_of(forgeries: u64, seed: u64) {
    let world = World::new(&terms(), 1, 50);
    let honest = world.contribution(0, &[&[60, 30_000, 20_000_000]]);
    let rng = &mut ChaCha20Rng::from_seed(digest(&[b"forgeries", &seed.to_be_bytes()]).0);
    let member = World::member(0, 1);
    let mut faults = 0;
    for _ in 0..forgeries {
        let mut forged = honest.clone();
        let owner = &mut forged.owners[0];
        forge(&mut owner.proof, &mut owner.commitments, rng);
        assert_ne!(forged, honest);
        let found = world.check(&[(member, world.sign(0, &forged))]);
        assert!(found.bounded.is_empty());
        faults +=
            u64::from(found.faulty == [FaultyError { controller: 0, fault: FaultError::Range }]);
    }
    assert_eq!(faults, forgeries);
    let found = world.check(&[(member, world.sign(0, &honest))]);
    assert_eq!(found.bounded.len(), 1);
}

#[test]
fn no_random_forgery_is_accepted() {
    none_of(1_000, 0);
}

/// `ALPHEUS_FORGERIES` says how many. All processors share them.
#[test]
#[ignore = "drill: a million forgeries, most of an hour of a processor"]
fn none_of_a_million_random_forgeries_is_accepted() {
    let many: u64 =
        std::env::var("ALPHEUS_FORGERIES").map_or(1_000_000, |many| many.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, |many| many.get() as u64);
    std::thread::scope(|scope| {
        // Other forgeries than those of each day.
        (1..=threads)
            .for_each(|seed| drop(scope.spawn(move || none_of(many.div_ceil(threads), seed))));
    });
}
