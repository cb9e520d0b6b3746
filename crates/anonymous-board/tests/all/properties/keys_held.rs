//! What the auditor comes to hold of one write's two keys: from the writer's complaint, and from the
//! check of a share. One database lies about its digest of the write, to any of the writer, the
//! other database and the auditor. Each test goes on to the end of the epoch, with several coins.

use crate::properties::equivocation::made_up;
use crate::properties::malice::{LIAR, Shadow, honest_digests, recommit};
use crate::properties::town::{Town, key, server};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::auditor::Verdict;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Grounds, Statement, Submission};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, PendingWrite, Receipts, WriteStatus};
use alpheus_crypto::hybrid::HybridKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::Signed;

const HONEST: Party = Party::Database(Side::First);
/// Enough for both coins to come up.
const SEEDS: std::ops::Range<u8> = 0..10;

struct Victim {
    written: PendingWrite,
    submission: Submission,
    received: Receipts,
    /// The verdict on its complaint, if it showed the auditor a key, and of which side.
    shown: Option<(Side, Verdict)>,
}

fn stage(seed: u8) -> (Town, Victim) {
    let mut town = Town::new(9, 40, seed);
    let (written, submission, received) = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    (town, Victim { written, submission, received, shown: None })
}

impl Victim {
    /// Acts on what it sees, as its client does.
    fn look(&mut self, town: &mut Town, view: &Transcript) -> WriteStatus {
        let status = self.written.status(view, &self.received);
        if let WriteStatus::Complain(grounds) = &status
            && let Grounds::Digest { side, .. } = **grounds
        {
            let complaint = self.written.complaint(&self.submission, (**grounds).clone());
            let verdict = town.complain(&complaint);
            self.shown.get_or_insert((side, verdict));
        }
        status
    }
}

/// The statements that writers see, with these left out.
fn without(town: &Town, view: &Transcript, lacks: impl Fn(Party, usize) -> bool) -> Transcript {
    let mut partly = Transcript::new(&town.board, Epoch(0));
    for by in Party::ALL {
        for (at, said) in view.statements(by).enumerate() {
            if !lacks(by, at) {
                let _ = partly.record(by, said);
            }
        }
    }
    partly
}

/// Ends the epoch. The auditor must not hold both keys.
fn conclude(mut town: Town, victim: &Victim) -> (Town, Option<Side>) {
    for _ in 0..4 {
        town.later(11);
        town.turn();
    }
    let revealed = Side::BOTH.into_iter().find(|side| town.reveals[side.index()].is_some());
    if let (Some((shown, _)), Some(revealed)) = (victim.shown, revealed) {
        assert_eq!(shown, revealed, "the auditor holds both keys");
    }
    (town, revealed)
}

/// The lie about the victim's digest.
fn lie(shadow: &Shadow, transcript: &Transcript, body: &mut Body) {
    recommit(shadow, transcript, body, |audited| audited.digest.0[0] ^= 1);
}

fn shadow(seed: u8, victim: &Victim) -> Shadow {
    let honest = honest_digests(stage(seed).0);
    Shadow { victim: victim.written.name(), honest, row: 0 }
}

/// The database lies to the writer alone. It also withholds from it what the honest one agreed to,
/// as long as it can. The epoch goes on, and the check of a share reveals one side's keys.
#[test]
fn a_version_for_the_writer_alone_opens_no_key() {
    let mut revealed = Vec::new();
    for seed in SEEDS {
        let (mut town, mut victim) = stage(seed);
        town.later(61);
        town.turn();
        let view = made_up(&town, victim.written.name(), |_| ());
        let before = without(&town, &view, |by, at| by == HONEST && at >= 5);
        assert_eq!(victim.look(&mut town, &before), WriteStatus::Open, "it waits");
        assert_eq!(victim.look(&mut town, &view), WriteStatus::Contradicted);
        let (town, side) = conclude(town, &victim);
        assert_eq!(town.read().unwrap().size, 5);
        revealed.extend(side);
    }
    assert!(Side::BOTH.iter().all(|side| revealed.contains(side)), "{revealed:?}");
}

/// A writer that sees two versions hands one on. A server with the other then has the proof.
#[test]
fn a_version_handed_on_is_proof() {
    let (mut town, mut victim) = stage(3);
    town.later(61);
    town.turn();
    let view = made_up(&town, victim.written.name(), |_| ());
    assert_eq!(victim.look(&mut town, &view), WriteStatus::Contradicted);
    for said in view.statements(LIAR) {
        let heard = town.auditor.handle_statement(said, Side::Second, Epoch(0), town.now);
        heard.unwrap().commit(&mut town.ledgers[2]).unwrap();
    }
    let (town, revealed) = conclude(town, &victim);
    let why = town.transcript().abort_reason(Party::Auditor);
    assert_eq!(why, Some(BurnReason::Blamed(LIAR, Fault::Equivocation)));
    assert!(revealed.is_none() && town.shares == [None, None]);
}

