//! One server lies in each of its messages. Whether a write is accepted and the epoch succeeds must
//! not depend on the written row.

use crate::malice::{
    self, Foreknowledge, IN, Lie, NO_SET, NamedLie, OUT, Observation,
    assert_no_lie_reveals_the_row, assert_no_lie_to_one_reveals_the_row, differs, observations,
};
use crate::properties::town::{Town, server};
use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, Shape};
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, WriteDigest, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::hash::Digest;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const LIAR: Party = Party::Database(Side::Second);
const HONEST: Party = Party::Database(Side::First);

/// The digests of an honest epoch. The same town with the same seed has them too: a liar can
/// compute them from its own keys.
pub(crate) fn honest_digests(mut town: Town) -> Vec<WriteDigest> {
    town.later(61);
    town.turn();
    let transcript = town.transcript();
    transcript.opened_digests(Side::Second).unwrap().unwrap().to_vec()
}

/// A liar's knowledge. Only the harness knows the row, to check that its detector works.
pub(crate) struct Shadow {
    pub(crate) victim: WriteName,
    pub(crate) honest: Vec<WriteDigest>,
    pub(crate) row: u32,
}

impl malice::Shadow for Shadow {
    fn victim(&self) -> WriteName {
        self.victim
    }
}

/// Commits to and opens the digests with the victim's changed.
pub(crate) fn recommit(
    shadow: &Shadow,
    transcript: &Transcript,
    body: &mut Body,
    change: impl Fn(&mut WriteDigest),
) {
    let Some(candidates) = transcript.candidates() else { return };
    let at = candidates.writes.binary_search(&shadow.victim).unwrap();
    let mut changed = shadow.honest.clone();
    change(&mut changed[at]);
    match body {
        Body::Commit { digests, .. } => {
            *digests =
                transcript.digest_commitment(Side::Second, &candidates.digest, &changed, &[9; 32]);
        }
        Body::Open { digests, nonce } => {
            *digests = changed;
            *nonce = [9; 32];
        }
        _ => {}
    }
}

