//! One server lies, in each of its messages: whether a write is accepted, and
//! whether the epoch goes through, must not depend on the row that was written.

use crate::town::{Town, server};
use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, Shape};
use alpheus_anonymous_board::messages::{Audited, Fault, What, Why, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::hash::Digest;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const LIAR: Party = Party::Database(Side::Second);
const HONEST: Party = Party::Database(Side::First);

/// The digests of an epoch that goes through honestly. The same town with the same
/// seed has them too: what a liar computes from its own keys.
pub(crate) fn honest_digests(mut town: Town) -> Vec<Audited> {
    town.later(61);
    town.turn();
    let transcript = town.transcript();
    transcript.audited(Side::Second).unwrap().unwrap().to_vec()
}

/// What a liar knows; of the row only the harness does, to see that its detector works.
pub(crate) struct Shadow {
    pub(crate) victim: WriteName,
    pub(crate) honest: Vec<Audited>,
    pub(crate) row: u32,
}

/// Commits to and opens the victim's digest changed, all others as they are.
pub(crate) fn recommit(
    shadow: &Shadow,
    transcript: &Transcript,
    what: &mut What,
    change: impl Fn(&mut Audited),
) {
    let Some(candidates) = transcript.candidates() else { return };
    let at = candidates.writes.binary_search(&shadow.victim).unwrap();
    let mut changed = shadow.honest.clone();
    change(&mut changed[at]);
    match what {
        What::Commit { digests, .. } => {
            *digests = transcript.binding(Side::Second, &candidates.digest, &changed, &[9; 32]);
        }
        What::Open { digests, nonce } => {
            *digests = changed;
            *nonce = [9; 32];
        }
        _ => {}
    }
}

/// The victim's digest as it is with another leaf in one row: row 3, which is the
/// written one or not. One word of that leaf's hash is one more, so each sum is more by
/// the word beside it and that one's key.
fn other_leaf(shadow: &Shadow, transcript: &Transcript, what: &mut What, block: u128) {
    const BESIDE: u64 = 0xa5a5_a5a5_a5a5_a5a5;
    let Some(candidates) = transcript.candidates() else { return };
    let cipher = Aes128Enc::new(&candidates.kappa.0.into());
    recommit(shadow, transcript, what, |audited| {
        for (sum, ahead) in audited.digest.0.chunks_exact_mut(16).zip(0..) {
            let mut words = (4 * 3 + block + ahead).to_le_bytes().into();
            cipher.encrypt_block(&mut words);
            let key = u64::from_le_bytes(words[8..].try_into().unwrap());
            let more = u128::from(BESIDE.wrapping_add(key));
            let changed = u128::from_le_bytes((&*sum).try_into().unwrap()).wrapping_add(more);
            sum.copy_from_slice(&changed.to_le_bytes());
        }
    });
}

/// What everybody can see of how an epoch went: whether the victim is in the set, what
/// the honest database said in the end, and whether it published.
type Seen = (Option<bool>, String);

type Lie = fn(&Shadow, &Transcript, &mut What);

const IN: Option<bool> = Some(true);
const OUT: Option<bool> = Some(false);
const NO_SET: Option<bool> = None;

/// Every statement of a database, changed, and what becomes of the victim's write if
/// everybody hears it so.
const LIES: &[(&str, Lie, Option<bool>)] = &[
    ("nothing", |_, _, _| (), IN),
    (
        "the victim is not listed at close",
        |shadow, _, what| {
            if let What::Close { writes } = what {
                writes.retain(|write| *write != shadow.victim);
            }
        },
        IN,
    ),
    (
        "a write that nobody made is listed",
        |_, _, what| {
            if let What::Close { writes } = what {
                writes.push(WriteName(Digest([255; 32])));
            }
        },
        IN,
    ),
    (
        "the victim is no candidate",
        |shadow, _, what| {
            if let What::Candidates { writes, .. } = what {
                writes.retain(|write| *write != shadow.victim);
            }
        },
        NO_SET,
    ),
    (
        "another coin",
        |_, _, what| {
            if let What::Candidates { coin, .. } = what {
                coin[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "another commitment",
        |_, _, what| {
            if let What::Commit { digests, .. } = what {
                digests.0[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "other candidates committed to",
        |_, _, what| {
            if let What::Commit { candidates, .. } = what {
                candidates.0[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "another nonce",
        |_, _, what| {
            if let What::Open { nonce, .. } = what {
                nonce[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "a digest fewer",
        |_, _, what| {
            if let What::Open { digests, .. } = what {
                digests.pop();
            }
        },
        NO_SET,
    ),
    (
        "the honest digests under another nonce",
        |shadow, transcript, what| {
            recommit(shadow, transcript, what, |_| ());
        },
        IN,
    ),
    (
        "one bit of the victim's digest",
        |shadow, transcript, what| {
            recommit(shadow, transcript, what, |audited| audited.digest.0[0] ^= 1);
        },
        OUT,
    ),
    ("another leaf, first block", |s, transcript, what| other_leaf(s, transcript, what, 0), OUT),
    ("another leaf, last block", |s, transcript, what| other_leaf(s, transcript, what, 3), OUT),
    (
        "the victim's words",
        |shadow, transcript, what| {
            recommit(shadow, transcript, what, |audited| audited.shared.0[0] ^= 1);
        },
        OUT,
    ),
    (
        "another set",
        |_, _, what| {
            if let What::Agree { set, .. } = what {
                set.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "another size",
        |_, _, what| {
            if let What::Agree { size, .. } = what {
                *size += 1;
            }
        },
        IN,
    ),
    (
        "a latch of another set",
        |_, _, what| {
            if let What::Latch { set, .. } = what {
                set.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "a latch of another share",
        |_, _, what| {
            if let What::Latch { share, .. } = what {
                share.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "another table",
        |_, _, what| {
            if let What::Publish { table, .. } = what {
                table.0[0] ^= 1;
            }
        },
        IN,
    ),
    (
        "something out of turn",
        |_, _, what| {
            if let What::Commit { .. } = what {
                *what = What::Settle { set: Digest([0; 32]) };
            }
        },
        NO_SET,
    ),
];

/// A writer that tries until its write goes to the row that is wanted.
fn post_to(town: &mut Town, member: u8, row: u32) -> WriteName {
    // The fate in a table with a mark in one row tells which row a write went to.
    let width = town.board.shape().width();
    loop {
        let message = b"the victim's";
        // What the writer will draw.
        let mark = town.board.format.encode(message, &mut town.rng.clone()).unwrap();
        let (written, submission) = town.write(member, Content::Message(message));
        let mut table = vec![0; town.board.shape().bytes()];
        table[row as usize * width..][..width].copy_from_slice(&mark);
        if written.fate(&table) == alpheus_anonymous_board::writer::Fate::Delivered {
            for side in Side::BOTH {
                town.submit(side, &submission).unwrap();
            }
            return written.name();
        }
    }
}

/// Rows of the table.
const ROWS: u32 = 8;

/// Runs an epoch in which the second database lies, to everybody or to one, and tells
/// what can be seen.
fn run(lie: Lie, row: u32, toward: Option<Party>) -> Seen {
    let stage = || {
        let mut town = Town::new(9, ROWS, 40);
        let victim = post_to(&mut town, 0, row);
        (1..4).for_each(|member| drop(town.post(member, Content::Cover)));
        (town, victim)
    };
    let (mut town, victim) = stage();
    let shadow = Shadow { victim, honest: honest_digests(stage().0), row };
    if let Some(hearer) = toward {
        let version = move |transcript: &Transcript, what: &mut What| {
            lie(&shadow, transcript, what);
        };
        town.versions.push((LIAR, hearer, Box::new(version)));
        (0..4).for_each(|_| {
            town.later(if town.said[0].len() < 2 { 61 } else { 11 });
            town.turn();
        });
    } else {
        town.later(61);
        for _ in 0..4 {
            town.turn_with(&mut |by, transcript, what| {
                if by == LIAR {
                    lie(&shadow, transcript, what);
                }
            });
            town.later(11);
        }
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
    for (name, lie, expected) in LIES {
        let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
        for row in [0, 3, 7] {
            let one = run(*lie, row, None);
            assert_eq!(one.0, *expected, "{name}: the lie is told, and does what it is known to");
            seen.entry(row).or_default().insert(one);
        }
        assert!(!told(&seen), "{name}: {seen:?}");
    }
}

/// The same lies, to the honest database alone or to the auditor alone.
#[test]
fn what_it_sees_of_one_hearer_does_not_either() {
    for (name, lie, _) in LIES {
        for hearer in [Party::Database(Side::First), Party::Auditor] {
            let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
            for row in [0, 3] {
                seen.entry(row).or_default().insert(run(*lie, row, Some(hearer)));
            }
            assert!(!told(&seen), "{name}, to {hearer}: {seen:?}");
        }
    }
}

/// The same harness with a lie that does depend on the row, as only the harness can
/// tell it: the detector sees that.
#[test]
fn a_lie_that_depends_on_the_row_is_seen() {
    let leak: Lie = |shadow, transcript, what| {
        if shadow.row == 3 {
            recommit(shadow, transcript, what, |audited| audited.digest.0[0] ^= 1);
        }
    };
    let mut seen: BTreeMap<u32, BTreeSet<Seen>> = BTreeMap::new();
    for row in [0, 3, 7] {
        seen.entry(row).or_default().insert(run(leak, row, None));
    }
    assert!(told(&seen), "{seen:?}");
    assert_eq!(seen[&3].first().map(|s| s.0), Some(OUT));
    assert_eq!(seen[&7].first().map(|s| s.0), Some(IN));
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
    use alpheus_anonymous_board::dpf::scalar;
    // Row by row: what a table of one row gets of the tree's leaf there.
    let mut table = vec![0; shape.bytes()];
    let bare = Key { root: key.root.duplicate(), words: key.words.clone() };
    scalar::add(prgs, shape, Side::BOTH[side], &bare, &mut table);
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

/// A share that is not the one latched is not taken, whatever byte is changed.
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
        stop |= !town.databases[0].wants_shares(Epoch(0)).is_empty();
        if stop {
            break;
        }
        town.turn();
    }
    let share = town.shares[1].clone().unwrap();
    for at in (0..share.len()).step_by(211) {
        let mut other = share.to_vec();
        other[at] ^= 1;
        assert!(town.databases[0].hear_share(Side::Second, Epoch(0), other).is_err());
    }
}

/// A server that waits for the other's commitment and numbers, and says the same, for writes
/// whose keys it has not worked out: a commitment names who made it.
#[test]
fn who_repeats_the_others_numbers_is_blamed() {
    let mut town = Town::new(9, 16, 51);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town.turn_with(&mut |by, transcript, what| {
        let Some(said) = transcript.statements(HONEST).last().filter(|_| by == LIAR) else {
            return;
        };
        let said = said.open(&server(HONEST).verifying_key()).unwrap().into_inner().what;
        if let (What::Commit { .. }, What::Commit { .. }) | (What::Open { .. }, What::Open { .. }) =
            (&*what, &said)
        {
            *what = said;
        }
    });
    let blamed = Why::Blamed(LIAR, Fault::Digests);
    assert_eq!(town.transcript().aborted(HONEST), Some(blamed));
    assert!(town.shares.iter().all(Option::is_none));
}