/// It lies to all three. The complaint is upheld before anything is settled, so no seed is revealed.
#[test]
fn a_lie_to_all_opens_one_key_and_no_seed() {
    for seed in SEEDS {
        let (mut town, mut victim) = stage(seed);
        let shadow = shadow(seed, &victim);
        town.later(61);
        town.believes_lies = true;
        town.turn_with(&mut |by, transcript, body| {
            if by == LIAR {
                lie(&shadow, transcript, body);
            }
        });
        let view = town.transcript();
        // Until the honest database has agreed, this could be a version for the writer alone.
        let before = without(&town, &view, |by, at| by == HONEST && at >= 5);
        assert_eq!(victim.look(&mut town, &before), WriteStatus::Open);
        assert!(victim.shown.is_none());
        victim.look(&mut town, &view);
        let upheld = Verdict::Upheld(LIAR, Fault::WrongDigest);
        assert_eq!(victim.shown, Some((Side::Second, upheld)));
        let (town, revealed) = conclude(town, &victim);
        assert!(revealed.is_none() && town.shares == [None, None]);
    }
}

/// It lies to both servers, and shows the writer the truth. The writer believes that its write
/// counts until it sees what the honest database agreed to.
#[test]
fn a_lie_to_both_servers_opens_no_key_to_a_writer_who_sees_the_truth() {
    for seed in SEEDS {
        let (mut town, mut victim) = stage(seed);
        let shadow = shadow(seed, &victim);
        town.later(61);
        town.believes_lies = true;
        town.turn_with(&mut |by, transcript, body| {
            if by == LIAR {
                lie(&shadow, transcript, body);
            }
        });
        let said = town.transcript();
        let mut truth = without(&town, &said, |by, at| by == LIAR && at >= 3);
        for known in &town.statements[1][3..5] {
            let mut statement = known.open(town.board.key(LIAR).unwrap()).unwrap().into_inner();
            recommit(&shadow, &said, &mut statement.body, |_| ());
            truth.record(LIAR, &Signed::new(&statement, &server(LIAR))).unwrap();
        }
        let before = without(&town, &truth, |by, at| by == HONEST && at >= 5);
        assert_eq!(victim.look(&mut town, &before), WriteStatus::In);
        assert_eq!(victim.look(&mut town, &truth), WriteStatus::Contradicted);
        let (town, revealed) = conclude(town, &victim);
        assert!(revealed.is_some() && town.read().unwrap().size == 4);
    }
}

/// It lies to one server, and shows the writer the lie or the truth. The servers contradict each
/// other, so nothing is settled.
#[test]
fn a_lie_to_one_server_reveals_no_seed() {
    for hearer in [HONEST, Party::Auditor] {
        for lies_to_writer in [false, true] {
            let (mut town, mut victim) = stage(4);
            let shown = shadow(4, &victim);
            let version = move |transcript: &Transcript, body: &mut Body| {
                lie(&shown, transcript, body);
            };
            town.versions.push((LIAR, hearer, Box::new(version)));
            town.later(61);
            town.turn();
            let view = match lies_to_writer {
                true => made_up(&town, victim.written.name(), |_| ()),
                false => town.transcript(),
            };
            victim.look(&mut town, &view);
            let (town, revealed) = conclude(town, &victim);
            let what = format!("{hearer}, {lies_to_writer}: {:?}", victim.shown);
            assert!(revealed.is_none() && town.shares == [None, None], "{what}");
            // Only the honest database's word can open a key; and it then never reveals its own.
            let agrees = hearer == HONEST && lies_to_writer;
            assert!(victim.shown.is_none() || agrees, "{what}");
        }
    }
}

/// The honest database ends the epoch before it has agreed to anything. It then never reveals its
/// seed, so the key of the other side may be shown.
#[test]
fn an_honest_database_that_has_ended_the_epoch_reveals_nothing() {
    let (mut town, mut victim) = stage(5);
    let shadow = shadow(5, &victim);
    town.later(61);
    town.believes_lies = true;
    town.turn_with(&mut |by, transcript, body| {
        if by == LIAR {
            lie(&shadow, transcript, body);
        }
        if by == HONEST && matches!(body, Body::Agree { .. }) {
            *body = Body::Abort { reason: BurnReason::Dwindled };
        }
    });
    let view = town.transcript();
    assert_eq!(view.abort_reason(HONEST), Some(BurnReason::Dwindled));
    victim.look(&mut town, &view);
    let upheld = Verdict::Upheld(LIAR, Fault::WrongDigest);
    assert_eq!(victim.shown, Some((Side::Second, upheld)));
    let (town, revealed) = conclude(town, &victim);
    assert!(revealed.is_none() && town.shares == [None, None]);
}

