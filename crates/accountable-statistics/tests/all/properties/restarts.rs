//! Crashes between recording and answering, and smoothers that return with an old copy.

use crate::properties::helpers::{begun, people, restored, taken};
use crate::support::{Ledger, Person, Town, at, proposed};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::messages::PublishedResult;
use alpheus_accountable_statistics::role_error::{
    AggregatorError, AgreementError, ClosingError, SlotError,
};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_accountable_statistics::threshold::KeyShare;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_crypto::ledger::{FailingLedger, StateOrigin};
use alpheus_time::Timestamp;

fn started(seed: u8, slots: u32) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let definition = town.definition("speed/a", slots).unwrap();
    let agreed = town.define(&definition).unwrap();
    let people = people(&mut town, 10);
    (town, agreed, people)
}

fn full(town: &mut Town, agreed: &AgreedDefinition) -> Option<(u64, i128)> {
    match town.finish(agreed).unwrap()?.result {
        Ok(PublishedResult::Full { count, sum, .. }) => Some((count, sum)),
        other => panic!("{other:?}"),
    }
}

/// It may have agreed to a set that it does not remember. So it takes no part in this key epoch
/// and the next, its shares are destroyed, and the others continue without it.
#[test]
fn a_smoother_restored_from_a_backup_sits_out() {
    let (mut town, agreed, mut people) = started(90, 24);
    let backup = town.ledgers[1].clone();
    for person in people.iter_mut().take(6) {
        town.upload(person, &agreed, at(70), Contribution::Sample(10)).unwrap();
    }
    town.ledgers[1] = backup;
    town.restart(1, StateOrigin::Restored, at(80)).unwrap();
    assert!(town.ledgers[1].keys().all(|key| key[0] != b'k'), "a share is left");
    let sits = |town: &Town, day| town.smoothers[1].sits_out(KeyEpoch(day));
    let today = crate::support::TODAY;
    assert!(sits(&town, today) && sits(&town, today + 1) && !sits(&town, today + 2));
    let mut attempt = begun(&mut town, &mut people[6], &agreed, 10);
    let asked = loop {
        let (keeper, request) = attempt.request().unwrap();
        if keeper == SmootherId(1) {
            break request;
        }
        attempt.handle_refusal();
    };
    let refusal = town.smoothers[1].handle_request(&asked, at(81), &mut town.rng).err();
    assert_eq!(refusal, Some(SlotError::SitsOut));
    let other = Definition { start: at(200), end: at(220), ..(*agreed).clone() };
    let other = proposed(&other);
    assert_eq!(
        town.smoothers[1].handle_proposal(&other, at(81)).err(),
        Some(AgreementError::SitsOut)
    );
    // At the next turn its slots have another keeper.
    town.fill(&mut people, &agreed, at(121)).unwrap();
    town.fill(&mut people, &agreed, at(131)).unwrap();
    let shown = town.smoothers[1].handle_tuples(&agreed.name(), Vec::new(), agreed.release()).err();
    assert_eq!(shown, Some(ClosingError::SitsOut));
    // It still sits out after another start with an intact ledger.
    town.restart(1, StateOrigin::Intact, at(122)).unwrap();
    assert!(sits(&town, today));
    town.cut_off = vec![SmootherId(1)];
    assert_eq!(full(&mut town, &agreed), Some((6, 60)));
}

/// With two of four out there is no quorum: no combination opens anything.
#[test]
fn two_restored_smoothers_are_too_many() {
    let (mut town, agreed, mut people) = started(91, 24);
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let examined = town.gather(&agreed, agreed.release()).unwrap();
    town.restart(1, StateOrigin::Restored, at(151)).unwrap();
    town.restart(2, StateOrigin::Restored, at(151)).unwrap();
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    assert_eq!(ready.len(), 2);
    assert_eq!(town.open(ready, agreed.release()).unwrap(), None);
}

