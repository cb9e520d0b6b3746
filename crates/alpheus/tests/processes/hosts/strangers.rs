//! Anyone who has a certificate of the right name, an old message or an old copy
//! changes nothing of what an owner has said.

use super::world::{Hall, House, Person, QUERY, Town, at};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Placement;
use alpheus_encrypted_stream::certificate::{Party, Role, Subject};
use alpheus_encrypted_stream::error::{AnnotationError, CertificateError};
use alpheus_streams::controller::guard::GuardError;
use alpheus_streams::server::registry::IntroductionError;
use alpheus_streams::wire::{Handover, Registration};
use alpheus_transport::simulation::Machine;

/// A host with Alice's stream, and a service that knows of both.
fn settled() -> (Town, Hall, House, Person) {
    let mut town = Town::new();
    let mut hall = town.hall(Machine::new());
    let mut house = town.house("first");
    let alice = town.person(1);
    let handover = town.handover(&alice, &house);
    house.guard().take(at(0), &alice.name, &handover).unwrap();
    house.tell(&mut hall, &town);
    (town, hall, house, alice)
}

#[test]
fn a_key_that_is_here_is_not_replaced() {
    let (mut town, _hall, mut house, alice) = settled();
    let first = town.handover(&alice, &house);
    // The same certificate's name, but not Alice's key; and Alice, with another secret.
    let mut mallory = town.person_named(9, alice.name.clone());
    mallory.stream = alice.stream;
    let mut careless = town.person(1);
    careless.secret = [77; 32];
    for other in [&mallory, &careless] {
        let handover = town.handover(other, &house);
        let refused = house.guard().take(at(1), &alice.name, &handover);
        assert!(matches!(refused, Err(GuardError::Here)), "{refused:?}");
    }
    let mut eve = town.person(2);
    eve.stream = alice.stream;
    let handover = town.handover(&eve, &house);
    let refused = house.guard().take(at(1), &eve.name, &handover);
    assert!(matches!(refused, Err(GuardError::NotYours)), "{refused:?}");
    // What is here is what Alice handed over: the same again says so, also later.
    house.guard().take(at(1), &alice.name, &first).unwrap();
    house.guard = None;
    house.guard = Some(town.wake(&house, at(2)).unwrap());
    house.guard().take(at(2), &alice.name, &first).unwrap();
}

/// Else one certificate could be any number of owners, and reach a minimum population alone.
#[test]
fn one_connection_is_one_certified_owner() {
    let (mut town, mut hall, mut house, alice) = settled();
    let refused = |house: &mut House, handover: &Handover| {
        house.guard().take(at(1), &alice.name, handover).unwrap_err().to_string()
    };
    let said = |error| GuardError::Owner(error).to_string();
    // Keys that Alice has made herself, as many as she likes.
    for number in 10..19 {
        let mut more = town.person_named(number, alice.name.clone());
        let party =
            Party::signing(Role::Owner, alice.name.as_str(), *more.identity.certified.key());
        let own = town.handover(&more, &house);
        let own =
            Handover { owner: party.certify(Subject([number; 16]), &more.identity.key), ..own };
        assert_eq!(refused(&mut house, &own), said(CertificateError::Unsigned));
        // Under the certificate that she has, they sign nothing.
        more.identity.certified = alice.identity.certified.clone();
        let own = town.handover(&more, &house);
        let unsigned = GuardError::Annotation(AnnotationError::Unsigned).to_string();
        assert_eq!(refused(&mut house, &own), unsigned);
    }
    // Bob's certificate counts on Bob's connection alone; a device's counts nowhere.
    let bob = town.person(2);
    let lent = town.handover(&bob, &house);
    assert_eq!(refused(&mut house, &lent), said(CertificateError::OtherName));
    let party = Party::signing(Role::Device, alice.name.as_str(), *bob.identity.certified.key());
    let device = Handover { owner: party.certify(Subject([2; 16]), &town.authority), ..lent };
    assert_eq!(refused(&mut house, &device), said(CertificateError::Role));
    // A host that does not check finds a service that does.
    let registration = Registration {
        annotation: device.annotation,
        owner: device.owner,
        placement: device.placement,
    };
    let registered =
        hall.registry.register(&mut hall.manager, &town.deployment, "first", registration);
    assert!(matches!(registered, Err(IntroductionError::Certificate(CertificateError::Role))));
    assert_eq!(hall.manager.catalog.streams().count(), 1);
}

