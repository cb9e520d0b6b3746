//! One database says different things to different hearers: no honest server is
//! blamed, no honest database's key is opened, and the two versions are kept as proof.

use crate::malice::{LIAR, Shadow, honest_digests, recommit};
use crate::town::{Town, server};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{Grounds, What, Why, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, Received, Standing, Written};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Log;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;

const HONEST: Party = Party::Database(Side::First);

fn stage() -> (Town, Written, Received) {
    let mut town = Town::new(9, 40, 60);
    let (written, _, received) = town.post(0, Content::Message(b"mine"));
    (1..5).for_each(|member| drop(town.post(member, Content::Cover)));
    (town, written, received)
}

/// What a writer hears if the second database has changed `place` toward it, and then
/// committed to and opened a wrong digest of its write.
fn made_up(town: &Town, victim: WriteName, change: impl Fn(&mut What)) -> Transcript {
    let mut view = Transcript::new(&town.board, Epoch(0));
    for said in &town.said[0] {
        let _ = view.hear(HONEST, said);
    }
    let honest = town.transcript().audited(Side::Second).unwrap().unwrap().to_vec();
    let shadow = Shadow { victim, honest, row: 0 };
    for said in &town.said[1] {
        let mut statement = said.open(town.board.key(LIAR)).unwrap().into_inner();
        if statement.epoch != Epoch(0) {
            continue;
        }
        change(&mut statement.what);
        recommit(&shadow, &view, &mut statement.what, |audited| audited.digest.0[0] ^= 1);
        let _ = view.hear(LIAR, &Signed::new(&statement, &server(LIAR)));
    }
    view
}

/// Another coin, other candidates, other keys of the epoch: what the honest database
/// says of the write is no longer right in that view, and no key is asked for.
#[test]
fn a_view_that_was_made_up_opens_no_honest_key() {
    type Change = fn(&mut What);
    let (mut town, written, received) = stage();
    town.later(61);
    town.turn();
    let name = written.name();
    let changes: [(&str, Change, bool); 4] = [
        ("nothing but the digest", |_| (), true),
        (
            "another coin",
            |what| {
                if let What::Candidates { coin, .. } = what {
                    coin[0] ^= 1;
                }
            },
            false,
        ),
        (
            "other candidates",
            |what| {
                if let What::Candidates { writes, .. } = what {
                    writes.push(WriteName(Digest([255; 32])));
                }
            },
            false,
        ),
        (
            "other permutations",
            |what| {
                if let What::Begin { sealing, .. } = what {
                    *sealing = SealingKey::from_seed(&Secret::from_bytes([3; 32])).public();
                }
            },
            false,
        ),
    ];
    for (change, apply, complains) in changes {
        let view = made_up(&town, name, apply);
        assert!(view.audited(Side::Second).is_some(), "{change}: the view is whole");
        match written.standing(&view, &received) {
            Standing::Complain(grounds) => {
                assert!(complains, "{change}: {grounds:?}");
                assert!(matches!(*grounds, Grounds::Digest { side: Side::Second, .. }));
            }
            standing => assert!(!complains && standing == Standing::Out, "{change}: {standing:?}"),
        }
    }
}

/// What each server says in the end, and who was proven to have said two things.
fn outcome(town: &mut Town) -> ([Option<Why>; 2], Vec<Party>) {
    for _ in 0..3 {
        town.turn();
        town.later(31);
    }
    let auditor = town.auditor.transcript(Epoch(0)).unwrap().clone();
    let first = town.databases[0].transcript(Epoch(0)).unwrap().clone();
    let proven = |party: &Party| [&auditor, &first].iter().any(|t| t.conflict(*party).is_some());
    let why = [first.aborted(HONEST), auditor.aborted(Party::Auditor)];
    (why, Party::ALL.into_iter().filter(proven).collect())
}

/// Everything that follows from a statement is told to the auditor in another version,
/// consistently. Without relays nobody can be named; with them the liar is proven.
#[test]
fn who_says_two_things_has_no_other_one_blamed() {
    type Lie = fn(&Shadow, &Transcript, &mut What);
    let lies: [(&str, Lie); 3] = [
        ("another coin", |_, _, what| {
            if let What::Candidates { coin, .. } = what {
                coin[0] ^= 1;
            }
        }),
        ("other digests", |shadow, transcript, what| {
            recommit(shadow, transcript, what, |audited| audited.digest.0[0] ^= 1);
        }),
        ("another set", |_, _, what| {
            if let What::Agree { opens, .. } = what {
                opens.0[0] ^= 1;
            }
        }),
    ];
    let honest = honest_digests(stage().0);
    for (name, lie) in lies {
        for relaying in [false, true] {
            let (mut town, written, _) = stage();
            let shadow = Shadow { victim: written.name(), honest: honest.clone(), row: 0 };
            let version = move |transcript: &Transcript, what: &mut What| {
                lie(&shadow, transcript, what);
            };
            town.versions.push((LIAR, Party::Auditor, Box::new(version)));
            town.relaying = relaying;
            town.later(61);
            let (why, proven) = outcome(&mut town);
            assert!(why.iter().all(Option::is_some), "{name}: {why:?}");
            let blames = |why: &Option<Why>| matches!(why, Some(Why::Blamed(by, _)) if *by != LIAR);
            assert!(!why.iter().any(blames), "{name}: {why:?}");
            assert!(town.shares == [None, None], "{name}: nothing is revealed");
            if relaying {
                assert_eq!(proven, [LIAR], "{name}: {why:?}");
                let kept = town.ledgers[0].len();
                town.restart(Side::First, Log::Whole);
                assert_eq!(town.ledgers[0].len(), kept);
                let again = town.databases[0].transcript(Epoch(0)).unwrap().conflict(LIAR);
                let other = town.auditor.transcript(Epoch(0)).unwrap().conflict(LIAR);
                assert!(again.or(other).is_some(), "{name}: the proof outlives a restart");
            } else {
                assert!(why[1] == Some(Why::Contradiction) || proven.is_empty(), "{name}");
            }
        }
    }
}

/// Handed on out of order, or with something left away: nobody looks like a liar.
#[test]
fn who_hands_on_in_another_order_makes_nobody_a_liar() {
    let (mut town, ..) = stage();
    town.deaf = Some(Side::First);
    town.later(200);
    town.turn();
    let said = town.said[1].clone();
    let last = said[0].open(town.board.key(LIAR)).unwrap().into_inner();
    assert!(!matches!(last.what, What::Abort { .. }));
    for first in 0..said.len() {
        let mut view = Transcript::new(&town.board, Epoch(0));
        for said in said[first..].iter().chain(&said).chain(said.iter().rev()) {
            let heard = view.hear(LIAR, said);
            assert!(!matches!(heard, Ok(h) if format!("{h:?}").contains("Fault")), "{heard:?}");
        }
        assert!(view.aborted(LIAR).is_some());
        assert!(view.conflict(LIAR).is_none());
    }
}
