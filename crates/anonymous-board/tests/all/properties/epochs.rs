//! An epoch from its beginning to its table, and what is rejected on the way.

use crate::properties::town::{SECOND, Town, configuration, key, pinned};
use alpheus_anonymous_board::EnvelopeError;
use alpheus_anonymous_board::admission::{Admission, AdmissionError, Members};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, ConfigurationError, Epoch, Party, Servers,
};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Body, BurnReason, Submission, Tag, WriteName};
use alpheus_anonymous_board::reader::{ReadError, read};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, Fate, View, WriteStatus};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Span;
use std::cell::Cell;

#[test]
fn posted_messages_are_read_and_covers_add_nothing() {
    let mut town = Town::new(20, 60, 1);
    let mut posts = Vec::new();
    for member in 0..12 {
        let message = format!("message {member}").into_bytes();
        let content = if member % 4 == 3 { Content::Cover } else { Content::Message(&message) };
        posts.push((message.clone(), town.post(member, content)));
    }
    let reading = town.finish().unwrap();
    assert_eq!((reading.size, reading.flagged), (12, false));
    let table = town.tables[0].clone().unwrap();
    assert!(town.tables[1].as_ref() == Some(&table));
    let (mut back, mut covers) = (0, 0);
    for (message, (written, _, received)) in &posts {
        assert_eq!(written.status(&town.transcript(), received), WriteStatus::In);
        match written.fate(&town.transcript(), &table) {
            Fate::Covered => covers += 1,
            Fate::Lost => assert!(!reading.messages.contains(message)),
            Fate::LeftOut => panic!("all are in the set"),
            Fate::Delivered | Fate::Recovered => {
                assert!(reading.messages.contains(message));
                back += 1;
            }
        }
    }
    assert_eq!(covers, 3);
    assert_eq!(back, reading.messages.len());
    assert_eq!(reading.alone + reading.recovered, back);
}

/// A write at only one database is forwarded to the other.
#[test]
fn a_write_at_one_database_reaches_the_other() {
    let mut town = Town::new(20, 60, 2);
    town.post(0, Content::Message(b"at both"));
    let (_, first) = town.write(1, Content::Message(b"at the first"));
    let (_, second) = town.write(2, Content::Message(b"at the second"));
    town.submit(Side::First, &first).unwrap();
    town.submit(Side::Second, &second).unwrap();
    let reading = town.finish().unwrap();
    assert_eq!(reading.size, 3);
}

#[test]
fn late_replayed_and_uninvited_writes_are_rejected_with_specific_errors() {
    let mut town = Town::new(3, 60, 3);
    let (_, mut submission) = town.write(0, Content::Message(b"one"));
    town.submit(Side::First, &submission).unwrap();
    let again = town.receipt(Side::First, &submission).unwrap();
    assert!(again == town.receipt(Side::First, &submission).unwrap(), "the same receipt");
    assert_eq!(town.databases[0].write_count(Epoch(0)), 1, "and one write");
    let (_, second) = town.write(0, Content::Message(b"two"));
    assert_eq!(town.submit(Side::First, &second), Err(SubmissionError::Spent));
    // Another member sends the envelopes as its own.
    submission.ticket = Members::ticket(&key(1), &submission.name(&town.board.fingerprint()));
    assert_eq!(
        town.submit(Side::First, &submission),
        Err(SubmissionError::Envelope(EnvelopeError::Mismatch))
    );
    let (_, mut stranger) = town.write(150, Content::Message(b"who"));
    assert_eq!(
        town.submit(Side::First, &stranger),
        Err(SubmissionError::Admission(AdmissionError))
    );
    stranger.ticket.clear();
    assert_eq!(
        town.submit(Side::First, &stranger),
        Err(SubmissionError::Admission(AdmissionError))
    );
    town.submit(Side::Second, &second).unwrap();
    for member in 2..4 {
        town.post(member, Content::Cover);
    }
    let (_, fourth) = town.write(5, Content::Cover);
    assert_eq!(town.submit(Side::First, &fourth), Err(SubmissionError::Full));
    town.later(30);
    town.turn();
    town.later(31);
    let (_, late) = town.write(6, Content::Cover);
    assert_eq!(town.submit(Side::First, &late), Err(SubmissionError::Late));
    // A write for a past epoch is late; one for a later epoch is early.
    let early = Submission { epoch: Epoch(9), ..late };
    assert_eq!(town.submit(Side::First, &early), Err(SubmissionError::Epoch));
}