/// A copy that is claimed to be whole: its own statements, which others have, give it away.
#[test]
fn a_hidden_rollback_is_detected_by_the_smoothers_own_statements() {
    let (mut town, agreed, mut people) = started(92, 24);
    let backup = town.ledgers[1].clone();
    town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(10)).unwrap();
    town.ledgers[1] = backup.clone();
    town.restart(1, StateOrigin::Intact, at(80)).unwrap();
    let certificates = town.smoothers[0].certificates(&agreed.name());
    let hear = |town: &mut Town, now| {
        let step = town.smoothers[1].handle_certificate(&certificates[0], now).unwrap();
        step.commit(&mut town.ledgers[1]).unwrap();
        town.smoothers[1].sits_out(agreed.key_epoch)
    };
    assert!(hear(&mut town, at(81)));
    town.restart(1, StateOrigin::Intact, at(82)).unwrap();
    assert!(town.smoothers[1].sits_out(agreed.key_epoch));
    assert!(town.ledgers[1].keys().all(|key| key[0] != b'k'));
    // Its own receipt alone suffices, even if it no longer knows the aggregate.
    let (mut town, agreed, mut people) = started(88, 24);
    let nothing = {
        let mut ledger = town.ledgers[1].clone();
        ledger.retain(|key, _| key[0] != b'a');
        ledger
    };
    let attempt = town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(10)).unwrap();
    town.ledgers[1] = nothing;
    town.restart(1, StateOrigin::Intact, at(80)).unwrap();
    let own = attempt.receipts().into_iter().find(|receipt| receipt.by == SmootherId(1)).unwrap();
    let step = town.smoothers[1].handle_receipt(&own, at(81)).unwrap();
    step.commit(&mut town.ledgers[1]).unwrap();
    assert!(town.smoothers[1].sits_out(agreed.key_epoch));
    // A smoother that has not forgotten continues.
    let (mut town, agreed, mut people) = started(93, 24);
    town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(10)).unwrap();
    town.restart(1, StateOrigin::Intact, at(80)).unwrap();
    for certificate in town.smoothers[0].certificates(&agreed.name()) {
        let step = town.smoothers[1].handle_certificate(&certificate, at(81)).unwrap();
        step.commit(&mut town.ledgers[1]).unwrap();
    }
    assert!(!town.smoothers[1].sits_out(agreed.key_epoch));
    would_open(&mut town, &agreed, &mut people);
}

fn would_open(town: &mut Town, agreed: &AgreedDefinition, people: &mut [Person]) {
    // The same for its ready statement.
    town.fill(people, agreed, at(121)).unwrap();
    let before = town.ledgers[1].clone();
    let examined = town.gather(agreed, agreed.release()).unwrap();
    let (_, ready) = town.close(examined, agreed.release()).unwrap();
    town.ledgers[1] = before;
    town.restart(1, StateOrigin::Intact, agreed.release()).unwrap();
    let (by, said) = ready.iter().find(|(by, _)| by.0 == 1).unwrap();
    let step = town.smoothers[1].handle_ready(said, *by, agreed.release(), &mut town.rng).unwrap();
    step.commit(&mut town.ledgers[1]).unwrap();
    assert!(town.smoothers[1].sits_out(agreed.key_epoch));
}

/// Its copy is from between the last deposit and the closing, so only its ready statement is
/// missing. Another smoother has that as it was signed.
#[test]
fn others_return_a_smoothers_ready_statement_to_it() {
    let (mut town, agreed, mut people) = started(99, 24);
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let (before, now) = (town.ledgers[1].clone(), agreed.release());
    let examined = town.gather(&agreed, now).unwrap();
    let (_, ready) = town.close(examined, now).unwrap();
    let said = ready.iter().find(|(by, _)| by.0 == 1).unwrap();
    assert!(town.smoothers[0].ready_statements(&agreed.name()).is_empty());
    let step = town.smoothers[0].handle_ready(&said.1, said.0, now, &mut town.rng).unwrap();
    let _ = step.commit(&mut town.ledgers[0]).unwrap();
    assert_eq!(town.smoothers[0].ready_statements(&agreed.name()), std::slice::from_ref(said));
    town.ledgers[1] = before;
    town.restart(1, StateOrigin::Intact, now).unwrap();
    // Its deposits are remembered, so certificates do not reveal the loss.
    for certificate in town.smoothers[0].certificates(&agreed.name()) {
        let step = town.smoothers[1].handle_certificate(&certificate, now).unwrap();
        step.commit(&mut town.ledgers[1]).unwrap();
    }
    assert!(!town.smoothers[1].sits_out(agreed.key_epoch));
    for (by, ready) in town.smoothers[0].ready_statements(&agreed.name()) {
        let step = town.smoothers[1].handle_ready(&ready, by, now, &mut town.rng).unwrap();
        let _ = step.commit(&mut town.ledgers[1]).unwrap();
    }
    assert!(town.smoothers[1].sits_out(agreed.key_epoch));
    // Once the aggregate is over, nobody is shown anything.
    let _ = town.smoothers[0].poll(agreed.deadline()).commit(&mut town.ledgers[0]).unwrap();
    assert!(town.smoothers[0].ready_statements(&agreed.name()).is_empty());
}

