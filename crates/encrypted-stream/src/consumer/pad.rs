//! `r_p = pad(k_pc, D_seal)`: what p adds to its token, and c takes off the sum.

use alpheus_crypto::agree::{AgreementKey, AgreementPublic, LowOrder};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::{PadDigest, Prf};
use alpheus_policy::ids::PlanId;
use alpheus_policy::time::Window;

/// What one controller and one consumer agreed on, for pads.
pub struct ConsumerPad(Prf);

impl ConsumerPad {
    /// Agrees: both sides get the same.
    ///
    /// # Errors
    /// [`LowOrder`] if the other's key would make the pads public.
    pub fn agree(key: &AgreementKey, their: &AgreementPublic) -> Result<ConsumerPad, LowOrder> {
        let agreed = key.agree(their)?;
        Ok(ConsumerPad(Prf::new(&derive(agreed.expose(), labels::CONSUMER_PAIR, &[]))))
    }

    /// Adds the pad: the controller's part, before its masks.
    pub fn put_on(&self, bound: &PadDigest, words: &mut [u64]) {
        self.0.add_pad(bound, words);
    }

    /// Subtracts the pad: the consumer's part.
    pub fn take_off(&self, bound: &PadDigest, words: &mut [u64]) {
        self.0.subtract_pad(bound, words);
    }
}

/// `D_seal`: what a window's pads are bound to. H(M) fixes every member's presence,
/// and so the token that the pad is for: no two tokens of a controller share one.
#[must_use]
pub fn bound(plan: &PlanId, window: Window, membership: &Digest) -> PadDigest {
    // The plan fixes the window's end.
    let start = window.start.0.to_be_bytes();
    PadDigest::new(&labelled(labels::CONSUMER_PAD, &[&plan.0, &start, membership.as_bytes()]))
}
