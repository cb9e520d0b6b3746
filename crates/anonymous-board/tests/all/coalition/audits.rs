//! Writers that break the protocol in every way in which a key, a word or a proof can be wrong. All
//! servers reject the write, and it leaves no trace in the table.

use crate::coalition::ring::{Ring, key, party};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::coalition::audit::dangerous_write;
use alpheus_anonymous_board::coalition::engine::{Engine, Parity, Points};
use alpheus_anonymous_board::coalition::field::{Binary, Field};
use alpheus_anonymous_board::coalition::gate::{Proof, Sums};
use alpheus_anonymous_board::writer::{Content, View};
use chacha20::ChaCha20Rng;
use zeroize::Zeroizing;

/// The byte that fills the liar's message.
const MESSAGE: u8 = 0x77;

/// The word and keys of a liar, honest at first.
struct ForgedWrite {
    word: Vec<u8>,
    keys: Vec<Vec<u8>>,
}

/// A change to word and keys.
type Corruption = fn(&Parity, &mut ForgedWrite);

/// The claim that it proves, from the true sums of what it writes.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// h = f·g, as the protocol demands.
    Product,
    /// h with another highest coefficient, so that h(1) = h(2).
    Gate,
    /// The proof that would be right for one row alone.
    OneRow,
}

fn width(engine: &Parity) -> usize {
    engine.grid().shape().width()
}

/// Changes another row of the word, so that the write reaches two rows.
fn two_rows(engine: &Parity, made: &mut ForgedWrite) {
    let width = width(engine);
    let (first, second) = made.word.split_at_mut(width);
    second[..width].iter_mut().zip(first).for_each(|(a, _)| *a ^= 0x3c);
}

const CORRUPTIONS: &[(&str, Corruption)] = &[
    ("two rows", two_rows),
    ("all rows of a group", |engine, made| {
        let width = width(engine);
        made.word.chunks_mut(width).for_each(|row| row[3] ^= 1);
    }),
    // With a single vector of weights this would pass.
    ("three rows alike", |engine, made| {
        let width = width(engine);
        let others = made.word.chunks_mut(width).skip(1).take(2);
        others.for_each(|row| row.iter_mut().for_each(|byte| *byte ^= MESSAGE));
    }),
    ("a seed of one server", |_, made| {
        let last = made.keys[0].len() - 1;
        made.keys[0][last] ^= 1;
    }),
    ("the word in a group more", |_, made| made.keys[2][0] ^= 1),
    ("the word in the last group too", |engine, made| {
        let (each, last) =
            (engine.grid().key_bytes() / engine.grid().groups(), engine.grid().groups() - 1);
        made.keys[1][each * last] ^= 1;
    }),
    ("one key twice", |_, made| made.keys[0] = made.keys[1].clone()),
];

/// The sums of what keys and word really write. Only a party with all keys can know them.
fn sums(engine: &Parity, made: &ForgedWrite, points: &Points<Binary>) -> Sums<Binary> {
    let points =
        [Points { row: points.row.duplicate(), r: points.r.duplicate(), s: points.s.duplicate() }];
    let mut sum = Sums { r: zero(), s: zero(), both: zero(), plain: zero() };
    for bytes in &made.keys {
        let key = engine.key(Zeroizing::new(bytes.clone())).unwrap();
        let mut table = engine.table();
        let share = engine.add(&made.word, &key, &points, &mut table).pop().unwrap();
        sum = Sums {
            r: sum.r.plus(&share.r),
            s: sum.s.plus(&share.s),
            both: sum.both.plus(&share.both),
            plain: sum.plain.plus(&share.plain),
        };
    }
    sum
}

fn zero() -> Binary {
    Binary::node(0)
}

/// A proof whose h is changed so that the gate holds.
fn gated(proof: &Proof<Binary>) -> Proof<Binary> {
    let mut bytes = proof.expose();
    let at = |bytes: &[u8], i: usize| Binary::from_bytes(&bytes[16 * i..][..16]).unwrap();
    // h(1) − h(2) = Σ hₖ·(1 − 2ᵏ). The last coefficient is changed to make it zero.
    let (one, two) = (Binary::node(1), Binary::node(2));
    let factor = |k: u32| one.minus(&two.power(k));
    let gate =
        (0..5_u32).fold(zero(), |sum, k| sum.plus(&at(&bytes, 2 + k as usize).times(&factor(k))));
    let last = at(&bytes, 6).minus(&gate.times(&factor(4).inverse()));
    bytes[96..].copy_from_slice(&last.expose());
    Proof::from_bytes(&bytes).unwrap()
}

