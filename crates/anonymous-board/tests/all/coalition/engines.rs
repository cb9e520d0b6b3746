//! Both key constructions through their common interface, and the checks that only the group needs.

use alpheus_anonymous_board::coalition::engine::{Engine, Parity, Points};
use alpheus_anonymous_board::coalition::field::Field;
use alpheus_anonymous_board::coalition::gate::{EvaluationPoint, Opening, Proof, Sums};
use alpheus_anonymous_board::coalition::group::{Group, Key, KeyError, Modular, Word};
use alpheus_anonymous_board::coalition::parity::{Grid, Permutation};
use alpheus_anonymous_board::dpf::Shape;
use alpheus_crypto::cells::{Cells, EMBEDDED_BYTES};
use alpheus_crypto::group::Element;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

fn points<F: Field>() -> Points<F> {
    let point = |which: &[u8]| F::from_hash("alpheus/test/v1", &[which]);
    Points { row: point(b"row"), r: point(b"r"), s: point(b"s") }
}

fn place<F: Field>() -> EvaluationPoint<F> {
    EvaluationPoint::from_hash("alpheus/test/v1", &[b"place"])
}

/// Whether a word and keys are accepted with a proof for given sums, and all servers' tables.
fn run<E: Engine>(
    engine: &E,
    word: &E::Word,
    keys: &[E::Key],
    sums: &Sums<E::Number>,
    rng: &mut ChaCha20Rng,
) -> (bool, Vec<E::Table>) {
    let proofs = Proof::new(sums, rng).share(keys.len(), rng);
    let (mut openings, mut tables) = (Vec::new(), Vec::new());
    for (key, proof) in keys.iter().zip(&proofs) {
        let mut table = engine.table();
        let sums = engine.add(word, key, &[points()], &mut table).pop().unwrap();
        openings.push(place().open(&sums, proof));
        tables.push(table);
    }
    (Opening::verify(&openings), tables)
}

/// The sums of what keys and word really write.
fn true_sums<E: Engine>(engine: &E, word: &E::Word, keys: &[E::Key]) -> Sums<E::Number> {
    let zero = || E::Number::node(0);
    let nothing = Sums { r: zero(), s: zero(), both: zero(), plain: zero() };
    keys.iter().fold(nothing, |sum, key| {
        let more = engine.add(word, key, &[points()], &mut engine.table()).pop().unwrap();
        Sums {
            r: sum.r.plus(&more.r),
            s: sum.s.plus(&more.s),
            both: sum.both.plus(&more.both),
            plain: sum.plain.plus(&more.plain),
        }
    })
}

fn accepted<E: Engine>(engine: &E, row: u32, message: &[u8]) -> (bool, Vec<E::Table>) {
    let rng = &mut ChaCha20Rng::from_seed([5; 32]);
    let (word, keys, known) = engine.generate(row, message, rng).unwrap();
    run(engine, &word, &keys, &engine.sums(&known, &points()), rng)
}

#[test]
fn both_write_one_row_and_are_accepted() {
    for servers in [3, 5] {
        let shape = Shape::new(20, 2).unwrap();
        let grid = Grid::new(shape, servers).unwrap();
        let parity = Parity::new(Permutation::new(&[1; 16]), grid);
        let (held, tables) = accepted(&parity, 13, &[7; 32]);
        let mut sum = vec![0; shape.bytes()];
        tables.iter().for_each(|t| sum.iter_mut().zip(t.iter()).for_each(|(a, b)| *a ^= b));
        assert!(held && sum[13 * 32..14 * 32] == [7; 32]);

        let group = Group::new(servers.into(), 20, 40);
        let message: Vec<u8> = (0..2 * EMBEDDED_BYTES as u8).collect();
        let (held, tables) = accepted(&group, 13, &message);
        let sum = total(&tables);
        assert!(held);
        for row in 0..20 {
            assert_eq!(group.read(&sum, row), (row == 13).then(|| message.clone()));
        }
    }
}

fn total(tables: &[Cells]) -> Cells {
    let mut sum = Cells::zero(tables[0].count());
    tables.iter().for_each(|table| sum.add_all(table));
    sum
}

/// A table of 16 rows in four columns for three servers, and one honest write.
fn group() -> (Group, Word, Vec<Key>, ChaCha20Rng) {
    let mut rng = ChaCha20Rng::from_seed([6; 32]);
    let group = Group::new(3, 16, EMBEDDED_BYTES);
    let (word, keys, _) = group.generate(6, &[9; EMBEDDED_BYTES], &mut rng).unwrap();
    (group, word, keys, rng)
}

#[test]
fn a_word_that_writes_two_columns_is_rejected() {
    let (group, word, keys, mut rng) = group();
    assert_eq!(group.check(1, &word, &keys[1]), Ok(()));
    for column in 0..4 {
        let mut other = word.clone();
        let more = Element::embed(&[1; EMBEDDED_BYTES], &mut rng);
        other.cells[column] = Element::combine(&[], &[&other.cells[column], &more], &[]).unwrap();
        assert_eq!(group.check(1, &other, &keys[1]), Err(KeyError::Columns), "{column}");
    }
    let mut other = word.clone();
    other.sums.swap(0, 2);
    assert_eq!(group.check(0, &other, &keys[0]), Err(KeyError::Seeds));
    assert_eq!(group.check(1, &other, &keys[1]), Err(KeyError::Columns), "all of it is bound");
    other.sums.pop();
    assert_eq!(group.check(1, &other, &keys[1]), Err(KeyError::Length));
    assert_eq!(group.check(0, &word, &keys[1]), Err(KeyError::Seeds));
}

/// Seed and mark in two positions, the seed in another position than the mark, a mark other than
/// one: each is detected, by the check named here.
#[test]
fn keys_that_write_two_rows_are_rejected() {
    let (group, word, keys, mut rng) = group();
    let changed = |at: &[usize]| {
        let mut bytes = keys[2].expose().to_vec();
        for number in at {
            let place = 32 * number..32 * (number + 1);
            let one = Modular::from_bytes(&bytes[place.clone()]).unwrap().plus(&Modular::node(1));
            bytes[place].copy_from_slice(&one.expose());
        }
        Key::from_bytes(&bytes).unwrap()
    };
    let again =
        |key: Key| [&keys[0], &keys[1]].map(copy).into_iter().chain([key]).collect::<Vec<_>>();
    // Entries 0 to 3 are marks, of which 1 is written; 4 to 7 are seeds.
    for at in [vec![0], vec![3], vec![4], vec![0, 3], vec![0, 4]] {
        let keys = again(changed(&at));
        let sums = true_sums(&group, &word, &keys);
        assert!(!run(&group, &word, &keys, &sums, &mut rng).0, "{at:?}");
    }
    let whole =
        |keys: &[Key]| keys.iter().fold(Modular::node(0), |sum, key| sum.plus(&Group::mark(key)));
    assert!(whole(&keys).equals(&Modular::node(1)));
    let two = again(changed(&[1]));
    let sums = true_sums(&group, &word, &two);
    assert!(run(&group, &word, &two, &sums, &mut rng).0, "one place, which the gate lets through");
    assert!(!whole(&two).equals(&Modular::node(1)), "a mark of two");
}

fn copy(key: &Key) -> Key {
    Key::from_bytes(&key.expose()).unwrap()
}
