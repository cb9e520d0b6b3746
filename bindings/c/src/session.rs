//! A session: the only thing that encrypts. It is never stored, copied or resumed.

use crate::codes::Code;
use crate::device::Device;
use crate::home::Home;
use crate::outbox::{Outbox, UploadOutcome};
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use crate::shape::Shape;
use crate::values::{InputValue, row};
use alpheus_encrypted_stream::encode::EncodeError;
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, MAX_SILENCE, OpenError, Producer, Session, Start,
    TickProducer, TickSession, TimeError,
};
use alpheus_policy::ids::StreamId;
use alpheus_time::Timestamp;
use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session that C uses, from any of its process's threads.
pub struct Handle {
    home: Home,
    inner: Mutex<Inner>,
}

/// A session with its randomness, and the frames that it made.
struct Inner {
    shape: Option<Arc<Shape>>,
    running: Option<OnlineSession>,
    rng: Randomness,
    outbox: Outbox,
}

/// A session that is online, with a frame for each event or one a tick.
enum OnlineSession {
    Events(Box<Session>),
    Ticks(Box<TickSession>),
}

/// A producer that is offline.
pub enum Offline {
    /// Each event has a frame.
    Events(Box<Producer>),
    /// Each tick has a frame.
    Ticks(Box<TickProducer>),
}

/// When a session opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The stream's first session, at the tick at or before this time.
    First(Timestamp),
    /// At the next tick of the clock, which says this time.
    Again(Timestamp),
}

/// What is known about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Its number, which is public.
    pub number: u64,
    /// Time of its last event or border.
    pub last: Timestamp,
    /// Time of the next border.
    pub next_border: Timestamp,
}

impl Offline {
    /// The producer of a device.
    ///
    /// # Errors
    /// [`Code::FileInvalid`] or [`Code::IdentityInvalid`].
    fn of(device: &Device) -> Result<Offline, Refusal> {
        let Device { shape, stream, master, identity } = device;
        let invalid = |error| Refusal::of(Code::FileInvalid, &error);
        match identity {
            None => Producer::for_schema(master, *stream, &shape.schema, &shape.layout)
                .map(|producer| Offline::Events(Box::new(producer)))
                .map_err(invalid),
            Some(identity) => {
                let secrets = identity.secrets();
                let (schema, layout) = (&shape.schema, &shape.layout);
                TickProducer::for_schema(master, *stream, schema, layout, secrets)
                    .map(|producer| Offline::Ticks(Box::new(producer)))
                    .map_err(invalid)
            }
        }
    }

    fn stream(&self) -> StreamId {
        match self {
            Offline::Events(producer) => producer.stream(),
            Offline::Ticks(producer) => producer.stream(),
        }
    }

    fn next_tick(&self, now: Timestamp) -> Timestamp {
        match self {
            Offline::Events(producer) => producer.next_tick(now),
            Offline::Ticks(producer) => producer.next_tick(now),
        }
    }

    fn open(
        self,
        (start, at): (Start, Timestamp),
        rng: &mut Randomness,
        outbox: &mut Outbox,
    ) -> Result<OnlineSession, OpenError> {
        let sink = &mut |frame: &[u8]| outbox.put(frame);
        match self {
            Offline::Events(producer) => {
                let opened = producer.open(start, at, rng, sink);
                opened
                    .map(|own| OnlineSession::Events(Box::new(own)))
                    .map_err(|refused| refused.error)
            }
            Offline::Ticks(producer) => {
                let opened = producer.open(start, at, None, rng, sink);
                opened
                    .map(|own| OnlineSession::Ticks(Box::new(own)))
                    .map_err(|refused| refused.error)
            }
        }
    }
}

impl OnlineSession {
    fn standing(&self) -> SessionState {
        match self {
            OnlineSession::Events(own) => SessionState {
                number: own.number(),
                last: own.last(),
                next_border: own.next_border(),
            },
            OnlineSession::Ticks(own) => SessionState {
                number: own.number(),
                last: own.last(),
                next_border: own.next_border(),
            },
        }
    }

