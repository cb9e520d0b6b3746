//! Delegated sums: the same windows open to the same sums under all faults, and wrong sums
//! open nothing.

use alpheus_encrypted_stream::coordinator::{Outcome, Timing, WindowReport, WindowResult};
use alpheus_encrypted_stream::error::ReleaseError;
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_time::Span;

use crate::protocol::adder::Adder;
use crate::protocol::net::Net;
use crate::protocol::simulation::{
    CALM, Draw, STORM, Simulation, TREASON, WINDOWS, Weather, setup, simulate_with,
};
use crate::protocol::world::{Setup, after, window};
use crate::protocol::{horizon, neighbours, noise, sparse_storms};

/// Outcomes as those of a coordinator that adds up itself, if all streams were reported.
fn as_undelegated(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    for outcome in &mut outcomes {
        assert_eq!(outcome.unreported.take(), Some(0));
    }
    outcomes
}

/// Runs a seed with an adder. Every window gets exactly one set, whether it opens or not.
fn delegated(world: Draw, seed: u64, weather: Weather, moves: usize) -> Simulation {
    let run = simulate_with(world, seed, weather, moves, Some(Adder::default()));
    let sets = run.adder.as_ref().unwrap().windows();
    let ended: Vec<_> = run.outcomes.keys().copied().collect();
    assert_eq!(sets.into_iter().collect::<Vec<_>>(), ended, "seed {seed}");
    // The adder keeps nothing of windows that failed, whenever that was.
    for (start, outcomes) in &run.outcomes {
        let opens = !run.adder.as_ref().unwrap().sets[start].controllers.is_empty();
        assert_eq!(opens, outcomes[0].result.is_ok(), "seed {seed}: {start:?}");
    }
    run
}

#[test]
fn without_faults_delegated_sums_yield_the_same_outcomes() {
    let worlds: [(Draw, u64); 3] =
        [(setup, 12), (sparse_storms::small, 4), (horizon::neighbours, 3)];
    for (world, seeds) in worlds {
        for seed in 0..seeds {
            let own = simulate_with(world, seed, CALM, 0, None);
            let others = delegated(world, seed, CALM, 0);
            let all = |run: &Simulation| -> Vec<Outcome> {
                run.outcomes.values().flatten().cloned().collect()
            };
            assert_eq!(as_undelegated(all(&others)), all(&own), "seed {seed}");
            assert_eq!(others.opened(), WINDOWS as usize, "seed {seed}");
        }
    }
}

