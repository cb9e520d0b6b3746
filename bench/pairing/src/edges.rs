//! Tests at the planner's limits in every set, of wrong shapes, and of elements that only the
//! subgroup check rejects.

use crate::elements::{Target, second};
use crate::keys::Keys;
use crate::messages::{Answer, Block, Function, Shape, Statistic, ValueTag};
use crate::owner::Owner;
use crate::parameters::PairingSet;
use crate::server::Evaluation;
use crate::verifier::Verifier;
use alpheus_crypto::secret::Secret;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::PlanError;
use alpheus_verifiable_table::label::{Column, DataSet};
use alpheus_verifiable_table::messages::Weights;
use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use group::{Curve, Group};
use num_bigint::BigUint;

const X: Column = Column(0);
const Y: Column = Column(1);

fn key(byte: u8) -> TableKey {
    TableKey::new(Secret::from_bytes([byte; 32]))
}

/// A data set of two columns, and its blocks.
fn sealed(key: &TableKey, shape: Shape, blocks: &[[Vec<i64>; 2]]) -> (DataSet, Vec<Block>) {
    let mut rng = ChaCha20Rng::from_seed([3; 32]);
    let mut owner = Owner::begin(key, shape, &mut rng).unwrap();
    let blocks = blocks.iter().map(|columns| owner.seal(columns, &mut rng).unwrap()).collect();
    (owner.data_set(), blocks)
}

fn evaluate(shape: &Shape, function: &Function, blocks: &[Block]) -> Answer {
    let mut evaluation = Evaluation::new(shape, function).unwrap();
    blocks.iter().for_each(|block| evaluation.add(block).unwrap());
    evaluation.answer().unwrap()
}

/// Slots at the upper bound, at the lower, alternating, and in between.
fn extreme(n: usize, bound: i64) -> [Vec<i64>; 2] {
    let alternating = |i: usize| if i.is_multiple_of(2) { bound } else { -bound };
    let item = |i: usize| match i / 16 % 4 {
        0 => bound,
        1 => -bound,
        2 => alternating(i),
        _ => i64::try_from(i).unwrap().min(bound) - bound / 2,
    };
    [(0..n).map(item).collect(), (0..n).map(|i| -item(n - 1 - i)).collect()]
}

/// The largest weight that the planner allows, from its error for a larger one.
fn greatest(verifier: &Verifier, of: impl Fn(i128) -> Statistic) -> i128 {
    let function = |weight| Function { of: of(weight), from: 0, to: 1 };
    let (PlanError::Range { max, .. } | PlanError::Noise { max, .. }) =
        verifier.prepare(function(i128::MAX)).err().unwrap()
    else {
        panic!("an error about noise or range")
    };
    let max = max.parse::<BigUint>().unwrap().min(BigUint::from(i128::MAX.unsigned_abs()));
    let mut weight = i128::try_from(max).unwrap();
    // Noise is checked first. A weight that passes may still leave the exact range.
    while let Err(error) = verifier.prepare(function(weight)) {
        let PlanError::Range { max, .. } = error else { panic!("{error}") };
        weight = max.parse().unwrap();
    }
    assert!(verifier.prepare(function(weight + 1)).is_err());
    weight
}

/// The largest items with the largest weights: for a sum, for products limited by range, and
/// for products limited by noise.
#[test]
fn values_are_exact_up_to_the_planners_limits() {
    for set in PairingSet::ALL {
        for bound in [(1 << 50) - 1, (1 << 41) - 1, 1] {
            let (key, shape) = (key(5), Shape { set, columns: 2, bound });
            let columns = extreme(set.ring().degree(), bound);
            let (data_set, blocks) = sealed(&key, shape, std::slice::from_ref(&columns));
            let verifier = Verifier::new(&key, shape).unwrap();
            let check = |of: &dyn Fn(i128) -> Statistic, value: &dyn Fn(usize) -> i128| {
                let weight = -greatest(&verifier, of);
                let function = Function { of: of(weight), from: 0, to: 1 };
                let prepared = verifier.prepare(function.clone()).unwrap();
                let answer = evaluate(&shape, &function, &blocks).to_bytes();
                let opened = prepared.verify(&data_set, &answer).unwrap().decrypt();
                let expected = (0..columns[0].len()).map(|slot| weight * value(slot));
                assert!(expected.eq(opened.slots().iter().copied()), "{set}, {bound}, {weight}");
            };
            let item = |column: usize, slot: usize| i128::from(columns[column][slot]);
            let each = |weight| Weights::Each(0, vec![weight]);
            check(&|w| Statistic::Sum(X, each(w)), &|slot| item(0, slot));
            // The square of the largest bound leaves the exact range at once.
            if bound < 1 << 42 {
                let product = |slot| item(0, slot) * item(1, slot);
                check(&|w| Statistic::Products(X, Y, each(w)), &product);
            }
        }
    }
}

