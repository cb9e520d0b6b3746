//! Slots: one entry for each and one for each key, whatever keepers and clients do.

use crate::properties::helpers::{Free, answers, begun, grant, people, rivals, taken};
use crate::support::{Person, Town, at, entry_of, signing};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::definition::Turn;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{
    ConflictingEntry, Deposit, Entry, Evidence, Grant, Receipt, SealedUpload,
};
use alpheus_accountable_statistics::role_error::{ContributionError, SlotError};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::signed_message::Signed;

fn town(seed: u8) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let definition = town.definition("speed/a", 24).unwrap();
    let agreed = town.define(&definition).unwrap();
    let people = people(&mut town, 4);
    (town, agreed, people)
}

/// A keeper grants one slot twice and shows each smoother the grant that it prefers.
#[test]
fn at_most_one_of_two_grants_for_a_slot_is_certified() {
    for (first, expected) in [(2, false), (3, true)] {
        let (mut town, agreed, mut people) = town(30);
        let rivals = rivals(&mut town, &agreed, &mut people);
        let [(one, ones), (_, twos)] = &rivals[..] else { panic!("two") };
        let reached = answers(&mut town, ones[..first].to_vec());
        assert_eq!(reached, vec![Ok(()); first]);
        // Once one is certified nobody signs the other.
        let reached = answers(&mut town, twos[first..].to_vec());
        let second = if expected { Err(SlotError::SlotTaken) } else { Ok(()) };
        assert_eq!(reached, vec![second; 4 - first]);
        // Now each is sent everywhere: a smoother that signed one does not sign the other.
        let refused = answers(&mut town, twos[..first].to_vec());
        assert_eq!(refused, vec![Err(SlotError::SlotTaken); first]);
        let again = answers(&mut town, ones[first..].to_vec());
        let again_at = if expected { Ok(()) } else { Err(SlotError::SlotTaken) };
        assert_eq!(again, vec![again_at; 4 - first]);
        let certified: Vec<_> =
            town.smoothers.iter().map(|s| s.certified(&agreed.name(), 0).copied()).collect();
        let entry = expected.then(|| *one.entry().unwrap());
        assert_eq!(certified, vec![entry; 4]);
    }
}

/// A client with slots of two keepers for one key deposits in one of them.
#[test]
fn a_key_has_one_slot() {
    let (mut town, agreed, mut people) = town(31);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let twin = Attempt::restore_all(&agreed, &people[0].store).unwrap().pop();
    let key = attempt.ephemeral();
    let (first, second) = (grant(&agreed, 0, 0, key), grant(&agreed, 1, 1, key));
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (0, &first)).unwrap();
    assert_eq!(answers(&mut town, deposits.clone()), vec![Ok(()); 4]);
    // A deposit stays, whatever else is granted.
    let again = taken(&mut town, &mut people[0], &mut attempt, (1, &second)).unwrap();
    assert_eq!(again, deposits);
    // The same key with another grant, by a copy of the device.
    let mut twin = twin.unwrap();
    let others = taken(&mut town, &mut people[0], &mut twin, (1, &second)).unwrap();
    assert_eq!(answers(&mut town, others.clone()), vec![Err(SlotError::KeyTaken); 4]);
    let request = attempt.request().unwrap();
    let smoother = &mut town.smoothers[usize::from(request.0.0)];
    let refusal = smoother.handle_request(&request.1, at(70), &mut town.rng).err();
    assert_eq!(refusal, Some(SlotError::KeyTaken));
    // What may count is not given again. What everybody refuses is, by another key.
    let mut lost = |attempt: &mut Attempt, refusals: u16| {
        for by in 0..refusals {
            let shown = town.smoothers[usize::from(by)].conflict(&others[0].1).unwrap();
            attempt.handle_conflict(&shown, SmootherId(by), &town.pinned).unwrap();
        }
        attempt.is_lost(&town.pinned)
    };
    assert_eq!([lost(&mut twin, 0), lost(&mut twin, 1), lost(&mut twin, 2)], [false, false, true]);
    let prover = Prover::new(*agreed.terms());
    let counts = attempt.retry(&mut people[0].client, &prover, at(71), &mut town.rng).err();
    assert_eq!(counts, Some(ContributionError::MayCount));
    let begun = twin.retry(&mut people[0].client, &prover, at(71), &mut town.rng).unwrap();
    let mut attempt = begun.commit(&mut people[0].store).unwrap();
    assert_ne!(attempt.ephemeral(), key);
    town.ask(&mut people[0], &mut attempt, at(71)).unwrap();
    assert!(town.deposit(&mut people[0], &mut attempt, at(71)).unwrap());
}

