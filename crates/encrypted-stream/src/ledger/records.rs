//! The records of a controller's ledger and their form in a store.
//!
//! A value is a version byte and the record, stamped with the ledger's sequence
//! number and clock when it was written. Keys sort by scope, then kind, then
//! what the record is about.

use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::budget::{BudgetRecord, Cost};
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, StreamId};
use alpheus_policy::time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::Change;
use crate::annotation::Annotation;
use crate::certificate::Certificate;
use crate::grant::{Days, Grant};
use crate::messages::{Announcement, Closed, Membership, Opening, Token};
use crate::withdrawal::Erasure;

/// Version of the form below; another one is refused.
const VERSION: u8 = 3;

/// Whose ledger a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One controller.
    Controller(ControllerId),
    /// All controllers of a host: announcements, which are the same for each.
    Host,
    /// The service, for one plan.
    Service(PlanId),
}

impl Scope {
    /// What every key of it starts with.
    #[must_use]
    pub fn prefix(&self) -> Vec<u8> {
        match self {
            Scope::Controller(id) => tagged(b'c', &id.0),
            Scope::Host => vec![b'h'],
            Scope::Service(plan) => tagged(b's', &plan.0),
        }
    }
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    std::iter::once(tag).chain(bytes.iter().copied()).collect()
}

/// One fact that a controller must not forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Whose ledger this is. Written when keys and ledger are created together.
    Identity {
        /// The controller.
        controller: ControllerId,
    },
    /// The ledger was restored without being known as the latest: of windows
    /// that had begun before only what the ledger has is said again.
    Restored {
        /// The controller's clock then.
        at: Timestamp,
        /// What was released from then on may be lost, budgets that it cost included.
        since: Timestamp,
    },
    /// An owner's annotation for a stream.
    Annotation {
        /// The stream.
        stream: StreamId,
        /// Its place among the stream's annotations.
        version: u32,
        /// When the controller took it: in force from then on.
        since: Timestamp,
        /// The owner's key.
        owner: VerifyingKey,
        /// As the owner signed it.
        signed: Signed<Annotation>,
    },
    /// An owner has revoked consent for a stream.
    Revoked {
        /// The stream.
        stream: StreamId,
        /// When.
        at: Timestamp,
    },
    /// A plan was accepted; its announcement is kept once for the host.
    Plan {
        /// The plan.
        plan: PlanId,
    },
    /// A plan's announcement. Scope: host.
    Announcement {
        /// The plan.
        plan: PlanId,
        /// As the service signed it.
        signed: Signed<Announcement>,
    },
    /// Windows of a plan that end at or before this are settled, but for those
    /// that the ledger still has.
    Mark {
        /// The plan.
        plan: PlanId,
        /// The low-water mark.
        settled: Timestamp,
        /// Whether the plan has ended, and up to when it released.
        ended: Option<Timestamp>,
    },
    /// A token was spent on a window.
    Spent(Spent),
    /// An opening was given for it.
    Opened {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Digest of S.
        opening_set: Digest,
        /// The answer, for whoever asks again.
        answer: Signed<Opening>,
    },
    /// A membership that tokens were spent on. Scope: host.
    Membership {
        /// Its digest.
        digest: Digest,
        /// As the service stated it.
        membership: Membership,
    },
    /// What is known of a producer's session.
    Session {
        /// The stream.
        stream: StreamId,
        /// The session.
        session: u64,
        /// First border seen.
        from: Timestamp,
        /// Last border seen.
        to: Timestamp,
        /// Whether that one closed the session.
        closed: bool,
    },
    /// A line of the owners' log.
    Log(LogLine),
    /// An owner's account of what differential privacy has cost.
    Budget(BudgetRecord),
    /// A stream's key is destroyed.
    Erased {
        /// The stream.
        stream: StreamId,
        /// When.
        at: Timestamp,
        /// What its owner is told.
        signed: Signed<Erasure>,
    },
    /// Who had picked this controller in the membership that a token was spent on.
    Pickers {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Roster positions, ascending.
        pickers: Vec<u32>,
    },
    /// This controller has given its picks for a roster.
    Roster {
        /// Of the roster and how many each picks.
        digest: Digest,
    },
    /// How far this controller's share of running totals has been said: in the commit
    /// of every opening, since the next share is the difference to it.
    Totals {
        /// The plan.
        plan: PlanId,
        /// Place of the window among those of the totals, from 0.
        last: u32,
    },
    /// What an owner lets a consumer read of a stream, and what was handed out of it.
    Grant {
        /// When the controller took it.
        at: Timestamp,
        /// The owner's key.
        owner: VerifyingKey,
        /// As the owner signed it.
        signed: Signed<Grant>,
        /// The reader's certificate.
        certificate: Signed<Certificate>,
        /// Days whose keys have been handed out, and when first; none: none yet.
        handed: Option<(Days, Timestamp)>,
        /// Taken back since, by a word that was signed before it.
        stopped: bool,
        /// The stream.
        stream: StreamId,
        /// The reader.
        reader: ConsumerId,
    },
}

