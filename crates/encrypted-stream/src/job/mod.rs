//! What the service and the job that adds up at scale say to each other: messages of version
//! 1, as `jvm/docs/protocol.md` has them.
//!
//! | to the job | from it |
//! | --- | --- |
//! | [`Join`], [`PlanView`], [`PlanEnd`]: who is summed, and for which plans | [`Summary`]: what it has of a stream in a window |
//! | [`Opening`]: S of a window | [`Joined`], [`Progress`]: whom it tells of, and how far it is |
//! | [`Token`]: what a controller answered | [`WindowSum`]: both sums over S |
//!
//! The job is Java and shares no code with this crate; `vectors/jvm-job` holds both to a third
//! implementation.
//!
//! # Privacy
//! Ciphertexts, answers under masks, times and counts. The job holds no key.

mod codec;
mod digest;

pub use codec::{BadMessage, JobMessage};
pub use digest::SetDigest;

use crate::messages::Segment;
use crate::transformer::Incomplete;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Span, Timestamp, Window};

/// What of a plan the job needs; to all of its tasks: the plan runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanView {
    /// The plan.
    pub plan: PlanId,
    /// Length of its windows, a multiple of the schema's tick.
    pub window: Span,
    /// How long after its end a window is judged.
    pub grace: Span,
    /// Where its first window starts: a multiple of the window.
    pub from: Timestamp,
    /// Ticks that may be missing between two sessions.
    pub gaps: u32,
    /// For each output the words that it adds up; the last is the check word alone.
    pub rows: Vec<Vec<u16>>,
}

impl PlanView {
    /// Of a plan. How many ticks each owner lets be missing is the controllers' to judge.
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

    /// Its window that starts at a time, if one does.
    #[must_use]
    pub fn window_at(&self, start: Timestamp) -> Option<Window> {
        let starts = start >= self.from && start.0.checked_rem(self.window.0) == Some(0);
        starts.then(|| Window { start, end: start.plus(self.window) })
    }
}

/// To the task that has the stream: it is in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanView,
    /// The stream's position in it.
    pub position: u32,
}

/// To all tasks: a plan has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanEnd {
    /// The plan.
    pub plan: PlanId,
}

/// To all tasks: what a window opens over; of one that does not open, nothing. The first of a
/// window counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The plan.
    pub plan: PlanId,
    /// Where the window starts.
    pub start: Timestamp,
    /// Streams, by position in the plan, ascending.
    pub streams: Vec<u32>,
    /// Of these streams.
    pub stream_digest: SetDigest,
    /// Controllers, by position in the roster, ascending.
    pub controllers: Vec<u32>,
    /// Of these controllers.
    pub token_digest: SetDigest,
    /// Whether each token has an opening that is taken off; not so of a single controller.
    pub masked: bool,
    /// Words of a token.
    pub rows: u32,
}

/// What a controller answered, once its signature was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The plan.
    pub plan: PlanId,
    /// Where the window starts.
    pub start: Timestamp,
    /// Whose, by position in the roster.
    pub controller: u32,
    /// Whether it is the opening, which is taken off.
    pub opens: bool,
    /// One word for each row of the release.
    pub rows: Vec<u64>,
}

/// What the job has of one stream in a window in which it was online. The last one of a
/// stream and window holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanId,
    /// Where the window starts.
    pub start: Timestamp,
    /// The stream's position in the plan.
    pub position: u32,
    /// Sum of its ciphertexts' check words, modulo 2^64; 0 where it is not complete.
    pub check_sum: u64,
    /// Stretches of sessions that tile the window, or why it is not complete.
    pub judgement: Result<Vec<Segment>, Incomplete>,
}

/// The task that has a stream has taken it up for a plan, and has said what there was to say
/// of it so far: from now on it tells of each window in which the stream is online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The stream.
    pub stream: StreamId,
    /// The plan.
    pub plan: PlanId,
    /// The stream's position in the plan.
    pub position: u32,
}

/// How far one task is: all that it has to say of windows that ended, with their grace, by a
/// time stands before this. A task's last one holds; those of other numbers of tasks do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which task.
    pub task: u32,
    /// How many there are.
    pub tasks: u32,
    /// As far as it has come in the events' time.
    pub time: Timestamp,
}

/// What the job tells of streams, in one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Of one in a window.
    Summary(Summary),
    /// That one was taken up.
    Joined(Joined),
    /// How far a task is.
    Progress(Progress),
}

impl Told {
    /// Reads a record of the topic of summaries.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Told, BadMessage> {
        match Summary::from_bytes(bytes) {
            Err(BadMessage::Kind(Joined::KIND)) => Joined::from_bytes(bytes).map(Told::Joined),
            Err(BadMessage::Kind(Progress::KIND)) => {
                Progress::from_bytes(bytes).map(Told::Progress)
            }
            summary => summary.map(Told::Summary),
        }
    }
}

/// Some of a window's streams or controllers: how many, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Of them.
    pub digest: SetDigest,
}

/// Both sums of a window over its opening set, which are given together or not at all. The
/// same one may come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSum {
    /// The plan.
    pub plan: PlanId,
    /// Where the window starts.
    pub start: Timestamp,
    /// The streams in it.
    pub streams: Tally,
    /// The controllers in it.
    pub controllers: Tally,
    /// `Σ R·c` over the streams.
    pub ciphertexts: Vec<u64>,
    /// `Σ (T − o)` over the controllers.
    pub tokens: Vec<u64>,
}
