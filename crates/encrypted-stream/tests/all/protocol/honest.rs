//! Honest runs: windows open to the right sums, or fail with a reason.

use crate::protocol::identities::owner;
use crate::protocol::net::Net;
use crate::protocol::withdrawals::revoke;
use crate::protocol::world::{EPOCH, Setup, after, policy, stream_id, window};
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage, WindowOutcome};
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_time::{Span, Timestamp};

pub fn opened(net: &Net, number: usize) -> (Vec<u64>, u32) {
    let outcome = &net.outcomes[number];
    let opened = outcome.result.as_ref().unwrap_or_else(|failure| panic!("{failure}"));
    (opened.outputs.clone(), opened.population)
}

#[test]
fn windows_open_to_the_sum_with_one_two_three_and_five_controllers() {
    for controllers in [1, 2, 3, 5] {
        let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(controllers) });
        for number in 0..3 {
            net.close(number);
            let all = 0..2 * controllers as usize;
            let expected = (net.world.truth(all, number), 2 * controllers);
            assert_eq!(opened(&net, number as usize), expected, "N = {controllers}");
        }
        assert_eq!(net.outcomes.len(), 3);
    }
}

#[test]
fn windows_open_with_sixty_controllers_under_each_strategy() {
    let strategies =
        [MaskStrategy::Clique, MaskStrategy::Dream { bits: 1 }, MaskStrategy::Epoch { bits: 1 }];
    for masks in strategies {
        // All sixty must be present for such a sparse graph to be safe.
        let mut net = Net::new(Setup { masks, minimum: 60, ..Setup::new(60) });
        for number in 0..2 {
            net.close(number);
            assert_eq!(
                opened(&net, number as usize).0,
                net.world.truth(0..60, number),
                "{masks:?}"
            );
        }
    }
}

#[test]
fn a_single_controller_sends_its_token_alone_and_never_an_opening() {
    let mut net = Net::new(Setup { streams_each: 3, ..Setup::new(1) });
    net.close(0);
    let openings = net.heard.iter().filter(|(_, m)| matches!(m, ControllerMessage::Opening(_)));
    assert_eq!(openings.count(), 0);
    assert_eq!(opened(&net, 0), (net.world.truth(0..3, 0), 3));
}

#[test]
fn a_controller_that_does_not_answer_is_left_out_with_a_reason() {
    let mut net = Net::new(Setup::new(5));
    net.asleep = vec![2];
    net.close(0);
    assert!(net.outcomes.is_empty(), "it waits for the deadline");
    net.timeout(after(0).plus(Span::seconds(2)));
    assert_eq!(opened(&net, 0), (net.world.truth([0, 1, 3, 4], 0), 4));
    assert_eq!(net.outcomes[0].excluded[&ExclusionError::ControllerAbsent], 1);
}

#[test]
fn too_many_absent_controllers_lose_the_quorum() {
    let mut net = Net::new(Setup::new(5));
    net.asleep = vec![0, 1, 2];
    net.close(0);
    net.timeout(after(0).plus(Span::seconds(2)));
    assert_eq!(net.outcomes[0].result, Err(ReleaseError::QuorumLost { held: 2, needed: 3 }));
}

#[test]
fn a_controller_that_falls_asleep_after_its_presence_is_left_out_of_the_opening() {
    let mut net =
        Net::new(Setup { dropout: Fraction { numerator: 2, denominator: 5 }, ..Setup::new(5) });
    let report = net.world.report(0);
    let now = after(0);
    // Deliver presences by hand, then put one controller to sleep.
    let step = net.coordinator.handle_window_report(&report, now);
    net.sleep_after_presence = vec![4];
    net.run(now, step);
    assert!(net.outcomes.is_empty());
    net.timeout(now.plus(Span::seconds(2)));
    assert_eq!(opened(&net, 0), (net.world.truth([0, 1, 2, 3], 0), 4));
    // Its late token is dropped and changes nothing.
    assert_eq!(net.outcomes.len(), 1);
}

#[test]
fn a_minimum_of_ten_needs_fourteen_of_one_owner_when_a_third_may_collude() {
    for (controllers, opens) in [(13, false), (14, true)] {
        let setup = Setup { minimum: 10, alpha: Fraction::THIRD, ..Setup::new(controllers) };
        let mut net = Net::new(setup);
        net.close(0);
        assert_eq!(net.outcomes[0].result.is_ok(), opens, "N = {controllers}");
    }
}

