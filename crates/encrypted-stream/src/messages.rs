//! What service and privacy controllers say to each other, window by window
//! (Zeph §3.4; the order is that of `docs/protocol.md`).
//!
//! | step | from | message | says |
//! | --- | --- | --- | --- |
//! | plan | service | [`Announcement`] | the plan and everybody's certificates |
//! | | controller | [`Acceptance`], [`Refusal`] | takes part, or why not |
//! | | controller | [`Picks`] | of a plan with `Neighbours`: whom it picks |
//! | 1 | service | [`Summons`] | a window has closed: your streams, their borders |
//! | | controller | [`Presence`] | which of them are sound, owners with data |
//! | 2 | service | [`Membership`] (M) | who takes part in the window |
//! | | controller | [`Token`] (T) | the masked key sum |
//! | 3 | service | [`OpeningSet`] (S) | whose tokens have come |
//! | | controller | [`Opening`] (o) | what takes the masks off the sum over S |
//! | end | service | [`Closing`], [`Retirement`] | how the window, the plan ended |
//!
//! Each is signed by its sender ([`Signed`]) under a label of its own and names
//! plan and window, so that none can stand for another. What came from a wire
//! is opened once by an [`Inbox`] and handed on as a
//! [`Heard`], which only a checked signature makes.
//!
//! # Privacy
//! No message holds a plaintext, a key, or anything derived from a value:
//! tokens are key sums under masks, and counts of events are what the service
//! sees anyway.

mod inbox;

pub use inbox::{Heard, HeardMembership, Inbox, Own};

use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::merkle::{Proof, leaf};
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Signed, Together};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::error::{Exclusion, Failure, PlanRefused, Refused};
use crate::mask::set::RosterSet;

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
    Refusal = labels::REFUSAL,
    Summons = labels::SUMMONS,
    Presence = labels::PRESENCE,
    Membership = labels::MEMBERSHIP,
    Token = labels::TOKEN,
    OpeningSet = labels::OPENING_SET,
    Opening = labels::OPENING,
    Declined = labels::DECLINED,
    Closing = labels::CLOSING,
    Retirement = labels::RETIREMENT,
    Picks = labels::PICKS,
}

/// The service proposes a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// What it would release, from whom, among whom.
    pub plan: Plan,
    /// The certificates of the roster, in its order.
    pub certificates: Vec<Signed<Certificate>>,
    /// The certificate of the consumer that results are sealed to, if to any.
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

/// Whom a controller picks in a plan with `Neighbours`. It leaves with the
/// [`Acceptance`], and is the same in every plan of the same roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picks {
    /// The plan.
    pub plan: PlanId,
    /// The controller's position in the roster.
    pub controller: u32,
    /// As many positions as the plan says, ascending, without its own.
    pub picks: Vec<u32>,
}

/// A member's leaf of M's tree: the digest of its presence, and of a plan with
/// `Neighbours` also the members that picked it, ascending. So M says to each whom it
/// masks with, and to nobody else.
#[must_use]
pub fn member_leaf(presence: &Digest, pickers: Option<&[u32]>) -> Digest {
    let Some(pickers) = pickers else { return leaf(presence.as_bytes()) };
    let positions: Vec<u8> = pickers.iter().flat_map(|picker| picker.to_be_bytes()).collect();
    leaf(labelled(labels::MASK_PICKERS, &[presence.as_bytes(), &positions]).as_bytes())
}

/// A controller does not take part in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The plan.
    pub plan: PlanId,
    /// Why.
    pub reason: PlanRefused,
}

/// To one controller: a window has closed. What the service has of the
/// controller's own streams, which the controller must see for itself, since a
/// token covers exactly these segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summons {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Position in the roster of the controller that is asked.
    pub controller: u32,
    /// Its streams that are complete, by position in the plan, ascending.
    pub streams: Vec<SummonedStream>,
}

