//! A tag: `T = g^ν, U = h^ν, X = g^y, Y = h^y` with `y = (r − ν)/z` (section 5.1).

use crate::elements::{self, ElementError, G1, G2};
use crate::scalars::SecretScalars;
use blstrs::{G1Affine, G2Affine, G2Projective, Scalar};
use group::{Curve, Group};

/// The tag of one ciphertext. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) t: G1Affine,
    pub(crate) u: G2Affine,
    pub(crate) x: G1Affine,
    pub(crate) y: G2Affine,
}

pub(crate) const TAG: usize = 2 * (G1 + G2);

impl Tag {
    /// The tag of a hash ν under the mask r, with 1/z.
    pub(crate) fn new(
        over_z: &Scalar,
        hash: &SecretScalars<[Scalar; 1]>,
        mask: &SecretScalars<[Scalar; 1]>,
    ) -> Self {
        let ([hash], [mask]) = (&**hash, &**mask);
        let y = SecretScalars([(*mask - hash) * over_z]);
        let [y] = &*y;
        let second = |k: &Scalar| (G2Projective::generator() * k).to_affine();
        let first = |k: &Scalar| elements::generator_power(k).to_affine();
        Self { t: first(hash), u: second(hash), x: first(y), y: second(y) }
    }

    pub(crate) fn to_bytes(self) -> [u8; TAG] {
        let mut bytes = [0; TAG];
        let (low, high) = bytes.split_at_mut(TAG / 2);
        for (half, (first, second)) in [(low, (self.t, self.u)), (high, (self.x, self.y))] {
            let (a, b) = half.split_at_mut(G1);
            a.copy_from_slice(&first.to_compressed());
            b.copy_from_slice(&second.to_compressed());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; TAG]) -> Result<Self, ElementError> {
        let half = |at: usize| {
            let rest = bytes.split_at(at).1;
            let (a, rest) = rest.split_first_chunk::<G1>().ok_or(ElementError::G1)?;
            let (b, _) = rest.split_first_chunk::<G2>().ok_or(ElementError::G2)?;
            Ok((elements::first(a)?, elements::second(b)?))
        };
        let ((t, u), (x, y)) = (half(0)?, half(TAG / 2)?);
        Ok(Self { t, u, x, y })
    }
}
