//! The producer: encrypts a stream's events and sends its borders (Zeph §3.3).
//! It knows nothing about queries.
//!
//! Under a schema with a frame for each event, a [`Producer`] holds a stream's keys and is offline. [`Producer::open`] turns it into
//! a [`Session`], the only type that encrypts. A session ends properly with
//! [`close`](Session::close), or without notice with [`abandon`](Session::abandon).
//! Neither type can be copied or stored, so no session is ever resumed. No session
//! number outlasts its UTC day: at midnight a [`Session`] continues under the next number.
//!
//! [`TickProducer`] and [`TickSession`] are the same under a schema with one frame a tick.

mod error;
mod opening_secrets;
mod session;
mod ticks;
mod vector;

pub use error::{
    CloseError, EventError, OpenError, SetupError, TimeError, TransitionError, VectorError,
};
pub use opening_secrets::OpeningSecrets;
pub use session::Session;
pub use ticks::{TickProducer, TickSession};
pub use vector::EventVector;

use crate::keys::{DAY, MAX_WORDS, MasterSecret, StreamKeys};
use crate::tick::sums::Blocks;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;
use std::fmt;

/// Default for the number of ticks without an event after which the next event is
/// taken for a clock jump, and for the number of ticks that one call may pass.
/// [`Producer::with_max_silence`] changes it.
pub const MAX_SILENCE: u64 = 100_000;

/// The longest sleep that gaps cover. Each midnight in it costs an opening, so a clock that jumps by
/// years would make thousands.
pub const MAX_SLEEP: Span = Span(100 * DAY);

/// One stream's producer, offline.
pub struct Producer {
    keys: StreamKeys,
    tick: Span,
    words: usize,
    max_silence: u64,
    /// Whether this value already had a session.
    opened: bool,
}

/// The lengths that a schema fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickShape {
    /// Distance between borders.
    pub tick: Span,
    /// Sum and count start again at its multiples. A multiple of the tick.
    pub anchor: Span,
    /// The words of an event.
    pub blocks: Blocks,
}

/// What a producer knows about its stream's past when it opens a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The stream never had a session. Its first may open at any tick, even in the past.
    /// Only a caller that has just created the stream's master secret, or replays a
    /// recording from its start, can know this.
    First,
    /// There may have been a session. The next one opens at the next tick of the
    /// producer's clock or later. Events after an earlier session's last border are lost.
    Again {
        /// The producer's clock.
        now: Timestamp,
    },
}

impl Producer {
    /// Makes a producer of events of `words` words, with borders on every multiple of
    /// `tick`.
    ///
    /// # Errors
    /// [`SetupError`] if the number of words or the tick is not allowed.
    pub fn new(
        master: &MasterSecret,
        stream: StreamId,
        schema: SchemaId,
        tick: Span,
        words: u16,
    ) -> Result<Self, SetupError> {
        let words = check_shape(tick, words)?;
        let keys = StreamKeys::new(master, stream, schema);
        Ok(Self { keys, tick, words, max_silence: MAX_SILENCE, opened: false })
    }

    /// Makes a producer of events of `schema` in this `layout`.
    ///
    /// # Errors
    /// As [`Producer::new`], and [`SetupError::Frames`] if the schema has one frame a tick.
    pub fn for_schema(
        master: &MasterSecret,
        stream: StreamId,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Self, SetupError> {
        if !schema.frames.is_events() {
            return Err(SetupError::Frames { schema: "ticks" });
        }
        Self::new(master, stream, schema.id(), schema.tick, layout.words)
    }

    /// Allows up to `ticks` ticks without an event. Each costs a border. An event after
    /// a longer silence is rejected as a clock jump.
    #[must_use]
    pub fn with_max_silence(mut self, ticks: u64) -> Self {
        self.max_silence = ticks;
        self
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.keys.stream()
    }

    /// The first tick at or after `now`, where a session can open.
    #[must_use]
    pub fn next_tick(&self, now: Timestamp) -> Timestamp {
        next_tick(self.tick, now)
    }

    /// Opens a session at the tick `at` and passes its opening border to `sink`.
    ///
    /// `rng` draws the session's number. Its 64 random bits ensure that no pad of
    /// another session recurs, whatever clock, backup or snapshot the producer started
    /// from.
    ///
    /// # Errors
    /// [`OpenError`], together with the producer.
    pub fn open(
        mut self,
        start: Start,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Session, Box<TransitionError<Self, OpenError>>> {
        if let Err(error) = self.admit(start, at) {
            return Err(Box::new(TransitionError { state: self, error }));
        }
        self.opened = true;
        let session = rng.next_u64();
        Session::open(self, session, at, sink)
    }

    fn admit(&self, start: Start, at: Timestamp) -> Result<(), OpenError> {
        start.admits(self.tick, self.opened, at)
    }
}

impl Start {
    /// Checks that a session may open at `at`. `opened` is whether there was one already.
    fn admits(self, tick: Span, opened: bool, at: Timestamp) -> Result<(), OpenError> {
        if !at.0.is_multiple_of(tick.0) {
            return Err(OpenError::NotATick { at, tick });
        }
        // Leave room for the closing border.
        if at.plus(tick) >= Timestamp::LIMIT {
            return Err(OpenError::BeyondLimit { at });
        }
        match self {
            Start::First if opened => Err(OpenError::NotTheFirst),
            Start::Again { now } if at < next_tick(tick, now) => {
                Err(OpenError::BackDated { at, earliest: next_tick(tick, now) })
            }
            _ => Ok(()),
        }
    }
}

/// The first tick at or after `now`.
fn next_tick(tick: Span, now: Timestamp) -> Timestamp {
    Timestamp(now.0.div_ceil(tick.0).saturating_mul(tick.0))
}

/// Checks that no more than so many ticks have passed between two times: else the clock has jumped.
fn check_passed(
    (border, now): (Timestamp, Timestamp),
    tick: Span,
    limit: u64,
) -> Result<(), TimeError> {
    let ticks = now.0.saturating_sub(border.0) / tick.0;
    if ticks > limit { Err(TimeError::JumpedAhead { ticks, limit }) } else { Ok(()) }
}

/// Checks that the cipher can encrypt vectors of `words` words, with borders at this distance.
fn check_shape(tick: Span, words: u16) -> Result<usize, SetupError> {
    let words = usize::from(words);
    if words == 0 || words > MAX_WORDS {
        return Err(SetupError::Words(words));
    }
    if tick.0 < 2 || tick > Span::DAY {
        return Err(SetupError::Tick(tick));
    }
    Ok(words)
}

/// Shows the stream, but no key.
impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("stream", &self.stream()).finish_non_exhaustive()
    }
}