    fn event<E>(
        &mut self,
        t: Timestamp,
        rng: &mut Randomness,
        outbox: &mut Outbox,
        encode: impl FnOnce(&mut Randomness, &mut EventVector<'_>) -> Result<(), E>,
    ) -> Result<(), EventError<E>> {
        let sink = &mut |frame: &[u8]| outbox.put(frame);
        match self {
            OnlineSession::Events(own) => own.event(t, |vector| encode(rng, vector), sink),
            OnlineSession::Ticks(own) => {
                let tick = own.tick();
                let passed = t.0.saturating_sub(own.next_border().0) / tick.0;
                if passed >= MAX_SILENCE {
                    let (ticks, limit) = (passed + 1, MAX_SILENCE);
                    return Err(TimeError::JumpedAhead { ticks, limit }.into());
                }
                if t.0.is_multiple_of(tick.0) && t > own.last() {
                    return Err(TimeError::OnATick { t }.into());
                }
                own.advance(t, rng, sink)?;
                own.event(t, |vector| encode(rng, vector))
            }
        }
    }

    fn advance(
        &mut self,
        now: Timestamp,
        rng: &mut Randomness,
        outbox: &mut Outbox,
    ) -> Result<(), TimeError> {
        let sink = &mut |frame: &[u8]| outbox.put(frame);
        match self {
            OnlineSession::Events(own) => own.advance(now, sink),
            OnlineSession::Ticks(own) => own.advance(now, rng, sink),
        }
    }

    fn sleep_until(
        &mut self,
        now: Timestamp,
        rng: &mut Randomness,
        outbox: &mut Outbox,
    ) -> Result<(), TimeError> {
        let sink = &mut |frame: &[u8]| outbox.put(frame);
        match self {
            OnlineSession::Events(own) => own.advance(now, sink),
            OnlineSession::Ticks(own) => own.sleep_until(now, rng, sink),
        }
    }

    fn close(
        self,
        at: Timestamp,
        rng: &mut Randomness,
        outbox: &mut Outbox,
    ) -> Result<(), (OnlineSession, CloseError)> {
        let sink = &mut |frame: &[u8]| outbox.put(frame);
        match self {
            OnlineSession::Events(own) => own.close(at, sink).map(drop).map_err(|refused| {
                let own = Box::new(refused.state);
                (OnlineSession::Events(own), refused.error)
            }),
            OnlineSession::Ticks(own) => own.close(at, rng, sink).map(drop).map_err(|refused| {
                let own = Box::new(refused.state);
                (OnlineSession::Ticks(own), refused.error)
            }),
        }
    }
}

fn of_time(error: &TimeError) -> Refusal {
    Refusal::of(Code::LineRefused, error)
}

fn of_event<E: Debug + Display>(error: EventError<E>) -> Refusal {
    match error {
        EventError::Time(own) => of_time(&own),
        EventError::Encoding(own) => Refusal::of(Code::LineRefused, &own),
        EventError::Vector(own) => Refusal::of(Code::LineRefused, &own),
    }
}

impl Handle {
    /// Opens a session of a device.
    ///
    /// # Errors
    /// [`Code::LineRefused`] for a time where none can open.
    pub fn open(device: &Device, opening: Opening) -> Result<Handle, Refusal> {
        let offline = Offline::of(device)?;
        let shape = Arc::clone(&device.shape);
        let start = match opening {
            Opening::First(at) => (Start::First, at.floor(shape.schema.tick)),
            Opening::Again(now) => (Start::Again { now }, offline.next_tick(now)),
        };
        Handle::start(offline, Some(shape), start, Randomness::system()?)
    }

    /// Opens a session of a producer. Without a shape it takes words alone.
    ///
    /// # Errors
    /// As [`Handle::open`].
    pub fn start(
        offline: Offline,
        shape: Option<Arc<Shape>>,
        start: (Start, Timestamp),
        mut rng: Randomness,
    ) -> Result<Handle, Refusal> {
        // Before the session draws: what a script chooses is the session's.
        let mut outbox = Outbox::new(offline.stream(), &mut Randomness::system()?);
        let running = offline.open(start, &mut rng, &mut outbox);
        let running = running.map_err(|error| Refusal::of(Code::LineRefused, &error))?;
        let inner = Inner { shape, running: Some(running), rng, outbox };
        Ok(Handle { home: Home::here(), inner: Mutex::new(inner) })
    }

    /// The session, in the process that opened it, once no other thread uses it.
    fn lock(&self) -> Result<MutexGuard<'_, Inner>, Refusal> {
        self.home.check()?;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if self.inner.is_poisoned() {
            inner.running = None;
        }
        Ok(inner)
    }

