//! A producer that adds up its events and sends one frame a tick.

use super::{
    CloseError, EventError, EventVector, MAX_SILENCE, MAX_SLEEP, OpenError, OpeningSecrets,
    SetupError, Start, TickShape, TimeError, TransitionError, check_passed, check_shape, next_tick,
};
use crate::keys::{DAY, MasterSecret, StreamKeys};
use crate::tick::claim::{Claim, ClaimKind, Statement};
use crate::tick::frame::{SessionKey, body};
use crate::tick::opening::{self, OpeningContext, OpeningHead};
use crate::tick::sums::{Blocks, SessionSum, prefix};
use alpheus_crypto::seal::SealingKeyError;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// One stream's producer of tick frames, offline.
pub struct TickProducer {
    keys: StreamKeys,
    shape: TickShape,
    words: usize,
    secrets: OpeningSecrets,
    /// Whether this value already had a session.
    opened: bool,
}

impl TickProducer {
    /// Makes a producer.
    ///
    /// # Errors
    /// [`SetupError`] if words, tick or ingest key are not allowed.
    pub fn new(
        master: &MasterSecret,
        stream: StreamId,
        schema: SchemaId,
        shape: TickShape,
        secrets: OpeningSecrets,
    ) -> Result<Self, SetupError> {
        let words = shape.blocks.lengths().iter().fold(0, |sum: u16, n| sum.saturating_add(*n));
        let words = check_shape(shape.tick, words)?;
        if shape.anchor.0 == 0 || !shape.anchor.0.is_multiple_of(shape.tick.0) {
            return Err(SetupError::Tick(shape.anchor));
        }
        if !secrets.ingest_key.is_good() {
            return Err(SetupError::Ingest);
        }
        let keys = StreamKeys::new(master, stream, schema);
        Ok(Self { keys, shape, words, secrets, opened: false })
    }

    /// Makes a producer of events of `schema` in this `layout`.
    ///
    /// # Errors
    /// As [`TickProducer::new`], and [`SetupError::Frames`] if each event has a frame in this
    /// schema.
    pub fn for_schema(
        master: &MasterSecret,
        stream: StreamId,
        schema: &Schema,
        layout: &Layout,
        secrets: OpeningSecrets,
    ) -> Result<Self, SetupError> {
        let anchor = schema.frames.anchor().ok_or(SetupError::Frames { schema: "events" })?;
        let shape = TickShape { tick: schema.tick, anchor, blocks: Blocks::of(layout) };
        Self::new(master, stream, schema.id(), shape, secrets)
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.keys.stream()
    }

    /// The first tick at or after `now`, where a session can open.
    #[must_use]
    pub fn next_tick(&self, now: Timestamp) -> Timestamp {
        next_tick(self.shape.tick, now)
    }

