//! A member that lies in half of its messages, and signs all of them.

use std::cell::RefCell;

use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::messages::{
    BoundedOpening, Contribution, ControllerMessage, EdgeStatement,
};

use super::Dice;
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Lies, Net};

pub(super) fn lies_of(net: &Net, at: u32, dice: Dice) -> Lies {
    let (key, given) = (key_of(&net.world, at), RefCell::new(None));
    let (earlier, skewed) = (RefCell::new(None), RefCell::new(0));
    Box::new(move |from, answer| match &answer {
        ControllerMessage::Contribution(signed) if from == at => {
            if let Some(old) = earlier.borrow().clone().filter(|_| dice.says(12)) {
                return vec![old];
            }
            if dice.says(12) {
                // It gives nothing at all.
                return vec![];
            }
            let mut own: Contribution = signed.dangerous_unverified().unwrap();
            *skewed.borrow_mut() = skew_contribution(&mut own, &dice);
            let signed = Signed::new(&own, &key);
            *given.borrow_mut() = Some((own.scope, signed.digest()));
            let said = ControllerMessage::Contribution(signed);
            *earlier.borrow_mut() = Some(said.clone());
            vec![said]
        }
        ControllerMessage::BoundedOpening(signed) if from == at => {
            let mut own: BoundedOpening = signed.dangerous_unverified().unwrap();
            let known = given.borrow().filter(|(scope, _)| *scope == own.scope);
            own.contribution = known.map_or(own.contribution, |(_, digest)| digest);
            if dice.says(6) {
                let value = &mut own.share.values[0];
                *value = value.plus(&PublicScalar::of(1 + i64::from(dice.below(9))));
            }
            vec![ControllerMessage::BoundedOpening(Signed::new(&own, &key))]
        }
        ControllerMessage::Edges(signed) if from == at => {
            let mut own: EdgeStatement = signed.dangerous_unverified().unwrap();
            skew_edges(&mut own, *skewed.borrow(), &dice);
            let lie = ControllerMessage::Edges(Signed::new(&own, &key));
            match dice.below(8) {
                0 | 1 => vec![lie, answer],
                2 => vec![],
                _ => vec![lie],
            }
        }
        _ => vec![answer],
    })
}

/// Returns by how much the share of the first cell is more than its commitments.
fn skew_contribution(own: &mut Contribution, dice: &Dice) -> i64 {
    let by = 1 + i64::from(dice.below(1_000));
    let scalar = PublicScalar::of(by);
    match dice.below(12) {
        0 => own.share.values[1] = own.share.values[1].plus(&scalar),
        1 => own.share.blindings[0] = own.share.blindings[0].minus(&scalar),
        2 => own.owners.iter_mut().for_each(|owner| owner.proof.fill(7)),
        3 => own.owners.clear(),
        4 => own.owners.iter_mut().for_each(|owner| owner.commitments.reverse()),
        5..=7 => {
            own.share.values[0] = own.share.values[0].plus(&scalar);
            return by;
        }
        _ => {}
    }
    0
}

/// Covers the lie with an edge, or says anything.
fn skew_edges(own: &mut EdgeStatement, by: i64, dice: &Dice) {
    let edges = u32::try_from(own.edges.len()).unwrap();
    let (one, other) = (dice.below(edges) as usize, dice.below(edges) as usize);
    match dice.below(8) {
        0 if edges > 1 => {
            own.edges[one].commitments = own.edges[other].commitments.clone();
        }
        1 if edges > 0 => drop(own.edges.remove(one)),
        2 => own.edges.reverse(),
        3 => own.edges.clear(),
        4..=6 if edges > 0 && by != 0 => cover(own, one, by),
        _ => {}
    }
}

/// Its own equation holds again.
fn cover(own: &mut EdgeStatement, at: usize, by: i64) {
    let sign = if own.edges[at].other > own.controller { 1 } else { -1 };
    let (by, base) = (SecretScalar::from_integer((sign * by).into()), Element::base());
    let first = &mut own.edges[at].commitments[0];
    *first = Element::combine(&[(&by, &base)], &[first], &[]).unwrap();
}
