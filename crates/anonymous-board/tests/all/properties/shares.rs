//! The auditor's check of one database's share, and what it must never get.

use crate::properties::malice::{LIAR, Shadow, recommit};
use crate::properties::town::{Town, key, server};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Reveal, Statement};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::hybrid::seal;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;

fn stage(seed: u8) -> Town {
    let mut town = Town::new(9, 40, seed);
    (0..5).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town
}

/// Until the set is settled and the share is checked, or the epoch has ended.
fn run(town: &mut Town) -> Option<BurnReason> {
    town.turn();
    town.later(11);
    town.turn();
    town.transcript().burn_reason()
}

/// A database adds noise to rows before it latches. If its share is drawn, it is blamed before
/// anything is revealed; the other is never blamed.
#[test]
fn a_garbled_share_is_caught_half_of_the_time() {
    let (mut caught, runs) = (0, 24);
    for seed in 0..runs {
        let mut town = stage(seed);
        town.garbles = Some(Side::Second);
        let why = run(&mut town);
        match town.transcript().checked_side().unwrap().unwrap() {
            Side::Second => {
                assert_eq!(why, Some(BurnReason::Blamed(LIAR, Fault::Share)));
                assert!(town.shares == [None, None], "nothing is revealed");
                assert!(!why.unwrap().warns(), "so the same may be written again");
                caught += 1;
            }
            Side::First => assert!(why.is_none() && town.tables[0].is_some()),
        }
    }
    assert!((4..=20).contains(&caught), "{caught} of {runs}");
}

/// A member of the database's own makes a write whose two keys do not belong together, and the
/// database opens the other one's digest for it. So the write is accepted, and its keys add noise that
/// the database knows to every row. That is caught as often as noise in the share.
#[test]
fn a_member_of_its_own_does_not_garble_for_a_database() {
    let mixed = |seed| {
        let mut town = Town::new(9, 40, seed);
        (0..5).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
        let (_, mut write) = town.write(5, Content::Cover);
        let (_, other) = town.write(5, Content::Cover);
        write.envelopes[1] = other.envelopes[1].clone();
        let name = write.name(&town.board.fingerprint());
        write.ticket = Members::ticket(&key(5), &name);
        Side::BOTH.into_iter().for_each(|side| town.submit(side, &write).unwrap());
        town.later(61);
        (town, name)
    };
    let mut drawn = [0, 0];
    for seed in 0..12 {
        let (mut twin, victim) = mixed(seed);
        twin.turn();
        let honest = twin.transcript().opened_digests(Side::First).unwrap().unwrap().to_vec();
        let shadow = Shadow { victim, honest, row: 0 };
        let (mut town, _) = mixed(seed);
        town.believes_lies = true;
        let mut lie = |by, transcript: &Transcript, body: &mut Body| {
            if by == LIAR {
                recommit(&shadow, transcript, body, |_| ());
            }
        };
        town.turn_with(&mut lie);
        town.later(11);
        town.turn_with(&mut lie);
        let said = town.transcript();
        assert_eq!(said.set().unwrap().unwrap().accepted.len(), 6, "it is accepted");
        let side = said.checked_side().unwrap().unwrap();
        drawn[side.index()] += 1;
        let blamed = Some(BurnReason::Blamed(LIAR, Fault::WrongDigest));
        assert_eq!(said.burn_reason(), blamed.filter(|_| side == Side::Second), "{seed}");
    }
    assert!(drawn[0] > 0 && drawn[1] > 0, "{drawn:?}");
}

/// Honest databases are cleared, whichever is drawn, and a restarted auditor checks again.
#[test]
fn an_honest_share_is_cleared() {
    let mut sides = [0, 0];
    for seed in 0..12 {
        let mut town = stage(seed);
        assert_eq!(run(&mut town), None);
        sides[town.transcript().checked_side().unwrap().unwrap().index()] += 1;
        assert_eq!(town.reveals.iter().flatten().count(), 1);
        assert_eq!(town.read().unwrap().size, 5);
        let kept = town.ledgers[2].keys().filter(|key| key[..8] == [0; 8] && key[9] >= 253);
        assert_eq!(kept.count(), 0, "the seed is forgotten");
    }
    assert!(sides[0] > 0 && sides[1] > 0, "{sides:?}");
}

/// An auditor that shows each database another commitment, and then a coin that names that
/// database, would get both seeds, and with them who wrote what. Each database sees that the other's
/// latch names another statement, and reveals nothing.
#[test]
fn two_settlements_reveal_nothing() {
    let mut town = stage(6);
    for side in Side::BOTH {
        let own = [side.index() as u8; 32];
        let version = move |transcript: &Transcript, body: &mut Body| match body {
            Body::Settle { set, draw, .. } => *draw = transcript.draw_commitment(set, &own),
            Body::Draw { coin } => *coin = own,
            _ => {}
        };
        town.versions.push((Party::Auditor, side.into(), Box::new(version)));
    }
    run(&mut town);
    assert!(Side::BOTH.iter().all(|side| town.transcript().latch(*side).is_some()));
    let (board, by) = (town.board.fingerprint(), Party::Auditor);
    let body = Body::Draw { coin: [0; 32] };
    let draw = Statement { board, epoch: Epoch(0), by, sequence: 1, body };
    town.statements[2].push(Signed::new(&draw, &server(by)));
    town.turn();
    for side in Side::BOTH {
        let heard = town.databases[side.index()].transcript(Epoch(0)).unwrap();
        assert_eq!(heard.checked_side(), Some(Ok(side)), "each is shown its own side");
    }
    assert!(town.reveals == [None, None] && town.shares == [None, None]);
}