#[test]
fn a_stream_that_is_refused_leaves_nothing_behind() {
    let (mut town, mut hall, mut house, alice) = settled();
    let bob = town.person(2);
    let good = town.handover(&bob, &house);
    let mut bad = town.handover(&bob, &house);
    bad.annotation = town.annotation(&alice, 9, town.policy());
    assert!(house.guard().take(at(1), &bob.name, &bad).is_err());
    let mut bad = town.handover(&bob, &house);
    bad.placement = town.placement(&alice, 9, house.id, "device");
    assert!(house.guard().take(at(1), &bob.name, &bad).is_err());
    assert!(house.guard().streams_of(&bob.name).is_empty());
    house.guard = None;
    house.guard = Some(town.wake(&house, at(2)).unwrap());
    assert!(house.guard().streams_of(&bob.name).is_empty());
    house.guard().take(at(2), &bob.name, &good).unwrap();
    house.tell(&mut hall, &town);
    assert_eq!(hall.manager.catalog.streams().count(), 2);
}

#[test]
fn a_service_that_has_forgotten_hears_everything_again() {
    let (mut town, mut hall, mut house, alice) = settled();
    let bob = town.person(2);
    let handover = town.handover(&bob, &house);
    house.guard().take(at(1), &bob.name, &handover).unwrap();
    // Another service hears that Alice has withdrawn; then the first is back.
    let mut other = town.hall(Machine::new());
    house.guard().notices().resend_all().unwrap();
    house.guard().withdraw(at(2), &alice.name, &Town::withdrawal(&alice, false)).unwrap();
    house.tell(&mut other, &town);
    assert_eq!(hall.manager.catalog.streams().count(), 1, "it knows of Alice alone");
    house.guard().notices().resend_all().unwrap();
    house.tell(&mut hall, &town);
    let known: Vec<_> = hall.manager.catalog.streams().map(|known| known.stream).collect();
    assert_eq!(known, [bob.stream]);
}

#[test]
fn what_the_service_does_not_take_is_sent_again() {
    let (_town, _hall, mut house, alice) = settled();
    let notices = house.guard().notices();
    notices.resend_all().unwrap();
    let (stream, notice) = notices.some(1).unwrap().remove(0);
    notices.delivered(&stream, &notice, false).unwrap();
    assert!(notices.some(1).unwrap().is_empty(), "it is said again at once");
    notices.retry_refused();
    assert_eq!(notices.some(1).unwrap()[0].0, alice.stream);
}

#[test]
fn only_the_owner_says_who_guards_a_stream() {
    let (mut town, mut hall, first, alice) = settled();
    let mut second = town.house("second");
    second.tell(&mut hall, &town);
    let registered = |placement: Signed<Placement>| Registration {
        annotation: town.annotation(&alice, 1, town.policy()),
        owner: alice.certificate(),
        placement,
    };
    let mut register = |host: &str, placement| {
        hall.registry.register(&mut hall.manager, &town.deployment, host, registered(placement))
    };
    // A host that wants Alice's stream has no word of hers.
    let eve = town.person(2);
    let mut forged = town.person(2);
    forged.stream = alice.stream;
    let forged = town.placement(&forged, 2, second.id, "eves-device");
    let refused = register("second", forged);
    assert!(
        matches!(refused, Err(IntroductionError::Annotation(AnnotationError::Unsigned))),
        "{refused:?}"
    );
    let other = town.placement(&eve, 2, second.id, "eves-device");
    assert!(register("second", other).is_err());
    // Alice moves; the host of before, which has her earlier word, does not get her back.
    register("second", town.placement(&alice, 2, second.id, "watch")).unwrap();
    let refused = register("first", town.placement(&alice, 1, first.id, "device-of-owner-1"));
    assert!(matches!(refused, Err(IntroductionError::Moved(_))), "{refused:?}");
    let refused = register("first", town.placement(&alice, 2, first.id, "watch"));
    assert!(
        matches!(refused, Err(IntroductionError::Annotation(AnnotationError::Conflicting { .. }))),
        "{refused:?}"
    );
    // Hers once more is no mistake. What she withdrew stays so.
    register("second", town.placement(&alice, 2, second.id, "watch")).unwrap();
    hall.registry
        .withdraw(&mut hall.manager, alpheus_time::Timestamp(0), "second", &alice.stream)
        .unwrap();
    let again = registered(town.placement(&alice, 3, second.id, "watch"));
    let refused = hall.registry.register(&mut hall.manager, &town.deployment, "second", again);
    assert!(
        matches!(refused, Err(IntroductionError::Annotation(AnnotationError::Revoked))),
        "{refused:?}"
    );
}

#[test]
fn an_owners_log_names_no_other_stream() {
    let (mut town, mut hall, mut house, alice) = settled();
    let bob = town.person(2);
    let handover = town.handover(&bob, &house);
    house.guard().take(at(0), &bob.name, &handover).unwrap();
    house.tell(&mut hall, &town);
    let round = hall.ask(QUERY, at(1), &mut town.rng);
    hall.carry(at(1), round, &mut [&mut house]);
    let lines = house.guard().log(&alice.name, &alice.stream).unwrap().read().unwrap();
    assert!(lines.len() >= 2, "her choice and the query: {lines:?}");
    assert!(lines.iter().all(|line| line.streams == [alice.stream]), "{lines:?}");
    assert!(house.guard().log(&alice.name, &bob.stream).is_err());
}
