//! The records of a controller's ledger and their stored form.
//!
//! A value is a version byte and the record, stamped with the ledger's sequence number and clock at
//! the time of writing. Keys sort by scope, then by kind of record, then by subject.

use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, SchemaId, StreamId};
use alpheus_time::{Timestamp, Window};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Change, GroupLists, LogLine, RecordError, Scope, SpentToken};
use crate::annotation::{Annotation, Placement};
use crate::certificate::Certificate;
use crate::grant::{Days, Grant};
use crate::handover::HandedOver;
use crate::messages::{
    Announcement, Attendance, BoundedOpening, Contribution, Listing, Membership, Opening, shared,
};
use crate::withdrawal::Erasure;

/// Version of the format below. Any other version is refused.
pub(super) const VERSION: u8 = 9;

/// A record of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The controller that the ledger belongs to. Written when keys and ledger are created
    /// together.
    Identity {
        /// The controller.
        controller: ControllerId,
    },
    /// The ledger was restored and is not known to be the latest. About windows that had
    /// begun before, only answers in the ledger are repeated.
    Restored {
        /// The controller's clock at the restore.
        at: Timestamp,
        /// Releases from this time on may be lost, including what they cost the budgets.
        since: Timestamp,
    },
    /// The last start from the ledger. All records with a later sequence number follow it.
    Started {
        /// Drawn at the start: no two have the same.
        number: u64,
        /// What the fence had then: sequence number and number of a start.
        fence: Option<(u64, u64)>,
    },
    /// An owner's annotation for a stream.
    Annotation {
        /// The stream.
        stream: StreamId,
        /// Version of the annotation.
        version: u32,
        /// When the controller accepted it. It is in force from then on.
        since: Timestamp,
        /// The owner's certificate.
        owner: Signed<Certificate>,
        /// The annotation as its owner signed it.
        signed: Signed<Annotation>,
    },
    /// An owner has revoked consent for a stream.
    Revoked {
        /// The stream.
        stream: StreamId,
        /// When.
        at: Timestamp,
    },
    /// A plan was accepted.
    Plan {
        /// The plan.
        plan: PlanId,
        /// When it was accepted first.
        at: Timestamp,
        /// Streams, by position, that it never releases: another plan held an attribute then.
        held: Vec<u32>,
    },
    /// A plan's announcement, once for the host.
    Announcement {
        /// The plan.
        plan: PlanId,
        /// The announcement as the service signed it.
        signed: Signed<Announcement>,
    },
    /// The list that a plan follows from. Scope: host.
    Listing {
        /// The plan.
        plan: PlanId,
        /// The list as the service signed it.
        #[serde(with = "shared")]
        listing: Arc<Listing>,
    },
    /// The last epoch of a plan that was attended.
    Attended {
        /// Id of the plan in the call.
        terms: PlanId,
        /// The attendance as it was sent.
        signed: Signed<Attendance>,
        /// When the plan was attended first.
        since: Timestamp,
        /// The plan of the list.
        listed: Option<PlanId>,
        /// The most controllers in a list of its group before that one.
        most: u32,
    },
    /// What stays of epochs whose attendances are forgotten.
    Epochs {
        /// Their end. None that begins earlier is attended, but of plans that are remembered.
        until: Timestamp,
        /// How many controllers each group's last lists had.
        lists: Vec<GroupLists>,
    },
    /// Windows of a plan that end at or before the mark are settled, except those that the
    /// ledger still holds.
    Mark {
        /// The plan.
        plan: PlanId,
        /// The low-water mark.
        settled: Timestamp,
        /// Once the plan has ended: the time up to which it released.
        ended: Option<Timestamp>,
    },
    /// A token was spent on a window.
    Spent(SpentToken),
    /// An opening was sent.
    Opened {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Digest of S.
        opening_set: Digest,
        /// The answer, for repeated requests.
        answer: Signed<Opening>,
    },
    /// A membership that tokens were spent on. Scope: host.
    Membership {
        /// Its digest.
        digest: Digest,
        /// The membership as the service stated it.
        membership: Membership,
    },
    /// A known session of a producer.
    Session {
        /// The stream.
        stream: StreamId,
        /// The session.
        session: u64,
        /// Its first known border.
        from: Timestamp,
        /// Its last known border.
        to: Timestamp,
        /// Whether that border closed the session.
        closed: bool,
    },
    /// A line of the owners' log.
    Log(LogLine),
    /// An entry of an owner's privacy budget.
    Budget(BudgetRecord),
    /// A stream's key is destroyed.
    Erased {
        /// The stream.
        stream: StreamId,
        /// When.
        at: Timestamp,
        /// The statement for the owner.
        signed: Signed<Erasure>,
    },
    /// The members that picked this controller, in the membership that a token was spent
    /// on.
    Pickers {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Roster positions, ascending.
        pickers: Vec<u32>,
    },
    /// This controller has published its picks for a roster.
    Roster {
        /// Digest of the roster and the number of picks.
        digest: Digest,
    },
    /// The last window whose share of running totals was sent. Written in the commit of
    /// every opening, because the next share is the difference to it.
    Totals {
        /// The plan.
        plan: PlanId,
        /// Index of the window among those of the totals, from 0.
        last: u32,
    },
    /// What an owner allows a consumer to read of a stream, and which keys were released.
    Grant {
        /// When the controller accepted it.
        at: Timestamp,
        /// The owner's certificate.
        owner: Signed<Certificate>,
        /// The grant as its owner signed it.
        signed: Signed<Grant>,
        /// The reader's certificate.
        certificate: Signed<Certificate>,
        /// Days whose keys have been released, and when first.
        handed: Vec<(Days, Timestamp)>,
        /// Withdrawn since, by a statement that was signed earlier than the grant.
        stopped: bool,
        /// The stream.
        stream: StreamId,
        /// The reader.
        reader: ConsumerId,
    },
    /// A stream's device has a copy. Nothing is released until its owner confirms.
    Cloned {
        /// The stream.
        stream: StreamId,
        /// The session in which the copy showed.
        session: u64,
        /// When the owner confirmed that the copy is gone.
        confirmed: Option<Timestamp>,
    },
    /// A window of a verified plan is closed: this controller's answers are kept only as
    /// digests. It takes the place of the token's record.
    Closed {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Digest of M.
        membership: Digest,
        /// H(Z).
        token: Digest,
        /// H(o), if there was one.
        opening: Option<Digest>,
    },
    /// What plans of a stream have released whose records are deleted.
    Spans {
        /// The stream.
        stream: StreamId,
        /// Attributes, and when they were released.
        spans: Vec<(u16, Window)>,
    },
    /// The sets of owners that a day's data of an attribute was summed over, the first
    /// [`MAX_SETS_PER_DAY`](alpheus_policy::policy::MAX_SETS_PER_DAY) of them.
    Sets {
        /// The schema.
        schema: SchemaId,
        /// Position of the attribute.
        attribute: u16,
        /// The UTC day of the data, counted from the Unix epoch.
        day: u64,
        /// The sets.
        sets: Vec<[u8; 16]>,
    },
    /// In a bounded plan: what a controller gave for a window, in the place of a token.
    Contributed(SpentToken<Signed<Contribution>>),
    /// The same for an opening.
    BoundedOpened {
        /// The plan.
        plan: PlanId,
        /// The window.
        window: Window,
        /// Digest of S.
        opening_set: Digest,
        /// The answer, for repeated requests.
        answer: Signed<BoundedOpening>,
    },
    /// Fixed plans were forgotten. Windows that end at or before this time are settled for plans that
    /// are accepted later.
    Forgotten {
        /// The time.
        until: Timestamp,
    },
    /// A stream came from another controller, or left for one.
    Moved {
        /// The stream.
        stream: StreamId,
        /// No window that begins before is answered.
        from: Timestamp,
        /// No window that ends later is answered.
        until: Timestamp,
        /// The owner's last placement.
        placement: Signed<Placement>,
        /// What is handed over, for repeated requests, if it left.
        handed: Option<Signed<HandedOver>>,
    },
}

