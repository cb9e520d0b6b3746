//! Values are exact, and every lie about them is refused.

use super::elements::Target;
use super::keys::Keys;
use super::messages::{Answer, BadBlock, Block, Function, Shape, Statistic, ValueTag};
use super::owner::{Owner, SealError};
use super::parameters::PairingSet;
use super::scalars::signed;
use super::server::Evaluation;
use super::verifier::{Prepared, Verifier};
use crate::TableKey;
use crate::error::{BadRequest, Refusal};
use crate::label::{Column, DataSet};
use crate::messages::Weights;
use alpheus_crypto::secret::Secret;
use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use group::{Curve, Group};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::sync::OnceLock;

const SHAPE: Shape = Shape { set: PairingSet::P80, columns: 2, bound: 1000 };
const X: Column = Column(0);
const Y: Column = Column(1);
const BLOCKS: u64 = 3;

fn key(byte: u8) -> TableKey {
    TableKey::new(Secret::from_bytes([byte; 32]))
}

/// The item of a column, block and slot.
fn item(column: u16, block: u64, slot: i64) -> i64 {
    (slot * 37 + i64::from(column) * 11 + block.cast_signed() * 501) % 2001 - 1000
}

fn data_set(seed: u8) -> (DataSet, Vec<Block>) {
    let mut rng = ChaCha20Rng::from_seed([seed; 32]);
    let mut owner = Owner::begin(&key(9), SHAPE, &mut rng).unwrap();
    let columns = |block| [0, 1].map(|c| (0..8192).map(|slot| item(c, block, slot)).collect());
    let blocks = (0..BLOCKS).map(|block| owner.seal(&columns(block), &mut rng).unwrap());
    let blocks = blocks.collect();
    assert_eq!(owner.blocks(), BLOCKS);
    (owner.data_set(), blocks)
}

/// Two data sets of the same items, and who checks them.
struct World {
    first: (DataSet, Vec<Block>),
    second: (DataSet, Vec<Block>),
    verifier: Verifier,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| World {
        first: data_set(1),
        second: data_set(2),
        verifier: Verifier::new(&key(9), SHAPE).unwrap(),
    })
}

fn evaluate(function: &Function, blocks: &[Block]) -> Answer {
    let mut evaluation = Evaluation::new(&SHAPE, function).unwrap();
    let (from, to) = (function.from, function.to);
    for block in blocks.iter().filter(|block| (from..to).contains(&block.index())) {
        evaluation.add(block).unwrap();
    }
    evaluation.answer().unwrap()
}

fn over(of: Statistic) -> Function {
    Function { of, from: 0, to: BLOCKS }
}

fn functions() -> [Function; 6] {
    let each = || Weights::Each(0, vec![5, -7, 1 << 20]);
    [
        over(Statistic::Sum(X, Weights::Ones)),
        over(Statistic::Sum(Y, Weights::Polynomial(vec![3, -2, 1]))),
        over(Statistic::Products(X, Y, Weights::Ones)),
        over(Statistic::Products(X, X, each())),
        over(Statistic::Covariance(X, Y)),
        over(Statistic::Covariance(Y, Y)),
    ]
}

/// In the clear.
fn expected(function: &Function, slot: i64) -> i128 {
    let [a, b] = function.columns().map(|column| column.0);
    let weight = |i: u64| match function.weights() {
        Weights::Each(_, weights) => weights[usize::try_from(i).unwrap()],
        Weights::Polynomial(_) => {
            let i = i128::from(i);
            3 - 2 * i + i * i
        }
        _ => 1,
    };
    let x = |column, i| i128::from(item(column, i, slot));
    let sum = |of: &dyn Fn(u64) -> i128| (0..BLOCKS).map(of).sum::<i128>();
    let products = sum(&|i| weight(i) * x(a, i) * x(b, i));
    match function.of {
        Statistic::Sum(..) => sum(&|i| weight(i) * x(a, i)),
        Statistic::Products(..) => products,
        Statistic::Covariance(..) => {
            i128::from(BLOCKS) * products - sum(&|i| x(a, i)) * sum(&|i| x(b, i))
        }
    }
}

/// One preparation serves all data sets.
#[test]
fn values_are_exact_over_every_data_set() {
    let World { first, second, verifier } = world();
    for function in functions() {
        let prepared = verifier.prepare(function.clone()).unwrap();
        for (data_set, blocks) in [first, second] {
            let answer = evaluate(&function, blocks).to_bytes();
            let opened = prepared.verify(data_set, &answer).unwrap().decrypt();
            let slots = (0_i64..).zip(opened.slots());
            assert!(slots.clone().count() == 8192);
            slots.for_each(|(slot, x)| assert_eq!(*x, expected(&function, slot), "{function:?}"));
        }
    }
}

