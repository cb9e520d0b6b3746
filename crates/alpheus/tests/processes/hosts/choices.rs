//! Nobody's choice speaks for others.

use super::world::{House, QUERY, Town, at};
use alpheus_encrypted_stream::error::AnnotationError;
use alpheus_policy::plan::Fraction;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_streams::controller::guard::GuardError;
use alpheus_streams::server::registry::IntroductionError;
use alpheus_streams::wire::Registration;
use alpheus_transport::simulation::Machine;

/// Policies of a stranger's own making: one would have everybody else left out,
/// the other lets no plan come about.
fn made_up(town: &Town) -> [ResolvedPolicy; 2] {
    [Fraction { numerator: 1, denominator: 1 }, Fraction { numerator: 0, denominator: 0 }].map(
        |fraction| {
            let mut policy = town.policy();
            let own = &mut policy.attributes[0].alternatives[0];
            (own.alpha, own.dropout) = (fraction, fraction);
            policy
        },
    )
}

#[test]
fn a_policy_that_the_schema_does_not_offer_is_taken_nowhere() {
    let mut town = Town::new();
    let mut hall = town.hall(Machine::new());
    let mut house: House = town.house("first");
    let (alice, mallory) = (town.person(1), town.person(2));
    let handover = town.handover(&alice, &house);
    house.guard().take(at(0), &alice.name, &handover).unwrap();
    house.tell(&mut hall, &town);
    for policy in made_up(&town) {
        let mut handover = town.handover(&mallory, &house);
        handover.annotation = town.annotation(&mallory, 1, policy.clone());
        let refused = house.guard().take(at(1), &mallory.name, &handover);
        assert!(
            matches!(refused, Err(GuardError::Annotation(AnnotationError::NotOffered(_)))),
            "{refused:?}"
        );
        let choice = town.choice(&alice, 2, policy);
        let refused = house.guard().choose(at(1), &alice.name, &choice);
        assert!(
            matches!(refused, Err(GuardError::Annotation(AnnotationError::NotOffered(_)))),
            "{refused:?}"
        );
        // A host that does not check finds a service that does.
        let registration = Registration {
            annotation: handover.annotation.clone(),
            owner: handover.owner.clone(),
            placement: handover.placement.clone(),
        };
        let refused =
            hall.registry.register(&mut hall.manager, &town.deployment, "first", registration);
        assert!(
            matches!(refused, Err(IntroductionError::Annotation(AnnotationError::NotOffered(_)))),
            "{refused:?}"
        );
    }
    assert_eq!(hall.manager.catalog.streams().count(), 1);
    hall.ask(QUERY, at(2), &mut town.rng);
}
