//! Windows of a plan: the sums of its streams' complete ticks, as released.

use super::session::FrozenTick;
use super::stream::Stream;
use super::tiles::{self, Tile};
use super::{Shape, WindowError};
use crate::frame::Words;
use crate::messages::{Segment, SegmentBorder, Segments, SummonedStream};
use crate::sums::add;
use crate::tick::claim::Claim;
use alpheus_policy::plan::Release;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

/// The content of a closed window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowReport {
    /// The window.
    pub window: Window,
    /// Streams that were online in it, by position in the plan, ascending. Other streams do
    /// not concern it.
    pub streams: Vec<(u32, Status)>,
}

impl WindowReport {
    /// Streams that are complete, with data or without.
    pub fn complete(&self) -> impl Iterator<Item = &SummonedStream> {
        self.streams.iter().filter_map(|(_, status)| match status {
            Status::Complete(stream) | Status::Silent(stream) => Some(stream),
            Status::Incomplete(_) => None,
        })
    }

    /// Streams that were online and are left out, each with the reason.
    pub fn excluded(&self) -> impl Iterator<Item = (u32, IncompleteError)> {
        self.streams.iter().filter_map(|(position, status)| match status {
            Status::Complete(_) | Status::Silent(_) => None,
            Status::Incomplete(reason) => Some((*position, *reason)),
        })
    }
}

/// The state of a stream that was online in a closed window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Every event is there exactly once. There is at least one, unless the schema has one
    /// frame a tick, which does not show it.
    Complete(SummonedStream),
    /// Every border is there, and no data was sent.
    Silent(SummonedStream),
    /// Something is missing or wrong, so the stream is left out of the window.
    Incomplete(IncompleteError),
}

impl Status {
    /// The same, for another position of the stream.
    pub(super) fn at(mut self, position: u32) -> Status {
        if let Status::Complete(stream) | Status::Silent(stream) = &mut self {
            stream.position = position;
        }
        self
    }
}

/// Why a stream is not complete in a window. If several ticks are incomplete, the first
/// one's reason.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
pub enum IncompleteError {
    /// Fewer events came than the border states.
    #[error("events are missing")]
    Gap,
    /// More events came than the border states.
    #[error("an event arrived twice")]
    Duplicate,
    /// As many came as the border states, but they are not the chain that it ends.
    #[error("the events are not the chain that the border ends")]
    BrokenChain,
    /// The border at the end of a tick is missing.
    #[error("a border is missing")]
    MissingBorder,
    /// The session died: another one opened before its last tick was closed.
    #[error("the session died before the tick was closed")]
    SessionDied,
    /// It went offline or came online within the window.
    #[error("the stream was offline for a part of the window")]
    Offline,
    /// It sent more events than the schema's capacity.
    #[error("the stream has more events than its schema's capacity")]
    OverCapacity,
    /// An event had a different number of words than the schema.
    #[error("an event had the wrong length")]
    WrongLength,
    /// The tick began, or was complete, before the plan started.
    #[error("the tick began before the plan started")]
    BeforePlan,
    /// In a verified plan: a frame of its session since the last anchor did not come, or not in
    /// order, or the session's sum is not what its device states.
    #[error("the session's sum since the last anchor is not known")]
    SumUnknown,
}

impl IncompleteError {
    /// A short name for counters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IncompleteError::Gap => "gap",
            IncompleteError::Duplicate => "duplicate",
            IncompleteError::BrokenChain => "broken-chain",
            IncompleteError::MissingBorder => "missing-border",
            IncompleteError::SessionDied => "session-died",
            IncompleteError::Offline => "offline",
            IncompleteError::OverCapacity => "over-capacity",
            IncompleteError::WrongLength => "wrong-length",
            IncompleteError::BeforePlan => "before-plan",
            IncompleteError::SumUnknown => "sum-unknown",
        }
    }
}

/// A window with data: a slot for each stream of the plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OpenWindow {
    streams: Vec<Option<Box<StreamSum>>>,
}

/// One stream's complete ticks of a window, as released.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StreamSum {
    rows: Box<[u64]>,
    ticks: Vec<(u64, SegmentBorder)>,
    /// Of a schema with one frame a tick: what the rows hold.
    tiles: Vec<Tile>,
}

impl StreamSum {
    fn new(outputs: usize) -> Box<StreamSum> {
        let rows = vec![0; outputs].into();
        Box::new(StreamSum { rows, ticks: Vec::new(), tiles: Vec::new() })
    }

    /// What the rows hold, in no particular order.
    pub(super) fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The sum of the check words.
    pub(super) fn check_sum(&self) -> u64 {
        self.rows.last().copied().unwrap_or(0)
    }
}

impl OpenWindow {
    pub(super) fn new(streams: usize) -> OpenWindow {
        OpenWindow { streams: (0..streams).map(|_| None).collect() }
    }

    pub(super) fn get(&self, position: u32) -> Option<&StreamSum> {
        self.streams.get(usize::try_from(position).ok()?)?.as_deref()
    }

    /// Makes room for so many streams: more may have joined since the window began.
    pub(super) fn widen(&mut self, streams: usize) {
        if self.streams.len() < streams {
            self.streams.resize_with(streams, || None);
        }
    }

    /// Moves a stream's sum to a position of another window's.
    pub(super) fn hand_over(&mut self, from: u32, to: &mut OpenWindow, position: u32) {
        let sum = usize::try_from(from).ok().and_then(|i| self.streams.get_mut(i));
        let place = usize::try_from(position).ok().and_then(|i| to.streams.get_mut(i));
        if let (Some(sum), Some(place)) = (sum, place) {
            *place = sum.take();
        }
    }