/// A token spent on a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The plan.
    pub plan: PlanId,
    /// The window.
    pub window: Window,
    /// Digest of M.
    pub membership: Digest,
    /// Own streams that the token covers, by position in the plan.
    pub accepted: Vec<u32>,
    /// Own owners with data.
    pub owners: u32,
    /// The answer, for whoever asks again.
    pub answer: Signed<Token>,
}

/// What an owner can read about their streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When, on the controller's clock.
    pub at: Timestamp,
    /// Own streams that it is about.
    pub streams: Vec<StreamId>,
    /// What happened.
    pub event: LogEvent,
}

/// An event of the owners' log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEvent {
    /// A plan that asks for the streams was accepted.
    PlanAccepted {
        /// The plan.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// Who asks.
        consumer: String,
        /// Whether it alone reads results, and not the service.
        sealed: bool,
    },
    /// The streams took part in a release. Written before anything leaves, so
    /// that a line may stand for a window that then failed; [`LogEvent::Ended`]
    /// says so.
    Released {
        /// The plan.
        plan: PlanId,
        /// Its result stream.
        name: String,
        /// Who asks.
        consumer: String,
        /// Whether it alone reads the result, and not the service.
        sealed: bool,
        /// The window.
        window: Window,
        /// Attributes, by position in the schema.
        attributes: Vec<u16>,
        /// Owners with data that the service stated.
        population: u64,
        /// Of these, how many this controller counts, were some invented.
        counted: u64,
        /// What it costs, by attribute, whoever allows it with noise only.
        costs: Vec<(u16, Cost)>,
    },
    /// How a window in which they took part ended.
    Ended {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// The service's word.
        outcome: Closed,
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
    /// The owner lets a consumer read these days, or no more of them.
    Granted {
        /// The consumer's name.
        reader: String,
        /// Which days.
        days: Option<Days>,
    },
    /// Keys of these days were handed out to a consumer, who reads every event of them.
    KeysHanded {
        /// The consumer's name.
        reader: String,
        /// Which days.
        days: Days,
    },
}

/// A record with the ledger's sequence number and clock when it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// Counts the writes of this ledger.
    pub sequence: u64,
    /// The controller's clock. In replay that is the watermark.
    pub clock: Timestamp,
    /// The record.
    pub record: Record,
}

/// A value that is no record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableRecord {
    /// Written by another version of the program.
    #[error("the ledger record has format {0}, and this version reads format {VERSION}")]
    Version(u8),
    /// Cut short, too long, or no record.
    #[error("the value is no ledger record")]
    Damaged,
}

/// What is kept apart from the ledger, in another place, to tell after a
/// restart whether the ledger is the latest: make it durable after a commit and
/// before that commit's messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The ledger's sequence number.
    pub sequence: u64,
    /// The controller's clock.
    pub clock: Timestamp,
    /// When the ledger was last restored without being the latest: numbers of
    /// the history before that, however high, say nothing about the one since.
    pub restored: Option<Timestamp>,
}

/// Kinds of records, as their keys say them.
mod kind {
    pub(super) const IDENTITY: u8 = 0;
    pub(super) const RESTORED: u8 = 1;
    pub(super) const ANNOTATION: u8 = 2;
    pub(super) const REVOKED: u8 = 3;
    pub(super) const PLAN: u8 = 4;
    pub(super) const ANNOUNCEMENT: u8 = 5;
    pub(super) const MARK: u8 = 6;
    pub(super) const SPENT: u8 = 7;
    pub(super) const OPENED: u8 = 8;
    pub(super) const MEMBERSHIP: u8 = 9;
    pub(super) const SESSION: u8 = 10;
    pub(super) const LOG: u8 = 11;
    pub(super) const BUDGET: u8 = 12;
    pub(super) const ERASED: u8 = 13;
    pub(super) const PICKERS: u8 = 14;
    pub(super) const ROSTER: u8 = 15;
    pub(super) const TOTALS: u8 = 16;
    pub(super) const GRANT: u8 = 17;
}

/// A scope's prefix, a kind, and what the record is about.
fn key(scope: Scope, kind: u8, subject: &[&[u8]]) -> Vec<u8> {
    let mut key = scope.prefix();
    key.push(kind);
    subject.iter().for_each(|part| key.extend(*part));
    key
}

/// What the key of every line of a controller's owners' log starts with.
#[must_use]
pub fn log_prefix(controller: ControllerId) -> Vec<u8> {
    key(Scope::Controller(controller), kind::LOG, &[])
}