/// A full epoch closes early.
#[test]
fn a_full_epoch_closes_early() {
    let mut town = Town::new(3, 60, 4);
    (0..3).for_each(|member| drop(town.post(member, Content::Cover)));
    town.turn();
    assert!(town.transcript().candidates().is_some());
    let (_, late) = town.write(5, Content::Cover);
    assert_eq!(town.submit(Side::First, &late), Err(SubmissionError::Full));
}

/// Two writes hold one key in different envelopes. A party that could resubmit a victim's key would
/// read its row off the difference.
#[test]
fn a_key_in_another_envelope_is_rejected() {
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    let mut town = Town::new(9, 60, 5);
    let view = View::open(&town.board, &town.transcript()).unwrap();
    let write = |ticket: &dyn Fn(&WriteName) -> Vec<u8>, member: u8| {
        // The same randomness gives the same roots.
        let rng = &mut ChaCha20Rng::from_seed([1; 32]);
        let tag = Members::tag_of(&key(member).verifying_key());
        view.write(Content::Cover, tag, ticket, rng).unwrap().1
    };
    let first = write(&|name| Members::ticket(&key(0), name), 0);
    let second = write(&|name| Members::ticket(&key(1), name), 1);
    town.submit(Side::First, &first).unwrap();
    assert_eq!(town.submit(Side::First, &second), Err(SubmissionError::Replayed));
}

/// An envelope with a changed byte does not open. Nor does a valid one for the other database.
#[test]
fn damaged_envelopes_leave_no_trace() {
    let mut town = Town::new(9, 60, 6);
    let (_, good) = town.write(0, Content::Message(b"good"));
    let bytes = postcard::to_allocvec(&good.envelopes[0]).unwrap();
    let unreadable = Err(SubmissionError::Envelope(EnvelopeError::Unreadable));
    for at in (0..bytes.len()).step_by(29) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let Ok(envelope) = postcard::from_bytes(&damaged) else { continue };
        let mut submission = good.clone();
        submission.envelopes[0] = envelope;
        submission.ticket = Members::ticket(&key(0), &submission.name(&town.board.fingerprint()));
        assert_eq!(town.submit(Side::First, &submission), unreadable, "byte {at}");
    }
    let mut swapped = good.clone();
    swapped.envelopes.swap(0, 1);
    swapped.ticket = Members::ticket(&key(0), &swapped.name(&town.board.fingerprint()));
    assert_eq!(town.submit(Side::First, &swapped), unreadable);
    assert!(town.ledgers[0].keys().all(|key| key[8] != b'w'), "nothing is kept");
    town.submit(Side::First, &good).unwrap();
}

/// The quota is checked before any part of a write is opened. If the admission rejects it, no key
/// is expanded or even unsealed.
#[test]
fn nothing_is_opened_before_the_quota_is_checked() {
    struct Never(Cell<u32>);
    impl Admission for Never {
        fn tag(&self, _: Epoch, _: &WriteName, _: &[u8]) -> Result<Tag, AdmissionError> {
            self.0.set(self.0.get() + 1);
            Err(AdmissionError)
        }
        fn digest(&self) -> Digest {
            Digest([0; 32])
        }
    }
    let mut town = Town::new(9, 60, 7);
    let (_, mut submission) = town.write(0, Content::Cover);
    // If it were opened, it would be unreadable.
    submission.envelopes.swap(0, 1);
    let never = Never(Cell::new(0));
    let refused = town.databases[0].handle_submission(submission, town.now, &never).err();
    assert_eq!(refused, Some(SubmissionError::Admission(AdmissionError)));
    assert_eq!(never.0.get(), 1);
    assert!(town.databases[0].next_work().is_none());
}

#[test]
fn too_few_writes_are_not_revealed() {
    let mut town = Town::of(&Configuration { min_writes: 5, ..configuration(9, 30) }, 8);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"alone"))));
    assert_eq!(town.finish(), Err(ReadError::Burnt(BurnReason::TooFew)));
    assert!(town.shares == [None, None]);
    assert!(town.databases[0].next_work().is_none(), "no key was expanded");
    let name = |record: &u8| {
        let of = |key: &&Vec<u8>| key[..8] == [0; 8] && key[8] == *record;
        town.ledgers[0].keys().filter(of).count()
    };
    assert_eq!((name(&b'k'), name(&b'w')), (0, 0), "and all is erased");
}

#[test]
fn secrets_are_deleted_when_the_epoch_ends() {
    let mut town = Town::new(9, 30, 9);
    (0..4).for_each(|member| drop(town.post(member, Content::Cover)));
    town.finish().unwrap();
    for ledger in &town.ledgers[..2] {
        assert!(ledger.keys().all(|key| key[7] == 1 || !b"kw".contains(&key[8])));
    }
}

