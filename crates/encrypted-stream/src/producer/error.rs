//! Why a producer refuses: no variant holds a value of an event.

use crate::keys::{KeyError, MAX_WORDS};
use alpheus_policy::time::{Span, Timestamp};
use std::fmt;

/// A transition that was refused, and the state as it was before it.
pub struct Refused<S, E> {
    /// The state, unchanged.
    pub state: S,
    /// Why.
    pub error: E,
}

impl<S, E: fmt::Debug> fmt::Debug for Refused<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<S, E: fmt::Display> fmt::Display for Refused<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<S, E: std::error::Error> std::error::Error for Refused<S, E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// There is no cipher for such a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No word, not even the check word, or more than a block number can count.
    #[error("an event of {0} words cannot be encrypted; it has 1 to {MAX_WORDS}")]
    Words(usize),
    /// No time lies strictly between two ticks, or a session would hold a whole day between
    /// two others.
    #[error("a tick of {} µs cannot be; it is 2 µs to a day, {} µs", .0.0, Span::DAY.0)]
    Tick(Span),
}

/// Why a session does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The time is no multiple of the tick.
    #[error("{} µs is no multiple of the tick of {} µs", .at.0, .tick.0)]
    NotATick {
        /// The time asked for.
        at: Timestamp,
        /// The tick.
        tick: Span,
    },
    /// Neither the session nor the border that closes it would fit in 52 bits.
    #[error("{} µs leaves no room below 2^52; check the clock and its unit", .at.0)]
    BeyondLimit {
        /// The time asked for.
        at: Timestamp,
    },
    /// Only a stream without any session may be back-dated.
    #[error("this stream has had a session; open with `Start::Again`")]
    NotTheFirst,
    /// Earlier than the next tick of the producer's clock.
    #[error("{} µs is before the next tick of the clock, {} µs", .at.0, .earliest.0)]
    BackDated {
        /// The time asked for.
        at: Timestamp,
        /// The earliest that is allowed.
        earliest: Timestamp,
    },
}

/// Why a session cannot go on at a time. Nothing was encrypted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Equal, repeated or backward: it would use a pad again or send the
    /// plaintext in the clear.
    #[error(
        "{} µs is not after {} µs, the session's last; give an equal time the next free \
         microsecond, and after a clock that stepped back open a new session", .t.0, .last.0
    )]
    NotAscending {
        /// The time given.
        t: Timestamp,
        /// The session's last.
        last: Timestamp,
    },
    /// A data event on a tick, where only a border stands.
    #[error("{} µs is a tick, where only a border stands; use the next microsecond", .t.0)]
    OnATick {
        /// The time given.
        t: Timestamp,
    },
    /// So far ahead that the clock has rather jumped.
    #[error(
        "{ticks} ticks passed without an event, over the limit of {limit}: open a new session \
         if the clock jumped, `advance` if the stream was silent"
    )]
    JumpedAhead {
        /// Ticks between.
        ticks: u64,
        /// The most that may be.
        limit: u64,
    },
    /// The time, or that of the border after it, does not fit in 52 bits.
    #[error("{} µs leaves no room below 2^52; check the clock and its unit", .t.0)]
    BeyondLimit {
        /// The time given.
        t: Timestamp,
    },
    /// There is no key for it.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// An encoding wrote where no statistic is. The event is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorFault {
    /// To the check word, which is zero in every event.
    #[error("the encoding writes to the check word, {word}; it is made for another schema")]
    CheckWord {
        /// Its position.
        word: u16,
    },
    /// Beyond the vector's end.
    #[error("the encoding writes to word {word} of {words}; it is made for another schema")]
    OutOfRange {
        /// The position.
        word: u16,
        /// Words of the vector, the check word included.
        words: usize,
    },
}

/// Why an event was refused. The session goes on as if it had not come; borders
/// of ticks that lie before it may have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError<E> {
    /// By its time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// By its encoding.
    #[error("{0}")]
    Encoding(E),
    /// By where its encoding wrote.
    #[error(transparent)]
    Vector(VectorFault),
}

/// Why a session does not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The time is no multiple of the tick.
    #[error("{} µs is no multiple of the tick of {} µs", .at.0, .tick.0)]
    NotATick {
        /// The time asked for.
        at: Timestamp,
        /// The tick.
        tick: Span,
    },
    /// By its time.
    #[error(transparent)]
    Time(#[from] TimeError),
}
