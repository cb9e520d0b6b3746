//! Whose writes one hides among: all servers but one work together for a crowd of their own
//! choice around one victim.

use crate::ring::{NOW, Ring, configuration, key, party, retold};
use alpheus_anonymous_board::BadEnvelope;
use alpheus_anonymous_board::admission::{Members, NotAdmitted};
use alpheus_anonymous_board::error::Refused;
use alpheus_anonymous_board::messages::{Submission, What, Why};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::ledger::Log;
use alpheus_crypto::secret::Secret;

/// The honest one.
const HONEST: usize = 0;
/// A member of the others' own.
const THEIRS: usize = 90;

/// What the honest server says at the end, and how much was revealed.
fn ended(ring: &mut Ring) -> (Option<Why>, Option<u32>) {
    for _ in 0..4 {
        ring.turn();
        ring.later(11);
    }
    let heard = ring.servers[HONEST].transcript(NOW).unwrap();
    (heard.aborted(party(HONEST)), ring.read().ok().map(|reading| reading.size))
}

/// The others' Begin comes once the honest server has closed: it could take nothing until
/// then, and is handed the victim and the others' own members.
#[test]
fn a_begin_that_is_kept_back_chooses_no_crowd() {
    let mut ring = Ring::started(&configuration(3, 60), 80);
    ring.unheard = Some((2, HONEST));
    ring.turn();
    let writes: Vec<Submission> =
        (0..8).map(|member| ring.write(member, Content::Cover).1).collect();
    for write in &writes {
        assert_eq!(ring.submit(HONEST, write).err(), Some(Refused::Beginning));
    }
    let (_, theirs) = ring.write(THEIRS, Content::Cover);
    for write in [&writes[0], &theirs] {
        [1, 2].into_iter().for_each(|i| drop(ring.submit(i, write).unwrap()));
    }
    ring.turn();
    // It counts what it refused though it was killed in between.
    ring.restart(HONEST, Log::Whole);
    ring.later(61);
    ring.turn();
    ring.unheard = None;
    assert_eq!(ended(&mut ring), (Some(Why::Dwindled), None));
}

/// Whose Begin is only late does no harm: the same write is taken, or handed on, and counts
/// once.
#[test]
fn a_begin_that_is_late_burns_nothing() {
    for again in [true, false] {
        let mut ring = Ring::started(&configuration(3, 60), 81);
        ring.unheard = Some((2, HONEST));
        ring.turn();
        let writes: Vec<Submission> =
            (0..4).map(|member| ring.write(member, Content::Cover).1).collect();
        for write in &writes {
            assert_eq!(ring.submit(HONEST, write).err(), Some(Refused::Beginning));
            [1, 2].into_iter().for_each(|i| drop(ring.submit(i, write).unwrap()));
        }
        ring.unheard = None;
        ring.turn();
        for write in writes.iter().filter(|_| again) {
            assert!(ring.submit(HONEST, write).is_ok(), "no quota is spent by a refusal");
        }
        ring.later(61);
        assert_eq!(ended(&mut ring), (None, Some(4)));
        let refused = |key: &&Vec<u8>| key.get(8) == Some(&b'r');
        assert_eq!(ring.ledgers[HONEST].keys().find(refused), None, "and none is kept");
    }
}

/// A second Begin for all writers but the victim and the others' own.
#[test]
fn two_begins_choose_no_crowd() {
    let mut ring = Ring::new(3, 60, 82);
    let mut second = Transcript::new(&ring.board, NOW);
    for i in 0..3 {
        let said = retold(&ring.board, i, ring.said[i][0].clone(), |what| {
            if let (What::Begin { agreement, .. }, 2) = (what, i) {
                let seed = Secret::from_bytes([9; 32]);
                *agreement = alpheus_crypto::agree::AgreementKey::from_seed(&seed).public();
            }
        });
        second.hear(party(i), &said).unwrap();
    }
    let view = View::open(&ring.board, &second).unwrap();
    for member in 1..8 {
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        let ticket = |name: &_| Members::ticket(&key, name);
        let (_, write) = view.write(Content::Cover, tag, ticket, &mut ring.rng).unwrap();
        let unreadable = Refused::Envelope(BadEnvelope::Unreadable);
        // Once or twice, a quota counts once.
        for _ in 0..2 {
            assert_eq!(ring.submit(HONEST, &write).err(), Some(unreadable));
        }
    }
    ring.post(0, Content::Cover);
    ring.post(THEIRS, Content::Cover);
    ring.later(61);
    assert_eq!(ended(&mut ring), (Some(Why::Dwindled), None));
}

/// What the others' own members sent to the others alone, and is handed on after the
/// honest server has closed, makes up for none of those that it closed with.
#[test]
fn what_is_handed_on_later_is_no_crowd() {
    let mut ring = Ring::new(3, 60, 83);
    ring.idle = vec![1, 2];
    ring.post(0, Content::Cover);
    for member in 1..6 {
        let (_, write) = ring.write(member, Content::Cover);
        ring.submit(HONEST, &write).unwrap();
    }
    for member in THEIRS..THEIRS + 5 {
        let (_, write) = ring.write(member, Content::Cover);
        [1, 2].into_iter().for_each(|i| drop(ring.submit(i, &write).unwrap()));
    }
    ring.later(61);
    assert_eq!(ended(&mut ring), (Some(Why::Dwindled), None));
    assert_eq!(ring.transcript().candidates().map(|c| c.writes.len()), Some(6));
}

/// Whoever is asked first hands on the write with a ruined ticket: the next is asked. A write
/// that nobody hands on well is given up.
#[test]
fn one_bad_answer_gives_up_no_write() {
    let mut ring = Ring::new(3, 60, 84);
    let (_, good) = ring.write(0, Content::Cover);
    [1, 2].into_iter().for_each(|i| drop(ring.submit(i, &good).unwrap()));
    ring.idle = vec![HONEST];
    ring.later(61);
    ring.turn();
    let name = good.name(&ring.board.fingerprint());
    let ruined = Submission { ticket: Vec::new(), ..good.clone() };
    let hand_on = |ring: &mut Ring, from, submission: &Submission| {
        let taken = ring.servers[HONEST].forwarded(party(from), submission.clone(), &ring.members);
        let missing = ring.servers[HONEST].missing(NOW);
        (taken.map(|step| ring.commit(HONEST, step)).err(), missing)
    };
    let refused = Some(Refused::NotAdmitted(NotAdmitted));
    assert_eq!(hand_on(&mut ring, 1, &ruined), (refused, vec![(name, vec![party(2)])]));
    // The same one again is asked by nobody, and changes nothing.
    assert_eq!(hand_on(&mut ring, 1, &ruined), (refused, vec![(name, vec![party(2)])]));
    ring.restart(HONEST, Log::Whole);
    hand_on(&mut ring, 1, &ruined);
    assert_eq!(hand_on(&mut ring, 2, &ruined), (refused, vec![]));
    assert_eq!(hand_on(&mut ring, 2, &good).0, Some(Refused::NotListed));
    ring.restart(HONEST, Log::Whole);
    hand_on(&mut ring, 1, &ruined);
    assert_eq!(hand_on(&mut ring, 2, &good), (None, vec![]));
}
