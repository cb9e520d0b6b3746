//! The audit's digest: acc = Σ_x (H(x, s_x, t_x) ⊕ t_x·cs)·κ^(rows − x) over
//! GF(2^128)^4, by carry-less multiplication.
//!
//! The product is POLYVAL's (RFC 8452 §3), which carries a fixed factor X^−128:
//! κ is uniform, so κ·X^−128 is.

use aes::Block;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

/// κ: where the digest's polynomials are evaluated. Drawn by both servers after
/// the batch has closed; public once the digests are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kappa(pub [u8; 16]);

/// One key's digest. Both servers' are equal for a key that writes one row at
/// most; unequal for any other but with a chance of about rows/2^128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDigest(pub [u8; 64]);

/// A digest under way: four polynomials, one for each block of H.
#[derive(Clone)]
pub(super) struct Running([Polyval; 4]);

impl Running {
    pub(super) fn new(kappa: &Kappa) -> Self {
        let one = Polyval::new(&kappa.0.into());
        Self([one.clone(), one.clone(), one.clone(), one])
    }

    /// Takes the next rows: block i of each in `lanes[i]`.
    #[inline]
    pub(super) fn update(&mut self, lanes: [&[Block]; 4]) {
        self.0.iter_mut().zip(lanes).for_each(|(sum, lane)| sum.update(lane));
    }

    pub(super) fn finish(self) -> KeyDigest {
        let mut digest = [0; 64];
        for (out, sum) in digest.chunks_exact_mut(16).zip(self.0) {
            out.copy_from_slice(&sum.finalize());
        }
        KeyDigest(digest)
    }
}
