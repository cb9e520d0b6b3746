//! What a liar can make the service keep, and what is found out too late for its window.

use alpheus_bounded_influence::blame::LieError;
use alpheus_bounded_influence::check::FaultError;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::{ReleaseError, UncheckedProofsError};
use alpheus_encrypted_stream::messages::{ControllerMessage, EdgeStatement, ServiceMessage};
use alpheus_time::{Span, Timestamp};

use super::{
    both, five, last, liar, lies_in_contribution, named, net, opened, silent, struck, truth,
};
use crate::protocol::net::{Lies, Net};
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
    let makes_up = says(&net, LIAR, |stated| {
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

/// Most edges that one lost window strikes for good.
const MAX_STRUCK: usize = 16;

/// What a liar adds to its share.
const LIE: i64 = 7;

/// A liar changes what it says of its edges with five members, so that its equation holds: that at 0 hides its lie.
fn covers(net: &Net, by: u32) -> Lies {
    let lie = if by == 0 { LIE } else { 0 };
    says(net, by, move |stated| {
        for (other, by) in (5..).zip([1, -1, 2, 3, lie - 5]) {
            add(stated, other, by);
        }
    })
}

/// A liar changes what it says of its edges.
fn says(net: &Net, by: u32, change: impl Fn(&mut EdgeStatement) + 'static) -> Lies {
    let of = |answer: &ControllerMessage| match answer {
        ControllerMessage::Edges(signed) => Some(signed.clone()),
        _ => None,
    };
    liar(net, by, of, ControllerMessage::Edges, change)
}

fn add(stated: &mut EdgeStatement, other: u32, by: i64) {
    let (by, base) = (SecretScalar::from_integer(by.into()), Element::base());
    let edge = stated.edges.iter_mut().find(|edge| edge.other == other).unwrap();
    for cell in &mut edge.commitments {
        *cell = Element::combine(&[(&by, &base)], &[cell], &[]).unwrap();
    }
}

/// The liar's share is more than its commitments in all cells.
fn skewed(net: &Net, by: u32) -> Lies {
    lies_in_contribution(net, by, |own| {
        own.share.values.iter_mut().for_each(|value| *value = value.plus(&PublicScalar::of(LIE)));
    })
}

/// Of the 25 edges that five liars lose in one window, 16 are kept. Others count for that window alone: a service that
/// lives on names nobody whom one that was restarted does not.
#[test]
fn edges_that_are_not_kept_do_not_count_later() {
    for restarts in [false, true] {
        let mut net = net(Setup { colluders: 5, ..Setup::new(16) });
        assert_eq!(net.world.announced.tolerated(), 5);
        let all = (0..5).map(|by| covers(&net, by));
        net.lies = all.fold(skewed(&net, 0), both);
        net.close(0);
        assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
        assert!(named(&net).is_empty() && silent(&net).is_empty());
        let kept = struck(&net);
        assert_eq!(kept.len(), MAX_STRUCK);
        // Each liar loses one, before any loses all.
        let of = |by: u32| kept.iter().filter(|(one, _)| *one == by).count();
        assert_eq!([0, 1, 2, 3, 4].map(of), [5, 5, 4, 1, 1]);
        if restarts {
            net.restart_service(after(0).plus(Span::seconds(9)));
        }
        // The fourth has lost one edge for good. In memory it would be five, and this the sixth.
        net.lies = both(skewed(&net, 3), one_more(&net, 3, 10));
        net.close(1);
        assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
        assert!(named(&net).is_empty(), "{restarts}: {:?}", named(&net));
        assert_eq!(struck(&net).len(), MAX_STRUCK + 1);
        // The first has lost five.
        net.lies = both(skewed(&net, 0), one_more(&net, 0, 10));
        net.close(2);
        let disagrees = MemberFaultError::Lie(LieError::Disagrees(6));
        assert_eq!(named(&net), [(0, disagrees)], "{restarts}");
    }
}

/// The liar hides its lie with one more member.
fn one_more(net: &Net, by: u32, other: u32) -> Lies {
    says(net, by, move |stated| add(stated, other, LIE))
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
