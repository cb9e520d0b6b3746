//! A member that lies in half of its messages, and signs all of them.

use std::cell::RefCell;
use std::rc::Rc;

use alpheus_bounded_influence::check::FaultError;
use alpheus_bounded_influence::messages::Edge;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::messages::{
    BoundedOpening, Contribution, ControllerMessage, EdgeStatement,
};

use super::Dice;
use super::orders::{Gives, Orders, Plot, States};
use crate::protocol::coordinator::key_of;
use crate::protocol::net::{Lies, Net};

pub(super) fn lies_of(net: &Net, at: u32, dice: Dice, plot: Rc<RefCell<Plot>>) -> Lies {
    let key = key_of(&net.world, at);
    Box::new(move |from, answer| {
        let plot = &mut *plot.borrow_mut();
        match &answer {
            ControllerMessage::Contribution(signed) if from == at => {
                let own: Contribution = signed.dangerous_unverified().unwrap();
                let start = own.scope.start;
                let given = match plot.orders(start, &dice).gives {
                    Gives::Nothing => return vec![],
                    Gives::Old => plot.given.range(..start).next_back().map(|(_, old)| old.clone()),
                    _ => None,
                };
                let given = given.unwrap_or_else(|| {
                    let own = skew_contribution(own, plot.orders(start, &dice));
                    plot.given.entry(start).or_insert(Signed::new(&own, &key)).clone()
                });
                vec![ControllerMessage::Contribution(given)]
            }
            ControllerMessage::BoundedOpening(signed) if from == at => {
                let mut own: BoundedOpening = signed.dangerous_unverified().unwrap();
                let given = plot.given.get(&own.scope.start);
                own.contribution = given.map_or(own.contribution, Signed::digest);
                let orders = plot.orders(own.scope.start, &dice);
                let value = &mut own.share.values[0];
                *value = value.plus(&PublicScalar::of(orders.opening));
                vec![ControllerMessage::BoundedOpening(Signed::new(&own, &key))]
            }
            ControllerMessage::Edges(signed) => {
                let mut own: EdgeStatement = signed.dangerous_unverified().unwrap();
                let start = own.scope.start;
                plot.stated.insert((start, from), signed.clone());
                if from != at {
                    return vec![answer];
                }
                let orders = plot.orders(start, &dice);
                skew_edges(&mut own, orders);
                let lie = ControllerMessage::Edges(Signed::new(&own, &key));
                match orders.states {
                    States::Nothing => vec![],
                    _ if orders.twice => vec![lie, answer],
                    _ => vec![lie],
                }
            }
            _ => vec![answer],
        }
    })
}

impl Orders {
    /// By how much its share is more than its commitments.
    fn share_off(&self, cell: usize) -> i64 {
        if self.gives == Gives::Off(cell) { self.by } else { 0 }
    }
}

fn skew_contribution(mut own: Contribution, orders: &mut Orders) -> Contribution {
    let (scalar, has_owners) = (PublicScalar::of(orders.by), !own.owners.is_empty());
    match orders.gives {
        Gives::Off(cell) => own.share.values[cell] = own.share.values[cell].plus(&scalar),
        Gives::OffBlinding => own.share.blindings[0] = own.share.blindings[0].minus(&scalar),
        Gives::NoProofs => own.owners.iter_mut().for_each(|owner| owner.proof.fill(7)),
        Gives::NoOwners => own.owners.clear(),
        Gives::SwappedCells => own.owners.iter_mut().for_each(|owner| owner.commitments.reverse()),
        Gives::Truth | Gives::Nothing | Gives::Old => {}
    }
    let blinding = if orders.gives == Gives::OffBlinding { -orders.by } else { 0 };
    orders.off = [orders.share_off(0) - orders.opening, orders.share_off(1), blinding];
    orders.fault = match orders.gives {
        Gives::NoProofs | Gives::SwappedCells => has_owners.then_some(FaultError::Range),
        Gives::NoOwners => has_owners.then_some(FaultError::Owners),
        _ => None,
    };
    own
}

/// Covers the lie with an edge, or says anything.
fn skew_edges(own: &mut EdgeStatement, orders: &mut Orders) {
    let edges = own.edges.len();
    let at = |any: u32| any as usize % edges.max(1);
    let (one, other) = (at(orders.at.0), at(orders.at.1));
    orders.did = States::Truth;
    let did = match orders.states {
        States::OthersPad if one != other => {
            own.edges[one].commitments = own.edges[other].commitments.clone();
            true
        }
        States::DropsEdge if edges > 0 => {
            own.edges.remove(one);
            true
        }
        States::Reversed if edges > 1 => {
            own.edges.reverse();
            true
        }
        States::NoEdges if edges > 0 => {
            own.edges.clear();
            true
        }
        States::Covers if edges > 0 && orders.off[0] != 0 => {
            orders.covered = Some(own.edges[one].other);
            cover(own, one, orders.off[0]);
            true
        }
        States::MakesUp(other) => make_up(own, other),
        _ => false,
    };
    if did {
        orders.did = orders.states;
    }
}

/// Its own equation holds again.
fn cover(own: &mut EdgeStatement, at: usize, by: i64) {
    let sign = if own.edges[at].other > own.controller { 1 } else { -1 };
    let (by, base) = (SecretScalar::from_integer((sign * by).into()), Element::base());
    let first = &mut own.edges[at].commitments[0];
    *first = Element::combine(&[(&by, &base)], &[first], &[]).unwrap();
}

fn make_up(own: &mut EdgeStatement, other: u32) -> bool {
    let is_new = other != own.controller && own.edges.iter().all(|edge| edge.other != other);
    if is_new {
        own.edges.push(Edge { other, commitments: vec![Element::base(); 2] });
        own.edges.sort_by_key(|edge| edge.other);
    }
    is_new
}
