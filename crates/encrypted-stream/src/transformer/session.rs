//! One session of a stream: its open ticks and how far it has settled.

use super::{Incomplete, Refusal, Shape};
use crate::frame::{FrameError, Link, Words};
use crate::messages::SegmentBorder;
use crate::sums::TickSum;
use alpheus_crypto::mac::Tag;
use alpheus_policy::time::Timestamp;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Frozen ticks beyond the first missing one that are told apart. More than a
/// window has, unless windows stay open very long.
const MOST_AHEAD: usize = 1024;
/// Open ticks of a stream whose words nobody wants.
const MOST_IDLE_TICKS: usize = 4;

/// A data event, border or closing border, without its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) link: Link,
    /// Of a border: its count and tag.
    pub(super) border: Option<(u64, Tag)>,
    pub(super) closing: bool,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// It still runs, or died unnoticed.
    Running,
    /// By its closing border.
    Closed(Timestamp),
    /// It died: the opening border of the next one took its place.
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
    /// Ticks that end at or before this are frozen or given up.
    settled: Timestamp,
    /// Frozen ticks after that, ascending; boxed, since there are seldom any.
    #[expect(clippy::box_collection, reason = "a third of the size where it is empty")]
    ahead: Option<Box<Vec<Timestamp>>>,
    /// Ticks that are not complete, in no order.
    ticks: SmallVec<[OpenTick; 1]>,
}

/// A tick that is not complete yet. Its sum is without words where no plan
/// wants them.
#[derive(Debug, Serialize, Deserialize)]
struct OpenTick {
    end: Timestamp,
    sum: TickSum,
    /// Boxed, since it seldom comes before the tick is complete.
    border: Option<Box<SegmentBorder>>,
    trouble: Option<Incomplete>,
}

