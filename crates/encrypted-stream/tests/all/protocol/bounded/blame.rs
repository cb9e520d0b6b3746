//! Rows that fail: liars are named, edges are struck and left out, and nobody honest is named.

use std::rc::Rc;

use alpheus_bounded_influence::blame::LieError;
use alpheus_bounded_influence::messages::Edge;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::coordinator::{MemberFaultError, UnstatedEdgesError};
use alpheus_encrypted_stream::error::{MessageError, ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::messages::{ControllerMessage, EdgeStatement, ServiceMessage};
use alpheus_time::Span;

use super::{both, five, last, liar, lies_in_contribution, named, net, opened, silent, truth};
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Lies, Net};
use crate::protocol::world::{Setup, after};

pub(super) const LIAR: u32 = 2;
const LIE: i64 = 1_000;

/// The liar's share is more than its commitments.
pub(super) fn skewed(net: &Net) -> Lies {
    lies_in_contribution(net, LIAR, |own| {
        own.share.values.iter_mut().for_each(|value| *value = value.plus(&PublicScalar::of(LIE)));
    })
}

/// What the liar says of its edges.
pub(super) fn says(net: &Net, change: impl Fn(&mut EdgeStatement) + 'static) -> Lies {
    let of = |answer: &ControllerMessage| match answer {
        ControllerMessage::Edges(signed) => Some(signed.clone()),
        _ => None,
    };
    liar(net, LIAR, of, ControllerMessage::Edges, change)
}

/// Adds the lie to what it says of its edge with another, so that its own equation holds.
pub(super) fn covered(statement: &mut EdgeStatement, other: u32) {
    let by = if other > LIAR { LIE } else { -LIE };
    let (by, base) = (SecretScalar::from_integer(by.into()), Element::base());
    let edge = statement.edges.iter_mut().find(|edge| edge.other == other);
    let sum = |known: &Element| Element::combine(&[(&by, &base)], &[known], &[]).unwrap();
    match edge {
        Some(edge) => edge.commitments.iter_mut().for_each(|cell| *cell = sum(cell)),
        // An edge that it must leave out: it makes one up.
        None => {
            let made_up = Element::combine(&[(&by, &base)], &[], &[]).unwrap();
            statement.edges.push(Edge { other, commitments: vec![made_up; 2] });
            statement.edges.sort_by_key(|edge| edge.other);
        }
    }
}

/// The liar is left out of windows after it was named or had ruined some; these tests want it back.
fn lies_about(net: &mut Net, other: u32, number: u64) {
    net.lies = both(skewed(net), says(net, move |statement| covered(statement, other)));
    net.close(number);
    assert_eq!(last(net).result, Err(ReleaseError::NotTheRow), "window {number}");
}

/// With t = 1, a liar that covers itself loses one edge, which both ends leave out from then on. The
/// next edge names it.
#[test]
fn a_liar_that_covers_itself_loses_an_edge_and_then_is_named() {
    let mut net = net(five());
    assert_eq!(net.world.announced.tolerated(), 1);
    lies_about(&mut net, 0, 0);
    assert!(named(&net).is_empty(), "{:?}", named(&net));
    assert!(last(&net).unopened.is_empty(), "nobody knows who of both lied");
    // Both ends get the evidence, and the window opens with all.
    net.lies = Box::new(|_, answer| vec![answer]);
    net.close(1);
    assert_eq!((opened(&net).1, opened(&net).0.members), (truth(0..5, 1), 5));
    let reached = |to: u32| {
        let mut to_it = net.sent.iter().filter(|(at, _)| *at == to);
        to_it.any(|(_, sent)| matches!(sent, ServiceMessage::BoundedMembership { .. }))
    };
    assert_eq!([0, 1, 2, 3, 4].map(reached), [true, false, true, false, false]);
    lies_about(&mut net, 4, 2);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Disagrees(2)))]);
}

/// An edge that is struck covers nothing any more: who makes it up again is named.
#[test]
fn a_struck_edge_covers_a_liar_once() {
    let mut net = net(five());
    lies_about(&mut net, 0, 0);
    assert!(named(&net).is_empty());
    lies_about(&mut net, 0, 1);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Malformed))]);
}

