//! A database's secrets for an epoch, and the masks that it derives from them. The auditor derives
//! the masks too, from what the database reveals whose share it checks.

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use zeroize::Zeroizing;

/// A database's secrets for an epoch, all derived from one seed. When the epoch ends they are wiped
/// from memory and deleted from the ledger, which does not erase them from the disk.
pub(crate) struct Secrets {
    /// The seed of all others.
    pub(crate) seed: Secret<32>,
    pub(crate) sealing: HybridKey,
    pub(crate) agreement: AgreementKey,
    pub(crate) coin: Secret<32>,
    pub(crate) nonce: Secret<32>,
}

impl Secrets {
    pub(crate) fn new(seed: &Secret<32>) -> Self {
        let part = |what: &[u8]| derive(seed.expose(), labels::BOARD_EPOCH, &[what]);
        Self {
            seed: seed.duplicate(),
            sealing: HybridKey::from_seed(&part(b"sealing")),
            agreement: AgreementKey::from_seed(&agreement_seed(seed)),
            coin: part(b"coin"),
            nonce: part(b"nonce"),
        }
    }
}

/// The seed of a database's agreement key. The auditor gets it if it checks this database's share, and
/// nothing else follows from it.
pub(crate) fn agreement_seed(seed: &Secret<32>) -> Secret<32> {
    derive(seed.expose(), labels::BOARD_EPOCH, &[b"agreement"])
}

/// Adds the mask that two databases share for one set. In the sum of all shares for the same set
/// the masks of all pairs cancel; for different sets they do not.
pub(crate) fn mask(agreed: &Secret<32>, set: &Digest, share: &mut [u8]) {
    let key: Secret<16> = derive(agreed.expose(), labels::BOARD_MASK, &[set.as_ref()]);
    let mut pad = Zeroizing::new(vec![0_u64; share.len().div_ceil(8)]);
    Prf::new(&key).keystream(0, &mut pad);
    let pad = pad.iter().flat_map(|word| word.to_le_bytes());
    share.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single share is noise. So is the sum of two shares that were masked for different sets.
    #[test]
    fn masks_cancel_for_one_set_only() {
        let keys = [1, 2].map(|n| AgreementKey::from_seed(&Secret::from_bytes([n; 32])));
        let agreed = keys[0].agree(&keys[1].public());
        let other = keys[1].agree(&keys[0].public());
        let (Ok(agreed), Ok(other)) = (agreed, other) else { panic!("good keys") };
        let (set, another) = (Digest([1; 32]), Digest([2; 32]));
        let mask = |agreed: &Secret<32>, set: &Digest| {
            let mut nothing = vec![0; 333];
            super::mask(agreed, set, &mut nothing);
            nothing
        };
        let masked = mask(&agreed, &set);
        assert_eq!(masked, mask(&other, &set), "both have the same");
        let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros(&masked) < 20);
        let sum = masked.iter().zip(mask(&other, &another)).map(|(a, b)| a ^ b);
        assert!(zeros(&sum.collect::<Vec<u8>>()) < 20);
    }
}
