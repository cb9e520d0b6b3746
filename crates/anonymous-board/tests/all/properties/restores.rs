//! Servers restored from an old or empty copy, and cases that must be distinguished.

use crate::properties::malice::LIAR;
use crate::properties::town::{SECOND, Town, server};
use alpheus_anonymous_board::auditor::Auditor;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::{RestoreError, SubmissionError};
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Statement, Submission};
use alpheus_anonymous_board::transcript::{Effect, Transcript};
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::ledger::{DamagedLedgerError, StateOrigin};
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;

fn auditor(town: &Town, origin: StateOrigin, now: Timestamp) -> Result<Auditor, RestoreError> {
    let key = server(Party::Auditor);
    let restored = Auditor::restore(&town.board, key, origin, town.ledgers[2].clone(), now);
    restored.map(|(auditor, _)| auditor)
}

/// A ledger declared whole must not be empty, and one declared new must be.
#[test]
fn an_auditor_checks_the_declared_state_of_its_ledger() {
    let mut town = Town::new(9, 30, 70);
    let damaged = Some(RestoreError::Ledger(DamagedLedgerError));
    assert_eq!(auditor(&town, StateOrigin::New, town.now).err(), damaged);
    assert!(auditor(&town, StateOrigin::Intact, town.now).is_ok());
    town.ledgers[2].clear();
    assert_eq!(auditor(&town, StateOrigin::Intact, town.now).err(), damaged);
    assert!(auditor(&town, StateOrigin::New, town.now).is_ok());
}

/// An auditor may have settled an epoch that its copy does not contain. It judges no more
/// complaints about it.
#[test]
fn an_auditor_burns_what_it_may_have_forgotten() {
    let mut town = Town::new(9, 30, 71);
    town.ledgers[2].clear();
    // The second epoch has begun, and the first has not ended.
    let now = Timestamp(town.now.0 + 65 * SECOND);
    let restored = auditor(&town, StateOrigin::Restored, now).unwrap();
    for epoch in [0, 1] {
        let why = restored.transcript(Epoch(epoch)).unwrap().abort_reason(Party::Auditor);
        assert_eq!(why, Some(BurnReason::Restored), "epoch {epoch}");
    }
    assert!(restored.transcript(Epoch(2)).is_none());
    // An hour later the first epochs have ended anyway.
    let restored = auditor(&town, StateOrigin::Restored, Timestamp(now.0 + 3600 * SECOND)).unwrap();
    assert!(restored.transcript(Epoch(0)).is_none());
}

/// A database whose copy lacks the open epoch burns it at once, states so once, and continues with
/// the next.
#[test]
fn a_database_burns_what_it_may_have_begun() {
    let mut town = Town::new(9, 30, 72);
    let (_, submission) = town.write(0, Content::Cover);
    town.ledgers[0].clear();
    town.restart(Side::First, StateOrigin::Restored);
    let by = Party::Database(Side::First);
    let why = |town: &Town| town.databases[0].transcript(Epoch(0)).unwrap().abort_reason(by);
    assert_eq!(why(&town), Some(BurnReason::Restored));
    assert_eq!(town.submit(Side::First, &submission), Err(SubmissionError::Burnt));
    town.restart(Side::First, StateOrigin::Intact);
    let said = town.statements[0].len();
    town.later(300);
    while let Some(step) = town.databases[0].poll(town.now, &mut town.rng) {
        town.accept(Side::First, step);
    }
    assert_eq!(why(&town), Some(BurnReason::Restored), "stated once");
    assert_eq!(town.statements[0].len(), said + 1, "and it begins the epoch that is open then");
}

/// The seed of an epoch is erased in place, and an older copy of the ledger may lack it: what was
/// sealed for its keys is dropped, and the epoch burnt.
#[test]
fn a_ledger_without_an_epochs_seed_burns_the_epoch() {
    let mut town = Town::new(9, 30, 75);
    (0..3).for_each(|member| drop(town.post(member, Content::Cover)));
    let is_write = |key: &Vec<u8>| key.get(8) == Some(&b'w');
    assert_eq!(town.ledgers[0].keys().filter(|key| is_write(key)).count(), 3);
    let secret: Vec<Vec<u8>> =
        town.ledgers[0].keys().filter(|key| Database::is_secret(key)).cloned().collect();
    assert_eq!(secret.len(), 1);
    town.ledgers[0].remove(&secret[0]);
    town.restart(Side::First, StateOrigin::Restored);
    let said = town.databases[0].transcript(Epoch(0)).unwrap();
    let by = Party::Database(Side::First);
    assert_eq!(said.abort_reason(by), Some(BurnReason::Restored));
    assert!(!town.ledgers[0].keys().any(is_write));
}

