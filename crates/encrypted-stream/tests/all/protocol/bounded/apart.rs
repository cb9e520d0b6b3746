//! Proofs that another thread checks: the service goes on meanwhile, with the same results.

use alpheus_bounded_influence::check::FaultError;
use alpheus_crypto::group::PublicScalar;
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::{MessageError, ReleaseError, UncheckedProofsError};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_time::{Span, Timestamp};

use super::{five, last, lies_in_contribution, named, net, opened, truth};
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after};

const LIAR: u32 = 2;

fn apart(setup: Setup) -> Net {
    net(setup).with_checks_apart()
}

/// Does what there is to check, and hands it back. Returns how much that was.
fn check(net: &mut Net, now: Timestamp) -> usize {
    let checks = net.coordinator.take_checks();
    let found: Vec<_> = checks.into_iter().map(|check| check.run()).collect();
    let all = found.len();
    for checked in found {
        let step = net.coordinator.handle_checked(now, checked, &net.world);
        net.run(now, step);
    }
    all
}

fn later(seconds: u64) -> Timestamp {
    after(0).plus(Span::seconds(seconds))
}

#[test]
fn windows_wait_for_checks_and_open() {
    let mut net = apart(five());
    net.close(0);
    let sets = |net: &Net| {
        let set = |(_, message): &&(u32, ServiceMessage)| {
            matches!(message, ServiceMessage::OpeningSet(_))
        };
        net.sent.iter().filter(set).count()
    };
    assert_eq!((sets(&net), net.outcomes.len()), (0, 0), "contributions are not checked yet");
    // Longer than it waits for tokens, there is one check, and the window does not fail. Nothing is due
    // that would keep the service busy meanwhile.
    net.timeout(later(500));
    assert!(net.coordinator.deadline() > Some(later(500)));
    assert_eq!(check(&mut net, later(500)), 1);
    assert_eq!((sets(&net), net.outcomes.len()), (5, 0), "openings are not checked yet");
    net.timeout(later(1_000));
    assert_eq!(check(&mut net, later(1_000)), 1);
    assert_eq!(opened(&net).1, truth(0..5, 0));
    assert!(net.coordinator.take_checks().is_empty() && net.dropped.is_empty());
}

/// A message that comes while others are being checked is too late.
#[test]
fn a_window_goes_on_with_those_that_were_here() {
    let mut net = apart(five());
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    assert!(net.coordinator.take_checks().is_empty(), "the fifth may still answer");
    net.timeout(later(3));
    net.lost = |_, _| false;
    // It is asked again, and its answer is late.
    net.timeout(later(90));
    assert!(net.dropped.contains(&MessageError::Late), "{:?}", net.dropped);
    assert_eq!((check(&mut net, later(91)), check(&mut net, later(91))), (1, 1));
    assert_eq!(opened(&net).1, truth(0..4, 0));
}

/// A member whose proofs do not hold is named, and costs nobody else anything. It has no second attempt.
#[test]
fn a_member_without_proofs_is_named_once() {
    let mut net = apart(Setup { streams_each: 2, ..five() });
    net.lies = lies_in_contribution(&net, LIAR, |own| own.owners[0].proof.fill(0));
    net.close(0);
    assert_eq!(check(&mut net, later(1)), 1);
    net.timeout(later(90));
    assert_eq!((check(&mut net, later(91)), check(&mut net, later(91))), (1, 0));
    assert_eq!(opened(&net).1, truth([0, 1, 2, 3, 6, 7, 8, 9], 0));
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Fault(FaultError::Range))]);
}

/// A service that crashes while proofs are checked asks again, and checks again.
#[test]
fn a_restarted_service_checks_again() {
    let mut net = apart(Setup::new(3));
    net.close(0);
    net.restart_service(later(1));
    assert_eq!(opened(&net).1, truth(0..3, 0));
}

