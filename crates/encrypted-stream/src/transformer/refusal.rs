//! Why the transformer does not take a frame, a plan or a window.

use crate::frame::FrameError;

/// Why a frame was refused: it goes to the dead letters under this name and
/// changes no sum and no watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No owner has annotated this stream.
    #[error("the stream is not admitted; has its owner signed an annotation?")]
    UnknownStream,
    /// The bytes are no frame, or one of another schema.
    #[error(transparent)]
    Malformed(#[from] FrameError),
    /// Its time lies further ahead of the clock than the allowed skew.
    #[error("the event's time lies ahead of the clock; check the producer's")]
    Future,
    /// A border stands between ticks.
    #[error("a border must stand on a tick")]
    BorderOffTick,
    /// Data stands on a tick, where only borders may.
    #[error("a data event must stand between ticks")]
    DataOnTick,
    /// It follows an event of an earlier tick: the border between is missing.
    #[error("the event follows one before the last tick; the border between is missing")]
    CrossesTick,
    /// No opening border of its session has come.
    #[error("the session has not been opened")]
    UnknownSession,
    /// The session was opened before.
    #[error("the session is open already or was before; a session is never resumed")]
    SessionKnown,
    /// The session opens before something that the stream has already sent.
    #[error("the session opens in the past of its stream")]
    Backdated,
    /// The event lies at or before its session's opening border.
    #[error("the event lies before its session's opening border")]
    BeforeOpening,
    /// The event lies after its session's closing border, or after the opening
    /// of the session that took its place.
    #[error("the session has ended before this event")]
    SessionEnded,
    /// The event belongs to a tick that is complete without it: a duplicate.
    #[error("the tick is complete and frozen; this is a duplicate")]
    Frozen,
    /// Every window that the event could belong to is closed.
    #[error("the event comes after its window was closed")]
    Late,
    /// The stream has sent more events in this tick than a window may hold.
    #[error("the stream has more events than its schema's capacity allows")]
    OverCapacity,
    /// The stream opens sessions faster than windows close.
    #[error("the stream opens too many sessions")]
    TooManySessions,
}

impl Refusal {
    /// A short name for counters.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Refusal::UnknownStream => "unknown-stream",
            Refusal::Malformed(_) => "malformed",
            Refusal::Future => "future",
            Refusal::BorderOffTick => "border-off-tick",
            Refusal::DataOnTick => "data-on-tick",
            Refusal::CrossesTick => "crosses-tick",
            Refusal::UnknownSession => "unknown-session",
            Refusal::SessionKnown => "session-known",
            Refusal::Backdated => "backdated",
            Refusal::BeforeOpening => "before-opening",
            Refusal::SessionEnded => "session-ended",
            Refusal::Frozen => "duplicate",
            Refusal::Late => "late",
            Refusal::OverCapacity => "over-capacity",
            Refusal::TooManySessions => "too-many-sessions",
        }
    }
}

/// Why a plan cannot run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanMismatch {
    /// It is of another schema.
    #[error("the plan is of another schema")]
    Schema,
    /// Its window is not a positive multiple of the tick.
    #[error("the plan's window is not a multiple of the schema's tick")]
    Window,
    /// Its release names a word that events do not have, or does not end with
    /// the check word alone.
    #[error("row {row} of the plan's release does not fit the schema's words")]
    Release {
        /// The row.
        row: usize,
    },
    /// Its streams are not ascending, so that one might be in it twice.
    #[error("the plan's streams are not ascending")]
    Streams,
    /// It runs already.
    #[error("the plan runs already")]
    Running,
}

/// Why a window cannot be closed or summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The plan does not run here.
    #[error("the plan does not run")]
    UnknownPlan,
    /// The plan has no such window.
    #[error("this is not a window of the plan")]
    NoSuchWindow,
    /// The window was closed before.
    #[error("the window is closed already")]
    AlreadyClosed,
    /// An earlier window that has data is still open.
    #[error("an earlier window of the plan is still open")]
    OutOfOrder,
    /// The window is still open, or was finished.
    #[error("the window is not closed, or was finished")]
    NotClosed,
    /// The stream was not complete in the window, or is named twice.
    #[error("stream {position} of the plan cannot be summed in this window")]
    NotSummable {
        /// Its position in the plan.
        position: u32,
    },
}