#[test]
fn a_window_that_is_reported_again_starts_nothing() {
    let mut net = Net::new(Setup::new(3));
    let report = net.world.report(0);
    let first = net.coordinator.handle_window_report(&report, after(0));
    assert!(net.coordinator.handle_window_report(&report, after(0)).is_empty(), "it is under way");
    net.run(after(0), first);
    assert_eq!(net.outcomes.len(), 1);
    assert!(net.coordinator.handle_window_report(&report, after(0)).is_empty(), "it has ended");
    let mut shifted = report;
    shifted.window.start = Timestamp(shifted.window.start.0 + 1);
    assert!(
        net.coordinator.handle_window_report(&shifted, after(0)).is_empty(),
        "it is not a window of the plan"
    );
}

#[test]
fn silent_owners_are_counted_apart_from_the_population() {
    let mut net = Net::silent(Setup { streams_each: 2, ..Setup::new(3) }, |stream, _| stream != 1);
    net.close(0);
    let result = net.outcomes[0].result.as_ref().unwrap();
    assert_eq!((result.population, result.silent), (5, 1));
    assert_eq!(result.outputs, net.world.truth([0, 2, 3, 4, 5], 0));
}

#[test]
fn a_window_with_too_few_owners_fails_for_that_reason() {
    let mut net = Net::silent(Setup { minimum: 3, ..Setup::new(3) }, |stream, window| {
        (stream, window) != (1, 0)
    });
    net.close(0);
    let failure = ReleaseError::PopulationTooSmall { counted: 2, needed: 3 };
    assert_eq!(net.outcomes[0].result, Err(failure));
    let tokens = net.heard.iter().filter(|(_, m)| matches!(m, ControllerMessage::Token(_)));
    assert_eq!(tokens.count(), 0, "nothing was asked that could not open");
    // How few had data is no business of those who read why, nor of hosts whose owners had none.
    assert_eq!(failure.to_string(), "population below the minimum 3");
    let sent = WindowOutcome::Failed(ReleaseError::PopulationTooSmall { counted: 0, needed: 3 });
    let outcome = |message: &ServiceMessage| match message {
        ServiceMessage::Closing(closing) => {
            Some(closing.open(&net.world.service.verifying_key()).unwrap().into_inner().outcome)
        }
        _ => None,
    };
    let closings: Vec<_> = net.sent.iter().filter_map(|(_, message)| outcome(message)).collect();
    assert!(!closings.is_empty() && closings.iter().all(|own| *own == sent), "{closings:?}");
}

#[test]
fn what_is_said_of_a_window_that_did_not_open_counts_nobody() {
    let refused = WindowRefusalError::PopulationTooSmall { counted: 7, needed: 9 };
    let quorum = WindowRefusalError::BelowQuorum { held: 7, needed: 9 };
    for failure in [
        ReleaseError::PopulationTooSmall { counted: 7, needed: 9 },
        ReleaseError::QuorumLost { held: 7, needed: 9 },
        ReleaseError::ControllerRefused(refused),
        ReleaseError::ControllerRefused(quorum),
    ] {
        let (said, sent) = (failure.to_string(), format!("{:?}", failure.without_counts()));
        assert!(said.contains('9') && !said.contains('7'), "{said}");
        assert!(sent.contains('9') && !sent.contains('7'), "{sent}");
    }
}

#[test]
fn the_next_window_shows_that_an_owner_changed_the_policy() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(3) });
    net.close(0);
    let stream = stream_id(1);
    let mut closed = policy(&net.world.setup);
    closed.attributes[0].alternatives.clear();
    let signed = net.world.annotate(stream, 2, closed);
    let owner = owner(stream);
    let step = net.controllers[0].annotate(&signed, &owner, after(0)).unwrap();
    step.commit(&mut net.store).unwrap();
    net.close(1);
    assert_eq!(opened(&net, 1), (net.world.truth([0, 2, 3, 4, 5], 1), 5));
    assert_eq!(net.outcomes[1].excluded[&ExclusionError::Policy], 1);
}

#[test]
fn owners_can_read_which_releases_they_took_part_in() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    net.close(0);
    let id = net.controllers[0].id();
    let lines: Vec<_> = net
        .store
        .values(Scope::Controller(id))
        .into_iter()
        .filter_map(|value| match StampedRecord::read(value).unwrap().record {
            Record::Log(line) => Some(line),
            _ => None,
        })
        .filter(|line| line.concerns(&stream_id(0)))
        .collect();
    let released = lines.iter().any(|line| match &line.event {
        LogEvent::Released { consumer, window: of, population, .. } => {
            consumer == "tests" && *of == window(0) && *population == 4
        }
        _ => false,
    });
    assert!(released, "{lines:?}");
    assert!(lines.iter().any(|line| matches!(line.event, LogEvent::Ended { .. })));
    assert!(lines.iter().all(|line| !line.concerns(&stream_id(3))));
}

