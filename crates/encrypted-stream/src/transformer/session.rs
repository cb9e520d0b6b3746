//! One session of a stream: its open ticks and how far it has settled.

use super::{IncompleteError, IngestError, Shape};
use crate::frame::{FrameError, Link, Words};
use crate::messages::SegmentBorder;
use crate::sums::TickSum;
use alpheus_crypto::mac::Tag;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Number of frozen ticks beyond the first missing one that are kept separately. That is
/// more than a window has, unless windows stay open very long.
const MAX_AHEAD: usize = 1024;
/// Number of open ticks kept for a stream whose words no plan needs.
const MAX_IDLE_TICKS: usize = 4;
/// Number of open ticks kept of a session. A device sends the border of a tick before the next
/// tick, so there are many only if it sends no borders, or they are lost.
const MAX_OPEN_TICKS: usize = 256;

/// A data event, border or closing border, without its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) link: Link,
    /// Count and tag, if it is a border.
    pub(super) border: Option<(u64, Tag)>,
    pub(super) closing: bool,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// It is running, or died unnoticed.
    Running,
    /// At its closing border.
    Closed(Timestamp),
    /// It died: another session opened and replaced it.
    Replaced(Timestamp),
}

/// One session of a stream.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) opened: Timestamp,
    pub(super) tag: Tag,
    pub(super) partition: u32,
    pub(super) end: End,
    /// Time of its latest accepted event.
    pub(super) latest: Timestamp,
    /// Ticks that end at or before this time are frozen or given up.
    settled: Timestamp,
    /// Frozen ticks after that, ascending. Boxed, because there are seldom any.
    #[expect(clippy::box_collection, reason = "a third of the size where it is empty")]
    ahead: Option<Box<Vec<Timestamp>>>,
    /// IncompleteError ticks, in no particular order.
    ticks: SmallVec<[OpenTick; 1]>,
}

/// An incomplete tick. Its sum has no words if no plan needs them.
#[derive(Debug, Serialize, Deserialize)]
struct OpenTick {
    end: Timestamp,
    sum: TickSum,
    /// Boxed, because it seldom comes before the tick is complete.
    border: Option<Box<SegmentBorder>>,
    trouble: Option<IncompleteError>,
}

/// A complete tick.
#[derive(Debug)]
pub(super) struct FrozenTick {
    pub(super) session: u64,
    pub(super) border: SegmentBorder,
    pub(super) sum: TickSum,
}

impl Session {
    pub(super) fn new(id: u64, opened: Timestamp, tag: Tag, partition: u32) -> Session {
        Session {
            id,
            opened,
            tag,
            partition,
            end: End::Running,
            latest: opened,
            settled: opened,
            ahead: None,
            ticks: SmallVec::new(),
        }
    }

    /// Touches the session and the tick that the next event probably belongs to.
    pub(super) fn fetch(&self) -> u64 {
        let ended = u64::from(self.end != End::Running);
        let tick = self.ticks.last().map_or(0, |tick| tick.end.0 ^ tick.sum.count());
        self.id ^ self.opened.0 ^ self.latest.0 ^ self.settled.0 ^ ended ^ tick
    }

    /// Touches the first cache lines of that tick's sum; then the processor sees a pattern.
    pub(super) fn fetch_words(&self) -> u64 {
        let words = self.ticks.last().map_or(&[][..], |tick| tick.sum.words());
        words.iter().step_by(8).take(4).fold(0, |seen, word| seen ^ word)
    }

