//! What the aggregator publishes of an aggregate, such that nobody has to believe it: what its
//! smoothers have signed.

use crate::configuration::PinnedConfiguration;
use crate::definition::{AgreedDefinition, Definition, DefinitionError};
use crate::endorsement::Endorsed;
use crate::messages::{NoResultError, Outcome};
use crate::verdict::most;
use alpheus_crypto::hash::Digest;
use serde::{Deserialize, Serialize};

/// An aggregate as its smoothers have signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// Signed by a quorum.
    pub definition: Endorsed<Definition>,
    /// How it ended; empty until it has.
    pub outcomes: Endorsed<Outcome>,
    /// How the aggregator says that it ended without a result.
    pub claimed: Option<NoResultError>,
}

/// How an aggregate ended, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedEnd {
    /// It has not ended.
    Open,
    /// t smoothers have signed this result, or a quorum that there is none.
    Signed(Outcome),
    /// The aggregator alone says that there is no result.
    Claimed(NoResultError),
}

/// A publication that its smoothers have not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    /// The definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The outcome.
    #[error("too few smoothers have signed this outcome; report it to their operators")]
    Outcome,
}

impl Publication {
    /// The name of what was signed first, whether or not it holds. None if nobody has signed it.
    #[must_use]
    pub fn name(&self) -> Option<Digest> {
        self.definition.signatures().next().map(|(_, signed)| signed.digest())
    }

    /// What of it holds, without believing who shows it. A result needs equal signatures of t, one of which is
    /// honest, and opened only what a quorum had agreed to. No result needs a quorum, as in
    /// [`crate::verdict::verdict`].
    ///
    /// # Errors
    /// [`PublicationError`].
    pub fn check(
        &self,
        pinned: &PinnedConfiguration,
    ) -> Result<(AgreedDefinition, PublishedEnd), PublicationError> {
        let agreed = AgreedDefinition::open(&self.definition, pinned)?;
        let end = self.end(&agreed, pinned).ok_or(PublicationError::Outcome)?;
        Ok((agreed, end))
    }

    fn end(&self, agreed: &AgreedDefinition, pinned: &PinnedConfiguration) -> Option<PublishedEnd> {
        let ours = |outcome: &Outcome| outcome.aggregate == agreed.name();
        let alike = self.outcomes.open(pinned, pinned.threshold.into()).ok();
        let result = alike.map(|it| it.into_inner()).filter(|it| ours(it) && it.result.is_ok());
        if let Some(result) = result {
            return Some(PublishedEnd::Signed(result));
        }
        let opened = self.outcomes.signatures().filter_map(|(by, signed)| {
            let opened = signed.open(pinned.key(*by)?).ok()?.into_inner();
            opened.result.err().filter(|_| ours(&opened))
        });
        let reasons: Vec<NoResultError> = opened.collect();
        if reasons.len() >= pinned.quorum() {
            let (aggregate, reason) = (agreed.name(), most(reasons.iter())?);
            return Some(PublishedEnd::Signed(Outcome { aggregate, result: Err(reason) }));
        }
        match self.claimed {
            Some(reason) => Some(PublishedEnd::Claimed(reason)),
            None if self.outcomes.signatures().next().is_none() => Some(PublishedEnd::Open),
            None => None,
        }
    }
}
