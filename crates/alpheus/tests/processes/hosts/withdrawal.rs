//! What an owner has taken back does not leave any more.

use super::world::{Hall, House, Town, at};
use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_streams::controller::outbox::OutgoingBatch;

/// Whether what goes would open anything.
fn has_token(batch: &OutgoingBatch) -> bool {
    let token = |message: &ControllerMessage| matches!(message, ControllerMessage::Token(_));
    batch.messages.iter().any(|(_, _, message)| token(message))
}

/// Two hosts with a stream each, and a window for which both were asked for
/// their tokens: the service did not hear them, since it has gone away.
fn asked_for_tokens() -> (Town, Hall, House, House) {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, mut bob]) = town.two_houses();
    for time in 2..6 {
        town.send(&hall, &mut alice, time, 1);
        town.send(&hall, &mut bob, time, 2);
    }
    // The summonses are answered; then the service says what M is and is gone.
    let mut round = hall.turn(at(5));
    while !round.messages.iter().any(|(.., m)| matches!(m, ServiceMessage::Membership { .. })) {
        let mut answered = Vec::new();
        for house in [&mut first, &mut second] {
            let id = house.id;
            let own = round.messages.iter().filter(|message| message.0 == id).cloned();
            house.guard().answer(at(5), own.collect()).unwrap();
            let batch = house.guard().outgoing_batch();
            answered.extend(batch.messages.clone());
            house.guard().arrived(&batch);
        }
        round = hall.manager.service.receive(at(5), at(5), answered).unwrap();
    }
    for house in [&mut first, &mut second] {
        let id = house.id;
        let own = round.messages.iter().filter(|message| message.0 == id).cloned();
        house.guard().answer(at(5), own.collect()).unwrap();
        assert!(
            has_token(&house.guard().outgoing_batch()),
            "the test does not come as far as a token"
        );
    }
    (town, hall, first, second)
}

#[test]
fn no_token_leaves_after_its_owner_has_revoked() {
    let (town, _hall, mut first, mut second) = asked_for_tokens();
    let (alice, under_way) = (town.person(1), first.guard().outgoing_batch());
    assert!(under_way.is_current());
    first.guard().withdraw(at(6), &alice.name, &Town::withdrawal(&alice, false)).unwrap();
    assert!(!under_way.is_current(), "the transfer continues");
    assert!(!has_token(&first.guard().outgoing_batch()), "the token waits to be sent again");
    first.guard().arrived(&under_way);
    assert!(!has_token(&first.guard().outgoing_batch()));
    assert!(has_token(&second.guard().outgoing_batch()), "another host's owners are not concerned");
}

#[test]
fn no_token_leaves_after_its_owner_was_revoked() {
    let (town, mut hall, mut first, mut second) = asked_for_tokens();
    let under_way = first.guard().outgoing_batch();
    assert!(under_way.is_current());
    town.revoked.replace([town.person(1).certificate().digest()].into());
    assert!(!under_way.is_current(), "the transfer continues");
    assert!(!has_token(&first.guard().outgoing_batch()), "the token waits to be sent again");
    // The service asks again, of both hosts, and nobody who is revoked is in what opens.
    let mut rows = Vec::new();
    for time in 6..40 {
        let round = hall.turn(at(time));
        rows.extend(hall.carry(at(time), round, &mut [&mut first, &mut second]).rows);
        assert!(!has_token(&first.guard().outgoing_batch()));
    }
    let opened: Vec<_> = rows.iter().filter(|row| row.status == "ok").collect();
    assert!(opened.iter().all(|row| row.population < 2), "{opened:?}");
}

#[test]
fn a_controller_that_was_revoked_says_nothing_more() {
    let (town, _hall, mut first, mut second) = asked_for_tokens();
    town.revoked.replace([Digest(first.id.0)].into());
    assert!(first.guard().outgoing_batch().messages.is_empty());
    // Others check again, since one of their owners may be revoked; they are asked again.
    assert!(!has_token(&second.guard().outgoing_batch()));
}

#[test]
fn no_token_leaves_after_its_owner_has_chosen_otherwise() {
    let (town, _hall, mut first, _) = asked_for_tokens();
    let alice = town.person(1);
    let mut stricter = town.policy();
    stricter.attributes[0].alternatives[0].min_population = 3;
    let choice = town.choice(&alice, 2, stricter);
    first.guard().choose(at(6), &alice.name, &choice).unwrap();
    assert!(!has_token(&first.guard().outgoing_batch()));
}

#[test]
fn a_service_that_asks_again_for_what_was_taken_back_is_refused() {
    let (town, mut hall, mut first, mut second) = asked_for_tokens();
    let alice = town.person(1);
    first.guard().withdraw(at(6), &alice.name, &Town::withdrawal(&alice, false)).unwrap();
    // It comes back, and asks again who has not answered.
    let mut rows = Vec::new();
    for time in 6..40 {
        let round = hall.turn(at(time));
        rows.extend(hall.carry(at(time), round, &mut [&mut first, &mut second]).rows);
        assert!(!has_token(&first.guard().outgoing_batch()));
    }
    let opened: Vec<_> = rows.iter().filter(|row| row.status == "ok").collect();
    assert!(opened.iter().all(|row| row.population < 2), "{opened:?}");
}
