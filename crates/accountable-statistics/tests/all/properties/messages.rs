//! Messages that somebody stores and sends again, and certificates with additions that were not
//! checked.

use crate::properties::helpers::{answers, begun, grant, people, rivals, taken};
use crate::support::{Person, TODAY, Town, at, signing};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Entry, Ready, Receipt};
use alpheus_accountable_statistics::role_error::StatementError;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

fn town(seed: u8) -> (Town, AgreedDefinition, Vec<Person>) {
    let mut town = Town::new(4, 2, seed).unwrap();
    let agreed = town.define(&town.definition("speed/a", 24).unwrap()).unwrap();
    let people = people(&mut town, 4);
    (town, agreed, people)
}

/// Sends smoother 1 a certificate, its own receipt in it and its own ready statement.
fn replay_statements(
    town: &mut Town,
    (agreed, attempt): (&AgreedDefinition, &Attempt),
    now: Timestamp,
) -> [Option<StatementError>; 3] {
    let certificate = attempt.certificate(&town.pinned).unwrap();
    let own = attempt.receipts().into_iter().find(|receipt| receipt.by.0 == 1).unwrap();
    let (aggregate, key_epoch, root) = (agreed.name(), agreed.key_epoch, Digest([3; 32]));
    let ready = Ready { aggregate, key_epoch, ledger: root, tuples: root };
    let ready = Signed::new(&ready, &signing(1));
    let (smoother, ledger) = (&mut town.smoothers[1], &mut town.ledgers[1]);
    let mut note = |step| alpheus_crypto::ledger::Step::commit(step, ledger).unwrap();
    let heard = smoother.handle_ready(&ready, SmootherId(1), now, &mut town.rng);
    [
        smoother.handle_certificate(&certificate, now).map(&mut note).err(),
        smoother.handle_receipt(&own, now).map(&mut note).err(),
        heard
            .map(|step| note(step.then(|_| alpheus_crypto::ledger::Step::new(Vec::new(), ()))))
            .err(),
    ]
}

/// Anybody may store a certificate and send it when its day is pruned. To a smoother that
/// remembers nothing of that day, its own signature on it is no sign of an old copy.
#[test]
fn statements_of_a_pruned_day_make_nobody_sit_out() {
    let (mut town, agreed, mut people) = town(140);
    let attempt = town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(10)).unwrap();
    let later = at(24 * 60 + 360);
    let _ = town.smoothers[1].poll(later).commit(&mut town.ledgers[1]).unwrap();
    assert!(!town.smoothers[1].knows(&agreed.name()));
    let (before, over) = (town.ledgers[1].clone(), Some(StatementError::Over));
    assert_eq!(replay_statements(&mut town, (&agreed, &attempt), later), [over, over, over]);
    town.restart(1, StateOrigin::Intact, later).unwrap();
    assert_eq!(replay_statements(&mut town, (&agreed, &attempt), later), [over, over, over]);
    assert!((TODAY..TODAY + 4).all(|day| !town.smoothers[1].sits_out(KeyEpoch(day))));
    assert_eq!(town.ledgers[1], before, "no share is destroyed, and nothing is written");
}

/// A smoother that sat out a day receives its earlier statements, and knows why it has no record
/// of them.
#[test]
fn statements_of_a_sat_out_day_are_no_second_reason() {
    let (mut town, agreed, mut people) = town(141);
    let mut backup = town.ledgers[1].clone();
    backup.retain(|key, _| key[0] != b'a');
    let attempt = town.upload(&mut people[0], &agreed, at(70), Contribution::Sample(10)).unwrap();
    town.ledgers[1] = backup;
    town.restart(1, StateOrigin::Restored, at(80)).unwrap();
    let out = |town: &Town, day| town.smoothers[1].sits_out(KeyEpoch(day));
    assert!(out(&town, TODAY + 1) && !out(&town, TODAY + 2));
    assert_eq!(replay_statements(&mut town, (&agreed, &attempt), at(48 * 60 + 1)), [None; 3]);
    assert!(!out(&town, TODAY + 2));
}

/// Two clients with one slot; the second has a receipt of smoother 3 alone. A certificate of the
/// first, after anything that somebody adds, for smoother 0, which has received nothing else.
fn behind(town: &mut Town, junk: (SmootherId, Signed<Entry>), rivals: &[Rival]) -> Entry {
    let (entry, signatures) = rivals.first().unwrap();
    let mut certificate = Endorsed::default();
    certificate.add(junk.0, junk.1);
    signatures.iter().for_each(|(by, signed)| certificate.add(*by, signed.clone()));
    let step = town.smoothers[0].handle_certificate(&certificate, at(70)).unwrap();
    step.commit(&mut town.ledgers[0]).unwrap();
    *entry
}

/// An entry, and who has signed it.
type Rival = (Entry, Vec<(SmootherId, Signed<Entry>)>);

fn half_signed(town: &mut Town, agreed: &AgreedDefinition, people: &mut [Person]) -> Vec<Rival> {
    let sent = rivals(town, agreed, people);
    let mut signed = Vec::new();
    for ((attempt, deposits), to) in sent.into_iter().zip([0..3, 3..4]) {
        let receipt = |(to, deposit): &(SmootherId, _)| {
            let at_smoother = usize::from(to.0);
            let step =
                town.smoothers[at_smoother].handle_deposit(Clone::clone(deposit), at(70)).unwrap();
            (*to, step.commit(&mut town.ledgers[at_smoother]).unwrap().entry)
        };
        let receipts = deposits[to].iter().map(receipt).collect();
        signed.push((*attempt.entry().unwrap(), receipts));
    }
    signed
}

