//! A session: the only thing that encrypts.

use super::{CloseError, EventError, OpenError, Producer, Refused, Start, TimeError, VectorFault};
use crate::frame::{Frame, Link};
use crate::keys::{BorderClaim, BorderKind, DAY, KeyError};
use alpheus_policy::ids::StreamId;
use alpheus_policy::time::Timestamp;
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// A producer that is online: a session number and the key vector of its last event.
///
/// No session outlasts its UTC day by a tick: on the first border of the next it closes, and
/// another opens on the same border. A tick is a day at most, so no session is of three days,
/// and only where ticks do not divide a day does one hold events of two. Sums within a session are open to whoever knows its key
/// vectors at two times, so keys of a day must not be those of a session that goes on
/// into another.
///
/// Each frame that it makes is given to a sink at once, in order. A frame that
/// the sink could not deliver cannot be made again: [`Session::reopen`] then.
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
    /// The time that `keys` is of: `last`, unless an event was refused while it
    /// was being made.
    keyed: Timestamp,
    /// The frame being made, reused.
    frame: Vec<u8>,
}

impl Session {
    pub(super) fn open(
        mut producer: Producer,
        session: u64,
        at: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Self, Box<Refused<Producer, OpenError>>> {
        let words = producer.words;
        let mut keys = Zeroizing::new(vec![0; words]);
        if producer.keys.key_vector(session, at, &mut keys).is_err() {
            let error = OpenError::BeyondLimit { at };
            return Err(Box::new(Refused { state: producer, error }));
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

    /// The session's number, until the day ends. Public.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.session
    }

    /// Time of the last event or border.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// When the next border stands. A producer whose clock has reached it calls
    /// [`Session::advance`], so that windows close without waiting for an event.
    #[must_use]
    pub fn next_border(&self) -> Timestamp {
        self.border.plus(self.producer.tick)
    }

    /// Data events since the last border: what is lost, and to be said, if the
    /// session is abandoned now.
    #[must_use]
    pub fn unclosed(&self) -> u64 {
        self.count
    }

    /// Encrypts one data event at `t` and gives its frame to `sink`, after those
    /// of all borders up to there. `encode` adds its words to the vector.
    ///
    /// # Privacy
    /// The frame shows session, time, the time before, and how many words there
    /// are. The words are uniformly random to whoever lacks the stream's keys.
    ///
    /// # Errors
    /// [`EventError`]. The event then has left no trace; the session goes on.
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
        let mut vector = EventVector::over(&mut self.frame, head);
        encode(&mut vector).map_err(EventError::Encoding)?;
        if let Some(fault) = vector.fault {
            return Err(EventError::Vector(fault));
        }
        self.count += 1;
        self.deliver(t, sink);
        Ok(())
    }

    /// Gives the borders of all ticks up to `now`, that one included, to `sink`.
    ///
    /// # Errors
    /// [`TimeError::BeyondLimit`] if no further border would fit; the session
    /// can then still close.
    pub fn advance(
        &mut self,
        now: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TimeError> {
        self.room_after(now)?;
        self.borders_until(now, sink)
    }

    /// Ends the session in order: borders up to the tick `at`, the last of them
    /// a closing one.
    ///
    /// # Errors
    /// [`CloseError`], together with the session.
    pub fn close(
        mut self,
        at: Timestamp,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Producer, Box<Refused<Self, CloseError>>> {
        match self.close_at(at, sink) {
            Ok(()) => Ok(self.producer),
            Err(error) => Err(Box::new(Refused { state: self, error })),
        }
    }

    /// Drops the session as it is. The [`unclosed`](Session::unclosed) events
    /// are lost: no window will ever hold them.
    #[must_use]
    pub fn abandon(self) -> Producer {
        self.producer
    }

    /// Drops the session and opens another: after a clock that jumped, a
    /// restored snapshot, or a frame that was not delivered.
    ///
    /// # Errors
    /// [`OpenError`], together with the producer; the session is gone.
    pub fn reopen(
        self,
        now: Timestamp,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Self, Box<Refused<Producer, OpenError>>> {
        self.abandon().open(Start::Again { now }, at, rng, sink)
    }

    /// Whether a data event may stand at `t`.
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

    /// Whether the clock has not jumped ahead.
    fn silence_until(&self, t: Timestamp) -> Result<(), TimeError> {
        let ticks = t.0.saturating_sub(self.border.0) / self.producer.tick.0;
        let limit = self.producer.longest_silence;
        if ticks > limit { Err(TimeError::JumpedAhead { ticks, limit }) } else { Ok(()) }
    }

    /// Whether there is room for the border after `t`.
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
    /// Its number is the next one: as hard to meet by another run's as the one that was
    /// drawn, and known to be none of this run's.
    fn begin_day(&mut self, sink: &mut impl FnMut(&[u8])) -> Result<(), TimeError> {
        let (t, session) = (self.next_border(), self.session.wrapping_add(1));
        self.encipher(t, Some(BorderKind::Closing))?;
        let mut keys = Zeroizing::new(vec![0; self.keys.len()]);
        self.producer.keys.key_vector(session, t, &mut keys)?;
        let claim = BorderClaim { kind: BorderKind::Opening, session, t, count: 0 };
        let tag = self.producer.keys.border_tag(&claim);
        // The opening border goes first: between the two the stream would look offline, and
        // windows would close without it.
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

    /// Makes the border after the last one.
    fn border(&mut self, kind: BorderKind, sink: &mut impl FnMut(&[u8])) -> Result<(), TimeError> {
        let t = self.next_border();
        self.encipher(t, Some(kind))?;
        self.border = t;
        self.count = 0;
        self.deliver(t, sink);
        Ok(())
    }

    /// Makes the frame of zero at `t`, a border's if a kind is given: its head,
    /// then `K(t) − K(last)`. Returns the length of the head.
    ///
    /// The session stays where it is until [`Session::deliver`]. Should it never
    /// come to that, the next call finds `keys` to be of another time and makes
    /// `K(last)` anew: subtracting what is there could send plaintext in the clear.
    #[inline]
    fn encipher(&mut self, t: Timestamp, border: Option<BorderKind>) -> Result<usize, KeyError> {
        let head = self.head(t, border);
        let head = head.as_bytes();
        // After the first event of a kind this changes no length and writes no zeros.
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

    /// Moves the session to `t`, then lets the frame go: there is no way to
    /// make another one for the same time.
    #[inline]
    fn deliver(&mut self, t: Timestamp, sink: &mut impl FnMut(&[u8])) {
        self.last = t;
        sink(&self.frame);
    }
}

/// The vector of an event while it is being encoded: it starts as the
/// encryption of zero, and whatever is added to a word is added to its plaintext.
pub struct EventVector<'a> {
    /// All words but the check word.
    words: &'a mut [[u8; 8]],
    fault: Option<VectorFault>,
}

impl<'a> EventVector<'a> {
    fn over(frame: &'a mut [u8], head: usize) -> Self {
        let (words, _) = frame.get_mut(head..).unwrap_or_default().as_chunks_mut();
        let data = words.len().saturating_sub(1);
        Self { words: words.get_mut(..data).unwrap_or_default(), fault: None }
    }

    /// Adds to a word, modulo 2^64. A position that is no statistic's, the check
    /// word's above all, refuses the whole event.
    #[inline]
    pub fn add(&mut self, word: u16, addend: u64) {
        match self.words.get_mut(usize::from(word)) {
            Some(bytes) => *bytes = u64::from_le_bytes(*bytes).wrapping_add(addend).to_le_bytes(),
            None => self.refuse(word),
        }
    }

    #[cold]
    fn refuse(&mut self, word: u16) {
        let words = self.words.len() + 1;
        self.fault = Some(if usize::from(word) + 1 == words {
            VectorFault::CheckWord { word }
        } else {
            VectorFault::OutOfRange { word, words }
        });
    }
}

/// Names stream, session and times; no key.
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
