//! A stream whose key is destroyed: no data, no token, no way back.

use super::world::{Hall, House, Person, Town, at};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{AnnotationError, CertificateError};
use alpheus_encrypted_stream::ledger::LogEvent;
use alpheus_encrypted_stream::withdrawal::{Erasure, Withdrawal};
use alpheus_streams::controller::guard::GuardError;
use alpheus_streams::wire::Notice;

/// Has a person's stream erased, and checks what the controller says.
fn erase(house: &mut House, person: &Person, second: u64) -> Erasure {
    let asked = Town::withdrawal(person, true);
    let signed = house.guard().withdraw(at(second), &person.name, &asked).unwrap().unwrap();
    let key = house.recipient.certificate().party.verifying;
    Erasure::open(&signed, (&house.id, &key), &person.stream).unwrap().into_inner()
}

/// Sends for some seconds; sums and populations of the windows that opened.
fn run(
    town: &mut Town,
    hall: &mut Hall,
    people: [&mut Person; 2],
    houses: &mut [&mut House],
    seconds: std::ops::Range<u64>,
) -> Vec<(String, u32)> {
    let mut opened = Vec::new();
    let [alice, bob] = people;
    for second in seconds {
        town.send(hall, alice, second, 1);
        town.send(hall, bob, second, 2);
        let round = hall.turn(at(second + 1));
        let rows = hall.carry(at(second + 1), round, houses).rows;
        let ok = rows.iter().filter(|row| row.status == "ok");
        opened.extend(ok.map(|row| (row.outputs[0].1.to_string(), row.population)));
    }
    opened
}

#[test]
fn after_an_erasure_the_others_go_on_and_the_host_has_no_key() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, mut bob]) = town.two_houses();
    let everybody =
        run(&mut town, &mut hall, [&mut alice, &mut bob], &mut [&mut first, &mut second], 2..8);
    assert!(everybody.contains(&("\"6\"".to_owned(), 2)), "{everybody:?}");
    let reported = erase(&mut first, &alice, 8);
    assert_eq!(erase(&mut first, &alice, 8), reported, "asked again it says the same");
    let mut from = 8;
    for asleep in [false, true] {
        if asleep {
            first.guard = None;
            first.guard = Some(town.wake(&first, at(from)).unwrap());
        }
        let others = run(
            &mut town,
            &mut hall,
            [&mut alice, &mut bob],
            &mut [&mut first, &mut second],
            from..from + 8,
        );
        assert!(others.len() >= 2, "asleep: {asleep}, {others:?}");
        let bobs = |(sum, population): &(String, u32)| (sum.as_str(), *population) == ("\"4\"", 1);
        assert!(others.iter().skip(1).all(bobs), "asleep: {asleep}, {others:?}");
        from += 8;
        let log = first.guard().log(&alice.name, &alice.stream).unwrap().read().unwrap();
        assert_eq!(log.iter().filter(|line| line.event == LogEvent::Erased).count(), 1);
        assert_eq!(erase(&mut first, &alice, from), reported);
        let handover = town.handover(&alice, &first);
        let again = first.guard().take(at(from), &alice.name, &handover);
        assert!(matches!(again, Err(GuardError::Here)), "{again:?}");
        let choice = town.choice(&alice, 7, town.policy());
        let chosen = first.guard().choose(at(from), &alice.name, &choice);
        assert!(matches!(chosen, Err(GuardError::Annotation(AnnotationError::Revoked))));
    }
}

#[test]
fn nobody_else_has_a_stream_erased() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], [alice, bob]) = town.two_houses();
    let mut asked = Town::withdrawal(&alice, true);
    let mut own = Town::withdrawal(&bob, true);
    own.signed = Signed::new(&Withdrawal { stream: alice.stream, erase: true }, &bob.identity.key);
    let stranger = first.guard().withdraw(at(3), &bob.name, &own);
    assert!(matches!(stranger, Err(GuardError::NotYours)), "{stranger:?}");
    // Who has the owner's connection, but not the key.
    asked.signed =
        Signed::new(&Withdrawal { stream: alice.stream, erase: true }, &bob.identity.key);
    let thief = first.guard().withdraw(at(3), &alice.name, &asked);
    let unsigned = GuardError::Annotation(AnnotationError::Unsigned).to_string();
    assert_eq!(thief.unwrap_err().to_string(), unsigned);
    // Who is certified, but as somebody other than on the connection.
    asked.owner = bob.certificate();
    let thief = first.guard().withdraw(at(3), &alice.name, &asked);
    let wrong = GuardError::Owner(CertificateError::OtherName).to_string();
    assert_eq!(thief.unwrap_err().to_string(), wrong);
}

#[test]
fn a_crash_between_word_and_deed_does_not_keep_the_key() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], [alice, _bob]) = town.two_houses();
    let slots = town.slot_file(&first.name);
    let before = std::fs::read(&slots).unwrap();
    let reported = erase(&mut first, &alice, 3);
    let after = std::fs::read(&slots).unwrap();
    assert_ne!(before, after);
    first.guard = None;
    std::fs::write(&slots, &before).unwrap();
    first.guard = Some(town.wake(&first, at(4)).unwrap());
    assert_eq!(std::fs::read(&slots).unwrap(), after, "the slot is still there");
    assert_eq!(erase(&mut first, &alice, 5), reported);
}

/// The store keeps old values; an older copy of it stands for them.
#[test]
fn an_older_copy_of_the_store_does_not_bring_the_key_back() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], [alice, _bob]) = town.two_houses();
    let slots = town.slot_file(&first.name);
    let (copy, before) = (first.disk.copy(), std::fs::read(&slots).unwrap());
    erase(&mut first, &alice, 3);
    let after = std::fs::read(&slots).unwrap();
    first.guard = None;
    // With the slots of then it would: that is what the test can see.
    for (bytes, is_erased) in [(&after, true), (&before, false)] {
        std::fs::write(&slots, bytes).unwrap();
        first.disk = copy.copy();
        first.guard = Some(town.wake(&first, at(4)).unwrap());
        let log = first.guard().log(&alice.name, &alice.stream).unwrap().read().unwrap();
        let erased = log.iter().any(|line| line.event == LogEvent::Erased);
        assert_eq!(erased, is_erased, "the owner reads it there");
        let notices = first.guard().notices().some(9).unwrap();
        let withdrawn = |notice: &Notice| matches!(notice, Notice::Withdrawn(_));
        assert_eq!(notices.iter().any(|(_, notice)| withdrawn(notice)), is_erased);
        first.guard = None;
    }
}

#[test]
fn slots_that_are_missing_or_lost_are_named() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], _) = town.two_houses();
    first.guard = None;
    let slots = town.slot_file(&first.name);
    let mut bytes = std::fs::read(&slots).unwrap();
    std::fs::remove_file(&slots).unwrap();
    let missing = town.wake(&first, at(4)).map(drop).unwrap_err().to_string();
    bytes[32..].fill(0);
    std::fs::write(&slots, &bytes).unwrap();
    let lost = town.wake(&first, at(4)).map(drop).unwrap_err().to_string();
    for refused in [missing, lost] {
        assert!(refused.contains("restore both from the same backup"), "{refused}");
    }
}
