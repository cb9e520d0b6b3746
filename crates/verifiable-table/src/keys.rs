//! What the owner of a table derives from 32 bytes.

use crate::cipher::{Ciphertext, SecretKey};
use crate::hash::HashKey;
use crate::label::{Address, DataSet, Kind, Order};
use crate::mask::Masks;
use crate::ring::Ring;
use crate::sampling;
use crate::tag::Tag;
use alpheus_crypto::kdf;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;

/// The owner's key: with the owner's state all that is needed to ask and check.
pub struct TableKey(Secret<32>);

impl TableKey {
    /// A fresh one.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self(Secret::random(rng))
    }

    /// One that was kept.
    #[must_use]
    pub fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// Its bytes, to keep.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

/// A table's secrets: s, the hash, and what masks and ciphertexts are derived from.
pub(crate) struct Keys {
    pub(crate) ring: &'static Ring,
    pub(crate) data_set: DataSet,
    pub(crate) order: Order,
    pub(crate) secret: SecretKey,
    pub(crate) hash: HashKey,
    pub(crate) masks: Secret<32>,
    blocks: Secret<32>,
}

impl Keys {
    pub(crate) fn new(
        key: &TableKey,
        ring: &'static Ring,
        data_set: DataSet,
        order: Order,
    ) -> Self {
        let parts =
            |purpose: &'static str| [purpose.as_bytes(), &data_set.0, ring.spec.name.as_bytes()];
        let prf = |purpose| sampling::subkey(key.expose(), labels::TABLE_KEY, &parts(purpose));
        let secret = |purpose| kdf::derive(key.expose(), labels::TABLE_KEY, &parts(purpose));
        Self {
            ring,
            data_set,
            order,
            secret: SecretKey::new(ring, &prf("secret")),
            hash: HashKey::new(ring, &prf("hash")),
            masks: secret("masks"),
            blocks: secret("blocks"),
        }
    }

    /// Encrypts one column of a block: its public seed, and the ciphertext. `fresh` is
    /// hashed with the label, so that a generator that repeats itself (a machine
    /// resumed from a snapshot) does not use a stream of noise under two labels.
    pub(crate) fn encrypt(
        &self,
        address: &Address,
        kind: Kind,
        slots: &[i64],
        fresh: &[u8; 32],
    ) -> ([u8; 32], Ciphertext) {
        let label = mask_label(self, address, kind);
        let seed: Secret<32> =
            kdf::derive(self.blocks.expose(), labels::TABLE_BLOCK, &[b"seed", fresh, &label]);
        let noise =
            sampling::subkey(self.blocks.expose(), labels::TABLE_BLOCK, &[b"noise", fresh, &label]);
        let seed = *seed.expose();
        let ciphertext = self.secret.encrypt(self.ring, slots, &seed, &noise);
        (seed, ciphertext)
    }

    /// r(label) + L(c).
    pub(crate) fn tag(&self, address: &Address, kind: Kind, ciphertext: &Ciphertext) -> Tag {
        let masks = Masks::new(self, (address.segment, address.epoch), kind);
        let mut tag = masks.of(address.index);
        tag.add_times(self.ring, &self.hash.hash(self.ring, &ciphertext.parts()), 1);
        tag
    }
}

fn mask_label(keys: &Keys, address: &Address, kind: Kind) -> Vec<u8> {
    let at = (address.segment, address.epoch);
    let mut label = crate::label::mask_parts(keys.ring, keys.data_set, at, kind, keys.order);
    label.extend(address.index.to_be_bytes());
    label
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::parameters::Set;

    pub(crate) fn keys(order: Order) -> Keys {
        let key = TableKey::new(Secret::from_bytes([9; 32]));
        Keys::new(&key, Set::L128.ring(), DataSet([1; 16]), order)
    }
}