/// A smoother that lies about a slot shows no conflicting entry: the deposit may still count, so
/// it is not given again.
#[test]
fn a_refusal_without_a_conflicting_entry_does_not_count() {
    let (mut town, agreed, mut people) = town(39);
    let mut rivals = rivals(&mut town, &agreed, &mut people);
    let (other, _) = rivals.pop().unwrap();
    let (mut attempt, _) = rivals.pop().unwrap();
    let (ours, theirs) = (*attempt.entry().unwrap(), *other.entry().unwrap());
    let elsewhere = Entry { slot: 1, ..theirs };
    let of_another = Entry { aggregate: Digest([1; 32]), ..theirs };
    let by = |key: u8, entry: &Entry| {
        ConflictingEntry::Signed(Receipt {
            by: SmootherId(3),
            entry: Signed::new(entry, &signing(key)),
        })
    };
    let mut half = Endorsed::default();
    [0, 1]
        .into_iter()
        .for_each(|id: u8| half.add(SmootherId(id.into()), Signed::new(&theirs, &signing(id))));
    let lies = [
        by(3, &ours),
        by(3, &elsewhere),
        by(3, &of_another),
        by(2, &theirs),
        ConflictingEntry::Certified(half.clone()),
    ];
    for lie in lies {
        for id in 0..4 {
            let taken = attempt.handle_conflict(&lie, SmootherId(id), &town.pinned);
            assert_eq!(taken, Err(ContributionError::Refusal), "{lie:?}");
        }
        assert!(!attempt.is_lost(&town.pinned));
    }
    // One smoother's honest refusal is not enough; a quorum's is.
    attempt.handle_conflict(&by(3, &theirs), SmootherId(3), &town.pinned).unwrap();
    assert!(!attempt.is_lost(&town.pinned));
    half.add(SmootherId(2), Signed::new(&theirs, &signing(2)));
    let whole = ConflictingEntry::Certified(half);
    attempt.handle_conflict(&whole, SmootherId(0), &town.pinned).unwrap();
    assert!(attempt.is_lost(&town.pinned));
}

/// A keeper that grants one slot twice at one turn is identified by its own signatures, also after
/// a restart.
#[test]
fn two_grants_of_one_slot_convict_their_keeper() {
    let (mut town, agreed, mut people) = town(36);
    let rivals = rivals(&mut town, &agreed, &mut people);
    let [(_, ones), (_, twos)] = &rivals[..] else { panic!("two") };
    assert_eq!(answers(&mut town, ones[..3].to_vec()), vec![Ok(()); 3]);
    let refused = twos[1].1.clone();
    assert_eq!(
        town.receive(SmootherId(1), refused.clone(), at(70)).err(),
        Some(SlotError::SlotTaken)
    );
    let evidence =
        |town: &Town| town.smoothers[1].evidence(&agreed.name()).cloned().collect::<Vec<_>>();
    assert_eq!(evidence(&town), []);
    let step = town.smoothers[1].compare_grants(&refused);
    step.commit(&mut town.ledgers[1]).unwrap();
    let [Evidence::Grants(by, one, two)] = &evidence(&town)[..] else { panic!("no evidence") };
    let key = signing(0).verifying_key();
    let [one, two] = [one, two].map(|grant| grant.open(&key).unwrap().into_inner());
    assert_eq!((*by, one.slot, one.turn), (SmootherId(0), two.slot, two.turn));
    assert_ne!(one.ephemeral, two.ephemeral);
    town.restart(1, StateOrigin::Intact, at(71)).unwrap();
    assert_eq!(evidence(&town).len(), 1);
    // An honest keeper grants nothing that it has granted at the same turn.
    let slots: Vec<u32> = (0..24).filter(|slot| slot % 4 == 2).collect();
    let mut given = Vec::new();
    for person in people.iter_mut().skip(2) {
        for _ in 0..3 {
            let mut attempt = begun(&mut town, person, &agreed, 1);
            let asked = std::iter::from_fn(|| {
                let request = attempt.request().ok();
                attempt.handle_refusal();
                request
            });
            let Some((_, request)) = asked.into_iter().find(|(to, _)| to.0 == 2) else { continue };
            let step = town.smoothers[2].handle_request(&request, at(72), &mut town.rng).unwrap();
            let grant = step.commit(&mut town.ledgers[2]).unwrap();
            given.push(grant.open(&signing(2).verifying_key()).unwrap().slot);
            town.restart(2, StateOrigin::Intact, at(72)).unwrap();
        }
    }
    given.sort_unstable();
    assert_eq!(given, slots);
}

