//! Messages between service and privacy controllers, window by window (Zeph §3.4; the order
//! is that of `docs/protocol.md`).
//!
//! | step | from | message | content |
//! | --- | --- | --- | --- |
//! | epoch | service | [`EpochCall`] | who takes part in the next windows of a plan? |
//! | | controller | [`Attendance`] | its owners and their streams |
//! | | service | [`Listing`] | the list: the roster of these windows |
//! | plan | service | [`Announcement`] | the plan and everybody's certificates |
//! | | controller | [`Acceptance`], [`PlanRefusal`] | takes part, or why not |
//! | | controller | [`Picks`] | with `Neighbours`: whom it picks |
//! | 1 | service | [`Summons`] | a window has closed: the controller's streams and their borders |
//! | | controller | [`Presence`] | which of them are valid, owners with data; in it [`MaskKey`] |
//! | 2 | service | [`Membership`] (M) | who takes part in the window |
//! | | controller | [`Token`] (T) | the masked key sum |
//! | | | [`Contribution`] | in a bounded plan: commitments, proofs, and the masked sum |
//! | 3 | service | [`OpeningSet`] (S) | whose tokens have arrived |
//! | | controller | [`Opening`] (o) | what removes the masks from the sum over S |
//! | | | [`BoundedOpening`] | the same in a bounded plan, with commitments to noise |
//! | blame | service | [`EdgeRequest`] | a bounded row does not hold |
//! | | controller | [`EdgeStatement`] | commitments to its pads |
//! | end | service | [`Closing`], [`Retirement`] | how the window or the plan ended |
//!
//! Each is signed by its sender ([`Signed`]) under its own label and names plan and window,
//! so none can pass for another. An [`Inbox`](crate::inbox::Inbox) opens each received
//! message once and returns an [`InboundMessage`](crate::inbox::InboundMessage), which only
//! a valid signature can create.
//!
//! # Privacy
//! No message holds a plaintext, a key, or anything derived from a value but under masks. Tokens
//! are key sums under masks, in verified plans the owners' sums under masks, and the service sees
//! counts of events anyway.

mod bounded_windows;
mod epochs;

pub use alpheus_bounded_influence::messages::{
    Contribution, EdgeStatement, Opening as BoundedOpening,
};
pub use bounded_windows::{EdgeRequest, Strike};
pub(crate) use epochs::shared;
pub use epochs::{Attendance, EpochCall, List, ListEntry, ListedOwner, Listing};

use std::sync::Arc;

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::merkle::{Proof, leaf};
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, SignatureBatch, Signed};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::error::{ExclusionError, PlanRefusalError, ReleaseError, WindowRefusalError};
use crate::mask::set::RosterSet;
use crate::tick::claim::Claim;
use crate::tick::parts::PartialSum;

macro_rules! message {
    ($($name:ident = $label:expr),* $(,)?) => {
        $(impl Message for $name {
            const LABEL: &'static str = $label;
        })*
    };
}

message! {
    Announcement = labels::ANNOUNCEMENT,
    Acceptance = labels::ACCEPTANCE,
    PlanRefusal = labels::REFUSAL,
    Summons = labels::SUMMONS,
    Presence = labels::PRESENCE,
    Membership = labels::MEMBERSHIP,
    Token = labels::TOKEN,
    OpeningSet = labels::OPENING_SET,
    Opening = labels::OPENING,
    WindowRefusal = labels::DECLINE,
    Closing = labels::CLOSING,
    Retirement = labels::RETIREMENT,
    Picks = labels::PICKS,
    MaskKey = labels::MASK_KEY,
    EpochCall = labels::EPOCH_CALL,
    Attendance = labels::ATTENDANCE,
    List = labels::LIST,
    EdgeRequest = labels::EDGE_REQUEST,
}

/// The service proposes a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// What it releases, from whom, and among which controllers.
    pub plan: Plan,
    /// The certificates of the roster, in its order.
    pub certificates: Vec<Signed<Certificate>>,
    /// The certificate of the consumer that results are sealed to, if any.
    pub consumer: Option<Signed<Certificate>>,
}

/// A controller takes part in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The plan.
    pub plan: PlanId,
    /// The controller's position in the roster.
    pub controller: u32,
}

/// Whom a controller picks in a plan with `Neighbours`. It is sent with the [`Acceptance`],
/// and is the same in every plan of the same roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picks {
    /// The plan.
    pub plan: PlanId,
    /// The controller's position in the roster.
    pub controller: u32,
    /// As many positions as the plan requires, ascending, without the controller's own.
    pub picks: Vec<u32>,
}

/// A member's leaf of M's tree: the digest of its presence and, with `Neighbours`, the
/// members that picked it, ascending. So M shows each member whom it masks with, and nobody
/// else.
#[must_use]
pub fn member_leaf(presence: &Digest, pickers: Option<&[u32]>) -> Digest {
    let Some(pickers) = pickers else { return leaf(presence.as_bytes()) };
    let positions: Vec<u8> = pickers.iter().flat_map(|picker| picker.to_be_bytes()).collect();
    leaf(labelled_hash(labels::MASK_PICKERS, &[presence.as_bytes(), &positions]).as_bytes())
}

