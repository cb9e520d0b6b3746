//! Whether a sum is sure to decrypt and to be exact, by its worst case: a bound, never
//! a multiple of a deviation.

use crate::error::{Nearest, Refusal};
use crate::label::{Kind, Segment};
use crate::messages::{COEFFICIENTS, REQUEST_LIMIT, Request, Run, Weights, power};
use crate::parameters::Set;
use crate::ring::{NOISE, Ring};
use num_bigint::BigUint;

/// How far a planned sum stays from its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// log₂ of Q/2 over the worst noise: how often the sum could be doubled.
    pub noise_bits: f64,
    /// log₂ of t/2 over the greatest sum; none for sums modulo t.
    pub range_bits: Option<f64>,
}

/// A request that is sure to be answered exactly, if it is answered honestly. Only
/// planning makes one, and only an answer to one can be verified.
#[derive(Clone, Debug)]
pub struct Question {
    request: Request,
    margin: Margin,
}

impl Question {
    /// What the server is sent.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How far it is from being refused.
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }
}

/// Plans a request whose items per slot and block are `bound` at most in magnitude.
pub(crate) fn plan(set: Set, request: Request, bound: u128) -> Result<Question, Refusal> {
    let ring = set.ring();
    let weights = total(ring, &request)?;
    let largest = largest(ring, &request);
    let modular = matches!(request.weights, Weights::Powers(_));
    let limits = Limits::new(ring, set.name(), ring.modulus(), noise(ring, request.kind));
    let margin = limits.check(&weights, (!modular).then_some(bound), |most| {
        most / (&largest).max(&BigUint::from(1_u32))
    })?;
    let asked = request.blocks();
    if asked > REQUEST_LIMIT {
        return Err(Refusal::Blocks { asked, most: REQUEST_LIMIT });
    }
    if matches!(&request.weights, Weights::Polynomial(c) if c.len() > COEFFICIENTS) {
        return Err(Refusal::Coefficients { most: COEFFICIENTS });
    }
    Ok(Question { request, margin })
}

/// Whether a sum of one block, with items up to `bound`, can be asked at all.
pub(crate) fn bears(set: Set, kind: Kind, bound: u128) -> Result<(), Refusal> {
    let run = Run { segment: Segment([0; 16]), epoch: 0, from: 0, to: 1 };
    plan(set, Request { kind, runs: vec![run], weights: Weights::Ones }, bound).map(drop)
}

/// What a sum may reach.
pub(crate) struct Limits {
    set: &'static str,
    /// The noise of one summand, and what all may have.
    noise: BigUint,
    room: BigUint,
    /// (t − 1)/2.
    half: BigUint,
}

impl Limits {
    /// Of a set with that modulus and t as `ring` has it.
    pub(crate) fn new(ring: &Ring, set: &'static str, modulus: BigUint, noise: BigUint) -> Self {
        let half = BigUint::from((ring.plain_modulus() - 1) / 2);
        Self { set, noise, room: (modulus - 1_u32) / 2_u32, half }
    }

    /// Weights that add up to so much, of items up to `bound`, if they are summed exactly.
    /// `blocks` says how many blocks have weights that add up to so much.
    pub(crate) fn check(
        &self,
        weights: &BigUint,
        bound: Option<u128>,
        blocks: impl Fn(&BigUint) -> BigUint,
    ) -> Result<Margin, Refusal> {
        let Self { set, noise, room, half } = self;
        let nearest = |most: &BigUint| nearest(&blocks(most));
        if weights * noise > *room {
            let most = room / noise;
            let (nearest, most) = (nearest(&most), most.to_string());
            return Err(Refusal::Noise { weights: weights.to_string(), most, set, nearest });
        }
        if let Some(bound) = bound.filter(|bound| weights * *bound > *half) {
            let most = half / bound.max(1);
            let nearest = match nearest(&most) {
                Nearest::OtherSet => Nearest::Narrower,
                fewer => fewer,
            };
            let most = most.to_string();
            let (bound, weights) = (bound.to_string(), weights.to_string());
            return Err(Refusal::Range { bound, weights, most, set, nearest });
        }
        Ok(Margin {
            noise_bits: bits(room) - bits(&(weights * noise)),
            range_bits: bound.map(|bound| bits(half) - bits(&(weights * bound.max(1)))),
        })
    }
}