/// A smoother that signs two entries of one slot is identified too.
#[test]
fn two_entries_of_one_slot_convict_their_signer() {
    let (mut town, agreed, mut people) = town(37);
    let rivals = rivals(&mut town, &agreed, &mut people);
    let entries = [0, 1].map(|at| *rivals[at].0.entry().unwrap());
    for entry in entries {
        let receipt = Receipt { by: SmootherId(3), entry: Signed::new(&entry, &signing(3)) };
        let step = town.smoothers[0].handle_receipt(&receipt, at(70)).unwrap();
        step.commit(&mut town.ledgers[0]).unwrap();
    }
    let evidence: Vec<_> = town.smoothers[0].evidence(&agreed.name()).collect();
    let [Evidence::Entries(SmootherId(3), _, _)] = evidence[..] else { panic!("{evidence:?}") };
    // One receipt of each smoother for a slot is stored, however many it signs.
    assert_eq!(town.smoothers[0].receipts(&agreed.name()).len(), 1);
}

/// Grants stop before a turn's end. A deposit that is late all the same succeeds if others have
/// signed it in time.
#[test]
fn a_deposit_that_crosses_the_end_of_its_turn_succeeds() {
    let (mut town, agreed, mut people) = town(38);
    let mut late = begun(&mut town, &mut people[1], &agreed, 1);
    let (keeper, request) = late.request().unwrap();
    let smoother = &mut town.smoothers[usize::from(keeper.0)];
    let refusal = smoother.handle_request(&request, at(83), &mut town.rng).err();
    assert_eq!(refusal, Some(SlotError::NotNow), "the last quarter is for deposits");
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let granted = grant(&agreed, 0, 0, attempt.ephemeral());
    taken(&mut town, &mut people[0], &mut attempt, (0, &granted)).unwrap();
    let mut send = |attempt: &mut Attempt, to: u16, minute| {
        let deposit = attempt.deposits().into_iter().find(|(id, _)| id.0 == to).unwrap().1;
        let receipt = town.receive(SmootherId(to), deposit, at(minute))?.unwrap();
        let step = attempt.handle_receipt(&receipt, &town.pinned).unwrap();
        step.commit(&mut people[0].store).unwrap();
        Ok::<(), SlotError>(())
    };
    assert_eq!(send(&mut attempt, 0, 89), Ok(()));
    assert_eq!(send(&mut attempt, 1, 91), Err(SlotError::NotGranted), "one may be faulty");
    assert_eq!(send(&mut attempt, 2, 89), Ok(()));
    assert_eq!(send(&mut attempt, 1, 91), Ok(()));
    assert!(attempt.certificate(&town.pinned).is_some());
}

#[test]
fn a_grant_counts_only_from_its_keeper_and_for_its_turn() {
    let (mut town, agreed, mut people) = town(32);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let key = attempt.ephemeral();
    // Slot 1 is kept by smoother 1 at turn 0: nobody else grants it, and the client knows.
    let by_other = grant(&agreed, 0, 1, key);
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &by_other)).err();
    assert_eq!(refusal, Some(ContributionError::Grant));
    let to_other = grant(&agreed, 0, 0, OneTimePublic::from_bytes([98; 32]));
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &to_other)).err();
    assert_eq!(refusal, Some(ContributionError::Grant));
    let beyond = grant(&agreed, 0, 24, key);
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &beyond)).err();
    assert_eq!(refusal, Some(ContributionError::Grant));
    // Slot 3 is smoother 0's at the next turn, which has not come.
    let honest = by_other.open(&signing(0).verifying_key()).unwrap().into_inner();
    let early = Signed::new(&Grant { turn: Turn(1), slot: 3, ..honest }, &signing(0));
    let refusal = taken(&mut town, &mut people[0], &mut attempt, (0, &early)).err();
    assert_eq!(refusal, Some(ContributionError::Grant));
    let good = grant(&agreed, 0, 0, key);
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (0, &good)).unwrap();
    let send = |town: &mut Town, change: &dyn Fn(&mut Deposit), minute| {
        let mut deposit = deposits[3].1.clone();
        change(&mut deposit);
        town.receive(SmootherId(3), deposit, at(minute)).err()
    };
    let by_other = grant(&agreed, 0, 1, key);
    let wrong_keeper = |d: &mut Deposit| d.grant = by_other.clone();
    assert_eq!(send(&mut town, &wrong_keeper, 70), Some(SlotError::NotGranted));
    let not_signed = |d: &mut Deposit| d.keeper = SmootherId(1);
    assert_eq!(send(&mut town, &not_signed, 70), Some(SlotError::NotGranted));
    assert_eq!(send(&mut town, &|_| {}, 91), Some(SlotError::NotGranted), "another turn");
    assert_eq!(send(&mut town, &|_| {}, 59), Some(SlotError::NotNow));
    assert_eq!(send(&mut town, &|_| {}, 150), Some(SlotError::NotNow));
    assert_eq!(send(&mut town, &|_| {}, 70), None);
}