/// A tick that has become complete.
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

    /// Touches itself and the tick that the next event is likely to belong to.
    pub(super) fn fetch(&self) -> u64 {
        let ended = u64::from(self.end != End::Running);
        let tick = self.ticks.last().map_or(0, |tick| tick.end.0 ^ tick.sum.count());
        self.id ^ self.opened.0 ^ self.latest.0 ^ self.settled.0 ^ ended ^ tick
    }

    /// Touches that tick's sum: the first lines, after which the processor sees a pattern.
    pub(super) fn fetch_words(&self) -> u64 {
        let words = self.ticks.last().map_or(&[][..], |tick| tick.sum.words());
        words.iter().step_by(8).take(4).fold(0, |seen, word| seen ^ word)
    }

    /// Adds an event to its tick; gives the tick if that made it complete.
    ///
    /// `wants` says whether any plan wants the words of the tick that ends at a
    /// time, or that all windows it could belong to are closed.
    pub(super) fn add(
        &mut self,
        shape: &Shape,
        wants: impl Fn(Timestamp) -> Wanted,
        event: Event,
        words: &Words<'_>,
    ) -> Result<Option<FrozenTick>, Refusal> {
        let end = tick_of(shape, &event)?;
        self.admits(end, &event).map_err(|refusal| match (refusal, wants(end)) {
            (Refusal::Frozen, Wanted::Late) => Refusal::Late,
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
            // Until the next event there is nothing to keep.
            self.ticks = SmallVec::new();
        }
        self.settle_tick(end, shape);
        let frozen =
            |border: Box<_>| FrozenTick { session: self.id, border: *border, sum: tick.sum };
        Ok(tick.border.map(frozen))
    }

    /// Whether the event of the tick that ends at `end` may be added.
    fn admits(&self, end: Timestamp, event: &Event) -> Result<(), Refusal> {
        if event.link.t <= self.opened {
            return Err(Refusal::BeforeOpening);
        }
        match self.end {
            End::Closed(last) | End::Replaced(last) if end > last => {
                return Err(Refusal::SessionEnded);
            }
            _ if event.closing && event.link.t < self.latest => return Err(Refusal::SessionEnded),
            _ => {}
        }
        if self.frozen(end) { Err(Refusal::Frozen) } else { Ok(()) }
    }

    /// Whether the tick is complete or given up.
    fn frozen(&self, end: Timestamp) -> bool {
        let ahead = self.ahead.as_ref();
        end <= self.settled || ahead.is_some_and(|ahead| ahead.binary_search(&end).is_ok())
    }

    /// Starts a tick.
    fn begin(&mut self, end: Timestamp, shape: &Shape, wanted: Wanted) -> Result<usize, Refusal> {
        let words = match wanted {
            Wanted::Yes => usize::from(shape.words),
            Wanted::No => 0,
            Wanted::Late => return Err(Refusal::Late),
        };
        if words == 0 && self.ticks.len() >= MOST_IDLE_TICKS {
            let idle = self.ticks.iter().position(|tick| tick.sum.words().is_empty());
            idle.map(|idle| self.ticks.swap_remove(idle));
        }
        self.ticks.reserve_exact(1);
        self.ticks.push(OpenTick { end, sum: TickSum::new(words), border: None, trouble: None });
        Ok(self.ticks.len() - 1)
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
        if ahead.len() > MOST_AHEAD {
            // Give up the gap before the oldest of them.
            self.settled = ahead.remove(0);
        }
        while ahead.first() == Some(&self.settled.plus(shape.tick)) {
            self.settled = ahead.remove(0);
        }
        self.ahead = Some(ahead).filter(|ahead| !ahead.is_empty());
    }

    /// Gives up whatever is not complete up to `horizon`.
    pub(super) fn settle(&mut self, horizon: Timestamp) {
        self.ticks.retain(|tick| tick.end > horizon);
        if let Some(ahead) = &mut self.ahead {
            ahead.retain(|tick| *tick > horizon);
        }
        self.ahead = self.ahead.take().filter(|ahead| !ahead.is_empty());
        self.settled = self.settled.max(horizon);
    }

    /// Ends it where another session opens. What it has after that never becomes complete.
    pub(super) fn replace(&mut self, at: Timestamp) {
        if self.end == End::Running {
            self.end = End::Replaced(at);
            self.ticks.retain(|tick| tick.end <= at);
        }
    }

    /// Whether it runs, or ran, in the tick that ends at `end`.
    pub(super) fn covers(&self, end: Timestamp) -> bool {
        self.opened < end
            && match self.end {
                End::Running => true,
                End::Closed(last) | End::Replaced(last) => end <= last,
            }
    }

    /// Why its tick that ends at `end` is not complete.
    pub(super) fn trouble(&self, end: Timestamp) -> Incomplete {
        if let Some(tick) = self.ticks.iter().find(|tick| tick.end == end) {
            return match tick.why() {
                Incomplete::MissingBorder if matches!(self.end, End::Replaced(_)) => {
                    Incomplete::SessionDied
                }
                why => why,
            };
        }
        if self.frozen(end) {
            return Incomplete::BeforePlan;
        }
        match self.end {
            End::Replaced(_) => Incomplete::SessionDied,
            _ => Incomplete::MissingBorder,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let sums: usize = self.ticks.iter().map(|tick| 8 * tick.sum.words().len()).sum();
        sums + if self.ticks.spilled() { self.ticks.capacity() * size_of::<OpenTick>() } else { 0 }
            + self.ahead.as_ref().map_or(0, |ahead| (3 + ahead.capacity()) * size_of::<u64>())
    }
}

/// The end of the event's tick. Borders stand on ticks, data between them.
pub(super) fn tick_of(shape: &Shape, event: &Event) -> Result<Timestamp, Refusal> {
    let (t, tick) = (event.link.t, shape.tick);
    match (event.border.is_some(), t.0.is_multiple_of(tick.0)) {
        (true, true) => Ok(t),
        (false, false) => Ok(t.floor(tick).plus(tick)),
        (true, false) => Err(Refusal::BorderOffTick),
        (false, true) => Err(Refusal::DataOnTick),
    }
}

/// Whether a tick's words are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A window of a running plan is open for it.
    Yes,
    /// No plan has a window there.
    No,
    /// There were plans, and all their windows for it are closed.
    Late,
}

impl OpenTick {
    #[inline]
    fn add(&mut self, shape: &Shape, event: Event, words: &Words<'_>) -> Result<(), Refusal> {
        let expected = usize::from(shape.words);
        if words.len() != expected {
            self.trouble = Some(Incomplete::WrongLength);
            return Err(FrameError::WrongLength { expected, found: words.len() }.into());
        }
        if event.link.previous.0 < self.end.0 - shape.tick.0 {
            self.trouble = Some(Incomplete::MissingBorder);
            return Err(Refusal::CrossesTick);
        }
        if event.border.is_none() && self.sum.count() >= shape.events {
            self.trouble = Some(Incomplete::OverCapacity);
            return Err(Refusal::OverCapacity);
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

    /// Whether every event is there once and the border says the same number.
    fn completes(&self, session: u64, from: Timestamp) -> bool {
        let Some(border) = &self.border else { return false };
        self.sum.complete(session, from, self.end) && border.events == self.sum.count()
    }

    fn why(&self) -> Incomplete {
        match (self.trouble, &self.border) {
            (Some(trouble), _) => trouble,
            (None, None) => Incomplete::MissingBorder,
            (None, Some(border)) if self.sum.count() < border.events => Incomplete::Gap,
            (None, Some(border)) if self.sum.count() > border.events => Incomplete::Duplicate,
            (None, Some(_)) => Incomplete::BrokenChain,
        }
    }
}