/// A record with the ledger's sequence number and clock at the time of writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedRecord {
    /// Counts the writes of this ledger.
    pub sequence: u64,
    /// The last sequence number that the fence had when this was written. An answer with a later number
    /// may never have left.
    pub fenced: u64,
    /// The controller's clock. In a replay that is the watermark.
    pub clock: Timestamp,
    /// The record.
    pub record: Record,
}

/// Kinds of records, as they appear in keys.
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
    pub(super) const CLONED: u8 = 18;
    pub(super) const LISTING: u8 = 19;
    pub(super) const ATTENDED: u8 = 20;
    pub(super) const STARTED: u8 = 21;
    pub(super) const SPANS: u8 = 22;
    pub(super) const SETS: u8 = 23;
    pub(super) const EPOCHS: u8 = 24;
    pub(super) const FORGOTTEN: u8 = 25;
    pub(super) const MOVED: u8 = 26;
}

/// A scope's prefix, a kind of record, and its subject.
fn key(scope: Scope, kind: u8, subject: &[&[u8]]) -> Vec<u8> {
    let mut key = scope.prefix();
    key.push(kind);
    subject.iter().for_each(|part| key.extend(*part));
    key
}

/// The prefix of the keys of a controller's log lines.
#[must_use]
pub fn log_prefix(controller: ControllerId) -> Vec<u8> {
    key(Scope::Controller(controller), kind::LOG, &[])
}

/// The key of an annotation's record.
pub(crate) fn annotation_key(controller: ControllerId, stream: StreamId, version: u32) -> Vec<u8> {
    let subject: [&[u8]; 2] = [&stream.0, &version.to_be_bytes()];
    key(Scope::Controller(controller), kind::ANNOTATION, &subject)
}