/// A copied or altered deposit gets no receipt.
#[test]
fn a_deposit_needs_its_keys_signature_and_its_own_presentation() {
    let (mut town, agreed, mut people) = town(33);
    let rivals = rivals(&mut town, &agreed, &mut people);
    let [(_, victims), (_, thiefs)] = &rivals[..] else { panic!("two") };
    let (victim, thief) = (&victims[0].1, &thiefs[0].1);
    let send =
        |town: &mut Town, deposit: Deposit| town.receive(SmootherId(0), deposit, at(70)).err();
    // A victim's upload under the thief's own grant and presentation.
    let copied = Deposit { sealed: victim.sealed.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(SlotError::Signature));
    let copied = Deposit { content: victim.content, ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(SlotError::Signature));
    let copied = Deposit { signature: victim.signature, ..thief.clone() };
    assert_eq!(send(&mut town, copied), Some(SlotError::Signature));
    let content = Digest([0; 32]);
    assert_eq!(send(&mut town, Deposit { content, ..victim.clone() }), Some(SlotError::Signature));
    // A presentation for another's upload, or of another smoother's credential.
    let lent = Deposit { presentation: victim.presentation.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, lent), Some(SlotError::OtherPresentation));
    let other = Deposit { presentation: thiefs[1].1.presentation.clone(), ..thief.clone() };
    assert_eq!(send(&mut town, other), Some(SlotError::Presentation(VerifierError::Proof)));
    let none = Deposit { presentation: vec![0; 9], ..thief.clone() };
    assert!(matches!(
        send(&mut town, none),
        Some(SlotError::Presentation(VerifierError::Malformed(_)))
    ));
    assert_eq!(send(&mut town, thief.clone()), None);
}

/// The size of a client's message reveals neither its content nor its slot.
#[test]
fn deposits_have_one_size() {
    let mut town = Town::new(4, 2, 34).unwrap();
    let definition = town.definition("speed/a", 300).unwrap();
    let agreed = town.define(&definition).unwrap();
    let mut people = people(&mut town, 4);
    let mut sizes = std::collections::BTreeSet::new();
    let given = [(0, 0, 0), (100, 200, u64::MAX), (50, 4, 1 << 40), (7, 296, 127)];
    for (person, (value, slot, revision)) in people.iter_mut().zip(given) {
        let mut attempt = begun(&mut town, person, &agreed, value);
        let (aggregate, ephemeral) = (agreed.name(), attempt.ephemeral());
        let grant = Grant { aggregate, slot, turn: Turn(0), revision, ephemeral };
        let granted = Signed::new(&grant, &signing(0));
        for (_, deposit) in taken(&mut town, person, &mut attempt, (0, &granted)).unwrap() {
            sizes.insert(postcard::to_allocvec(&deposit).unwrap().len());
        }
    }
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    // A dummy's request and deposits are as long as a sample's.
    let (mut requests, mut samples) = (std::collections::BTreeSet::new(), sizes.clone());
    for (minute, given) in [(121, Contribution::Dummy), (122, Contribution::Sample(50))] {
        let prover = Prover::new(*agreed.terms());
        let begun =
            people[0].client.begin((&agreed, &prover), given, at(minute), &mut town.rng).unwrap();
        let mut attempt = begun.commit(&mut people[0].store).unwrap();
        requests.insert(postcard::to_allocvec(&attempt.request().unwrap().1).unwrap().len());
        town.ask(&mut people[0], &mut attempt, at(minute)).unwrap();
        let deposits = attempt.deposits();
        assert_eq!(deposits.len(), 4);
        let size =
            |(_, deposit): &(SmootherId, Deposit)| postcard::to_allocvec(deposit).unwrap().len();
        samples.extend(deposits.iter().map(size));
    }
    assert_eq!((requests.len(), samples.len()), (1, 1), "{requests:?} {samples:?}");
}