/// N²·b² of either sign, the largest that items within a bound reach.
#[test]
fn a_covariance_is_exact_up_to_the_planners_limits() {
    for set in PairingSet::ALL {
        let verifier = |bound| Verifier::new(&key(5), Shape { set, columns: 2, bound }).unwrap();
        let function = Function { of: Statistic::Covariance(X, Y), from: 0, to: 2 };
        let allowed = |bound| verifier(bound).prepare(function.clone()).is_ok();
        // The largest bound, bit by bit.
        let bound = (0..50)
            .rev()
            .fold(0, |bound, bit| if allowed(bound | 1 << bit) { bound | 1 << bit } else { bound });
        assert!(bound > 1 << 38 && !allowed(bound + 1), "{bound}");
        let shape = Shape { set, columns: 2, bound };
        let [x, y] = extreme(set.ring().degree(), bound);
        let flipped = |items: &[i64]| items.iter().map(|x| -x).collect::<Vec<i64>>();
        let second = [flipped(&x), flipped(&y)];
        let (data_set, blocks) = sealed(&key(5), shape, &[[x.clone(), y.clone()], second]);
        let prepared = verifier(bound).prepare(function.clone()).unwrap();
        let answer = evaluate(&shape, &function, &blocks).to_bytes();
        let opened = prepared.verify(&data_set, &answer).unwrap().decrypt();
        let pairs = x.iter().zip(&y).map(|(x, y)| 4 * i128::from(*x) * i128::from(*y));
        assert!(pairs.eq(opened.slots().iter().copied()), "{set}");
    }
}

/// A verifier with another shape than the owner's accepts nothing. Otherwise a sum of large
/// items, planned for small ones, would verify and leave the exact range.
#[test]
fn values_sealed_for_another_shape_are_rejected() {
    let wide = Shape { set: PairingSet::P80, columns: 2, bound: (1 << 50) - 1 };
    let (data_set, blocks) = sealed(&key(5), wide, &[[vec![1 << 45; 8192], vec![1; 8192]]]);
    let of = Statistic::Products(X, X, Weights::Ones);
    for shape in [Shape { bound: 1000, ..wide }, Shape { columns: 3, ..wide }] {
        let verifier = Verifier::new(&key(5), shape).unwrap();
        for of in [of.clone(), Statistic::Sum(X, Weights::Ones)] {
            let function = Function { of, from: 0, to: 1 };
            let Ok(prepared) = verifier.prepare(function.clone()) else { continue };
            let answer = evaluate(&wide, &function, &blocks).to_bytes();
            assert!(prepared.verify(&data_set, &answer).is_err(), "{shape:?}");
        }
    }
    let verifier = Verifier::new(&key(5), wide).unwrap();
    let function = Function { of: Statistic::Sum(X, Weights::Ones), from: 0, to: 1 };
    let answer = evaluate(&wide, &function, &blocks).to_bytes();
    assert!(verifier.prepare(function).unwrap().verify(&data_set, &answer).is_ok());
    for shape in [Shape { bound: 1 << 50, ..wide }, Shape { columns: 0, ..wide }] {
        assert!(Verifier::new(&key(5), shape).is_err());
    }
}

#[test]
fn each_data_set_and_shape_has_its_own_secret() {
    let shape = Shape { set: PairingSet::P80, columns: 2, bound: 9 };
    let keys = Keys::new(&key(5), shape.set);
    let components = [0, 1].map(|x| vec![Scalar::from(x); 8192]);
    let decrypt = |shape: &Shape, set| {
        let secret = keys.secret(shape, &DataSet([set; 16]));
        keys.decrypt(&secret, &components).to_vec()
    };
    assert_eq!(decrypt(&shape, 1), decrypt(&shape, 1));
    assert_ne!(decrypt(&shape, 1), decrypt(&shape, 2));
    assert_ne!(decrypt(&shape, 1), decrypt(&Shape { bound: 8, ..shape }, 1));
}

