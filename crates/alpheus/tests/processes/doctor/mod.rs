//! `alpheus doctor` in front of real processes: each fault is injected among others, blind to the doctor, who
//! names all of them and nothing else.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod cards;
pub(crate) mod clinic;
pub(crate) mod patients;

use crate::common::deployment::{Site, free};
use chacha20::ChaCha20Rng;
use clinic::{Chart, Clinic, Local};
use patients::{LOCAL, ROUNDS};
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;

/// Another order of rounds is another number.
const SEED: u64 = 7;

/// A number below `most`.
fn draw(rng: &mut ChaCha20Rng, most: usize) -> usize {
    usize::try_from(rng.next_u64() % most as u64).unwrap()
}

/// In an order of its own.
fn shuffled<T: Copy>(rng: &mut ChaCha20Rng, all: &[T]) -> Vec<T> {
    let mut left = all.to_vec();
    (0..all.len()).map(|_| left.swap_remove(draw(rng, left.len()))).collect()
}

/// Ten faults of the deployment, each together with a random choice of six that its caller has made himself;
/// four more that keep the caller from seeing anything else.
#[test]
fn each_of_twenty_faults_is_named_among_others() {
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let mut clinic = Clinic::open();
    let mut chart = Chart::default();
    clinic.examine(&mut chart, &Local::default(), &BTreeSet::new());
    for local in patients::BLINDING {
        let (fault, own) = (local.0, local.1(&clinic));
        clinic.examine(&mut chart, &own, &BTreeSet::from([fault]));
    }
    let (last, others) = ROUNDS.split_last().unwrap();
    for round in shuffled(&mut rng, others).into_iter().chain([*last]) {
        let mut own = Local::default();
        let mut expected = BTreeSet::from([round.fault]);
        for (fault, change) in LOCAL {
            // Every one has its turn: with the first round all, then one in three.
            if chart.rounds() == 1 + patients::BLINDING.len() || draw(&mut rng, 3) == 0 {
                change(&clinic, &mut own);
                expected.insert(*fault);
            }
        }
        eprintln!("round: {expected:?}");
        clinic.round(&mut chart, round, &own, &expected);
    }
    let seen: BTreeSet<&str> = chart.named();
    // The last one is what no other fault explains.
    let all = alpheus_doctor::Fault::ALL.iter().map(|fault| fault.id());
    let all: BTreeSet<&str> = all.filter(|fault| *fault != "part-not-ready").collect();
    assert_eq!(seen, all, "each of twenty was injected");
    eprintln!("{chart:?}");
    assert_eq!((chart.missed, chart.false_alarms), (0, 0), "{chart:?}");
}

#[test]
fn a_part_that_is_not_ready_is_named() {
    let place = Site::new();
    let (host, nowhere) = (free(), free());
    let _host = place.controller("a", &host, &format!("https://{nowhere}"));
    let args = ["doctor", "--identity", "pki/owner-a", "--controller", &format!("https://{host}")];
    let output = place.run(&args);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("part-not-ready") && said.contains("`service` of host-a"), "{said}");
}