#[test]
fn a_ledger_must_match_its_origin() {
    let (mut town, _, _) = started(94, 24);
    assert!(town.restart(0, StateOrigin::New, at(80)).is_err());
    let used = std::mem::take(&mut town.ledgers[0]);
    assert!(town.restart(0, StateOrigin::Intact, at(80)).is_err());
    for (key, value) in &used {
        let mut damaged = used.clone();
        damaged.insert(key.clone(), vec![0xff; value.len() / 2]);
        town.ledgers[0] = damaged;
        assert!(town.restart(0, StateOrigin::Intact, at(80)).is_err(), "{key:?}");
    }
}

/// Each smoother dies between recording and answering, at each step. The same messages get the
/// same bytes again, and in the end everything is there.
#[test]
fn a_party_that_dies_between_recording_and_answering_resumes() {
    let (mut town, agreed, mut people) = started(95, 24);
    let mut person = people.remove(0);
    let mut attempt = begun(&mut town, &mut person, &agreed, 10);
    // A client that dies before its presentations are durable has presented nothing.
    let before = person.store.clone();
    let of = (&agreed, &Prover::new(*agreed.terms()));
    let lost = person.client.begin(of, Contribution::Sample(9), at(70), &mut town.rng).unwrap();
    assert!(lost.commit(&mut FailingLedger).is_err());
    assert_eq!(restored(&town, before).client.left(&agreed), Ok(2));
    // A keeper that dies before its grant is durable, and one that dies after.
    let (keeper, request) = attempt.request().unwrap();
    let at_keeper = usize::from(keeper.0);
    let id = u8::try_from(keeper.0).unwrap();
    let lost = town.smoothers[at_keeper].handle_request(&request, at(70), &mut town.rng).unwrap();
    assert!(lost.commit(&mut FailingLedger).is_err());
    town.restart(id, StateOrigin::Intact, at(70)).unwrap();
    let noted = town.smoothers[at_keeper].handle_request(&request, at(70), &mut town.rng).unwrap();
    let noted = noted.commit(&mut town.ledgers[at_keeper]).unwrap();
    town.restart(id, StateOrigin::Intact, at(70)).unwrap();
    let again = town.smoothers[at_keeper].handle_request(&request, at(70), &mut town.rng).unwrap();
    let again = again.commit(&mut town.ledgers[at_keeper]).unwrap();
    assert_eq!(again, noted);
    // The client dies once it has sealed: it sends the same bytes.
    let deposits = taken(&mut town, &mut person, &mut attempt, (id, &again)).unwrap();
    let mut person = restored(&town, person.store);
    let mut attempts = Attempt::restore_all(&agreed, &person.store).unwrap();
    let mut attempt = attempts.remove(0);
    assert_eq!(attempt.deposits(), deposits);
    let same = taken(&mut town, &mut person, &mut attempt, (id, &again)).unwrap();
    assert_eq!(same, deposits);
    deposits_survive(&mut town, &mut person, &mut attempt);
    // Receipts outlive the client, and are a certificate for anyone who needs it.
    let back = Attempt::restore_all(&agreed, &person.store).unwrap().pop().unwrap();
    assert_eq!(back.receipts(), attempt.receipts());
    assert_eq!(attempt.receipts().len(), 4);
    let certificate = attempt.certificate(&town.pinned).unwrap();
    let vouched = town.smoothers[0].handle_certificate(&certificate, at(70)).unwrap();
    vouched.commit(&mut town.ledgers[0]).unwrap();
    attempt.forget().commit(&mut person.store).unwrap();
    assert!(Attempt::restore_all(&agreed, &person.store).unwrap().is_empty());
    people.insert(0, person);
    for other in people.iter_mut().skip(1).take(5) {
        town.upload(other, &agreed, at(71), Contribution::Sample(10)).unwrap();
    }
    finishes_through_crashes(&mut town, &agreed, &mut people);
}