/// One complete stream of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummonedStream {
    /// Position in the plan's streams.
    pub position: u32,
    /// Stretches of sessions that tile the window, in order of time.
    pub segments: Vec<Segment>,
    /// Sum over all segments of the ciphertexts' check words, modulo 2^64.
    pub check_sum: u64,
}

/// A stretch of one session from tick to tick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The session.
    pub session: u64,
    /// Its first border: of the key vector that the sum starts after.
    pub from: Timestamp,
    /// The tag of that border if it opened the session; else the session was
    /// running before and the segment must start with the window.
    pub opening: Option<Tag>,
    /// A border on every later tick, up to the segment's end.
    pub borders: Vec<SegmentBorder>,
}

impl Segment {
    /// Its last border; `from` if it has none, which nobody accepts.
    #[must_use]
    pub fn to(&self) -> Timestamp {
        self.borders.last().map_or(self.from, |border| border.at)
    }

    /// Data events in it, as its borders state.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.borders.iter().fold(0, |sum, border| sum.saturating_add(border.events))
    }
}

/// A border event as the producer made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentBorder {
    /// When: a tick.
    pub at: Timestamp,
    /// Whether the session ended here in order.
    pub closing: bool,
    /// Data events since the border before.
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
    pub excluded: Vec<(u32, Exclusion)>,
    /// Owners who have data in an accepted stream.
    pub owners: u32,
}

/// M: who takes part in a window. There is one for each window, ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Every controller that answered the summons, also one without data.
    pub members: RosterSet,
    /// Owners with data at each member, in roster order.
    pub owners: Vec<u32>,
    /// Root of the tree over the members' [leaves](member_leaf), in roster order.
    pub root: Digest,
}

/// T: a controller's key sum for a window, under its masks.
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

/// S: the members whose tokens the service holds. There is one for each window, ever.
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

/// o: what a controller takes off again so that the sum over S opens.
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
    /// One word for each output.
    pub words: Vec<u64>,
}

/// A controller does not answer something about a window, and says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// The controller.
    pub controller: ControllerId,
    /// Digest of the message that it does not answer.
    pub about: Digest,
    /// Why.
    pub reason: Refused,
}

/// How a window ended. Nothing more is asked about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// What came of it.
    pub outcome: Closed,
}

/// What came of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closed {
    /// It opened, over this many owners with data.
    Opened {
        /// Owners with data.
        population: u32,
    },
    /// It did not.
    Failed(Failure),
}

/// The plan has ended: none of its windows is released any more, and its
/// attributes are free for other plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The plan.
    pub plan: PlanId,
}

/// From the service, as it travels.
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
    /// To each member, of a plan with `Neighbours`: what [`ServiceMessage::Membership`]
    /// says, and who picked the receiver.
    Introduction {
        /// The same for all.
        membership: Signed<Membership>,
        /// The receiver's own.
        proof: Proof,
        /// The members that picked the receiver, ascending.
        pickers: Vec<u32>,
    },
}

/// From a controller, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControllerMessage {
    /// To an announcement.
    Acceptance(Signed<Acceptance>),
    /// To an announcement.
    Refusal(Signed<Refusal>),
    /// To a summons.
    Presence(Signed<Presence>),
    /// To a membership.
    Token(Signed<Token>),
    /// To an opening set.
    Opening(Signed<Opening>),
    /// To anything about a window.
    Declined(Signed<Declined>),
    /// To an announcement, before the acceptance.
    Picks(Signed<Picks>),
}

impl ControllerMessage {
    /// Adds its signature to those that are checked together.
    pub(crate) fn check_with(&self, key: &VerifyingKey, together: &mut Together) {
        match self {
            ControllerMessage::Acceptance(signed) => together.add(signed, key),
            ControllerMessage::Refusal(signed) => together.add(signed, key),
            ControllerMessage::Presence(signed) => together.add(signed, key),
            ControllerMessage::Token(signed) => together.add(signed, key),
            ControllerMessage::Opening(signed) => together.add(signed, key),
            ControllerMessage::Declined(signed) => together.add(signed, key),
            ControllerMessage::Picks(signed) => together.add(signed, key),
        }
    }
}
