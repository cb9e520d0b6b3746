//! The service and controllers crash and are restored at every point of a bounded window.

use std::collections::BTreeMap;

use alpheus_bounded_influence::blame::LieError;
use alpheus_crypto::group::PublicScalar;
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::ReleaseError;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_time::{Span, Timestamp};

use super::{five, last, lies_in_contribution, named, net, opened, truth};
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after};

fn later(seconds: u64) -> Timestamp {
    after(0).plus(Span::seconds(seconds))
}

/// Every controller has said one thing of each kind.
fn check_said_once(net: &Net) {
    let mut said: BTreeMap<(u32, u8), Vec<&ControllerMessage>> = BTreeMap::new();
    for (from, message) in &net.heard {
        let kind = match message {
            ControllerMessage::Contribution(_) => 0,
            ControllerMessage::BoundedOpening(_) => 1,
            ControllerMessage::Edges(_) => 2,
            _ => continue,
        };
        said.entry((*from, kind)).or_default().push(message);
    }
    assert!(!said.is_empty());
    for ((from, _), all) in said {
        assert!(all.iter().all(|one| *one == all[0]), "controller {from} said two things");
    }
}

/// The service crashes when M is on its way, when S is, and when it has asked for edges. It repeats
/// what it asked, and gets the same answers.
#[test]
fn a_restarted_service_goes_on() {
    let mut net = net(Setup::new(3));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.restart_service(later(1));
    assert!(net.outcomes.is_empty());
    net.lost = |_, _| false;
    net.restart_service(later(2));
    assert_eq!(opened(&net).1, truth(0..3, 0));
    check_said_once(&net);
}

/// The service crashes after one of the openings, so that openings come before what they open.
#[test]
fn a_service_that_lost_contributions_asks_again_and_checks_again() {
    let mut net = net(Setup::new(3));
    net.lost = |to, message| to == 1 && matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    assert!(net.outcomes.is_empty());
    net.lost = |_, _| false;
    net.restart_service(later(1));
    assert_eq!(opened(&net).1, truth(0..3, 0));
    check_said_once(&net);
}

#[test]
fn a_service_that_crashes_during_blame_names_the_same() {
    let mut net = net(five());
    net.lies = lies_in_contribution(&net, 2, |own| {
        own.share.values[0] = own.share.values[0].plus(&PublicScalar::of(9));
    });
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::EdgeRequest(_));
    net.close(0);
    assert!(net.outcomes.is_empty());
    net.lost = |_, _| false;
    net.restart_service(later(1));
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net), [(2, MemberFaultError::Lie(LieError::Unbalanced))]);
    check_said_once(&net);
}

/// A restart wipes a controller's keys. After that it gives nothing new: the
/// window opens without it, or with what it has opened already.
#[test]
fn restarted_controllers_say_nothing_else() {
    let mut net = net(five());
    net.sleep_after_token = vec![];
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    // All have contributed, and S is fixed. All crash: nobody can open it any more.
    net.restore_controllers(later(1), true);
    net.lost = |_, _| false;
    net.timeout(later(2));
    assert!(last(&net).result.is_err(), "{:?}", last(&net).result);
    check_said_once(&net);
    // Where all have opened, they repeat that, and the row is the truth.
    let mut net = self::net(five());
    net.lost = |_, message| matches!(message, ServiceMessage::Closing(_));
    net.close(0);
    let (first, heard) = (opened(&net).1, net.heard.len());
    net.restore_controllers(later(1), true);
    let again: Vec<_> =
        net.sent.iter().filter(|(_, message)| is_request(message)).cloned().collect();
    for (to, message) in again {
        let heard = net.inbox.open(&message).unwrap();
        let step = net.controllers[to as usize].handle(&heard, later(2));
        let said = step.commit(&mut net.store).unwrap();
        net.heard.extend(said.into_iter().map(|answer| (to, answer)));
    }
    assert!(net.heard.len() > heard);
    assert_eq!(first, truth(0..5, 0));
    check_said_once(&net);
}

fn is_request(message: &ServiceMessage) -> bool {
    matches!(message, ServiceMessage::Membership { .. } | ServiceMessage::OpeningSet(_))
}

/// The next windows open as if nothing had been.
#[test]
fn windows_after_a_restart_of_all_open() {
    let mut net = net(five());
    net.close(0);
    net.restore_controllers(later(1), true);
    net.restart_service(later(2));
    net.close(1);
    assert_eq!(opened(&net).1, truth(0..5, 1));
}