#[test]
fn under_faults_each_window_opens_once_and_correctly() {
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

/// A window whose set and answers were all sent to the adder, with its sums.
fn waiting(controllers: u32) -> (Net, Vec<u64>, Vec<u64>) {
    let mut net = Net::delegating(Setup::new(controllers));
    net.close(0);
    assert_eq!((net.coordinator.under_way(), net.outcomes.len()), (1, 0));
    let sums = net.adder.as_ref().unwrap().sums(&net.world);
    let [(start, ciphertexts, tokens)] = <[_; 1]>::try_from(sums).unwrap();
    assert_eq!(start, window(0).start);
    (net, ciphertexts, tokens)
}

/// How the window ends with these sums. Nothing else comes of it.
fn ends(net: &mut Net, ciphertexts: &[u64], tokens: &[u64]) -> Result<WindowResult, ReleaseError> {
    for _ in 0..2 {
        let step = net.coordinator.handle_sums(window(0).start, ciphertexts, tokens);
        net.run(after(0), step);
        assert_eq!((net.outcomes.len(), net.coordinator.under_way()), (1, 0));
    }
    net.outcomes[0].result.clone()
}

#[test]
fn a_window_opens_only_on_its_own_sums_and_only_once() {
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
fn noise_neighbours_and_sealed_results_need_nothing_from_the_adder() {
    let sealed = |controllers| Setup { sealed: true, ..Setup::new(controllers) };
    for setup in [noise::four(1, 1_000_000), neighbours::setup(), sealed(1), sealed(3)] {
        let (mut own, mut others) = (Net::new(setup.clone()), Net::delegating(setup));
        own.close(0);
        others.close(0);
        for (start, ciphertexts, tokens) in others.adder.as_ref().unwrap().sums(&others.world) {
            let step = others.coordinator.handle_sums(start, &ciphertexts, &tokens);
            others.run(after(0), step);
        }
        assert!(own.outcomes[0].result.is_ok());
        assert_eq!(as_undelegated(others.outcomes), own.outcomes);
    }
}

#[test]
fn wrong_sums_open_nothing() {
    let (mut net, mut ciphertexts, tokens) = waiting(3);
    *ciphertexts.last_mut().unwrap() ^= 1;
    assert_eq!(ends(&mut net, &ciphertexts, &tokens), Err(ReleaseError::CheckWord));
    // Foreign sums do not prevent the window's own sums from opening it.
    let (mut net, ciphertexts, tokens) = waiting(3);
    for (some, others) in [(&ciphertexts[1..], &tokens[..]), (&ciphertexts[..], &tokens[1..])] {
        assert!(net.coordinator.handle_sums(window(0).start, some, others).is_empty());
    }
    net.coordinator.reject_sums(window(0).start);
    let opened = ends(&mut net, &ciphertexts, &tokens).unwrap();
    assert_eq!(opened.outputs, net.world.truth(0..3, 0));
    let (mut net, ..) = waiting(3);
    net.coordinator.reject_sums(window(0).start);
    net.timeout(after(0).plus(Timing::default().sums));
    assert_eq!(net.outcomes[0].result, Err(ReleaseError::OtherSums));
    // Sums of a window without a set are ignored.
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(1);
    assert!(net.coordinator.handle_sums(window(1).start, &[], &[]).is_empty());
    assert_eq!(net.coordinator.under_way(), 1);
}

#[test]
fn a_window_waits_a_limited_time_for_sums_and_then_names_the_job() {
    let (mut net, ..) = waiting(3);
    let patience = Timing::default().sums;
    net.timeout(after(0).plus(Span(patience.0 - 1)));
    assert_eq!(net.coordinator.under_way(), 1);
    net.timeout(after(0).plus(patience));
    let failure = net.outcomes[0].result.clone().unwrap_err();
    assert_eq!(failure, ReleaseError::SumsLate);
    assert!(failure.to_string().contains("the job"), "{failure}");
    let sets = &net.adder.as_ref().unwrap().sets;
    assert!(sets[&window(0).start].controllers.is_empty(), "the adder waits for ever");
}

#[test]
fn a_restarted_service_accepts_sums_even_if_controllers_are_gone() {
    for controllers in [1, 3] {
        let (mut net, ciphertexts, tokens) = waiting(controllers);
        net.asleep = (0..controllers).collect();
        net.restart_service(after(0).plus(Span::seconds(1)));
        let opened = ends(&mut net, &ciphertexts, &tokens).unwrap();
        assert_eq!(opened.outputs, net.world.truth(0..controllers as usize, 0));
    }
}

#[test]
fn an_unreported_window_ends_with_an_empty_set_and_stays_ended() {
    let mut net = Net::delegating(Setup::new(3));
    let whole = net.world.report(0);
    let silent =
        WindowReport { complete: vec![], excluded: vec![], unreported: 3, ..whole.clone() };
    let step = net.coordinator.handle_window_report(&silent, after(0));
    net.run(after(0), step);
    assert_eq!(net.outcomes[0].result, Err(ReleaseError::NothingReported));
    assert_eq!(net.outcomes[0].unreported, Some(3));
    let sets = net.adder.as_ref().unwrap().sets.clone();
    assert!(sets[&window(0).start].controllers.is_empty());
    // A later report changes nothing, also after a restart.
    net.restart_service(after(0).plus(Span(1)));
    assert!(net.coordinator.handle_window_report(&whole, after(0).plus(Span(2))).is_empty());
    assert_eq!(net.adder.as_ref().unwrap().sets, sets);
}

#[test]
fn unreported_streams_are_counted_across_a_restart() {
    let mut net = Net::delegating(Setup::new(3));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    let report = WindowReport { unreported: 7, ..net.world.report(0) };
    let step = net.coordinator.handle_window_report(&report, after(0));
    net.run(after(0), step);
    net.lost = |_, _| false;
    net.restart_service(after(0).plus(Span(1)));
    for (start, ciphertexts, tokens) in net.adder.as_ref().unwrap().sums(&net.world) {
        let step = net.coordinator.handle_sums(start, &ciphertexts, &tokens);
        net.run(after(0), step);
    }
    assert!(net.outcomes[0].result.is_ok());
    assert_eq!(net.outcomes[0].unreported, Some(7));
}

#[test]
fn streams_that_complete_after_the_membership_are_not_summoned() {
    let mut net = Net::new(Setup::new(3));
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::Membership { .. });
    let whole = net.world.report(0);
    let mut early = whole.clone();
    early.complete.retain(|stream| stream.position != 2);
    let step = net.coordinator.handle_window_report(&early, after(0));
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
    let step = net.coordinator.handle_window_report(&whole, after(0).plus(Span(2)));
    net.run(after(0).plus(Span(2)), step);
    let [first, again] = summons(&net)[..] else { panic!("two summons") };
    assert_eq!(first, again, "to the same summons it says what M holds");
}