#[test]
fn a_restored_host_continues_where_its_ledger_ends() {
    let mut net = Net::new(Setup { windows: 4, ..Setup::new(3) });
    net.close(0);
    net.restore_controllers(after(1), true);
    // Window 1 had closed on the restored clock, but the fence shows that nothing of it can
    // have been sent.
    net.close(1);
    net.close(2);
    assert_eq!(opened(&net, 1).0, net.world.truth(0..3, 1));
    assert_eq!(opened(&net, 2).0, net.world.truth(0..3, 2));
}

#[test]
fn memory_and_ledger_stay_bounded_over_many_windows() {
    let mut net = Net::new(Setup { windows: 1200, ..Setup::new(2) });
    let mut sizes = Vec::new();
    for number in 0..1200 {
        net.close(number);
        let log = |value: &&[u8]| matches!(StampedRecord::read(value), Ok(s) if matches!(s.record, Record::Log(_)));
        if number % 400 == 399 {
            sizes.push(net.store.map.values().map(Vec::as_slice).filter(|v| !log(v)).count());
        }
        net.sent.clear();
        net.heard.clear();
    }
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(sizes.iter().all(|size| *size < 1000), "{sizes:?}");
}

#[test]
fn an_ended_plan_frees_its_attributes_except_for_released_spans() {
    let mut net = Net::new(Setup { windows: 4, ..Setup::new(2) });
    net.close(0);
    let again = net.plan_again(9, Timestamp(window(0).start.0));
    assert!(net.refused(&again), "the attribute is locked while the first plan runs");
    let step = net.coordinator.retire();
    net.run(after(0), step);
    assert!(!net.refused(&again), "the attribute is free");
    net.take_over(again);
    net.close(0);
    assert_eq!(net.outcomes.last().unwrap().excluded[&ExclusionError::Released], 2);
    net.close(1);
    assert_eq!(net.outcomes.last().unwrap().result.as_ref().unwrap().population, 2);
}

#[test]
fn owners_choices_survive_a_restart() {
    let mut net = Net::new(Setup { streams_each: 3, ..Setup::new(2) });
    let mut private = policy(&net.world.setup);
    private.attributes[0].alternatives.clear();
    let signed = net.world.annotate(stream_id(1), 2, private);
    let owner = owner(stream_id(1));
    let mut step = revoke(&mut net.controllers[0], after(0), stream_id(0));
    step.merge(net.controllers[0].annotate(&signed, &owner, after(0)).unwrap());
    step.commit(&mut net.store).unwrap();
    net.restore_controllers(Timestamp(EPOCH), true);
    net.close(0);
    assert_eq!(opened(&net, 0), (net.world.truth([2, 3, 4, 5], 0), 4));
    let excluded = &net.outcomes[0].excluded;
    assert_eq!((excluded[&ExclusionError::Revoked], excluded[&ExclusionError::Policy]), (1, 1));
}

#[test]
fn the_spans_of_an_ended_plan_survive_a_restart() {
    let mut net = Net::new(Setup { windows: 4, ..Setup::new(2) });
    net.close(0);
    let again = net.plan_again(9, Timestamp(window(0).start.0));
    net.restore_controllers(after(0), true);
    assert!(net.refused(&again), "the lock is there again");
    let step = net.coordinator.retire();
    net.run(after(0), step);
    net.restore_controllers(after(0), true);
    assert!(!net.refused(&again), "and is free again");
    net.take_over(again);
    net.close(0);
    assert_eq!(net.outcomes.last().unwrap().excluded[&ExclusionError::Released], 2);
}

#[test]
fn each_of_two_controllers_counts_only_its_own_owners_unless_they_trust_the_other() {
    let setup = || Setup { minimum: 2, alpha: Fraction::THIRD, ..Setup::new(2) };
    let mut net = Net::new(setup());
    net.close(0);
    let refused = WindowRefusalError::PopulationTooSmall { counted: 1, needed: 2 };
    assert_eq!(net.outcomes[0].result, Err(ReleaseError::ControllerRefused(refused)));
    let mut net = Net::new(setup());
    for number in 0..2 {
        let mut trusting = policy(&net.world.setup);
        trusting.attributes[0].alternatives[0].trusted = net.world.plan.roster.clone();
        let signed = net.world.annotate(stream_id(number), 2, trusting);
        let owner = owner(stream_id(number));
        let now = Timestamp(EPOCH);
        let step = net.controllers[number as usize].annotate(&signed, &owner, now).unwrap();
        step.commit(&mut net.store).unwrap();
    }
    net.close(0);
    assert_eq!(opened(&net, 0), (net.world.truth(0..2, 0), 2));
}
