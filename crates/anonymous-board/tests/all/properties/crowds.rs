//! The crowd around one victim in mode 1, when one database chooses it.

use crate::properties::malice::LIAR;
use crate::properties::town::{Town, key, server};
use alpheus_anonymous_board::admission::{AdmissionError, Members};
use alpheus_anonymous_board::auditor::Verdict;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{
    Body, BurnReason, Fault, WriteDigest, WriteName, knock_name,
};
use alpheus_anonymous_board::reader::read;
use alpheus_anonymous_board::transcript::{Crowd, Transcript};
use alpheus_anonymous_board::writer::{Content, PendingWrite, WriteStatus};
use alpheus_crypto::signed_message::Signed;

const HONEST: Party = Party::Database(Side::First);
/// A member who works with the liar.
const THEIRS: u8 = 90;

/// Commits to and opens wrong digests of these writes.
fn fail(victims: &[WriteName], honest: &[WriteDigest], transcript: &Transcript, body: &mut Body) {
    let Some(candidates) = transcript.candidates() else { return };
    let mut changed = honest.to_vec();
    for victim in victims {
        let at = candidates.writes.binary_search(victim).unwrap();
        changed[at].digest.0[0] ^= 1;
    }
    match body {
        Body::Commit { digests, .. } => {
            let named = &candidates.digest;
            *digests = transcript.digest_commitment(Side::Second, named, &changed, &[9; 32]);
        }
        Body::Open { digests, nonce } => {
            *digests = changed;
            *nonce = [9; 32];
        }
        _ => {}
    }
}

/// Eight honest writes and three of the liar's own.
fn stage() -> (Town, Vec<(PendingWrite, alpheus_anonymous_board::messages::Submission)>) {
    let mut town = Town::new(20, 60, 90);
    let posted = (0..8).map(|member| {
        let (written, submission, _) = town.post(member, Content::Cover);
        (written, submission)
    });
    let posted = posted.collect();
    (THEIRS..THEIRS + 3).for_each(|member| drop(town.post(member, Content::Cover)));
    (town, posted)
}

/// After the audit the liar opens wrong digests for all honest writes but the victim's. The honest
/// database's crowd would be one of eight, so it ends the epoch. Nothing is revealed, and each
/// writer can still show the auditor who is to blame.
#[test]
fn a_failed_audit_of_the_others_chooses_no_crowd() {
    let (mut town, posted) = stage();
    let honest = crate::properties::malice::honest_digests(stage().0);
    let others: Vec<WriteName> = posted[1..].iter().map(|(written, _)| written.name()).collect();
    town.later(61);
    town.believes_lies = true;
    for _ in 0..3 {
        town.turn_with(&mut |by, transcript, body| {
            if by == LIAR {
                fail(&others, &honest, transcript, body);
            }
        });
        town.later(11);
    }
    let said = town.transcript();
    assert_eq!(said.set().unwrap().unwrap().accepted.len(), 4, "the victim and the liar's own");
    assert_eq!(said.abort_reason(HONEST), Some(BurnReason::Dwindled));
    assert!(town.shares == [None, None] && town.read().is_err());
    let (written, submission) = &posted[3];
    let receipts = Side::BOTH.map(|side| town.receipt(side, submission).ok());
    let received = written.handle_some_receipts(receipts).unwrap();
    let WriteStatus::Complain(grounds) = written.status(&said, &received) else {
        panic!("the writer sees who is to blame");
    };
    let verdict = town.complain(&written.complaint(submission, *grounds));
    assert_eq!(verdict, Verdict::Upheld(LIAR, Fault::WrongDigest));
}

/// The same with half of the honest writes: that is a crowd, and what it is made of is said.
#[test]
fn half_of_what_came_is_a_crowd() {
    let (mut town, posted) = stage();
    let honest = crate::properties::malice::honest_digests(stage().0);
    let others: Vec<WriteName> = posted[4..].iter().map(|(written, _)| written.name()).collect();
    town.later(61);
    town.believes_lies = true;
    for _ in 0..3 {
        town.turn_with(&mut |by, transcript, body| {
            if by == LIAR {
                fail(&others, &honest, transcript, body);
            }
        });
        town.later(11);
    }
    let reading = town.read().unwrap();
    assert_eq!(reading.crowd, Crowd { accepted: 7, listed: 11, came: 11 });
    assert_eq!((reading.size, reading.thinned), (7, None));
}

/// A database that claims that more came to it: the auditor settles no such set, and a reader
/// sees it.
#[test]
fn auditor_and_reader_hold_each_database_to_what_came_to_it() {
    let mut town = Town::new(20, 60, 91);
    (0..4).for_each(|member| drop(town.post(member, Content::Cover)));
    let claim = |by: Party, body: &mut Body| {
        if let (Body::Close { came, .. }, true) = (body, by == LIAR) {
            *came = 9;
        }
    };
    let mut honest = Town::new(20, 60, 91);
    (0..4).for_each(|member| drop(honest.post(member, Content::Cover)));
    honest.finish().unwrap();
    let mut said = Transcript::new(&honest.board, Epoch(0));
    for by in Party::ALL {
        for signed in &honest.statements[by.index()] {
            let mut statement = signed.open(honest.board.key(by).unwrap()).unwrap().into_inner();
            claim(by, &mut statement.body);
            let _ = said.record(by, &Signed::new(&statement, &server(by)));
        }
    }
    let table = honest.tables[0].clone().unwrap();
    assert_eq!(honest.read().unwrap().thinned, None);
    assert_eq!(read(&honest.board, &said, &table).unwrap().thinned, Some(LIAR));
    town.later(61);
    town.believes_lies = true;
    town.turn_with(&mut |by, _, body| claim(by, body));
    town.later(11);
    town.turn();
    assert_eq!(town.transcript().abort_reason(Party::Auditor), Some(BurnReason::Dwindled));
    assert!(town.shares == [None, None]);
}

fn knock(town: &mut Town, member: u8, signed: Epoch) -> Result<(), SubmissionError> {
    let ticket = Members::ticket(&key(member), &knock_name(&town.board.fingerprint(), signed));
    town.databases[0].handle_knock(Epoch(0), &ticket, town.now, &town.members)
}

/// One database answers only the victim and its own members. The others leave a knock at the
/// database that does answer: with it, they came.
#[test]
fn a_database_that_answers_few_chooses_no_crowd() {
    let run = |knocks: bool| {
        let mut town = Town::new(20, 60, 92);
        town.post(0, Content::Message(b"the victim's"));
        (THEIRS..THEIRS + 2).for_each(|member| drop(town.post(member, Content::Cover)));
        // Those that reached both count once; a knock is for one epoch.
        knock(&mut town, 0, Epoch(0)).unwrap();
        let refused = SubmissionError::Admission(AdmissionError);
        assert_eq!(knock(&mut town, 1, Epoch(1)), Err(refused));
        if knocks {
            (1..7).for_each(|member| knock(&mut town, member, Epoch(0)).unwrap());
            knock(&mut town, 1, Epoch(0)).unwrap();
        }
        // Knocks survive a kill.
        town.turn();
        town.restart(Side::First, alpheus_crypto::ledger::StateOrigin::Intact);
        let read = town.finish();
        assert_eq!(knock(&mut town, 7, Epoch(0)), Err(SubmissionError::Late));
        (town.transcript().abort_reason(HONEST), read.ok().map(|reading| reading.crowd))
    };
    assert_eq!(run(false), (None, Some(Crowd { accepted: 3, listed: 3, came: 3 })));
    assert_eq!(run(true), (Some(BurnReason::Thinned(LIAR)), None));
}
