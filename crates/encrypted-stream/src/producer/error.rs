//! Errors of a producer. No variant holds a value of an event.

use crate::keys::{KeyError, MAX_WORDS};
use alpheus_time::{Span, Timestamp};
use std::fmt;

/// A failed transition, with the unchanged state.
pub struct TransitionError<S, E> {
    /// The unchanged state.
    pub state: S,
    /// Why the transition failed.
    pub error: E,
}

impl<S, E: fmt::Debug> fmt::Debug for TransitionError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<S, E: fmt::Display> fmt::Display for TransitionError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<S, E: std::error::Error> std::error::Error for TransitionError<S, E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// Why the cipher cannot encrypt a schema's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No words, not even the check word, or more than there are block numbers.
    #[error("an event of {0} words cannot be encrypted; it must have 1 to {MAX_WORDS}")]
    Words(usize),
    /// No time lies strictly between two ticks, or a session could contain a whole day
    /// between two others.
    #[error("a tick of {} µs is not allowed; it must be 2 µs to one day, {} µs", .0.0, Span::DAY.0)]
    Tick(Span),
    /// The schema says otherwise what a device sends of its events.
    #[error("the schema has `frames: {schema}`; this producer sends the other kind")]
    Frames {
        /// What it says.
        schema: &'static str,
    },
    /// The service's ingest key cannot be sealed to.
    #[error("no key can be agreed on with the service's ingest key; get its certificate again")]
    Ingest,
}

/// Why a session does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The time is not a multiple of the tick.
    #[error("{} µs is not a multiple of the tick of {} µs", .at.0, .tick.0)]
    NotATick {
        /// The requested time.
        at: Timestamp,
        /// The tick.
        tick: Span,
    },
    /// The session or its closing border would not fit in 52 bits.
    #[error("{} µs leaves no room below 2^52; check the clock and its unit", .at.0)]
    BeyondLimit {
        /// The requested time.
        at: Timestamp,
    },
    /// Only a stream that never had a session may be back-dated.
    #[error("this stream already had a session; open it with `Start::Again`")]
    NotTheFirst,
    /// The time is before the next tick of the producer's clock.
    #[error("{} µs is before the next tick of the clock, {} µs", .at.0, .earliest.0)]
    BackDated {
        /// The requested time.
        at: Timestamp,
        /// The earliest allowed time.
        earliest: Timestamp,
    },
    /// The service's ingest key cannot be sealed to.
    #[error("no key can be agreed on with the service's ingest key; get its certificate again")]
    Ingest,
}

/// Why a session cannot continue at a time. Nothing was encrypted for that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The time is equal to an earlier one, or before it. It would reuse a pad or
    /// send the plaintext in the clear.
    #[error(
        "{} µs is not after the session's last time, {} µs; move an equal time to the next free \
         microsecond, or open a new session if the clock stepped back", .t.0, .last.0
    )]
    NotAscending {
        /// The event's time.
        t: Timestamp,
        /// The session's last time.
        last: Timestamp,
    },
    /// A data event on a tick, where only a border may be.
    #[error("{} µs is a tick, which only a border may have; use the next microsecond", .t.0)]
    OnATick {
        /// The event's time.
        t: Timestamp,
    },
    /// The time is so far ahead that the clock has probably jumped.
    #[error(
        "{ticks} ticks passed at once, over the limit of {limit}: the clock jumped, or the device \
         slept for very long; open a new session, or call `advance` in parts if the stream was silent"
    )]
    JumpedAhead {
        /// Ticks since the last border, or in a sleep.
        ticks: u64,
        /// The maximum.
        limit: u64,
    },
    /// The time, or that of the next border, does not fit in 52 bits.
    #[error("{} µs leaves no room below 2^52; check the clock and its unit", .t.0)]
    BeyondLimit {
        /// The event's time.
        t: Timestamp,
    },
    /// There is no key for the time.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The event is of a later tick than the one that is open.
    #[error("{} µs is after the end of the open tick, {} µs; call `advance` first", .t.0, .border.0)]
    TickOver {
        /// The event's time.
        t: Timestamp,
        /// The end of the open tick.
        border: Timestamp,
    },
    /// The next day's session cannot be opened.
    #[error("no key can be agreed on with the service's ingest key; get its certificate again")]
    Ingest,
}

/// An encoding wrote outside the statistics. The event is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// It wrote to the check word, which is zero in every event.
    #[error("the encoding writes to the check word, {word}; it was made for another schema")]
    CheckWord {
        /// The check word's position.
        word: u16,
    },
    /// It wrote beyond the vector's end.
    #[error("the encoding writes to word {word} of {words}; it was made for another schema")]
    OutOfRange {
        /// The position.
        word: u16,
        /// Words in the vector, including the check word.
        words: usize,
    },
}

/// Why an event was rejected. The session continues as if the event had not occurred,
/// but borders of earlier ticks may have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError<E> {
    /// The time is not allowed.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The encoding failed.
    #[error("{0}")]
    Encoding(E),
    /// The encoding wrote outside the statistics.
    #[error(transparent)]
    Vector(VectorError),
}

/// Why a session does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The time is not a multiple of the tick.
    #[error("{} µs is not a multiple of the tick of {} µs", .at.0, .tick.0)]
    NotATick {
        /// The requested time.
        at: Timestamp,
        /// The tick.
        tick: Span,
    },
    /// The time is not allowed.
    #[error(transparent)]
    Time(#[from] TimeError),
}