    /// Adds an event to its tick. Returns the tick if that completed it.
    ///
    /// `wants` returns whether any plan needs the words of the tick that ends at a time, or
    /// whether all windows that it could belong to are closed.
    pub(super) fn add(
        &mut self,
        shape: &Shape,
        wants: impl Fn(Timestamp) -> Interest,
        event: Event,
        words: &Words<'_>,
    ) -> Result<Option<FrozenTick>, IngestError> {
        let end = tick_of(shape, &event)?;
        self.admits(end, &event).map_err(|refusal| match (refusal, wants(end)) {
            (IngestError::Frozen, Interest::Late) => IngestError::Late,
            (refusal, _) => refusal,
        })?;
        let position = match self.ticks.iter().position(|tick| tick.end == end) {
            Some(position) => position,
            None => self.begin(end, shape, wants(end))?,
        };
        let Some(tick) = self.ticks.get_mut(position) else { return Ok(None) };
        tick.add(shape, event, words)?;
        let from = Timestamp(end.0 - shape.tick.0);
        let complete = tick.completes(self.id, from);
        self.latest = self.latest.max(event.link.t);
        if event.closing {
            self.end = End::Closed(end);
        }
        if !complete {
            return Ok(None);
        }
        let tick = self.ticks.swap_remove(position);
        if self.ticks.is_empty() {
            // Nothing to keep until the next event.
            self.ticks = SmallVec::new();
        }
        self.settle_tick(end, shape);
        let frozen =
            |border: Box<_>| FrozenTick { session: self.id, border: *border, sum: tick.sum };
        Ok(tick.border.map(frozen))
    }

    /// Checks that the event may be added to the tick that ends at `end`.
    fn admits(&self, end: Timestamp, event: &Event) -> Result<(), IngestError> {
        if event.link.t <= self.opened {
            return Err(IngestError::BeforeOpening);
        }
        match self.end {
            End::Closed(last) | End::Replaced(last) if end > last => {
                return Err(IngestError::SessionEnded);
            }
            _ if event.closing && event.link.t < self.latest => {
                return Err(IngestError::SessionEnded);
            }
            _ => {}
        }
        if self.frozen(end) { Err(IngestError::Frozen) } else { Ok(()) }
    }

    /// Whether the tick is complete or given up.
    fn frozen(&self, end: Timestamp) -> bool {
        let ahead = self.ahead.as_ref();
        end <= self.settled || ahead.is_some_and(|ahead| ahead.binary_search(&end).is_ok())
    }

    /// Starts a tick.
    fn begin(
        &mut self,
        end: Timestamp,
        shape: &Shape,
        wanted: Interest,
    ) -> Result<usize, IngestError> {
        let words = match wanted {
            Interest::Yes => usize::from(shape.words),
            Interest::No => 0,
            Interest::Late => return Err(IngestError::Late),
        };
        if words == 0 && self.ticks.len() >= MAX_IDLE_TICKS {
            let idle = self.ticks.iter().position(|tick| tick.sum.words().is_empty());
            idle.map(|idle| self.ticks.swap_remove(idle));
        }
        if self.ticks.len() >= MAX_OPEN_TICKS {
            self.give_up_before(end)?;
        }
        self.ticks.reserve_exact(1);
        self.ticks.push(OpenTick { end, sum: TickSum::new(words), border: None, trouble: None });
        Ok(self.ticks.len() - 1)
    }