fn refused(prepared: &Prepared, data_set: &DataSet, answer: &[u8], why: &str) {
    assert!(prepared.verify(data_set, answer).is_err(), "{why}");
}

/// What the server is asked, and what it computed instead.
#[test]
fn other_functions_blocks_and_data_sets_are_refused() {
    let World { first: (data_set, blocks), second: (other, others), verifier } = world();
    let mixed = [&blocks[0], &others[1], &blocks[2]].map(|block| {
        // The server may call a block what it likes.
        Block { data_set: *data_set, ..block.clone() }
    });
    let sum = over(Statistic::Sum(X, Weights::Ones));
    let products = over(Statistic::Products(X, Y, Weights::Ones));
    let renamed = |index: u64, as_index: u64| Block {
        index: as_index,
        ..blocks[usize::try_from(index).unwrap()].clone()
    };
    let linear = |column| Statistic::Sum(column, Weights::Ones);
    let weighted = |weights| over(Statistic::Sum(X, Weights::Each(0, weights)));
    for function in [&sum, &products] {
        let prepared = verifier.prepare(function.clone()).unwrap();
        let lie = |blocks: &[Block], why| {
            refused(&prepared, data_set, &evaluate(function, blocks).to_bytes(), why);
        };

        lie(&[renamed(0, 0), renamed(0, 1), renamed(2, 2)], "one twice, one not at all");
        lie(others, "another data set's blocks");
        lie(&mixed, "one of another data set");
        let honest = evaluate(function, blocks).to_bytes();
        refused(&prepared, other, &honest, "an answer about another data set");
    }
    let prepared = verifier.prepare(sum.clone()).unwrap();
    for (function, why) in [
        (Function { to: 2, ..sum.clone() }, "a block dropped"),
        (over(linear(Y)), "another column"),
        (weighted(vec![1, 1, 2]), "other weights"),
        (weighted(vec![2, 2, 2]), "scaled"),
    ] {
        refused(&prepared, data_set, &evaluate(&function, blocks).to_bytes(), why);
    }
    let prepared = verifier.prepare(products).unwrap();
    let squares = over(Statistic::Products(X, X, Weights::Ones));
    for (function, why) in [(squares, "x² for xy"), (over(Statistic::Covariance(X, Y)), "another")]
    {
        refused(&prepared, data_set, &evaluate(&function, blocks).to_bytes(), why);
    }
}

/// A sum of the same blocks in another order is that sum; a weighted one is not.
#[test]
fn blocks_under_others_weights_are_refused() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    let function = over(Statistic::Sum(X, Weights::Each(0, vec![1, 2, 3])));
    let prepared = verifier.prepare(function.clone()).unwrap();
    let [a, b, c] = [0, 1, 2].map(|i: usize| blocks[i].clone());
    let swapped = [a, Block { index: 1, ..c }, Block { index: 2, ..b }];
    refused(&prepared, data_set, &evaluate(&function, &swapped).to_bytes(), "swapped");
}

/// Every part of an answer, changed alone, and together where that could cancel.
#[test]
fn changed_answers_are_refused() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    let function = over(Statistic::Sum(X, Weights::Ones));
    let prepared = verifier.prepare(function.clone()).unwrap();
    let honest = evaluate(&function, blocks);
    let ValueTag::Linear(t, x) = honest.tag else { panic!("a sum has a linear tag") };
    let mut changed = honest.clone();
    changed.sum[1][4000] += Scalar::ONE;
    let g = |k: i128| (G1Projective::generator() * signed(k)).to_affine();
    let plus = |a: G1Affine, k| (G1Projective::from(a) + g(k)).to_affine();
    let mut raised = honest.clone();
    raised.sum[0][0] += Scalar::from(5);
    raised.tag = ValueTag::Linear(plus(t, 5), x);
    let with = |t, x| Answer { tag: ValueTag::Linear(t, x), ..honest.clone() };
    let doubled = |c: &Vec<Scalar>| c.iter().map(|c| c.double()).collect();
    let twice = |a: G1Affine| (G1Projective::from(a).double()).to_affine();
    let scaled = Answer {
        sum: honest.sum.iter().map(doubled).collect(),
        tag: ValueTag::Linear(twice(t), twice(x)),
    };
    for (answer, why) in [
        (changed, "one coefficient"),
        (raised, "ν and T alike, as if β⁰ were the only point"),
        (with(plus(t, 1), x), "T"),
        (with(t, plus(x, 1)), "X"),
        (with(x, t), "T for X"),
        (scaled, "scaled"),
    ] {
        refused(&prepared, data_set, &answer.to_bytes(), why);
    }
}

