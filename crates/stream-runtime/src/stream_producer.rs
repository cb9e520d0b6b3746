//! A stream's producer, with a frame for each event or one a tick, as its schema says.

use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, MAX_SILENCE, OpenError, OpeningSecrets, Producer, Session,
    SetupError, Start, TickProducer, TickSession, TimeError,
};
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;

/// A stream's producer, offline.
pub enum StreamProducer {
    /// Each event has a frame.
    Events(Box<Producer>),
    /// Each tick has a frame.
    Ticks(Box<TickProducer>),
}

/// A stream's producer, online.
pub enum StreamSession {
    /// Each event has a frame.
    Events(Box<Session>),
    /// Each tick has a frame.
    Ticks(Box<TickSession>),
}

impl StreamProducer {
    /// The producer of a stream. `secrets` open its sessions if each tick has a frame.
    ///
    /// # Errors
    /// [`SetupError`], or the error of `secrets`.
    pub fn for_schema<E: From<SetupError>>(
        master: &MasterSecret,
        stream: StreamId,
        schema: &Schema,
        layout: &Layout,
        secrets: impl FnOnce() -> Result<OpeningSecrets, E>,
    ) -> Result<StreamProducer, E> {
        if schema.frames.is_events() {
            let producer = Producer::for_schema(master, stream, schema, layout)?;
            return Ok(StreamProducer::Events(Box::new(producer)));
        }
        let producer = TickProducer::for_schema(master, stream, schema, layout, secrets()?)?;
        Ok(StreamProducer::Ticks(Box::new(producer)))
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        match self {
            StreamProducer::Events(producer) => producer.stream(),
            StreamProducer::Ticks(producer) => producer.stream(),
        }
    }

    /// The first tick at or after `now`, where a session can open.
    #[must_use]
    pub fn next_tick(&self, now: Timestamp) -> Timestamp {
        match self {
            StreamProducer::Events(producer) => producer.next_tick(now),
            StreamProducer::Ticks(producer) => producer.next_tick(now),
        }
    }

    /// Opens a session at a tick. `previous` is what [`StreamSession::reached`] said of the
    /// session before. The producer comes back with an error.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        self,
        start: Start,
        at: Timestamp,
        previous: Option<(u64, Timestamp)>,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<StreamSession, (Box<StreamProducer>, OpenError)> {
        match self {
            StreamProducer::Events(producer) => {
                let opened = producer.open(start, at, rng, sink);
                opened.map(|session| StreamSession::Events(Box::new(session))).map_err(|refused| {
                    let state = Box::new(refused.state);
                    (Box::new(StreamProducer::Events(state)), refused.error)
                })
            }
            StreamProducer::Ticks(producer) => {
                let opened = producer.open(start, at, previous, rng, sink);
                opened.map(|session| StreamSession::Ticks(Box::new(session))).map_err(|refused| {
                    let state = Box::new(refused.state);
                    (Box::new(StreamProducer::Ticks(state)), refused.error)
                })
            }
        }
    }
}

