//! Servers that come back from an old copy or an empty one, and what they are told apart by.

use crate::malice::LIAR;
use crate::town::{SECOND, Town, server};
use alpheus_anonymous_board::auditor::Auditor;
use alpheus_anonymous_board::configuration::{Epoch, Party, Time};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::{NotRestored, Refused};
use alpheus_anonymous_board::messages::{Fault, Statement, Submission, What, Why};
use alpheus_anonymous_board::transcript::{Heard, Transcript};
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::ledger::{DamagedLog, Log};
use alpheus_crypto::signed::Signed;

fn auditor(town: &Town, log: Log, now: Time) -> Result<Auditor, NotRestored> {
    let key = server(Party::Auditor);
    let restored = Auditor::restore(&town.board, key, log, town.ledgers[2].clone(), now);
    restored.map(|(auditor, _)| auditor)
}

/// A ledger that is said to be whole is not empty, and one that is said to be new is.
#[test]
fn an_auditor_is_what_its_ledger_is_said_to_be() {
    let mut town = Town::new(9, 30, 70);
    let damaged = Some(NotRestored::Ledger(DamagedLog));
    assert_eq!(auditor(&town, Log::New, town.now).err(), damaged);
    assert!(auditor(&town, Log::Whole, town.now).is_ok());
    town.ledgers[2].clear();
    assert_eq!(auditor(&town, Log::Whole, town.now).err(), damaged);
    assert!(auditor(&town, Log::New, town.now).is_ok());
}

/// An auditor that may have settled an epoch of which its copy knows nothing hears no
/// complaint of it any more.
#[test]
fn an_auditor_burns_what_it_may_have_forgotten() {
    let mut town = Town::new(9, 30, 71);
    town.ledgers[2].clear();
    // The second epoch has begun, the first one is not over.
    let now = Time(town.now.0 + 65 * SECOND);
    let restored = auditor(&town, Log::Doubtful, now).unwrap();
    for epoch in [0, 1] {
        let why = restored.transcript(Epoch(epoch)).unwrap().aborted(Party::Auditor);
        assert_eq!(why, Some(Why::Restored), "epoch {epoch}");
    }
    assert!(restored.transcript(Epoch(2)).is_none());
    // An hour later the first ones are over anyway.
    let restored = auditor(&town, Log::Doubtful, Time(now.0 + 3600 * SECOND)).unwrap();
    assert!(restored.transcript(Epoch(0)).is_none());
}

/// A database whose copy does not know the epoch that is open says at once that it is
/// burnt, once, and goes on with the next.
#[test]
fn a_database_burns_what_it_may_have_begun() {
    let mut town = Town::new(9, 30, 72);
    let (_, submission) = town.write(0, Content::Cover);
    town.ledgers[0].clear();
    town.restart(Side::First, Log::Doubtful);
    let by = Party::Database(Side::First);
    let why = |town: &Town| town.databases[0].transcript(Epoch(0)).unwrap().aborted(by);
    assert_eq!(why(&town), Some(Why::Restored));
    assert_eq!(town.submit(Side::First, &submission), Err(Refused::Burnt));
    town.restart(Side::First, Log::Whole);
    let said = town.said[0].len();
    town.later(300);
    while let Some(step) = town.databases[0].advance(town.now, &mut town.rng) {
        town.accept(Side::First, step);
    }
    assert_eq!(why(&town), Some(Why::Restored), "said once");
    assert_eq!(town.said[0].len(), said + 1, "and the epoch that is open then is begun");
}

/// An epoch's key that everybody would know what is agreed on with: whoever hears it has
/// the proof, nothing goes on from it, and a restart keeps that.
#[test]
fn a_key_of_small_order_is_blamed_when_it_is_heard() {
    let mut town = Town::new(9, 30, 73);
    let begin = town.said[1][0].open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
    let What::Begin { sealing, .. } = begin.what else { panic!("the first it says") };
    let what = What::Begin { sealing, agreement: AgreementPublic([0; 32]) };
    let bad = Signed::new(&Statement { what, ..begin }, &server(LIAR));
    let mut view = Transcript::new(&town.board, Epoch(0));
    assert_eq!(view.hear(LIAR, &bad), Ok(Heard::Fault(Fault::Keys)));
    assert!(view.conflict(LIAR).is_some() && view.keys(Side::Second).is_none());
    // A database that hears nothing else of it.
    let key = server(Party::Database(Side::First));
    let (database, _) =
        Database::restore(&town.board, Side::First, key, Log::New, [], town.now).unwrap();
    town.databases[0] = database;
    town.ledgers[0].clear();
    town.said[0].clear();
    let step = town.databases[0].advance(town.now, &mut town.rng).unwrap();
    town.accept(Side::First, step);
    let step = town.databases[0].hear(LIAR, Epoch(0), &bad).unwrap();
    assert!(matches!(town.commit(Side::First, step).as_slice(), [Output::Said(s)] if s.conflicts));
    town.restart(Side::First, Log::Whole);
    let step = town.databases[0].advance(town.now, &mut town.rng).unwrap();
    town.accept(Side::First, step);
    let why = town.databases[0].transcript(Epoch(0)).unwrap().aborted(Party::Database(Side::First));
    assert_eq!(why, Some(Why::Blamed(LIAR, Fault::Keys)));
}

/// Somebody else's equal message in the row of a write that did not get in is not the write.
#[test]
fn an_equal_message_is_not_ones_own() {
    let mut town = Town::new(9, 1, 74);
    let (missed, _) = town.write(0, Content::Message(b"the same"));
    let (found, ..) = town.post(1, Content::Message(b"the same"));
    town.post(2, Content::Cover);
    town.finish().unwrap();
    let table = town.tables[0].clone().unwrap();
    assert_eq!((found.fate(&table), missed.fate(&table)), (Fate::Delivered, Fate::Lost));
    let said = town.transcript();
    let became = (found.became(&said, &table), missed.became(&said, &table));
    assert_eq!(became, (Fate::Delivered, Fate::LeftOut));
}

/// A write that the other database has handed on is taken once, and one that it never
/// listed not at all.
#[test]
fn what_is_handed_on_was_listed() {
    let mut town = Town::new(9, 30, 75);
    (0..3).for_each(|member| drop(town.post(member, Content::Cover)));
    let (_, listed) = town.write(3, Content::Cover);
    let (_, other) = town.write(4, Content::Cover);
    town.submit(Side::Second, &listed).unwrap();
    let forwarded = |town: &mut Town, submission: &Submission| -> Result<(), Refused> {
        let step = town.databases[0].forwarded(LIAR, submission.clone(), &town.members)?;
        town.commit(Side::First, step);
        Ok(())
    };
    assert_eq!(forwarded(&mut town, &listed), Err(Refused::NotListed), "it has not closed yet");
    town.ahead(Side::Second, 60);
    for said in town.said[1].clone() {
        if let Ok(step) = town.databases[0].hear(LIAR, Epoch(0), &said) {
            town.accept(Side::First, step);
        }
    }
    town.restart(Side::First, Log::Whole);
    assert_eq!(town.databases[0].missing(Epoch(0)).len(), 1);
    assert_eq!(forwarded(&mut town, &other), Err(Refused::NotListed));
    assert_eq!(forwarded(&mut town, &listed), Ok(()));
    assert!(town.databases[0].missing(Epoch(0)).is_empty());
    assert_eq!(forwarded(&mut town, &listed), Err(Refused::NotListed));
    assert_eq!(town.databases[0].writes(Epoch(0)), 4);
}