/// A coin other than the one committed to blames the auditor, and nothing is revealed.
#[test]
fn another_coin_reveals_nothing() {
    let mut town = stage(1);
    town.turn();
    town.later(11);
    town.turn_with(&mut |_, _, body| {
        if let Body::Draw { coin } = body {
            coin[0] ^= 1;
        }
    });
    assert!(town.reveals == [None, None] && town.shares == [None, None]);
    assert!(matches!(town.read(), Err(ReadError::NotPublished | ReadError::Burnt(_))));
}

/// The database whose share is drawn keeps its seed: the epoch ends without a table and names it.
#[test]
fn a_seed_that_is_kept_back_is_named() {
    let mut town = stage(2);
    town.unrevealed = true;
    assert_eq!(run(&mut town), None);
    let side = town.transcript().checked_side().unwrap().unwrap();
    assert!(town.shares == [None, None]);
    town.later(40);
    // The auditor is asked first.
    town.auditor_alone();
    let why = town.transcript().abort_reason(Party::Auditor);
    assert_eq!(why, Some(BurnReason::Unchecked(side.into())));
}

/// It reveals another seed: its signature under that is the proof.
#[test]
fn another_seed_is_blamed() {
    let mut town = stage(3);
    town.unrevealed = true;
    run(&mut town);
    let said = town.transcript();
    let by = Party::Database(said.checked_side().unwrap().unwrap());
    let (board, epoch) = (town.board.fingerprint(), Epoch(0));
    let context: [&[u8]; 2] = [board.as_ref(), &[0; 8]];
    let to = said.reveal_key().unwrap();
    let label = "alpheus/board/revealed-keys/v1";
    // A seed, and no writes.
    let mut shown = [1; 33];
    shown[32] = 0;
    let keys = seal(to, label, &context, &Secret::from_bytes(shown), &mut town.rng).unwrap();
    let reveal = Signed::new(&Reveal { board, epoch, by, keys }, &server(by));
    let other = if by == LIAR { Party::Database(Side::First) } else { LIAR };
    assert!(town.auditor.handle_reveal(&reveal, other, epoch).is_err(), "it is not asked");
    let step = town.auditor.handle_reveal(&reveal, by, epoch).unwrap();
    step.commit(&mut town.ledgers[2]).unwrap();
    town.turn();
    let why = town.transcript().abort_reason(Party::Auditor);
    assert_eq!(why, Some(BurnReason::Blamed(by, Fault::Seed)));
    let kept = town.ledgers[2].keys().filter(|key| key[..8] == [0; 8] && key[9] >= 253);
    assert_eq!(kept.count(), 2, "the proof is kept, and what opens it");
}

/// The set that the auditor settles must be the one that both databases agreed on, for databases
/// and for readers.
#[test]
fn another_set_is_not_settled() {
    let mut town = stage(4);
    town.turn();
    town.later(11);
    town.turn_with(&mut |by, _, body| {
        if let (Body::Settle { set, .. }, Party::Auditor) = (body, by) {
            set.0[0] ^= 1;
        }
    });
    let blamed = Some(BurnReason::Blamed(Party::Auditor, Fault::Set));
    let said = town.transcript();
    assert!(Side::BOTH.iter().all(|side| said.abort_reason((*side).into()) == blamed));
    assert!(town.shares == [None, None]);
    let mut town = stage(4);
    assert_eq!(run(&mut town), None);
    assert!(town.read().is_ok());
    for changed in [vec![0], vec![2], vec![0, 2]] {
        let honest = town.statements[2].clone();
        for at in &changed {
            flip_set(&mut town, *at);
        }
        assert_eq!(town.read(), Err(ReadError::Contradiction), "statements {changed:?}");
        town.statements[2] = honest;
    }
}

/// Changes the set in a statement of the auditor.
fn flip_set(town: &mut Town, at: usize) {
    let key = town.board.key(Party::Auditor).unwrap();
    let mut statement = town.statements[2][at].open(key).unwrap().into_inner();
    if let Body::Settle { set, .. } | Body::Clear { set } = &mut statement.body {
        set.0[0] ^= 1;
    }
    town.statements[2][at] = Signed::new(&statement, &server(Party::Auditor));
}
/// Each server is killed at each of its commits: one reveal, the same bytes, and the table.
#[test]
fn kills_change_neither_coin_nor_reveal() {
    for every in 1..8 {
        let mut town = stage(5);
        town.restarts = Some(every);
        town.auditor_restarts = true;
        assert_eq!(run(&mut town), None, "{every}");
        assert_eq!(town.read().unwrap().size, 5, "{every}");
    }
    let mut town = stage(5);
    town.restart(Side::First, StateOrigin::Intact);
    assert_eq!(run(&mut town), None);
}
