//! A stream whose key is destroyed: no data, no token, no way back.

use super::world::{House, Person, Town, at};
use alpheus::controller::guard::GuardError;
use alpheus_encrypted_stream::erasure::Erasure;
use alpheus_encrypted_stream::error::AnnotationRefused;
use alpheus_encrypted_stream::ledger::LogEvent;

/// Has a person's stream erased, and checks what the controller says.
fn erase(house: &mut House, person: &Person, second: u64) -> Erasure {
    let signed = house.guard().erase(at(second), &person.name, &person.stream).unwrap();
    let key = house.certificate.verifying;
    let said = Erasure::open(&signed, (&house.id, &key), &person.stream).unwrap();
    assert!(Erasure::open(&signed, (&house.id, &key), &Town::new().person(9).stream).is_err());
    said.into_inner()
}

#[test]
fn after_an_erasure_the_others_go_on_and_the_host_has_no_key() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, mut bob]) = town.two_houses();
    let told = erase(&mut first, &alice, 3);
    assert_eq!(erase(&mut first, &alice, 4), told, "asked again it says the same");
    let mut rows = Vec::new();
    for time in 4..12 {
        town.send(&hall, &mut alice, time, 1);
        town.send(&hall, &mut bob, time, 2);
        let round = hall.turn(at(time + 1));
        rows.extend(hall.carry(at(time + 1), round, &mut [&mut first, &mut second]).rows);
    }
    assert!(!rows.is_empty() && rows.iter().all(|row| row.population <= 1), "{rows:?}");
    for asleep in [false, true] {
        if asleep {
            first.guard = None;
            first.guard = Some(town.wake(&first, at(13)).unwrap());
        }
        let log = first.guard().log(&alice.name, &alice.stream).unwrap().read().unwrap();
        assert_eq!(log.iter().filter(|line| line.event == LogEvent::Erased).count(), 1);
        let handover = town.handover(&alice, &first);
        let again = first.guard().take(at(14), &alice.name, &handover);
        assert!(matches!(again, Err(GuardError::Here)), "{again:?}");
        let choice = town.choice(&alice, 7, town.policy());
        let chosen = first.guard().choose(at(14), &alice.name, &choice);
        assert!(matches!(chosen, Err(GuardError::Annotation(AnnotationRefused::Revoked))));
    }
}

#[test]
fn a_crash_between_word_and_deed_does_not_keep_the_key() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], [alice, _bob]) = town.two_houses();
    let slots = town.slot_file(&first.name);
    let before = std::fs::read(&slots).unwrap();
    let told = erase(&mut first, &alice, 3);
    let after = std::fs::read(&slots).unwrap();
    assert_ne!(before, after);
    first.guard = None;
    std::fs::write(&slots, &before).unwrap();
    first.guard = Some(town.wake(&first, at(4)).unwrap());
    assert_eq!(std::fs::read(&slots).unwrap(), after, "the slot is still there");
    assert_eq!(erase(&mut first, &alice, 5), told);
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
    for (bytes, has_key) in [(&after, false), (&before, true)] {
        // With the slots of then it would: that is what the test can see.
        std::fs::write(&slots, bytes).unwrap();
        first.disk = copy.copy();
        first.guard = Some(town.wake(&first, at(4)).unwrap());
        let streams = first.guard().streams_of(&alice.name);
        assert_eq!(streams.contains(&alice.stream), has_key);
        first.guard = None;
    }
}

#[test]
fn a_slot_file_that_is_missing_is_named() {
    let mut town = Town::new();
    let (_hall, [mut first, _second], _) = town.two_houses();
    first.guard = None;
    std::fs::remove_file(town.slot_file(&first.name)).unwrap();
    let woken = town.wake(&first, at(4)).map(drop);
    let refused = woken.unwrap_err().to_string();
    assert!(refused.contains("restore both from one backup"), "{refused}");
}
