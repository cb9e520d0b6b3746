//! Whole epochs, and what is rejected.

use crate::coalition::ring::{NOW, Ring, SECOND, configuration, key, party, pinned, server};
use alpheus_anonymous_board::EnvelopeError;
use alpheus_anonymous_board::admission::{Admission, AdmissionError, Members};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, ConfigurationError, Epoch, Party, Servers,
};
use alpheus_anonymous_board::database::Database;
use alpheus_anonymous_board::error::{RestoreError, SubmissionError};
use alpheus_anonymous_board::messages::{BurnReason, Submission, Tag, WriteName};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::signed_message::Signed;
use std::cell::Cell;

#[test]
fn everybody_reads_what_was_written() {
    for servers in 3..=6 {
        let mut ring = Ring::new(servers, 60, 1);
        let texts: Vec<String> = (0..5).map(|i| format!("message {i}")).collect();
        let written: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| ring.post(i, Content::Message(text.as_bytes())).0)
            .collect();
        ring.post(50, Content::Cover);
        let reading = ring.finish().unwrap();
        assert_eq!((reading.size, reading.flagged), (6, false));
        let table = ring.tables[0].clone().unwrap();
        assert!(ring.tables.iter().all(|t| t.as_ref() == Some(&table)), "all have one table");
        for (text, written) in texts.iter().zip(&written) {
            if matches!(written.fate(&ring.transcript(), &table), Fate::Delivered | Fate::Recovered)
            {
                assert!(reading.messages.contains(&text.as_bytes().to_vec()));
            }
        }
        assert!(reading.messages.len() >= 3);
    }
}

/// A write at only some servers is forwarded; one that no server lists is rejected.
#[test]
fn only_listed_writes_are_forwarded() {
    let mut ring = Ring::new(3, 60, 2);
    (0..3).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    let (_, at_one) = ring.write(3, Content::Message(b"only at the last"));
    ring.submit(2, &at_one).unwrap();
    let (_, nowhere) = ring.write(4, Content::Message(b"nowhere"));
    ring.later(61);
    let early = ring.servers[0].handle_forwarded(nowhere.clone(), party(2), &ring.members).err();
    assert_eq!(early, Some(SubmissionError::NotListed));
    ring.turn();
    assert_eq!(ring.read().unwrap().size, 4);
}

/// Writes that are late, replayed, spent, another's or not admitted are rejected with specific
/// errors and not kept.
#[test]
fn bad_writes_are_rejected_with_specific_errors() {
    let mut ring = Ring::new(3, 60, 3);
    let (_, first) = ring.post(0, Content::Message(b"first"));
    assert!(ring.submit(1, &first).is_ok(), "the same write gets its receipt again");
    let before = ring.ledgers[0].clone();
    let (_, second) = ring.write(0, Content::Message(b"second"));
    assert_eq!(ring.submit(0, &second).err(), Some(SubmissionError::Spent));
    let (_, mut other) = ring.write(1, Content::Message(b"other"));
    let envelope = |error| Some(SubmissionError::Envelope(error));
    let good = other.clone();
    let resigned = |ring: &mut Ring, submission: &mut Submission| {
        let name = submission.name(&ring.board.fingerprint());
        submission.ticket = Members::ticket(&key(1), &name);
        ring.submit(0, submission).err()
    };
    other.ticket.clear();
    assert_eq!(ring.submit(0, &other).err(), Some(SubmissionError::Admission(AdmissionError)));
    other = good.clone();
    other.envelopes.swap(0, 1);
    assert_eq!(ring.submit(0, &other).err(), Some(SubmissionError::Admission(AdmissionError)));
    assert_eq!(resigned(&mut ring, &mut other), envelope(EnvelopeError::Unreadable));
    other = good.clone();
    other.envelopes.pop();
    assert_eq!(resigned(&mut ring, &mut other), envelope(EnvelopeError::Envelopes));
    other = good.clone();
    other.common = None;
    assert_eq!(resigned(&mut ring, &mut other), envelope(EnvelopeError::Envelopes));
    // The common part is bound to the envelopes.
    for corrupt in [
        (|s| s.common.as_mut().unwrap().word[0] ^= 1) as fn(&mut Submission),
        |s| s.common.as_mut().unwrap().nonce[0] ^= 1,
        |s| s.common.as_mut().unwrap().keys.swap(1, 2),
        |s| s.common.as_mut().unwrap().keys[0].0[0] ^= 1,
        |s| s.common.as_mut().unwrap().word.truncate(16),
    ] {
        other = good.clone();
        corrupt(&mut other);
        assert_eq!(resigned(&mut ring, &mut other), envelope(EnvelopeError::Unreadable));
    }
    // Another member sends it as its own.
    other = good.clone();
    other.ticket = Members::ticket(&key(2), &other.name(&ring.board.fingerprint()));
    assert_eq!(ring.submit(0, &other).err(), envelope(EnvelopeError::Unreadable));
    other = Submission { epoch: Epoch(1), ..good.clone() };
    assert_eq!(ring.submit(0, &other).err(), Some(SubmissionError::Epoch));
    assert!(ring.ledgers[0] == before, "what was refused leaves no trace");
    ring.later(61);
    assert_eq!(ring.submit(0, &good).err(), Some(SubmissionError::Late));
}