/// Each smoother dies before its receipt is durable, and after.
fn deposits_survive(town: &mut Town, person: &mut Person, attempt: &mut Attempt) {
    let deposits = attempt.deposits();
    for (to, deposit) in deposits {
        let (at_smoother, id) = (usize::from(to.0), u8::try_from(to.0).unwrap());
        let lost = town.smoothers[at_smoother].handle_deposit(deposit.clone(), at(70)).unwrap();
        assert!(lost.commit(&mut FailingLedger).is_err());
        town.restart(id, StateOrigin::Intact, at(70)).unwrap();
        let first = town.receive(to, deposit.clone(), at(70)).unwrap().unwrap();
        town.restart(id, StateOrigin::Intact, at(70)).unwrap();
        let again = town.receive(to, deposit, at(70)).unwrap().unwrap();
        assert_eq!(again, first);
        let step = attempt.handle_receipt(&again, &town.pinned).unwrap();
        step.commit(&mut person.store).unwrap();
    }
}

fn finishes_through_crashes(town: &mut Town, agreed: &AgreedDefinition, people: &mut [Person]) {
    town.fill(people, agreed, at(121)).unwrap();
    all_restart(town, agreed, at(150));
    let now = agreed.release();
    let examined = town.gather(agreed, now).unwrap();
    let (aggregator, ledger) = &mut town.aggregator;
    let closing = aggregator.close(examined).unwrap().commit(ledger).unwrap();
    restart_aggregator(town);
    assert!(town.aggregator.0.shown(&agreed.name()).is_none());
    assert_eq!(town.aggregator.0.examination(&agreed.name()).err(), Some(AggregatorError::Lacking));
    let examined = town.gather(agreed, now).unwrap();
    let (again, ready) = town.close(examined, now).unwrap();
    assert_eq!(again, closing, "examined again, it is the same");
    // All die after they were ready, and repeat it.
    all_restart(town, agreed, now);
    let said = |output: &Output| match output {
        Output::Ready(ready) => Some(ready.clone()),
        _ => None,
    };
    let repeated: Vec<_> = town
        .smoothers
        .iter()
        .flat_map(|smoother| {
            smoother
                .resend(now)
                .iter()
                .filter_map(said)
                .map(|r| (smoother.id(), r))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(repeated, ready);
    let outcome = town.open(repeated, now).unwrap().unwrap();
    let Ok(PublishedResult::Full { count, sum, .. }) = outcome.result else { panic!("no result") };
    assert_eq!((count, sum), (6, 60));
}

fn restart_aggregator(town: &mut Town) {
    town.aggregator.0 =
        Town::aggregator_of(&town.pinned, &town.keys[0], &town.aggregator.1).unwrap();
}

/// Restarts all smoothers; they ask each other for what they had received.
fn all_restart(town: &mut Town, agreed: &AgreedDefinition, now: alpheus_time::Timestamp) {
    for id in 0..4 {
        town.restart(id, StateOrigin::Intact, now).unwrap();
    }
    town.sync(agreed, now).unwrap();
}

/// Certified entries stay certified when everybody is killed, even without a smoother that signed
/// and is gone for good.
#[test]
fn certificates_survive_crashes() {
    let (mut town, agreed, mut people) = started(97, 24);
    town.fill(&mut people, &agreed, at(121)).unwrap();
    town.cut_off = vec![SmootherId(3)];
    for id in 0..3 {
        town.restart(id, StateOrigin::Intact, at(150)).unwrap();
        let filled = (0..24).filter(|slot| {
            town.smoothers[usize::from(id)].certified(&agreed.name(), *slot).is_some()
        });
        assert_eq!(filled.count(), 24);
    }
    assert!(town.finish(&agreed).unwrap().is_some());
}

/// A destroyed share is not accepted again, even from a copy.
#[test]
fn a_destroyed_share_stays_destroyed() {
    let (mut town, _, _) = started(98, 24);
    let (shared, mut shares) = crate::support::generate(&town.pinned).unwrap();
    town.restart(1, StateOrigin::Restored, at(80)).unwrap();
    let again = town.smoothers[1].sign_card(
        KeyEpoch(crate::support::TODAY),
        0,
        shared.clone(),
        Some(shares.remove(1)),
    );
    assert_eq!(again.err(), Some(AgreementError::SitsOut));
    // When its day is over, and when the day is pruned.
    let share = shares.remove(0).expose();
    for (days, why) in [(1, AgreementError::OtherKey), (3, AgreementError::Time)] {
        let step = town.smoothers[0].poll(at(1 + 24 * 60 * days));
        let _ = step.commit(&mut town.ledgers[0]).unwrap();
        let share = KeyShare::restore(&shared, 0, &share).unwrap();
        let today = KeyEpoch(crate::support::TODAY);
        let again = town.smoothers[0].sign_card(today, 0, shared.clone(), Some(share));
        assert_eq!(again.err(), Some(why));
    }
}

/// A client that died before it had a grant asks again with what it has burnt.
#[test]
fn an_attempt_survives_its_client_before_a_grant() {
    let (mut town, agreed, mut people) = started(96, 24);
    let person = &mut people[0];
    let mut attempt = begun(&mut town, person, &agreed, 42);
    let first = attempt.request().unwrap();
    let mut back = restored(&town, people[0].store.clone());
    let mut attempts = Attempt::restore_all(&agreed, &back.store).unwrap();
    let mut attempt = attempts.remove(0);
    assert_eq!(attempt.request().unwrap(), first);
    town.ask(&mut back, &mut attempt, at(75)).unwrap();
    assert!(town.deposit(&mut back, &mut attempt, at(75)).unwrap());
    let damaged: Ledger = back
        .store
        .iter()
        .map(|(key, value)| {
            let cut = if key[0] == b'w' { value.len() - 1 } else { value.len() };
            (key.clone(), value[..cut].to_vec())
        })
        .collect();
    assert!(Attempt::restore_all(&agreed, &damaged).is_err());
}

/// An aggregator that may have forgotten closings closes none of those aggregates again, and
/// publishes what smoothers report. Later aggregates are closed as usual.
#[test]
fn an_aggregator_that_sits_out_closes_nothing_again() {
    let mut town = Town::new(4, 2, 140).unwrap();
    let agreed = town.define(&town.definition("speed/a", 24).unwrap()).unwrap();
    let mut people = crate::properties::helpers::people(&mut town, 10);
    for person in people.iter_mut().take(8) {
        town.upload(person, &agreed, at(70), Contribution::Sample(61)).unwrap();
    }
    town.fill(&mut people, &agreed, at(121)).unwrap();
    let (release, old) = (agreed.release(), town.aggregator.1.clone());
    let examined = town.gather(&agreed, release).unwrap();
    let (closing, ready) = town.close(examined, release).unwrap();

    // It returns with its state from before the closing.
    let restored =
        |ledger: &Ledger| Town::aggregator_of(&town.pinned, &town.keys[0], ledger).unwrap();
    let (mut aggregator, mut ledger) = (restored(&old), old);
    aggregator.sit_out(release).commit(&mut ledger).unwrap();
    let mut aggregator = restored(&ledger);
    assert!(aggregator.sits_out(release) && !aggregator.sits_out(Timestamp(release.0 + 1)));
    let name = agreed.name();
    for smoother in &town.smoothers {
        aggregator
            .handle_release(smoother.release(&name, release).unwrap(), smoother.id())
            .unwrap();
    }
    assert_eq!(aggregator.examination(&name).err(), Some(AggregatorError::SitsOut));
    assert!(aggregator.closing(&name).is_none() && closing.open(&town.pinned.aggregator).is_ok());
    town.aggregator = (aggregator, ledger);
    assert!(town.open(ready, release).unwrap().is_some_and(|outcome| outcome.result.is_ok()));
}