/// A controller does not take part in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRefusal {
    /// The plan.
    pub plan: PlanId,
    /// Why.
    pub reason: PlanRefusalError,
}

/// To one controller: a window has closed. Lists what the service has of the controller's
/// streams. The controller checks these segments itself, because a token covers exactly
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summons {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Position in the roster of the receiving controller.
    pub controller: u32,
    /// Its streams that are complete, by position in the plan, ascending.
    pub streams: Vec<SummonedStream>,
}

/// One complete stream of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummonedStream {
    /// Position in the plan's streams.
    pub position: u32,
    /// Segments of sessions that tile the window, in order of time.
    pub segments: Segments,
    /// Sum over all segments of the ciphertexts' check words, modulo 2^64.
    pub check_sum: u64,
}

/// What the service has of a stream's sessions in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segments {
    /// Of a schema with a frame for each event.
    OfEvents(Vec<Segment>),
    /// Of a schema with one frame a tick: the claims of each session, as
    /// [`tick::segment`](crate::tick::segment) checks them.
    OfTicks {
        /// By session, in order of time.
        claims: Vec<Vec<Claim>>,
        /// In a verified plan: by session, the parts of the sums at the claims that
        /// [need one](crate::tick::segment::claims_with_sums). In any other plan none.
        sums: Vec<Vec<PartialSum>>,
        /// Two different claims for one border of a session. If both are the device's, it has
        /// a copy.
        conflict: Option<Box<[Claim; 2]>>,
    },
}

/// A segment of one session, from tick to tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The session.
    pub session: u64,
    /// Its first border: that of the key vector that the sum starts after.
    pub from: Timestamp,
    /// The tag of that border if it opened the session. Otherwise the session was running
    /// before, and the segment must start with the window.
    pub opening: Option<Tag>,
    /// A border on every later tick, up to the segment's end.
    pub borders: Vec<SegmentBorder>,
}

impl Segment {
    /// Its last border; `from` if it has none, which no controller accepts.
    #[must_use]
    pub fn to(&self) -> Timestamp {
        self.borders.last().map_or(self.from, |border| border.at)
    }

    /// Data events in it, as stated by its borders.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.borders.iter().fold(0, |sum, border| sum.saturating_add(border.events))
    }
}

/// A border event as the producer made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentBorder {
    /// A tick.
    pub at: Timestamp,
    /// Whether the session was closed here in order.
    pub closing: bool,
    /// Data events since the previous border.
    pub events: u64,
    /// The producer's tag over kind, session, time and count.
    pub tag: Tag,
}

/// A controller answers a summons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// The controller's position in the roster.
    pub controller: u32,
    /// Digest of the summons: the token will cover exactly its segments.
    pub summons: Digest,
    /// Streams that the token will cover, by position in the plan, ascending.
    pub accepted: Vec<u32>,
    /// Streams of the summons that it will not cover, each with the reason.
    pub excluded: Vec<(u32, ExclusionError)>,
    /// Owners who have data in an accepted stream.
    pub owners: u32,
    /// Accepted streams without events. Under a schema with one frame a tick the service does
    /// not know them otherwise.
    pub silent: u32,
    /// In a verified plan: the key to agree with on this window's pads.
    pub mask_key: Option<Signed<MaskKey>>,
}

/// In a verified plan: a controller's agreement key for a day at most, after which nobody has its
/// secret half (`docs/protocol.md`, *Keys of a generation*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskKey {
    /// The plan.
    pub plan: PlanId,
    /// The controller's position in the roster.
    pub controller: u32,
    /// The hour in which the generation began, on the controller's clock.
    pub begun: Timestamp,
    /// The public half.
    pub key: AgreementPublic,
}

/// M: who takes part in a window. Each window has at most one, ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Every controller that answered the summons, even without data.
    pub members: RosterSet,
    /// Owners with data at each member, in roster order.
    pub owners: Vec<u32>,
    /// Root of the tree over the members' [leaves](member_leaf), in roster order.
    pub root: Digest,
    /// In a verified plan: each member's key for this window's pads, in roster order. Otherwise
    /// none.
    pub mask_keys: Vec<Signed<MaskKey>>,
}

/// T: a controller's key sum for a window, under its masks. In a verified plan it is Z: its
/// owners' sum itself, under the same masks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// The controller's position in the roster.
    pub controller: u32,
    /// Digest of the membership that the masks are bound to.
    pub membership: Digest,
    /// One word for each output.
    pub words: Vec<u64>,
}

/// S: the members whose tokens the service has. Each window has at most one, ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpeningSet {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Digest of the membership.
    pub membership: Digest,
    /// Whose tokens are summed.
    pub set: RosterSet,
}