#[test]
fn changed_products_are_refused() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    let function = over(Statistic::Products(X, Y, Weights::Ones));
    let prepared = verifier.prepare(function.clone()).unwrap();
    let honest = evaluate(&function, blocks);
    let ValueTag::Quadratic(elements) = &honest.tag else { panic!("of degree two") };
    let [t, x, lambda] = **elements;
    let with = |tag| Answer { tag: ValueTag::Quadratic(Box::new(tag)), ..honest.clone() };
    let one = Target::base(&Scalar::ONE);
    let (less, plus) = (one.power(&-Scalar::ONE), |x: Target| x.times(&one));
    let mut changed = honest.clone();
    changed.sum[2][16_000] += Scalar::ONE;
    let mut reduced = honest.clone();
    let ring = SHAPE.set.ring();
    reduced.sum.iter_mut().for_each(|c| {
        *c = ring.reduced(c);
        c.resize(ring.product_length(), Scalar::ZERO);
    });
    let doubled = |c: &Vec<Scalar>| c.iter().map(|c| c.double()).collect();
    let scaled = Answer {
        sum: honest.sum.iter().map(doubled).collect(),
        tag: ValueTag::Quadratic(Box::new([t, x, lambda].map(|e| e.times(&e)))),
    };
    for (answer, why) in [
        (changed, "one coefficient"),
        (reduced, "reduced modulo X^n + 1"),
        (with([plus(t), x, lambda]), "T₂"),
        (with([t, plus(x), lambda]), "X₂'"),
        (with([t, x, plus(lambda)]), "Λ"),
        (with([t, lambda, x]), "X₂' for Λ"),
        (with([t, plus(x), lambda.times(&less)]), "both"),
        (scaled, "scaled"),
    ] {
        refused(&prepared, data_set, &answer.to_bytes(), why);
    }
    let linear = evaluate(&over(Statistic::Sum(X, Weights::Ones)), blocks);
    refused(&prepared, data_set, &linear.to_bytes(), "a linear tag for a product's");
}

/// Lengths, coefficients and elements that are not as they are written.
#[test]
fn other_spellings_are_refused() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    for of in [Statistic::Sum(X, Weights::Ones), Statistic::Products(X, Y, Weights::Ones)] {
        let function = Function { of, from: 0, to: 1 };
        let prepared = verifier.prepare(function.clone()).unwrap();
        let honest = evaluate(&function, blocks).to_bytes();
        assert!(prepared.verify(data_set, &honest).is_ok());
        refused(&prepared, data_set, &honest[1..], "truncated");
        refused(&prepared, data_set, &[&honest[..], &[0]].concat(), "longer");
        let mut raised = honest.clone();
        let q = super::ring::modulus();
        let first = num_bigint::BigUint::from_bytes_le(&raised[..32]) + q;
        let mut bytes = first.to_bytes_le();
        bytes.resize(32, 0);
        raised[..32].copy_from_slice(&bytes);
        refused(&prepared, data_set, &raised, "a coefficient plus q");
        let mut outside = honest.clone();
        let last = outside.len() - 1;
        outside[last] ^= 1;
        refused(&prepared, data_set, &outside, "no element");
    }
}

/// Not what is asked, but z and the point, are what a forger lacks.
#[test]
fn with_the_keys_a_forgery_passes() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    let keys = Keys::new(&key(9), SHAPE.set);
    let function = over(Statistic::Sum(X, Weights::Ones));
    let prepared = verifier.prepare(function.clone()).unwrap();
    let mut forged = evaluate(&function, blocks);
    let ValueTag::Linear(t, x) = forged.tag else { panic!("a sum has a linear tag") };
    forged.sum[0][0] += Scalar::ONE;
    let g = G1Projective::generator();
    let (t, x) = ((t + g).to_affine(), (x - g * keys.over_z()).to_affine());
    forged.tag = ValueTag::Linear(t, x);
    assert!(prepared.verify(data_set, &forged.to_bytes()).is_ok());
    let other = Verifier::new(&key(8), SHAPE).unwrap();
    let prepared = other.prepare(function.clone()).unwrap();
    assert!(prepared.verify(data_set, &evaluate(&function, blocks).to_bytes()).is_err());
}

