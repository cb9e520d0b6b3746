//! What is particular about bounded windows: the request for edges, and the evidence that one is
//! struck. Controllers answer with messages of `bounded-influence`.

use alpheus_bounded_influence::messages::EdgeStatement;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use serde::{Deserialize, Serialize};

/// To each member of S: the row does not hold, so state your edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeRequest {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Digest of the opening set.
    pub opening_set: Digest,
}

/// Two ends of an edge have signed different things about it in one window. The receiver is one of
/// them, and leaves the edge out of this window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    /// What the receiver has signed.
    pub own: Signed<EdgeStatement>,
    /// What the other end has signed.
    pub other: Signed<EdgeStatement>,
}
