//! What operator, registrar, smoothers, aggregator and clients agree on, signed once
//! and pinned by each.

use crate::error::BadCommittee;
use crate::logarithm::Table;
use crate::threshold::Committee;
use alpheus_anonymous_credential::configuration::{Configuration as Credential, Pinned as Pass};
use alpheus_anonymous_credential::error::BadConfiguration as BadCredential;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Rejected, Signed, Verified};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A smoother's place in the configuration, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SmootherId(pub u16);

/// The number of a key epoch: a day, whose decryption key is destroyed when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyEpoch(pub u64);

/// One of the n machines that together hide how many samples there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smoother {
    /// Its signing key.
    pub key: VerifyingKey,
    /// The credential that slot requests to it show. Each smoother has its own: whoever
    /// checks showings could mint, so with one key for all each could be any number of
    /// clients.
    pub slots: Signed<Credential>,
}

/// When key epochs begin. In microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// Of key epoch 0.
    pub start: Time,
    /// Of each.
    pub length: u64,
}

/// What no definition may go beyond, whoever proposes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The least k of a definition: more accounts than one party can obtain.
    pub accounts: u32,
    /// So many accounts may waste all that they can waste, and aggregates still close. With none
    /// an account can stop an aggregate.
    pub wasteful: u32,
    /// The longest time from an aggregate's end to its deadline, in microseconds: so long a
    /// day's key outlives the day.
    pub after: u64,
    /// Bits of the table by which sums are read: what it cannot read is not defined.
    pub bits: u8,
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Names it.
    pub deployment: [u8; 32],
    /// t: so many smoothers together can decrypt, and fewer cannot.
    pub threshold: u16,
    /// All n of them, at least 3t − 2.
    pub smoothers: Vec<Smoother>,
    /// Signs what smoothers are asked to define.
    pub definer: VerifyingKey,
    /// What they never define.
    pub limits: Limits,
    /// Signs closings.
    pub aggregator: VerifyingKey,
    /// What deposits are sealed for.
    pub sealing: SealingPublic,
    /// The credential that uploads show.
    pub uploads: Signed<Credential>,
    /// δ, in thousandths of the slots: with more of them empty or rejected nothing is
    /// decrypted.
    pub tolerance: u16,
    /// Key epochs.
    pub days: Days,
}

impl Message for Configuration {
    const LABEL: &'static str = labels::STATISTICS_CONFIGURATION;
}

/// A configuration that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfiguration {
    /// Not signed by the pinned key.
    #[error("the configuration is not signed by the pinned key: {0}")]
    Signature(Rejected),
    /// Too few smoothers for the threshold, or too many.
    #[error("n smoothers bear a threshold t if n ≥ 3t − 2, t ≥ 1 and n ≤ 64")]
    Smoothers,
    /// One key in two places: two parties would be one.
    #[error("two parties, or two credentials, have one key; each needs its own")]
    SameKey,
    /// A credential's configuration is not to be used.
    #[error("a credential's configuration is not to be used: {0}")]
    Credential(#[from] BadCredential),
    /// Credentials of another deployment, or with other periods.
    #[error("all credentials need the deployment's name and one schedule")]
    OtherCredential,
    /// More than a tenth of the slots may be missing, days without length, or limits that are none.
    #[error(
        "the tolerance is at most 100 thousandths, a day has a length above zero, a crowd two accounts, and tables have 8 to 24 bits"
    )]
    Bounds,
}

/// The most smoothers of a deployment.
pub(crate) const MOST_SMOOTHERS: usize = 64;
/// The largest tolerance, in thousandths.
const MOST_TOLERANCE: u16 = 100;

/// A configuration whose signature and content have been checked. Cheap to clone.
#[derive(Clone)]
pub struct Pinned(Arc<Opened>);

struct Opened {
    configuration: Verified<Configuration>,
    uploads: Pass,
    slots: Vec<Pass>,
}

impl Pinned {
    /// Opens a configuration, and those of its credentials, with the operator's key.
    ///
    /// # Errors
    /// [`BadConfiguration`].
    pub fn open(
        signed: &Signed<Configuration>,
        operator: &VerifyingKey,
    ) -> Result<Self, BadConfiguration> {
        let opened = signed.open(operator).map_err(BadConfiguration::Signature)?;
        let (n, t) = (opened.smoothers.len(), usize::from(opened.threshold));
        if t == 0 || n > MOST_SMOOTHERS || n + 2 < 3 * t {
            return Err(BadConfiguration::Smoothers);
        }
        let Limits { accounts, after, bits, .. } = opened.limits;
        let limits = accounts >= 2 && after > 0 && Table::BITS.contains(&bits);
        if opened.tolerance > MOST_TOLERANCE || opened.days.length == 0 || !limits {
            return Err(BadConfiguration::Bounds);
        }
        let uploads = Pass::open(&opened.uploads, operator)?;
        let slots = opened.smoothers.iter().map(|smoother| Pass::open(&smoother.slots, operator));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let pinned = Self(Arc::new(Opened { configuration: opened, uploads, slots }));
        pinned.check_keys()?;
        Ok(pinned)
    }