/// Nobody complains in time. Once the set is settled, no key is shown: a seed may be revealed.
#[test]
fn no_key_is_shown_once_the_set_is_settled() {
    let (mut town, mut victim) = stage(6);
    let shadow = shadow(6, &victim);
    town.later(61);
    town.believes_lies = true;
    for _ in 0..2 {
        town.turn_with(&mut |by, transcript, body| {
            if by == LIAR {
                lie(&shadow, transcript, body);
            }
        });
        town.later(11);
    }
    let view = town.transcript();
    assert!(view.settled_set().is_some());
    assert_eq!(victim.look(&mut town, &view), WriteStatus::Out);
    assert!(victim.shown.is_none());
}

/// The complaint arrives when the auditor has settled. It refuses it, but looks at the key. The other
/// database's later reveal opens accepted writes alone.
#[test]
fn a_complaint_that_comes_too_late_does_not_meet_the_other_key() {
    let mut revealed = Vec::new();
    for seed in SEEDS {
        let (mut town, victim) = stage(seed);
        let shadow = shadow(seed, &victim);
        town.believes_lies = true;
        let mut lies = |by, transcript: &Transcript, body: &mut Body| {
            if by == LIAR {
                lie(&shadow, transcript, body);
            }
        };
        town.later(61);
        town.turn_with(&mut lies);
        let view = town.transcript();
        let WriteStatus::Complain(grounds) = victim.written.status(&view, &victim.received) else {
            panic!("the lie is in the open");
        };
        town.later(11);
        town.auditor_alone();
        let opens = auditors_key(&town);
        town.turn_with(&mut lies);
        let complaint = victim.written.complaint(&victim.submission, *grounds);
        assert!(town.auditor.handle_complaint(&complaint).is_err(), "it is too late");
        assert_eq!(town.read().unwrap().size, 4);
        for side in Side::BOTH {
            let Some(reveal) = &town.reveals[side.index()] else { continue };
            let reveal = reveal.open(town.board.key(side.into()).unwrap()).unwrap();
            let context: [&[u8]; 2] = [&town.board.fingerprint().0, &[0; 8]];
            let label = labels::BOARD_REVEALED_KEYS;
            let bytes = opens.open_bytes(label, &context, &reveal.keys).unwrap();
            let seed = bytes.first_chunk::<32>().unwrap();
            let sealing = derive(seed, labels::BOARD_EPOCH, &[b"sealing"]);
            let (of, _) = view.keys(side).unwrap();
            assert_ne!(HybridKey::from_seed(&sealing).public(), of, "this opens every envelope");
            let tag = |member| Members::tag_of(&key(member).verifying_key()).0;
            let holds = |member| bytes.windows(32).any(|part| part == tag(member));
            assert!((1..5).all(holds) && !holds(0), "the victim's key is there");
            revealed.push(side);
        }
    }
    assert!(Side::BOTH.iter().all(|side| revealed.contains(side)), "{revealed:?}");
}

/// What opens reveals, from the auditor's ledger.
fn auditors_key(town: &Town) -> HybridKey {
    let is_seed = |key: &Vec<u8>| key[..8] == [0; 8] && key[9] == 254;
    let (_, seed) = town.ledgers[2].iter().find(|(key, _)| is_seed(key)).unwrap();
    HybridKey::from_seed(&derive(seed, labels::BOARD_AUDITOR, &[b"sealing"]))
}

/// The auditor's key for the reveal must be one: else the seed would rest on one of two ciphers, or
/// be open to all.
#[test]
fn an_auditors_key_that_is_none_is_its_fault() {
    let (mut town, _) = stage(7);
    town.later(61);
    town.turn();
    town.later(11);
    town.turn_with(&mut |_, _, body| {
        if let Body::Settle { sealing, .. } = body {
            let mut bytes = sealing.as_bytes().to_vec();
            let x25519 = bytes.len() - 32;
            bytes[x25519..].fill(0);
            *sealing = bytes.try_into().unwrap();
        }
    });
    let settle: Option<Signed<Statement>> = town.statements[2].first().cloned();
    assert!(settle.is_some());
    for side in Side::BOTH {
        let heard = town.databases[side.index()].transcript(Epoch(0)).unwrap();
        assert_eq!(heard.settled_set(), None);
        let why = Some(BurnReason::Blamed(Party::Auditor, Fault::Keys));
        assert_eq!(heard.abort_reason(side.into()), why);
    }
    assert!(town.reveals == [None, None] && town.shares == [None, None]);
}