/// The greatest magnitude of a coefficient of m + t·e, or of a product of two such.
pub(crate) fn noise(ring: &Ring, kind: Kind) -> BigUint {
    let t = BigUint::from(ring.plain_modulus());
    let fresh: BigUint = &t * NOISE + t / 2_u32;
    match kind {
        Kind::Column(_) => fresh,
        Kind::Product(..) => &fresh * &fresh * ring.degree(),
    }
}

/// Σ|w|, exactly.
pub(crate) fn total(ring: &Ring, request: &Request) -> Result<BigUint, Refusal> {
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
            let wanted = request.runs.last().map_or(0, |run| run.to.saturating_sub(*first));
            let given = weights.len() as u64;
            if given != wanted || request.runs.first().is_some_and(|run| run.from < *first) {
                return Err(Refusal::Weights { given, wanted });
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

/// The greatest |w|, for the nearest query.
pub(crate) fn largest(ring: &Ring, request: &Request) -> BigUint {
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

fn nearest(blocks: &BigUint) -> Nearest {
    match u64::try_from(blocks) {
        Ok(0) => Nearest::OtherSet,
        Ok(blocks) => Nearest::Blocks(blocks.min(REQUEST_LIMIT)),
        Err(_) => Nearest::Blocks(REQUEST_LIMIT),
    }
}

/// log₂, near enough to report.
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

    /// What the parameter sets are said to be for.
    #[test]
    fn sets_bear_what_they_are_for() {
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

    /// What a server would refuse is refused here.
    #[test]
    fn requests_are_no_larger_than_servers_take() {
        let most = 1 << 20;
        assert!(plan(Set::X128, request(COLUMN, most, Weights::Ones), 1).is_ok());
        let refusal = plan(Set::X128, request(COLUMN, most + 1, Weights::Ones), 1).err();
        assert_eq!(refusal, Some(Refusal::Blocks { asked: most + 1, most }));
        let weights = |count| Weights::Polynomial(vec![1; count]);
        assert!(plan(Set::X128, request(COLUMN, 2, weights(16)), 1).is_ok());
        let refusal = plan(Set::X128, request(COLUMN, 2, weights(17)), 1).err();
        assert_eq!(refusal, Some(Refusal::Coefficients { most: 16 }));
    }

    /// Each rule with its numbers, and a nearest query that is indeed allowed.
    #[test]
    fn refusals_name_a_nearest_query_that_is_allowed() {
        let bound = 1_u128 << 32;
        let cases = [
            (Set::X128, SQUARE, 1 << 20, Weights::Ones, bound * bound),
            (Set::L128, COLUMN, 1 << 37, Weights::Ones, 1),
            (Set::S128, SQUARE, 1 << 12, Weights::Ones, 1),
            (Set::X128, COLUMN, 1 << 30, Weights::Ones, 1 << 60),
        ];
        for (set, kind, blocks, weights, bound) in cases {
            let refusal = plan(set, request(kind, blocks, weights.clone()), bound).unwrap_err();
            let (Refusal::Noise { nearest, .. } | Refusal::Range { nearest, .. }) = refusal else {
                panic!("{refusal}")
            };
            let Nearest::Blocks(most) = nearest else { panic!("{nearest}") };
            assert!(plan(set, request(kind, most, weights.clone()), bound).is_ok(), "{set}");
            assert!(plan(set, request(kind, most + 1, weights), bound).is_err(), "{set}");
        }
        let refused = plan(Set::L128, request(SQUARE, 1, Weights::Ones), 1).unwrap_err();
        assert!(matches!(refused, Refusal::Noise { nearest: Nearest::OtherSet, .. }));
        let refused = plan(Set::X128, request(SQUARE, 1, Weights::Ones), 1 << 90).unwrap_err();
        assert!(matches!(refused, Refusal::Range { nearest: Nearest::Narrower, .. }));
    }
}
