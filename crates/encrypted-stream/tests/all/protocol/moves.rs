//! Streams that move away from plans that name their streams, and what their owners were charged.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{ControllerChange, Placement};
use alpheus_encrypted_stream::controller::HeldStream;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::handover::{HandedOver, Purpose};
use alpheus_time::Timestamp;
use std::sync::Arc;

use crate::protocol::evil::Evil;
use crate::protocol::identities::{owner, owner_key};
use crate::protocol::noise::four;
use crate::protocol::world::{EPOCH, Setup, after, policy, window};

fn placement(evil: &Evil, at: Timestamp) -> Signed<Placement> {
    let (stream, roster) = (evil.world.plan.streams[0].stream, &evil.world.plan.roster);
    let moved = Some(ControllerChange { from: roster[0], at, lost: false });
    let producer = "watch".into();
    let placement = Placement { stream, version: 2, controller: roster[1], producer, moved };
    Signed::new(&placement, &owner_key(stream))
}

/// The first stream leaves the first controller for the second one.
fn leave(evil: &mut Evil, placement: &Signed<Placement>, now: Timestamp) -> Signed<HandedOver> {
    let stream = evil.world.plan.streams[0].stream;
    let (owner, certificate) = (owner(stream), evil.world.seats[1].1.clone());
    let to = (&certificate, evil.controllers[1].hybrid().clone());
    let rng = &mut evil.world.rng;
    let step = evil.controllers[0].move_away(placement, &owner, to, now, rng).unwrap();
    let handed = step.commit(&mut evil.store).unwrap().pop().unwrap();
    evil.controllers[0].note_fenced();
    handed
}

fn arrive(evil: &mut Evil, placement: &Signed<Placement>, handed: &Signed<HandedOver>) {
    let (stream, before) = (evil.world.plan.streams[0].stream, evil.world.seats[0].1.clone());
    let owner = owner(stream);
    let purpose = Purpose { stream, schema: evil.world.schema.id(), owner: owner.id() };
    let opened = placement.open(owner.key()).unwrap();
    let carried = evil.controllers[1].open_carried((&purpose, &opened), handed, &before);
    let (master, luggage) = carried.unwrap();
    let (schema, layout) = (Arc::clone(&evil.world.schema), Arc::clone(&evil.world.layout));
    let held = HeldStream { stream, owner: owner.id(), schema, layout, master: Some(master) };
    let choice = evil.world.annotate(stream, 1, policy(&evil.world.setup));
    let signed = (placement, &choice);
    let step = evil.controllers[1].take_over(held, signed, luggage, &owner, after(0)).unwrap();
    step.commit(&mut evil.store).unwrap();
}

/// What controller 0 excludes of a window.
fn excluded(evil: &mut Evil, number: u64) -> Vec<(u32, ExclusionError)> {
    evil.close(number);
    let streams = evil.streams(0);
    evil.presence_at(0, streams, after(number)).1.excluded
}

/// By name, and only from the border on. Others of the same controller stay.
#[test]
fn a_plan_that_names_a_stream_loses_it_from_the_border() {
    let mut evil = Evil::new(Setup { streams_each: 2, windows: 4, ..Setup::new(2) });
    let placement = placement(&evil, window(2).start);
    leave(&mut evil, &placement, Timestamp(EPOCH));
    let seen: Vec<_> = (0..4).map(|number| excluded(&mut evil, number)).collect();
    let gone = vec![(0, ExclusionError::Moved)];
    assert_eq!(seen, [vec![], vec![], gone.clone(), gone]);
    // The summons of before the restart are answered in the same way after it.
    evil.start_again(after(3));
    assert_eq!(excluded(&mut evil, 3), [(0, ExclusionError::Moved)]);
}

/// Nothing with noise is answered from then on, so what is handed over is all that was ever charged. Windows in
/// progress count.
#[test]
fn what_the_owner_was_charged_goes_along_with_windows_that_are_under_way() {
    let mut evil = Evil::new(four(4, 3));
    let draft = evil.gather();
    let placement = placement(&evil, window(3).start);
    let handed = leave(&mut evil, &placement, after(0));
    // A window that was promised is spent as before.
    evil.token(0, &draft).unwrap();
    assert_eq!(excluded(&mut evil, 1), [(0, ExclusionError::Moved)]);
    let owner = owner(evil.world.plan.streams[0].stream).id();
    arrive(&mut evil, &placement, &handed);
    let spent = |evil: &Evil, at: usize| evil.controllers[at].accounts().person(owner);
    assert!(spent(&evil, 0).epsilon.0 > 0);
    assert_eq!(spent(&evil, 1), spent(&evil, 0));
    // And the next controller still knows after a restart.
    let (store, fence) = (evil.store.clone(), evil.controllers[1].fence());
    evil.restore(1, &store, after(1), Some(fence));
    assert_eq!(spent(&evil, 1), spent(&evil, 0));
}