    /// Gives up the oldest open tick for one that ends at `end`.
    fn give_up_before(&mut self, end: Timestamp) -> Result<(), IngestError> {
        match self.ticks.iter().map(|tick| tick.end).min() {
            // Later ticks are open: it would be the one to give up.
            Some(oldest) if end < oldest => Err(IngestError::TooManyOpenTicks),
            Some(oldest) => {
                self.settle(oldest);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes that the tick is complete.
    fn settle_tick(&mut self, end: Timestamp, shape: &Shape) {
        if self.ahead.is_none() && end == self.settled.plus(shape.tick) {
            self.settled = end;
            return;
        }
        let mut ahead = self.ahead.take().unwrap_or_default();
        let place = ahead.partition_point(|tick| *tick < end);
        ahead.insert(place, end);
        if ahead.len() > MAX_AHEAD {
            // Give up the gap before the oldest of them.
            self.settled = ahead.remove(0);
        }
        while ahead.first() == Some(&self.settled.plus(shape.tick)) {
            self.settled = ahead.remove(0);
        }
        self.ahead = Some(ahead).filter(|ahead| !ahead.is_empty());
    }

    /// Gives up all incomplete ticks up to `horizon`.
    pub(super) fn settle(&mut self, horizon: Timestamp) {
        self.ticks.retain(|tick| tick.end > horizon);
        if let Some(ahead) = &mut self.ahead {
            ahead.retain(|tick| *tick > horizon);
        }
        self.ahead = self.ahead.take().filter(|ahead| !ahead.is_empty());
        self.settled = self.settled.max(horizon);
    }

    /// Ends the session where another one opens. Ticks that it holds after that never become
    /// complete.
    pub(super) fn replace(&mut self, at: Timestamp) {
        if self.end == End::Running {
            self.end = End::Replaced(at);
            self.ticks.retain(|tick| tick.end <= at);
        }
    }

    /// Whether it is or was running in the tick that ends at `end`.
    pub(super) fn covers(&self, end: Timestamp) -> bool {
        self.opened < end
            && match self.end {
                End::Running => true,
                End::Closed(last) | End::Replaced(last) => end <= last,
            }
    }

    /// Why its tick that ends at `end` is not complete.
    pub(super) fn trouble(&self, end: Timestamp) -> IncompleteError {
        if let Some(tick) = self.ticks.iter().find(|tick| tick.end == end) {
            return match tick.why() {
                IncompleteError::MissingBorder if matches!(self.end, End::Replaced(_)) => {
                    IncompleteError::SessionDied
                }
                why => why,
            };
        }
        if self.frozen(end) {
            return IncompleteError::BeforePlan;
        }
        match self.end {
            End::Replaced(_) => IncompleteError::SessionDied,
            _ => IncompleteError::MissingBorder,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let sums: usize = self.ticks.iter().map(|tick| 8 * tick.sum.words().len()).sum();
        sums + if self.ticks.spilled() { self.ticks.capacity() * size_of::<OpenTick>() } else { 0 }
            + self.ahead.as_ref().map_or(0, |ahead| (3 + ahead.capacity()) * size_of::<u64>())
    }
}

/// The end of the event's tick. Borders are on ticks, data is between them.
pub(super) fn tick_of(shape: &Shape, event: &Event) -> Result<Timestamp, IngestError> {
    let (t, tick) = (event.link.t, shape.tick);
    match (event.border.is_some(), t.0.is_multiple_of(tick.0)) {
        (true, true) => Ok(t),
        (false, false) => Ok(t.floor(tick).plus(tick)),
        (true, false) => Err(IngestError::BorderOffTick),
        (false, true) => Err(IngestError::DataOnTick),
    }
}

/// Whether a tick's words are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// A running plan has an open window for it.
    Yes,
    /// No plan has a window there.
    No,
    /// There were plans, and all their windows for it are closed.
    Late,
}

impl OpenTick {
    #[inline]
    fn add(&mut self, shape: &Shape, event: Event, words: &Words<'_>) -> Result<(), IngestError> {
        let expected = usize::from(shape.words);
        if words.len() != expected {
            self.trouble = Some(IncompleteError::WrongLength);
            return Err(FrameError::WrongLength { expected, found: words.len() }.into());
        }
        if event.link.previous.0 < self.end.0 - shape.tick.0 {
            self.trouble = Some(IncompleteError::MissingBorder);
            return Err(IngestError::CrossesTick);
        }
        if event.border.is_none() && self.sum.count() >= shape.events {
            self.trouble = Some(IncompleteError::OverCapacity);
            return Err(IngestError::OverCapacity);
        }
        let unwanted = self.sum.words().is_empty();
        match event.border {
            None if unwanted => self.sum.count_data(&event.link),
            None => self.sum.add_data(&event.link, words)?,
            Some((events, tag)) => {
                let at = event.link.t;
                let border = SegmentBorder { at, closing: event.closing, events, tag };
                self.border = Some(Box::new(border));
                if unwanted {
                    self.sum.count_border(&event.link);
                } else {
                    self.sum.add_border(&event.link, words)?;
                }
            }
        }
        Ok(())
    }

    /// Whether every event is there exactly once and the border states their number.
    fn completes(&self, session: u64, from: Timestamp) -> bool {
        let Some(border) = &self.border else { return false };
        self.sum.complete(session, from, self.end) && border.events == self.sum.count()
    }

    fn why(&self) -> IncompleteError {
        match (self.trouble, &self.border) {
            (Some(trouble), _) => trouble,
            (None, None) => IncompleteError::MissingBorder,
            (None, Some(border)) if self.sum.count() < border.events => IncompleteError::Gap,
            (None, Some(border)) if self.sum.count() > border.events => IncompleteError::Duplicate,
            (None, Some(_)) => IncompleteError::BrokenChain,
        }
    }
}