/// Where a session's record stands in the store of a controller.
pub(crate) fn session_key(controller: ControllerId, stream: StreamId, session: u64) -> Vec<u8> {
    key(Scope::Controller(controller), kind::SESSION, &[&stream.0, &session.to_be_bytes()])
}

/// What a controller's ledger and its host's hold of a window.
pub(crate) fn window_keys(
    controller: ControllerId,
    plan: &PlanId,
    start: Timestamp,
    membership: &Digest,
) -> [Vec<u8>; 4] {
    let (own, start) = (Scope::Controller(controller), start.0.to_be_bytes());
    [
        key(own, kind::SPENT, &[&plan.0, &start]),
        key(own, kind::OPENED, &[&plan.0, &start]),
        key(Scope::Host, kind::MEMBERSHIP, &[&plan.0, &start, &membership.0]),
        key(own, kind::PICKERS, &[&plan.0, &start]),
    ]
}

impl Record {
    /// Where a budget's record of this key stands in the store of a controller.
    pub(crate) fn budget_key(controller: ControllerId, record: &[u8]) -> Vec<u8> {
        key(Scope::Controller(controller), kind::BUDGET, &[record])
    }

    /// Where it stands in the store of a controller.
    #[must_use]
    pub fn key(&self, controller: ControllerId) -> Vec<u8> {
        let own = Scope::Controller(controller);
        let start = |window: &Window| window.start.0.to_be_bytes();
        match self {
            Record::Identity { .. } => key(own, kind::IDENTITY, &[]),
            Record::Restored { .. } => key(own, kind::RESTORED, &[]),
            Record::Annotation { stream, version, .. } => {
                key(own, kind::ANNOTATION, &[&stream.0, &version.to_be_bytes()])
            }
            Record::Revoked { stream, .. } => key(own, kind::REVOKED, &[&stream.0]),
            Record::Erased { stream, .. } => key(own, kind::ERASED, &[&stream.0]),
            Record::Plan { plan } => key(own, kind::PLAN, &[&plan.0]),
            Record::Announcement { plan, .. } => key(Scope::Host, kind::ANNOUNCEMENT, &[&plan.0]),
            Record::Mark { plan, .. } => key(own, kind::MARK, &[&plan.0]),
            Record::Spent(Spent { plan, window, .. }) => {
                key(own, kind::SPENT, &[&plan.0, &start(window)])
            }
            Record::Opened { plan, window, .. } => {
                key(own, kind::OPENED, &[&plan.0, &start(window)])
            }
            Record::Membership { digest, membership } => {
                let (plan, start) = (membership.plan, start(&membership.window));
                key(Scope::Host, kind::MEMBERSHIP, &[&plan.0, &start, &digest.0])
            }
            Record::Session { stream, session, .. } => session_key(controller, *stream, *session),
            Record::Pickers { plan, window, .. } => {
                key(own, kind::PICKERS, &[&plan.0, &start(window)])
            }
            Record::Roster { digest } => key(own, kind::ROSTER, &[&digest.0]),
            Record::Grant { stream, reader, .. } => key(own, kind::GRANT, &[&stream.0, &reader.0]),
            Record::Totals { plan, .. } => key(own, kind::TOTALS, &[&plan.0]),
            Record::Budget(record) => Record::budget_key(controller, &record.key()),
            Record::Log(line) => key(own, kind::LOG, &[&line.at.0.to_be_bytes(), &line.digest().0]),
        }
    }
}

impl LogLine {
    /// Tells lines of one time apart; one that is written again replaces itself.
    fn digest(&self) -> Digest {
        let bytes = postcard::to_allocvec(&(&self.event, &self.streams)).unwrap_or_default();
        labelled(labels::LOG_LINE, &[&bytes])
    }

    /// Whether it is about this stream.
    #[must_use]
    pub fn concerns(&self, stream: &StreamId) -> bool {
        self.streams.contains(stream)
    }
}

impl Stamped {
    /// The change that stores it in the ledger of a controller.
    #[must_use]
    pub fn put(&self, controller: ControllerId) -> Change {
        // Records are plain data, whose serialisation cannot fail.
        let record = postcard::to_allocvec(self).unwrap_or_default();
        let value = std::iter::once(VERSION).chain(record).collect();
        Change { key: self.record.key(controller), value: Some(value) }
    }

    /// Reads a value of the store.
    ///
    /// # Errors
    /// [`UnreadableRecord`] if it is of another version, cut short or too long.
    pub fn read(value: &[u8]) -> Result<Self, UnreadableRecord> {
        let (version, record) = value.split_first().ok_or(UnreadableRecord::Damaged)?;
        if *version != VERSION {
            return Err(UnreadableRecord::Version(*version));
        }
        match postcard::take_from_bytes(record) {
            Ok((stamped, [])) => Ok(stamped),
            _ => Err(UnreadableRecord::Damaged),
        }
    }
}
