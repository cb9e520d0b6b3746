//! Whole epochs, and what is refused.

use crate::ring::{NOW, Ring, SECOND, configuration, key, party, pinned, server};
use alpheus_anonymous_board::BadEnvelope;
use alpheus_anonymous_board::admission::{Admission, Members, NotAdmitted};
use alpheus_anonymous_board::configuration::{
    BadConfiguration, Configuration, Epoch, Party, Pinned, Servers,
};
use alpheus_anonymous_board::database::Database;
use alpheus_anonymous_board::error::{NotRestored, Refused};
use alpheus_anonymous_board::messages::{Submission, Tag, Why, WriteName};
use alpheus_anonymous_board::reader::NotRead;
use alpheus_anonymous_board::writer::{Content, Fate};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Log;
use alpheus_crypto::signed::Signed;
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
            if matches!(
                written.became(&ring.transcript(), &table),
                Fate::Delivered | Fate::Recovered
            ) {
                assert!(reading.messages.contains(&text.as_bytes().to_vec()));
            }
        }
        assert!(reading.messages.len() >= 3);
    }
}

/// A write that only some servers got is handed on; one that none lists is refused.
#[test]
fn writes_are_handed_on_and_none_but_listed_ones() {
    let mut ring = Ring::new(3, 60, 2);
    (0..3).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    let (_, at_one) = ring.write(3, Content::Message(b"only at the last"));
    ring.submit(2, &at_one).unwrap();
    let (_, nowhere) = ring.write(4, Content::Message(b"nowhere"));
    ring.later(61);
    let early = ring.servers[0].forwarded(party(2), nowhere.clone(), &ring.members).err();
    assert_eq!(early, Some(Refused::NotListed));
    ring.turn();
    assert_eq!(ring.read().unwrap().size, 4);
}

/// What is late, replayed, spent, another's, or not admitted is refused by name, and what
/// was refused is not kept.
#[test]
fn bad_writes_are_refused_by_name() {
    let mut ring = Ring::new(3, 60, 3);
    let (_, first) = ring.post(0, Content::Message(b"first"));
    assert!(ring.submit(1, &first).is_ok(), "the same write gets its receipt again");
    let before = ring.ledgers[0].clone();
    let (_, second) = ring.write(0, Content::Message(b"second"));
    assert_eq!(ring.submit(0, &second).err(), Some(Refused::Spent));
    let (_, mut other) = ring.write(1, Content::Message(b"other"));
    let envelope = |error| Some(Refused::Envelope(error));
    let good = other.clone();
    let resigned = |ring: &mut Ring, submission: &mut Submission| {
        let name = submission.name(&ring.board.fingerprint());
        submission.ticket = Members::ticket(&key(1), &name);
        ring.submit(0, submission).err()
    };
    other.ticket.clear();
    assert_eq!(ring.submit(0, &other).err(), Some(Refused::NotAdmitted(NotAdmitted)));
    other = good.clone();
    other.envelopes.swap(0, 1);
    assert_eq!(ring.submit(0, &other).err(), Some(Refused::NotAdmitted(NotAdmitted)));
    assert_eq!(resigned(&mut ring, &mut other), envelope(BadEnvelope::Unreadable));
    other = good.clone();
    other.envelopes.pop();
    assert_eq!(resigned(&mut ring, &mut other), envelope(BadEnvelope::Envelopes));
    other = good.clone();
    other.common = None;
    assert_eq!(resigned(&mut ring, &mut other), envelope(BadEnvelope::Envelopes));
    // Whatever goes with the envelopes is bound to them.
    for spoil in [
        (|s| s.common.as_mut().unwrap().word[0] ^= 1) as fn(&mut Submission),
        |s| s.common.as_mut().unwrap().nonce[0] ^= 1,
        |s| s.common.as_mut().unwrap().keys.swap(1, 2),
        |s| s.common.as_mut().unwrap().keys[0].0[0] ^= 1,
        |s| s.common.as_mut().unwrap().word.truncate(16),
    ] {
        other = good.clone();
        spoil(&mut other);
        assert_eq!(resigned(&mut ring, &mut other), envelope(BadEnvelope::Unreadable));
    }
    // Another member sends it as its own.
    other = good.clone();
    other.ticket = Members::ticket(&key(2), &other.name(&ring.board.fingerprint()));
    assert_eq!(ring.submit(0, &other).err(), envelope(BadEnvelope::Unreadable));
    other = Submission { epoch: Epoch(1), ..good.clone() };
    assert_eq!(ring.submit(0, &other).err(), Some(Refused::Epoch));
    assert!(ring.ledgers[0] == before, "what was refused leaves no trace");
    ring.later(61);
    assert_eq!(ring.submit(0, &good).err(), Some(Refused::Late));
}

