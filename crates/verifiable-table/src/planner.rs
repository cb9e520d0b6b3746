//! Plans sums that are certain to decrypt and to be exact. The bound is the worst case, never
//! a multiple of a deviation.

use crate::error::{NearestQuery, PlanError};
use crate::label::{Kind, Segment};
use crate::messages::{MAX_COEFFICIENTS, MAX_REQUEST_BLOCKS, Request, Run, Weights, power};
use crate::parameters::Set;
use crate::ring::{NOISE, Ring};
use num_bigint::BigUint;

/// The distance of a planned sum from its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// log₂ of Q/2 over the worst noise: how many times the sum could double.
    pub noise_bits: f64,
    /// log₂ of t/2 over the largest sum. `None` for sums modulo t.
    pub range_bits: Option<f64>,
}

/// A request whose honest answer is certain to be exact. Only planning makes one, and only
/// an answer to one can be verified.
#[derive(Clone, Debug)]
pub struct Question {
    request: Request,
    margin: Margin,
}

impl Question {
    /// The request to send to the server.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The distance from the limits.
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }
}

/// Plans a request whose items are at most `bound` in magnitude.
pub(crate) fn plan(set: Set, request: Request, bound: u128) -> Result<Question, PlanError> {
    let ring = set.ring();
    let limits = Limits::new(ring, set.name(), ring.modulus(), noise(ring, request.kind));
    let margin = limits.check_request(ring, &request, bound)?;
    let count = request.blocks();
    if count > MAX_REQUEST_BLOCKS {
        return Err(PlanError::Blocks { count, max: MAX_REQUEST_BLOCKS });
    }
    if matches!(&request.weights, Weights::Polynomial(c) if c.len() > MAX_COEFFICIENTS) {
        return Err(PlanError::Coefficients { max: MAX_COEFFICIENTS });
    }
    Ok(Question { request, margin })
}

/// Checks that a sum of one block, with items up to `bound`, can be planned.
pub(crate) fn check_single_block(set: Set, kind: Kind, bound: u128) -> Result<(), PlanError> {
    let run = Run { segment: Segment([0; 16]), epoch: 0, from: 0, to: 1 };
    plan(set, Request { kind, runs: vec![run], weights: Weights::Ones }, bound).map(drop)
}

/// The limits on a sum.
pub(crate) struct Limits {
    set: &'static str,
    /// The noise of one summand.
    noise: BigUint,
    /// The most noise of a sum.
    max_noise: BigUint,
    /// (t − 1)/2.
    max_sum: BigUint,
}

impl Limits {
    /// The limits of a set with this modulus and the t of `ring`.
    pub(crate) fn new(ring: &Ring, set: &'static str, modulus: BigUint, noise: BigUint) -> Self {
        let max_sum = BigUint::from((ring.plain_modulus() - 1) / 2);
        Self { set, noise, max_noise: (modulus - 1_u32) / 2_u32, max_sum }
    }

    /// Checks a request whose items are at most `bound` in magnitude.
    pub(crate) fn check_request(
        &self,
        ring: &Ring,
        request: &Request,
        bound: u128,
    ) -> Result<Margin, PlanError> {
        let largest = largest(ring, request).max(BigUint::from(1_u32));
        let exact = !matches!(request.weights, Weights::Powers(_));
        self.check(&total(ring, request)?, exact.then_some(bound), |max| max / &largest)
    }

    /// Checks weights with this total, over items up to `bound`; no bound for sums modulo t.
    /// `blocks` returns how many blocks have weights with a given total.
    pub(crate) fn check(
        &self,
        weights: &BigUint,
        bound: Option<u128>,
        blocks: impl Fn(&BigUint) -> BigUint,
    ) -> Result<Margin, PlanError> {
        let Self { set, noise, max_noise, max_sum } = self;
        let nearest = |max: &BigUint| nearest(&blocks(max));
        if weights * noise > *max_noise {
            let max = max_noise / noise;
            let (nearest, max) = (nearest(&max), max.to_string());
            return Err(PlanError::Noise { weights: weights.to_string(), max, set, nearest });
        }
        if let Some(bound) = bound.filter(|bound| weights * *bound > *max_sum) {
            let max = max_sum / bound.max(1);
            let nearest = match nearest(&max) {
                NearestQuery::OtherSet => NearestQuery::Narrower,
                fewer => fewer,
            };
            let max = max.to_string();
            let (bound, weights) = (bound.to_string(), weights.to_string());
            return Err(PlanError::Range { bound, weights, max, set, nearest });
        }
        Ok(Margin {
            noise_bits: bits(max_noise) - bits(&(weights * noise)),
            range_bits: bound.map(|bound| bits(max_sum) - bits(&(weights * bound.max(1)))),
        })
    }
}

/// The largest magnitude of a coefficient of m + t·e, or of a product of two.
pub(crate) fn noise(ring: &Ring, kind: Kind) -> BigUint {
    let t = BigUint::from(ring.plain_modulus());
    let fresh: BigUint = &t * NOISE + t / 2_u32;
    match kind {
        Kind::Column(_) => fresh,
        Kind::Product(..) => &fresh * &fresh * ring.degree(),
    }
}

/// Σ|w|, exactly.
fn total(ring: &Ring, request: &Request) -> Result<BigUint, PlanError> {
    let numbers = || request.runs.iter().flat_map(|run| run.from..run.to);
    Ok(match &request.weights {
        Weights::Ones => BigUint::from(request.blocks()),
        Weights::Polynomial(coefficients) => {
            let magnitude = |i: u64| at(coefficients, i);
            numbers().map(magnitude).sum()
        }
        Weights::Powers(x) => {
            numbers().map(|i| power(ring, *x, i).unsigned_abs()).map(BigUint::from).sum()
        }
        Weights::Each(first, weights) => {
            let expected = request.runs.last().map_or(0, |run| run.to.saturating_sub(*first));
            let count = weights.len() as u64;
            if count != expected || request.runs.first().is_some_and(|run| run.from < *first) {
                return Err(PlanError::Weights { count, expected });
            }
            weights.iter().map(|w| BigUint::from(w.unsigned_abs())).sum()
        }
    })
}

