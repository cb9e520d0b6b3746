//! What operator, registrar, smoothers, aggregator and clients agree on: signed once and pinned by
//! each.

use crate::error::CommitteeError;
use crate::logarithm::Table;
use crate::threshold::Committee;
use alpheus_anonymous_credential::configuration::{
    Configuration as Credential, PinnedConfiguration as Pass,
};
use alpheus_anonymous_credential::error::ConfigurationError as CredentialError;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A smoother's position in the configuration, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SmootherId(pub u16);

/// The number of a key epoch: a day, whose decryption key is destroyed when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyEpoch(pub u64);

/// One of the n smoothers (aggregation nodes) that together hide how many samples there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smoother {
    /// Its signing key.
    pub key: VerifyingKey,
    /// The credential that clients present to request its slots. Each smoother has its own. A party
    /// that checks presentations could mint credentials, so with one key for all each smoother
    /// could pose as any number of clients.
    pub slots: Signed<Credential>,
}

/// When key epochs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// Start of key epoch 0.
    pub start: Timestamp,
    /// Length of each.
    pub length: Span,
}

/// Limits that no definition may exceed, regardless of the proposer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The minimum k of a definition: more accounts than one party can obtain.
    pub min_accounts: u32,
    /// How many accounts may waste all they can while aggregates still close. With 0, one account
    /// can stop an aggregate.
    pub wasteful_accounts: u32,
    /// The longest time from an aggregate's end to its deadline: that long a day's
    /// key outlives the day.
    pub max_closing: Span,
    /// Bits of the table that reads sums. Sums that it cannot read are not defined.
    pub table_bits: u8,
}

/// The configuration of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The deployment's name.
    pub deployment: [u8; 32],
    /// t: how many smoothers together can decrypt; fewer cannot.
    pub threshold: u16,
    /// All n smoothers, at least 3t − 2.
    pub smoothers: Vec<Smoother>,
    /// Key that signs definitions for the smoothers to sign.
    pub definer: VerifyingKey,
    /// Limits of those definitions.
    pub limits: Limits,
    /// Key that signs closings.
    pub aggregator: VerifyingKey,
    /// A: key that uploads are sealed for.
    pub sealing: Element,
    /// The credential for uploads.
    pub uploads: Signed<Credential>,
    /// δ, in thousandths of the slots: with more of them empty or rejected nothing is decrypted.
    pub tolerance: u16,
    /// The schedule of key epochs.
    pub days: Days,
}

impl Message for Configuration {
    const LABEL: &'static str = labels::STATISTICS_CONFIGURATION;
}

/// An unusable configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// Not signed by the pinned key.
    #[error("the configuration is not signed by the pinned key: {0}")]
    Signature(SignedMessageError),
    /// Too few smoothers for the threshold, or too many.
    #[error("n smoothers support a threshold t if t ≥ 1 and 3t − 2 ≤ n ≤ 64")]
    Smoothers,
    /// One key is used twice: two parties would be one.
    #[error("two parties or two credentials share a key; give each its own")]
    SameKey,
    /// A credential's configuration is unusable.
    #[error("a credential's configuration is unusable: {0}")]
    Credential(#[from] CredentialError),
    /// A credential has another deployment's name or another schedule.
    #[error("all credentials need the deployment's name and one schedule")]
    OtherCredential,
    /// A tolerance above a tenth of the slots, days without length, or invalid limits.
    #[error(
        "the tolerance is at most 100 thousandths, a day is longer than zero, a crowd has at least two accounts, and tables have 8 to 24 bits"
    )]
    Bounds,
}

/// The maximum number of smoothers of a deployment.
pub(crate) const MAX_SMOOTHERS: usize = 64;
/// The maximum tolerance, in thousandths.
const MAX_TOLERANCE: u16 = 100;

/// A configuration whose signature and content have been checked. Cheap to clone.
#[derive(Clone)]
pub struct PinnedConfiguration(Arc<Inner>);

struct Inner {
    configuration: Verified<Configuration>,
    uploads: Pass,
    slots: Vec<Pass>,
}

impl PinnedConfiguration {
    /// Opens a configuration and those of its credentials with the operator's key.
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub fn open(
        signed: &Signed<Configuration>,
        operator: &VerifyingKey,
    ) -> Result<Self, ConfigurationError> {
        let opened = signed.open(operator).map_err(ConfigurationError::Signature)?;
        let (n, t) = (opened.smoothers.len(), usize::from(opened.threshold));
        if t == 0 || n > MAX_SMOOTHERS || n + 2 < 3 * t {
            return Err(ConfigurationError::Smoothers);
        }
        let Limits { min_accounts, max_closing, table_bits, .. } = opened.limits;
        let limits = min_accounts >= 2 && max_closing.0 > 0 && Table::BITS.contains(&table_bits);
        if opened.tolerance > MAX_TOLERANCE || opened.days.length.0 == 0 || !limits {
            return Err(ConfigurationError::Bounds);
        }
        let uploads = Pass::open(&opened.uploads, operator)?;
        let slots = opened.smoothers.iter().map(|smoother| Pass::open(&smoother.slots, operator));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let pinned = Self(Arc::new(Inner { configuration: opened, uploads, slots }));
        pinned.check_keys()?;
        Ok(pinned)
    }

