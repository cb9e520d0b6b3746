//! Tests: values are exact, and every wrong answer is rejected.

use crate::elements::Target;
use crate::keys::Keys;
use crate::messages::{Answer, Block, BlockError, Function, Shape, Statistic, ValueTag};
use crate::owner::{Owner, SealError};
use crate::parameters::PairingSet;
use crate::scalars::signed;
use crate::server::{Evaluation, EvaluationError};
use crate::verifier::{PreparedFunction, Verifier};
use alpheus_crypto::secret::Secret;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::{PlanError, RequestError};
use alpheus_verifiable_table::label::{Column, DataSet};
use alpheus_verifiable_table::messages::Weights;
use blstrs::{G1Affine, G1Projective, Scalar};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use ff::Field;
use group::{Curve, Group};
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

/// Two data sets of the same items, and their verifier.
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

/// The expected value, computed in the clear.
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

#[test]
fn one_preparation_yields_exact_values_over_every_data_set() {
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

fn assert_rejected(prepared: &PreparedFunction, data_set: &DataSet, answer: &[u8], why: &str) {
    assert!(prepared.verify(data_set, answer).is_err(), "{why}");
}

/// The server computes something other than the request.
#[test]
fn other_functions_blocks_and_data_sets_are_rejected() {
    let World { first: (data_set, blocks), second: (other, others), verifier } = world();
    let mixed = [&blocks[0], &others[1], &blocks[2]].map(|block| {
        // The server may relabel a block.
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
            assert_rejected(&prepared, data_set, &evaluate(function, blocks).to_bytes(), why);
        };

        lie(&[renamed(0, 0), renamed(0, 1), renamed(2, 2)], "one twice, one not at all");
        lie(others, "another data set's blocks");
        lie(&mixed, "one of another data set");
        let honest = evaluate(function, blocks).to_bytes();
        assert_rejected(&prepared, other, &honest, "an answer about another data set");
    }
    let prepared = verifier.prepare(sum.clone()).unwrap();
    for (function, why) in [
        (Function { to: 2, ..sum.clone() }, "a block dropped"),
        (over(linear(Y)), "another column"),
        (weighted(vec![1, 1, 2]), "other weights"),
        (weighted(vec![2, 2, 2]), "scaled"),
    ] {
        assert_rejected(&prepared, data_set, &evaluate(&function, blocks).to_bytes(), why);
    }
    let prepared = verifier.prepare(products).unwrap();
    let squares = over(Statistic::Products(X, X, Weights::Ones));
    for (function, why) in [(squares, "x² for xy"), (over(Statistic::Covariance(X, Y)), "another")]
    {
        assert_rejected(&prepared, data_set, &evaluate(&function, blocks).to_bytes(), why);
    }
}

/// The order of blocks matters only for a weighted sum.
#[test]
fn blocks_with_swapped_weights_are_rejected() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    let function = over(Statistic::Sum(X, Weights::Each(0, vec![1, 2, 3])));
    let prepared = verifier.prepare(function.clone()).unwrap();
    let [a, b, c] = [0, 1, 2].map(|i: usize| blocks[i].clone());
    let swapped = [a, Block { index: 1, ..c }, Block { index: 2, ..b }];
    assert_rejected(&prepared, data_set, &evaluate(&function, &swapped).to_bytes(), "swapped");
}

/// Every part of an answer is changed alone, and together with others where that could cancel.
#[test]
fn changed_answers_are_rejected() {
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
        assert_rejected(&prepared, data_set, &answer.to_bytes(), why);
    }
}

#[test]
fn changed_products_are_rejected() {
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
        *c = ring.reduce(c);
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
        assert_rejected(&prepared, data_set, &answer.to_bytes(), why);
    }
    let linear = evaluate(&over(Statistic::Sum(X, Weights::Ones)), blocks);
    assert_rejected(&prepared, data_set, &linear.to_bytes(), "a linear tag for a product's");
}

/// Wrong lengths, and coefficients and elements that are not canonical.
#[test]
fn other_encodings_of_an_answer_are_rejected() {
    let World { first: (data_set, blocks), verifier, .. } = world();
    for of in [Statistic::Sum(X, Weights::Ones), Statistic::Products(X, Y, Weights::Ones)] {
        let function = Function { of, from: 0, to: 1 };
        let prepared = verifier.prepare(function.clone()).unwrap();
        let honest = evaluate(&function, blocks).to_bytes();
        assert!(prepared.verify(data_set, &honest).is_ok());
        assert_rejected(&prepared, data_set, &honest[1..], "truncated");
        assert_rejected(&prepared, data_set, &[&honest[..], &[0]].concat(), "longer");
        let mut raised = honest.clone();
        let q = crate::ring::modulus();
        let first = num_bigint::BigUint::from_bytes_le(&raised[..32]) + q;
        let mut bytes = first.to_bytes_le();
        bytes.resize(32, 0);
        raised[..32].copy_from_slice(&bytes);
        assert_rejected(&prepared, data_set, &raised, "a coefficient plus q");
        let mut outside = honest.clone();
        let last = outside.len() - 1;
        outside[last] ^= 1;
        assert_rejected(&prepared, data_set, &outside, "no element");
    }
}