/// o: what is subtracted so that the sum over S opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// The controller's position in the roster.
    pub controller: u32,
    /// Digest of the opening set that it is bound to.
    pub opening_set: Digest,
    /// In a verified plan: digest of the token that it opens.
    pub token: Option<Digest>,
    /// One word for each output.
    pub words: Vec<u64>,
}

/// A controller refuses a request about a window, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRefusal {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// The controller.
    pub controller: ControllerId,
    /// Digest of the refused message.
    pub about: Digest,
    /// Why.
    pub reason: WindowRefusalError,
}

/// How a window ended. No more requests about it follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Its outcome.
    pub outcome: WindowOutcome,
}

/// The outcome of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowOutcome {
    /// It opened, over this many owners with data.
    Opened {
        /// Owners with data.
        population: u32,
    },
    /// It did not.
    Failed(ReleaseError),
}

/// The plan has ended: none of its windows is released any more, and its attributes are
/// free for other plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The plan.
    pub plan: PlanId,
}

/// A message from the service, as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceMessage {
    /// To the roster.
    Announcement(Signed<Announcement>),
    /// To one controller.
    Summons(Signed<Summons>),
    /// To each member, with the path from its own presence to the root.
    Membership {
        /// The same for all.
        membership: Signed<Membership>,
        /// The receiver's own.
        proof: Proof,
    },
    /// To each member of it.
    OpeningSet(Signed<OpeningSet>),
    /// To the roster.
    Closing(Signed<Closing>),
    /// To the roster.
    Retirement(Signed<Retirement>),
    /// To each member, with `Neighbours`: the content of [`ServiceMessage::Membership`],
    /// and who picked the receiver.
    Introduction {
        /// The same for all.
        membership: Signed<Membership>,
        /// The receiver's own.
        proof: Proof,
        /// The members that picked the receiver, ascending.
        pickers: Vec<u32>,
    },
    /// To every controller that may take part.
    EpochCall(Signed<EpochCall>),
    /// To each member of it.
    List(#[serde(with = "shared")] Arc<Listing>),
    /// To a member of a bounded window that leaves out edges: the content of
    /// [`ServiceMessage::Membership`], and why.
    BoundedMembership {
        /// The same for all.
        membership: Signed<Membership>,
        /// The receiver's own.
        proof: Proof,
        /// One for each edge.
        strikes: Vec<Strike>,
    },
    /// To each member of S.
    EdgeRequest(Signed<EdgeRequest>),
}

/// A message from a controller, as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControllerMessage {
    /// Answers an announcement.
    Acceptance(Signed<Acceptance>),
    /// Answers an announcement.
    PlanRefusal(Signed<PlanRefusal>),
    /// Answers a summons.
    Presence(Signed<Presence>),
    /// Answers a membership.
    Token(Signed<Token>),
    /// Answers an opening set.
    Opening(Signed<Opening>),
    /// Answers any request about a window.
    WindowRefusal(Signed<WindowRefusal>),
    /// Answers an announcement, before the acceptance.
    Picks(Signed<Picks>),
    /// Answers an epoch's call.
    Attendance(Signed<Attendance>),
    /// Answers a membership, in a bounded plan.
    Contribution(Signed<Contribution>),
    /// Answers an opening set, in a bounded plan.
    BoundedOpening(Signed<BoundedOpening>),
    /// Answers a request for edges.
    Edges(Signed<EdgeStatement>),
}

impl ControllerMessage {
    /// Whether others check its signature too, of receipts or as evidence.
    pub(crate) fn is_in_receipts(&self) -> bool {
        matches!(
            self,
            ControllerMessage::Presence(_)
                | ControllerMessage::Token(_)
                | ControllerMessage::Opening(_)
                | ControllerMessage::Contribution(_)
                | ControllerMessage::BoundedOpening(_)
                | ControllerMessage::Edges(_)
        )
    }

    /// Adds its signature to a batch.
    pub(crate) fn check_with(&self, key: &VerifyingKey, together: &mut SignatureBatch) {
        match self {
            ControllerMessage::Acceptance(signed) => together.add(signed, key),
            ControllerMessage::PlanRefusal(signed) => together.add(signed, key),
            ControllerMessage::Presence(signed) => together.add(signed, key),
            ControllerMessage::Token(signed) => together.add(signed, key),
            ControllerMessage::Opening(signed) => together.add(signed, key),
            ControllerMessage::WindowRefusal(signed) => together.add(signed, key),
            ControllerMessage::Picks(signed) => together.add(signed, key),
            ControllerMessage::Attendance(signed) => together.add(signed, key),
            ControllerMessage::Contribution(signed) => together.add(signed, key),
            ControllerMessage::BoundedOpening(signed) => together.add(signed, key),
            ControllerMessage::Edges(signed) => together.add(signed, key),
        }
    }
}
