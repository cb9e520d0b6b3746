//! One database makes different statements to different receivers. No honest server is blamed, no
//! honest database's key is opened, and the two versions are kept as proof.

use crate::properties::malice::{LIAR, Shadow, honest_digests, recommit};
use crate::properties::town::{Town, key, server};
use alpheus_anonymous_board::EnvelopeError;
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Body, BurnReason, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, PendingWrite, Receipts, View, WriteStatus};
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridKey;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;

const HONEST: Party = Party::Database(Side::First);

fn stage() -> (Town, PendingWrite, Receipts) {
    let mut town = Town::new(9, 40, 60);
    let (written, _, received) = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    (town, written, received)
}

/// A writer's view if the second database has changed statements towards it, and then committed to
/// and opened a wrong digest of its write, and agrees to what follows from that.
pub(crate) fn made_up(town: &Town, victim: WriteName, change: impl Fn(&mut Body)) -> Transcript {
    let mut view = Transcript::new(&town.board, Epoch(0));
    for said in &town.statements[0] {
        let _ = view.record(HONEST, said);
    }
    let honest = town.transcript().opened_digests(Side::Second).unwrap().unwrap().to_vec();
    let shadow = Shadow { victim, honest, row: 0 };
    for said in &town.statements[1] {
        let mut statement = said.open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
        if statement.epoch != Epoch(0) {
            continue;
        }
        change(&mut statement.body);
        recommit(&shadow, &view, &mut statement.body, |audited| audited.digest.0[0] ^= 1);
        if let (Body::Agree { opens, set, .. }, Some(Ok(seen))) = (&mut statement.body, view.set())
        {
            (*opens, *set) = (seen.opens, seen.digest);
        }
        let _ = view.record(LIAR, &Signed::new(&statement, &server(LIAR)));
    }
    view
}

/// With another coin, other candidates or other keys of the epoch, the honest database's statements
/// about the write are wrong in that view. With another digest alone, they are right, and its
/// agreement is to another set. The writer reveals no key, and sees that statements have two versions.
#[test]
fn a_fabricated_view_opens_no_honest_key() {
    type Change = fn(&mut Body);
    let (mut town, written, received) = stage();
    town.later(61);
    town.turn();
    let name = written.name();
    let changes: [(&str, Change); 4] = [
        ("nothing but the digest", |_| ()),
        ("another coin", |body| {
            if let Body::Candidates { coin, .. } = body {
                coin[0] ^= 1;
            }
        }),
        ("other candidates", |body| {
            if let Body::Candidates { writes, .. } = body {
                writes.push(WriteName(Digest([255; 32])));
            }
        }),
        ("other permutations", |body| {
            if let Body::Begin { sealing, .. } = body {
                *sealing = HybridKey::from_seed(&Secret::from_bytes([3; 32])).public().clone();
            }
        }),
    ];
    for (change, apply) in changes {
        let view = made_up(&town, name, apply);
        assert!(view.opened_digests(Side::Second).is_some(), "{change}: the view is whole");
        assert_eq!(written.status(&view, &received), WriteStatus::Contradicted, "{change}");
    }
}

/// A database shows a writer other keys of the epoch than the honest one has. The honest one's
/// envelope is sealed for both databases' keys, so it refuses the write before it computes anything.
#[test]
fn a_write_under_other_keys_of_the_epoch_is_refused() {
    let mut town = Town::new(9, 40, 61);
    let mut seen = Transcript::new(&town.board, Epoch(0));
    for by in Side::BOTH.map(Party::Database) {
        let begin = town.statements[by.index()][0].open(town.board.key(by).unwrap()).unwrap();
        let mut begin = begin.into_inner();
        if let (Body::Begin { agreement, .. }, true) = (&mut begin.body, by == LIAR) {
            *agreement = AgreementKey::from_seed(&Secret::from_bytes([3; 32])).public();
        }
        seen.record(by, &Signed::new(&begin, &server(by))).unwrap();
    }
    let view = View::open(&town.board, &seen).unwrap();
    let tag = Members::tag_of(&key(0).verifying_key());
    let ticket = |name: &_| Members::ticket(&key(0), name);
    let (_, write) = view.write(Content::Cover, tag, ticket, &mut town.rng).unwrap();
    let refused = town.submit(Side::First, &write);
    assert_eq!(refused, Err(SubmissionError::Envelope(EnvelopeError::Unreadable)));
    town.post(0, Content::Cover);
}

