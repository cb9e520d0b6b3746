//! Rows that fail: who is named, and which edges are struck.

use crate::world::{Window, World, one_cell, three_cells};
use alpheus_bounded_influence::blame::{Blame, EdgesError, Judgement, LieError};
use alpheus_bounded_influence::check::{Checker, RoundError};
use alpheus_bounded_influence::messages::EdgeStatement;
use alpheus_bounded_influence::share::Masks;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use std::collections::{BTreeMap, BTreeSet};

/// A window of four controllers, in which the one at `liar` adds `by` to its share.
fn skewed(world: &World, liar: usize, by: i64) -> Window {
    let mut window = Window::new(world, &[&[&[7]], &[&[8]], &[&[9]], &[&[10]]], &[1]);
    let value = &mut window.contributions[liar].share.values[0];
    *value = value.plus(&PublicScalar::of(by));
    window.open(world);
    window
}

fn judged(world: &World, window: &Window, edges: &[EdgeStatement], blame: &Blame) -> Judgement {
    let opened = window.opened(world);
    let signed: Vec<_> = edges.iter().map(|edge| world.sign(edge.controller, edge)).collect();
    blame.judge(&world.failed(&opened), &signed)
}

/// Changes what a liar says of its edge with another, so that its own equation holds.
pub(crate) fn covered(statement: &mut EdgeStatement, other: u32, by: i64) {
    let own = statement.controller;
    let edge = statement.edges.iter_mut().find(|edge| edge.other == other).unwrap();
    let by = SecretScalar::from_integer(if other > own { by } else { -by }.into());
    let base = Element::base();
    edge.commitments[0] = Element::combine(&[(&by, &base)], &[&edge.commitments[0]], &[]).unwrap();
}

#[test]
fn a_share_that_differs_from_commitments_and_edges_names_its_controller() {
    let world = World::new(&one_cell(), 4, 30);
    for liar in 0..4 {
        let window = skewed(&world, liar as usize, 5);
        let found = judged(&world, &window, &window.edges(&world), &Blame::new(1));
        assert_eq!(found.named, BTreeMap::from([(liar, LieError::Unbalanced)]));
        assert!(found.struck.is_empty() && found.silent.is_empty());
    }
}

#[test]
fn a_liar_that_covers_itself_loses_an_edge_each_time_and_is_named_after_t() {
    let mut world = World::new(&one_cell(), 4, 31);
    let mut blame = Blame::new(2);
    for (at, other) in [0, 1, 3].into_iter().enumerate() {
        world.at(31 + at as u64);
        let window = skewed(&world, 2, 5);
        let mut edges = window.edges(&world);
        covered(&mut edges[2], other, 5);
        let found = judged(&world, &window, &edges, &blame);
        blame = blame.knowing(found.struck.iter().copied());
        let edge = (other.min(2), other.max(2));
        // It is named by its third edge, which is not struck then.
        let (struck, named) =
            if at < 2 { (vec![edge], vec![]) } else { (vec![], vec![(2, LieError::Disagrees(3))]) };
        assert_eq!(Vec::from_iter(found.struck), struck);
        assert_eq!(Vec::from_iter(found.named), named);
    }
}

/// An edge that is struck covers nothing any more: who states it again, although it has the evidence, is
/// named at once. Without that a liar would ruin every window with one edge.
#[test]
fn a_struck_edge_covers_a_liar_once() {
    let mut world = World::new(&one_cell(), 4, 44);
    for at in 0..3 {
        let blame = Blame::new(1).knowing((at > 0).then_some((0, 2)));
        world.at(44 + at);
        let window = skewed(&world, 2, 5);
        let mut edges = window.edges(&world);
        covered(&mut edges[2], 0, 5);
        if at > 0 {
            edges[0].edges.retain(|edge| edge.other != 2);
        }
        let opened = window.opened(&world);
        let signed: Vec<_> = edges.iter().map(|edge| world.sign(edge.controller, edge)).collect();
        let failed = world.failed(&opened).without((at > 0).then_some((0, 2)));
        let named = blame.judge(&failed, &signed).named;
        let expected = if at == 0 { None } else { Some(&LieError::Malformed) };
        assert_eq!(named.get(&2), expected, "window {at}");
        assert!(!named.contains_key(&1) && !named.contains_key(&3));
    }
}

