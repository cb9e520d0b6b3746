//! Sums of multiples by secret scalars, in constant time.

use super::{BASE, Element, IdentityError, SECOND_BASE, SecretScalar};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, MultiscalarMul};
use std::sync::LazyLock;

/// A scalar and the element that it multiplies.
pub type Multiple<'a> = (&'a SecretScalar, &'a Element);

static HALF: LazyLock<Scalar> = LazyLock::new(|| Scalar::from(2_u8).invert());

impl Element {
    /// Σ kᵢ·Pᵢ + Σ plus − Σ minus. The time depends on the numbers of terms and on
    /// whether an element is G or H, but not on the scalars.
    ///
    /// # Errors
    /// [`IdentityError`] if the sum is the identity.
    pub fn combine(
        terms: &[Multiple<'_>],
        plus: &[&Self],
        minus: &[&Self],
    ) -> Result<Self, IdentityError> {
        let mut sum = sum(terms);
        plus.iter().for_each(|element| sum += element.point);
        minus.iter().for_each(|element| sum -= element.point);
        Self::of(sum)
    }

    /// Σ kᵢ·Pᵢ for each list of multiples. The time does not depend on the scalars. The
    /// encodings share one inversion, so each costs a sixth of a separate one.
    ///
    /// # Errors
    /// [`IdentityError`] if a sum is the identity.
    pub fn combine_all(sums: &[&[Multiple<'_>]]) -> Result<Vec<Self>, IdentityError> {
        // The batch encoding doubles its points, so it gets halves.
        let half = |terms: &&[Multiple<'_>]| {
            let scalars = terms.iter().map(|(scalar, _)| SecretScalar(Box::new(*scalar.0 * *HALF)));
            let scalars: Vec<SecretScalar> = scalars.collect();
            let elements = terms.iter().map(|(_, element)| *element);
            sum(&scalars.iter().zip(elements).collect::<Vec<_>>())
        };
        let halves: Vec<RistrettoPoint> = sums.iter().map(half).collect();
        if halves.iter().any(IsIdentity::is_identity) {
            return Err(IdentityError);
        }
        let encoded = RistrettoPoint::double_and_compress_batch(&halves);
        let element = |(half, bytes): (&RistrettoPoint, CompressedRistretto)| Self {
            point: half + half,
            bytes: bytes.to_bytes(),
        };
        Ok(halves.iter().zip(encoded).map(element).collect())
    }

    /// k·P, in a time that does not depend on k.
    ///
    /// # Errors
    /// [`IdentityError`] if the scalar is zero, which a decoded or random one never is.
    pub fn times(&self, scalar: &SecretScalar) -> Result<Self, IdentityError> {
        Self::combine(&[(scalar, self)], &[], &[])
    }

    fn is_base(&self) -> bool {
        self.bytes == BASE.bytes || self.bytes == SECOND_BASE.0.bytes
    }

    /// k·P for G and H, which have precomputed tables.
    fn times_fixed(&self, scalar: &SecretScalar) -> RistrettoPoint {
        if self.bytes == BASE.bytes {
            RistrettoPoint::mul_base(&scalar.0)
        } else {
            &SECOND_BASE.1 * &*scalar.0
        }
    }
}

fn sum(terms: &[Multiple<'_>]) -> RistrettoPoint {
    let (fixed, others): (Vec<_>, Vec<_>) =
        terms.iter().partition(|(_, element)| element.is_base());
    let fixed: RistrettoPoint =
        fixed.iter().map(|(scalar, element)| element.times_fixed(scalar)).sum();
    match others.as_slice() {
        [] => fixed,
        [(scalar, element)] => fixed + element.point * *scalar.0,
        others => {
            let scalars = others.iter().map(|(scalar, _)| &*scalar.0);
            let points = others.iter().map(|(_, element)| &element.point);
            fixed + RistrettoPoint::multiscalar_mul(scalars, points)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    use proptest::prelude::*;

    #[test]
    fn a_batch_with_a_sum_that_is_the_identity_fails() {
        let (g, one) = (Element::base(), SecretScalar::from_small(1));
        let (zero, minus) = (SecretScalar::from_small(0), SecretScalar::from_small(0).minus(&one));
        let [good, nothing]: [&[Multiple<'_>]; 2] = [&[(&one, &g)], &[(&one, &g), (&minus, &g)]];
        assert_eq!(Element::combine_all(&[good]), Ok(vec![g]));
        for bad in [nothing, &[(&zero, &g)], &[]] {
            assert_eq!(Element::combine_all(&[good, bad]), Err(IdentityError));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn tables_single_and_multiple_multiplication_agree(seed: [u8; 32]) {
            let rng = &mut ChaCha20Rng::from_seed(seed);
            let [a, b, c] = std::array::from_fn(|_| SecretScalar::random(rng));
            let (g, h) = (Element::base(), Element::second_base());
            let p = Element::from_hash("alpheus/test-element/v1", &[&seed]);
            let whole = Element::combine(&[(&a, &g), (&b, &p), (&c, &h)], &[&p], &[&h]).unwrap();
            let b1 = b.plus(&SecretScalar::from_small(1));
            let c1 = c.minus(&SecretScalar::from_small(1));
            let parts = [g.times(&a).unwrap(), p.times(&b1).unwrap(), h.times(&c1).unwrap()];
            let [x, y, z] = &parts;
            prop_assert_eq!(Element::combine(&[], &[x, y, z], &[]), Ok(whole));
            prop_assert_eq!(p.times(&a.times(&a.inverse().unwrap())), Ok(p));
            prop_assert_eq!(Element::from_bytes(whole.as_bytes()), Ok(whole));
            let other = Element::combine(&[(&b, &p), (&a, &h), (&c, &whole)], &[], &[]).unwrap();
            let again = [p.times(&b), h.times(&a), whole.times(&c)].map(Result::unwrap);
            prop_assert_eq!(Element::combine(&[], &again.each_ref(), &[]), Ok(other));
            let sums: [&[Multiple<'_>]; 3] =
                [&[(&b, &p), (&a, &h), (&c, &whole)], &[(&a, &g)], &[(&a, &p), (&b, &whole)]];
            let alone = sums.map(|sum| Element::combine(sum, &[], &[]).unwrap());
            let together = Element::combine_all(&sums).unwrap();
            prop_assert_eq!(together.as_slice(), alone.as_slice());
            for (one, other) in together.iter().zip(&alone) {
                // The points are the same, too.
                prop_assert_eq!(one.times(&c), other.times(&c));
            }
        }
    }
}
