//! Presentations about subjects. A credential of a period may be presented a limited number of
//! times about each subject, which is whatever a deployment counts by, such as an aggregate. A
//! subject has its own limit and its own tags; the credential is the same.

use crate::configuration::PinnedConfiguration;
use crate::limit::Limit;
use crate::messages::{Login, TagId};
use crate::schedule::{Epoch, Period};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;

/// A subject of presentations, and its limit. Everybody computes it from what all agree on.
/// Anyone who could choose a subject for one holder alone would obtain a tag that they recognise
/// later.
#[derive(Clone)]
pub struct Subject {
    pinned: PinnedConfiguration,
    period: Period,
}

/// A presentation about a subject whose proof holds. The party that stores the subject's tags
/// decides whether its tag is spent.
pub struct ProvenPresentation(pub(crate) Login);

impl Subject {
    /// A subject of a deployment, with its name and limit, for credentials of a period.
    #[must_use]
    pub fn new(pinned: &PinnedConfiguration, name: &Digest, limit: Limit, period: Period) -> Self {
        Self { pinned: pinned.for_subject(name, limit), period }
    }

    /// F' = hash(F, limit, name), to which every proof about it is bound.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.pinned.fingerprint()
    }

    /// How often each credential may be presented about it.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.pinned.limit
    }

    /// The period of the credentials.
    #[must_use]
    pub fn period(&self) -> Period {
        self.period
    }

    /// The configuration with the subject's fingerprint and limit.
    pub(crate) fn pinned(&self) -> &PinnedConfiguration {
        &self.pinned
    }

    /// The epoch in its presentations: the first of the period, whatever the time.
    pub(crate) fn epoch(&self) -> Epoch {
        self.pinned.schedule.first_epoch(self.period)
    }
}

impl ProvenPresentation {
    /// The tag's name.
    #[must_use]
    pub fn name(&self, subject: &Subject) -> TagId {
        TagId::of(&subject.fingerprint(), self.0.epoch, &self.0.tag)
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> &Element {
        &self.0.tag
    }

    /// The digest of what else the presentation is for.
    #[must_use]
    pub fn message(&self) -> &Digest {
        &self.0.message
    }
}