/// A forger lacks only z and the point.
#[test]
fn a_forgery_passes_with_the_keys() {
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
fn blocks_round_trip_and_damaged_ones_are_rejected_with_a_specific_error() {
    let (_, blocks) = &world().first;
    let bytes = blocks[1].to_bytes();
    assert_eq!(Block::from_bytes(&SHAPE, &bytes).as_ref(), Ok(&blocks[1]));
    let bad = |bytes: &[u8]| Block::from_bytes(&SHAPE, bytes).unwrap_err();
    let (expected, actual) = (bytes.len(), bytes.len() - 1);
    assert_eq!(bad(&bytes[..actual]), BlockError::Length { expected, actual });
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bad(&bytes)
    };
    assert_eq!(changed(0, 2), BlockError::Format(2));
    assert_eq!(changed(25 + 32 + 31, 0xff), BlockError::Coefficient(0));
    assert!(matches!(
        changed(expected - 1, bytes[expected - 1] ^ 1),
        BlockError::Tag { column: 1, .. }
    ));
}

#[test]
fn invalid_items_and_functions_are_rejected_with_a_specific_error() {
    let rng = &mut ChaCha20Rng::from_seed([3; 32]);
    assert!(Owner::begin(&key(9), Shape { columns: 0, ..SHAPE }, rng).is_err());
    assert!(Owner::begin(&key(9), Shape { bound: 1 << 50, ..SHAPE }, rng).is_err());
    let mut owner = Owner::begin(&key(9), SHAPE, rng).unwrap();
    let mut other = ChaCha20Rng::from_seed([4; 32]);
    let mut seal = |columns: &[Vec<i64>]| owner.seal(columns, &mut other).err();
    let wide = vec![vec![0, -1001], vec![]];
    let error = SealError::Bound { column: 0, item: 1, bound: 1000 };
    assert_eq!(seal(&wide), Some(error));
    assert!(matches!(seal(&[]), Some(SealError::Columns { .. })));
    let long = [vec![0; 8193], vec![]];
    assert!(matches!(seal(&long), Some(SealError::Slots { .. })));
    assert_eq!(owner.blocks(), 0);
    let World { first: (_, blocks), verifier, .. } = world();
    let other = over(Statistic::Sum(Column(2), Weights::Ones));
    assert_eq!(verifier.prepare(other.clone()).err(), Some(PlanError::NotRegistered));
    assert!(matches!(
        Evaluation::new(&SHAPE, &other).err(),
        Some(EvaluationError::Request(RequestError::Kind(_)))
    ));
    let huge = over(Statistic::Sum(X, Weights::Each(0, vec![1 << 90; 3])));
    assert!(matches!(verifier.prepare(huge), Err(PlanError::Range { .. })));
    let loud = Weights::Each(0, vec![i128::MAX; 3]);
    let loud = over(Statistic::Products(X, X, loud));
    assert!(matches!(verifier.prepare(loud), Err(PlanError::Noise { .. })));
    let function = over(Statistic::Sum(X, Weights::Ones));
    let mut evaluation = Evaluation::new(&SHAPE, &function).unwrap();
    assert_eq!(evaluation.add(&blocks[1]), Err(RequestError::Runs.into()));
    assert!(evaluation.answer().is_err());
}

/// The server reports a client's mistake, with the same limits as the planner.
#[test]
fn a_server_rejects_an_invalid_evaluation_with_a_specific_error() {
    let World { first: (_, blocks), second: (_, others), verifier } = world();
    let error = |function: &Function| Evaluation::new(&SHAPE, function).err();
    let long = over(Statistic::Sum(X, Weights::Polynomial(vec![1; 17])));
    assert_eq!(error(&long), Some(RequestError::Weights { max: 16 }.into()));
    assert_eq!(verifier.prepare(long).err(), Some(PlanError::Coefficients { max: 16 }));
    let wide = Function { of: Statistic::Covariance(X, Y), from: 0, to: (1 << 20) + 1 };
    let (max, count) = (1 << 20, (1 << 20) + 1);
    assert_eq!(error(&wide), Some(RequestError::Blocks { max, count }.into()));
    for (first, weights) in [(0, 2), (0, 4), (1, 2)] {
        let each = over(Statistic::Sum(X, Weights::Each(first, vec![1; weights])));
        let count = weights as u64;
        assert_eq!(error(&each), Some(EvaluationError::Weights { count, to: BLOCKS }));
        assert!(verifier.prepare(each).is_err());
    }
    let function = over(Statistic::Sum(X, Weights::Ones));
    let mut evaluation = Evaluation::new(&SHAPE, &function).unwrap();
    evaluation.add(&blocks[0]).unwrap();
    assert_eq!(evaluation.add(&others[1]), Err(EvaluationError::Mixed(1)), "another data set");
    let wider = Block { shape: Shape { bound: 2000, ..SHAPE }, ..blocks[1].clone() };
    assert_eq!(evaluation.add(&wider), Err(EvaluationError::Mixed(1)), "another shape");
    let whole = Block { shape: Shape { set: PairingSet::P128, ..SHAPE }, ..blocks[1].clone() };
    assert_eq!(evaluation.add(&whole), Err(EvaluationError::Mixed(1)), "another set");
    evaluation.add(&blocks[1]).unwrap();
}