#[test]
fn blocks_are_read_as_they_were_written() {
    let (_, blocks) = &world().first;
    let bytes = blocks[1].to_bytes();
    assert_eq!(Block::from_bytes(&SHAPE, &bytes).as_ref(), Ok(&blocks[1]));
    let bad = |bytes: &[u8]| Block::from_bytes(&SHAPE, bytes).unwrap_err();
    let (expected, found) = (bytes.len(), bytes.len() - 1);
    assert_eq!(bad(&bytes[..found]), BadBlock::Length { expected, found });
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bad(&bytes)
    };
    assert_eq!(changed(0, 2), BadBlock::Format(2));
    assert_eq!(changed(25 + 32 + 31, 0xff), BadBlock::Coefficient(0));
    assert!(matches!(
        changed(expected - 1, bytes[expected - 1] ^ 1),
        BadBlock::Tag { column: 1, .. }
    ));
}

#[test]
fn what_cannot_be_sealed_or_asked_is_refused() {
    let rng = &mut ChaCha20Rng::from_seed([3; 32]);
    assert!(Owner::begin(&key(9), Shape { columns: 0, ..SHAPE }, rng).is_err());
    assert!(Owner::begin(&key(9), Shape { bound: 1 << 50, ..SHAPE }, rng).is_err());
    let mut owner = Owner::begin(&key(9), SHAPE, rng).unwrap();
    let mut other = ChaCha20Rng::from_seed([4; 32]);
    let mut seal = |columns: &[Vec<i64>]| owner.seal(columns, &mut other).err();
    let wide = vec![vec![0, -1001], vec![]];
    let refusal = SealError::Bound { column: 0, item: 1, bound: 1000 };
    assert_eq!(seal(&wide), Some(refusal));
    assert!(matches!(seal(&[]), Some(SealError::Columns { .. })));
    let long = [vec![0; 8193], vec![]];
    assert!(matches!(seal(&long), Some(SealError::Slots { .. })));
    assert_eq!(owner.blocks(), 0);
    let World { first: (_, blocks), verifier, .. } = world();
    let other = over(Statistic::Sum(Column(2), Weights::Ones));
    assert_eq!(verifier.prepare(other.clone()).err(), Some(Refusal::NotRegistered));
    assert!(matches!(Evaluation::new(&SHAPE, &other).err(), Some(BadRequest::Kind(_))));
    let huge = over(Statistic::Sum(X, Weights::Each(0, vec![1 << 90; 3])));
    assert!(matches!(verifier.prepare(huge), Err(Refusal::Range { .. })));
    let loud = Weights::Each(0, vec![i128::MAX; 3]);
    let loud = over(Statistic::Products(X, X, loud));
    assert!(matches!(verifier.prepare(loud), Err(Refusal::Noise { .. })));
    let function = over(Statistic::Sum(X, Weights::Ones));
    let mut evaluation = Evaluation::new(&SHAPE, &function).unwrap();
    assert_eq!(evaluation.add(&blocks[1]), Err(BadRequest::Runs));
    assert!(evaluation.answer().is_err());
}

/// An honest mistake has words at the server already, the same as at the planner where both
/// see it.
#[test]
fn a_server_says_what_it_cannot_evaluate() {
    let World { first: (_, blocks), second: (_, others), verifier } = world();
    let refused = |function: &Function| Evaluation::new(&SHAPE, function).err();
    let long = over(Statistic::Sum(X, Weights::Polynomial(vec![1; 17])));
    assert_eq!(refused(&long), Some(BadRequest::Weights { most: 16 }));
    assert_eq!(verifier.prepare(long).err(), Some(Refusal::Coefficients { most: 16 }));
    let wide = Function { of: Statistic::Covariance(X, Y), from: 0, to: (1 << 20) + 1 };
    let (most, asked) = (1 << 20, (1 << 20) + 1);
    assert_eq!(refused(&wide), Some(BadRequest::Blocks { most, asked }));
    for (first, weights) in [(0, 2), (0, 4), (1, 2)] {
        let each = over(Statistic::Sum(X, Weights::Each(first, vec![1; weights])));
        let given = weights as u64;
        assert_eq!(refused(&each), Some(BadRequest::Each { given, to: BLOCKS }));
        assert!(verifier.prepare(each).is_err());
    }
    let function = over(Statistic::Sum(X, Weights::Ones));
    let mut evaluation = Evaluation::new(&SHAPE, &function).unwrap();
    evaluation.add(&blocks[0]).unwrap();
    assert_eq!(evaluation.add(&others[1]), Err(BadRequest::Mixed(1)), "another data set");
    let wider = Block { shape: Shape { bound: 2000, ..SHAPE }, ..blocks[1].clone() };
    assert_eq!(evaluation.add(&wider), Err(BadRequest::Mixed(1)), "another shape");
    let whole = Block { shape: Shape { set: PairingSet::P128, ..SHAPE }, ..blocks[1].clone() };
    assert_eq!(evaluation.add(&whole), Err(BadRequest::Mixed(1)), "another set");
    evaluation.add(&blocks[1]).unwrap();
}
