//! The messages between the service and what computes sums at scale: the Flink job, or workers.
//! `jvm/docs/protocol.md` specifies version 1.
//!
//! | to the job | from the job |
//! | --- | --- |
//! | [`Join`], [`PlanView`], [`PlanEnd`]: the streams to sum, and their plans | [`Summary`], [`TickSummary`]: the state of a stream in a window |
//! | [`Opening`]: S of a window | [`JoinAck`], [`Progress`]: the streams that it reports on, and its progress |
//! | [`Token`]: a controller's answer | [`WindowSum`]: both sums over S |
//! | [`DeviceNote`]: whose frames count, with one frame a tick | |
//!
//! The Flink job is written in Java and shares no code with this crate. `vectors/jvm-job` checks
//! both against a third implementation.
//!
//! # Privacy
//! The job sees ciphertexts, masked answers, times and counts. It holds no key.

mod codec;
mod digest;

pub use codec::{JobMessage, JobMessageError};
pub use digest::SetDigest;

use crate::messages::{Segment, Segments};
use crate::tick::claim::Claim;
use crate::transformer::IncompleteError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_policy::ids::{OwnerId, PlanId, SchemaId, StreamId};
use alpheus_policy::plan::{
    Fraction, Integrity, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::schema::Frames;
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};

/// To all tasks: a plan runs. Holds the parts of the plan that the job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanView {
    /// The plan.
    pub plan: PlanId,
    /// Length of its windows, a multiple of the schema's tick.
    pub window: Span,
    /// How long after its end a window is judged.
    pub grace: Span,
    /// The start of the first window: a multiple of the window.
    pub from: Timestamp,
    /// Ticks that may be missing between two sessions.
    pub gaps: u32,
    /// The words that each output adds up. The last output is the check word alone.
    pub rows: Vec<Vec<u16>>,
}

impl PlanView {
    /// The view of a plan. It allows any gap: controllers check each owner's limit.
    #[must_use]
    pub fn of(plan: &Plan) -> PlanView {
        let whole = plan.from.0.div_ceil(plan.window.0.max(1));
        PlanView {
            plan: plan.id(),
            window: plan.window,
            grace: plan.grace,
            from: Timestamp(whole.saturating_mul(plan.window.0)),
            gaps: i32::MAX.cast_unsigned(),
            rows: plan.release.rows.clone(),
        }
    }

    /// As much of the plan as a [`Transformer`](crate::transformer::Transformer) needs, over these
    /// streams. It has an id of its own, which differs by `nonce`, and no member could accept it.
    pub fn plan_over<'a>(
        &self,
        streams: impl Iterator<Item = &'a StreamId>,
        schema: SchemaId,
        nonce: [u8; 16],
    ) -> Plan {
        let planned = |stream: &StreamId| PlannedStream {
            stream: *stream,
            owner: OwnerId([0; 32]),
            controller: 0,
        };
        Plan {
            nonce,
            name: self.plan.to_string(),
            consumer: String::new(),
            sealed_to: None,
            schema,
            group: vec![],
            window: self.window,
            grace: self.grace,
            from: self.from,
            release: Release { rows: self.rows.clone() },
            select: ReleasePlan::default(),
            integrity: Integrity::Plain,
            selection: Selection::default(),
            privacy: None,
            attributes: vec![],
            population: PopulationBounds { min: 1, max: 1 },
            alpha: Fraction::ZERO,
            colluders: 0,
            dropout: Fraction::ZERO,
            delta_exponent: 9,
            masks: MaskStrategy::Single,
            epoch: None,
            roster: vec![],
            streams: streams.map(planned).collect(),
        }
    }

    /// The plan's window that starts at a time, if any.
    #[must_use]
    pub fn window_at(&self, start: Timestamp) -> Option<Window> {
        let starts = start >= self.from && start.0.checked_rem(self.window.0) == Some(0);
        starts.then(|| Window { start, end: start.plus(self.window) })
    }
}

/// To the task that has the stream: the stream is in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanView,
    /// The stream's position in the plan.
    pub position: u32,
}

/// To all tasks: a plan has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanEnd {
    /// The plan.
    pub plan: PlanId,
}

/// To all tasks: the sets that a window opens over. They are empty if it does not open. The
/// first message of a window counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The plan.
    pub plan: PlanId,
    /// Start of the window.
    pub start: Timestamp,
    /// Streams, by ascending position in the plan.
    pub streams: Vec<u32>,
    /// Digest of these streams.
    pub stream_digest: SetDigest,
    /// Controllers, by ascending position in the roster.
    pub controllers: Vec<u32>,
    /// Digest of these controllers.
    pub token_digest: SetDigest,
    /// Whether each token has an opening to subtract. False for a single controller.
    pub masked: bool,
    /// Words in a token.
    pub rows: u32,
}