    fn check_keys(&self) -> Result<(), ConfigurationError> {
        let passes = || self.0.slots.iter().chain([&self.0.uploads]);
        let alike = |pass: &Pass| {
            pass.deployment == self.deployment && pass.schedule == self.0.uploads.schedule
        };
        if !passes().all(alike) {
            return Err(ConfigurationError::OtherCredential);
        }
        let keys = self.smoothers.iter().map(|smoother| &smoother.key).chain([&self.aggregator]);
        let signing: BTreeSet<&VerifyingKey> = keys.collect();
        let issuing: BTreeSet<[u8; 32]> = passes().map(|p| *p.issuer.x1.as_bytes()).collect();
        let kinds: BTreeSet<u32> = passes().map(|pass| pass.kind).collect();
        let parties = self.smoothers.len() + 1;
        let all = [signing.len(), issuing.len(), kinds.len()];
        if all.iter().all(|n| *n == parties) { Ok(()) } else { Err(ConfigurationError::SameKey) }
    }

    /// The digest of the whole configuration.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.configuration.digest()
    }

    /// The operator's key, which signed it.
    #[must_use]
    pub fn operator(&self) -> &VerifyingKey {
        self.0.configuration.signer()
    }

    /// All smoothers' identifiers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SmootherId> + use<> {
        (0..u16::try_from(self.smoothers.len()).unwrap_or(u16::MAX)).map(SmootherId)
    }

    /// A smoother's key, if the smoother exists.
    #[must_use]
    pub fn key(&self, smoother: SmootherId) -> Option<&VerifyingKey> {
        self.smoothers.get(usize::from(smoother.0)).map(|smoother| &smoother.key)
    }

    /// q = ⌈(n + t)/2⌉. Two quorums share t smoothers. The honest smoothers are a quorum if at most
    /// t − 1 are faulty.
    #[must_use]
    pub fn quorum(&self) -> usize {
        (self.smoothers.len() + usize::from(self.threshold)).div_ceil(2)
    }

    /// f = t − 1: how many smoothers may be faulty in any way.
    #[must_use]
    pub fn faulty(&self) -> usize {
        usize::from(self.threshold).saturating_sub(1)
    }

    /// The most slots that so many accounts can get with the help of all faulty smoothers. An entry
    /// needs a quorum, of which q − f count presentations honestly, regardless of their accounts.
    #[must_use]
    pub fn max_slots_of_accounts(&self, quota: u32, accounts: u32) -> u64 {
        let honest = self.smoothers.len().saturating_sub(self.faulty()) as u64;
        let needed = self.quorum().saturating_sub(self.faulty()) as u64;
        let presentations =
            u64::from(quota).saturating_mul(u64::from(accounts)).saturating_mul(honest);
        presentations.checked_div(needed).unwrap_or(0)
    }

    /// Slots that so many accounts can leave empty or ruin without a smoother's help, if every slot
    /// that is free at one of so many turns is filled at it. An account has its quota of
    /// presentations for each smoother, each for one key, and a keeper gives a key one slot ever. A
    /// slot that is held empty costs a presentation at each turn. One that is half signed, so that
    /// the other smoothers are no quorum, costs n − q + 1; a certified slot with a bad upload costs
    /// q.
    #[must_use]
    pub fn max_wasted_slots(&self, quota: u32, accounts: u32, turns: u16) -> u64 {
        let presentations = u64::from(quota).saturating_mul(self.smoothers.len() as u64);
        let killed = self.smoothers.len().saturating_sub(self.quorum()) as u64 + 1;
        let each = killed.min(u64::from(turns)).max(1);
        presentations.saturating_mul(u64::from(accounts)).checked_div(each).unwrap_or(u64::MAX)
    }

    /// The committee that makes the key of a key epoch. It is bound to the smoothers' own keys,
    /// which the configuration holds.
    ///
    /// # Errors
    /// [`CommitteeError`], which no pinned configuration causes.
    pub fn committee(&self, epoch: KeyEpoch) -> Result<Committee, CommitteeError> {
        let parts: [&[u8]; 2] = [&self.fingerprint().0, &epoch.0.to_be_bytes()];
        let purpose = labelled_hash(labels::STATISTICS_DAY, &parts);
        let members = u16::try_from(self.smoothers.len()).map_err(|_| CommitteeError)?;
        Committee::new(purpose, members, self.threshold)
    }

    /// How many of so many slots may be empty or rejected: ⌊δU⌋.
    #[must_use]
    pub fn max_missing(&self, slots: u32) -> u32 {
        let missing = u64::from(slots) * u64::from(self.tolerance) / 1000;
        u32::try_from(missing).unwrap_or(slots)
    }

    /// The credential for uploads.
    #[must_use]
    pub fn uploads(&self) -> &Pass {
        &self.0.uploads
    }

    /// The credential for slot requests to a smoother.
    #[must_use]
    pub fn slots(&self, smoother: SmootherId) -> Option<&Pass> {
        self.0.slots.get(usize::from(smoother.0))
    }

    /// When a key epoch begins.
    #[must_use]
    pub fn start_of(&self, epoch: KeyEpoch) -> Timestamp {
        Timestamp(self.days.start.0.saturating_add(self.days.length.0.saturating_mul(epoch.0)))
    }

    /// The key epoch that runs at a time; none before the first.
    #[must_use]
    pub fn key_epoch(&self, now: Timestamp) -> Option<KeyEpoch> {
        let since = now.0.checked_sub(self.days.start.0)?;
        since.checked_div(self.days.length.0).map(KeyEpoch)
    }
}

impl std::ops::Deref for PinnedConfiguration {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
