//! Nothing is stored for ever or released in part, and pruned state is not accepted again.

use crate::properties::helpers::{people, restored};
use crate::support::{DAY, Ledger, Person, TODAY, Town, at, proposed};
use alpheus_accountable_statistics::aggregator::Node;
use alpheus_accountable_statistics::client::{Attempt, Registration, forget_before};
use alpheus_accountable_statistics::configuration::KeyEpoch;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Location};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::role_error::AgreementError;
use alpheus_accountable_statistics::smoother::Output;
use alpheus_accountable_statistics::tally::{Counter, Tally, TallyDefinition};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

fn ended(seed: u8) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let agreed = town.define(&town.definition("speed/a", 12).unwrap()).unwrap();
    let mut people = people(&mut town, 6);
    for person in people.iter_mut().take(4) {
        town.upload(person, &agreed, at(70), Contribution::Sample(40)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    town.finish(&agreed).unwrap().unwrap();
    (town, agreed, people)
}

/// The definition as the smoothers have signed it.
fn signed(
    town: &mut Town,
    agreed: &AgreedDefinition,
) -> Endorsed<alpheus_accountable_statistics::definition::Definition> {
    let mut endorsed = Endorsed::default();
    for id in town.pinned.ids() {
        let key = crate::support::signing(id.0.to_be_bytes()[1]);
        endorsed.add(id, Signed::new(&(**agreed).clone(), &key));
    }
    endorsed
}

#[test]
fn a_smoother_prunes_past_days_and_rejects_them_afterwards() {
    let (mut town, agreed, _) = ended(120);
    let endorsed = signed(&mut town, &agreed);
    let poll = |town: &mut Town, now: Timestamp| {
        let step = town.smoothers[0].poll(now);
        step.commit(&mut town.ledgers[0]).unwrap()
    };
    poll(&mut town, agreed.deadline());
    assert!(town.smoothers[0].signed_outcome(&agreed.name()).is_some(), "for those who ask late");
    // Twice the time from an end to a deadline after its day.
    poll(&mut town, at(24 * 60 + 359));
    assert!(town.smoothers[0].signed_outcome(&agreed.name()).is_some());
    let said = poll(&mut town, at(24 * 60 + 360));
    assert!(said.is_empty() && town.smoothers[0].signed_outcome(&agreed.name()).is_none());
    assert_eq!(town.ledgers[0].keys().collect::<Vec<_>>(), [b"b"]);
    let shared = town.shared.clone();
    let refused = |town: &mut Town| {
        let learnt = town.smoothers[0].handle_definition(&endorsed).err();
        let held = town.smoothers[0].sign_card(KeyEpoch(TODAY), 0, shared.clone(), None).err();
        let defined = town.smoothers[0].handle_proposal(&proposed(&agreed), at(1)).err();
        assert_eq!((learnt, held), (Some(AgreementError::Time), Some(AgreementError::Time)));
        assert!(defined.is_some());
    };
    refused(&mut town);
    town.restart(0, StateOrigin::Intact, at(24 * 60 + 361)).unwrap();
    refused(&mut town);
}

/// Its next message depends on what it has agreed to: both are written together.
#[test]
fn a_partial_decryption_is_committed_with_its_ready_statement() {
    let mut town = Town::new(4, 2, 121).unwrap();
    let agreed = town.define(&town.definition("speed/a", 12).unwrap()).unwrap();
    let mut people = people(&mut town, 6);
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    let mut opened = 0;
    for (by, said) in &ready {
        let step = town.smoothers[0].handle_ready(said, *by, agreed.release(), &mut town.rng);
        let mut written = Ledger::new();
        let said = step.unwrap().commit(&mut written).unwrap();
        if said.iter().any(|output| matches!(output, Output::Opening(_))) {
            let latch = [b"a".as_slice(), agreed.name().as_bytes(), b"r"].concat();
            assert!(written.contains_key(&latch));
            opened += 1;
        }
    }
    assert_eq!(opened, 1);
}

/// If one request is refused, none is recorded: the account asks again.
#[test]
fn a_registration_is_issued_whole_or_not_at_all() {
    let mut town = Town::new(4, 2, 122).unwrap();
    let asking = |town: &mut Town| {
        let asking =
            Registration::begin(&town.pinned, b"ada", Timing::Running, at(0), &mut town.rng);
        asking.unwrap().commit(&mut Ledger::new()).unwrap().requests()
    };
    let mut damaged = asking(&mut town);
    damaged[4] = vec![7; 9];
    let register = |town: &mut Town, requests: &[Vec<u8>]| {
        let (registrar, books) = &mut town.registrar;
        let step = registrar.handle(b"ada", requests, at(0), &mut town.rng);
        step.map(|step| step.commit(books).unwrap().len()).ok()
    };
    assert_eq!(register(&mut town, &damaged), None);
    let good = asking(&mut town);
    assert_eq!(register(&mut town, &good), Some(5));
    assert_eq!(register(&mut town, &good), Some(5), "once more");
    let other = asking(&mut town);
    assert_eq!(register(&mut town, &other), None);
    // Past periods are forgotten.
    let (registrar, books) = &mut town.registrar;
    let before = books.len();
    registrar.poll(Timestamp((TODAY + 21) * DAY)).commit(books).unwrap();
    assert!(books.len() < before, "{before}");
}

/// Anyone who takes the device later finds nothing of what it has contributed.
#[test]
fn a_client_forgets_periods_and_aggregates_that_are_over() {
    let mut town = Town::new(4, 2, 123).unwrap();
    let agreed = town.define(&town.definition("speed/a", 12).unwrap()).unwrap();
    let mut people = people(&mut town, 1);
    let person = &mut people[0];
    town.upload(person, &agreed, at(70), Contribution::Sample(40)).unwrap();
    let period = Period(TODAY / 7);
    let count = |store: &Ledger| Attempt::restore_all(&agreed, store).unwrap().len();
    assert_eq!(count(&person.store), 1);
    let open = [agreed.clone()];
    let step = forget_before(&town.pinned, period, &open, &person.store);
    step.commit(&mut person.store).unwrap();
    assert_eq!(count(&person.store), 1);
    assert_eq!(restored(&town, person.store.clone()).client.left(&agreed).unwrap(), 2);
    forget_before(&town.pinned, period, &[], &person.store).commit(&mut person.store).unwrap();
    assert_eq!(count(&person.store), 0);
    let next = Period(period.0 + 1);
    forget_before(&town.pinned, next, &[], &person.store).commit(&mut person.store).unwrap();
    assert_eq!(person.store.len(), 0);
}

/// A smoother that was killed before it sent anything may start as a new one.
#[test]
fn a_smoother_that_has_only_started_is_new() {
    let town = Town::new(4, 2, 124).unwrap();
    let mut ledger = Ledger::new();
    let start = |ledger: &Ledger, log| town.smoother_of(0, ledger, log, at(0));
    start(&ledger, StateOrigin::New).unwrap().1.commit(&mut ledger).unwrap();
    assert!(!ledger.is_empty());
    assert!(
        start(&ledger, StateOrigin::New).is_ok() && start(&ledger, StateOrigin::Intact).is_ok()
    );
    assert!(start(&town.ledgers[0], StateOrigin::New).is_err());
    assert!(start(&Ledger::new(), StateOrigin::Intact).is_err());
}

#[test]
fn an_aggregator_forgets_aggregates_after_the_given_time() {
    let (mut town, agreed, _) = ended(125);
    let name = agreed.name();
    let (aggregator, ledger) = &mut town.aggregator;
    let hour = 60 * crate::support::MINUTE;
    let later = Timestamp(agreed.deadline().0 + hour);
    aggregator.prune(Timestamp(later.0 - 1), hour).commit(ledger).unwrap();
    assert!(aggregator.outcome(&name).is_some() && aggregator.leaves(&name).is_some());
    aggregator.prune(later, hour).commit(ledger).unwrap();
    assert!(aggregator.outcome(&name).is_none() && ledger.is_empty());
}

/// A count that is over keeps its number, and no tag.
#[test]
fn a_finished_count_keeps_only_its_number() {
    let mut town = Town::new(1, 1, 126).unwrap();
    let question = TallyDefinition {
        deployment: town.pinned.fingerprint(),
        location: Location::try_from("park/gate".to_owned()).unwrap(),
        start: at(60),
        end: at(120),
        closes: at(180),
        min_count: 2,
    };
    let tally = Tally::open(&Signed::new(&question, &town.operator), &town.pinned).unwrap();
    let restore = |town: &Town, ledger: &Ledger| {
        Counter::restore(tally.clone(), &town.pinned, Node::ALONE, ledger.clone()).unwrap()
    };
    let mut ledger = Ledger::new();
    let mut counter = restore(&town, &ledger);
    for person in &mut people(&mut town, 3) {
        let presentation = person.client.count(&tally, &mut town.rng).unwrap();
        let presentation = presentation.commit(&mut person.store).unwrap();
        let step = counter.handle(&presentation, at(130), town.aggregator.0.verifier()).unwrap();
        step.commit(&mut ledger).unwrap();
    }
    counter.poll(at(179)).commit(&mut ledger).unwrap();
    assert_eq!((ledger.len(), counter.result(at(179))), (3, None));
    // Killed before it is durable: the same again.
    let lost = counter.poll(at(180)).dangerous_changes();
    assert_eq!(lost.len(), 4);
    let mut counter = restore(&town, &ledger);
    counter.poll(at(181)).commit(&mut ledger).unwrap();
    assert_eq!((ledger.len(), counter.result(at(181))), (1, Some(3)));
    let counter = restore(&town, &ledger);
    assert_eq!(counter.result(at(182)), Some(3));
    counter.forget().commit(&mut ledger).unwrap();
    assert!(ledger.is_empty());
}