/// Struck edges outlive the service: after a restart both ends get the evidence again, and the liar is named at
/// the next one.
#[test]
fn struck_edges_outlive_a_restart_of_the_service() {
    let mut net = net(five());
    lies_about(&mut net, 0, 0);
    net.restart_service(after(0).plus(Span::seconds(9)));
    net.lies = Box::new(|_, answer| vec![answer]);
    net.close(1);
    assert_eq!(opened(&net).1, truth(0..5, 1));
    lies_about(&mut net, 4, 2);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Disagrees(2)))]);
}

/// A member that does not state its edges is not named as a liar, and is left out of the next window.
#[test]
fn who_does_not_state_its_edges_is_left_out() {
    let mut net = net(five());
    net.lies = both(
        skewed(&net),
        Box::new(|from, answer| match answer {
            ControllerMessage::Edges(_) if from == LIAR => vec![],
            answer => vec![answer],
        }),
    );
    net.close(0);
    assert!(net.outcomes.is_empty(), "it is waited for");
    net.timeout(after(0).plus(Span::seconds(1)));
    net.timeout(after(0).plus(Span::seconds(3)));
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!((named(&net), silent(&net)), (vec![], vec![(LIAR, UnstatedEdgesError::NoAnswer)]));
    assert_eq!(last(&net).unopened, [net.world.plan.roster[LIAR as usize]]);
    net.close(1);
    assert_eq!(opened(&net).1, truth([0, 1, 3, 4], 1));
}

/// An honest member that was restarted cannot state its edges any more. It says so, it is not waited for,
/// and it is named nowhere; the liar is.
#[test]
fn a_restarted_member_is_silent_and_not_named() {
    let mut net = net(five());
    net.lies = skewed(&net);
    net.lost = |to, message| to == 4 && matches!(message, ServiceMessage::EdgeRequest(_));
    net.close(0);
    assert!(net.outcomes.is_empty(), "the fifth is waited for");
    net.restore_controller(4, after(0).plus(Span::seconds(1)), true);
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Unbalanced))]);
    let gone = UnstatedEdgesError::Refused(WindowRefusalError::KeysGone);
    assert_eq!(silent(&net), [(4, gone)]);
}

#[test]
fn two_statements_and_statements_of_a_wrong_form_name_their_signer() {
    let mut net = net(five());
    let key = key_of(&net.world, LIAR);
    let two: Lies = Box::new(move |from, answer| match &answer {
        ControllerMessage::Edges(signed) if from == LIAR => {
            let mut other: EdgeStatement = signed.dangerous_unverified().unwrap();
            covered(&mut other, 0);
            vec![ControllerMessage::Edges(Signed::new(&other, &key)), answer]
        }
        _ => vec![answer],
    });
    // The other members answer later, so that both are heard.
    net.lies = both(skewed(&net), two);
    net.close(0);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::TwoStatements))]);
    let mut net = self::net(five());
    net.lies = both(skewed(&net), says(&net, |statement| statement.edges.reverse()));
    net.close(0);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Malformed))]);
}

/// Evidence against a liar is shown to others, who accept it only for this round. So a statement of another
/// one does not take its place.
#[test]
fn statements_of_another_round_are_dropped() {
    let mut net = net(five());
    let key = key_of(&net.world, LIAR);
    let first: Lies = Box::new(move |from, answer| match &answer {
        ControllerMessage::Edges(signed) if from == LIAR => {
            let mut other: EdgeStatement = signed.dangerous_unverified().unwrap();
            other.scope.cohort = 1;
            vec![ControllerMessage::Edges(Signed::new(&other, &key)), answer]
        }
        _ => vec![answer],
    });
    net.lies = both(skewed(&net), first);
    net.close(0);
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Unbalanced))]);
    assert_eq!(net.dropped, [MessageError::Mismatched]);
}

/// Every member in turn lies in every cell; nobody else is ever named.
#[test]
fn nobody_honest_is_named() {
    let counted = Rc::new(std::cell::Cell::new(0));
    for liar in 0..3 {
        for cell in 0..2 {
            let mut net = net(Setup::new(3));
            let counted = Rc::clone(&counted);
            net.lies = lies_in_contribution(&net, liar, move |own| {
                counted.set(counted.get() + 1);
                own.share.values[cell] = own.share.values[cell].minus(&PublicScalar::of(7));
            });
            net.close(0);
            assert_eq!(named(&net), [(liar, MemberFaultError::Lie(LieError::Unbalanced))]);
        }
    }
    assert_eq!(counted.get(), 6);
}
