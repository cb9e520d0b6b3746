//! Showings about subjects: the credential of a period, shown at most so often about
//! each of whatever a deployment counts by, such as an aggregate. A subject has its
//! own limit and its own tags; the credential is the same.

use crate::configuration::Pinned;
use crate::limit::Limit;
use crate::messages::{Login, TagId};
use crate::schedule::{Epoch, Period};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;

/// What a credential of a period is shown about, and how often it may be. Everybody
/// computes it from what all agree on: whoever could name a subject to one holder
/// alone would collect a tag that it recognises later.
#[derive(Clone)]
pub struct Subject {
    pinned: Pinned,
    period: Period,
}

/// A showing about a subject whose proof holds. Whether its tag is spent is for
/// whoever keeps the subject's tags.
pub struct ProvenAbout(pub(crate) Login);

impl Subject {
    /// A subject of a deployment: by its name, with its limit, for credentials of a period.
    #[must_use]
    pub fn new(pinned: &Pinned, name: &Digest, limit: Limit, period: Period) -> Self {
        Self { pinned: pinned.about(name, limit), period }
    }

    /// F' = hash(F, limit, name): what every proof about it is bound to.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.pinned.fingerprint()
    }

    /// How often each credential may be shown about it.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.pinned.limit
    }

    /// Of the credentials that are shown.
    #[must_use]
    pub fn period(&self) -> Period {
        self.period
    }

    /// The configuration with the subject's fingerprint and limit.
    pub(crate) fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// The epoch that showings name: the first of the period, whatever the time.
    pub(crate) fn epoch(&self) -> Epoch {
        self.pinned.schedule.first_epoch(self.period)
    }
}

impl ProvenAbout {
    /// The tag, under a name.
    #[must_use]
    pub fn name(&self, subject: &Subject) -> TagId {
        TagId::of(&subject.fingerprint(), self.0.epoch, &self.0.tag)
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> &Element {
        &self.0.tag
    }

    /// What else the showing is for.
    #[must_use]
    pub fn message(&self) -> &Digest {
        &self.0.message
    }
}
