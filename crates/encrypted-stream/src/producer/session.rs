//! A session: the only type that encrypts.

use super::{
    CloseError, EventError, EventVector, OpenError, Producer, Start, TimeError, TransitionError,
    check_passed,
};
use crate::frame::{Frame, Link};
use crate::keys::{BorderClaim, BorderKind, DAY, KeyError};
use alpheus_policy::ids::StreamId;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// A producer that is online: a session number and the key vector of its last event.
///
/// A session number lasts for one UTC day. On the first border of the next day the
/// session closes, and another opens on the same border. A tick is at most a day, so no
/// session spans three days. It has events of two days only where ticks do not divide a
/// day. Anyone who knows a session's key vectors at two times can open the sums between
/// them. So the keys of a day must not belong to a session that continues into another.
///
/// Each frame is passed to a sink immediately and in order. A frame that the sink could
/// not deliver cannot be recreated; call [`Session::reopen`] then.
pub struct Session {
    producer: Producer,
    session: u64,
    /// When it opened.
    opened: Timestamp,
    /// Time of the last event, border or data.
    last: Timestamp,
    /// Time of the last border.
    border: Timestamp,
    /// Data events since then.
    count: u64,
    /// `K(keyed)`.
    keys: Zeroizing<Vec<u64>>,
    /// The time of `keys`. It is `last`, unless an event was rejected during its
    /// encoding.
    keyed: Timestamp,
    /// The buffer of the current frame, reused.
    frame: Vec<u8>,
}

impl Session {
    pub(super) fn open(
        mut producer: Producer,
        session: u64,
        at: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Self, Box<TransitionError<Producer, OpenError>>> {
        let words = producer.words;
        let mut keys = Zeroizing::new(vec![0; words]);
        if producer.keys.key_vector(session, at, &mut keys).is_err() {
            let error = OpenError::BeyondLimit { at };
            return Err(Box::new(TransitionError { state: producer, error }));
        }
        let claim = BorderClaim { kind: BorderKind::Opening, session, t: at, count: 0 };
        let tag = producer.keys.border_tag(&claim);
        sink(Frame::<()>::Opening { session, t: at, tag }.head().as_bytes());
        let (opened, last, border, keyed, count) = (at, at, at, at, 0);
        let frame = Vec::new();
        Ok(Self { producer, session, opened, last, border, count, keys, keyed, frame })
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.producer.stream()
    }

    /// The current session number, which changes at midnight. Public.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.session
    }

    /// Time of the last event or border.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The time of the next border. When its clock reaches it, a producer calls
    /// [`Session::advance`], so that windows close without waiting for an event.
    #[must_use]
    pub fn next_border(&self) -> Timestamp {
        self.border.plus(self.producer.tick)
    }

    /// Distance between borders.
    #[must_use]
    pub fn tick(&self) -> Span {
        self.producer.tick
    }

    /// Data events since the last border. They are lost, and to be reported, if the
    /// session is abandoned now.
    #[must_use]
    pub fn unclosed(&self) -> u64 {
        self.count
    }

