//! What controllers sign in bounded windows. Each is signed by its sender, under its own label.

use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::Message;
use serde::{Deserialize, Serialize};

/// Which window of which plan a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The plan's id.
    pub plan: Digest,
    /// The plan's [`Terms`](crate::terms::Terms::digest).
    pub terms: Digest,
    /// Begin of the window, in microseconds.
    pub start: u64,
    /// End of the window, in microseconds.
    pub end: u64,
    /// The epoch in which the window lies; 0 in plans without epochs.
    pub epoch: u64,
    /// The cohort that the row is for; 0 in plans without cohorts.
    pub cohort: u32,
    /// H(M): the signed membership.
    pub membership: Digest,
}

/// A controller's share of the row, and the commitments that it must be the sum of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// Plan and window.
    pub scope: Scope,
    /// The sender's position in the roster.
    pub controller: u32,
    /// Its share Z of the row, under its masks.
    pub share: MaskedShare,
    /// One for each owner with data, in the order of their first commitments.
    pub owners: Vec<CommittedCells>,
}

/// A share of the row under pads. Two scalars for each cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedShare {
    /// Of the values.
    pub values: Vec<PublicScalar>,
    /// Of the blindings of their commitments.
    pub blindings: Vec<PublicScalar>,
}

/// Commitments, one for each cell, and the proof that they are in bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedCells {
    /// V, one for each cell.
    pub commitments: Vec<Element>,
    /// The range proof.
    pub proof: Vec<u8>,
}

/// What removes a controller's masks for one opening set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Plan and window.
    pub scope: Scope,
    /// The sender's position in the roster.
    pub controller: u32,
    /// H(S): the signed opening set.
    pub opening_set: Digest,
    /// The sender's own signed contribution.
    pub contribution: Digest,
    /// Its opening o, with its noise.
    pub share: MaskedShare,
    /// Commitments to the noise. None if the terms have no noise.
    pub noise: Option<CommittedCells>,
}

/// A controller's commitments to the pads that it shares with others, for a row that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeStatement {
    /// Plan and window.
    pub scope: Scope,
    /// The sender's position in the roster.
    pub controller: u32,
    /// H(S): the signed opening set.
    pub opening_set: Digest,
    /// One for each member of S with which it shares pads, ascending.
    pub edges: Vec<Edge>,
    /// R: a commitment to its pad for the plan's consumer, if the plan is sealed.
    pub consumer_pad: Option<Vec<Element>>,
}

/// Q: a commitment to the difference of the mask pad and the opening pad of two controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The other's position in the roster.
    pub other: u32,
    /// One for each cell.
    pub commitments: Vec<Element>,
}

impl Message for Contribution {
    const LABEL: &'static str = labels::BOUNDED_CONTRIBUTION;
}

impl Message for Opening {
    const LABEL: &'static str = labels::BOUNDED_OPENING;
}

impl Message for EdgeStatement {
    const LABEL: &'static str = labels::BOUNDED_EDGES;
}

impl Scope {
    /// Everything in it as one digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let parts: [&[u8]; 7] = [
            self.plan.as_bytes(),
            self.terms.as_bytes(),
            &self.start.to_be_bytes(),
            &self.end.to_be_bytes(),
            &self.epoch.to_be_bytes(),
            &self.cohort.to_be_bytes(),
            self.membership.as_bytes(),
        ];
        labelled_hash(labels::BOUNDED_SCOPE, &parts)
    }
}
