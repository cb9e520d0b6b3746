//! What is derived from the owner's 32 bytes, and the work that takes it: encryption, the
//! hash, masks.

use super::messages::Shape;
use super::parameters::PairingSet;
use super::ring::{HiddenPolynomial, PairingRing, Polynomial, minus, plus, times};
use super::scalars::{Hidden, draw, drawn};
use super::tag::Tag;
use crate::keys::TableKey;
use crate::label::{Column, DataSet};
use crate::sampling::{self, Stream};
use alpheus_crypto::kdf;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use blstrs::Scalar;
use ff::Field;
use zeroize::Zeroizing;

/// β, α, z, and what secrets, masks and ciphertexts are derived from. The same for all data
/// sets of a key: that is what lets a function be prepared once.
pub(crate) struct Keys {
    pub(crate) ring: &'static PairingRing,
    /// β, α.
    point: Hidden<[Scalar; 2]>,
    /// z, 1/z.
    z: Hidden<[Scalar; 2]>,
    secrets: Secret<32>,
    masks: Secret<32>,
    blocks: Secret<32>,
}

/// s and s² of one data set, as values.
pub(crate) struct DataSetSecret([HiddenPolynomial; 2]);

/// The masks' factors: `r = u·a + v·b`, u and v of an input, a and b of a data set.
pub(crate) type Pair = Hidden<[Scalar; 2]>;

impl Keys {
    pub(crate) fn new(key: &TableKey, set: PairingSet) -> Self {
        let ring = set.ring();
        let parts = |purpose: &'static str| [purpose.as_bytes(), set.name().as_bytes()];
        let name = labels::TABLE_PAIRING_KEY;
        let prf = |purpose| sampling::subkey(key.expose(), name, &parts(purpose));
        let secret = |purpose| kdf::derive(key.expose(), name, &parts(purpose));
        let hash = drawn::<3>(&mut Stream::new(&prf("hash"), 0));
        let [beta, alpha, z] = *hash;
        Self {
            ring,
            point: Hidden([beta, alpha]),
            // Zero with chance 2^−255; nothing would ever verify.
            z: Hidden([z, z.invert().unwrap_or(Scalar::ZERO)]),
            secrets: secret("secrets"),
            masks: secret("masks"),
            blocks: secret("blocks"),
        }
    }

    pub(crate) fn z(&self) -> &Scalar {
        &self.z.0[0]
    }

    pub(crate) fn over_z(&self) -> &Scalar {
        &self.z.0[1]
    }

    /// s of a data set.
    pub(crate) fn secret(&self, shape: &Shape, data_set: &DataSet) -> DataSetSecret {
        let (ring, name) = (self.ring, self.ring.set.name().as_bytes());
        let parts: [&[u8]; 3] = [b"secret", &shape.named(data_set), name];
        let prf = sampling::subkey(self.secrets.expose(), labels::TABLE_PAIRING_KEY, &parts);
        let digits = sampling::ternary_digits(ring.degree(), &prf);
        let s = digits.iter().take(ring.degree()).map(|d| Scalar::from(*d) - Scalar::ONE);
        let mut s = Hidden(s.collect::<Polynomial>());
        s.0 = ring.values(std::mem::take(&mut s.0));
        let square = Hidden(s.iter().map(|s| *s * s).collect());
        DataSetSecret([s, square])
    }