/// Each server's final reason, and the servers proven to have made two statements.
fn outcome(town: &mut Town) -> ([Option<BurnReason>; 2], Vec<Party>) {
    for _ in 0..3 {
        town.turn();
        town.later(31);
    }
    let auditor = town.auditor.transcript(Epoch(0)).unwrap().clone();
    let first = town.databases[0].transcript(Epoch(0)).unwrap().clone();
    let proven = |party: &Party| [&auditor, &first].iter().any(|t| t.conflict(*party).is_some());
    let why = [first.abort_reason(HONEST), auditor.abort_reason(Party::Auditor)];
    (why, Party::ALL.into_iter().filter(proven).collect())
}

/// The auditor receives another version of a statement and of all that follows from it. Without
/// relays nobody can be blamed. With relays the liar is proven.
#[test]
fn equivocation_gets_no_honest_server_blamed() {
    type Lie = fn(&Shadow, &Transcript, &mut Body);
    let lies: [(&str, Lie); 3] = [
        ("another coin", |_, _, body| {
            if let Body::Candidates { coin, .. } = body {
                coin[0] ^= 1;
            }
        }),
        ("other digests", |shadow, transcript, body| {
            recommit(shadow, transcript, body, |audited| audited.digest.0[0] ^= 1);
        }),
        ("another set", |_, _, body| {
            if let Body::Agree { opens, .. } = body {
                opens.0[0] ^= 1;
            }
        }),
    ];
    let honest = honest_digests(stage().0);
    for (name, lie) in lies {
        for relaying in [false, true] {
            let (mut town, written, _) = stage();
            let shadow = Shadow { victim: written.name(), honest: honest.clone(), row: 0 };
            let version = move |transcript: &Transcript, body: &mut Body| {
                lie(&shadow, transcript, body);
            };
            town.versions.push((LIAR, Party::Auditor, Box::new(version)));
            town.relaying = relaying;
            town.later(61);
            let (why, proven) = outcome(&mut town);
            assert!(why.iter().all(Option::is_some), "{name}: {why:?}");
            let blames = |why: &Option<BurnReason>| matches!(why, Some(BurnReason::Blamed(by, _)) if *by != LIAR);
            assert!(!why.iter().any(blames), "{name}: {why:?}");
            assert!(town.shares == [None, None], "{name}: nothing is revealed");
            if relaying {
                assert_eq!(proven, [LIAR], "{name}: {why:?}");
                let kept = town.ledgers[0].len();
                town.restart(Side::First, StateOrigin::Intact);
                assert_eq!(town.ledgers[0].len(), kept);
                let again = town.databases[0].transcript(Epoch(0)).unwrap().conflict(LIAR);
                let other = town.auditor.transcript(Epoch(0)).unwrap().conflict(LIAR);
                assert!(again.or(other).is_some(), "{name}: the proof outlives a restart");
            } else {
                assert!(why[1] == Some(BurnReason::Contradiction) || proven.is_empty(), "{name}");
            }
        }
    }
}

/// Statements forwarded out of order or incompletely make nobody look like a liar.
#[test]
fn forwarding_in_another_order_makes_nobody_a_liar() {
    let (mut town, ..) = stage();
    town.deaf = Some(Side::First);
    town.later(200);
    town.turn();
    let said = town.statements[1].clone();
    let last = said[0].open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
    assert!(!matches!(last.body, Body::Abort { .. }));
    for first in 0..said.len() {
        let mut view = Transcript::new(&town.board, Epoch(0));
        for said in said[first..].iter().chain(&said).chain(said.iter().rev()) {
            let heard = view.record(LIAR, said);
            assert!(!matches!(heard, Ok(h) if format!("{h:?}").contains("Fault")), "{heard:?}");
        }
        assert!(view.abort_reason(LIAR).is_some());
        assert!(view.conflict(LIAR).is_none());
    }
}