    /// Encrypts one data event at `t` and passes its frame to `sink`, after the frames
    /// of all borders up to `t`. `encode` adds the event's words to the vector.
    ///
    /// # Privacy
    /// The frame shows the session, the event's time, the previous time, and the number
    /// of words. The words look uniformly random to anyone who lacks the stream's keys.
    ///
    /// # Errors
    /// [`EventError`]. The event then leaves no trace, and the session continues.
    #[inline]
    pub fn event<E>(
        &mut self,
        t: Timestamp,
        encode: impl FnOnce(&mut EventVector<'_>) -> Result<(), E>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), EventError<E>> {
        self.admit(t)?;
        if t > self.next_border() {
            self.borders_until(t, sink)?;
        }
        let head = self.encipher(t, None).map_err(TimeError::Key)?;
        let (words, _) = self.frame.get_mut(head..).unwrap_or_default().as_chunks_mut();
        let mut vector = EventVector::over(words);
        encode(&mut vector).map_err(EventError::Encoding)?;
        vector.check().map_err(EventError::Vector)?;
        self.count += 1;
        self.deliver(t, sink);
        Ok(())
    }

    /// Passes the borders of all ticks up to and including `now` to `sink`.
    ///
    /// # Errors
    /// [`TimeError::BeyondLimit`] if no further border would fit. The session can
    /// then still close. [`TimeError::JumpedAhead`] if there would be too many: a clock that
    /// jumps by years would make a border for each tick.
    pub fn advance(
        &mut self,
        now: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        self.room_after(now)?;
        self.silence_until(now)?;
        self.borders_until(now, sink)
    }

    /// Ends the session properly, with borders up to the tick `at`. The last one is the
    /// closing border.
    ///
    /// # Errors
    /// [`CloseError`], together with the session.
    pub fn close(
        mut self,
        at: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Producer, Box<TransitionError<Self, CloseError>>> {
        match self.close_at(at, sink) {
            Ok(()) => Ok(self.producer),
            Err(error) => Err(Box::new(TransitionError { state: self, error })),
        }
    }

    /// Drops the session as it is. The [`unclosed`](Session::unclosed) events are lost:
    /// no window will ever include them.
    #[must_use]
    pub fn abandon(self) -> Producer {
        self.producer
    }

    /// Drops the session and opens another. Use this after a clock jump, a restored
    /// snapshot, or a frame that was not delivered.
    ///
    /// # Errors
    /// [`OpenError`], together with the producer. The old session is gone.
    pub fn reopen(
        self,
        now: Timestamp,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Self, Box<TransitionError<Producer, OpenError>>> {
        self.abandon().open(Start::Again { now }, at, rng, sink)
    }

    /// Checks that a data event may have the time `t`.
    #[inline]
    fn admit(&self, t: Timestamp) -> Result<(), TimeError> {
        if t <= self.last {
            return Err(TimeError::NotAscending { t, last: self.last });
        }
        if t < self.next_border() {
            return Ok(());
        }
        self.admit_beyond_border(t)
    }

    fn admit_beyond_border(&self, t: Timestamp) -> Result<(), TimeError> {
        if t.0.is_multiple_of(self.producer.tick.0) {
            return Err(TimeError::OnATick { t });
        }
        self.room_after(t)?;
        self.silence_until(t)
    }

    /// Checks that the clock has not jumped ahead.
    fn silence_until(&self, t: Timestamp) -> Result<(), TimeError> {
        check_passed((self.border, t), self.producer.tick, self.producer.max_silence)
    }

    /// Checks that there is room for the border after `t`.
    fn room_after(&self, t: Timestamp) -> Result<(), TimeError> {
        let border = t.floor(self.producer.tick).plus(self.producer.tick);
        if border < Timestamp::LIMIT { Ok(()) } else { Err(TimeError::BeyondLimit { t }) }
    }

    fn borders_until(
        &mut self,
        t: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        while self.next_border() <= t {
            if self.next_border().0 / DAY == self.opened.0 / DAY {
                self.border(BorderKind::Interior, sink)?;
            } else {
                self.begin_day(sink)?;
            }
        }
        Ok(())
    }

    /// Closes the session on the next border, and opens another there.
    ///
    /// The new number is the successor of the old one. It is as unlikely to collide with
    /// another run's as the drawn number, and it is new within this run.
    fn begin_day(&mut self, sink: &mut impl FnMut(&[u8])) -> Result<(), TimeError> {
        let (t, session) = (self.next_border(), self.session.wrapping_add(1));
        self.encipher(t, Some(BorderKind::Closing))?;
        let mut keys = Zeroizing::new(vec![0; self.keys.len()]);
        self.producer.keys.key_vector(session, t, &mut keys)?;
        let claim = BorderClaim { kind: BorderKind::Opening, session, t, count: 0 };
        let tag = self.producer.keys.border_tag(&claim);
        // The opening border is sent first. Otherwise the stream would look offline between
        // the two, and windows would close without it.
        sink(Frame::<()>::Opening { session, t, tag }.head().as_bytes());
        self.border = t;
        self.count = 0;
        self.deliver(t, sink);
        (self.session, self.opened, self.keys, self.keyed) = (session, t, keys, t);
        Ok(())
    }

    fn close_at(&mut self, at: Timestamp, sink: &mut impl FnMut(&[u8])) -> Result<(), CloseError> {
        let tick = self.producer.tick;
        if !at.0.is_multiple_of(tick.0) {
            return Err(CloseError::NotATick { at, tick });
        }
        if at < self.next_border() {
            return Err(TimeError::NotAscending { t: at, last: self.last.max(self.border) }.into());
        }
        if at >= Timestamp::LIMIT {
            return Err(TimeError::BeyondLimit { t: at }.into());
        }
        self.silence_until(at)?;
        self.borders_until(Timestamp(at.0 - tick.0), sink)?;
        Ok(self.border(BorderKind::Closing, sink)?)
    }

    /// Makes and sends the next border.
    fn border(&mut self, kind: BorderKind, sink: &mut impl FnMut(&[u8])) -> Result<(), TimeError> {
        let t = self.next_border();
        self.encipher(t, Some(kind))?;
        self.border = t;
        self.count = 0;
        self.deliver(t, sink);
        Ok(())
    }

    /// Makes the frame of a zero vector at `t`: its head, then `K(t) − K(last)`. It is a
    /// border's frame if a kind is given. Returns the length of the head.
    ///
    /// The session stays unchanged until [`Session::deliver`]. If that is never called,
    /// the next call sees that `keys` is of another time and recomputes `K(last)`.
    /// Subtracting the stale vector could send plaintext in the clear.
    #[inline]
    fn encipher(&mut self, t: Timestamp, border: Option<BorderKind>) -> Result<usize, KeyError> {
        let head = self.head(t, border);
        let head = head.as_bytes();
        // After the first event of a kind this changes no length and writes nothing.
        self.frame.resize(head.len() + 8 * self.keys.len(), 0);
        let (start, words) = self.frame.split_at_mut(head.len());
        start.copy_from_slice(head);
        let (words, _) = words.as_chunks_mut();
        let keys = &mut self.producer.keys;
        if self.keyed != self.last {
            keys.key_vector(self.session, self.last, &mut self.keys)?;
        }
        self.keyed = t;
        keys.replace(self.session, t, &mut self.keys, words)?;
        Ok(head.len())
    }

    fn head(&self, t: Timestamp, border: Option<BorderKind>) -> crate::frame::Head {
        let (session, count) = (self.session, self.count);
        let link = Link { session, previous: self.last, t };
        let Some(kind) = border else {
            return Frame::Data { link, words: () }.head();
        };
        let tag = self.producer.keys.border_tag(&BorderClaim { kind, session, t, count });
        match kind {
            BorderKind::Closing => Frame::Closing { link, count, tag, words: () }.head(),
            _ => Frame::Border { link, count, tag, words: () }.head(),
        }
    }

    /// Moves the session to `t` and then releases the frame, so that no other frame can
    /// be made for the same time.
    #[inline]
    fn deliver(&mut self, t: Timestamp, sink: &mut impl FnMut(&[u8])) {
        self.last = t;
        sink(&self.frame);
    }
}

/// Shows stream, session and times, but no key.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("stream", &self.stream())
            .field("session", &self.session)
            .field("last", &self.last)
            .field("unclosed", &self.count)
            .finish_non_exhaustive()
    }
}