    /// Encrypts one column of a block, as [`crate::keys::Keys::encrypt`] does: seed and
    /// noise are derived from randomness, label and slots. Seed, c0, c1.
    pub(crate) fn encrypt(
        &self,
        secret: &DataSetSecret,
        label: &[u8],
        slots: &[i64],
        fresh: &[u8; 32],
    ) -> ([u8; 32], [Polynomial; 2]) {
        let bytes = slots.iter().flat_map(|slot| slot.to_le_bytes());
        let message: Zeroizing<Vec<u8>> = Zeroizing::new(bytes.collect());
        let (name, ring) = (labels::TABLE_PAIRING_BLOCK, self.ring);
        let parts: [&[u8]; 4] = [b"message", fresh, label, &message];
        let own: Secret<32> = kdf::derive(self.blocks.expose(), name, &parts);
        let seed: Secret<32> = kdf::derive(own.expose(), name, &[b"seed"]);
        let noise = sampling::subkey(own.expose(), name, &[b"noise"]);
        let mut c0 = ring.encode(slots, &sampling::noise(ring.plain, &noise));
        let c1 = uniform(ring, seed.expose());
        // c1·s: c1 is public, so that this is as good as s.
        let mut masked = Hidden(ring.values(c1.clone()));
        times(&mut masked.0, &secret.0[0]);
        masked.0 = ring.coefficients(std::mem::take(&mut masked.0));
        minus(&mut c0.0, &masked);
        // c0 is public now, and goes without being wiped.
        (*seed.expose(), [std::mem::take(&mut c0.0), c1])
    }

    /// Every slot's number, of a sum or a sum of products. Only for what has been verified.
    pub(crate) fn decrypt(
        &self,
        secret: &DataSetSecret,
        components: &[Polynomial],
    ) -> Zeroizing<Vec<i128>> {
        let ring = self.ring;
        let Some((first, rest)) = components.split_first() else { return Zeroizing::default() };
        let mut masked = Hidden(vec![Scalar::ZERO; ring.degree()]);
        for (component, power) in rest.iter().zip(&secret.0) {
            let mut values = Hidden(ring.values(ring.reduced(component)));
            times(&mut values.0, power);
            plus(&mut masked.0, &values);
        }
        let mut phase = Hidden(ring.coefficients(std::mem::take(&mut masked.0)));
        plus(&mut phase.0, &ring.reduced(first));
        ring.decode(&phase)
    }

    /// `H(μ) = μ(β, α)`: the value at X = β, Y = α of a polynomial in Y whose coefficients
    /// are polynomials in X. Different ones meet with probability at most their degree
    /// over q, (2n + 2)/q < 2^−239.
    pub(crate) fn hash(&self, components: &[Polynomial]) -> Hidden<[Scalar; 1]> {
        let [beta, alpha] = &*self.point;
        let at = |x: &Scalar, sum: Scalar, next: &Scalar| sum * x + next;
        let value = |c: &Polynomial| c.iter().rev().fold(Scalar::ZERO, |sum, c| at(beta, sum, c));
        Hidden([components.iter().rev().map(value).fold(Scalar::ZERO, |sum, c| at(alpha, sum, &c))])
    }

    /// The stream that a column's u and v come from.
    pub(crate) fn inputs(&self, column: Column) -> Prf {
        self.mask_key(&[b"input", &column.0.to_be_bytes()])
    }

    /// u and v of an input.
    pub(crate) fn input(inputs: &Prf, index: u64) -> Pair {
        drawn(&mut Stream::new(inputs, index))
    }

    /// a and b of a data set.
    pub(crate) fn data_set(&self, shape: &Shape, data_set: &DataSet) -> Pair {
        drawn(&mut Stream::new(&self.mask_key(&[b"data set", &shape.named(data_set)]), 0))
    }

    fn mask_key(&self, parts: &[&[u8]]) -> Prf {
        let parts = [parts, &[self.ring.set.name().as_bytes()]].concat();
        sampling::subkey(self.masks.expose(), labels::TABLE_PAIRING_MASK, &parts)
    }

    /// The tag of a ciphertext under the mask of its data set and input.
    pub(crate) fn tag(&self, set: &Pair, input: &Pair, ciphertext: &[Polynomial]) -> Tag {
        let ([a, b], [u, v]) = (&**set, &**input);
        Tag::new(self, &self.hash(ciphertext), &Hidden([*u * a + *v * b]))
    }
}

/// c1 of a ciphertext: public, from a public seed.
pub(crate) fn uniform(ring: &PairingRing, seed: &[u8; 32]) -> Polynomial {
    let name = ring.set.name().as_bytes();
    let prf = sampling::subkey(seed, labels::TABLE_PAIRING_UNIFORM, &[name]);
    let mut words = vec![Scalar::ZERO; ring.degree()];
    draw(&mut Stream::new(&prf, 0), &mut words);
    words
}
