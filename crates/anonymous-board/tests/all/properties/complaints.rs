//! Writers that were left out, and writers that only claim so.

use crate::properties::malice::{LIAR, Shadow, honest_digests, recommit};
use crate::properties::town::{Town, key, server};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::auditor::{ComplaintError, Verdict};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{
    Body, BurnReason, Fault, Grounds, Opening, Statement, Submission, WriteName,
};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, PendingWrite, Receipts, WriteStatus};
use alpheus_crypto::signed_message::Signed;

/// A lie about its digest rejects one write of five. The writer complains in time, and the epoch is
/// burnt with the liar blamed.
#[test]
fn a_complaint_about_a_wrong_digest_is_upheld() {
    let stage = || {
        let mut town = Town::new(9, 40, 31);
        let posted = town.post(0, Content::Message(b"mine"));
        (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
        (town, posted)
    };
    let (mut town, (written, submission, received)) = stage();
    let name = written.name();
    let shadow = Shadow { victim: name, honest: honest_digests(stage().0), row: 0 };
    town.later(61);
    town.believes_lies = true;
    town.turn_with(&mut |by, transcript, body| {
        if by == LIAR {
            recommit(&shadow, transcript, body, |audited| audited.digest.0[3] ^= 1);
        }
    });
    let transcript = town.transcript();
    let set = transcript.set().unwrap().unwrap();
    assert_eq!((set.accepted.len(), set.rejected.as_slice()), (4, [name].as_slice()));
    let WriteStatus::Complain(grounds) = written.status(&town.transcript(), &received) else {
        panic!("the writer sees who is to blame");
    };
    let complaint = written.complaint(&submission, *grounds);
    let blamed = Verdict::Upheld(LIAR, Fault::WrongDigest);
    assert_eq!(town.complain(&complaint), blamed);
    town.turn();
    town.later(11);
    town.turn();
    let why = town.transcript().abort_reason(Party::Auditor);
    assert_eq!(why, Some(BurnReason::Blamed(LIAR, Fault::WrongDigest)));
    assert!(matches!(town.read(), Err(ReadError::Burnt(_))));
    assert!(town.shares == [None, None], "nothing was revealed");
    assert_eq!(town.auditor.handle_complaint(&complaint).err(), Some(ComplaintError::TooLate));
}

/// A complaint about a write in the set, or with a receipt for another write, is void and changes
/// nothing.
#[test]
fn complaints_without_grounds_are_void() {
    let mut town = Town::new(9, 40, 32);
    let (written, submission, received) = town.post(0, Content::Message(b"mine"));
    let (other, others, _) = town.post(1, Content::Message(b"other"));
    (2..5).for_each(|member| drop(town.post(member, Content::Cover)));
    let receipt = town.receipt(Side::First, &submission).unwrap();
    let left_out = Grounds::LeftOut(receipt);
    let complaint = written.complaint(&submission, left_out.clone());
    town.later(61);
    town.turn();
    assert_eq!(written.status(&town.transcript(), &received), WriteStatus::In);
    assert_eq!(town.complain(&complaint), Verdict::Void);
    assert_eq!(town.complain(&other.complaint(&others, left_out)), Verdict::Void);
    town.later(11);
    town.turn();
    assert_eq!(town.read().unwrap().size, 5);
}

/// A database leaves out a write for which it issued a receipt.
#[test]
fn a_complaint_about_a_write_left_out_against_its_receipt_is_upheld() {
    let mut town = Town::new(9, 40, 33);
    let (written, submission, received) = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    let name = written.name();
    town.later(61);
    town.believes_lies = true;
    town.turn_with(&mut |by, _, body| {
        if let Body::Candidates { writes, .. } = body
            && by == LIAR
        {
            writes.retain(|write| *write != name);
        }
    });
    let WriteStatus::Complain(grounds) = written.status(&town.transcript(), &received) else {
        panic!("the writer sees that it is left out");
    };
    let complaint = written.complaint(&submission, *grounds);
    assert_eq!(town.complain(&complaint), Verdict::Upheld(LIAR, Fault::LeftOut));
}

/// A town in which one write was made, by its first member, and what belongs to it.
fn stage() -> (Town, (PendingWrite, Submission, Receipts)) {
    let mut town = Town::new(9, 40, 35);
    let posted = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    (town, posted)
}

/// The same at the time of complaints, after a database lied about the write's digest, and what the
/// writer shows then.
#[expect(clippy::panic, reason = "a test's way to fail")]
fn lied_to() -> (Town, PendingWrite, Submission, (Side, Opening)) {
    let (mut town, (written, submission, received)) = stage();
    let shadow = Shadow { victim: written.name(), honest: honest_digests(stage().0), row: 0 };
    town.later(61);
    town.believes_lies = true;
    town.turn_with(&mut |by, transcript, body| {
        if by == LIAR {
            recommit(&shadow, transcript, body, |audited| audited.digest.0[3] ^= 1);
        }
    });
    let WriteStatus::Complain(grounds) = written.status(&town.transcript(), &received) else {
        panic!("the writer sees who is to blame");
    };
    let Grounds::Digest { side, opening } = *grounds else { panic!("a digest is wrong") };
    (town, written, submission, (side, opening))
}

/// A writer that shows the auditor another key than it sealed blames nobody: the auditor seals what
/// it is shown again, and compares it with the envelope.
#[test]
fn another_key_than_the_sealed_one_blames_nobody() {
    let (_, written, submission, (side, opening)) = lied_to();
    const STRANGER: usize = 4;
    let changes: [fn(&mut Opening); STRANGER + 2] = [
        |opening| opening.root[1] ^= 2,
        |opening| opening.seal[0] ^= 1,
        |opening| opening.shared.nonce[0] ^= 1,
        |opening| opening.shared.words.payload[0] ^= 1,
        |opening| opening.unlocks[0] ^= 1,
        |_| (),
    ];
    for (at, change) in changes.iter().enumerate() {
        // Here nobody lies.
        let (mut town, _) = stage();
        town.later(61);
        town.turn();
        let mut opening = opening.clone();
        change(&mut opening);
        let complaint = written.complaint(&submission, Grounds::Digest { side, opening });
        // The last is true, and void, because here nobody lies. Each costs a sealing or a pass once;
        // that of a stranger, who cannot open the lock, costs neither.
        for _ in 0..2 {
            assert_eq!(town.complain(&complaint), Verdict::Void, "change {at}");
            let costly = town.auditor.costly_complaints(Epoch(0));
            assert_eq!(costly, usize::from(at != STRANGER), "change {at}");
        }
        town.later(11);
        town.turn();
        assert_eq!(town.read().unwrap().size, 5);
    }
}

/// Complaints are limited for each write, also those that fail. Only its writer uses the limit up.
#[test]
fn strangers_complain_in_vain_and_a_writer_once() {
    let complain = |town: &mut Town, written: &PendingWrite, submission, side, opening| {
        let complaint = written.complaint(submission, Grounds::Digest { side, opening });
        (town.complain(&complaint), town.auditor.costly_complaints(Epoch(0)))
    };
    let (mut town, written, submission, (side, opening)) = lied_to();
    for guess in 0..20 {
        // A database knows all of this but what opens the lock.
        let opening = Opening { unlocks: [guess; 32], ..opening.clone() };
        let judged = complain(&mut town, &written, &submission, side, opening);
        assert_eq!(judged, (Verdict::Void, 0));
    }
    let upheld = Verdict::Upheld(LIAR, Fault::WrongDigest);
    assert_eq!(complain(&mut town, &written, &submission, side, opening), (upheld, 1));

    let (mut town, written, submission, (side, opening)) = lied_to();
    let wrong = Opening { seal: [0; 32], ..opening.clone() };
    for shown in [wrong.clone(), wrong, opening] {
        let judged = complain(&mut town, &written, &submission, side, shown);
        assert_eq!(judged, (Verdict::Void, 1), "its complaint is used up");
        town.restart_auditor();
    }
}

/// The auditor's records of an epoch, including the complaints that it has judged, are deleted with the epoch.
#[test]
fn an_old_epochs_complaints_are_forgotten() {
    let (mut town, written, submission, (side, opening)) = lied_to();
    let wrong = Opening { seal: [0; 32], ..opening };
    let complaint = written.complaint(&submission, Grounds::Digest { side, opening: wrong });
    assert_eq!(town.complain(&complaint), Verdict::Void);
    let name = written.name().0;
    let is_judged = |town: &Town| town.ledgers[2].keys().any(|key| key.ends_with(name.as_ref()));
    assert!(is_judged(&town));
    auditor_hears_of(&mut town, Epoch(64));
    assert!(is_judged(&town), "kept for 64 epochs");
    auditor_hears_of(&mut town, Epoch(65));
    assert!(!is_judged(&town));
    town.restart_auditor();
    assert_eq!(town.auditor.costly_complaints(Epoch(0)), 0);
    assert!(town.ledgers[2].keys().all(|key| !key.starts_with(&0_u64.to_be_bytes())));
}

/// A database begins an epoch, and tells the auditor.
fn auditor_hears_of(town: &mut Town, epoch: Epoch) {
    let by = Party::Database(Side::First);
    let first = town.statements[0][0].open(town.board.key(by).unwrap()).unwrap().into_inner();
    let begin = Signed::new(&Statement { epoch, ..first }, &server(by));
    let now = town.board.schedule.start_of(epoch);
    let step = town.auditor.handle_statement(&begin, Side::First, epoch, now).unwrap();
    drop(step.commit(&mut town.ledgers[2]).unwrap());
}

/// Two made-up views, in which one database and then the other is wrong about a write, and both
/// agree to the set that follows. The writer
/// shows the auditor one key, and never the other: with both, the auditor would read row and message.
#[test]
fn a_writer_shows_one_key_whatever_it_receives() {
    let mut town = Town::new(9, 40, 36);
    let (written, _, received) = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    town.later(61);
    town.turn();
    let views = Side::BOTH.map(|liar| lied_about(&town, written.name(), liar));
    let sides = |written: &PendingWrite, view: &Transcript| match written.status(view, &received) {
        WriteStatus::Complain(grounds) => match *grounds {
            Grounds::Digest { side, .. } => Some(side),
            Grounds::LeftOut(_) => None,
        },
        _ => None,
    };
    let saved = |written: &PendingWrite| {
        PendingWrite::from_bytes(&town.board, &written.dangerous_to_bytes()).unwrap()
    };
    let other = saved(&written);
    assert_eq!(sides(&written, &views[1]), Some(Side::Second));
    assert_eq!(sides(&written, &views[0]), None);
    assert_eq!(sides(&written, &views[1]), Some(Side::Second), "the same again");
    // The choice outlives a restart.
    assert_eq!(sides(&saved(&written), &views[0]), None);
    assert_eq!(sides(&other, &views[0]), Some(Side::First), "in the other order");
    assert_eq!(sides(&other, &views[1]), None);
}

/// A view in which this database has committed to and opened a wrong digest of the write.
fn lied_about(town: &Town, victim: WriteName, liar: Side) -> Transcript {
    let mut view = Transcript::new(&town.board, Epoch(0));
    let honest = town.transcript();
    let at = honest.candidates().unwrap().writes.binary_search(&victim).unwrap();
    let mut wrong = honest.opened_digests(liar).unwrap().unwrap().to_vec();
    wrong[at].digest.0[0] ^= 1;
    for at in 0..town.statements[0].len() {
        for by in Side::BOTH.map(Party::Database) {
            let Some(said) = town.statements[by.index()].get(at) else { continue };
            let mut statement = said.open(town.board.key(by).unwrap()).unwrap().into_inner();
            match &mut statement.body {
                Body::Commit { candidates, digests } if by == Party::Database(liar) => {
                    *digests = honest.digest_commitment(liar, candidates, &wrong, &[9; 32]);
                }
                Body::Open { digests, nonce } if by == Party::Database(liar) => {
                    (*digests, *nonce) = (wrong.clone(), [9; 32]);
                }
                Body::Agree { opens, set, size } => {
                    let follows = view.set().unwrap().unwrap();
                    (*opens, *set, *size) = (follows.opens, follows.digest, 4);
                }
                _ => {}
            }
            let _ = view.record(by, &Signed::new(&statement, &server(by)));
        }
    }
    view
}

/// A writer with a bad key blames a server, but its keys recompute to what both servers stated.
#[test]
fn a_writers_own_bad_key_is_nobodys_fault() {
    use alpheus_anonymous_board::writer::View;
    let mut town = Town::new(9, 40, 34);
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    // Envelopes of two different writes: their keys do not belong together.
    let tag = Members::tag_of(&key(0).verifying_key());
    let view = View::open(&town.board, &town.transcript()).unwrap();
    let ticket = |_: &_| Vec::new();
    let (one, first) = view.write(Content::Message(b"a"), tag, ticket, &mut town.rng).unwrap();
    let (_, second) = view.write(Content::Message(b"b"), tag, ticket, &mut town.rng).unwrap();
    let mut mixed = first.clone();
    mixed.envelopes[1] = second.envelopes[1].clone();
    mixed.ticket = Members::ticket(&key(0), &mixed.name(&town.board.fingerprint()));
    for side in Side::BOTH {
        town.submit(side, &mixed).unwrap();
    }
    town.later(61);
    town.turn();
    let transcript = town.transcript();
    let set = transcript.set().unwrap().unwrap();
    assert_eq!((set.accepted.len(), set.rejected.len()), (4, 1));
    let receipts = Side::BOTH.map(|side| town.receipt(side, &first));
    assert!(receipts.iter().all(Result::is_err), "the write it has receipts for is another");
    let _ = one;
    town.later(11);
    town.turn();
    assert_eq!(town.read().unwrap().size, 4);
}
