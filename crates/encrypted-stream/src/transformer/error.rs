//! Why the transformer refuses a frame, a plan or a window.

use crate::frame::FrameError;
use crate::tick::ingest::AuthenticityError;

/// Why a frame was refused. It goes to the dead letters under this name and changes no sum
/// and no watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// No owner has annotated this stream.
    #[error("the stream is not admitted; has its owner signed an annotation?")]
    UnknownStream,
    /// The bytes are not a frame, or one of another schema.
    #[error(transparent)]
    Malformed(#[from] FrameError),
    /// Its time is further ahead of the clock than the allowed skew.
    #[error("the event's time is ahead of the clock; check the producer's clock")]
    Future,
    /// A border is not on a tick.
    #[error("a border must be on a tick")]
    BorderOffTick,
    /// Data is on a tick, which is reserved for borders.
    #[error("a data event must be between ticks")]
    DataOnTick,
    /// It follows an event of an earlier tick, so the border in between is missing.
    #[error("the event follows one before the last tick; the border in between is missing")]
    CrossesTick,
    /// The opening border of its session is missing.
    #[error("the session has not been opened")]
    UnknownSession,
    /// The session is or was open.
    #[error("the session is or was open already; a session is never resumed")]
    SessionKnown,
    /// The session opens before something that its stream has already sent.
    #[error("the session opens in the past of its stream")]
    Backdated,
    /// The event is at or before its session's opening border.
    #[error("the event is before its session's opening border")]
    BeforeOpening,
    /// The event is after its session's closing border, or after the opening of the session
    /// that replaced it.
    #[error("the session has ended before this event")]
    SessionEnded,
    /// The event belongs to a tick that is complete without it, so it is a duplicate.
    #[error("the tick is complete and frozen; this is a duplicate")]
    Frozen,
    /// All windows that the event could belong to are closed.
    #[error("the event arrived after its window was closed")]
    Late,
    /// The stream has sent more events in this tick than a window may hold.
    #[error("the stream has more events than its schema's capacity")]
    OverCapacity,
    /// The stream opens sessions faster than windows close.
    #[error("the stream opens too many sessions")]
    TooManySessions,
    /// More of the stream's ticks lack their borders than are kept.
    #[error("the device sent no borders for too many ticks")]
    TooManyOpenTicks,
    /// The session's device did not send it.
    #[error(transparent)]
    NotAuthentic(#[from] AuthenticityError),
    /// It is of the other kind than the schema's.
    #[error("the schema declares another kind of `frames`; give the device the schema again")]
    OtherFrames,
    /// Another frame for the same time was taken before.
    #[error("another frame for this time was already accepted; does the device have a copy?")]
    Conflicting,
    /// There are more gaps in the open windows than are kept.
    #[error("the device slept more often in the open windows than can be recorded for a stream")]
    TooManyGaps,
}

impl IngestError {
    /// A short name for counters.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            IngestError::UnknownStream => "unknown-stream",
            IngestError::Malformed(_) => "malformed",
            IngestError::Future => "future",
            IngestError::BorderOffTick => "border-off-tick",
            IngestError::DataOnTick => "data-on-tick",
            IngestError::CrossesTick => "crosses-tick",
            IngestError::UnknownSession => "unknown-session",
            IngestError::SessionKnown => "session-known",
            IngestError::Backdated => "backdated",
            IngestError::BeforeOpening => "before-opening",
            IngestError::SessionEnded => "session-ended",
            IngestError::Frozen => "duplicate",
            IngestError::Late => "late",
            IngestError::OverCapacity => "over-capacity",
            IngestError::TooManySessions => "too-many-sessions",
            IngestError::TooManyOpenTicks => "too-many-open-ticks",
            IngestError::NotAuthentic(error) => error.name(),
            IngestError::OtherFrames => "other-frames",
            IngestError::Conflicting => "conflicting-frame",
            IngestError::TooManyGaps => "too-many-gaps",
        }
    }
}

/// Why a plan cannot run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanMismatchError {
    /// The plan is verified, and this transformer does not know the schema's blocks.
    #[error("the plan is verified, which this engine cannot do")]
    Blocks,
    /// It is of another schema.
    #[error("the plan is for another schema")]
    Schema,
    /// Its window is not a positive multiple of the tick.
    #[error("the plan's window is not a multiple of the schema's tick")]
    Window,
    /// Its release names a word that events do not have, or does not end with a row of the
    /// check word alone.
    #[error("row {row} of the plan's release does not fit the schema's words")]
    Release {
        /// The row.
        row: usize,
    },
    /// Its streams are not ascending, so one might be in it twice.
    #[error("the plan's streams are not ascending")]
    Streams,
    /// It is already running.
    #[error("the plan is already running")]
    Running,
}

/// Why a window cannot be closed or summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The plan is not running here.
    #[error("the plan is not running")]
    UnknownPlan,
    /// The window is not one of the plan's.
    #[error("this is not a window of the plan")]
    NoSuchWindow,
    /// The window was closed before.
    #[error("the window is already closed")]
    AlreadyClosed,
    /// An earlier window that has data is still open.
    #[error("an earlier window of the plan is still open")]
    OutOfOrder,
    /// The window is still open, or was finished.
    #[error("the window is not closed, or was finished")]
    NotClosed,
    /// The stream was not complete in the window, or is listed twice.
    #[error("stream {position} of the plan cannot be summed in this window")]
    NotSummable {
        /// Its position in the plan.
        position: u32,
    },
}
