//! What all parties of a deployment agree on, signed once and pinned by each. It is the only
//! source of contexts and attributes.
//!
//! Only the signer chooses an epoch's element, a limit or an incarnation. A gateway that could
//! choose them for one client would obtain a tag that it recognises later.

use crate::error::ConfigurationError;
use crate::keys::IssuerPublic;
use crate::limit::Limit;
use crate::schedule::{Epoch, Period, Schedule};
use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A deployment's configuration for one kind and tier of credential. Its users form one
/// anonymity set; a different configuration means a different set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Names the deployment.
    pub deployment: [u8; 32],
    /// The kind of credential.
    pub kind: u32,
    /// What the credential entitles its holder to.
    pub tier: u32,
    /// L: presentations in each epoch.
    pub limit: Limit,
    /// How often the store of spent tags was recreated. A new incarnation is signed for a border
    /// between periods, where no tag of the old store counts.
    pub incarnation: u64,
    /// Epochs and periods.
    pub schedule: Schedule,
    /// The issuer's public key.
    pub issuer: IssuerPublic,
}

impl Message for Configuration {
    const LABEL: &'static str = labels::CREDENTIAL_CONFIGURATION;
}

/// A configuration whose signature and content were checked. Cheap to clone.
#[derive(Clone)]
pub struct PinnedConfiguration(Arc<PinnedContent>);

struct PinnedContent {
    configuration: Configuration,
    fingerprint: Digest,
    /// The most recently used contexts, which cost some ten microseconds each. They are public
    /// values, so the cache may reveal which ones it holds.
    contexts: Mutex<VecDeque<(Epoch, Element)>>,
}

/// Messages name the running epoch or one of its neighbours.
const CONTEXTS: usize = 4;

/// Evidence that the other side uses the same configuration, as reported over the path that
/// presentations take. Only [`PinnedConfiguration::compare`] creates it, and a login requires it.
#[derive(Clone, Copy)]
pub struct ConfigurationMatch(pub(crate) Digest);

/// The other side uses another configuration than the pinned one. It may be singling this holder
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the other side uses a different configuration from the one pinned here; do not log in: compare fingerprints with other holders first"
)]
pub struct OtherConfigurationError;

impl PinnedConfiguration {
    /// Opens a configuration with the key that the software pins.
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub fn open(
        signed: &Signed<Configuration>,
        key: &VerifyingKey,
    ) -> Result<Self, ConfigurationError> {
        let opened: Verified<Configuration> =
            signed.open(key).map_err(ConfigurationError::Signature)?;
        opened.schedule.check()?;
        let fingerprint = opened.digest();
        Ok(Self::with(opened.into_inner(), fingerprint))
    }

    fn with(configuration: Configuration, fingerprint: Digest) -> Self {
        let contexts = Mutex::new(VecDeque::with_capacity(CONTEXTS));
        Self(Arc::new(PinnedContent { configuration, fingerprint, contexts }))
    }

    /// The same deployment, for presentations about one subject. The attributes stay, so the
    /// same credentials fit; the contexts become the subject's.
    pub(crate) fn for_subject(&self, subject: &Digest, limit: Limit) -> Self {
        let fingerprint = self.fingerprint();
        let number = limit.get().to_be_bytes();
        let parts: [&[u8]; 3] = [fingerprint.as_bytes(), &number, subject.as_bytes()];
        let configuration = Configuration { limit, ..self.0.configuration };
        Self::with(configuration, labelled_hash(labels::CREDENTIAL_SUBJECT, &parts))
    }

    /// The digest of the whole configuration. Parties compare it, and every proof is bound to
    /// it.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.fingerprint
    }

    /// Compares this configuration with the fingerprint that the other side reports.
    ///
    /// # Errors
    /// [`OtherConfigurationError`].
    ///
    /// # Privacy
    /// Ask over the same anonymous path, and with the same bytes, as everybody else. Then a
    /// service cannot single out one holder unnoticed.
    pub fn compare(&self, heard: &Digest) -> Result<ConfigurationMatch, OtherConfigurationError> {
        let ours = self.fingerprint();
        if *heard == ours { Ok(ConfigurationMatch(ours)) } else { Err(OtherConfigurationError) }
    }

    /// m2 = H(deployment, kind, tier, period). Each party computes it.
    #[must_use]
    pub(crate) fn attributes(&self, period: Period) -> PublicScalar {
        PublicScalar::from_hash(
            labels::CREDENTIAL_ATTRIBUTES,
            &[
                &self.deployment,
                &self.kind.to_be_bytes(),
                &self.tier.to_be_bytes(),
                &period.0.to_be_bytes(),
            ],
        )
    }

    /// T = H2G(ctx), where ctx is the epoch and the fingerprint (deployment, kind, tier, limit,
    /// incarnation, schedule, issuer).
    #[must_use]
    pub(crate) fn context(&self, epoch: Epoch) -> Element {
        let mut contexts = self.0.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = contexts.iter().find(|(known, _)| *known == epoch) {
            return *known;
        }
        let fingerprint = self.fingerprint();
        let parts: [&[u8]; 2] = [fingerprint.as_bytes(), &epoch.0.to_be_bytes()];
        let context = Element::from_hash(labels::CREDENTIAL_CONTEXT, &parts);
        contexts.truncate(CONTEXTS - 1);
        contexts.push_front((epoch, context));
        context
    }
}

impl std::ops::Deref for PinnedConfiguration {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