/// Whether the liar's write is in the set, beside two honest ones. The table must hold these and
/// nothing else.
fn run(servers: usize, corrupt: Option<Corruption>, claim: Claim) -> bool {
    let mut ring = Ring::new(servers, 40, 60);
    (1..3).for_each(|i| drop(ring.post(i, Content::Message(b"honest"))));
    let view = View::open(&ring.board, &ring.transcript()).unwrap();
    let liar = key(0);
    let tag = Members::tag_of(&liar.verifying_key());
    let make = |engine: &Parity, bound: &_, rng: &mut ChaCha20Rng| {
        let message = vec![MESSAGE; width(engine)];
        let (word, keys, known) = engine.generate(0, &message, rng).unwrap();
        let keys = keys.iter().map(|key| key.expose().to_vec()).collect();
        let mut made = ForgedWrite { word, keys };
        corrupt.into_iter().for_each(|corrupt| corrupt(engine, &mut made));
        let prove = |points: &Points<Binary>, rng: &mut ChaCha20Rng| match claim {
            Claim::Product => Proof::new(&sums(engine, &made, points), rng),
            Claim::Gate => gated(&Proof::new(&sums(engine, &made, points), rng)),
            Claim::OneRow => Proof::new(&engine.sums(&known, points), rng),
        };
        let keys: Vec<&[u8]> = made.keys.iter().map(Vec::as_slice).collect();
        dangerous_write(bound, made.word.clone(), &keys, prove, rng)
    };
    let ticket = |name: &_| Members::ticket(&liar, name);
    let submission = view.dangerous_submission(&tag, make, ticket, &mut ring.rng).unwrap();
    (0..servers).for_each(|i| drop(ring.submit(i, &submission).unwrap()));
    let reading = ring.finish().unwrap();
    let name = submission.name(&ring.board.fingerprint());
    let transcript = ring.transcript();
    let accepted = transcript.set().unwrap().unwrap().accepted.contains(&name);
    assert_eq!(reading.size, 2 + u32::from(accepted));
    let agreed = transcript.set().unwrap().unwrap();
    for i in 0..servers {
        assert_eq!(
            transcript.agrees(party(i), agreed),
            Some(Ok(())),
            "all servers state the same set"
        );
    }
    let width = ring.board.shape().width();
    let table = ring.tables[0].clone().unwrap();
    let written = table.chunks(width).filter(|row| row.iter().any(|byte| *byte != 0)).count();
    assert!(accepted || written <= 2, "it leaves no trace");
    accepted
}

#[test]
fn invalid_writes_are_rejected_whatever_their_proof_claims() {
    for servers in [3, 4] {
        for (name, corrupt) in CORRUPTIONS {
            for claim in [Claim::Product, Claim::Gate, Claim::OneRow] {
                assert!(!run(servers, Some(*corrupt), claim), "{name}, {claim:?}");
            }
        }
    }
}

/// One copy of the audit can be fooled by trying hashes. A write whose proof is right in one copy
/// and wrong in the other is rejected, whichever it is.
#[test]
fn both_copies_of_the_audit_count() {
    for wrong in [None, Some(0), Some(1)] {
        let mut ring = Ring::new(3, 40, 61);
        (1..3).for_each(|i| drop(ring.post(i, Content::Message(b"honest"))));
        let view = View::open(&ring.board, &ring.transcript()).unwrap();
        let liar = key(0);
        let tag = Members::tag_of(&liar.verifying_key());
        let copy = std::cell::Cell::new(0);
        let make = |engine: &Parity, bound: &_, rng: &mut ChaCha20Rng| {
            let message = vec![MESSAGE; width(engine)];
            let (word, keys, known) = engine.generate(0, &message, rng).unwrap();
            let prove = |points: &Points<Binary>, rng: &mut ChaCha20Rng| {
                let mut sums = engine.sums(&known, points);
                if wrong == Some(copy.replace(copy.get() + 1)) {
                    sums.r = sums.r.plus(&Binary::node(1));
                }
                Proof::new(&sums, rng)
            };
            let keys: Vec<&[u8]> = keys.iter().map(|key| key.expose()).collect();
            dangerous_write(bound, word, &keys, prove, rng)
        };
        let ticket = |name: &_| Members::ticket(&liar, name);
        let submission = view.dangerous_submission(&tag, make, ticket, &mut ring.rng).unwrap();
        (0..3).for_each(|i| drop(ring.submit(i, &submission).unwrap()));
        let size = 2 + u32::from(wrong.is_none());
        assert_eq!(ring.finish().unwrap().size, size, "wrong in copy {wrong:?}");
    }
}

/// The same harness accepts an unchanged write, even of garbage in one row, which is its writer's
/// own affair.
#[test]
fn one_row_of_anything_is_accepted() {
    for claim in [Claim::Product, Claim::OneRow] {
        assert!(run(3, None, claim));
    }
}

/// Why r and s are drawn separately: if they were equal, three rows with the same message would
/// pass in a field of characteristic two.
#[test]
fn with_one_vector_three_equal_rows_would_pass() {
    let (r, m) =
        ([3, 5, 9].map(|k| Binary::node(2).power(k)), Binary::from_hash("alpheus/test/v1", &[]));
    let sum =
        |weights: &[Binary]| weights.iter().fold(zero(), |sum, weight| sum.plus(&weight.times(&m)));
    let squares: Vec<Binary> = r.iter().map(|r| r.times(r)).collect();
    let plain = m.plus(&m).plus(&m);
    assert!(sum(&r).times(&sum(&r)).equals(&sum(&squares).times(&plain)), "r alone is fooled");
    let s = [7, 2, 8].map(|k| Binary::node(2).power(k));
    let both: Vec<Binary> = r.iter().zip(&s).map(|(r, s)| r.times(s)).collect();
    assert!(!sum(&r).times(&sum(&s)).equals(&sum(&both).times(&plain)), "r and s are not");
}
