//! How a deployment is set up: its configuration, and a key without a trusted dealer.

use super::{AGGREGATOR, AnyError, DAY, DEFINER, MINUTE, OPERATOR, TODAY, sealing, signing};
use alpheus_accountable_statistics::configuration::{
    Configuration, Days, KeyEpoch, Limits, PinnedConfiguration, Smoother as SmootherEntry,
    SmootherId,
};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::{Dealer, VerifiedDealing};
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_anonymous_credential::configuration::Configuration as Credential;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

/// A credential of the deployment: kind 0 for uploads, j + 1 for the slots of smoother j.
fn credential(kind: u32, key: &IssuerKey) -> Credential {
    let schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(DAY),
        pre_login: Span(0),
        border_pre_login: Span(0),
        epochs_per_period: 7,
        ahead: 0,
    };
    let (limit, issuer) = (Limit::ONE, *key.public());
    Credential { deployment: [1; 32], kind, tier: 1, limit, incarnation: 1, schedule, issuer }
}

pub(crate) fn configuration(n: u8, t: u16, keys: &[IssuerKey]) -> Result<Configuration, AnyError> {
    let operator = signing(OPERATOR);
    let signed = |kind: u32, key: &IssuerKey| Signed::new(&credential(kind, key), &operator);
    let smoother = |(id, key): (u8, &IssuerKey)| SmootherEntry {
        key: signing(id).verifying_key(),
        slots: signed(u32::from(id) + 1, key),
    };
    Ok(Configuration {
        deployment: [1; 32],
        threshold: t,
        smoothers: (0..n).zip(&keys[1..]).map(smoother).collect(),
        definer: signing(DEFINER).verifying_key(),
        limits: Limits {
            min_accounts: 2,
            wasteful_accounts: 0,
            max_closing: Span(180 * MINUTE),
            table_bits: 12,
        },
        aggregator: signing(AGGREGATOR).verifying_key(),
        sealing: *sealing()?.public(),
        uploads: signed(0, &keys[0]),
        tolerance: 50,
        days: Days { start: Timestamp(0), length: Span(DAY) },
    })
}

/// Makes a key for a day, as all smoothers do together.
pub(crate) fn generate(
    pinned: &PinnedConfiguration,
) -> Result<(SharedKey, Vec<KeyShare>), AnyError> {
    let committee = pinned.committee(KeyEpoch(TODAY))?;
    let seed = |id: SmootherId| Secret::from_bytes([id.0.to_be_bytes()[1] + 1; 32]);
    let announced = pinned.ids().map(|id| Announcement::new(&committee, 0, id.0, &seed(id)));
    let ceremony = Ceremony::new(committee, 0, &announced.collect::<Result<Vec<_>, _>>()?);
    let mut rng = ChaCha20Rng::from_seed([9; 32]);
    let dealers = pinned.ids().map(|id| Dealer::new(&ceremony, id.0, &seed(id), &mut rng));
    let dealers: Vec<Dealer> = dealers.collect::<Result<_, _>>()?;
    let pledges: Vec<_> = dealers.iter().map(Dealer::pledge).collect();
    let mut dealt: Vec<VerifiedDealing> = Vec::new();
    for dealer in &dealers {
        dealt.push(dealer.reveal(&pledges)?.clone().verify(&ceremony, &dealer.pledge())?);
    }
    let settled = Settlement::new(&ceremony, &dealt, &[], &[])?;
    let mut shares = Vec::new();
    for (id, dealer) in pinned.ids().zip(&dealers) {
        let taken = dealt.iter().map(|dealt| dealer.open_share(dealt));
        let taken = taken.collect::<Result<_, _>>().map_err(|_| "a complaint")?;
        shares.push(settled.share(id.0, taken)?);
    }
    Ok((settled.key().clone(), shares))
}
