//! What a controller gave for a window's membership and opening set, as its ledger keeps it.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use serde::{Deserialize, Serialize};

use super::Record;
use crate::messages::{BoundedOpening, Contribution, ControllerMessage, Opening, Token};

/// A token spent on a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpentToken<A = Signed<Token>> {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Digest of M.
    pub membership: Digest,
    /// This controller's streams that the token covers, by position in the plan.
    pub accepted: Vec<u32>,
    /// Owners with data at this controller.
    pub owners: u32,
    /// The answer, for repeated requests.
    pub answer: A,
}

/// The answer to M: a token, or in a bounded plan a contribution.
#[derive(Clone, Debug)]
pub(crate) enum Share {
    Words(Signed<Token>),
    Committed(Signed<Contribution>),
}

/// The answer to S: an opening of words, or in a bounded plan one of scalars.
#[derive(Clone, Debug)]
pub(crate) enum SignedOpening {
    Words(Signed<Opening>),
    Committed(Signed<BoundedOpening>),
}

impl<A> SpentToken<A> {
    /// The same with another form of the answer.
    pub(crate) fn with<B>(self, of: impl FnOnce(A) -> B) -> SpentToken<B> {
        let Self { plan, window, membership, accepted, owners, answer } = self;
        SpentToken { plan, window, membership, accepted, owners, answer: of(answer) }
    }
}

impl Share {
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Words(token) => token.digest(),
            Self::Committed(contribution) => contribution.digest(),
        }
    }

    pub(crate) fn message(&self) -> ControllerMessage {
        match self {
            Self::Words(token) => ControllerMessage::Token(token.clone()),
            Self::Committed(given) => ControllerMessage::Contribution(given.clone()),
        }
    }
}

impl SpentToken<Share> {
    /// What the ledger keeps of it.
    pub(crate) fn record(self) -> Record {
        match self.answer.clone() {
            Share::Words(token) => Record::Spent(self.with(|_| token)),
            Share::Committed(given) => Record::Contributed(self.with(|_| given)),
        }
    }
}

impl SignedOpening {
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Words(opening) => opening.digest(),
            Self::Committed(opening) => opening.digest(),
        }
    }

    pub(crate) fn message(&self) -> ControllerMessage {
        match self {
            Self::Words(opening) => ControllerMessage::Opening(opening.clone()),
            Self::Committed(opening) => ControllerMessage::BoundedOpening(opening.clone()),
        }
    }

    /// What the ledger keeps of it.
    pub(crate) fn record(&self, plan: PlanId, window: Window, opening_set: Digest) -> Record {
        match self.clone() {
            Self::Words(answer) => Record::Opened { plan, window, opening_set, answer },
            Self::Committed(answer) => Record::BoundedOpened { plan, window, opening_set, answer },
        }
    }
}