/// With a key of small order, everybody would know the agreed secrets. A server that receives one
/// has proof, nothing builds on the key, and the proof survives a restart.
#[test]
fn a_key_of_small_order_is_blamed_on_arrival() {
    let mut town = Town::new(9, 30, 73);
    let begin = town.statements[1][0].open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
    let Body::Begin { sealing, .. } = begin.body else { panic!("Begin is the first statement") };
    let body = Body::Begin { sealing, agreement: AgreementPublic([0; 32]) };
    let bad = Signed::new(&Statement { body, ..begin }, &server(LIAR));
    let mut view = Transcript::new(&town.board, Epoch(0));
    assert_eq!(view.record(LIAR, &bad), Ok(Effect::Fault(Fault::Keys)));
    assert!(view.conflict(LIAR).is_some() && view.keys(Side::Second).is_none());
    // This database receives nothing else from it.
    let key = server(Party::Database(Side::First));
    let (database, _) =
        Database::restore(&town.board, Side::First, key, StateOrigin::New, [], town.now).unwrap();
    town.databases[0] = database;
    town.ledgers[0].clear();
    town.statements[0].clear();
    let step = town.databases[0].poll(town.now, &mut town.rng).unwrap();
    town.accept(Side::First, step);
    let step = town.databases[0].handle_statement(&bad, LIAR, Epoch(0)).unwrap();
    assert!(
        matches!(town.commit(Side::First, step).as_slice(), [Output::Statement(s)] if s.conflicts)
    );
    town.restart(Side::First, StateOrigin::Intact);
    let step = town.databases[0].poll(town.now, &mut town.rng).unwrap();
    town.accept(Side::First, step);
    let why =
        town.databases[0].transcript(Epoch(0)).unwrap().abort_reason(Party::Database(Side::First));
    assert_eq!(why, Some(BurnReason::Blamed(LIAR, Fault::Keys)));
}

/// A seal for a key with an invalid half would rest on the other half alone.
#[test]
fn half_a_sealing_key_is_blamed_on_arrival() {
    let town = Town::new(9, 30, 74);
    let begin = town.statements[1][0].open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
    let Body::Begin { sealing, agreement } = &begin.body else { panic!("Begin comes first") };
    let good = Vec::from(sealing.clone());
    let (curve, lattice) =
        ([&good[..1184], &[0; 32]].concat(), [&[255; 1184], &good[1184..]].concat());
    for (bytes, effect) in [
        (good.clone(), Effect::New),
        (curve, Effect::Fault(Fault::Keys)),
        (lattice, Effect::Fault(Fault::Keys)),
    ] {
        let body = Body::Begin { sealing: bytes.try_into().unwrap(), agreement: *agreement };
        let said = Signed::new(&Statement { body, ..begin.clone() }, &server(LIAR));
        let mut view = Transcript::new(&town.board, Epoch(0));
        assert_eq!(view.record(LIAR, &said), Ok(effect));
    }
}

/// Somebody else's equal message, in the row of a write that was left out, is not that write.
#[test]
fn an_equal_message_of_another_writer_does_not_count() {
    let mut town = Town::new(9, 1, 74);
    let (missed, _) = town.write(0, Content::Message(b"the same"));
    let (found, ..) = town.post(1, Content::Message(b"the same"));
    town.post(2, Content::Cover);
    town.finish().unwrap();
    let table = town.tables[0].clone().unwrap();
    assert_eq!((found.fate_in(&table), missed.fate_in(&table)), (Fate::Delivered, Fate::Lost));
    let said = town.transcript();
    let became = (found.fate(&said, &table), missed.fate(&said, &table));
    assert_eq!(became, (Fate::Delivered, Fate::LeftOut));
}

/// A forwarded write is accepted once, and only if the other database listed it.
#[test]
fn only_listed_writes_can_be_forwarded() {
    let mut town = Town::new(9, 30, 75);
    (0..3).for_each(|member| drop(town.post(member, Content::Cover)));
    let (_, listed) = town.write(3, Content::Cover);
    let (_, other) = town.write(4, Content::Cover);
    town.submit(Side::Second, &listed).unwrap();
    let forwarded = |town: &mut Town, submission: &Submission| -> Result<(), SubmissionError> {
        let step = town.databases[0].handle_forwarded(submission.clone(), LIAR, &town.members)?;
        town.commit(Side::First, step);
        Ok(())
    };
    assert_eq!(
        forwarded(&mut town, &listed),
        Err(SubmissionError::NotListed),
        "it has not closed yet"
    );
    town.ahead(Side::Second, 60);
    for said in town.statements[1].clone() {
        if let Ok(step) = town.databases[0].handle_statement(&said, LIAR, Epoch(0)) {
            town.accept(Side::First, step);
        }
    }
    town.restart(Side::First, StateOrigin::Intact);
    assert_eq!(town.databases[0].missing_writes(Epoch(0)).len(), 1);
    assert_eq!(forwarded(&mut town, &other), Err(SubmissionError::NotListed));
    assert_eq!(forwarded(&mut town, &listed), Ok(()));
    assert!(town.databases[0].missing_writes(Epoch(0)).is_empty());
    assert_eq!(forwarded(&mut town, &listed), Err(SubmissionError::NotListed));
    assert_eq!(town.databases[0].write_count(Epoch(0)), 4);
}
