//! A tuple: made by a client, checked by servers, alone and in batches.

use crate::measure::Effort;
use crate::report::{Figure, Goal};
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::tuple::{
    Binding, Checker, Contribution, Prover, Terms, ThresholdKey, Tuple, message_base,
};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use chacha20::ChaCha20Rng;
use std::hint::black_box;

const GROUP: &str = "statistics, a tuple";
/// Checked together.
const BATCH: u32 = 64;

/// Name, highest value, squares.
const SHAPES: [(&str, i64, bool); 5] = [
    ("8 bit", 255, false),
    ("16 bit", 65_535, false),
    ("16 bit, square", 65_535, true),
    ("two-sided 17 bit, square (0 to 100 mph by 0.001)", 100_000, true),
    ("two-sided 32 bit", 4_000_000_000, false),
];
/// The shape that the goals are for.
const USUAL: &str = "16 bit, square";

/// What the tuple of an upload is bound to.
pub(super) fn binding(upload: u32) -> Binding {
    let mut key = [3; 32];
    key[..4].copy_from_slice(&upload.to_be_bytes());
    Binding {
        tag: Element::second_base(),
        aggregate: Digest([5; 32]),
        ephemeral: OneTimePublic::from_bytes(key),
    }
}

/// A tuple as it arrives.
pub(super) type EncodedTuple = (Binding, Vec<u8>);

/// So many tuples, with values all over the interval.
pub(super) fn arrived(
    terms: Terms,
    count: u32,
    rng: &mut ChaCha20Rng,
) -> Result<Vec<EncodedTuple>, Failure> {
    let (prover, highest) = (Prover::new(terms), terms.interval().highest());
    let tuple = |slot: u32| {
        let given = Contribution::Sample(i64::from(slot) * 7919 % highest);
        let made = prover.prove(given, &binding(slot), rng).blame(Category::Check)?;
        Ok((binding(slot), made.to_bytes()))
    };
    (0..count).map(tuple).collect()
}

/// Decoding included; how many hold.
fn check(checker: &Checker, arrived: &[EncodedTuple]) -> usize {
    let read = |(binding, bytes): &EncodedTuple| {
        Some((*binding, Tuple::from_bytes(bytes, checker.terms().interval()).ok()?))
    };
    let verdicts = checker.check_batch(arrived.iter().filter_map(read).collect());
    verdicts.iter().filter(|verdict| verdict.is_ok()).count()
}

/// One number, without any proof, as beside Paillier in docs/decisions/0022.
fn encrypted(effort: Effort, key: &Element, rng: &mut ChaCha20Rng) -> Figure {
    let (number, blinding) = (SecretScalar::from_small(9), SecretScalar::random(rng));
    let message = message_base();
    let nanoseconds = effort.time(|| {
        let terms = [(&number, &message), (&blinding, key)];
        _ = black_box((Element::base().times(&blinding), Element::combine(&terms, &[], &[])));
    });
    let what = "one number encrypted, no proof (Paillier: see docs/decisions/0022)";
    Figure::alone(GROUP, what.into(), "ms", nanoseconds / 1e6)
}

/// Milliseconds of one core.
///
/// # Errors
/// If a tuple cannot be made, or one that is good is refused.
pub(super) fn figures(effort: Effort) -> Result<Vec<Figure>, Failure> {
    let mut rng = entropy::rng()?;
    let key = Element::base().times(&SecretScalar::random(&mut rng)).blame(Category::Check)?;
    let mut figures = vec![encrypted(effort, &key, &mut rng)];
    for (name, highest, square) in SHAPES {
        let interval = Interval::new(0, highest, square).blame(Category::Check)?;
        let terms = Terms::new(ThresholdKey(key), interval);
        let (prover, checker) = (Prover::new(terms), Checker::new(terms));
        let arrived = arrived(terms, BATCH, &mut rng)?;
        if check(&checker, &arrived) != arrived.len() {
            return Err("a good tuple is refused").blame(Category::Check);
        }
        let made = effort.time(|| {
            let made = prover.prove(Contribution::Sample(9), &binding(1), &mut rng);
            _ = black_box(made);
        });
        let alone = effort.time(|| _ = black_box(check(&checker, &arrived[..1])));
        let batch = effort.time(|| _ = black_box(check(&checker, &arrived)));
        let figure = |what: String, nanoseconds: f64, goal: Option<f64>| {
            let figure = Figure::alone(GROUP, format!("{name}: {what}"), "ms", nanoseconds / 1e6);
            match goal.filter(|_| name == USUAL) {
                Some(most) => figure.with_goal(Goal::AtMost(most)),
                None => figure,
            }
        };
        let bytes = Tuple::length(&interval);
        figures.push(figure(format!("made, {bytes} bytes"), made, Some(6.0)));
        figures.push(figure("checked alone".into(), alone, Some(1.0)));
        let each = batch / f64::from(BATCH);
        figures.push(figure(format!("checked, each of {BATCH}"), each, Some(0.65)));
    }
    Ok(figures)
}
