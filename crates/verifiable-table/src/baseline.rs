//! What a baseline scheme shares with this one: slot encoding, sampling and exactness bounds.
//!
//! A baseline that uses the same code for these parts differs from this crate only in what a
//! benchmark compares. For benchmarks alone; nothing here is a stable interface.

use crate::arithmetic::lanes::{Kernel, Lanes, WIDTH};
use crate::error::{PlanError, RequestError};
use crate::label::Kind;
use crate::messages::{self, Request, Weights};
use crate::planner::{self, Margin};
use crate::ring::Ring;
use crate::sampling;
use alpheus_crypto::prf::Prf;
use num_bigint::BigUint;
use zeroize::Zeroizing;

/// Words that are wiped when dropped.
pub type Words = Zeroizing<Vec<u64>>;

/// The largest noise of a coefficient.
pub const NOISE: u64 = crate::ring::NOISE;

/// An AES-128 key stream in counter mode. Streams of different numbers do not overlap.
pub struct Stream<'a>(sampling::Stream<'a>);

impl<'a> Stream<'a> {
    /// The stream of a key with this number.
    #[must_use]
    pub fn new(prf: &'a Prf, number: u64) -> Self {
        Self(sampling::Stream::new(prf, number))
    }

    /// Fills `words` from the stream. An odd count consumes a whole last block.
    pub fn fill(&mut self, words: &mut [u64]) {
        self.0.fill(words);
    }
}

/// Derives a 16-byte key.
#[must_use]
pub fn subkey(secret: &[u8], label: &str, parts: &[&[u8]]) -> Prf {
    sampling::subkey(secret, label, parts)
}

/// At least `n` uniform digits from 0 to 2.
#[must_use]
pub fn ternary_digits(n: usize, prf: &Prf) -> Words {
    sampling::ternary_digits(n, prf)
}

/// For each coefficient, its noise plus [`NOISE`].
#[must_use]
pub fn noise(ring: &Ring, prf: &Prf) -> Words {
    sampling::noise(ring, prf)
}

/// t1 and t2, whose product is t.
#[must_use]
pub fn plain_primes(ring: &Ring) -> [u64; 2] {
    ring.spec.t
}

/// Encodes slots into the coefficients x of a message, as digits:
/// x + (t − 1)/2 = v1 + t1·v2, with x centred.
#[must_use]
pub fn encode(ring: &Ring, slots: &[i64]) -> [Words; 2] {
    ring.digits(slots)
}

/// Decodes coefficients into the centred number of each slot.
///
/// Each coefficient is Σ digit·power + shift. `powers` holds, for t1 and for t2, the powers and
/// the shift modulo that prime.
#[must_use]
pub fn decode<const D: usize>(
    ring: &Ring,
    digits: &[Words; D],
    powers: &[([u64; D], u64); 2],
) -> Zeroizing<Vec<i128>> {
    ring.numbers(ring.backend.run(SumDigits { ring, digits, powers }))
}

/// x^(n·i) modulo t, centred: the weight of block i under [`Weights::Powers`].
#[must_use]
pub fn power(ring: &Ring, x: u64, i: u64) -> i128 {
    messages::power(ring, x, i)
}

/// Checks that a server accepts this many blocks and these weights in one request.
///
/// # Errors
/// [`RequestError::Blocks`] or [`RequestError::Weights`].
pub fn check_size(blocks: u64, weights: &Weights) -> Result<(), RequestError> {
    messages::check_size(blocks, weights)
}

/// The worst-case limits on a planned sum.
pub struct Limits<'a> {
    ring: &'a Ring,
    limits: planner::Limits,
}

impl<'a> Limits<'a> {
    /// Limits for sums of this kind modulo `modulus`, with the slots and t of `ring`.
    #[must_use]
    pub fn new(ring: &'a Ring, set: &'static str, modulus: BigUint, kind: Kind) -> Self {
        let noise = planner::noise(ring, kind);
        Self { ring, limits: planner::Limits::new(ring, set, modulus, noise) }
    }

    /// Checks weights with this total, over items up to `bound`; no bound if the sum is taken
    /// modulo t. `blocks` returns how many blocks have weights with a given total.
    ///
    /// # Errors
    /// [`PlanError::Noise`] or [`PlanError::Range`].
    pub fn check(
        &self,
        weights: &BigUint,
        bound: Option<u128>,
        blocks: impl Fn(&BigUint) -> BigUint,
    ) -> Result<Margin, PlanError> {
        self.limits.check(weights, bound, blocks)
    }

    /// Checks a request over items up to `bound`.
    ///
    /// # Errors
    /// [`PlanError::Noise`], [`PlanError::Range`] or [`PlanError::Weights`].
    pub fn check_request(&self, request: &Request, bound: u128) -> Result<Margin, PlanError> {
        self.limits.check_request(self.ring, request, bound)
    }
}

/// Σ digit·power + shift, modulo t1 and t2.
struct SumDigits<'a, const D: usize> {
    ring: &'a Ring,
    digits: &'a [Words; D],
    powers: &'a [([u64; D], u64); 2],
}

impl<const D: usize> Kernel for SumDigits<'_, D> {
    type Output = [Words; 2];

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> [Words; 2] {
        let digits = self.digits.each_ref().map(|words| words.as_chunks::<WIDTH>().0);
        [0, 1].map(|k| {
            let (m, (powers, shift)) = (self.ring.t[k].prime.on(lanes), &self.powers[k]);
            let (powers, shift) = (powers.map(|power| lanes.splat(power)), lanes.splat(*shift));
            let mut out = Zeroizing::new(vec![0; self.ring.degree()]);
            for (at, out) in out.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
                let pairs = digits.iter().zip(&powers);
                let add = |sum, (digits, power): (&&[[u64; WIDTH]], &L::V)| {
                    m.accumulate(sum, lanes.load(&digits[at]), *power)
                };
                let mut sum = pairs.fold(m.zero_sum(), add);
                sum.low = lanes.add(sum.low, shift);
                lanes.store(m.reduce_sum(sum), out);
            }
            out
        })
    }
}
