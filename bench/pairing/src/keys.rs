//! The keys derived from the owner's 32 bytes, and their use: encryption, hash, masks.

use crate::messages::Shape;
use crate::parameters::PairingSet;
use crate::ring::{PairingRing, Polynomial, SecretPolynomial, minus, plus, times};
use crate::scalars::{SecretScalars, draw_secret};
use crate::tag::Tag;
use alpheus_crypto::kdf;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::baseline::{self, Stream};
use alpheus_verifiable_table::label::{Column, DataSet};
use blstrs::Scalar;
use ff::Field;
use zeroize::Zeroizing;

/// β, α, z, and the keys that secrets, masks and ciphertexts derive from. They serve all data
/// sets of a key, so a function can be prepared once.
pub(crate) struct Keys {
    pub(crate) ring: &'static PairingRing,
    /// β, α.
    point: SecretScalars<[Scalar; 2]>,
    /// z, 1/z.
    z: SecretScalars<[Scalar; 2]>,
    secrets: Secret<32>,
    masks: Secret<32>,
    blocks: Secret<32>,
}

/// s and s² of one data set, as values.
pub(crate) struct DataSetSecret([SecretPolynomial; 2]);

/// The masks' factors: `r = u·a + v·b`, u and v of an input, a and b of a data set.
pub(crate) type Pair = SecretScalars<[Scalar; 2]>;

impl Keys {
    pub(crate) fn new(key: &TableKey, set: PairingSet) -> Self {
        let ring = set.ring();
        let parts = |purpose: &'static str| [purpose.as_bytes(), set.name().as_bytes()];
        let name = labels::TABLE_PAIRING_KEY;
        let prf = |purpose| baseline::subkey(key.expose(), name, &parts(purpose));
        let secret = |purpose| kdf::derive(key.expose(), name, &parts(purpose));
        let hash = draw_secret::<3>(&mut Stream::new(&prf("hash"), 0));
        let [beta, alpha, z] = *hash;
        Self {
            ring,
            point: SecretScalars([beta, alpha]),
            // Zero with probability 2^−255; then nothing would ever verify.
            z: SecretScalars([z, z.invert().unwrap_or(Scalar::ZERO)]),
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
        let parts: [&[u8]; 3] = [b"secret", &shape.data_set_label(data_set), name];
        let prf = baseline::subkey(self.secrets.expose(), labels::TABLE_PAIRING_KEY, &parts);
        let digits = baseline::ternary_digits(ring.degree(), &prf);
        let s = digits.iter().take(ring.degree()).map(|d| Scalar::from(*d) - Scalar::ONE);
        let mut s = SecretScalars(s.collect::<Polynomial>());
        s.0 = ring.values(std::mem::take(&mut s.0));
        let square = SecretScalars(s.iter().map(|s| *s * s).collect());
        DataSetSecret([s, square])
    }

    /// Encrypts one column of a block. Returns seed, c0 and c1. Seed and noise derive from
    /// randomness, label and slots, as in the main scheme.
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
        let noise = baseline::subkey(own.expose(), name, &[b"noise"]);
        let mut c0 = ring.encode(slots, &baseline::noise(ring.plain, &noise));
        let c1 = ring.uniform(seed.expose());
        // c1·s must stay secret: c1 is public, so it reveals s.
        let mut masked = SecretScalars(ring.values(c1.clone()));
        times(&mut masked.0, &secret.0[0]);
        masked.0 = ring.coefficients(std::mem::take(&mut masked.0));
        minus(&mut c0.0, &masked);
        // c0 is public now, so it need not be wiped.
        (*seed.expose(), [std::mem::take(&mut c0.0), c1])
    }

    /// The number in every slot, of a sum or a sum of products. For verified values only.
    pub(crate) fn decrypt(
        &self,
        secret: &DataSetSecret,
        components: &[Polynomial],
    ) -> Zeroizing<Vec<i128>> {
        let ring = self.ring;
        let Some((first, rest)) = components.split_first() else { return Zeroizing::default() };
        let mut masked = SecretScalars(vec![Scalar::ZERO; ring.degree()]);
        for (component, power) in rest.iter().zip(&secret.0) {
            let mut values = SecretScalars(ring.values(ring.reduce(component)));
            times(&mut values.0, power);
            plus(&mut masked.0, &values);
        }
        let mut phase = SecretScalars(ring.coefficients(std::mem::take(&mut masked.0)));
        plus(&mut phase.0, &ring.reduce(first));
        ring.decode(&phase)
    }

    /// `H(μ) = μ(β, α)`: the value at X = β, Y = α of a polynomial in Y whose coefficients
    /// are polynomials in X. Two different ones collide with probability at most their degree
    /// over q, (2n + 2)/q < 2^−239.
    pub(crate) fn hash(&self, components: &[Polynomial]) -> SecretScalars<[Scalar; 1]> {
        let [beta, alpha] = &*self.point;
        let at = |x: &Scalar, sum: Scalar, next: &Scalar| sum * x + next;
        let value = |c: &Polynomial| c.iter().rev().fold(Scalar::ZERO, |sum, c| at(beta, sum, c));
        SecretScalars([components
            .iter()
            .rev()
            .map(value)
            .fold(Scalar::ZERO, |sum, c| at(alpha, sum, &c))])
    }

    /// The key of the streams for a column's u and v.
    pub(crate) fn inputs(&self, column: Column) -> Prf {
        self.mask_key(&[b"input", &column.0.to_be_bytes()])
    }

    /// u and v of an input.
    pub(crate) fn input(inputs: &Prf, index: u64) -> Pair {
        draw_secret(&mut Stream::new(inputs, index))
    }

    /// a and b of a data set.
    pub(crate) fn data_set(&self, shape: &Shape, data_set: &DataSet) -> Pair {
        draw_secret(&mut Stream::new(
            &self.mask_key(&[b"data set", &shape.data_set_label(data_set)]),
            0,
        ))
    }

    fn mask_key(&self, parts: &[&[u8]]) -> Prf {
        let parts = [parts, &[self.ring.set.name().as_bytes()]].concat();
        baseline::subkey(self.masks.expose(), labels::TABLE_PAIRING_MASK, &parts)
    }

    /// The tag of a ciphertext under the mask of its data set and input.
    pub(crate) fn tag(&self, set: &Pair, input: &Pair, ciphertext: &[Polynomial]) -> Tag {
        let ([a, b], [u, v]) = (&**set, &**input);
        Tag::new(self.over_z(), &self.hash(ciphertext), &SecretScalars([*u * a + *v * b]))
    }
}
