//! What a liar can make the service keep, and what is found out too late for its window.

use alpheus_bounded_influence::check::FaultError;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::{ReleaseError, UncheckedProofsError};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_time::{Span, Timestamp};

use super::{both, five, last, liar, lies_in_contribution, named, net, opened, truth};
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after};

const LIAR: u32 = 2;

fn hand_back(net: &mut Net, now: Timestamp) {
    for check in net.coordinator.take_checks() {
        let step = net.coordinator.handle_checked(now, check.run(), &net.world);
        net.run(now, step);
    }
}

/// A liar that makes up an edge with each member is named for it. The statements about these edges are kept
/// nowhere, and go to nobody.
#[test]
fn a_liar_that_is_named_leaves_no_statements_behind() {
    let mut net = net(five());
    let skews = lies_in_contribution(&net, LIAR, |own| {
        own.share.values[0] = own.share.values[0].plus(&PublicScalar::of(7));
    });
    let of = |answer: &ControllerMessage| match answer {
        ControllerMessage::Edges(signed) => Some(signed.clone()),
        _ => None,
    };
    let makes_up = liar(&net, LIAR, of, ControllerMessage::Edges, |stated| {
        let (by, base) = (SecretScalar::from_integer(7), Element::base());
        let made_up = Element::combine(&[(&by, &base)], &[], &[]).unwrap();
        stated.edges.iter_mut().for_each(|edge| edge.commitments = vec![made_up; 2]);
    });
    net.lies = both(skews, makes_up);
    net.close(0);
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [LIAR]);
    // A service that was restarted knows the liar no more, and asks it with all others.
    net.restart_service(after(0).plus(Span::seconds(9)));
    net.lies = Box::new(|_, answer| vec![answer]);
    net.close(1);
    assert_eq!(opened(&net).1, truth(0..5, 1));
    let strikes = |(_, sent): &&(u32, ServiceMessage)| {
        matches!(sent, ServiceMessage::BoundedMembership { .. })
    };
    assert_eq!(net.sent.iter().filter(strikes).count(), 0);
}

/// What a check finds once its window has ended is not lost: the next window that ends names the liar, and
/// the one after that opens without it.
#[test]
fn who_is_found_too_late_is_named_with_the_next_window() {
    let mut net = net(Setup { streams_each: 2, ..five() }).with_checks_apart();
    net.lies = lies_in_contribution(&net, LIAR, |own| own.owners[0].proof.fill(0));
    net.close(0);
    let late = after(0).plus(Span::seconds(700));
    let found: Vec<_> = net.coordinator.take_checks().into_iter().map(|one| one.run()).collect();
    net.timeout(late);
    let is_late = ReleaseError::Unchecked(UncheckedProofsError::Late);
    assert_eq!(last(&net).result, Err(is_late));
    assert!(named(&net).is_empty());
    for checked in found {
        let step = net.coordinator.handle_checked(late, checked, &net.world);
        net.run(late, step);
    }
    net.lies = Box::new(|_, answer| vec![answer]);
    let close = |net: &mut Net, number| {
        net.close(number);
        hand_back(net, after(number));
        hand_back(net, after(number));
    };
    close(&mut net, 1);
    assert_eq!(opened(&net).1, truth(0..10, 1));
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Fault(FaultError::Range))]);
    assert_eq!(last(&net).unopened, [net.world.plan.roster[LIAR as usize]]);
    close(&mut net, 2);
    assert_eq!(opened(&net).1, truth([0, 1, 2, 3, 6, 7, 8, 9], 2));
    assert!(named(&net).is_empty());
}