/// The other database is gone. Nothing is revealed, and the next epoch begins.
#[test]
fn an_epoch_that_is_not_published_in_time_is_burnt() {
    let mut town = Town::new(9, 30, 10);
    (0..4).for_each(|member| drop(town.post(member, Content::Cover)));
    town.later(61);
    let [first, _] = &mut town.databases;
    let mut alone = |now| {
        let mut said = Vec::new();
        while let Some(step) = first.poll(now, &mut town.rng) {
            said.push(step.commit(&mut town.ledgers[0]).unwrap());
        }
        said.len()
    };
    assert_eq!(alone(town.now), 2, "closes, and begins the next");
    town.now.0 += 41 * SECOND;
    assert_eq!(alone(town.now), 1, "burns");
    let by = Party::Database(Side::First);
    let burnt = town.databases[0].transcript(Epoch(0)).unwrap().abort_reason(by);
    assert_eq!(burnt, Some(BurnReason::Late));
}

#[test]
fn a_reader_rejects_other_tables_and_contradictions() {
    let mut town = Town::new(9, 30, 11);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    assert_eq!(town.read(), Err(ReadError::NotPublished));
    town.finish().unwrap();
    let table = town.tables[0].clone().unwrap();
    for at in (0..table.len()).step_by(397) {
        let mut other = table.to_vec();
        other[at] ^= 1;
        assert_eq!(read(&town.board, &town.transcript(), &other), Err(ReadError::OtherTable));
    }
    assert_eq!(read(&town.board, &town.transcript(), &[]), Err(ReadError::OtherTable));
    let mut transcript = Transcript::new(&town.board, Epoch(0));
    for side in Side::BOTH {
        for said in &town.statements[side.index()] {
            // Statements of the next epoch do not belong to this one.
            let _ = transcript.record(Party::Database(side), said);
        }
    }
    assert_eq!(
        read(&town.board, &transcript, &table),
        Err(ReadError::Contradiction),
        "no settlement"
    );
}

#[test]
fn invalid_configurations_are_rejected() {
    let refused = |change: fn(&mut Configuration)| {
        let mut changed = configuration(9, 30);
        change(&mut changed);
        let operator = key(255);
        Board::open(&Signed::new(&changed, &operator), &operator.verifying_key()).err()
    };
    let twice = |c: &mut Configuration| {
        let Servers::Audited(keys) = &mut c.servers else { return };
        keys[2] = keys[0];
    };
    assert_eq!(refused(|_| ()), None);
    assert!(matches!(refused(|c| c.rows = 0), Some(ConfigurationError::Shape(_))));
    assert!(matches!(refused(|c| c.format.max_message = 161), Some(ConfigurationError::Shape(_))));
    assert_eq!(refused(|c| c.schedule.length = Span(0)), Some(ConfigurationError::Schedule));
    assert_eq!(refused(|c| c.schedule.complaints = Span(0)), Some(ConfigurationError::Schedule));
    assert_eq!(
        refused(|c| c.schedule.patience = Span(u64::MAX)),
        Some(ConfigurationError::Schedule)
    );
    assert_eq!(refused(|c| c.min_writes = 1), Some(ConfigurationError::Sets));
    assert_eq!(refused(|c| c.writers = 1_000_001), Some(ConfigurationError::Sets));
    assert_eq!(refused(twice), Some(ConfigurationError::SameServer));
    let signed = Signed::new(&configuration(9, 30), &key(1));
    assert!(matches!(
        Board::open(&signed, &key(2).verifying_key()),
        Err(ConfigurationError::Signature(_))
    ));
    assert!(
        pinned(&configuration(9, 30)).fingerprint() != pinned(&configuration(9, 31)).fingerprint()
    );
}

/// A database restored from an old copy burns what it may have forgotten.
#[test]
fn an_old_copy_reveals_nothing() {
    let mut town = Town::new(9, 30, 12);
    (0..3).for_each(|member| drop(town.post(member, Content::Message(b"before"))));
    let copy = town.ledgers[0].clone();
    (3..5).for_each(|member| drop(town.post(member, Content::Message(b"after"))));
    town.ledgers[0] = copy;
    town.restart(Side::First, StateOrigin::Restored);
    assert!(matches!(town.finish(), Err(ReadError::Burnt(_))));
    assert!(town.shares == [None, None]);
    let before = town.statements[0].len();
    town.restart(Side::First, StateOrigin::Intact);
    assert_eq!(town.statements[0].len(), before, "what is burnt stays burnt");
}