/// A judge remembers nothing. Edges that are kept of earlier windows count, also after a restart.
#[test]
fn struck_edges_that_are_known_count() {
    let mut world = World::new(&one_cell(), 4, 48);
    let blame = Blame::new(1);
    world.at(48);
    let window = skewed(&world, 2, 5);
    let mut edges = window.edges(&world);
    covered(&mut edges[2], 3, 5);
    for _ in 0..2 {
        let found = judged(&world, &window, &edges, &blame);
        assert_eq!((found.named.len(), found.struck), (0, BTreeSet::from([(2, 3)])));
    }
    let found = judged(&world, &window, &edges, &blame.knowing([(1, 2)]));
    assert_eq!(found.named, BTreeMap::from([(2, LieError::Disagrees(2))]));
}

#[test]
fn an_edge_is_struck_only_by_the_others_signed_and_differing_word() {
    let mut world = World::new(&one_cell(), 4, 34);
    let window = skewed(&world, 2, 5);
    let mut edges = window.edges(&world);
    let honest = world.sign(2, &edges[2]);
    assert!(!edges[1].strikes(&honest));
    covered(&mut edges[2], 1, 5);
    let lie = world.sign(2, &edges[2]);
    assert!(edges[1].strikes(&lie) && !edges[0].strikes(&lie) && !edges[3].strikes(&lie));
    // In another round the same words prove nothing.
    world.at(35);
    let later = skewed(&world, 2, 5);
    assert!(!later.edges(&world)[1].strikes(&lie));
    // An edge that the other leaves out, or makes up, is one about which they differ.
    edges[2].edges.retain(|edge| edge.other != 0);
    assert!(edges[0].strikes(&world.sign(2, &edges[2])));
}

#[test]
fn replayed_statements_count_as_none() {
    let mut world = World::new(&one_cell(), 4, 36);
    let old = skewed(&world, 2, 5).edges(&world);
    world.at(37);
    let window = skewed(&world, 2, 5);
    let found = judged(&world, &window, &old, &Blame::new(1));
    assert_eq!(found.silent, [0, 1, 2, 3]);
    assert!(found.named.is_empty() && found.struck.is_empty());
    // The liar alone is silent: nobody else is named in its place.
    let edges = window.edges(&world);
    let others = [edges[0].clone(), edges[1].clone(), edges[3].clone()];
    let found = judged(&world, &window, &others, &Blame::new(1));
    assert_eq!((found.silent, found.named.len(), found.struck.len()), (vec![2], 0, 0));
}

#[test]
fn statements_of_a_wrong_form_or_two_of_them_name_their_signer() {
    let world = World::new(&one_cell(), 4, 38);
    let window = skewed(&world, 2, 5);
    let edges = window.edges(&world);
    let lie = |change: &dyn Fn(&mut EdgeStatement)| {
        let mut changed = edges.clone();
        change(&mut changed[2]);
        judged(&world, &window, &changed, &Blame::new(3)).named.get(&2).copied()
    };
    assert_eq!(lie(&|_| ()), Some(LieError::Unbalanced));
    assert_eq!(lie(&|s| s.edges.reverse()), Some(LieError::Malformed));
    assert_eq!(lie(&|s| s.edges[0].other = 2), Some(LieError::Malformed));
    assert_eq!(lie(&|s| s.edges[2].other = 9), Some(LieError::Malformed));
    assert_eq!(lie(&|s| s.edges[0].commitments.clear()), Some(LieError::Malformed));
    assert_eq!(lie(&|s| s.consumer_pad = Some(vec![Element::base()])), Some(LieError::Malformed));
    let mut two = edges.clone();
    two.push(edges[2].clone());
    covered(&mut two[4], 1, 5);
    let found = judged(&world, &window, &two, &Blame::new(3));
    assert_eq!(found.named, BTreeMap::from([(2, LieError::TwoStatements)]));
    // The same statement twice is one.
    let again = [edges.clone(), vec![edges[0].clone()]].concat();
    let found = judged(&world, &window, &again, &Blame::new(3));
    assert_eq!(found.named, BTreeMap::from([(2, LieError::Unbalanced)]));
}

