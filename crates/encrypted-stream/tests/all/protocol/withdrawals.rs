//! Owners withdraw consent and have keys destroyed.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::error::{AnnotationError, ExclusionError};
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, StampedRecord, Step};
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_encrypted_stream::withdrawal::{Erasure, Withdrawal};
use alpheus_policy::ids::StreamId;
use alpheus_time::Timestamp;

use crate::protocol::honest::opened;
use crate::protocol::identities::{certified, owner, owner_key};
use crate::protocol::net::Net;
use crate::protocol::world::{EPOCH, Setup, after, policy, stream_id};

/// An owner withdraws consent.
pub fn revoke(
    controller: &mut Controller,
    now: Timestamp,
    stream: StreamId,
) -> Step<Vec<ControllerMessage>> {
    withdraw(controller, now, stream, false).0
}

/// The same, and the key is erased if `erase`.
pub fn withdraw(
    controller: &mut Controller,
    now: Timestamp,
    stream: StreamId,
    erase: bool,
) -> (Step<Vec<ControllerMessage>>, Option<Signed<Erasure>>) {
    let key = owner_key(stream);
    let signed = Signed::new(&Withdrawal { stream, erase }, &key);
    controller.withdraw(&signed, &certified(&key), now).unwrap()
}

#[test]
fn after_a_revocation_nothing_is_released() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    let step = revoke(&mut net.controllers[0], after(0), stream_id(0));
    step.commit(&mut net.store).unwrap();
    net.close(0);
    assert_eq!(opened(&net, 0), (net.world.truth([1, 2, 3], 0), 3));
    assert_eq!(net.outcomes[0].excluded[&ExclusionError::Revoked], 1);
}

#[test]
fn after_an_erasure_nothing_is_released_and_the_controller_signs_a_statement() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    let (step, said) = withdraw(&mut net.controllers[0], after(0), stream_id(0), true);
    step.commit(&mut net.store).unwrap();
    let identity = net.world.identity(0);
    let controller = identity.id();
    let seat = net.world.seats[0].1.open(&net.world.authority.verifying_key()).unwrap();
    let key = seat.party.verifying;
    let opened_word = Erasure::open(&said.clone().unwrap(), (&controller, &key), &stream_id(0));
    assert_eq!(opened_word.unwrap().into_inner().at, after(0));
    assert!(Erasure::open(&said.clone().unwrap(), (&controller, &key), &stream_id(1)).is_err());
    // Repeated, also after a restart, with or without the key, it returns the same
    // statement.
    for number in 0..3 {
        if number > 0 {
            net.world.erased = if number == 1 { vec![] } else { vec![stream_id(0)] };
            net.restore_controllers(after(number - 1), true);
        }
        let (step, again) = withdraw(&mut net.controllers[0], after(number), stream_id(0), true);
        assert!(!step.is_empty() && again == said);
        step.commit(&mut net.store).unwrap();
        net.close(number);
        assert_eq!(opened(&net, number as usize), (net.world.truth([1, 2, 3], number), 3));
        assert_eq!(net.outcomes[number as usize].excluded[&ExclusionError::Revoked], 1);
    }
    let prefix = Scope::Controller(controller);
    let lines = net.store.values(prefix).into_iter().filter(|value| {
        let record = StampedRecord::read(value).unwrap().record;
        matches!(record, Record::Log(line) if line.event == LogEvent::Erased)
    });
    assert_eq!(lines.count(), 1);
}

#[test]
fn only_the_owner_withdraws() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    let (stream, other) = (stream_id(0), owner_key(stream_id(1)));
    let controller = &mut net.controllers[0];
    let signed = Signed::new(&Withdrawal { stream, erase: true }, &other);
    let refused = controller.withdraw(&signed, &certified(&other), after(0)).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationError::WrongOwner);
    let owner = owner(stream);
    let refused = controller.withdraw(&signed, &owner, after(0)).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationError::Unsigned);
    let elsewhere = stream_id(3);
    let key = owner_key(elsewhere);
    let signed = Signed::new(&Withdrawal { stream: elsewhere, erase: false }, &key);
    let refused = controller.withdraw(&signed, &certified(&key), after(0)).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationError::NotHeld);
}

/// Versions of a stream's annotation in the ledger of controller 0.
fn versions(net: &Net, stream: StreamId) -> Vec<u32> {
    let values = net.store.values(Scope::Controller(net.controllers[0].id()));
    let records = values.into_iter().map(|value| StampedRecord::read(value).unwrap().record);
    let version = |record| match record {
        Record::Annotation { stream: of, version, .. } if of == stream => Some(version),
        _ => None,
    };
    records.filter_map(version).collect()
}

#[test]
fn an_owner_who_chooses_often_fills_no_ledger() {
    let mut net = Net::new(Setup::new(2));
    let (stream, setup) = (stream_id(0), net.world.setup.clone());
    for version in 2..=300 {
        let signed = net.world.annotate(stream, version, policy(&setup));
        let step = net.controllers[0].annotate(&signed, &owner(stream), after(0)).unwrap();
        step.commit(&mut net.store).unwrap();
    }
    assert_eq!(versions(&net, stream), (45..=300).collect::<Vec<u32>>());
    // What was in force when the first two windows began is no longer known.
    for number in 0..2 {
        net.close(number);
        assert_eq!(net.outcomes[number as usize].excluded[&ExclusionError::Policy], 1);
    }
    // And so many changes in a day make the stream wait.
    net.close(2);
    assert_eq!(net.outcomes[2].excluded[&ExclusionError::Restless], 1);
    assert_eq!(opened(&net, 2), (net.world.truth([1], 2), 1));
    net.restore_controllers(after(2), true);
    assert_eq!(versions(&net, stream).len(), 256);
}

/// One owner of all streams of a host: the fourth change in a day makes all wait, whichever streams it is
/// made for. A withdrawal counts. Streams that change together change once.
#[test]
fn an_owner_changes_choices_a_few_times_a_day_however_many_streams_the_owner_has() {
    let setup = Setup { streams_each: 5, one_owner: true, windows: 24, ..Setup::new(2) };
    let mut net = Net::new(setup);
    let minute = |number: u64| Timestamp(EPOCH + number * 60_000_000);
    let owner = certified(&net.world.setup.owner_key(stream_id(0)));
    let choose = |net: &mut Net, number: u32, version, at| {
        let chosen = policy(&net.world.setup);
        let signed = net.world.annotate(stream_id(number), version, chosen);
        let step = net.controllers[0].annotate(&signed, &owner, at).unwrap();
        step.commit(&mut net.store).unwrap();
    };
    (0..5).for_each(|number| choose(&mut net, number, 2, minute(0)));
    choose(&mut net, 0, 3, minute(1));
    choose(&mut net, 1, 3, minute(2));
    (0..=20).for_each(|number| net.close(number));
    let outcome = net.outcomes.pop().unwrap();
    assert_eq!(outcome.excluded.get(&ExclusionError::Restless), None, "three times");
    let withdrawal = Withdrawal { stream: stream_id(4), erase: false };
    let signed = Signed::new(&withdrawal, &net.world.setup.owner_key(stream_id(4)));
    let (step, _) = net.controllers[0].withdraw(&signed, &owner, minute(3)).unwrap();
    step.commit(&mut net.store).unwrap();
    net.close(21);
    let outcome = net.outcomes.pop().unwrap();
    assert_eq!(outcome.excluded[&ExclusionError::Restless], 4, "and the fourth");
}
