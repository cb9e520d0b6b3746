//! The keys that the owner of a table derives from 32 bytes.

use crate::cipher::{Ciphertext, SecretKey};
use crate::hash::HashKey;
use crate::label::{Address, DataSet, Kind, Order};
use crate::ring::Ring;
use crate::sampling;
use alpheus_crypto::kdf;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The owner's key. With the owner's state, it is all that querying and verifying need.
pub struct TableKey(Secret<32>);

impl TableKey {
    /// Draws a fresh key.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        Self(Secret::random(rng))
    }

    /// A key that was stored.
    #[must_use]
    pub fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// The bytes to store.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

/// A table's secrets: s, the hash key, and the keys that masks and ciphertexts derive from.
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

    /// Encrypts one column of a block. Returns its public seed and the ciphertext.
    ///
    /// Seed and noise derive from `fresh`, the label and the slots themselves. So no two
    /// messages share them, even if generator and label repeat (an owner resumed twice from
    /// one snapshot of its memory). If they did, the difference of the ciphertexts would be
    /// that of the messages, in the clear.
    pub(crate) fn encrypt(
        &self,
        address: &Address,
        kind: Kind,
        slots: &[i64],
        fresh: &[u8; 32],
    ) -> ([u8; 32], Ciphertext) {
        let label = mask_label(self, address, kind);
        let message: Zeroizing<Vec<u8>> =
            Zeroizing::new(slots.iter().flat_map(|slot| slot.to_le_bytes()).collect());
        let name = labels::TABLE_BLOCK;
        let own: Secret<32> =
            kdf::derive(self.blocks.expose(), name, &[b"message", fresh, &label, &message]);
        let seed: Secret<32> = kdf::derive(own.expose(), name, &[b"seed"]);
        let noise = sampling::subkey(own.expose(), name, &[b"noise"]);
        let seed = *seed.expose();
        let ciphertext = self.secret.encrypt(self.ring, slots, &seed, &noise);
        (seed, ciphertext)
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

    /// An owner resumed twice from one snapshot of its memory draws the same randomness and
    /// seals under the same label. Different rows must still get different noise.
    #[test]
    fn different_messages_have_different_seeds_and_noise() {
        let keys = keys(Order::ONE);
        let address = Address { segment: crate::label::Segment([2; 16]), epoch: 0, index: 0 };
        let kind = Kind::Column(crate::label::Column(0));
        let n = keys.ring.degree();
        let (zeros, mut one) = (vec![0; n], vec![0; n]);
        one[n - 1] = 1;
        let seal = |slots: &[i64]| keys.encrypt(&address, kind, slots, &[3; 32]);
        let ((seed, a), (other, b)) = (seal(&zeros), seal(&one));
        assert_ne!(seed, other);
        assert!(a.0[1] != b.0[1] && a.0[0] != b.0[0]);
        assert_eq!(seal(&zeros).0, seed, "the same message gives the same ciphertext");
    }
}
