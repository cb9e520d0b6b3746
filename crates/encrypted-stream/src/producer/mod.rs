//! The producer: encrypts a stream's events and sends its borders (Zeph §3.3).
//! It knows nothing of queries.
//!
//! A [`Producer`] holds a stream's keys and is offline. [`Producer::open`] makes
//! it a [`Session`], which alone can encrypt, and which ends by
//! [`close`](Session::close), in order, or by [`abandon`](Session::abandon).
//! Neither can be copied or stored, so no session is ever resumed. None outlasts the UTC
//! day either: a [`Session`] that does goes on as the next.

mod error;
mod session;

pub use error::{CloseError, EventError, OpenError, Refused, SetupError, TimeError, VectorFault};
pub use session::{EventVector, Session};

use crate::keys::{MAX_WORDS, MasterSecret, StreamKeys};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Span, Timestamp};
use rand_core::CryptoRng;
use std::fmt;

/// Ticks without an event after which a later event looks like a clock that
/// jumped, unless [`Producer::with_longest_silence`] says otherwise.
pub const LONGEST_SILENCE: u64 = 100_000;

/// One stream's producer, offline.
pub struct Producer {
    keys: StreamKeys,
    tick: Span,
    words: usize,
    longest_silence: u64,
    /// Whether this value has had a session.
    opened: bool,
}

/// What a producer knows of its stream's past when it opens a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The stream never had a session: its first may open at any tick, also in
    /// the past. Only who has just made the stream's master secret, or replays a
    /// recording from its start, can know this.
    First,
    /// There may have been a session: the next opens at the next tick of the
    /// producer's clock or later. What an earlier session had not closed with a
    /// border is lost.
    Again {
        /// The producer's clock.
        now: Timestamp,
    },
}

impl Producer {
    /// A producer of events of `words` words with borders on every multiple of `tick`.
    ///
    /// # Errors
    /// [`SetupError`] if there is no such cipher.
    pub fn new(
        master: &MasterSecret,
        stream: StreamId,
        schema: SchemaId,
        tick: Span,
        words: u16,
    ) -> Result<Self, SetupError> {
        let words = usize::from(words);
        if words == 0 || words > MAX_WORDS {
            return Err(SetupError::Words(words));
        }
        if tick.0 < 2 || tick > Span::DAY {
            return Err(SetupError::Tick(tick));
        }
        let keys = StreamKeys::new(master, stream, schema);
        Ok(Self { keys, tick, words, longest_silence: LONGEST_SILENCE, opened: false })
    }

    /// A producer of events of `schema` as `layout` places them.
    ///
    /// # Errors
    /// [`SetupError`] if there is no such cipher.
    pub fn for_schema(
        master: &MasterSecret,
        stream: StreamId,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Self, SetupError> {
        Self::new(master, stream, schema.id(), schema.tick, layout.words)
    }

    /// Lets an event follow after up to `ticks` ticks without one. Each costs a
    /// border; an event after more is refused as a clock jump.
    #[must_use]
    pub fn with_longest_silence(mut self, ticks: u64) -> Self {
        self.longest_silence = ticks;
        self
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.keys.stream()
    }

    /// The first tick at or after `now`: where a session can open.
    #[must_use]
    pub fn next_tick(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.div_ceil(self.tick.0).saturating_mul(self.tick.0))
    }

    /// Opens a session at the tick `at` and gives its opening border to `sink`.
    ///
    /// `rng` draws the session's number: 64 random bits, so that no pad of any
    /// other session comes again, whatever clock, backup or snapshot the
    /// producer started from.
    ///
    /// # Errors
    /// [`OpenError`], together with the producer.
    pub fn open(
        mut self,
        start: Start,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Session, Box<Refused<Self, OpenError>>> {
        if let Err(error) = self.admit(start, at) {
            return Err(Box::new(Refused { state: self, error }));
        }
        self.opened = true;
        let session = rng.next_u64();
        Session::open(self, session, at, sink)
    }

    fn admit(&self, start: Start, at: Timestamp) -> Result<(), OpenError> {
        if !at.0.is_multiple_of(self.tick.0) {
            return Err(OpenError::NotATick { at, tick: self.tick });
        }
        // Room for the border that closes the session.
        if at.plus(self.tick) >= Timestamp::LIMIT {
            return Err(OpenError::BeyondLimit { at });
        }
        match start {
            Start::First if self.opened => Err(OpenError::NotTheFirst),
            Start::Again { now } if at < self.next_tick(now) => {
                Err(OpenError::BackDated { at, earliest: self.next_tick(now) })
            }
            _ => Ok(()),
        }
    }
}

/// Names the stream; no key.
impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("stream", &self.stream()).finish_non_exhaustive()
    }
}
