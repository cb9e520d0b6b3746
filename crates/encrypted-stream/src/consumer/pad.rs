//! `r_p = pad(k_pc, D_seal)`: controller p adds it to its token, and consumer c
//! subtracts it from the sum.

use alpheus_crypto::agree::{AgreementKey, AgreementPublic, LowOrderError};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::{PadDigest, Prf};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;

/// The key for pads that one controller and one consumer share.
pub struct ConsumerPad(Prf);

impl ConsumerPad {
    /// Agrees on the key. Both sides compute the same one.
    ///
    /// # Errors
    /// [`LowOrderError`] if the other party's key would make the pads public.
    pub fn agree(
        key: &AgreementKey,
        their: &AgreementPublic,
    ) -> Result<ConsumerPad, LowOrderError> {
        let agreed = key.agree(their)?;
        Ok(ConsumerPad(Prf::new(&derive(agreed.expose(), labels::CONSUMER_PAIR, &[]))))
    }

    /// Adds the pad. The controller does this, before it adds masks.
    pub fn add_to(&self, digest: &PadDigest, words: &mut [u64]) {
        self.0.add_pad(digest, words);
    }

    /// Subtracts the pad. The consumer does this.
    pub fn subtract_from(&self, digest: &PadDigest, words: &mut [u64]) {
        self.0.subtract_pad(digest, words);
    }
}

/// `D_seal`: the digest that a window's pads are bound to. H(M) fixes every
/// member's presence and thus the padded token, so no two tokens of a controller
/// share a pad.
#[must_use]
pub fn pad_digest(plan: &PlanId, window: Window, membership: &Digest) -> PadDigest {
    // The plan fixes the window's end.
    let start = window.start.0.to_be_bytes();
    PadDigest::new(&labelled_hash(labels::CONSUMER_PAD, &[&plan.0, &start, membership.as_bytes()]))
}
