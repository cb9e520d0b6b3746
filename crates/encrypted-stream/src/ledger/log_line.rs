//! What owners can read about their streams.

use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_policy::budget::Cost;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use crate::grant::Days;
use crate::messages::WindowOutcome;

/// A line that owners can read about their streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it happened, on the controller's clock.
    pub at: Timestamp,
    /// This controller's streams that it concerns.
    pub streams: Vec<StreamId>,
    /// What happened.
    pub event: LogEvent,
}

impl LogLine {
    /// Distinguishes lines of the same time. Writing a line again replaces it.
    pub(super) fn digest(&self) -> Digest {
        let bytes = postcard::to_allocvec(&(&self.event, &self.streams)).unwrap_or_default();
        labelled_hash(labels::LOG_LINE, &[&bytes])
    }

    /// Whether the line concerns this stream.
    #[must_use]
    pub fn concerns(&self, stream: &StreamId) -> bool {
        self.streams.contains(stream)
    }
}

/// An event of the owners' log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEvent {
    /// A plan that uses the streams was accepted.
    PlanAccepted {
        /// The plan.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// The consumer.
        consumer: String,
        /// Whether only the consumer reads results, and not the service.
        sealed: bool,
        /// Whether the members of its windows decide what rows say, for which the controller
        /// sees the streams' sums.
        verified: bool,
    },
    /// The streams took part in a release. Written before anything is sent, so the window
    /// may still fail; [`LogEvent::Ended`] then says so.
    Released {
        /// The plan.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// The consumer.
        consumer: String,
        /// Whether only the consumer reads the result, and not the service.
        sealed: bool,
        /// The window.
        window: Window,
        /// Attributes, by position in the schema.
        attributes: Vec<u16>,
        /// Owners with data, as the service stated.
        population: u64,
        /// Those that this controller counts, in case some are invented.
        counted: u64,
        /// The cost by attribute, for owners who allow it only with noise.
        costs: Vec<(u16, Cost)>,
    },
    /// The list of a window has far fewer controllers than others before. A service that chooses
    /// who takes part makes it small to learn more.
    SmallList {
        /// The plan that the list is for.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Controllers in the list.
        listed: u32,
        /// The most of the lists before.
        most: u32,
    },
    /// How a window in which they took part ended.
    Ended {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// The outcome, as the service stated it.
        outcome: WindowOutcome,
    },
    /// The owner changed the policy.
    PolicyChanged {
        /// Version of the annotation.
        version: u32,
    },
    /// The owner revoked consent.
    Revoked,
    /// The owner had the stream's key destroyed.
    Erased,
    /// The owner allows a consumer to read these days, or stops the access.
    Granted {
        /// The consumer's name.
        reader: String,
        /// Which days; `None` stops the access.
        days: Option<Days>,
    },
    /// Keys of these days were released to a consumer, who can read every event of them.
    KeysHanded {
        /// The consumer's name.
        reader: String,
        /// Which days.
        days: Days,
    },
    /// In a verified plan: the service has asked this controller nothing about these streams in this time.
    /// So they are in no row of it, if there is one.
    NotSummoned {
        /// The plan, or the terms that it follows from.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// From the start of the first window to the end of the last.
        windows: Window,
    },
    /// The stream's device has a copy, so the stream waits for its owner.
    Cloned {
        /// The end of a tick for which there are two different frames.
        border: Timestamp,
    },
    /// In a bounded plan: what the owner's streams add up to in a window is beyond what the plan allows
    /// of one owner, so it is not in the window.
    OutOfBounds {
        /// The plan.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// The window.
        window: Window,
    },
    /// The owner has moved the stream to another controller.
    MovedAway {
        /// The border: no window that ends later is answered here.
        at: Timestamp,
    },
    /// The owner has moved the stream here.
    MovedHere {
        /// The border: no window that begins before is answered here.
        at: Timestamp,
        /// The previous controller is lost, so budgets count as spent until then.
        lost: bool,
    },
}
