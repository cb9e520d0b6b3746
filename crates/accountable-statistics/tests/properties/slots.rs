//! Slots: one entry for each and one for each key, whatever keepers and clients do.

use crate::folk::{answers, begun, grant, people, taken};
use crate::support::{Person, Town, at};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::messages::Deposit;
use alpheus_accountable_statistics::refused::{NoSlot, NotContributed};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::error::Refused;
use alpheus_crypto::hash::Digest;

fn town(seed: u8) -> (Town, Agreed, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let people = people(&mut town, 4);
    (town, agreed, people)
}

/// Both with a grant of slot 0, signed by its keeper.
fn rivals(
    town: &mut Town,
    agreed: &Agreed,
    people: &mut [Person],
) -> Vec<(Attempt, Vec<(SmootherId, Deposit)>)> {
    let rival = |person: &mut Person| {
        let mut attempt = begun(town, person, agreed, 50);
        let granted = grant(agreed, 0, 0, attempt.ephemeral());
        let deposits = taken(town, person, &mut attempt, (0, &granted)).unwrap();
        (attempt, deposits)
    };
    people.iter_mut().take(2).map(rival).collect()
}

/// A keeper gives one slot twice and shows each smoother the grant that it likes.
#[test]
fn of_two_valid_grants_for_one_slot_one_is_certified_at_most() {
    for (first, expected) in [(2, false), (3, true)] {
        let (mut town, agreed, mut people) = town(30);
        let rivals = rivals(&mut town, &agreed, &mut people);
        let [(one, ones), (_, twos)] = &rivals[..] else { panic!("two") };
        let reached = answers(&mut town, ones[..first].to_vec());
        assert_eq!(reached, vec![Ok(()); first]);
        let reached = answers(&mut town, twos[first..].to_vec());
        assert_eq!(reached, vec![Ok(()); 4 - first]);
        // Now each is sent everywhere: who has signed the one does not sign the other.
        let refused = answers(&mut town, twos[..first].to_vec());
        assert_eq!(refused, vec![Err(NoSlot::SlotTaken); first]);
        let refused = answers(&mut town, ones[first..].to_vec());
        assert_eq!(refused, vec![Err(NoSlot::SlotTaken); 4 - first]);
        let certified: Vec<_> =
            town.smoothers.iter().map(|s| s.certified(&agreed.name(), 0).copied()).collect();
        let entry = expected.then(|| *one.entry().unwrap());
        assert_eq!(certified, vec![entry; 4]);
    }
}

/// A client that has slots of two keepers for one key deposits in one of them.
#[test]
fn a_key_has_one_slot() {
    let (mut town, agreed, mut people) = town(31);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let key = attempt.ephemeral();
    let (first, second) = (grant(&agreed, 0, 0, key), grant(&agreed, 1, 1, key));
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (0, &first)).unwrap();
    assert_eq!(answers(&mut town, deposits.clone()), vec![Ok(()); 4]);
    // What is deposited stays, whatever else is granted.
    let again = taken(&mut town, &mut people[0], &mut attempt, (1, &second)).unwrap();
    assert_eq!(again, deposits);
    // Another deposit by the same key, as a client that does as it likes makes it.
    let mut other = deposits[2].1.clone();
    (other.keeper, other.grant) = (SmootherId(1), second);
    let refusal = town.receive(SmootherId(2), other, at(70));
    assert_eq!(refusal.err(), Some(NoSlot::KeyTaken));
    let request = attempt.request().unwrap();
    let smoother = &mut town.smoothers[usize::from(request.0.0)];
    let refusal = smoother.request(at(70), &request.1, &mut town.rng).err();
    assert_eq!(refusal, Some(NoSlot::KeyTaken));
}

#[test]
fn a_grant_is_its_keepers_for_its_turn() {
    let (mut town, agreed, mut people) = town(32);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let key = attempt.ephemeral();
    // Slot 1 is kept by smoother 1 at turn 0: nobody else gives it, and the client knows.
    let by_other = grant(&agreed, 0, 1, key);
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &by_other)).err();
    assert_eq!(refusal, Some(NotContributed::Grant));
    let to_other = grant(&agreed, 0, 0, crate::support::signing(98).verifying_key());
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &to_other)).err();
    assert_eq!(refusal, Some(NotContributed::Grant));
    let beyond = grant(&agreed, 0, 24, key);
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &beyond)).err();
    assert_eq!(refusal, Some(NotContributed::Grant));
    let good = grant(&agreed, 0, 0, key);
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (0, &good)).unwrap();
    let send = |town: &mut Town, change: &dyn Fn(&mut Deposit), minute| {
        let mut deposit = deposits[3].1.clone();
        change(&mut deposit);
        town.receive(SmootherId(3), deposit, at(minute)).err()
    };
    let by_other = grant(&agreed, 0, 1, key);
    let wrong_keeper = |d: &mut Deposit| d.grant = by_other.clone();
    assert_eq!(send(&mut town, &wrong_keeper, 70), Some(NoSlot::NotGranted));
    let not_signed = |d: &mut Deposit| d.keeper = SmootherId(1);
    assert_eq!(send(&mut town, &not_signed, 70), Some(NoSlot::NotGranted));
    assert_eq!(send(&mut town, &|_| {}, 121), Some(NoSlot::NotGranted), "another turn");
    assert_eq!(send(&mut town, &|_| {}, 59), Some(NoSlot::NotNow));
    assert_eq!(send(&mut town, &|_| {}, 150), Some(NoSlot::NotNow));
    assert_eq!(send(&mut town, &|_| {}, 70), None);
}

