//! Separate aggregates: threads that share nothing, presentations that are checked together,
//! signatures that are checked once.

use crate::properties::helpers::{begun, grant, people, taken};
use crate::support::{Person, Town, at, signing};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Entry, Evidence, Grant, Receipt, SlotRequest};
use alpheus_accountable_statistics::role_error::{SlotError, StatementError};
use alpheus_accountable_statistics::smoother::Shard;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_crypto::signed_message::Signed;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;
use std::sync::Barrier;

fn town(seed: u8, places: &[&str]) -> (Town, Vec<AgreedDefinition>, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let define = |place: &&str| {
        let definition = town.definition(place, 12).unwrap();
        town.define(&definition).unwrap()
    };
    let agreed = places.iter().map(define).collect();
    let people = people(&mut town, 4);
    (town, agreed, people)
}

/// So many requests of an aggregate, all for the first smoother.
fn requests(town: &mut Town, agreed: &AgreedDefinition, people: &mut [Person]) -> Vec<SlotRequest> {
    let request = |person: &mut Person| {
        let mut attempt = begun(town, person, agreed, 7);
        loop {
            match attempt.request().unwrap() {
                (SmootherId(0), request) => return request,
                _ => attempt.handle_refusal(),
            }
        }
    };
    people.iter_mut().map(request).collect()
}

type GrantResults = Vec<Result<Step<Signed<Grant>>, SlotError>>;

fn serve(mut shard: Shard<'_>, asked: &[SlotRequest], together: &Barrier) -> GrantResults {
    let mut rng = ChaCha20Rng::from_seed([9; 32]);
    shard.verify_presentations(asked, [], at(70));
    // Nobody continues before both are here: one after the other, this never ends.
    together.wait();
    asked.iter().map(|request| shard.handle_request(request, at(70), &mut rng)).collect()
}

