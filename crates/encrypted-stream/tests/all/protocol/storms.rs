//! Seeded runs with faults of every kind, with a coordinator that adds up itself.

use crate::protocol::simulation::{CALM, STORM, TREASON, WINDOWS, Weather, setup, simulate_in};

fn simulate(seed: u64, weather: Weather, moves: usize) -> usize {
    simulate_in(setup, seed, weather, moves)
}

#[test]
fn without_faults_every_window_opens() {
    for seed in 0..10 {
        assert_eq!(simulate(seed, CALM, 0), WINDOWS as usize, "seed {seed}");
    }
}

#[test]
fn under_faults_nothing_is_released_twice_and_results_are_correct() {
    let opened: usize = (100..180).map(|seed| simulate(seed, STORM, 400)).sum();
    assert!(opened > 80 * WINDOWS as usize / 2, "only {opened} windows opened");
}

#[test]
fn with_a_lying_service_and_old_copies_nothing_is_released_twice() {
    let opened: usize = (200..280).map(|seed| simulate(seed, TREASON, 400)).sum();
    assert!(opened > 0, "lies may cost every window, but not in every run");
}