/// Only the checked part of a certificate is stored: a smoother restarts with it, and has
/// certified the same entry.
#[test]
fn additions_to_a_certificate_are_not_stored() {
    let (mut town, agreed, mut people) = town(142);
    let entries = half_signed(&mut town, &agreed, &mut people);
    let other = entries[1].1[0].1.clone();
    let unknown = SmootherId(9);
    let elsewhere = Signed::new(&Entry { slot: 5, ..entries[1].0 }, &signing(3));
    let by_nobody = Signed::new(&entries[0].0, &signing(77));
    let last = SmootherId(3);
    let of_none = Signed::new(&Entry { aggregate: Digest([1; 32]), ..entries[0].0 }, &signing(3));
    let by_last = [by_nobody, elsewhere, of_none, other.clone()].map(|signed| (last, signed));
    for junk in [vec![(unknown, other)], by_last.to_vec()].concat() {
        let before = town.ledgers[0].clone();
        let entry = behind(&mut town, junk, &entries);
        assert_eq!(town.smoothers[0].certified(&agreed.name(), 0), Some(&entry));
        town.restart(0, StateOrigin::Intact, at(71)).unwrap();
        assert_eq!(town.smoothers[0].certified(&agreed.name(), 0), Some(&entry));
        assert_eq!(town.smoothers[0].certified(&agreed.name(), 5), None);
        let kept = town.smoothers[0].certificates(&agreed.name());
        let by = kept.iter().flat_map(Endorsed::signatures).map(|(by, _)| by.0);
        assert_eq!(by.collect::<Vec<_>>(), [0, 1, 2]);
        assert!(!town.smoothers[0].sits_out(agreed.key_epoch));
        town.ledgers[0] = before;
        town.restart(0, StateOrigin::Intact, at(71)).unwrap();
    }
}

/// All valid signatures are stored, also beyond a quorum: each shows its smoother what it signed.
#[test]
fn a_certificate_signed_by_all_is_stored_whole() {
    let (mut town, agreed, mut people) = town(143);
    town.cut_off = vec![SmootherId(0)];
    let mut attempt = begun(&mut town, &mut people[0], &agreed, 10);
    let granted = grant(&agreed, 1, 1, attempt.ephemeral());
    let deposits = taken(&mut town, &mut people[0], &mut attempt, (1, &granted)).unwrap();
    assert_eq!(answers(&mut town, deposits), [Ok(()); 4]);
    let (entry, mut all) = (*attempt.entry().unwrap(), Endorsed::default());
    (0..4).for_each(|by| all.add(SmootherId(by.into()), Signed::new(&entry, &signing(by))));
    let step = town.smoothers[0].handle_certificate(&all, at(71)).unwrap();
    step.commit(&mut town.ledgers[0]).unwrap();
    town.restart(0, StateOrigin::Intact, at(72)).unwrap();
    assert_eq!(town.smoothers[0].certificates(&agreed.name()), [all]);
}

/// As many as decrypt are not as many as certify: two quorums have one honest smoother in common,
/// and two pairs need not.
#[test]
fn fewer_than_a_quorum_certify_nothing() {
    let (mut town, agreed, mut people) = town(144);
    let entries = half_signed(&mut town, &agreed, &mut people);
    let (entry, signatures) = &entries[0];
    let mut few = Endorsed::default();
    signatures.iter().take(2).for_each(|(by, signed)| few.add(*by, signed.clone()));
    // Beside two valid ones: another entry, a bad signature, and somebody who is no smoother.
    let mut beside = [few.clone(), few.clone(), few.clone(), few.clone()];
    beside[1].add(SmootherId(3), entries[1].1[0].1.clone());
    beside[2].add(SmootherId(3), Signed::new(entry, &signing(2)));
    beside[3].add(SmootherId(9), signatures[2].1.clone());
    for certificate in &beside {
        for at_smoother in [0, 3] {
            let heard = town.smoothers[at_smoother].handle_certificate(certificate, at(70));
            assert_eq!(heard.err(), Some(StatementError::NotCertified));
            assert_eq!(town.smoothers[at_smoother].certified(&agreed.name(), 0), None);
        }
    }
    few.add(signatures[2].0, signatures[2].1.clone());
    assert!(town.smoothers[3].handle_certificate(&few, at(70)).is_ok());
    assert_eq!(town.smoothers[3].certified(&agreed.name(), 0), Some(entry));
}

/// An entry belongs to its aggregate: to its slots and its key epoch.
#[test]
fn an_entry_of_another_key_epoch_or_slot_is_rejected() {
    let (mut town, agreed, mut people) = town(145);
    let good = half_signed(&mut town, &agreed, &mut people)[0].0;
    let key_epoch = KeyEpoch(good.key_epoch.0 + 1);
    for bad in [Entry { key_epoch, ..good }, Entry { slot: 24, ..good }] {
        let signed = |by: u8| Signed::new(&bad, &signing(by));
        let receipt = Receipt { by: SmootherId(3), entry: signed(3) };
        let heard = town.smoothers[0].handle_receipt(&receipt, at(70)).err();
        let mut certificate = Endorsed::default();
        (1..4).for_each(|by| certificate.add(SmootherId(by.into()), signed(by)));
        let certified = town.smoothers[0].handle_certificate(&certificate, at(70)).err();
        assert_eq!(
            (heard, certified),
            (Some(StatementError::OtherSet), Some(StatementError::OtherSet))
        );
    }
}
