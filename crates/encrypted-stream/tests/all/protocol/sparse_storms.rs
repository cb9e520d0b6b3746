//! The seeded runs of [`simulation`](crate::protocol::simulation) with a sparse graph, and
//! with a graph in which few controllers all pick each other.

use alpheus_policy::plan::{Fraction, MaskStrategy};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;

use crate::protocol::neighbours;
use crate::protocol::simulation::{CALM, GUSTS, STORM, TREASON, WINDOWS, simulate_in};
use crate::protocol::world::Setup;

/// As many as a graph needs to be sparse.
fn sparse(_: &mut ChaCha20Rng, seed: u64) -> Setup {
    Setup { seed: seed as u8, windows: WINDOWS, dropout: Fraction::FIFTH, ..neighbours::setup() }
}

/// Few controllers, of which a third may collude.
pub fn small(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    let controllers = [3, 5, 6][rng.next_u64() as usize % 3];
    let masks = MaskStrategy::Neighbours { picks: controllers - 1, cut_off: 0 };
    let (alpha, seed) = (Fraction::THIRD, seed as u8);
    Setup { masks, alpha, seed, windows: WINDOWS, ..Setup::new(controllers) }
}

#[test]
fn without_faults_every_window_opens() {
    for (seed, world) in [(0, sparse as fn(&mut _, _) -> _), (1, small), (2, small)] {
        assert_eq!(simulate_in(world, seed, CALM, 0), WINDOWS as usize, "seed {seed}");
    }
}

#[test]
fn under_faults_nothing_is_released_twice_and_results_are_correct() {
    let opened: usize = (300..330).map(|seed| simulate_in(small, seed, STORM, 400)).sum();
    assert!(opened > 30 * WINDOWS as usize / 2, "only {opened} windows opened");
    let opened: usize = (300..304).map(|seed| simulate_in(sparse, seed, GUSTS, 2500)).sum();
    assert!(opened > 4, "only {opened} windows opened");
}

#[test]
fn with_a_lying_service_and_old_copies_nothing_is_released_twice() {
    let opened: usize = (400..430).map(|seed| simulate_in(small, seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
    (400..403).for_each(|seed| {
        simulate_in(sparse, seed, TREASON, 1500);
    });
}