/// A controller's answer, after its signature was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The plan.
    pub plan: PlanId,
    /// Start of the window.
    pub start: Timestamp,
    /// The controller's position in the roster.
    pub controller: u32,
    /// Whether it is the opening, which is subtracted.
    pub opens: bool,
    /// One word for each row of the release.
    pub rows: Vec<u64>,
}

/// The device of a stream, whose openings count. Its certificate and the stream's placement
/// are checked. The last message of a stream counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceNote {
    /// The stream.
    pub stream: StreamId,
    /// Digest of the device's certificate.
    pub certificate: Digest,
    /// The device's key.
    pub key: VerifyingKey,
}

/// The state of a stream in a window in which it was online. The last summary of a stream
/// and window counts. `S` is what shows that the stream is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary<S = Vec<Segment>> {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanId,
    /// Start of the window.
    pub start: Timestamp,
    /// The stream's position in the plan.
    pub position: u32,
    /// Sum of the ciphertexts' check words, modulo 2^64; 0 if the stream is not complete.
    pub check_sum: u64,
    /// The session segments that tile the window, or why the stream is not complete.
    pub judgement: Result<S, IncompleteError>,
}

/// The same of a schema with one frame a tick.
pub type TickSummary = Summary<TickSegments>;

/// What shows that a stream with one frame a tick is complete in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickSegments {
    /// By session, in order of time.
    pub claims: Vec<Vec<Claim>>,
    /// Two different claims for one border of a session.
    pub conflict: Option<Box<[Claim; 2]>>,
}

impl From<Vec<Segment>> for Segments {
    fn from(segments: Vec<Segment>) -> Segments {
        Segments::OfEvents(segments)
    }
}

impl From<TickSegments> for Segments {
    fn from(segments: TickSegments) -> Segments {
        let TickSegments { claims, conflict } = segments;
        // The job sums no verified plan.
        Segments::OfTicks { claims, sums: Vec::new(), conflict }
    }
}

impl<S: Into<Segments>> Summary<S> {
    /// The same, as it goes into summonses.
    #[must_use]
    pub fn for_summons(self) -> Summary<Segments> {
        let Summary { stream, plan, start, position, check_sum, judgement } = self;
        let judgement = judgement.map(S::into);
        Summary { stream, plan, start, position, check_sum, judgement }
    }
}

/// A task has added a stream to a plan and has reported its past windows. From now on
/// it reports each window in which the stream is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinAck {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanId,
    /// The stream's position in the plan.
    pub position: u32,
}

/// How far one task has come. All its summaries of windows that ended, including grace, by
/// this time precede this message. A task's last message counts, and only if it states
/// the current number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The task's number.
    pub task: u32,
    /// The number of tasks.
    pub tasks: u32,
    /// The event time that the task has reached.
    pub time: Timestamp,
}

/// A report of the job on streams. Reports are in one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobReport {
    /// The state of a stream in a window.
    Summary(Summary<Segments>),
    /// A stream was added to a plan.
    JoinAck(JoinAck),
    /// The progress of a task.
    Progress(Progress),
}

impl JobReport {
    /// Reads a record of the topic of summaries, for a schema with these frames.
    ///
    /// # Errors
    /// [`JobMessageError`] if the record is not a report, or one on streams with other frames.
    pub fn from_bytes(bytes: &[u8], frames: Frames) -> Result<JobReport, JobMessageError> {
        let summary = match frames {
            Frames::Events => Summary::<Vec<Segment>>::from_bytes(bytes).map(Summary::for_summons),
            Frames::Ticks { .. } => TickSummary::from_bytes(bytes).map(Summary::for_summons),
        };
        match summary {
            Err(JobMessageError::Kind(JoinAck::KIND)) => {
                JoinAck::from_bytes(bytes).map(JobReport::JoinAck)
            }
            Err(JobMessageError::Kind(Progress::KIND)) => {
                Progress::from_bytes(bytes).map(JobReport::Progress)
            }
            summary => summary.map(JobReport::Summary),
        }
    }
}

/// The number and the digest of some of a window's streams or controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The number of members.
    pub count: u64,
    /// The digest of the members.
    pub digest: SetDigest,
}

/// Both sums of a window over its opening set. They are sent together or not at all, and
/// may be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSum {
    /// The plan.
    pub plan: PlanId,
    /// Start of the window.
    pub start: Timestamp,
    /// The streams in the sum.
    pub streams: Tally,
    /// The controllers in the sum.
    pub controllers: Tally,
    /// `Σ R·c` over the streams.
    pub ciphertexts: Vec<u64>,
    /// `Σ (T − o)` over the controllers.
    pub tokens: Vec<u64>,
}