    fn check_keys(&self) -> Result<(), BadConfiguration> {
        let passes = || self.0.slots.iter().chain([&self.0.uploads]);
        let alike = |pass: &Pass| {
            pass.deployment == self.deployment && pass.schedule == self.0.uploads.schedule
        };
        if !passes().all(alike) {
            return Err(BadConfiguration::OtherCredential);
        }
        let keys = self.smoothers.iter().map(|smoother| &smoother.key).chain([&self.aggregator]);
        let signing: BTreeSet<&VerifyingKey> = keys.collect();
        let issuing: BTreeSet<[u8; 32]> = passes().map(|p| *p.issuer.x1.as_bytes()).collect();
        let kinds: BTreeSet<u32> = passes().map(|pass| pass.kind).collect();
        let parties = self.smoothers.len() + 1;
        let all = [signing.len(), issuing.len(), kinds.len()];
        if all.iter().all(|n| *n == parties) { Ok(()) } else { Err(BadConfiguration::SameKey) }
    }

    /// The digest of all of it.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.configuration.digest()
    }

    /// The operator's key, which signed it.
    #[must_use]
    pub fn operator(&self) -> &VerifyingKey {
        self.0.configuration.signer()
    }

    /// All smoothers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SmootherId> + use<> {
        (0..u16::try_from(self.smoothers.len()).unwrap_or(u16::MAX)).map(SmootherId)
    }

    /// A smoother's key, if there is such a smoother.
    #[must_use]
    pub fn key(&self, smoother: SmootherId) -> Option<&VerifyingKey> {
        self.smoothers.get(usize::from(smoother.0)).map(|smoother| &smoother.key)
    }

    /// q = ⌈(n + t)/2⌉: two quorums share t smoothers, and those that keep to the
    /// protocol are one if at most t − 1 do not.
    #[must_use]
    pub fn quorum(&self) -> usize {
        (self.smoothers.len() + usize::from(self.threshold)).div_ceil(2)
    }

    /// f = t − 1: so many smoothers may be faulty in any way.
    #[must_use]
    pub fn faulty(&self) -> usize {
        usize::from(self.threshold).saturating_sub(1)
    }

    /// Slots that so many accounts get at most, if all faulty smoothers help them: an entry
    /// needs a quorum, q − f of which count the showings of accounts honestly, whosever they are.
    #[must_use]
    pub fn slots_of_accounts(&self, quota: u32, accounts: u32) -> u64 {
        let honest = self.smoothers.len().saturating_sub(self.faulty()) as u64;
        let needed = self.quorum().saturating_sub(self.faulty()) as u64;
        let showings = u64::from(quota).saturating_mul(u64::from(accounts)).saturating_mul(honest);
        showings.checked_div(needed).unwrap_or(0)
    }

    /// Slots that so many accounts can leave empty or spoil without a smoother's help, if all that
    /// is free at one of so many turns is filled at it. An account has its quota of showings for each
    /// smoother, each for one key, and a keeper gives a key one slot ever. So a slot that is held empty
    /// costs a showing at each turn; one that is half signed, by so many that the others are no
    /// quorum, n − q + 1; a certified one of nothing more, q.
    #[must_use]
    pub fn wasted_by(&self, quota: u32, accounts: u32, turns: u16) -> u64 {
        let showings = u64::from(quota).saturating_mul(self.smoothers.len() as u64);
        let killed = self.smoothers.len().saturating_sub(self.quorum()) as u64 + 1;
        let each = killed.min(u64::from(turns)).max(1);
        showings.saturating_mul(u64::from(accounts)).checked_div(each).unwrap_or(u64::MAX)
    }

    /// Who generates the key of a key epoch: bound to the smoothers' own keys, all of which
    /// are in the configuration.
    ///
    /// # Errors
    /// [`BadCommittee`], which no pinned configuration has.
    pub fn committee(&self, epoch: KeyEpoch) -> Result<Committee, BadCommittee> {
        let parts: [&[u8]; 2] = [&self.fingerprint().0, &epoch.0.to_be_bytes()];
        let purpose = labelled(labels::STATISTICS_DAY, &parts);
        let members = u16::try_from(self.smoothers.len()).map_err(|_| BadCommittee)?;
        Committee::new(purpose, members, self.threshold)
    }

    /// How many of so many slots may be empty or rejected: ⌊δU⌋.
    #[must_use]
    pub fn missing_at_most(&self, slots: u32) -> u32 {
        let missing = u64::from(slots) * u64::from(self.tolerance) / 1000;
        u32::try_from(missing).unwrap_or(slots)
    }

    /// The credential of uploads.
    #[must_use]
    pub fn uploads(&self) -> &Pass {
        &self.0.uploads
    }

    /// The credential of slot requests to a smoother.
    #[must_use]
    pub fn slots(&self, smoother: SmootherId) -> Option<&Pass> {
        self.0.slots.get(usize::from(smoother.0))
    }

    /// When a key epoch begins.
    #[must_use]
    pub fn start_of(&self, epoch: KeyEpoch) -> Time {
        Time(self.days.start.0.saturating_add(self.days.length.saturating_mul(epoch.0)))
    }

    /// The key epoch that runs at a time; none before the first.
    #[must_use]
    pub fn key_epoch(&self, now: Time) -> Option<KeyEpoch> {
        let since = now.0.checked_sub(self.days.start.0)?;
        since.checked_div(self.days.length).map(KeyEpoch)
    }
}

impl std::ops::Deref for Pinned {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