/// A point of order 11 on the first curve; 11 divides its cofactor. (The library rejects
/// points of order 3 in any case.)
fn small_order_point() -> G1Affine {
    const COFACTOR: &[u8] = b"396c8c005555e1568c00aaab0000aaab";
    const Q: &[u8] = b"73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
    let [cofactor, q] = [COFACTOR, Q].map(|hex| BigUint::parse_bytes(hex, 16).unwrap());
    let rest = cofactor * q / 121_u32;
    // The library's own product is valid in the subgroup only.
    let times = |point: G1Projective, number: &BigUint| {
        (0..number.bits()).rev().fold(G1Projective::identity(), |sum, bit| {
            let sum = sum.double();
            if number.bit(bit) { sum + point } else { sum }
        })
    };
    let of_abscissa = |x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        let point: Option<G1Affine> = G1Affine::from_compressed_unchecked(&bytes).into();
        let point = times(point?.into(), &rest);
        let eleven = times(point, &BigUint::from(11_u32));
        let small = if bool::from(eleven.is_identity()) { point } else { eleven };
        (!bool::from(small.is_identity())).then(|| small.to_affine())
    };
    (1..=u8::MAX).find_map(of_abscissa).unwrap()
}

/// With this key, the equation cannot detect an element of that order.
#[test]
fn elements_outside_their_groups_are_rejected_even_if_the_equations_hold() {
    let shape = Shape { set: PairingSet::P80, columns: 2, bound: 9 };
    let small = small_order_point();
    assert!(!bool::from(small.is_torsion_free()));
    let undetected = |key: &TableKey| {
        let keys = Keys::new(key, shape.set);
        bool::from((G1Projective::from(small) * keys.z()).is_identity())
    };
    let key = (0..=u8::MAX).map(key).find(undetected).unwrap();
    let (data_set, blocks) = sealed(&key, shape, &[[vec![7; 9], vec![-3; 8192]]]);
    let verifier = Verifier::new(&key, shape).unwrap();
    let function = Function { of: Statistic::Sum(X, Weights::Ones), from: 0, to: 1 };
    let prepared = verifier.prepare(function.clone()).unwrap();
    let mut answer = evaluate(&shape, &function, &blocks);
    let ValueTag::Linear(t, x) = answer.tag else { panic!("a sum has a linear tag") };
    answer.tag = ValueTag::Linear(t, (G1Projective::from(x) + small).to_affine());
    assert!(bool::from(prepared.check(&data_set, &answer)), "the equations hold");
    assert!(prepared.verify(&data_set, &answer.to_bytes()).is_err());

    // −X₂' and −Λ: (−1)^(z + z²) = 1 whatever z is.
    let function = Function { of: Statistic::Products(X, Y, Weights::Ones), from: 0, to: 1 };
    let prepared = verifier.prepare(function.clone()).unwrap();
    let mut answer = evaluate(&shape, &function, &blocks);
    let ValueTag::Quadratic(elements) = &answer.tag else { panic!("of degree two") };
    let [t, x, lambda] = **elements;
    let minus = Target::minus_one();
    let tag = [t, x.times(&minus), lambda.times(&minus)];
    answer.tag = ValueTag::Quadratic(Box::new(tag));
    assert!(bool::from(prepared.check(&data_set, &answer)), "the equation holds");
    assert!(prepared.verify(&data_set, &answer.to_bytes()).is_err());
}

/// Points on the curve but outside the subgroup, at the first abscissas that have one.
#[test]
fn points_of_the_second_curve_outside_the_subgroup_are_rejected() {
    let encodings = (1..=u8::MAX).map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        bytes
    });
    let outside = encodings.filter(|bytes| {
        let point: Option<G2Affine> = G2Affine::from_compressed_unchecked(bytes).into();
        point.is_some_and(|point| bool::from(point.is_on_curve() & !point.is_torsion_free()))
    });
    let mut count = 0;
    for bytes in outside.take(3) {
        assert!(second(&bytes).is_err());
        count += 1;
    }
    assert_eq!(count, 3);
}
