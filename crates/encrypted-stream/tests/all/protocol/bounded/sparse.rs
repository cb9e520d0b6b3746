//! Sparse masks, which large plans have by default: rows, blame and struck edges are about the pairs that
//! share pads in a window, and about no others.

use std::cell::Cell;
use std::rc::Rc;

use alpheus_bounded_influence::blame::LieError;
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::ReleaseError;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_policy::plan::MaskStrategy;

use super::blame::{LIAR, covered, says, skewed};
use super::{both, last, named, net, opened, struck, truth};
use crate::protocol::net::Net;
use crate::protocol::world::Setup;

/// So many that a graph with half of all edges is safe, if all are present and a third colludes.
const MEMBERS: usize = 75;
/// Owners that count, of all whose controllers do not collude.
const COUNTED: u32 = 50;

fn sparse(masks: MaskStrategy) -> Net {
    let members = u32::try_from(MEMBERS).unwrap();
    net(Setup { masks, minimum: COUNTED, windows: 4, ..Setup::new(members) })
}

/// How many edges members have stated in the last round of blame, from the fewest.
fn degrees(net: &Net) -> Vec<usize> {
    let stated = net.heard.iter().rev().filter_map(|(_, message)| match message {
        ControllerMessage::Edges(signed) => signed.dangerous_unverified(),
        _ => None,
    });
    let mut all: Vec<usize> = stated.take(MEMBERS).map(|stated| stated.edges.len()).collect();
    all.sort_unstable();
    all
}

fn rows_and_blame_with(masks: MaskStrategy) {
    let mut net = sparse(masks);
    net.close(0);
    assert_eq!(opened(&net).1, truth(0..MEMBERS, 0), "{masks:?}");
    // It covers itself with one of the edges that it has.
    let other = Rc::new(Cell::new(0));
    let chosen = other.clone();
    let covers = says(&net, move |statement| {
        chosen.set(statement.edges[3].other);
        covered(statement, chosen.get());
    });
    net.lies = both(skewed(&net), covers);
    net.close(1);
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert!(named(&net).is_empty() && last(&net).silent.is_empty(), "{:?}", named(&net));
    let other = other.get();
    assert_eq!(struck(&net).into_iter().collect::<Vec<_>>(), [(LIAR.min(other), LIAR.max(other))]);
    let degrees = degrees(&net);
    let (least, most) = (degrees[0], degrees[MEMBERS - 1]);
    assert!(least > 10 && most < 65, "half of {MEMBERS}: {degrees:?}");
    // Both ends leave it out, and the next window opens with everybody.
    net.lies = Box::new(|_, answer| vec![answer]);
    let first = net.sent.len();
    net.close(2);
    assert_eq!((opened(&net).1, opened(&net).0.members), (truth(0..MEMBERS, 2), 75), "{masks:?}");
    let reached = net.sent[first..].iter().filter_map(|(to, sent)| match sent {
        ServiceMessage::BoundedMembership { .. } => Some(*to),
        _ => None,
    });
    assert_eq!(reached.collect::<Vec<_>>(), [LIAR.min(other), LIAR.max(other)]);
    // A lie that is not covered is named, and no edge is struck.
    net.lies = skewed(&net);
    net.close(3);
    assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow));
    assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Unbalanced))]);
    assert_eq!(struck(&net).len(), 1);
}

#[test]
fn rows_and_blame_with_masks_by_epoch() {
    rows_and_blame_with(MaskStrategy::Epoch { bits: 1 });
}

#[test]
fn rows_and_blame_with_masks_drawn_for_each_window() {
    rows_and_blame_with(MaskStrategy::Dream { bits: 1 });
}