/// An upper bound of |Σ c_k·i^k|.
fn at(coefficients: &[i128], i: u64) -> BigUint {
    let step = |sum: BigUint, c: &i128| sum * i + c.unsigned_abs();
    coefficients.iter().rev().fold(BigUint::ZERO, step)
}

/// The largest |w|, to find the nearest query.
fn largest(ring: &Ring, request: &Request) -> BigUint {
    let last = request.runs.last().map_or(0, |run| run.to);
    match &request.weights {
        Weights::Ones => BigUint::from(1_u32),
        Weights::Polynomial(coefficients) => at(coefficients, last),
        Weights::Powers(_) => BigUint::from(ring.plain_modulus() / 2),
        Weights::Each(_, weights) => {
            BigUint::from(weights.iter().map(|w| w.unsigned_abs()).max().unwrap_or(1))
        }
    }
}

fn nearest(blocks: &BigUint) -> NearestQuery {
    match u64::try_from(blocks) {
        Ok(0) => NearestQuery::OtherSet,
        Ok(blocks) => NearestQuery::Blocks(blocks.min(MAX_REQUEST_BLOCKS)),
        Err(_) => NearestQuery::Blocks(MAX_REQUEST_BLOCKS),
    }
}

/// log₂, accurate enough for a report.
#[expect(clippy::cast_precision_loss, reason = "a report")]
fn bits(x: &BigUint) -> f64 {
    let cut = x.bits().saturating_sub(60);
    let top = x >> cut;
    let top = top.to_u64_digits().first().copied().unwrap_or(1);
    (top as f64).log2() + cut as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Column;

    fn request(kind: Kind, blocks: u64, weights: Weights) -> Request {
        let run = Run { segment: Segment([0; 16]), epoch: 0, from: 0, to: blocks };
        Request { kind, runs: vec![run], weights }
    }

    const SQUARE: Kind = Kind::Product(Column(0), Column(0));
    const COLUMN: Kind = Kind::Column(Column(0));

    /// Each parameter set supports its documented use.
    #[test]
    fn sets_support_their_documented_use() {
        let bound = 1_u128 << 32;
        assert!(plan(Set::X128, request(SQUARE, 128, Weights::Ones), bound * bound).is_ok());
        assert!(plan(Set::L128, request(COLUMN, 256, Weights::Ones), bound).is_ok());
        let small = 1_u128 << 20;
        assert!(plan(Set::S128, request(SQUARE, 128, Weights::Ones), small * small).is_ok());
        let heavy = || Weights::Polynomial(vec![1 << 32]);
        assert!(plan(Set::X128, request(COLUMN, 128, heavy()), bound).is_ok());
        assert!(plan(Set::W128, request(SQUARE, 8, heavy()), 1 << 40).is_ok());
        assert!(plan(Set::X128, request(COLUMN, 1 << 10, Weights::Powers(3)), 1).is_ok());
    }

    #[test]
    fn planning_rejects_a_request_that_a_server_would_reject() {
        let max = 1 << 20;
        assert!(plan(Set::X128, request(COLUMN, max, Weights::Ones), 1).is_ok());
        let refusal = plan(Set::X128, request(COLUMN, max + 1, Weights::Ones), 1).err();
        assert_eq!(refusal, Some(PlanError::Blocks { count: max + 1, max }));
        let weights = |count| Weights::Polynomial(vec![1; count]);
        assert!(plan(Set::X128, request(COLUMN, 2, weights(16)), 1).is_ok());
        let refusal = plan(Set::X128, request(COLUMN, 2, weights(17)), 1).err();
        assert_eq!(refusal, Some(PlanError::Coefficients { max: 16 }));
    }

    /// The nearest query is allowed, and one block more is not.
    #[test]
    fn errors_name_the_nearest_query_that_is_allowed() {
        let bound = 1_u128 << 32;
        let cases = [
            (Set::X128, SQUARE, 1 << 20, Weights::Ones, bound * bound),
            (Set::L128, COLUMN, 1 << 37, Weights::Ones, 1),
            (Set::S128, SQUARE, 1 << 12, Weights::Ones, 1),
            (Set::X128, COLUMN, 1 << 30, Weights::Ones, 1 << 60),
        ];
        for (set, kind, blocks, weights, bound) in cases {
            let refusal = plan(set, request(kind, blocks, weights.clone()), bound).unwrap_err();
            let (PlanError::Noise { nearest, .. } | PlanError::Range { nearest, .. }) = refusal
            else {
                panic!("{refusal}")
            };
            let NearestQuery::Blocks(max) = nearest else { panic!("{nearest}") };
            assert!(plan(set, request(kind, max, weights.clone()), bound).is_ok(), "{set}");
            assert!(plan(set, request(kind, max + 1, weights), bound).is_err(), "{set}");
        }
        let refused = plan(Set::L128, request(SQUARE, 1, Weights::Ones), 1).unwrap_err();
        assert!(matches!(refused, PlanError::Noise { nearest: NearestQuery::OtherSet, .. }));
        let refused = plan(Set::X128, request(SQUARE, 1, Weights::Ones), 1 << 90).unwrap_err();
        assert!(matches!(refused, PlanError::Range { nearest: NearestQuery::Narrower, .. }));
    }
}