/// The prefix of the keys of an owner's annotations of a stream.
#[must_use]
pub fn annotations_prefix(controller: ControllerId, stream: &StreamId) -> Vec<u8> {
    key(Scope::Controller(controller), kind::ANNOTATION, &[&stream.0])
}

/// The key of a session's record.
pub(crate) fn session_key(controller: ControllerId, stream: StreamId, session: u64) -> Vec<u8> {
    key(Scope::Controller(controller), kind::SESSION, &[&stream.0, &session.to_be_bytes()])
}

/// The key of the record of a window's opening.
pub(crate) fn opened_key(controller: ControllerId, plan: &PlanId, start: Timestamp) -> Vec<u8> {
    key(Scope::Controller(controller), kind::OPENED, &[&plan.0, &start.0.to_be_bytes()])
}

/// The keys of a window's records in a controller's ledger and its host's.
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
    /// The key of a budget's record.
    pub(crate) fn budget_key(controller: ControllerId, record: &[u8]) -> Vec<u8> {
        key(Scope::Controller(controller), kind::BUDGET, &[record])
    }

    /// The key of a plan's announcement, which the controllers of a host share.
    pub(crate) fn announcement_key(plan: PlanId) -> Vec<u8> {
        key(Scope::Host, kind::ANNOUNCEMENT, &[&plan.0])
    }

    /// The key of an epoch's list, which the controllers of a host share.
    pub(crate) fn listing_key(plan: PlanId) -> Vec<u8> {
        key(Scope::Host, kind::LISTING, &[&plan.0])
    }

    /// The key of the record in the ledger of a controller.
    #[must_use]
    pub fn key(&self, controller: ControllerId) -> Vec<u8> {
        let (own, start) = (Scope::Controller(controller), |at: &Window| at.start.0.to_be_bytes());
        match self {
            Record::Identity { .. } => key(own, kind::IDENTITY, &[]),
            Record::Restored { .. } => key(own, kind::RESTORED, &[]),
            Record::Started { .. } => key(own, kind::STARTED, &[]),
            Record::Annotation { stream: id, version, .. } => {
                annotation_key(controller, *id, *version)
            }
            Record::Revoked { stream, .. } => key(own, kind::REVOKED, &[&stream.0]),
            Record::Erased { stream, .. } => key(own, kind::ERASED, &[&stream.0]),
            Record::Cloned { stream, session, .. } => {
                key(own, kind::CLONED, &[&stream.0, &session.to_be_bytes()])
            }
            Record::Plan { plan, .. } => key(own, kind::PLAN, &[&plan.0]),
            Record::Announcement { plan, .. } => Record::announcement_key(*plan),
            Record::Listing { plan, .. } => Record::listing_key(*plan),
            Record::Spans { stream, .. } => key(own, kind::SPANS, &[&stream.0]),
            Record::Moved { stream, .. } => key(own, kind::MOVED, &[&stream.0]),
            Record::Sets { schema, attribute, day, .. } => {
                let subject = [&schema.0[..], &attribute.to_be_bytes(), &day.to_be_bytes()];
                key(own, kind::SETS, &subject)
            }
            Record::Epochs { .. } => key(own, kind::EPOCHS, &[]),
            Record::Forgotten { .. } => key(own, kind::FORGOTTEN, &[]),
            Record::Attended { terms, .. } => key(own, kind::ATTENDED, &[&terms.0]),
            Record::Mark { plan, .. } => key(own, kind::MARK, &[&plan.0]),
            Record::Spent(SpentToken { plan, window, .. })
            | Record::Contributed(SpentToken { plan, window, .. })
            | Record::Closed { plan, window, .. } => {
                key(own, kind::SPENT, &[&plan.0, &start(window)])
            }
            Record::Opened { plan, window, .. } | Record::BoundedOpened { plan, window, .. } => {
                opened_key(controller, plan, window.start)
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

impl StampedRecord {
    /// The change that stores it in the ledger of a controller.
    #[must_use]
    pub fn put(&self, controller: ControllerId) -> Change {
        Change::put(self.record.key(controller), write_record(self, VERSION))
    }

    /// Reads a stored value.
    ///
    /// # Errors
    /// [`RecordError`] if it has another version, or is truncated or too long.
    pub fn read(value: &[u8]) -> Result<Self, RecordError> {
        read_record(value, VERSION)
    }
}

/// A record after its format's version.
pub(crate) fn write_record<T: Serialize>(record: &T, format: u8) -> Vec<u8> {
    // Records are plain data: serialising them cannot fail.
    let record = postcard::to_allocvec(record).unwrap_or_default();
    std::iter::once(format).chain(record).collect()
}

/// Reads what [`write_record`] wrote.
pub(crate) fn read_record<T: DeserializeOwned>(value: &[u8], format: u8) -> Result<T, RecordError> {
    let (version, record) = value.split_first().ok_or(RecordError::Damaged)?;
    if *version != format {
        return Err(RecordError::Version(*version));
    }
    match postcard::take_from_bytes(record) {
        Ok((record, [])) => Ok(record),
        _ => Err(RecordError::Damaged),
    }
}