/// Sees whether anything is opened before the quota is looked at.
struct Counting<'a> {
    members: &'a Members,
    asked: Cell<usize>,
}

impl Admission for Counting<'_> {
    fn tag(&self, epoch: Epoch, write: &WriteName, ticket: &[u8]) -> Result<Tag, NotAdmitted> {
        self.asked.set(self.asked.get() + 1);
        self.members.tag(epoch, write, ticket)
    }

    fn digest(&self) -> Digest {
        self.members.digest()
    }
}

/// A flood by one member costs a look at its quota each, and no key is kept or expanded; a
/// flood by strangers not even that.
#[test]
fn a_flood_is_turned_away_at_the_door() {
    let mut ring = Ring::new(3, 60, 4);
    let (now, flood) = (ring.now, 40);
    ring.post(0, Content::Cover);
    let submissions: Vec<_> = (0..flood).map(|_| ring.write(0, Content::Cover).1).collect();
    let admission = Counting { members: &ring.members, asked: Cell::new(0) };
    for mut submission in submissions {
        // Envelopes that nobody could open: were they opened first, the refusal were another.
        submission.envelopes.swap(0, 1);
        let name = submission.name(&ring.board.fingerprint());
        submission.ticket = Members::ticket(&key(0), &name);
        let refused = ring.servers[0].submit(now, submission.clone(), &admission).err();
        assert_eq!(refused, Some(Refused::Spent));
        submission.ticket = Members::ticket(&key(150), &name);
        let refused = ring.servers[0].submit(now, submission, &admission).err();
        assert_eq!(refused, Some(Refused::NotAdmitted(NotAdmitted)));
    }
    assert_eq!(admission.asked.get(), 2 * flood);
    assert_eq!(ring.servers[0].writes(NOW), 1);
    assert!(ring.servers[0].work().is_none(), "nothing is computed before the epoch closes");
}

#[test]
fn too_few_writes_are_not_revealed() {
    let mut ring = Ring::of(&Configuration { fewest: 5, ..configuration(3, 60) }, 5);
    (0..4).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    let burnt = ring.finish().err();
    assert!(matches!(burnt, Some(NotRead::Burnt(Why::TooFew | Why::Told(_)))), "{burnt:?}");
    assert!(ring.shares.iter().all(Option::is_none), "no share has left");
}

/// One share that does not come burns the epoch for the others, who may have been read.
#[test]
fn a_share_that_does_not_come_burns_the_epoch() {
    let mut ring = Ring::new(3, 60, 6);
    (0..4).for_each(|i| drop(ring.post(i, Content::Message(b"hello"))));
    ring.withheld = Some(2);
    ring.later(61);
    ring.turn();
    assert!(ring.tables[..2].iter().all(Option::is_none), "nobody else has a table");
    ring.later(60);
    ring.turn();
    assert_eq!(ring.transcript().aborted(party(0)), Some(Why::Unshared));
    assert!(ring.read().is_err());
}

#[test]
fn a_configuration_is_checked() {
    let refused = |servers: Vec<usize>| {
        let keys = servers.into_iter().map(|i| server(i).verifying_key()).collect();
        let bad = Configuration { servers: Servers::Coalition(keys), ..configuration(3, 60) };
        Pinned::open(&Signed::new(&bad, &key(1)), &key(1).verifying_key()).err()
    };
    assert_eq!(refused(vec![0, 1, 2]), None);
    assert_eq!(refused(vec![0, 1]), Some(BadConfiguration::Servers));
    assert_eq!(refused((0..7).collect()), Some(BadConfiguration::Servers));
    assert_eq!(refused(vec![0, 1, 1]), Some(BadConfiguration::SameServer));
    let board = pinned(&configuration(3, 60));
    assert!(board.key(Party::Auditor).is_none() && board.key(party(3)).is_none());
    let (now, own) = (alpheus_anonymous_board::configuration::Time(SECOND), server(0));
    let other = Database::restore(&board, party(1), own, Log::New, [], now);
    assert_eq!(other.err(), Some(NotRestored::OtherKey));
    let auditor = Database::restore(&board, Party::Auditor, server(2), Log::New, [], now);
    assert_eq!(auditor.err(), Some(NotRestored::OtherKey));
}