/// With 65,536 rows of 160 bytes, a submission stays below 3.7 KB. 2.2 KB of it are ML-KEM-768's.
#[test]
fn a_submission_is_short() {
    let format = Format { max_message: 144, recovery: false };
    let mut town = Town::of(&Configuration { format, ..configuration(9, 65_536) }, 13);
    assert_eq!(town.board.shape().width(), 160);
    let (_, submission) = town.write(0, Content::Message(b"short"));
    let bytes = postcard::to_allocvec(&submission).unwrap().len();
    assert!((3_200..3_700).contains(&bytes), "{bytes} bytes");
}

/// One database learns that the other has published before it has the other's share.
#[test]
fn a_late_share_is_still_enough() {
    for restarted in [false, true] {
        let mut town = Town::new(9, 40, 14);
        (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
        town.withheld = Some(Side::Second);
        assert_eq!(town.finish(), Err(ReadError::NotPublished));
        assert!(town.transcript().published_table(Side::First).is_some());
        if restarted {
            town.restart(Side::Second, StateOrigin::Intact);
        }
        town.withheld = None;
        town.turn();
        assert_eq!(town.read().unwrap().size, 4);
        assert!(town.tables[0].is_some() && town.tables[0] == town.tables[1]);
        for ledger in &town.ledgers[..2] {
            let shares = ledger.keys().filter(|key| key[8] == b'm').count();
            assert_eq!(shares, 0, "the second database to publish deletes its share too");
        }
    }
}

/// Both are bound. One sends its share, receives none, and reports whose share did not arrive.
#[test]
fn a_database_that_withholds_its_share_is_reported() {
    let mut town = Town::new(9, 40, 17);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.withheld = Some(Side::First);
    assert_eq!(town.finish(), Err(ReadError::NotPublished));
    assert!(town.transcript().published_table(Side::Second).is_some(), "it has read the table");
    town.later(60);
    town.turn();
    let why = BurnReason::Withheld(Party::Database(Side::Second));
    assert_eq!(town.read(), Err(ReadError::Burnt(why)));
}

/// One database closes in the epoch's first second. The other continues, and later writes are in
/// the set.
#[test]
fn an_early_close_does_not_shorten_the_epoch() {
    let mut town = Town::new(9, 60, 15);
    town.post(0, Content::Message(b"the victim's"));
    town.post(1, Content::Cover);
    // The second database's clock is a minute ahead.
    town.ahead(Side::Second, 60);
    assert!(town.transcript().closing_list(Side::Second).is_some(), "it has closed");
    town.turn();
    assert!(town.databases[0].open_epoch(town.now).is_some(), "the first one still takes writes");
    for member in 2..6 {
        let (_, submission) = town.write(member, Content::Cover);
        town.submit(Side::First, &submission).unwrap();
    }
    assert_eq!(town.finish().unwrap().size, 6);
}

/// A database closes early and accepts nothing afterwards, so the set would be the victim and its
/// own members. The other database reveals nothing.
#[test]
fn a_crowd_that_one_database_chose_is_not_revealed() {
    let mut town = Town::new(9, 60, 16);
    town.post(0, Content::Message(b"the victim's"));
    town.post(1, Content::Cover);
    for member in 2..6 {
        let (_, submission) = town.write(member, Content::Cover);
        town.submit(Side::First, &submission).unwrap();
    }
    town.deaf = Some(Side::Second);
    town.later(31);
    town.later(30);
    town.turn();
    town.later(16);
    town.turn();
    town.later(11);
    town.turn();
    let second = Party::Database(Side::Second);
    let why = town.transcript().abort_reason(Party::Database(Side::First));
    assert_eq!(why, Some(BurnReason::Thinned(second)));
    assert!(town.shares == [None, None]);
    assert!(town.databases[0].next_work().is_none(), "no key was expanded");
}

/// Both databases publish a table that one of them has corrupted. Readers see a flag.
#[test]
fn a_corrupted_table_is_flagged() {
    let mut town = Town::new(9, 60, 22);
    (0..6).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town.turn();
    town.later(11);
    let mut corrupted = vec![0x5a; town.board.shape().bytes()];
    corrupted[..town.board.shape().width()].fill(0);
    town.turn_with(&mut |_, _, body| {
        if let Body::Publish { set, table } = body {
            *table = Transcript::table_digest(set, &corrupted);
        }
    });
    let reading = read(&town.board, &town.transcript(), &corrupted).unwrap();
    assert_eq!((reading.flagged, reading.messages.len(), reading.illegible), (true, 0, 59));
}