/// A row that does not hold is found out after both checks, and who lied is named.
#[test]
fn a_liar_is_named_after_both_checks() {
    let mut net = apart(five());
    net.lies = lies_in_contribution(&net, LIAR, |own| {
        own.share.values[0] = own.share.values[0].plus(&PublicScalar::of(7));
    });
    net.close(0);
    assert_eq!((check(&mut net, later(1)), check(&mut net, later(1))), (1, 1));
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net).first().map(|(at, _)| *at), Some(LIAR));
    let edges =
        |(_, message): &&(u32, ControllerMessage)| matches!(message, ControllerMessage::Edges(_));
    assert_eq!(net.heard.iter().filter(edges).count(), 5);
}

/// Findings about a window that has ended meanwhile change nothing.
#[test]
fn a_check_of_a_plan_that_has_ended_is_for_nothing() {
    let mut net = apart(Setup::new(3));
    net.close(0);
    let checks = net.coordinator.take_checks();
    let step = net.coordinator.retire();
    net.run(later(1), step);
    assert_eq!(last(&net).result, Err(ReleaseError::Retired));
    for check in checks {
        let step = net.coordinator.handle_checked(later(2), check.run(), &net.world);
        net.run(later(2), step);
    }
    assert_eq!(net.outcomes.len(), 1);
}

/// A check that does not end costs its window a result, and names nobody. Its later findings have no effect.
#[test]
fn a_check_that_does_not_end_fails_its_window_with_a_reason() {
    for openings in [false, true] {
        let mut net = apart(five());
        net.close(0);
        let begun = if openings { check(&mut net, later(100)).min(1) as u64 * 100 } else { 0 };
        let checks = net.coordinator.take_checks();
        assert!(checks[0].is_wanted() && checks[0].proofs() == 5);
        net.timeout(later(begun + 599));
        assert!(net.outcomes.is_empty());
        net.timeout(later(begun + 600));
        let late = ReleaseError::Unchecked(UncheckedProofsError::Late);
        assert_eq!(last(&net).result, Err(late), "openings: {openings}");
        assert!(named(&net).is_empty() && last(&net).unopened.is_empty());
        assert!(!checks[0].is_wanted(), "nobody needs to do it any more");
        for check in checks {
            let step = net.coordinator.handle_checked(later(900), check.run(), &net.world);
            net.run(later(900), step);
        }
        assert_eq!(net.outcomes.len(), 1);
        opens_next(net);
    }
}

/// The window after this one opens with all.
fn opens_next(mut net: Net) {
    net.close(1);
    assert_eq!((check(&mut net, after(1)), check(&mut net, after(1))), (1, 1));
    assert_eq!(opened(&net).1, truth(0..5, 1));
}

/// A check that is not done, or breaks off, costs its window a result, with the reason.
#[test]
fn a_check_that_is_not_done_fails_its_window_with_the_reason() {
    for why in [UncheckedProofsError::QueueFull, UncheckedProofsError::Broken] {
        for openings in [false, true] {
            let mut net = apart(five());
            net.close(0);
            if openings {
                assert_eq!(check(&mut net, later(1)), 1);
            }
            let checks = net.coordinator.take_checks();
            let step =
                net.coordinator.handle_checked(later(2), checks[0].unchecked(why), &net.world);
            net.run(later(2), step);
            assert_eq!(last(&net).result, Err(ReleaseError::Unchecked(why)));
            assert!(named(&net).is_empty() && last(&net).unopened.is_empty());
            opens_next(net);
        }
    }
}

/// The result of a check from before a restart says nothing about the same window.
#[test]
fn a_check_that_was_not_asked_for_changes_nothing() {
    let mut net = apart(five());
    net.close(0);
    let first = net.coordinator.take_checks();
    net.restart_service(later(1));
    let old = first[0].unchecked(UncheckedProofsError::Broken);
    let step = net.coordinator.handle_checked(later(2), old, &net.world);
    net.run(later(2), step);
    assert_eq!(opened(&net).1, truth(0..5, 0));
}
