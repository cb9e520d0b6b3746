//! Where others add up: the same windows open to the same sums, whatever goes wrong, and
//! what others say wrongly opens nothing.

use alpheus_encrypted_stream::coordinator::{Opened, Outcome, Timing, WindowReport};
use alpheus_encrypted_stream::error::Failure;
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_policy::time::Span;

use crate::adder::Adder;
use crate::net::Net;
use crate::simulation::{
    CALM, Draw, STORM, Simulation, TREASON, WINDOWS, Weather, setup, simulate_with,
};
use crate::world::{Setup, after, window};
use crate::{horizon, neighbours, noise, sparse_storms};

/// Outcomes as of a coordinator that adds up itself, where all streams were told of.
fn told(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    for outcome in &mut outcomes {
        assert_eq!(outcome.untold.take(), Some(0));
    }
    outcomes
}

/// Runs a seed in which others add up; every window has one set, open or not.
fn delegated(world: Draw, seed: u64, weather: Weather, moves: usize) -> Simulation {
    let run = simulate_with(world, seed, weather, moves, Some(Adder::default()));
    let sets = run.adder.as_ref().unwrap().windows();
    let ended: Vec<_> = run.outcomes.keys().copied().collect();
    assert_eq!(sets.into_iter().collect::<Vec<_>>(), ended, "seed {seed}");
    run
}

#[test]
fn in_calm_weather_outcomes_are_those_of_a_coordinator_that_adds_up() {
    let worlds: [(Draw, u64); 3] =
        [(setup, 12), (sparse_storms::small, 4), (horizon::neighbours, 3)];
    for (world, seeds) in worlds {
        for seed in 0..seeds {
            let own = simulate_with(world, seed, CALM, 0, None);
            let others = delegated(world, seed, CALM, 0);
            let all = |run: &Simulation| -> Vec<Outcome> {
                run.outcomes.values().flatten().cloned().collect()
            };
            assert_eq!(told(all(&others)), all(&own), "seed {seed}");
            assert_eq!(others.opened(), WINDOWS as usize, "seed {seed}");
        }
    }
}

#[test]
fn in_a_storm_each_window_opens_once_and_right() {
    let open = |run: Simulation| run.opened();
    let opened: usize = (700..750).map(|seed| open(delegated(setup, seed, STORM, 400))).sum();
    assert!(opened > 50 * WINDOWS as usize / 2, "only {opened} windows opened");
    let sparse = |seed| open(delegated(sparse_storms::small, seed, STORM, 400));
    let opened: usize = (700..710).map(sparse).sum();
    assert!(opened > 10 * WINDOWS as usize / 2, "only {opened} windows opened");
    let totals = |seed| open(delegated(horizon::neighbours, seed, STORM, 400));
    let opened: usize = (700..708).map(totals).sum();
    assert!(opened > 8 * WINDOWS as usize / 2, "only {opened} windows opened");
    (800..820).for_each(|seed| drop(delegated(setup, seed, TREASON, 400)));
}

/// A window whose set and answers were all given, and its sums.
fn waiting(controllers: u32) -> (Net, Vec<u64>, Vec<u64>) {
    let mut net = Net::delegating(Setup::new(controllers));
    net.close(0);
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (1, 0));
    let sums = net.adder.as_ref().unwrap().sums(&net.world);
    let [(start, ciphertexts, tokens)] = <[_; 1]>::try_from(sums).unwrap();
    assert_eq!(start, window(0).start);
    (net, ciphertexts, tokens)
}

/// How the window ended on these sums, and that nothing more becomes of it.
fn ends(net: &mut Net, ciphertexts: &[u64], tokens: &[u64]) -> Result<Opened, Failure> {
    for _ in 0..2 {
        let step = net.coordinator.summed(window(0).start, ciphertexts, tokens);
        net.run(after(0), step);
        assert_eq!((net.outcomes.len(), net.coordinator.under_way()), (1, 0));
    }
    net.outcomes[0].result.clone()
}

#[test]
fn a_window_opens_on_its_sums_alone_and_once() {
    for controllers in [1, 3] {
        let (mut net, ciphertexts, tokens) = waiting(controllers);
        let set = net.coordinator.sum_set(window(0).start).unwrap();
        assert_eq!(set.masked, controllers > 1);
        assert_eq!(set.controllers, (0..controllers).collect::<Vec<_>>());
        let opened = ends(&mut net, &ciphertexts, &tokens).unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..controllers as usize, 0));
        assert_eq!(opened.population, controllers);
    }
}

#[test]
fn noise_neighbours_and_sealed_results_need_nothing_of_who_adds_up() {
    let sealed = |controllers| Setup { sealed: true, ..Setup::new(controllers) };
    for setup in [noise::four(1, 1_000_000), neighbours::setup(), sealed(1), sealed(3)] {
        let (mut own, mut others) = (Net::new(setup.clone()), Net::delegating(setup));
        own.close(0);
        others.close(0);
        for (start, ciphertexts, tokens) in others.adder.as_ref().unwrap().sums(&others.world) {
            let step = others.coordinator.summed(start, &ciphertexts, &tokens);
            others.run(after(0), step);
        }
        assert!(own.outcomes[0].result.is_ok());
        assert_eq!(told(others.outcomes), own.outcomes);
    }
}