impl StreamSession {
    /// Time of the last event or border.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        match self {
            StreamSession::Events(session) => session.last(),
            StreamSession::Ticks(session) => session.last(),
        }
    }

    /// The time of the next border.
    #[must_use]
    pub fn next_border(&self) -> Timestamp {
        match self {
            StreamSession::Events(session) => session.next_border(),
            StreamSession::Ticks(session) => session.next_border(),
        }
    }

    /// Distance between borders.
    #[must_use]
    pub fn tick(&self) -> Span {
        match self {
            StreamSession::Events(session) => session.tick(),
            StreamSession::Ticks(session) => session.tick(),
        }
    }

    /// Whether time in which nothing happens costs a border for each tick.
    #[must_use]
    pub fn has_frame_per_event(&self) -> bool {
        matches!(self, StreamSession::Events(_))
    }

    /// The current session's number, which changes at midnight. Public.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            StreamSession::Events(session) => session.number(),
            StreamSession::Ticks(session) => session.number(),
        }
    }

    /// The session and its last border, to be named by the next one, if it says so.
    #[must_use]
    pub fn reached(&self) -> Option<(u64, Timestamp)> {
        match self {
            StreamSession::Events(_) => None,
            StreamSession::Ticks(session) => Some(session.reached()),
        }
    }

    /// Encodes an event, after the borders of all ticks up to its time.
    ///
    /// # Errors
    /// [`EventError`]. The event then leaves no trace.
    pub fn event<E, R: CryptoRng>(
        &mut self,
        t: Timestamp,
        rng: &mut R,
        encode: impl FnOnce(&mut R, &mut EventVector<'_>) -> Result<(), E>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), EventError<E>> {
        match self {
            StreamSession::Events(session) => session.event(t, |vector| encode(rng, vector), sink),
            StreamSession::Ticks(session) => {
                let tick = session.tick();
                let passed = t.0.saturating_sub(session.next_border().0) / tick.0;
                if passed >= MAX_SILENCE {
                    let (ticks, limit) = (passed + 1, MAX_SILENCE);
                    return Err(TimeError::JumpedAhead { ticks, limit }.into());
                }
                if t.0.is_multiple_of(tick.0) && t > session.last() {
                    return Err(TimeError::OnATick { t }.into());
                }
                session.advance(t, rng, sink)?;
                session.event(t, |vector| encode(rng, vector))
            }
        }
    }

    /// Sends the borders of all ticks up to `now`, which is not far: see [`MAX_SILENCE`].
    ///
    /// # Errors
    /// [`TimeError`].
    pub fn advance(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        match self {
            StreamSession::Events(session) => session.advance(now, sink),
            StreamSession::Ticks(session) => session.advance(now, rng, sink),
        }
    }

    /// The device was asleep up to now, and not for longer than a session covers. With a frame for
    /// each event the borders of that time are sent.
    ///
    /// # Errors
    /// [`TimeError`].
    pub fn sleep_until(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        match self {
            StreamSession::Events(session) => session.advance(now, sink),
            StreamSession::Ticks(session) => session.sleep_until(now, rng, sink),
        }
    }

    /// Ends the session in order at a tick. It comes back with an error.
    ///
    /// # Errors
    /// [`CloseError`].
    pub fn close(
        self,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<StreamProducer, (Box<StreamSession>, CloseError)> {
        match self {
            StreamSession::Events(session) => {
                let closed = session.close(at, sink);
                closed.map(|producer| StreamProducer::Events(Box::new(producer))).map_err(
                    |refused| {
                        let state = Box::new(refused.state);
                        (Box::new(StreamSession::Events(state)), refused.error)
                    },
                )
            }
            StreamSession::Ticks(session) => {
                let closed = session.close(at, rng, sink);
                closed.map(|producer| StreamProducer::Ticks(Box::new(producer))).map_err(
                    |refused| {
                        let state = Box::new(refused.state);
                        (Box::new(StreamSession::Ticks(state)), refused.error)
                    },
                )
            }
        }
    }

    /// Events of the open tick, which are lost if the session is abandoned now.
    #[must_use]
    pub fn unclosed(&self) -> u64 {
        match self {
            StreamSession::Events(session) => session.unclosed(),
            StreamSession::Ticks(session) => session.unclosed(),
        }
    }

    /// Drops the session as it is, and says how many events are lost.
    #[must_use]
    pub fn abandon(self) -> (StreamProducer, u64) {
        match self {
            StreamSession::Events(session) => {
                let lost = session.unclosed();
                (StreamProducer::Events(Box::new(session.abandon())), lost)
            }
            StreamSession::Ticks(session) => {
                let lost = session.unclosed();
                (StreamProducer::Ticks(Box::new(session.abandon())), lost)
            }
        }
    }
}