/// Even a correctly signed deposit is refused if it has another size or is granted for a later
/// turn.
#[test]
fn a_deposit_of_another_size_or_a_later_turn_gets_no_receipt() {
    let (mut town, agreed, mut people) = town(39);
    let length = SealedUpload::length(&agreed);
    let free = Free::with_a_slot(&mut town, &mut people[0], &agreed);
    let send = |town: &mut Town, free: &Free, length: usize| {
        let (to, deposit) =
            free.deposits(Digest([7; 32]), &SealedUpload::from_bytes(vec![0; length])).remove(0);
        town.receive(to, deposit, at(71)).err()
    };
    for other in [0, length - 1, length + 1] {
        assert_eq!(send(&mut town, &free, other), Some(SlotError::Size));
    }
    assert_eq!(send(&mut town, &free, length), None);
    // Slot 3 is smoother 0's at the second turn, which has not come.
    let mut free = Free::without(&mut town, &mut people[1], &agreed);
    let early = Grant { turn: Turn(1), slot: 3, ..free.grant() };
    free.use_grant(&early, 0);
    assert_eq!(send(&mut town, &free, length), Some(SlotError::NotGranted));
    // There are 24 slots.
    free.use_grant(&Grant { turn: Turn(0), slot: 24, ..early }, 0);
    assert_eq!(send(&mut town, &free, length), Some(SlotError::NotGranted));
    free.use_grant(&Grant { turn: Turn(0), ..early }, 3);
    assert_eq!(send(&mut town, &free, length), None);
}

/// A late deposit needs the receipts of t other smoothers, for its own entry.
#[test]
fn a_late_deposit_is_vouched_for_by_others_and_as_it_is() {
    let (mut town, agreed, mut people) = town(36);
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 50);
    let granted = grant(&agreed, 0, 0, attempt.ephemeral());
    let (to, deposit) =
        taken(&mut town, &mut people[0], &mut attempt, (0, &granted)).unwrap().remove(3);
    let entry = entry_of(&attempt).unwrap();
    let receipt = |by: u8, entry: &Entry| Receipt {
        by: SmootherId(by.into()),
        entry: Signed::new(entry, &signing(by)),
    };
    let other = Entry { content: Digest([5; 32]), ..entry };
    let of_other = attempt.handle_receipt(&receipt(1, &other), &town.pinned).err();
    assert_eq!(of_other, Some(ContributionError::Receipt));
    let mut send = |receipts: Vec<Receipt>| {
        town.receive(to, Deposit { receipts, ..deposit.clone() }, at(91)).err()
    };
    let late = Some(SlotError::NotGranted);
    assert_eq!(send(vec![receipt(1, &entry)]), late);
    assert_eq!(send(vec![receipt(1, &entry), receipt(3, &entry)]), late, "its own");
    assert_eq!(send(vec![receipt(1, &other), receipt(2, &other)]), late);
    assert_eq!(send(vec![receipt(1, &entry), receipt(2, &entry)]), None);
}

/// Each keeper has its share of the slots. When it has granted them, the next one is asked. A slot that
/// was granted and not used has another keeper at the next turn.
#[test]
fn unused_slots_are_granted_again() {
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
    assert_eq!(*full.downcast::<ContributionError>().unwrap(), ContributionError::Full);
    // The same request gets the same slot as long as the turn runs.
    let (keeper, request) = abandoned[0].request().unwrap();
    let smoother = &mut town.smoothers[usize::from(keeper.0)];
    let again = smoother.handle_request(&request, at(72), &mut town.rng).unwrap();
    let again = again.commit(&mut town.ledgers[usize::from(keeper.0)]).unwrap();
    let (_, deposit) = &abandoned[0].deposits()[0];
    assert_eq!(again, deposit.grant);
    // After the interval all eight are granted to others.
    assert_eq!(town.fill(&mut people[9..], &agreed, at(121)).unwrap(), 8);
    assert!(town.smoothers[0].release(&agreed.name(), agreed.release()).is_ok());
}
