//! Sampling from key streams: residues by rejection, ternary secrets, noise.
//!
//! The time reveals how many candidates were rejected, which says nothing about those that
//! were kept. Nothing else depends on the sampled values.

use crate::ring::{NOISE_BITS, Ring, Words};
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::{kdf, labels};
use zeroize::Zeroizing;

/// log₂ of the blocks in a stream, so that streams do not overlap.
const STREAM: u32 = 64;

/// The stream of a key and a number: AES-128 in counter mode from number·2^64.
pub(crate) struct Stream<'a> {
    prf: &'a Prf,
    next: u128,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(prf: &'a Prf, number: u64) -> Self {
        Self { prf, next: u128::from(number) << STREAM }
    }

    /// Fills in the next words. An odd last word costs a whole block.
    pub(crate) fn fill(&mut self, words: &mut [u64]) {
        self.prf.keystream(self.next, words);
        self.next += words.len().div_ceil(2) as u128;
    }

    /// Uniform residues modulo p: the low bits of each word, as many as p has, if they are
    /// below p.
    pub(crate) fn residues(&mut self, p: u64, out: &mut [u64]) {
        let mask = u64::MAX >> p.leading_zeros();
        let mut kept = 0;
        while kept < out.len() {
            let candidates = &mut out[kept..];
            self.fill(candidates);
            kept += compact(candidates, |word| (word & mask, word & mask < p));
        }
    }
}

/// Moves accepted words to the front, in order, and returns their count.
fn compact(words: &mut [u64], sample: impl Fn(u64) -> (u64, bool)) -> usize {
    let mut kept = 0;
    for at in 0..words.len() {
        let (word, accepted) = sample(words[at]);
        words[kept] = word;
        kept += usize::from(accepted);
    }
    kept
}

/// Derives a 16-byte key.
pub(crate) fn subkey(secret: &[u8], label: &str, parts: &[&[u8]]) -> Prf {
    let key: Secret<16> = kdf::derive(secret, label, parts);
    Prf::new(&key)
}

/// c1 of a ciphertext, as values. It is public, from a public seed. Limb j is stream j.
pub(crate) fn uniform(ring: &Ring, seed: &[u8; 32]) -> Vec<u64> {
    let mut words = vec![0; ring.words()];
    uniform_to(ring, seed, &mut words);
    words
}

/// The same, into an existing buffer.
pub(crate) fn uniform_to(ring: &Ring, seed: &[u8; 32], words: &mut [u64]) {
    let prf = subkey(seed, labels::TABLE_UNIFORM, &[ring.spec.name.as_bytes()]);
    for (j, (ntt, limb)) in ring.limbs_of(words).enumerate() {
        Stream::new(&prf, j as u64).residues(ntt.prime.p, limb);
    }
}

/// Each coefficient's noise plus [`crate::ring::NOISE`]: the number of set bits among 42.
pub(crate) fn noise(ring: &Ring, prf: &Prf) -> Words {
    let mut words = Zeroizing::new(vec![0; ring.degree()]);
    Stream::new(prf, 0).fill(&mut words);
    let mask = (1 << NOISE_BITS) - 1;
    words.iter_mut().for_each(|word| *word = u64::from((*word & mask).count_ones()));
    words
}

/// A uniform polynomial with coefficients −1, 0 and 1, as values.
pub(crate) fn ternary(ring: &Ring, prf: &Prf) -> Words {
    let digits = ternary_digits(ring.degree(), prf);
    let mut out = Zeroizing::new(vec![0; ring.words()]);
    for (ntt, limb) in ring.limbs_of(&mut out) {
        let p = ntt.prime.p;
        for (word, digit) in limb.iter_mut().zip(digits.iter()) {
            // digit − 1 modulo p, as p − 1, p or p + 1: lazy is enough.
            *word = p - 1 + digit;
        }
        ntt.forward(limb);
    }
    out
}

/// Uniform digits 0 to 2: pairs of bits from the low end of each word, with 3 rejected. The
/// vector is a little longer than n.
pub(crate) fn ternary_digits(n: usize, prf: &Prf) -> Words {
    let (mut stream, mut digits, mut kept) =
        (Stream::new(prf, 0), Zeroizing::new(vec![0; n + 32]), 0);
    while kept < n {
        let mut word = Zeroizing::new([0; 2]);
        stream.fill(word.as_mut_slice());
        for pair in 0..32 {
            let digit = word[0] >> (2 * pair) & 3;
            digits[kept] = digit;
            kept += usize::from(digit < 3);
            if kept == n {
                break;
            }
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Set;

    fn prf() -> Prf {
        Prf::from_bytes(&[7; 16])
    }

    #[test]
    fn residues_are_uniform_below_their_prime_and_differ_between_streams() {
        let mut all = vec![0; 4000];
        Stream::new(&prf(), 1).residues(12_289, &mut all);
        assert!(all.iter().all(|x| *x < 12_289));
        // The mean is within six standard errors.
        let mean = all.iter().sum::<u64>() / 4000;
        assert!((6144 - 340..6144 + 340).contains(&mean), "{mean}");
        let mut other = vec![0; 4000];
        Stream::new(&prf(), 2).residues(12_289, &mut other);
        assert_ne!(all, other);
    }

    #[test]
    fn noise_is_centred_binomial() {
        let ring = Set::X128.ring();
        let drawn = noise(ring, &prf());
        let square = |x: &u64| (x.cast_signed() - 21).pow(2);
        assert!(drawn.iter().all(|x| *x <= 42));
        let variance = drawn.iter().map(square).sum::<i64>() * 10 / 8192;
        assert!((100..110).contains(&variance), "expected 10.5, got {variance} tenths");
    }

    #[test]
    fn ternary_secrets_have_three_values_equally_often() {
        let ring = Set::L128.ring();
        let mut secret = ternary(ring, &prf());
        let mut counts = [0; 3];
        for (ntt, limb) in ring.limbs_of(&mut secret) {
            ntt.inverse(limb);
            let p = ntt.prime.p;
            assert!(limb.iter().all(|x| *x < 2 || *x == p - 1));
            limb.iter().for_each(|x| counts[usize::try_from((x + 1) % p).unwrap()] += 1);
        }
        assert!(counts.iter().all(|count| (2400..3060).contains(count)), "{counts:?}");
    }
}
