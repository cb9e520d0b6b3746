//! Windows that a service asks for again after its state was lost, and controllers that
//! pretend that it was.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage, WindowRefusal};
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp};

use crate::protocol::coordinator::{receive, signing_key};
use crate::protocol::net::{Net, coordinator};
use crate::protocol::world::{Setup, after, window};

const LOST: Result<(), ReleaseError> = Err(ReleaseError::StateLost);
const SETTLED: WindowRefusalError = WindowRefusalError::Settled;

/// Five controllers, one of which may collude.
fn five() -> Net {
    let setup = Setup { alpha: Fraction::FIFTH, windows: 3, ..Setup::new(5) };
    let net = Net::new(setup);
    assert_eq!(net.world.announced.tolerated(), 1);
    net
}

fn ended(net: &Net) -> Vec<Result<(), ReleaseError>> {
    net.outcomes.iter().map(|outcome| outcome.result.clone().map(drop)).collect()
}

/// A controller refuses the last request of this kind that it was sent.
fn refuse(net: &mut Net, from: u32, of: impl Fn(&ServiceMessage) -> Option<Digest>) {
    let sent = net.sent.iter().rev().filter(|(to, _)| *to == from);
    let about = sent.filter_map(|(_, message)| of(message)).next().unwrap();
    let (plan, controller) = (net.world.id(), net.world.plan.roster[from as usize]);
    let refusal = WindowRefusal { plan, window: window(0), controller, about, reason: SETTLED };
    let signed = Signed::new(&refusal, &signing_key(net, from));
    receive(net, from, &ControllerMessage::WindowRefusal(signed)).unwrap();
}

fn summons(message: &ServiceMessage) -> Option<Digest> {
    if let ServiceMessage::Summons(summons) = message { Some(summons.digest()) } else { None }
}

fn opening_set(message: &ServiceMessage) -> Option<Digest> {
    if let ServiceMessage::OpeningSet(set) = message { Some(set.digest()) } else { None }
}

fn later(seconds: u64) -> Timestamp {
    after(0).plus(Span::seconds(seconds))
}

#[test]
fn windows_that_ended_in_a_lost_state_are_not_announced_as_failed() {
    let mut net = five();
    let report = net.world.report(0);
    let close = |net: &mut Net| {
        let step = net.coordinator.handle_window_report(&report, after(0));
        net.run(after(0), step);
    };
    close(&mut net);
    net.coordinator = coordinator(&net.world);
    close(&mut net);
    assert_eq!(ended(&net), [Ok(()), LOST]);
    assert!(net.outcomes[1].is_of_lost_state() && !net.outcomes[0].is_of_lost_state());
}

#[test]
fn windows_whose_tokens_went_to_a_lost_state_are_not_announced_as_failed() {
    let mut net = five();
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    let mut report = net.world.report(0);
    let step = net.coordinator.handle_window_report(&report, after(0));
    net.run(after(0), step);
    assert_eq!(ended(&net), []);
    net.lost = |_, _| false;
    net.coordinator = coordinator(&net.world);
    // The streams are others than before, or the same presences would come again.
    report.complete.clear();
    let step = net.coordinator.handle_window_report(&report, after(0));
    net.run(after(0), step);
    assert_eq!(ended(&net), [LOST]);
}

#[test]
fn a_window_in_progress_in_an_older_copy_is_not_announced_as_failed() {
    for fixed in ["M", "S"] {
        let mut net = five();
        net.lost = match fixed {
            "M" => |_, message| matches!(message, ServiceMessage::Membership { .. }),
            _ => |_, message| matches!(message, ServiceMessage::OpeningSet(_)),
        };
        net.close(0);
        let copy = net.store.clone();
        net.lost = |_, _| false;
        net.timeout(later(1));
        assert_eq!(ended(&net), [Ok(())], "{fixed}");
        net.store = copy;
        net.restart_service(later(2));
        assert_eq!(ended(&net), [Ok(()), LOST], "{fixed}");
    }
}

#[test]
fn one_controller_cannot_hide_a_window_that_failed() {
    // It presents itself, sends its token, and refuses the opening.
    let mut net = five();
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    refuse(&mut net, 4, opening_set);
    assert_eq!(ended(&net), [Err(ReleaseError::ControllerRefused(SETTLED))]);
    assert!(!net.outcomes[0].is_of_lost_state());
}

#[test]
fn one_controller_cannot_hide_a_window_that_lacks_a_quorum() {
    let mut net = five();
    net.asleep = vec![1, 2, 3, 4];
    net.close(0);
    refuse(&mut net, 4, summons);
    net.timeout(later(60));
    assert_eq!(ended(&net), [Err(ReleaseError::ControllerRefused(SETTLED))]);
}

#[test]
fn one_controller_cannot_hide_a_window_that_fails_after_a_restart() {
    let mut net = five();
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    net.restart_service(later(1));
    refuse(&mut net, 4, opening_set);
    assert_eq!(ended(&net), [], "others may say so, too");
    // The others' openings come, and the window fails once its time is up.
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::OpeningSet(_));
    net.timeout(later(3));
    assert_eq!(ended(&net), [Err(ReleaseError::ControllerRefused(SETTLED))]);
}
