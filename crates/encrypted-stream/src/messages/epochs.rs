//! Messages of a membership epoch: the call, the attendance, and the list.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;

/// The service asks who takes part in the next windows of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochCall {
    /// The plan without roster, streams and masks.
    pub terms: Plan,
    /// The epoch's first window.
    pub window: Window,
    /// How many windows it has.
    pub windows: u32,
    /// When the list is fixed.
    pub answer_by: Timestamp,
    /// Streams that the controller is to leave out: placed elsewhere, or of owners who take part
    /// with another controller. Otherwise one owner would cost all others of the host the epoch.
    pub without: Vec<StreamId>,
}

/// A controller takes part in an epoch. It is durable before it is sent, and there is one for
/// each epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attendance {
    /// Id of the plan in the call.
    pub terms: PlanId,
    /// The epoch's first window.
    pub window: Window,
    /// How many windows it has.
    pub windows: u32,
    /// What the list must say of this controller.
    pub entry: ListEntry,
}

/// What a list says of one controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    /// The controller.
    pub controller: ControllerId,
    /// Its agreement key.
    pub agreement: AgreementPublic,
    /// The owners that take part with it, ascending by id.
    pub owners: Vec<ListedOwner>,
}

/// An owner in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedOwner {
    /// The owner.
    pub owner: OwnerId,
    /// Their streams that take part, ascending.
    pub streams: Vec<StreamId>,
}

/// A_e: who takes part in an epoch. Each epoch has at most one, ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Id of the plan in the call.
    pub terms: PlanId,
    /// The epoch's first window.
    pub window: Window,
    /// How many windows it has.
    pub windows: u32,
    /// How its members share masks.
    pub masks: MaskStrategy,
    /// One for each member, ascending by controller.
    pub entries: Vec<ListEntry>,
}

/// A list with all that a member needs to check it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The call that the members attended.
    pub call: Signed<EpochCall>,
    /// The list.
    pub list: Signed<List>,
    /// The members' certificates, in the list's order.
    pub certificates: Vec<Signed<Certificate>>,
    /// The certificate of the consumer that results are sealed to, if any.
    pub consumer: Option<Signed<Certificate>>,
}

/// One copy for all members.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Listing;

    pub(crate) fn serialize<S: Serializer>(
        listing: &Arc<Listing>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        listing.as_ref().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<Listing>, D::Error> {
        Listing::deserialize(from).map(Arc::new)
    }
}