/// The victim's digest with another leaf in row 3, which is the written row or not. One word of
/// that leaf's hash grows by one, so each sum grows by the neighbouring word plus its key.
fn other_leaf(shadow: &Shadow, transcript: &Transcript, body: &mut Body, block: u128) {
    const BESIDE: u64 = 0xa5a5_a5a5_a5a5_a5a5;
    let Some(candidates) = transcript.candidates() else { return };
    let cipher = Aes128Enc::new(&candidates.kappa.0.into());
    recommit(shadow, transcript, body, |audited| {
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

/// A change to each statement that servers of this mode alone make.
const LIES: &[NamedLie<Shadow>] = &[
    (
        "another nonce",
        |_, _, body| {
            if let Body::Open { nonce, .. } = body {
                nonce[0] ^= 1;
            }
        },
        NO_SET,
    ),
    (
        "a digest fewer",
        |_, _, body| {
            if let Body::Open { digests, .. } = body {
                digests.pop();
            }
        },
        NO_SET,
    ),
    (
        "the honest digests under another nonce",
        |shadow, transcript, body| {
            recommit(shadow, transcript, body, |_| ());
        },
        IN,
    ),
    (
        "one bit of the victim's digest",
        |shadow, transcript, body| {
            recommit(shadow, transcript, body, |audited| audited.digest.0[0] ^= 1);
        },
        OUT,
    ),
    ("another leaf, first block", |s, transcript, body| other_leaf(s, transcript, body, 0), OUT),
    ("another leaf, last block", |s, transcript, body| other_leaf(s, transcript, body, 3), OUT),
    (
        "the victim's words",
        |shadow, transcript, body| {
            recommit(shadow, transcript, body, |audited| audited.shared.0[0] ^= 1);
        },
        OUT,
    ),
    (
        "something out of turn",
        |_, _, body| {
            if let Body::Commit { .. } = body {
                *body = Body::Clear { set: Digest([0; 32]) };
            }
        },
        NO_SET,
    ),
];

/// A change to each statement of a server.
fn lies() -> Vec<NamedLie<Shadow>> {
    <Shadow as malice::Shadow>::COMMON_LIES.iter().chain(LIES).copied().collect()
}

/// Writes repeatedly until a write goes to the wanted row.
fn post_to(town: &mut Town, member: u8, row: u32) -> WriteName {
    // The fate in a table with a mark in one row reveals which row a write went to.
    let width = town.board.shape().width();
    loop {
        let message = b"the victim's";
        // The writer will draw the same randomness.
        let mut same = ChaCha20Rng::deserialize_state(&town.rng.serialize_state());
        let mark = town.board.format.encode(message, &mut same).unwrap();
        let (written, submission) = town.write(member, Content::Message(message));
        let mut table = vec![0; town.board.shape().bytes()];
        table[row as usize * width..][..width].copy_from_slice(&mark);
        if written.fate_in(&table) == alpheus_anonymous_board::writer::Fate::Delivered {
            for side in Side::BOTH {
                town.submit(side, &submission).unwrap();
            }
            return written.name();
        }
    }
}

static HONEST_DIGESTS: Foreknowledge<Vec<WriteDigest>> = Foreknowledge::new();

/// Rows of the table.
const ROWS: u32 = 8;

/// Runs an epoch in which the second database lies, to everybody or to one receiver, and returns
/// what can be seen.
fn run(lie: Lie<Shadow>, row: u32, toward: Option<Party>) -> Observation {
    let stage = || {
        let mut town = Town::new(9, ROWS, 40);
        let victim = post_to(&mut town, 0, row);
        (1..4).for_each(|member| drop(town.post(member, Content::Cover)));
        (town, victim)
    };
    let (mut town, victim) = stage();
    let honest = HONEST_DIGESTS.of(row, || honest_digests(stage().0));
    let shadow = Shadow { victim, honest, row };
    if let Some(hearer) = toward {
        let version = move |transcript: &Transcript, body: &mut Body| {
            lie(&shadow, transcript, body);
        };
        town.versions.push((LIAR, hearer, Box::new(version)));
        (0..4).for_each(|_| {
            town.later(if town.statements[0].len() < 2 { 61 } else { 11 });
            town.turn();
        });
    } else {
        town.later(61);
        for _ in 0..4 {
            town.turn_with(&mut |by, transcript, body| {
                if by == LIAR {
                    lie(&shadow, transcript, body);
                }
            });
            town.later(11);
        }
    }
    let transcript = town.transcript();
    let accepted = transcript.set().and_then(Result::ok).map(|set| set.accepted.contains(&victim));
    let first = town.databases[0].transcript(Epoch(0)).unwrap();
    let own = Party::Database(Side::First);
    (
        accepted,
        format!("{:?} {:?}", first.abort_reason(own), first.published_table(Side::First).is_some()),
    )
}

#[test]
fn what_a_lying_server_sees_does_not_depend_on_the_row() {
    assert_no_lie_reveals_the_row(&lies(), |lie, row| run(lie, row, None));
}

/// The same lies, but only to the honest database or only to the auditor.
#[test]
fn what_it_sees_after_lying_to_one_receiver_does_not_depend_on_the_row() {
    let receivers = [Party::Database(Side::First), Party::Auditor];
    assert_no_lie_to_one_reveals_the_row(&lies(), &receivers, |lie, row, receiver| {
        run(lie, row, Some(receiver))
    });
}

/// The same harness with a lie that does depend on the row, which only the harness can tell. The
/// detector notices it.
#[test]
fn a_lie_that_depends_on_the_row_is_detected() {
    let leak: Lie<Shadow> = |shadow, transcript, body| {
        if shadow.row == 3 {
            recommit(shadow, transcript, body, |audited| audited.digest.0[0] ^= 1);
        }
    };
    let seen = observations(&[0, 3, 7], |row| run(leak, row, None));
    assert!(differs(&seen), "{seen:?}");
    assert_eq!(seen[&3].first().map(|s| s.0), Some(OUT));
    assert_eq!(seen[&7].first().map(|s| s.0), Some(IN));
}

/// The same detector on the paper's first audit (AlmostEqual, §V-A): a server that changes its
/// entry j learns from acceptance whether the row is j.
#[test]
fn the_first_audit_of_riposte_reveals_the_row() {
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
    assert!(differs(&seen), "the detector sees a leak where there is one");
    assert_eq!(seen[&3], BTreeSet::from([true]), "accepted, if the row is the changed one");
    assert_eq!(seen[&4], BTreeSet::from([false]));
}

/// One server's vector in the first audit: an entry for each row, equal to the other server's
/// except at the written row.
fn entries(prgs: &Prgs, shape: &Shape, side: usize, key: &Key) -> Vec<[u8; 64]> {
    use alpheus_anonymous_board::dpf::scalar;
    // The entry of a row is what its leaf adds to the table.
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

/// A share that does not match the latch is rejected, whichever byte differs.
#[test]
fn only_the_latched_share_is_accepted() {
    let mut town = Town::new(9, 16, 50);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town.turn();
    town.later(11);
    // Run until both have latched, and no further.
    let mut stop = false;
    for _ in 0..8 {
        for side in Side::BOTH {
            let i = side.index();
            for party in [Party::Database(side.other()), Party::Auditor] {
                for said in town.statements[party.index()].clone() {
                    if let Ok(step) = town.databases[i].handle_statement(&said, party, Epoch(0)) {
                        drop(town.commit(side, step));
                    }
                }
            }
        }
        stop |= !town.databases[0].missing_shares(Epoch(0)).is_empty();
        if stop {
            break;
        }
        town.turn();
    }
    let share = town.shares[1].clone().unwrap();
    for at in (0..share.len()).step_by(211) {
        let mut other = share.to_vec();
        other[at] ^= 1;
        assert!(town.databases[0].handle_share(other, Side::Second, Epoch(0)).is_err());
    }
}

/// A server waits for the other's commitment and opening, and repeats them, for writes whose keys
/// it has not expanded. A commitment covers its maker, so this fails.
#[test]
fn a_database_that_repeats_the_others_opening_is_blamed() {
    let mut town = Town::new(9, 16, 51);
    (0..4).for_each(|member| drop(town.post(member, Content::Message(b"hello"))));
    town.later(61);
    town.turn_with(&mut |by, transcript, body| {
        let Some(said) = transcript.statements(HONEST).last().filter(|_| by == LIAR) else {
            return;
        };
        let said = said.open(&server(HONEST).verifying_key()).unwrap().into_inner().body;
        if let (Body::Commit { .. }, Body::Commit { .. }) | (Body::Open { .. }, Body::Open { .. }) =
            (&*body, &said)
        {
            *body = said;
        }
    });
    let blamed = BurnReason::Blamed(LIAR, Fault::Digests);
    assert_eq!(town.transcript().abort_reason(HONEST), Some(blamed));
    assert!(town.shares.iter().all(Option::is_none));
}
