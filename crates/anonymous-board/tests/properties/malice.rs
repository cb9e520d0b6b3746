//! One server lies, in each of its messages: whether a write is accepted, and
//! whether the epoch goes through, must not depend on the row that was written.

use crate::town::Town;
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, Shape};
use alpheus_anonymous_board::messages::{Audited, What, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::hash::Digest;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const LIAR: Party = Party::Database(Side::Second);

/// The digests of an epoch that goes through honestly. The same town with the same
/// seed has them too: what a liar computes from its own keys.
pub(crate) fn honest_digests(mut town: Town) -> Vec<Audited> {
    town.later(61);
    town.turn();
    let transcript = town.transcript();
    transcript.audited(Side::Second).unwrap().unwrap().to_vec()
}

/// What a liar has in mind.
pub(crate) struct Shadow {
    pub(crate) victim: WriteName,
    pub(crate) digests: Vec<Audited>,
    pub(crate) delta: u8,
}

/// Commits to and opens the victim's digest changed, all others as they are.
pub(crate) fn recommit(
    shadow: &mut Shadow,
    transcript: &Transcript,
    what: &mut What,
    change: impl Fn(&mut Audited),
) {
    let Some(candidates) = transcript.candidates() else { return };
    let at = candidates.writes.binary_search(&shadow.victim).unwrap();
    match what {
        What::Commit { digests, .. } => {
            change(&mut shadow.digests[at]);
            let (known, digest) = (&shadow.digests, &candidates.digest);
            *digests = transcript.binding(Side::Second, digest, known, &[9; 32]);
        }
        What::Open { digests, nonce } => {
            digests.clone_from(&shadow.digests);
            *nonce = [9; 32];
        }
        _ => {}
    }
}

/// What everybody can see of how an epoch went.
type Seen = (Option<bool>, String);

type Lie = fn(&mut Shadow, &Transcript, &mut What);

/// Every message of a database, changed in every way that matters.
const LIES: &[(&str, Lie)] = &[
    ("nothing", |_, _, _| ()),
    ("the victim is not listed at close", |shadow, _, what| {
        if let What::Close { writes } = what {
            writes.retain(|write| *write != shadow.victim);
        }
    }),
    ("a write that nobody made is listed", |_, _, what| {
        if let What::Close { writes } = what {
            writes.push(WriteName(Digest([255; 32])));
        }
    }),
    ("the victim is no candidate", |shadow, _, what| {
        if let What::Candidates { writes, .. } = what {
            writes.retain(|write| *write != shadow.victim);
        }
    }),
    ("another coin", |_, _, what| {
        if let What::Candidates { coin, .. } = what {
            coin[0] ^= 1;
        }
    }),
    ("another commitment", |_, _, what| {
        if let What::Commit { digests, .. } = what {
            digests.0[0] ^= 1;
        }
    }),
    ("other candidates committed to", |_, _, what| {
        if let What::Commit { candidates, .. } = what {
            candidates.0[0] ^= 1;
        }
    }),
    ("another nonce", |_, _, what| {
        if let What::Open { nonce, .. } = what {
            nonce[0] ^= 1;
        }
    }),
    ("a digest fewer", |_, _, what| {
        if let What::Open { digests, .. } = what {
            digests.pop();
        }
    }),
    ("the honest digests under another nonce", |shadow, transcript, what| {
        recommit(shadow, transcript, what, |_| ());
    }),
    ("one bit of the victim's digest", |shadow, transcript, what| {
        recommit(shadow, transcript, what, |audited| audited.low[0] ^= 1);
    }),
    ("one row's part of the victim's digest", |shadow, transcript, what| {
        let delta = shadow.delta;
        recommit(shadow, transcript, what, |audited| audited.high[31] ^= delta | 1);
    }),
    ("the victim's words", |shadow, transcript, what| {
        recommit(shadow, transcript, what, |audited| audited.shared.0[0] ^= 1);
    }),
    ("another set", |_, _, what| {
        if let What::Agree { set, .. } = what {
            set.0[0] ^= 1;
        }
    }),
    ("another size", |_, _, what| {
        if let What::Agree { size, .. } = what {
            *size += 1;
        }
    }),
    ("a latch of another set", |_, _, what| {
        if let What::Latch { set, .. } = what {
            set.0[0] ^= 1;
        }
    }),
    ("a latch of another share", |_, _, what| {
        if let What::Latch { share, .. } = what {
            share.0[0] ^= 1;
        }
    }),
    ("another table", |_, _, what| {
        if let What::Publish { table, .. } = what {
            table.0[0] ^= 1;
        }
    }),
    ("something out of turn", |_, _, what| {
        if let What::Commit { .. } = what {
            *what = What::Settle { set: Digest([0; 32]) };
        }
    }),
];

/// A writer that tries until its write goes to the row that is wanted.
fn post_to(town: &mut Town, member: u8, row: u32) -> WriteName {
    // The fate in a table with a mark in one row tells which row a write went to.
    let width = town.board.shape().width();
    loop {
        let message = b"the victim's";
        let (written, submission) = town.write(member, Content::Message(message));
        let mut table = vec![0; town.board.shape().bytes()];
        let rng = &mut ChaCha20Rng::from_seed([0; 32]);
        let mark = town.board.format.encode(message, rng).unwrap();
        table[row as usize * width..][..width].copy_from_slice(&mark);
        if written.fate(&table) == alpheus_anonymous_board::writer::Fate::Delivered {
            for side in Side::BOTH {
                town.submit(side, &submission).unwrap();
            }
            return written.name();
        }
    }
}

/// Runs an epoch in which the second database lies, and tells what can be seen.
fn run(lie: Lie, row: u32, seed: u8) -> Seen {
    let stage = || {
        let mut town = Town::new(9, 8, seed);
        let victim = post_to(&mut town, 0, row);
        (1..4).for_each(|member| drop(town.post(member, Content::Cover)));
        (town, victim)
    };
    let (mut town, victim) = stage();
    let mut shadow = Shadow { victim, digests: honest_digests(stage().0), delta: seed };
    town.later(61);
    for _ in 0..2 {
        town.turn_with(&mut |by, transcript, what| {
            if by == LIAR {
                lie(&mut shadow, transcript, what);
            }
        });
        town.later(11);
    }
    let transcript = town.transcript();
    let accepted = transcript.set().and_then(Result::ok).map(|set| set.accepted.contains(&victim));
    let first = town.databases[0].transcript(Epoch(0)).unwrap();
    let own = Party::Database(Side::First);
    (accepted, format!("{:?} {:?}", first.aborted(own), first.published(Side::First).is_some()))
}

/// Rows of which what is seen is not what is seen of the others.
fn told<T: Ord + Clone>(seen: &BTreeMap<u32, BTreeSet<T>>) -> bool {
    let all: BTreeSet<&BTreeSet<T>> = seen.values().collect();
    all.len() > 1
}

#[test]
fn what_a_lying_server_sees_does_not_depend_on_the_row() {
    for (name, lie) in LIES {
        let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
        for row in [0, 3, 7] {
            for seed in 40..41 {
                seen.entry(row).or_default().insert(run(*lie, row, seed));
            }
        }
        assert!(!told(&seen), "{name}: {seen:?}");
    }
}

/// The same detector on the audit of the paper as it first stood (AlmostEqual, §V-A):
/// a server that changes its entry j learns from acceptance whether the row is j.
#[test]
fn the_first_audit_of_riposte_would_have_told() {
    let (prgs, shape) = (Prgs::new(&[1; 16], &[2; 16], &[3; 16]), Shape::new(8, 1).unwrap());
    let rng = &mut ChaCha20Rng::from_seed([5; 32]);
    let mut seen: BTreeMap<u32, BTreeSet<bool>> = BTreeMap::new();
    for row in 0..8 {
        for _ in 0..4 {
            let keys = generate(&prgs, &shape, row, &[7; 16], rng).unwrap();
            let [first, mut second] = [0, 1].map(|i| entries(&prgs, &shape, i, &keys[i]));
            let honest = differing(&first, &second) == 1;
            assert!(honest, "an honest pair is accepted");
            second[3][0] ^= 1;
            seen.entry(row).or_default().insert(differing(&first, &second) == 1);
        }
    }
    assert!(told(&seen), "the detector sees a leak where there is one");
    assert_eq!(seen[&3], BTreeSet::from([true]), "accepted, if the row is the changed one");
    assert_eq!(seen[&4], BTreeSet::from([false]));
}

/// One server's vector of the first audit: an entry for each row, equal to the other
/// server's everywhere but at the written row.
fn entries(prgs: &Prgs, shape: &Shape, side: usize, key: &Key) -> Vec<[u8; 64]> {
    use alpheus_anonymous_board::dpf::digest::Kappa;
    use alpheus_anonymous_board::dpf::scalar;
    // Row by row: what a table of one row gets of the tree's leaf there.
    let mut table = vec![0; shape.bytes()];
    let bare = Key { root: key.root.duplicate(), words: key.words.clone() };
    scalar::add(prgs, shape, Side::BOTH[side], &bare, &mut table);
    let _ = scalar::digest(prgs, shape, Side::BOTH[side], key, &Kappa([1; 16]));
    let entry = |row: &[u8]| {
        let mut entry = [0; 64];
        entry[..row.len()].copy_from_slice(row);
        entry
    };
    table.chunks(shape.width()).map(entry).collect()
}

fn differing(a: &[[u8; 64]], b: &[[u8; 64]]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// A share that is not the one latched is not taken, whatever byte is changed; and
/// the honest database's own share is masked: alone it is noise.
#[test]
fn a_share_is_the_latched_one_or_none() {
    let mut town = Town::new(9, 16, 50);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town.turn();
    town.later(11);
    // Up to both latches, and no further.
    let mut stop = false;
    for _ in 0..8 {
        for side in Side::BOTH {
            let i = side.index();
            for party in [Party::Database(side.other()), Party::Auditor] {
                for said in town.said[party.index()].clone() {
                    if let Ok(step) = town.databases[i].hear(party, Epoch(0), &said) {
                        drop(town.commit(side, step));
                    }
                }
            }
        }
        stop |= town.databases[0].wants_share(Epoch(0));
        if stop {
            break;
        }
        town.turn();
    }
    let share = town.shares[1].clone().unwrap();
    for at in (0..share.len()).step_by(211) {
        let mut other = share.to_vec();
        other[at] ^= 1;
        assert!(town.databases[0].hear_share(Epoch(0), other).is_err());
    }
    let zeros = share.iter().filter(|byte| **byte == 0).count();
    assert!(
        zeros < share.len() / 100,
        "an unmasked share of covers would be as random, but its sum is not"
    );
}
