//! Nobody counts more often than the quota, dummies included, and nobody counts without
//! credentials of both kinds.

use crate::properties::helpers::{begun, copy, mixed, people};
use crate::support::{Town, at};
use alpheus_accountable_statistics::messages::{PublishedResult, SlotRequest, request_digest};
use alpheus_accountable_statistics::role_error::{ContributionError, SlotError};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{Holder, SubjectPresenter, present_together};
use alpheus_anonymous_credential::schedule::Period;

#[test]
fn a_fourth_upload_under_a_quota_of_three_is_refused() {
    let mut town = Town::new(4, 2, 20).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let (mut ada, prover) = (town.person(b"ada").unwrap(), Prover::new(*agreed.terms()));
    let mut twin = copy(&town, &ada);
    for _ in 0..3 {
        town.upload(&mut ada, &agreed, at(70), Contribution::Sample(50)).unwrap();
    }
    let fourth =
        ada.client.begin((&agreed, &prover), Contribution::Sample(50), at(70), &mut town.rng);
    assert_eq!(fourth.err(), Some(ContributionError::Holder(HolderError::Burnt)));
    // A copy of her device presents tags that are spent, at each smoother.
    for _ in 0..3 {
        let mut attempt = begun(&mut town, &mut twin, &agreed, 50);
        for _ in 0..4 {
            let (keeper, request) = attempt.request().unwrap();
            let smoother = &mut town.smoothers[usize::from(keeper.0)];
            let refusal = smoother.handle_request(&request, at(70), &mut town.rng).err();
            assert_eq!(refusal, Some(SlotError::Spent));
            attempt.handle_refusal();
        }
        assert_eq!(attempt.request().err(), Some(ContributionError::Full));
    }
}

/// A dummy is an upload like any other: a volunteer has that much less left to contribute.
#[test]
fn dummies_count_against_the_quota() {
    let mut town = Town::new(4, 2, 21).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let (mut ada, prover) = (town.person(b"ada").unwrap(), Prover::new(*agreed.terms()));
    let early = ada.client.begin((&agreed, &prover), Contribution::Dummy, at(119), &mut town.rng);
    assert_eq!(early.err(), Some(ContributionError::NotNow), "samples first");
    town.upload(&mut ada, &agreed, at(70), Contribution::Sample(50)).unwrap();
    town.upload(&mut ada, &agreed, at(121), Contribution::Dummy).unwrap();
    town.upload(&mut ada, &agreed, at(121), Contribution::Dummy).unwrap();
    assert_eq!(ada.client.left(&agreed), Ok(0));
    let more = ada.client.begin((&agreed, &prover), Contribution::Dummy, at(122), &mut town.rng);
    assert_eq!(more.err(), Some(ContributionError::Holder(HolderError::Burnt)));
}

/// Slots of another account do not help: the aggregator sees the upload's tag twice.
#[test]
fn a_tag_counts_in_one_slot_of_an_aggregate() {
    let mut town = Town::new(4, 2, 22).unwrap();
    let definition = town.definition("speed/a", 40).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 16);
    let mut cheat = mixed(&town, &people[0], &people[1]);
    for person in people.iter_mut().skip(2).take(8) {
        town.upload(person, &agreed, at(70), Contribution::Sample(10)).unwrap();
    }
    town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(20)).unwrap();
    town.upload(&mut cheat, &agreed, at(71), Contribution::Sample(99)).unwrap();
    town.fill(&mut people[2..], &agreed, at(121)).unwrap();
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    assert_eq!(examined.rejected(), 1, "one of the two with the tag");
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    let outcome = town.open(ready, agreed.release()).unwrap().unwrap();
    let Ok(PublishedResult::Full { count, sum, .. }) = outcome.result else { panic!("no result") };
    assert_eq!(count, 9);
    assert!([80 + 20, 80 + 99].contains(&sum));
}

/// An aggregator can mint upload credentials, because it holds their key. They get no slot.
#[test]
fn minted_upload_credentials_get_no_slots() {
    let mut town = Town::new(4, 2, 23).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let ghost = town.person(b"ghost").unwrap();
    let uploads = town.pinned.uploads().clone();
    let strip = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        key.strip_prefix(b"u").map(|key| (key.to_vec(), value.clone()))
    };
    let records: std::collections::BTreeMap<_, _> = ghost.store.iter().filter_map(strip).collect();
    let period = Period(crate::support::TODAY / 7);
    let holder = Holder::restore(uploads.clone(), period, &records).unwrap().unwrap();
    let ephemeral = alpheus_crypto::onetime::OneTimePublic::from_bytes([99; 32]);
    let message = request_digest(&agreed.name(), &ephemeral);
    for smoother in &mut town.smoothers {
        let slots = town.pinned.slots(smoother.id()).unwrap();
        for subject in [agreed.subject(&uploads), agreed.subject(slots)] {
            let about = |_| holder.for_subject(subject.clone(), &records).unwrap();
            let mut abouts: Vec<SubjectPresenter> = (0..4).map(about).collect();
            let shown = present_together(&mut abouts, &message, &mut town.rng).unwrap();
            let presentation = shown.into_iter().nth(smoother.id().0.into()).unwrap();
            let presentation = presentation.commit(&mut std::collections::BTreeMap::new()).unwrap();
            let request = SlotRequest { aggregate: agreed.name(), ephemeral, presentation };
            let refusal = smoother.handle_request(&request, at(70), &mut town.rng).err();
            assert_eq!(refusal, Some(SlotError::Presentation(VerifierError::Proof)));
        }
    }
}

/// The registrar issues an account its credentials once; the same request gets the same again.
#[test]
fn an_account_registers_once_in_a_period() {
    use alpheus_accountable_statistics::client::Registration;
    use alpheus_accountable_statistics::role_error::RegistrationError;
    use alpheus_anonymous_credential::error::IssuerError;
    use alpheus_anonymous_credential::holder::Timing;
    let mut town = Town::new(1, 1, 24).unwrap();
    let [first, second] = [(); 2].map(|()| {
        let rng = &mut town.rng;
        let step = Registration::begin(&town.pinned, b"ada", Timing::Running, at(0), rng).unwrap();
        step.commit(&mut crate::support::Ledger::new()).unwrap()
    });
    let (registrar, books) = &mut town.registrar;
    let mut register = |requests: &[Vec<u8>]| {
        let step = registrar.handle(b"ada", requests, at(0), &mut town.rng)?;
        Ok(step.commit(books).unwrap())
    };
    let answers = register(&first.requests()).unwrap();
    assert_eq!(register(&first.requests()).unwrap(), answers);
    let refusal = register(&second.requests()).err();
    assert_eq!(refusal, Some(RegistrationError::Issue(IssuerError::AlreadyIssued)));
    assert_eq!(register(&first.requests()[1..]).err(), Some(RegistrationError::Number));
    assert!(second.handle(&answers).is_err(), "answers fit their requests alone");
    assert!(first.handle(&answers[1..]).is_err());
}
