//! The crowd around one victim, when all servers but one collude to choose it.

use crate::coalition::ring::{NOW, Ring, configuration, key, party, restated};
use alpheus_anonymous_board::EnvelopeError;
use alpheus_anonymous_board::admission::{AdmissionError, Members};
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Body, BurnReason, Submission};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;

/// The honest server.
const HONEST: usize = 0;
/// A member who colludes with the others.
const THEIRS: usize = 90;

/// The honest server's final reason, and the size of what was revealed.
fn ended(ring: &mut Ring) -> (Option<BurnReason>, Option<u32>) {
    for _ in 0..4 {
        ring.turn();
        ring.later(11);
    }
    let heard = ring.servers[HONEST].transcript(NOW).unwrap();
    (heard.abort_reason(party(HONEST)), ring.read().ok().map(|reading| reading.size))
}

/// The others' Begin arrives after the honest server has closed. Until then it could accept
/// nothing, and then the victim and the others' own members are forwarded to it.
#[test]
fn a_withheld_begin_chooses_no_crowd() {
    let mut ring = Ring::started(&configuration(3, 60), 80);
    ring.muted = Some((2, HONEST));
    ring.turn();
    let writes: Vec<Submission> =
        (0..8).map(|member| ring.write(member, Content::Cover).1).collect();
    for write in &writes {
        assert_eq!(ring.submit(HONEST, write).err(), Some(SubmissionError::Beginning));
    }
    let (_, theirs) = ring.write(THEIRS, Content::Cover);
    for write in [&writes[0], &theirs] {
        [1, 2].into_iter().for_each(|i| drop(ring.submit(i, write).unwrap()));
    }
    ring.turn();
    // It counts what it rejected even after a restart.
    ring.restart(HONEST, StateOrigin::Intact);
    ring.later(61);
    ring.turn();
    ring.muted = None;
    assert_eq!(ended(&mut ring), (Some(BurnReason::Dwindled), None));
}

/// A Begin that is merely late does no harm: the same write is accepted or forwarded, and counts
/// once.
#[test]
fn a_late_begin_burns_nothing() {
    for again in [true, false] {
        let mut ring = Ring::started(&configuration(3, 60), 81);
        ring.muted = Some((2, HONEST));
        ring.turn();
        let writes: Vec<Submission> =
            (0..4).map(|member| ring.write(member, Content::Cover).1).collect();
        for write in &writes {
            assert_eq!(ring.submit(HONEST, write).err(), Some(SubmissionError::Beginning));
            [1, 2].into_iter().for_each(|i| drop(ring.submit(i, write).unwrap()));
        }
        ring.muted = None;
        ring.turn();
        for write in writes.iter().filter(|_| again) {
            assert!(ring.submit(HONEST, write).is_ok(), "no quota is spent by a refusal");
        }
        ring.later(61);
        assert_eq!(ended(&mut ring), (None, Some(4)));
        let refused = |key: &&Vec<u8>| key.get(8) == Some(&b'q');
        assert_eq!(ring.ledgers[HONEST].keys().find(refused), None, "and none is kept");
    }
}

/// All writers get a second Begin, except the victim and the others' own members.
#[test]
fn two_begins_choose_no_crowd() {
    let mut ring = Ring::new(3, 60, 82);
    let mut second = Transcript::new(&ring.board, NOW);
    for i in 0..3 {
        let said = restated(&ring.board, i, ring.statements[i][0].clone(), |body| {
            if let (Body::Begin { agreement, .. }, 2) = (body, i) {
                let seed = Secret::from_bytes([9; 32]);
                *agreement = alpheus_crypto::agree::AgreementKey::from_seed(&seed).public();
            }
        });
        second.record(party(i), &said).unwrap();
    }
    let view = View::open(&ring.board, &second).unwrap();
    for member in 1..8 {
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        let ticket = |name: &_| Members::ticket(&key, name);
        let (_, write) = view.write(Content::Cover, tag, ticket, &mut ring.rng).unwrap();
        let unreadable = SubmissionError::Envelope(EnvelopeError::Unreadable);
        // Once or twice, a quota counts once.
        for _ in 0..2 {
            assert_eq!(ring.submit(HONEST, &write).err(), Some(unreadable));
        }
    }
    ring.post(0, Content::Cover);
    ring.post(THEIRS, Content::Cover);
    ring.later(61);
    assert_eq!(ended(&mut ring), (Some(BurnReason::Dwindled), None));
}

/// Writes of the others' own members, sent to the others alone and forwarded after the honest
/// server has closed, do not make up for those that it closed with.
#[test]
fn writes_forwarded_later_are_no_crowd() {
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
    assert_eq!(ended(&mut ring), (Some(BurnReason::Dwindled), None));
    assert_eq!(ring.transcript().candidates().map(|c| c.writes.len()), Some(6));
}

/// The first server asked forwards the write with a corrupted ticket; then the next is asked. A
/// write that nobody forwards correctly is given up.
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
        let taken =
            ring.servers[HONEST].handle_forwarded(submission.clone(), party(from), &ring.members);
        let missing = ring.servers[HONEST].missing_writes(NOW);
        (taken.map(|step| ring.commit(HONEST, step)).err(), missing)
    };
    let refused = Some(SubmissionError::Admission(AdmissionError));
    assert_eq!(hand_on(&mut ring, 1, &ruined), (refused, vec![(name, vec![party(2)])]));
    // Sending it again changes nothing.
    assert_eq!(hand_on(&mut ring, 1, &ruined), (refused, vec![(name, vec![party(2)])]));
    ring.restart(HONEST, StateOrigin::Intact);
    hand_on(&mut ring, 1, &ruined);
    assert_eq!(hand_on(&mut ring, 2, &ruined), (refused, vec![]));
    assert_eq!(hand_on(&mut ring, 2, &good).0, Some(SubmissionError::NotListed));
    ring.restart(HONEST, StateOrigin::Intact);
    hand_on(&mut ring, 1, &ruined);
    assert_eq!(hand_on(&mut ring, 2, &good), (None, vec![]));
}
