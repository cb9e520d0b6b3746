//! What all parties of a deployment agree on, signed once and pinned by each:
//! contexts and attributes come from here and from nowhere else.
//!
//! Nobody but the signer names an epoch's element, a limit or an incarnation:
//! a gateway that could name them for one client would collect a tag that it
//! recognises later.

use crate::error::BadConfiguration;
use crate::keys::IssuerPublic;
use crate::limit::Limit;
use crate::schedule::{Epoch, Period, Schedule};
use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Signed, Verified};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A deployment's configuration for one kind and tier of credential. All who
/// share it are one crowd; whoever has another one is in another crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Names the deployment.
    pub deployment: [u8; 32],
    /// The kind of credential ("type" in the notation).
    pub kind: u32,
    /// What it entitles to.
    pub tier: u32,
    /// L: showings in each epoch.
    pub limit: Limit,
    /// Counts how often the store of spent tags was begun anew. A new one is
    /// signed for a border of periods, where no tag of the old one counts.
    pub incarnation: u64,
    /// Epochs and periods.
    pub schedule: Schedule,
    /// The issuer's public key.
    pub issuer: IssuerPublic,
}

impl Message for Configuration {
    const LABEL: &'static str = labels::CREDENTIAL_CONFIGURATION;
}

/// A configuration whose signature and content have been checked. Cheap to clone.
#[derive(Clone)]
pub struct Pinned(Arc<Opened>);

struct Opened {
    configuration: Configuration,
    fingerprint: Digest,
    /// The contexts that were used last, which cost some ten microseconds each.
    /// Public values, so it does not matter who sees which are here.
    contexts: Mutex<VecDeque<(Epoch, Element)>>,
}

/// Messages are about the running epoch and its neighbours.
const CONTEXTS: usize = 4;

/// The other side works by the same configuration, as heard over the path that
/// showings take. Only [`Pinned::compare`] makes it, and a login demands it.
#[derive(Clone, Copy)]
pub struct Compared(pub(crate) Digest);

/// The other side works by another configuration than the pinned one: it may be
/// singling this holder out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the other side works by another configuration than the one pinned here; do not log in, compare with other holders"
)]
pub struct OtherConfiguration;

impl Pinned {
    /// Opens a configuration with the key that is pinned in the software.
    ///
    /// # Errors
    /// [`BadConfiguration`].
    pub fn open(
        signed: &Signed<Configuration>,
        key: &VerifyingKey,
    ) -> Result<Self, BadConfiguration> {
        let opened: Verified<Configuration> =
            signed.open(key).map_err(BadConfiguration::Signature)?;
        opened.schedule.check()?;
        let fingerprint = opened.digest();
        Ok(Self::with(opened.into_inner(), fingerprint))
    }

    fn with(configuration: Configuration, fingerprint: Digest) -> Self {
        let contexts = Mutex::new(VecDeque::with_capacity(CONTEXTS));
        Self(Arc::new(Opened { configuration, fingerprint, contexts }))
    }

    /// The same deployment, for showings about one subject. Attributes stay what they
    /// are, so that the same credentials fit; contexts become the subject's.
    pub(crate) fn about(&self, subject: &Digest, limit: Limit) -> Self {
        let fingerprint = self.fingerprint();
        let number = limit.get().to_be_bytes();
        let parts: [&[u8]; 3] = [fingerprint.as_bytes(), &number, subject.as_bytes()];
        let configuration = Configuration { limit, ..self.0.configuration };
        Self::with(configuration, labelled(labels::CREDENTIAL_SUBJECT, &parts))
    }

    /// The digest of all of it: what two parties compare, and what every proof
    /// is bound to.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.fingerprint
    }

    /// Compares with what the other side says it works by.
    ///
    /// # Errors
    /// [`OtherConfiguration`].
    ///
    /// # Privacy
    /// Ask over the same anonymous path, with the same words, as everybody:
    /// then a service cannot give one holder a crowd of its own unseen.
    pub fn compare(&self, heard: &Digest) -> Result<Compared, OtherConfiguration> {
        let ours = self.fingerprint();
        if *heard == ours { Ok(Compared(ours)) } else { Err(OtherConfiguration) }
    }

    /// m2 = H(deployment, kind, tier, period): computed by each party by itself.
    #[must_use]
    pub(crate) fn attributes(&self, period: Period) -> PublicScalar {
        PublicScalar::hashed(
            labels::CREDENTIAL_ATTRIBUTES,
            &[
                &self.deployment,
                &self.kind.to_be_bytes(),
                &self.tier.to_be_bytes(),
                &period.0.to_be_bytes(),
            ],
        )
    }

    /// T = H2G(ctx), with ctx the fingerprint (deployment, kind, tier, limit,
    /// incarnation, schedule, issuer) and the epoch.
    #[must_use]
    pub(crate) fn context(&self, epoch: Epoch) -> Element {
        let mut contexts = self.0.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = contexts.iter().find(|(known, _)| *known == epoch) {
            return *known;
        }
        let fingerprint = self.fingerprint();
        let parts: [&[u8]; 2] = [fingerprint.as_bytes(), &epoch.0.to_be_bytes()];
        let context = Element::hashed(labels::CREDENTIAL_CONTEXT, &parts);
        contexts.truncate(CONTEXTS - 1);
        contexts.push_front((epoch, context));
        context
    }
}

impl std::ops::Deref for Pinned {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