/// What is copied from somebody, or changed on its way, gets no receipt.
#[test]
fn a_deposit_is_what_its_key_signed_and_its_showing_is_for() {
    let (mut town, agreed, mut people) = town(33);
    let rivals = rivals(&mut town, &agreed, &mut people);
    let [(_, victims), (_, thiefs)] = &rivals[..] else { panic!("two") };
    let (victim, thief) = (&victims[0].1, &thiefs[0].1);
    let send =
        |town: &mut Town, deposit: Deposit| town.receive(SmootherId(0), deposit, at(70)).err();
    // A victim's upload under the thief's own grant and showing.
    let copied = Deposit { sealed: victim.sealed.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(NoSlot::Signature));
    let copied = Deposit { content: victim.content, ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(NoSlot::Signature));
    let copied = Deposit { signature: victim.signature, ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(NoSlot::Signature));
    let content = Digest([0; 32]);
    assert_eq!(send(&mut town, Deposit { content, ..victim.clone() }), Some(NoSlot::Signature));
    // A showing that is for another's upload, or of another smoother's credential.
    let lent = Deposit { showing: victim.showing.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, lent), Some(NoSlot::OtherShowing));
    let other = Deposit { showing: thiefs[1].1.showing.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, other), Some(NoSlot::Showing(Refused::Proof)));
    let none = Deposit { showing: vec![0; 9], ..thief.clone() };
    assert!(matches!(send(&mut town, none), Some(NoSlot::Showing(Refused::Malformed(_)))));
    assert_eq!(send(&mut town, thief.clone()), None);
}

/// Nothing that a client sends tells by its size what is in it.
#[test]
fn deposits_have_one_size() {
    let (mut town, agreed, mut people) = town(34);
    let mut sizes = std::collections::BTreeSet::new();
    let given = [Contribution::Sample(0), Contribution::Sample(100), Contribution::Dummy];
    for (person, contribution) in people.iter_mut().zip(given) {
        let attempt = town.upload(person, &agreed, at(121), contribution).unwrap();
        drop(attempt);
    }
    let seen = town.smoothers[0].receipts(&agreed.name());
    assert_eq!(seen.len(), 3 * 4);
    let mut attempt = begun(&mut town, &mut people[3], &agreed, 7);
    let granted = grant(&agreed, 0, 0, attempt.ephemeral());
    let deposits = taken(&mut town, &mut people[3], &mut attempt, (0, &granted)).unwrap();
    for (_, deposit) in deposits {
        sizes.insert((deposit.sealed.length(), deposit.showing.len()));
        let shorter = Deposit { showing: deposit.showing, ..deposit };
        assert!(town.receive(SmootherId(0), shorter, at(70)).is_ok());
        break;
    }
    assert_eq!(sizes.len(), 1);
}

/// Each keeper has its share of the slots; when it has given them, the next one is asked, and
/// what was given and not used is another's to give at the next turn.
#[test]
fn slots_that_nobody_used_are_given_again() {
    let mut town = Town::new(4, 2, 35).unwrap();
    let definition = town.definition("speed/a", 8).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 12);
    let mut abandoned = Vec::new();
    for person in people.iter_mut().take(8) {
        let mut attempt = begun(&mut town, person, &agreed, 1);
        town.ask(person, &mut attempt, at(70)).unwrap();
        abandoned.push(attempt);
    }
    let mut late = begun(&mut town, &mut people[8], &agreed, 1);
    let full = town.ask(&mut people[8], &mut late, at(71)).err().unwrap();
    assert_eq!(*full.downcast::<NotContributed>().unwrap(), NotContributed::Full);
    // The same request gets the same slot, as long as the turn runs.
    let (keeper, request) = abandoned[0].request().unwrap();
    let smoother = &mut town.smoothers[usize::from(keeper.0)];
    let again = smoother.request(at(72), &request, &mut town.rng).unwrap();
    let again = again.commit(&mut town.ledgers[usize::from(keeper.0)]).unwrap();
    let (_, deposit) = &abandoned[0].deposits()[0];
    assert_eq!(again, deposit.grant);
    // After the interval all eight are given to others.
    assert_eq!(town.fill(&mut people[9..], &agreed, at(121)).unwrap(), 8);
    assert!(town.smoothers[0].release(agreed.release(), &agreed.name()).is_ok());
}
