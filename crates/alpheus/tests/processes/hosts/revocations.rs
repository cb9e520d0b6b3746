//! What a service keeps of an owner whose certificate is revoked.

use super::world::{House, Person, Town, at};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Party, Role, Subject};
use alpheus_encrypted_stream::error::AnnotationError;
use alpheus_streams::server::registry::IntroductionError;
use alpheus_streams::wire::Registration;

/// The same key and the same owner, certified again.
fn certified_again(town: &Town, person: &Person) -> Signed<Certificate> {
    let key = person.identity.key.verifying_key();
    let party = Party::signing(Role::Owner, "owner-1-again", key);
    party.certify(Subject([1; 16]), &town.authority)
}

fn registration(town: &Town, person: &Person, house: &House, version: u32) -> Registration {
    Registration {
        annotation: town.annotation(person, version, town.policy()),
        owner: certified_again(town, person),
        placement: town.placement(person, 1, house.id, "device-of-owner-1"),
    }
}

/// A host, or who has its certificate, repeats an earlier choice under the new certificate.
#[test]
fn an_earlier_choice_stays_refused_after_a_revocation() {
    let mut town = Town::new();
    let (mut hall, [mut house, _], [person, _]) = town.two_houses();
    let choice = town.choice(&person, 2, town.policy());
    house.guard().choose(at(2), &person.name, &choice).unwrap();
    house.tell(&mut hall, &town);
    let planned = |hall: &super::world::Hall| {
        hall.manager.catalog.streams().any(|known| known.stream == person.stream)
    };
    assert!(planned(&hall));
    let revoked: Digest = person.certificate().digest();
    hall.registry.revoke(&mut hall.manager, [revoked].into()).unwrap();
    assert!(!planned(&hall));
    assert!(!hall.registry.sends("device-of-owner-1", &person.stream));
    let mut register = |version| {
        let given = registration(&town, &person, &house, version);
        let registered =
            hall.registry.register(&mut hall.manager, &town.deployment, &house.name, given);
        (registered, planned(&hall))
    };
    let (refused, is_planned) = register(1);
    let older = AnnotationError::NotLater { version: 1, current: 2 };
    assert!(
        matches!(&refused, Err(IntroductionError::Annotation(why)) if *why == older),
        "{refused:?}"
    );
    assert!(!is_planned);
    let (registered, is_planned) = register(2);
    assert!(registered.is_ok() && is_planned, "the same choice, under another certificate");
    assert!(hall.registry.sends("device-of-owner-1", &person.stream));
}