/// Two threads serve two aggregates at once. One commit makes both durable, and a smoother
/// restored from it answers the same.
#[test]
fn two_threads_serve_two_aggregates_at_once() {
    let (mut town, agreed, mut people) = town(140, &["speed/a", "speed/b"]);
    let mut asked: BTreeMap<Digest, Vec<SlotRequest>> = BTreeMap::new();
    for agreed in &agreed {
        // As many as the smoother keeps slots of each.
        asked.insert(agreed.name(), requests(&mut town, agreed, &mut people[..3]));
    }
    let together = Barrier::new(2);
    let granted: Vec<GrantResults> = std::thread::scope(|scope| {
        let serving = town.smoothers[0].shards().map(|(name, shard)| {
            let (asked, together) = (&asked[&name], &together);
            scope.spawn(move || serve(shard, asked, together))
        });
        let serving: Vec<_> = serving.collect();
        serving.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let steps = granted.into_iter().flatten().map(Result::unwrap);
    let grants = Step::join(steps).commit(&mut town.ledgers[0]).unwrap();
    let of = |grant: &Signed<Grant>| grant.open(&signing(0).verifying_key()).unwrap().aggregate;
    let many = |name: &Digest| grants.iter().filter(|grant| of(grant) == *name).count();
    assert_eq!(agreed.iter().map(|a| many(&a.name())).collect::<Vec<_>>(), [3, 3]);
    town.restart(0, StateOrigin::Intact, at(71)).unwrap();
    for request in asked.values().flatten() {
        let again = town.smoothers[0].handle_request(request, at(71), &mut town.rng).unwrap();
        assert!(grants.contains(&again.commit(&mut town.ledgers[0]).unwrap()));
    }
}

/// One bad presentation among many is refused alone, and a valid one counts only for its own key.
#[test]
fn presentations_checked_together_get_their_own_verdicts() {
    let (mut town, agreed, mut people) = town(141, &["speed/a"]);
    let name = agreed[0].name();
    let mut asked = requests(&mut town, &agreed[0], &mut people[..3]);
    // A response of the proof, at the end of a presentation, is changed.
    let last = asked[1].presentation.len() - 32;
    asked[1].presentation[last] ^= 1;
    let stolen = SlotRequest { ephemeral: asked[2].ephemeral, ..asked[0].clone() };
    asked.push(stolen);
    let rng = &mut ChaCha20Rng::from_seed([9; 32]);
    let mut shard = town.smoothers[0].shard(&name).unwrap();
    shard.verify_presentations(&asked, [], at(70));
    let said = asked.iter().map(|request| shard.handle_request(request, at(70), rng).err());
    let expected = [
        None,
        Some(SlotError::Presentation(VerifierError::Proof)),
        None,
        Some(SlotError::OtherPresentation),
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

/// An unread receipt is read as soon as its smoother has signed another entry.
#[test]
fn a_second_entry_of_a_certified_slot_convicts_its_signer() {
    let (mut town, agreed, mut people) = town(142, &["speed/a"]);
    let (agreed, rng) = (&agreed[0], 70);
    let attempt = town.upload(&mut people[0], agreed, at(rng), Contribution::Sample(40)).unwrap();
    let entry = *attempt.entry().unwrap();
    assert_eq!(town.smoothers[0].certified(&agreed.name(), entry.slot), Some(&entry));
    assert_eq!(town.smoothers[0].evidence(&agreed.name()).count(), 0);
    let other = Entry { content: Digest([9; 32]), ..entry };
    let receipt = Receipt { by: SmootherId(3), entry: Signed::new(&other, &signing(3)) };
    let step = town.smoothers[0].handle_receipt(&receipt, at(70)).unwrap();
    step.commit(&mut town.ledgers[0]).unwrap();
    let evidence: Vec<_> = town.smoothers[0].evidence(&agreed.name()).collect();
    let [Evidence::Entries(SmootherId(3), one, two)] = evidence[..] else { panic!("{evidence:?}") };
    let opened = [one, two].map(|said| *said.open(&signing(3).verifying_key()).unwrap());
    assert_eq!(opened, [entry, other]);
}

/// A fake receipt in another's name hides nothing that the other signed.
#[test]
fn a_forged_unread_receipt_hides_nothing() {
    let (mut town, agreed, mut people) = town(143, &["speed/a"]);
    town.cut_off = vec![SmootherId(3)];
    let attempt =
        town.upload(&mut people[0], &agreed[0], at(70), Contribution::Sample(40)).unwrap();
    let entry = *attempt.entry().unwrap();
    let hear = |town: &mut Town, entry: &Entry, key: u8| {
        let receipt = Receipt { by: SmootherId(3), entry: Signed::new(entry, &signing(key)) };
        town.smoothers[0].handle_receipt(&receipt, at(70)).map(|step| {
            step.commit(&mut town.ledgers[0]).unwrap();
        })
    };
    // By another key than smoother 3's; then its own; then its other one.
    assert_eq!(hear(&mut town, &entry, 1), Ok(()));
    assert_eq!(hear(&mut town, &entry, 3), Ok(()));
    let other = Entry { content: Digest([9; 32]), ..entry };
    assert_eq!(hear(&mut town, &other, 1), Err(StatementError::Signature(SmootherId(3))));
    assert_eq!(town.smoothers[0].evidence(&agreed[0].name()).count(), 0);
    assert_eq!(hear(&mut town, &other, 3), Ok(()));
    assert_eq!(town.smoothers[0].evidence(&agreed[0].name()).count(), 1);
}

/// A certificate of a known entry is not checked again. One with an invalid signature is no
/// certificate, no matter who else has signed it.
#[test]
fn only_signatures_checked_here_skip_checking() {
    let (mut town, agreed, mut people) = town(144, &["speed/a"]);
    let mut attempt = begun(&mut town, &mut people[0], &agreed[0], 3);
    let granted = grant(&agreed[0], 0, 0, attempt.ephemeral());
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (0, &granted)).unwrap();
    let (to, deposit) = deposits[0].clone();
    town.receive(to, deposit, at(70)).unwrap();
    let entry = *attempt.entry().unwrap();
    let by = |id: u16, key: u8| (SmootherId(id), Signed::new(&entry, &signing(key)));
    let mut forged = Endorsed::default();
    [by(0, 0), by(1, 1), by(2, 1)].into_iter().for_each(|(by, said)| forged.add(by, said));
    let heard = town.smoothers[0].handle_certificate(&forged, at(70)).err();
    assert_eq!(heard, Some(StatementError::NotCertified));
    let mut good = Endorsed::default();
    [by(0, 0), by(1, 1), by(2, 2)].into_iter().for_each(|(by, said)| good.add(by, said));
    assert!(town.smoothers[0].handle_certificate(&good, at(70)).is_ok());
    assert_eq!(town.smoothers[0].certified(&agreed[0].name(), 0), Some(&entry));
}