#[test]
fn sums_that_are_wrong_open_nothing() {
    let (mut net, mut ciphertexts, tokens) = waiting(3);
    *ciphertexts.last_mut().unwrap() ^= 1;
    assert_eq!(ends(&mut net, &ciphertexts, &tokens), Err(Failure::CheckWord));
    // Sums of something else do not keep the window's own from opening it.
    let (mut net, ciphertexts, tokens) = waiting(3);
    for (some, others) in [(&ciphertexts[1..], &tokens[..]), (&ciphertexts[..], &tokens[1..])] {
        assert!(net.coordinator.summed(window(0).start, some, others).is_empty());
    }
    net.coordinator.summed_others(window(0).start);
    let opened = ends(&mut net, &ciphertexts, &tokens).unwrap();
    assert_eq!(opened.outputs, net.world.truth(0..3, 0));
    let (mut net, ..) = waiting(3);
    net.coordinator.summed_others(window(0).start);
    net.timeout(after(0).plus(Timing::default().sums));
    assert_eq!(net.outcomes[0].result, Err(Failure::OtherSums));
    // Of a window without a set nothing is believed.
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(1);
    assert!(net.coordinator.summed(window(1).start, &[], &[]).is_empty());
    assert_eq!(net.coordinator.under_way(), 1);
}

#[test]
fn sums_are_waited_for_so_long_and_a_window_without_them_names_the_job() {
    let (mut net, ..) = waiting(3);
    let patience = Timing::default().sums;
    net.timeout(after(0).plus(Span(patience.0 - 1)));
    assert_eq!(net.coordinator.under_way(), 1);
    net.timeout(after(0).plus(patience));
    let failure = net.outcomes[0].result.clone().unwrap_err();
    assert_eq!(failure, Failure::SumsLate);
    assert!(failure.to_string().contains("the job"), "{failure}");
}

#[test]
fn a_service_that_comes_back_takes_the_sums_though_controllers_are_gone() {
    for controllers in [1, 3] {
        let (mut net, ciphertexts, tokens) = waiting(controllers);
        net.asleep = (0..controllers).collect();
        net.restart_service(after(0).plus(Span::seconds(1)));
        let opened = ends(&mut net, &ciphertexts, &tokens).unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..controllers as usize, 0));
    }
}

#[test]
fn a_window_that_nothing_was_told_of_ends_with_its_set_and_stays_so() {
    let mut net = Net::delegating(Setup::new(3));
    let whole = net.world.report(0);
    let silent = WindowReport { complete: vec![], excluded: vec![], untold: 3, ..whole.clone() };
    let step = net.coordinator.window_closed(after(0), &silent);
    net.run(after(0), step);
    assert_eq!(net.outcomes[0].result, Err(Failure::Untold));
    assert_eq!(net.outcomes[0].untold, Some(3));
    let sets = net.adder.as_ref().unwrap().sets.clone();
    assert!(sets[&window(0).start].controllers.is_empty());
    // What is told later changes nothing, also after a restart.
    net.restart_service(after(0).plus(Span(1)));
    assert!(net.coordinator.window_closed(after(0).plus(Span(2)), &whole).is_empty());
    assert_eq!(net.adder.as_ref().unwrap().sets, sets);
}

#[test]
fn streams_that_nothing_was_told_of_are_counted_across_a_restart() {
    let mut net = Net::delegating(Setup::new(3));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    let report = WindowReport { untold: 7, ..net.world.report(0) };
    let step = net.coordinator.window_closed(after(0), &report);
    net.run(after(0), step);
    net.lost = |_, _| false;
    net.restart_service(after(0).plus(Span(1)));
    for (start, ciphertexts, tokens) in net.adder.as_ref().unwrap().sums(&net.world) {
        let step = net.coordinator.summed(start, &ciphertexts, &tokens);
        net.run(after(0), step);
    }
    assert!(net.outcomes[0].result.is_ok());
    assert_eq!(net.outcomes[0].untold, Some(7));
}

#[test]
fn what_becomes_complete_after_membership_is_not_asked_for() {
    let mut net = Net::new(Setup::new(3));
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::Membership { .. });
    let whole = net.world.report(0);
    let mut early = whole.clone();
    early.complete.retain(|stream| stream.position != 2);
    let step = net.coordinator.window_closed(after(0), &early);
    net.run(after(0), step);
    let summons = |net: &Net| {
        let sent = net.sent.iter().filter(|(to, _)| *to == 2);
        let summons = sent.filter_map(|(_, message)| match message {
            ServiceMessage::Summons(signed) => Some(signed.digest()),
            _ => None,
        });
        summons.collect::<Vec<_>>()
    };
    net.restart_service(after(0).plus(Span(1)));
    let step = net.coordinator.window_closed(after(0).plus(Span(2)), &whole);
    net.run(after(0).plus(Span(2)), step);
    let [first, again] = summons(&net)[..] else { panic!("two summons") };
    assert_eq!(first, again, "to the same summons it says what M holds");
}
