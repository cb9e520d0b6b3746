//! Scalars modulo q, the order of BLS12-381's groups: secret scalars that are wiped, sampling
//! from key streams, and transforms.
//!
//! The library's arithmetic on scalars takes constant time.

use alpheus_verifiable_table::baseline::Stream;
use blstrs::Scalar;
use ff::{Field, PrimeField};
use std::hint::black_box;
use std::ops::Deref;
use zeroize::Zeroizing;

/// Secret scalars, wiped when dropped, without `Debug` or `Clone`.
pub(crate) struct SecretScalars<T: AsMut<[Scalar]>>(pub(crate) T);

impl<T: AsMut<[Scalar]>> Deref for SecretScalars<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: AsMut<[Scalar]>> Drop for SecretScalars<T> {
    fn drop(&mut self) {
        self.0.as_mut().fill(Scalar::ZERO);
        // The library's scalars do not support `zeroize`. This keeps the writes.
        black_box(self.0.as_mut());
    }
}

pub(crate) const SCALAR: usize = 32;
const WORDS: usize = 4;

/// Uniform scalars: the low 255 bits of each four words, if they are below q.
pub(crate) fn draw(stream: &mut Stream<'_>, out: &mut [Scalar]) {
    let mut kept = 0;
    while kept < out.len() {
        let mut words = Zeroizing::new(vec![0; (out.len() - kept) * WORDS]);
        stream.fill(&mut words);
        for candidate in words.as_chunks_mut::<WORDS>().0 {
            candidate[WORDS - 1] &= u64::MAX >> 1;
            let scalar: Option<Scalar> = Scalar::from_u64s_le(candidate).into();
            if let (Some(scalar), Some(place)) = (scalar, out.get_mut(kept)) {
                *place = scalar;
                kept += 1;
            }
        }
    }
}

/// N secret uniform scalars.
pub(crate) fn draw_secret<const N: usize>(stream: &mut Stream<'_>) -> SecretScalars<[Scalar; N]> {
    let mut scalars = SecretScalars([Scalar::ZERO; N]);
    draw(stream, &mut scalars.0);
    scalars
}

/// A public signed number.
#[expect(clippy::cast_possible_truncation, reason = "each half of it")]
pub(crate) fn signed(x: i128) -> Scalar {
    let magnitude = x.unsigned_abs();
    let half = |shift: u32| Scalar::from((magnitude >> shift) as u64);
    let (low, high) = (half(0), half(64));
    let scalar = low + high * two_to(64);
    if x < 0 { -scalar } else { scalar }
}

/// 2^k.
pub(crate) fn two_to(k: u64) -> Scalar {
    Scalar::from(2).pow_vartime([k])
}

/// A cyclic transform of a power of two of values. `forward` leaves them in bit-reversed
/// order, which suits element-wise products, and `inverse` expects that order.
pub(crate) struct Transform {
    roots: Vec<Scalar>,
    inverses: Vec<Scalar>,
    scale: Scalar,
}

/// A root of unity of this order, a power of two up to 2^32.
pub(crate) fn root(order: usize) -> Scalar {
    Scalar::ROOT_OF_UNITY.pow_vartime([(1_u64 << Scalar::S) / order as u64])
}

/// 1, x, x², ….
pub(crate) fn powers(x: Scalar, count: usize) -> Vec<Scalar> {
    std::iter::successors(Some(Scalar::ONE), |power| Some(*power * x)).take(count).collect()
}

impl Transform {
    /// A transform of `size` values, a power of two.
    pub(crate) fn new(size: usize) -> Self {
        let root = root(size);
        let inverse = root.invert().unwrap_or(Scalar::ZERO);
        Self {
            roots: powers(root, size / 2),
            inverses: powers(inverse, size / 2),
            scale: Scalar::from(size as u64).invert().unwrap_or(Scalar::ZERO),
        }
    }

    /// Coefficients to values.
    pub(crate) fn forward(&self, words: &mut [Scalar]) {
        let (mut half, mut step) = (self.roots.len(), 1);
        while half > 0 {
            for chunk in words.chunks_exact_mut(2 * half) {
                let (low, high) = chunk.split_at_mut(half);
                let roots = self.roots.iter().step_by(step);
                for ((a, b), root) in low.iter_mut().zip(high).zip(roots) {
                    let difference = *a - *b;
                    *a += *b;
                    *b = difference * root;
                }
            }
            (half, step) = (half / 2, step * 2);
        }
    }

    /// Values to coefficients.
    pub(crate) fn inverse(&self, words: &mut [Scalar]) {
        let (mut half, mut step) = (1, self.inverses.len());
        while step > 0 {
            for chunk in words.chunks_exact_mut(2 * half) {
                let (low, high) = chunk.split_at_mut(half);
                let roots = self.inverses.iter().step_by(step);
                for ((a, b), root) in low.iter_mut().zip(high).zip(roots) {
                    let turned = *b * root;
                    *b = *a - turned;
                    *a += turned;
                }
            }
            (half, step) = (half * 2, step / 2);
        }
        words.iter_mut().for_each(|word| *word *= self.scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::prf::Prf;

    #[test]
    fn transforms_multiply_as_polynomials_do() {
        let (mut a, mut b) = (vec![Scalar::ZERO; 16], vec![Scalar::ZERO; 16]);
        let prf = Prf::from_bytes(&[1; 16]);
        draw(&mut Stream::new(&prf, 0), &mut a[..8]);
        draw(&mut Stream::new(&prf, 1), &mut b[..8]);
        let mut expected = vec![Scalar::ZERO; 16];
        for (i, x) in a.iter().enumerate().take(8) {
            for (j, y) in b.iter().enumerate().take(8) {
                expected[i + j] += *x * y;
            }
        }
        let transform = Transform::new(16);
        transform.forward(&mut a);
        transform.forward(&mut b);
        a.iter_mut().zip(&b).for_each(|(a, b)| *a *= b);
        transform.inverse(&mut a);
        assert_eq!(a, expected);
    }

    #[test]
    fn signed_numbers_keep_their_value() {
        assert_eq!(signed(-1), -Scalar::ONE);
        assert_eq!(signed(1 << 100), two_to(100));
        assert_eq!(signed(i128::MIN), -two_to(127));
    }
}