/// Counts the checks of quotas.
struct QuotaCounter<'a> {
    members: &'a Members,
    asked: Cell<usize>,
}

impl Admission for QuotaCounter<'_> {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, AdmissionError> {
        self.asked.set(self.asked.get() + 1);
        self.members.tag(epoch, write, ticket)
    }

    fn digest(&self) -> Digest {
        self.members.digest()
    }
}

/// Each write of a member's flood costs one quota check, and no key is kept or expanded. Strangers
/// do not even cost that.
#[test]
fn a_flood_costs_quota_checks_only() {
    let mut ring = Ring::new(3, 60, 4);
    let (now, flood) = (ring.now, 40);
    ring.post(0, Content::Cover);
    let submissions: Vec<_> = (0..flood).map(|_| ring.write(0, Content::Cover).1).collect();
    let admission = QuotaCounter { members: &ring.members, asked: Cell::new(0) };
    for mut submission in submissions {
        // Nobody could open these envelopes. If they were opened first, the error would differ.
        submission.envelopes.swap(0, 1);
        let name = submission.name(&ring.board.fingerprint());
        submission.ticket = Members::ticket(&key(0), &name);
        let refused = ring.servers[0].handle_submission(submission.clone(), now, &admission).err();
        assert_eq!(refused, Some(SubmissionError::Spent));
        submission.ticket = Members::ticket(&key(150), &name);
        let refused = ring.servers[0].handle_submission(submission, now, &admission).err();
        assert_eq!(refused, Some(SubmissionError::Admission(AdmissionError)));
    }
    assert_eq!(admission.asked.get(), 2 * flood);
    assert_eq!(ring.servers[0].write_count(NOW), 1);
    assert!(ring.servers[0].next_work().is_none(), "nothing is computed before the epoch closes");
}

#[test]
fn too_few_writes_are_not_revealed() {
    let mut ring = Ring::of(&Configuration { min_writes: 5, ..configuration(3, 60) }, 5);
    (0..4).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    let burnt = ring.finish().err();
    assert!(
        matches!(burnt, Some(ReadError::Burnt(BurnReason::TooFew | BurnReason::Reported(_)))),
        "{burnt:?}"
    );
    assert!(ring.shares.iter().all(Option::is_none), "no share has left");
}

/// A missing share burns the epoch for the others, who may have been read.
#[test]
fn a_missing_share_burns_the_epoch() {
    let mut ring = Ring::new(3, 60, 6);
    (0..4).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    ring.withheld = Some(2);
    ring.later(61);
    ring.turn();
    assert!(ring.tables[..2].iter().all(Option::is_none), "nobody else has a table");
    ring.later(60);
    ring.turn();
    assert_eq!(ring.transcript().abort_reason(party(0)), Some(BurnReason::Unshared));
    assert!(ring.read().is_err());
}

#[test]
fn a_configuration_is_checked() {
    let refused = |servers: Vec<usize>| {
        let keys = servers.into_iter().map(|i| server(i).verifying_key()).collect();
        let bad = Configuration { servers: Servers::Coalition(keys), ..configuration(3, 60) };
        Board::open(&Signed::new(&bad, &key(1)), &key(1).verifying_key()).err()
    };
    assert_eq!(refused(vec![0, 1, 2]), None);
    assert_eq!(refused(vec![0, 1]), Some(ConfigurationError::Servers));
    assert_eq!(refused((0..7).collect()), Some(ConfigurationError::Servers));
    assert_eq!(refused(vec![0, 1, 1]), Some(ConfigurationError::SameServer));
    let board = pinned(&configuration(3, 60));
    assert!(board.key(Party::Auditor).is_none() && board.key(party(3)).is_none());
    let (now, own) = (alpheus_time::Timestamp(SECOND), server(0));
    let other = Database::restore(&board, party(1), own, StateOrigin::New, [], now);
    assert_eq!(other.err(), Some(RestoreError::OtherKey));
    let auditor = Database::restore(&board, Party::Auditor, server(2), StateOrigin::New, [], now);
    assert_eq!(auditor.err(), Some(RestoreError::OtherKey));
}