    /// Adds a complete tick.
    pub(super) fn add(&mut self, position: u32, release: &Release, tick: &FrozenTick) {
        let place = usize::try_from(position).ok().and_then(|i| self.streams.get_mut(i));
        let Some(place) = place else { return };
        let sum = place.get_or_insert_with(|| StreamSum::new(release.outputs()));
        release.add(tick.sum.words(), &mut sum.rows);
        sum.ticks.reserve_exact(1);
        sum.ticks.push((tick.session, tick.border));
    }

    /// Adds the released words of a tick's frame.
    pub(super) fn add_words(
        &mut self,
        position: u32,
        release: &Release,
        claim: &Claim,
        words: &Words<'_>,
    ) {
        let place = usize::try_from(position).ok().and_then(|i| self.streams.get_mut(i));
        let Some(place) = place else { return };
        let sum = place.get_or_insert_with(|| StreamSum::new(release.outputs()));
        release.add_from(|word| words.get(usize::from(word)).unwrap_or(0), &mut sum.rows);
        let span = Window { start: claim.from, end: claim.to };
        tiles::add(&mut sum.tiles, Tile { session: claim.session, span });
    }

    /// Drops all streams but these, and of these everything but the rows. `streams` is
    /// ascending. The rows of a stream that slept are zero.
    pub(super) fn keep(&mut self, streams: &[u32], outputs: usize) {
        for (position, place) in (0u32..).zip(&mut self.streams) {
            if streams.binary_search(&position).is_err() {
                *place = None;
                continue;
            }
            let sum = place.get_or_insert_with(|| StreamSum::new(outputs));
            (sum.ticks, sum.tiles) = (Vec::new(), Vec::new());
        }
    }

    /// Adds the rows of these streams to `rows`.
    pub(super) fn sum(&self, streams: &[u32], rows: &mut [u64]) -> Result<(), WindowError> {
        let mut sorted = streams.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(WindowError::NotSummable { position: twice[0] });
        }
        for position in streams {
            let not = WindowError::NotSummable { position: *position };
            add(rows, &self.get(*position).ok_or(not)?.rows);
        }
        Ok(())
    }

    pub(super) fn heap(&self) -> usize {
        let sums = self.streams.iter().flatten().map(|sum| {
            size_of::<StreamSum>()
                + 8 * sum.rows.len()
                + sum.ticks.capacity() * size_of::<(u64, SegmentBorder)>()
                + sum.tiles.capacity() * size_of::<Tile>()
        });
        sums.sum::<usize>() + self.streams.capacity() * size_of::<Option<Box<StreamSum>>>()
    }
}

/// The state of a stream that was online in the window.
pub(super) fn judge(
    window: Window,
    position: u32,
    stream: &Stream,
    sum: Option<&StreamSum>,
    shape: &Shape,
    gaps: u64,
) -> Status {
    if !shape.frames.is_events() {
        return tiles::judge(window, position, stream.ticks(), sum, shape, gaps);
    }
    let mut ticks = sum.map(|sum| sum.ticks.clone()).unwrap_or_default();
    ticks.sort_by_key(|(_, border)| border.at);
    let expected = (window.end.0 - window.start.0) / shape.tick.0;
    let missing = expected.saturating_sub(ticks.len() as u64);
    let incomplete = || Status::Incomplete(first_trouble(window, stream, &ticks, shape));
    let some = |sum: &&StreamSum| missing <= gaps && !sum.ticks.is_empty();
    let Some(sum) = sum.filter(some) else { return incomplete() };
    let Some(segments) = segments(window, stream, &ticks, shape) else { return incomplete() };
    let events = segments.iter().fold(0u64, |events, s| events.saturating_add(s.events()));
    if events > shape.events {
        return Status::Incomplete(IncompleteError::OverCapacity);
    }
    let check_sum = sum.check_sum();
    let segments = Segments::OfEvents(segments);
    let summoned = SummonedStream { position, segments, check_sum };
    if events == 0 { Status::Silent(summoned) } else { Status::Complete(summoned) }
}

/// Why the first missing tick is missing.
fn first_trouble(
    window: Window,
    stream: &Stream,
    ticks: &[(u64, SegmentBorder)],
    shape: &Shape,
) -> IncompleteError {
    let mut end = window.start.plus(shape.tick);
    for (_, border) in ticks {
        if border.at != end {
            break;
        }
        end = end.plus(shape.tick);
    }
    stream.trouble(end)
}

/// The segments that the ticks form; `None` if a session among them has a gap. A segment
/// may only begin at the window's start or with its session.
fn segments(
    window: Window,
    stream: &Stream,
    ticks: &[(u64, SegmentBorder)],
    shape: &Shape,
) -> Option<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for (session, border) in ticks {
        let from = Timestamp(border.at.0 - shape.tick.0);
        let last = segments.last_mut();
        match last.filter(|last| last.session == *session && last.to() == from) {
            Some(last) => last.borders.push(*border),
            None => {
                let opened = stream.session(*session)?;
                let opening = (opened.opened == from).then_some(opened.tag);
                if opening.is_none() && from != window.start {
                    return None;
                }
                let borders = vec![*border];
                segments.push(Segment { session: *session, from, opening, borders });
            }
        }
    }
    Some(segments)
}