#[test]
fn the_consumer_of_a_sealed_row_checks_pads() {
    let world = World::sealed(&one_cell(), 4, 39);
    let window = skewed(&world, 2, 5);
    let mut edges = window.edges(&world);
    let found = judged(&world, &window, &edges, &Blame::new(1));
    assert_eq!(found.named, BTreeMap::from([(2, LieError::Unbalanced)]));
    // A liar covers itself with the pad instead: only the consumer sees that.
    let five = SecretScalar::from_integer(5);
    let (base, pad) = (Element::base(), edges[2].consumer_pad.as_mut().unwrap());
    pad[0] = Element::combine(&[(&five, &base)], &[&pad[0]], &[]).unwrap();
    let found = judged(&world, &window, &edges, &Blame::new(1));
    assert!(found.named.is_empty() && found.struck.is_empty());
    let holds: Vec<bool> = edges.iter().map(|e| e.has_pad(&world.pad(e.controller))).collect();
    assert_eq!(holds, [true, true, false, true]);
}

/// A member that is asked again, after some did not answer or edges were struck, says the same or nothing: a
/// statement belongs to the opening that was signed. So nobody honest signs two.
#[test]
fn a_round_that_is_asked_again_gets_the_same_bytes() {
    let mut world = World::new(&one_cell(), 4, 40);
    let window = skewed(&world, 2, 5);
    let first = window.edges(&world);
    let own = world.sign(1, &window.openings[1]);
    assert_eq!(world.edges(1, &own, &[1]).as_ref(), Ok(&first[1]));
    let again = [first.clone(), window.edges(&world)].concat();
    let found = judged(&world, &window, &again, &Blame::new(1));
    assert_eq!(found.named, BTreeMap::from([(2, LieError::Unbalanced)]));
    // Without the one that was silent, under the same H(S); with another draw of noise; without an
    // edge that was struck meanwhile; by somebody else.
    world.opened = vec![0, 1, 3];
    assert_eq!(world.edges(1, &own, &[1]), Err(EdgesError::AnotherOpening));
    world.opened = vec![0, 1, 2, 3];
    assert_eq!(world.edges(1, &own, &[2]), Err(EdgesError::AnotherOpening));
    let struck = world.masks(1, |masks| {
        let left = &masks.neighbours[..2];
        let masks = Masks { neighbours: left, ..*masks };
        world.answer(&world.committers[1], &masks, &[1]).0.edges(&own)
    });
    assert_eq!(struck, Err(EdgesError::AnotherOpening));
    assert_eq!(world.edges(3, &own, &[1]), Err(EdgesError::AnotherOpening));
}

/// Somebody who asks wrongly learns that, and nobody is named for it.
#[test]
fn a_round_without_a_member_of_the_set_is_none() {
    let world = World::new(&one_cell(), 4, 41);
    let window = skewed(&world, 2, 5);
    let opened = window.opened(&world);
    let failed = |opened| world.checker.failed(&world.opened, opened).err();
    assert_eq!(failed(&opened[..3]), Some(RoundError::Members));
    assert_eq!(failed(&[]), Some(RoundError::Members));
    assert_eq!(failed(&opened), None);
    let other = Checker::new(three_cells());
    assert_eq!(other.failed(&world.opened, &opened).err(), Some(RoundError::Terms));
}