    /// Encrypts one event.
    ///
    /// # Errors
    /// [`Code::LineRefused`]; the event then leaves no trace, but borders before it may have been made.
    pub fn event(&self, at: Timestamp, values: &[(&str, InputValue<'_>)]) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { shape, running, rng, outbox } = &mut *inner;
        let (running, shape) = (running.as_mut().ok_or_else(closed)?, shape.as_ref());
        let shape = shape.ok_or_else(|| Refusal::argument("NoSchema", "it has no schema"))?;
        let row = row(&shape.schema, values)?;
        let encode = |rng: &mut Randomness, vector: &mut EventVector<'_>| {
            shape.encoder.encode(&row, rng, |word, addend| vector.add(word, addend))
        };
        running.event(at, rng, outbox, encode).map_err(of_event::<EncodeError>)
    }

    /// Encrypts the words of one event.
    ///
    /// # Errors
    /// As [`Handle::event`].
    pub fn words(&self, at: Timestamp, words: &[u64]) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { running, rng, outbox, .. } = &mut *inner;
        let running = running.as_mut().ok_or_else(closed)?;
        let encode = |_: &mut Randomness, vector: &mut EventVector<'_>| {
            (0..).zip(words).for_each(|(place, word)| vector.add(place, *word));
            Ok::<(), EncodeError>(())
        };
        running.event(at, rng, outbox, encode).map_err(of_event)
    }

    /// Makes the borders of all ticks up to a time.
    ///
    /// # Errors
    /// [`Code::LineRefused`].
    pub fn advance(&self, now: Timestamp) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { running, rng, outbox, .. } = &mut *inner;
        let running = running.as_mut().ok_or_else(closed)?;
        running.advance(now, rng, outbox).map_err(|error| of_time(&error))
    }

    /// The device slept up to a time: one frame says so, where a frame is a tick.
    ///
    /// # Errors
    /// [`Code::LineRefused`].
    pub fn sleep_until(&self, now: Timestamp) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { running, rng, outbox, .. } = &mut *inner;
        let running = running.as_mut().ok_or_else(closed)?;
        running.sleep_until(now, rng, outbox).map_err(|error| of_time(&error))
    }

    /// Closes the session at a tick, or at the end of its own. Frames that wait stay.
    ///
    /// # Errors
    /// [`Code::LineRefused`], and the session continues; [`Code::HandleClosed`] if it is closed.
    pub fn close(&self, at: Option<Timestamp>) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let Inner { running, rng, outbox, .. } = &mut *inner;
        let own = running.take().ok_or_else(closed)?;
        let at = at.unwrap_or(own.standing().next_border);
        own.close(at, rng, outbox).map_err(|(own, error)| {
            *running = Some(own);
            match error {
                CloseError::Time(own) => of_time(&own),
                CloseError::NotATick { .. } => Refusal::of(Code::LineRefused, &error),
            }
        })
    }

    /// What is known about it; nothing once it is closed.
    ///
    /// # Errors
    /// [`Code::ProcessCopied`].
    pub fn standing(&self) -> Result<(Option<SessionState>, usize), Refusal> {
        let inner = self.lock()?;
        Ok((inner.running.as_ref().map(OnlineSession::standing), inner.outbox.len()))
    }

    /// Gives the oldest frame to `write`, or nothing if none waits. If that succeeds, the frame is dropped.
    ///
    /// # Errors
    /// That of `write`, or [`Code::ArgumentWrong`] while an upload is on its way.
    pub fn take_frame(
        &self,
        write: impl FnOnce(&[u8]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        write(inner.outbox.oldest()?.unwrap_or_default())?;
        inner.outbox.drop_oldest();
        Ok(())
    }

    /// Gives the body of an upload to `write`; empty if no frame waits.
    ///
    /// # Errors
    /// That of `write`.
    pub fn upload(&self, write: impl FnOnce(&[u8]) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let mut inner = self.lock()?;
        let (count, body) = inner.outbox.upload()?;
        write(&body)?;
        inner.outbox.sends(count);
        Ok(())
    }

    /// Takes the service's answer to the last upload.
    ///
    /// # Errors
    /// [`Code::ServerOtherVersion`], or [`Code::ArgumentWrong`] if no upload is on its way.
    pub fn answer(&self, body: &[u8]) -> Result<UploadOutcome, Refusal> {
        let mut inner = self.lock()?;
        let Inner { outbox, rng, .. } = &mut *inner;
        outbox.answer(body, rng)
    }
}

fn closed() -> Refusal {
    Refusal::new(Code::HandleClosed, "Closed", "the session is closed; open another")
}