    /// Opens a session at the tick `at` and passes its opening to `sink`. `previous` is
    /// [`TickSession::reached`] of the session before, if the device has stored it.
    ///
    /// `rng` draws the session's number and key.
    ///
    /// # Errors
    /// [`OpenError`], together with the producer.
    pub fn open(
        mut self,
        start: Start,
        at: Timestamp,
        previous: Option<(u64, Timestamp)>,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<TickSession, Box<TransitionError<Self, OpenError>>> {
        let admitted = start.admits(self.shape.tick, self.opened, at);
        let begun = admitted.and_then(|()| {
            self.begin(at, previous, rng).map_err(|error| match error {
                TimeError::Ingest => OpenError::Ingest,
                _ => OpenError::BeyondLimit { at },
            })
        });
        match begun {
            Err(error) => Err(Box::new(TransitionError { state: self, error })),
            Ok((running, frame)) => {
                self.opened = true;
                sink(&frame);
                Ok(TickSession::new(self, running))
            }
        }
    }

    /// Draws a session, and makes its opening.
    fn begin(
        &mut self,
        at: Timestamp,
        previous: Option<(u64, Timestamp)>,
        rng: &mut impl CryptoRng,
    ) -> Result<(DaySession, Vec<u8>), TimeError> {
        let number = rng.next_u64();
        let key = Secret::random(rng);
        let mut keys = Zeroizing::new(vec![0; self.words]);
        self.keys.key_vector(number, at, &mut keys)?;
        let frame = self.opening((number, &key), at, previous, rng);
        let frame = frame.map_err(|_| TimeError::Ingest)?;
        let sum = SessionSum::new(self.words);
        let key = SessionKey::new(&key);
        Ok((DaySession { number, key, opened: at, border: at, keys, sum }, frame))
    }

    fn opening(
        &self,
        (session, key): (u64, &Secret<32>),
        at: Timestamp,
        previous: Option<(u64, Timestamp)>,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u8>, SealingKeyError> {
        let (kind, root) = (ClaimKind::Opening, Default::default());
        let statement = Statement { kind, session, from: at, to: at, count: 0, root };
        let tag = self.keys.claim(&statement).tag;
        let OpeningSecrets { device, certificate, authority, ingest, ingest_key } = &self.secrets;
        let (stream, schema) = (self.stream(), self.keys.schema());
        let context = OpeningContext { authority, stream, schema };
        let head = OpeningHead { session, at, tag, ingest: *ingest, previous };
        let sealed = head.seal_key(key, ingest_key, &context, rng)?;
        let mut frame = opening::body(&head, &sealed, certificate, &context, device);
        SessionKey::new(key).finish(&stream, &mut frame);
        Ok(frame)
    }
}

/// A producer of tick frames that is online.
///
/// It holds the sum of the open tick in the clear. A crash loses that tick. A session ends
/// with its UTC day, and is never resumed: its number, its key and the open tick are only
/// here. A device may store [`TickSession::reached`].
pub struct TickSession {
    producer: TickProducer,
    running: DaySession,
    /// Time of the last event or border.
    last: Timestamp,
    /// The sum of the open tick's events.
    tick: Zeroizing<Vec<u64>>,
    /// Number of events in it.
    count: u64,
    /// The event that is being encoded.
    event: Zeroizing<Vec<[u8; 8]>>,
}

/// The session of a day.
struct DaySession {
    number: u64,
    key: SessionKey,
    opened: Timestamp,
    /// The last border that was sent.
    border: Timestamp,
    /// `K(border)`.
    keys: Zeroizing<Vec<u64>>,
    /// Since the last anchor, up to the last border.
    sum: SessionSum,
}

impl TickSession {
    fn new(producer: TickProducer, running: DaySession) -> Self {
        let (words, last) = (producer.words, running.opened);
        let tick = Zeroizing::new(vec![0; words]);
        let event = Zeroizing::new(vec![[0; 8]; words]);
        Self { producer, running, last, tick, count: 0, event }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.producer.stream()
    }

    /// The current session number, which changes at midnight. Public.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.running.number
    }

    /// The session and its last border: what the next session's opening names as the one
    /// before. Public.
    #[must_use]
    pub fn reached(&self) -> (u64, Timestamp) {
        (self.running.number, self.running.border)
    }

    /// Time of the last event or border.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The time of the next border, at which a producer calls [`TickSession::advance`].
    #[must_use]
    pub fn next_border(&self) -> Timestamp {
        self.running.border.plus(self.producer.shape.tick)
    }

    /// Distance between borders.
    #[must_use]
    pub fn tick(&self) -> Span {
        self.producer.shape.tick
    }

    /// Events of the open tick, which are lost if the session is abandoned now.
    #[must_use]
    pub fn unclosed(&self) -> u64 {
        self.count
    }

    /// Adds one event at `t` to the open tick. `encode` adds the event's words to the vector.
    /// Nothing is sent.
    ///
    /// # Errors
    /// [`EventError`]. The event then leaves no trace, and the session continues.
    pub fn event<E>(
        &mut self,
        t: Timestamp,
        encode: impl FnOnce(&mut EventVector<'_>) -> Result<(), E>,
    ) -> Result<(), EventError<E>> {
        if t <= self.last {
            return Err(TimeError::NotAscending { t, last: self.last }.into());
        }
        if t.0.is_multiple_of(self.producer.shape.tick.0) {
            return Err(TimeError::OnATick { t }.into());
        }
        if t > self.next_border() {
            return Err(TimeError::TickOver { t, border: self.next_border() }.into());
        }
        self.event.fill([0; 8]);
        let mut vector = EventVector::over(&mut self.event);
        encode(&mut vector).map_err(EventError::Encoding)?;
        vector.check().map_err(EventError::Vector)?;
        for (sum, word) in self.tick.iter_mut().zip(self.event.iter()) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        (self.last, self.count) = (t, self.count + 1);
        Ok(())
    }

    /// Passes the frames of all ticks up to and including `now` to `sink`, also of those
    /// without events.
    ///
    /// # Privacy
    /// A frame shows the session, its tick, and the number of words. Everything else looks
    /// uniformly random to anyone who lacks the stream's keys.
    ///
    /// # Errors
    /// [`TimeError`] if no further border would fit. The session can then still close. Also if
    /// there would be more frames than a clock brings about that nobody sets.
    pub fn advance(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        self.room_after(now)?;
        self.passed_until(now, MAX_SILENCE)?;
        self.ticks_until(now, rng, sink)
    }

    /// The device was asleep up to now: sends one frame for all ticks that have passed since
    /// its last event. If there was one in the open tick, that tick comes first.
    ///
    /// # Privacy
    /// The frame shows that the device was asleep then, and that it counted no event.
    ///
    /// # Errors
    /// As [`TickSession::advance`], but only after a sleep of more than [`MAX_SLEEP`].
    pub fn sleep_until(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        self.room_after(now)?;
        self.passed_until(now, MAX_SLEEP.0 / self.producer.shape.tick.0)?;
        if self.count > 0 && self.next_border() <= now {
            self.ticks_until(self.next_border(), rng, sink)?;
        }
        let until = now.floor(self.producer.shape.tick);
        while self.running.border < until {
            let midnight = self.last_border();
            if until < midnight {
                self.gap(until, ClaimKind::Gap, sink)?;
            } else {
                self.begin_day(midnight, rng, sink, |own, sink| {
                    own.gap(midnight, ClaimKind::ClosingGap, sink)
                })?;
            }
        }
        Ok(())
    }

    /// Ends the session properly, with frames of all ticks up to the tick `at`.
    ///
    /// # Errors
    /// [`CloseError`], together with the session.
    pub fn close(
        mut self,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<TickProducer, Box<TransitionError<Self, CloseError>>> {
        match self.close_at(at, rng, sink) {
            Ok(()) => Ok(self.producer),
            Err(error) => Err(Box::new(TransitionError { state: self, error })),
        }
    }

    /// Drops the session as it is. The [`unclosed`](TickSession::unclosed) events are lost.
    #[must_use]
    pub fn abandon(self) -> TickProducer {
        self.producer
    }

    /// The first border of the next day, where the session ends at the latest.
    fn last_border(&self) -> Timestamp {
        let midnight = self.running.opened.floor(Span(DAY)).plus(Span(DAY));
        next_tick(self.producer.shape.tick, midnight)
    }

    /// Checks that there is room for the border after `t`.
    fn room_after(&self, t: Timestamp) -> Result<(), TimeError> {
        let tick = self.producer.shape.tick;
        if t.floor(tick).plus(tick) < Timestamp::LIMIT {
            Ok(())
        } else {
            Err(TimeError::BeyondLimit { t })
        }
    }

    fn passed_until(&self, t: Timestamp, limit: u64) -> Result<(), TimeError> {
        check_passed((self.running.border, t), self.producer.shape.tick, limit)
    }

    fn ticks_until(
        &mut self,
        t: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        while self.next_border() <= t {
            let border = self.next_border();
            if border < self.last_border() {
                self.send_tick(ClaimKind::Tick, sink)?;
            } else {
                self.begin_day(border, rng, sink, |own, sink| {
                    own.send_tick(ClaimKind::ClosingTick, sink)
                })?;
            }
        }
        Ok(())
    }

    fn close_at(
        &mut self,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), CloseError> {
        let tick = self.producer.shape.tick;
        if !at.0.is_multiple_of(tick.0) {
            return Err(CloseError::NotATick { at, tick });
        }
        if at < self.next_border() {
            return Err(TimeError::NotAscending { t: at, last: self.last }.into());
        }
        if at >= Timestamp::LIMIT {
            return Err(TimeError::BeyondLimit { t: at }.into());
        }
        self.passed_until(at, MAX_SILENCE)?;
        self.ticks_until(Timestamp(at.0 - tick.0), rng, sink)?;
        Ok(self.send_tick(ClaimKind::ClosingTick, sink)?)
    }

    /// Closes the session at the border `at` with what `close` sends, and opens another there.
    ///
    /// The number is drawn afresh, so that a copy of this device has another from midnight on.
    fn begin_day<S: FnMut(&[u8])>(
        &mut self,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut S,
        close: impl FnOnce(&mut Self, &mut S) -> Result<(), TimeError>,
    ) -> Result<(), TimeError> {
        let (next, opening) = self.producer.begin(at, Some((self.running.number, at)), rng)?;
        // The opening is sent first. Otherwise the stream would look offline between the two.
        sink(&opening);
        close(self, sink)?;
        self.running = next;
        Ok(())
    }

    /// Sends the open tick, and starts the next.
    fn send_tick(
        &mut self,
        kind: ClaimKind,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        let (from, to) = (self.running.border, self.next_border());
        let running = &mut self.running;
        let mut words = Zeroizing::new(vec![[0; 8]; running.keys.len()]);
        self.producer.keys.replace(running.number, to, &mut running.keys, &mut words)?;
        let cipher = words.iter().zip(self.tick.iter());
        let cipher: Vec<u64> =
            cipher.map(|(pad, sum)| u64::from_le_bytes(*pad).wrapping_add(*sum)).collect();
        running.sum.add(&cipher, self.count);
        self.tick.fill(0);
        (self.count, self.last) = (0, to);
        self.send(kind, (from, to), &cipher, sink);
        Ok(())
    }

    /// Sends that nothing happened since the last border.
    fn gap(
        &mut self,
        to: Timestamp,
        kind: ClaimKind,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        let from = self.running.border;
        self.producer.keys.key_vector(self.running.number, to, &mut self.running.keys)?;
        self.last = to;
        self.send(kind, (from, to), &[], sink);
        Ok(())
    }

    /// Moves the session to `to` and then releases the frame, so that no other frame can be
    /// made for the same border.
    fn send(
        &mut self,
        kind: ClaimKind,
        (from, to): (Timestamp, Timestamp),
        words: &[u64],
        sink: &mut impl FnMut(&[u8]),
    ) {
        let (session, stream) = (self.running.number, self.stream());
        let root = prefix(&self.producer.shape.blocks.root(self.running.sum.words()));
        let count = self.running.sum.events();
        let statement = Statement { kind, session, from, to, count, root };
        let claim: Claim = self.producer.keys.claim(&statement);
        if claim.ends_period(self.producer.shape.anchor) {
            self.running.sum.restart();
        }
        self.running.border = to;
        let mut frame = body(&claim, words);
        self.running.key.finish(&stream, &mut frame);
        sink(&frame);
    }
}

/// Shows the stream, but no key.
impl fmt::Debug for TickProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TickProducer").field("stream", &self.stream()).finish_non_exhaustive()
    }
}

/// Shows stream, session and times, but no key.
impl fmt::Debug for TickSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TickSession")
            .field("stream", &self.stream())
            .field("session", &self.running.number)
            .field("last", &self.last)
            .field("unclosed", &self.count)
            .finish_non_exhaustive()
    }
}
