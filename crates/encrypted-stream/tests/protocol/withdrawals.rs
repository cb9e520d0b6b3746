//! Owners take consent back, and have keys destroyed.

use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::error::{AnnotationRefused, Exclusion};
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, Stamped, Step};
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_encrypted_stream::withdrawal::{Erasure, Withdrawal};
use alpheus_policy::ids::StreamId;
use alpheus_policy::time::Timestamp;

use crate::honest::opened;
use crate::net::Net;
use crate::world::{Setup, after, owner_key, stream_id};

/// An owner takes consent back.
pub fn revoke(
    controller: &mut Controller,
    now: Timestamp,
    stream: StreamId,
) -> Step<ControllerMessage> {
    withdraw(controller, now, stream, false).0
}

/// The same, with the key too if `erase`.
pub fn withdraw(
    controller: &mut Controller,
    now: Timestamp,
    stream: StreamId,
    erase: bool,
) -> (Step<ControllerMessage>, Option<Signed<Erasure>>) {
    let key = owner_key(stream);
    let signed = Signed::new(&Withdrawal { stream, erase }, &key);
    controller.withdraw(now, &key.verifying_key(), &signed).unwrap()
}

#[test]
fn after_a_revocation_nothing_leaves() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    let step = revoke(&mut net.controllers[0], after(0), stream_id(0));
    step.commit(&mut net.store).unwrap();
    net.close(0);
    assert_eq!(opened(&net, 0), (net.world.truth([1, 2, 3], 0), 3));
    assert_eq!(net.outcomes[0].excluded[&Exclusion::Revoked], 1);
}

#[test]
fn after_an_erasure_nothing_leaves_and_the_controller_says_so() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    let (step, said) = withdraw(&mut net.controllers[0], after(0), stream_id(0), true);
    step.commit(&mut net.store).unwrap();
    let identity = net.world.identity(0);
    let controller = identity.id();
    let key = net.world.seats[0].1.open(&net.world.authority.verifying_key()).unwrap().verifying;
    let opened_word = Erasure::open(&said.clone().unwrap(), (&controller, &key), &stream_id(0));
    assert_eq!(opened_word.unwrap().into_inner().at, after(0));
    assert!(Erasure::open(&said.clone().unwrap(), (&controller, &key), &stream_id(1)).is_err());
    // Asked again, also after a restart, with the key in hand or without, it says the same.
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
        assert_eq!(net.outcomes[number as usize].excluded[&Exclusion::Revoked], 1);
    }
    let prefix = Scope::Controller(controller);
    let lines = net.store.values(prefix).into_iter().filter(|value| {
        let record = Stamped::read(value).unwrap().record;
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
    let refused = controller.withdraw(after(0), &other.verifying_key(), &signed).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationRefused::WrongOwner);
    let owner = owner_key(stream).verifying_key();
    let refused = controller.withdraw(after(0), &owner, &signed).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationRefused::Unsigned);
    let elsewhere = stream_id(3);
    let key = owner_key(elsewhere);
    let signed = Signed::new(&Withdrawal { stream: elsewhere, erase: false }, &key);
    let refused = controller.withdraw(after(0), &key.verifying_key(), &signed).map(drop);
    assert_eq!(refused.unwrap_err(), AnnotationRefused::NotHeld);
}
