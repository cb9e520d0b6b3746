//! The transformer: sums ciphertexts per stream, session and tick, and the
//! complete ticks of a window as each running plan releases them.
//!
//! It holds no key and decides nothing: it says of each stream whether its
//! window is whole ([`Transformer::close`]), and adds up those that the
//! controllers accept ([`Transformer::sum`]). What arrives is judged frame by
//! frame; a refused frame changes nothing but, at most, the reason given for
//! its own stream.
//!
//! Nothing here depends on the order in which streams interleave, or on that of
//! a hash map: the same frames, stream by stream in order, give the same sums
//! and reports.
//!
//! # Privacy
//!
//! It sees ciphertexts, timestamps, sessions and event counts, as the service
//! does anyway.

mod plan;
mod refusal;
mod session;
mod snapshot;
mod stream;
mod watermark;
mod window;

pub use refusal::{PlanMismatch, Refusal, WindowError};
pub use snapshot::BadSnapshot;
pub use watermark::Watermarks;
pub use window::{Incomplete, Status, WindowReport};

use crate::frame::{Frame, FrameView, Words};
use alpheus_policy::ids::{PlanId, SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Span, Timestamp, Window};
use plan::Plans;
use serde::{Deserialize, Serialize};
use session::Event;
use std::collections::HashMap;
use stream::Stream;

/// Frames whose streams' memory is fetched at a time.
const AHEAD: usize = 16;

/// What the transformer needs to know of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The schema's id.
    pub schema: SchemaId,
    /// Words of an event, the check word included.
    pub words: u16,
    /// Distance of borders.
    pub tick: Span,
    /// Events of one stream in one window at most. A stream above it is
    /// excluded: digits are sized by it.
    pub events: u64,
    /// How far event time may run ahead of the clock.
    pub skew: Span,
}

impl Shape {
    /// The shape of a schema, with the skew that the deployment allows.
    #[must_use]
    pub fn of(schema: &Schema, layout: &Layout, skew: Span) -> Shape {
        Shape {
            schema: schema.id(),
            words: layout.words,
            tick: schema.tick,
            events: schema.capacity.events,
            skew,
        }
    }
}

/// What became of an accepted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It opened a session.
    Opened,
    /// It was added to its tick.
    Added,
    /// It was added and made its tick complete: the tick that ends here is
    /// frozen, and nothing can change it any more.
    Froze(Timestamp),
}

/// Sums the ciphertexts of one schema's streams.
#[derive(Debug)]
pub struct Transformer {
    shape: Shape,
    /// Where a stream stands in `streams`; looked up, never iterated.
    index: HashMap<StreamId, u32>,
    streams: Vec<Stream>,
    plans: Plans,
    watermarks: Watermarks,
}

impl Transformer {
    /// A transformer that reads this many partitions.
    #[must_use]
    pub fn new(shape: Shape, partitions: u32) -> Transformer {
        // A schema has a tick; without one nothing would ever be complete.
        let shape = Shape { tick: Span(shape.tick.0.max(1)), ..shape };
        Transformer {
            shape,
            index: HashMap::new(),
            streams: Vec::new(),
            plans: Plans::default(),
            watermarks: Watermarks::new(partitions),
        }
    }

    /// The shape it was made with.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Lets a stream's frames in. Those of other streams are refused, so that
    /// nobody can fill the memory with streams that no owner has annotated.
    /// [`Transformer::register`] admits a plan's streams by itself.
    pub fn admit(&mut self, stream: StreamId) {
        self.position(stream);
    }

    /// Takes a stream's frame from a partition. `now` is the service's clock (in
    /// replay, whatever never runs behind the data).
    ///
    /// # Errors
    ///
    /// The rule that the frame breaks. It then belongs to the dead letters; no
    /// sum and no watermark has changed.
    pub fn ingest(
        &mut self,
        now: Timestamp,
        partition: u32,
        stream: StreamId,
        frame: &[u8],
    ) -> Result<Accepted, Refusal> {
        let position = *self.index.get(&stream).ok_or(Refusal::UnknownStream)?;
        self.ingest_at(now, partition, position, frame)
    }

    /// The same for many frames, in order; what became of each comes with its place among them.
    ///
    /// Streams take turns in a log, and what is kept of the next one has left
    /// the processor's caches since its last frame. Here the memory of a few is
    /// fetched at a time, rather than waited for one after the other.
    pub fn ingest_all<'a>(
        &mut self,
        now: Timestamp,
        partition: u32,
        frames: impl IntoIterator<Item = (StreamId, &'a [u8])>,
        mut became: impl FnMut(usize, Result<Accepted, Refusal>),
    ) {
        let (mut frames, mut place) = (frames.into_iter(), 0);
        let mut ahead: Vec<(Option<u32>, &[u8])> = Vec::with_capacity(AHEAD);
        loop {
            let find = |(stream, frame)| (self.index.get(&stream).copied(), frame);
            ahead.extend(frames.by_ref().take(AHEAD).map(find));
            if ahead.is_empty() {
                return;
            }
            self.fetch(ahead.iter().filter_map(|(position, _)| *position));
            for (position, frame) in ahead.drain(..) {
                let position = position.ok_or(Refusal::UnknownStream);
                let taken = position.and_then(|at| self.ingest_at(now, partition, at, frame));
                became(place, taken);
                place += 1;
            }
        }
    }

    /// Brings what the next frames of these streams will touch into the caches,
    /// step by step, so that the fetches of a step overlap. It changes nothing.
    fn fetch(&self, positions: impl Iterator<Item = u32> + Clone) {
        let streams = positions.filter_map(|position| self.stream(position).ok());
        std::hint::black_box(streams.clone().fold(0, |seen, stream| seen ^ stream.fetch()));
        std::hint::black_box(streams.fold(0, |seen, stream| seen ^ stream.fetch_words()));
    }

    fn ingest_at(
        &mut self,
        now: Timestamp,
        partition: u32,
        position: u32,
        frame: &[u8],
    ) -> Result<Accepted, Refusal> {
        let frame = FrameView::parse(frame)?;
        let t = frame.t();
        if t > now.plus(self.shape.skew) {
            return Err(Refusal::Future);
        }
        let accepted = match frame {
            Frame::Opening { session, t, tag } => self.open(position, partition, session, t, tag),
            Frame::Data { link, words } => {
                self.add(position, Event { link, border: None, closing: false }, &words)
            }
            Frame::Border { link, count, tag, words } => self.add(
                position,
                Event { link, border: Some((count, tag)), closing: false },
                &words,
            ),
            Frame::Closing { link, count, tag, words } => self.add(
                position,
                Event { link, border: Some((count, tag)), closing: true },
                &words,
            ),
        }?;
        self.watermarks.observe(partition, t.min(now));
        Ok(accepted)
    }

    fn open(
        &mut self,
        position: u32,
        partition: u32,
        session: u64,
        t: Timestamp,
        tag: alpheus_crypto::mac::Tag,
    ) -> Result<Accepted, Refusal> {
        if !t.0.is_multiple_of(self.shape.tick.0) {
            return Err(Refusal::BorderOffTick);
        }
        let stream = self.stream_mut(position)?;
        let before = stream.open_partition();
        stream.open(session, t, tag, partition)?;
        if let Some(before) = before {
            self.watermarks.session_ended(before);
        }
        self.watermarks.session_opened(partition);
        Ok(Accepted::Opened)
    }

    fn add(&mut self, position: u32, event: Event, words: &Words<'_>) -> Result<Accepted, Refusal> {
        let stream = self
            .streams
            .get_mut(usize::try_from(position).unwrap_or(usize::MAX))
            .ok_or(Refusal::UnknownStream)?;
        let before = stream.open_partition();
        let frozen = stream.add(&self.shape, &self.plans, event, words)?;
        if let (Some(before), None) = (before, stream.open_partition()) {
            self.watermarks.session_ended(before);
        }
        let Some(tick) = frozen else { return Ok(Accepted::Added) };
        self.plans.freeze(stream.memberships(), &self.shape, &tick);
        Ok(Accepted::Froze(tick.border.at))
    }

    /// Starts to keep the windows of a plan, from its `from` on. A tick that has
    /// begun before this call may be missing from them, so `from` should lie
    /// ahead of the streams.
    ///
    /// # Errors
    ///
    /// If the plan does not fit the schema's shape, or runs already.
    pub fn register(&mut self, plan: &Plan) -> Result<PlanId, PlanMismatch> {
        let checked = plan::Running::new(plan, &self.shape)?;
        let id = plan.id();
        if self.plans.contains(&id) {
            return Err(PlanMismatch::Running);
        }
        self.index.reserve(plan.streams.len());
        self.streams.reserve(plan.streams.len());
        let streams: Vec<u32> = plan.streams.iter().map(|s| self.position(s.stream)).collect();
        let slot = self.plans.insert(id, checked, streams.clone());
        for (position, stream) in (0u32..).zip(streams) {
            if let Ok(stream) = self.stream_mut(stream) {
                stream.join(slot, position);
            }
        }
        Ok(id)
    }

    /// Stops a plan and forgets its windows. False if it was not running.
    pub fn unregister(&mut self, plan: &PlanId) -> bool {
        let Some((slot, running)) = self.plans.remove(plan) else { return false };
        for stream in running.streams() {
            if let Ok(stream) = self.stream_mut(*stream) {
                stream.leave(slot);
            }
        }
        self.settle(running.streams());
        true
    }

    /// The watermark, as [`Watermarks::now`] has it.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.watermarks.now()
    }

    /// The watermarks, to say that a partition was read to its end or that there
    /// is no more input.
    pub fn watermarks(&mut self) -> &mut Watermarks {
        &mut self.watermarks
    }

    /// The next window of a plan to close: the earliest one not closed yet that
    /// has passed, with the plan's grace, by the watermark, and in which any
    /// stream of the plan was online.
    #[must_use]
    pub fn due(&self, plan: &PlanId) -> Option<Window> {
        let grace = self.plans.get(plan)?.1.grace();
        self.due_by(plan, Timestamp(self.watermark().0.saturating_sub(grace.0)))
    }

    /// The same for a limit of the caller's, as where idle streams hold back the
    /// watermark and the wall clock decides: windows that end at or before
    /// `limit` are due.
    #[must_use]
    pub fn due_by(&self, plan: &PlanId, limit: Timestamp) -> Option<Window> {
        let (_, running) = self.plans.get(plan)?;
        let mut window = running.next_window();
        while window.end <= limit {
            let online = running.streams().iter().filter_map(|stream| self.stream(*stream).ok());
            let from = online.filter_map(|stream| stream.online_from(window.start)).min()?;
            if from < window.end {
                return Some(window);
            }
            window = running.window_of(from);
        }
        None
    }

    /// Closes a window: says of each stream of the plan that was online in it
    /// whether it is complete. What arrives for it from now on is late.
    ///
    /// Up to `gaps` ticks may be missing where a session ended and before the
    /// next one opened; 0 unless the policy says so.
    ///
    /// # Errors
    ///
    /// If the plan does not run, or this is not the next of its windows, but for
    /// windows in which nobody was online.
    pub fn close(
        &mut self,
        plan: &PlanId,
        window: Window,
        gaps: u64,
    ) -> Result<WindowReport, WindowError> {
        let (_, running) = self.plans.get_mut(plan).ok_or(WindowError::UnknownPlan)?;
        running.begin_closing(window)?;
        let mut report = WindowReport { window, streams: Vec::new() };
        for (position, stream) in (0u32..).zip(running.streams().to_vec()) {
            let Some(stream) = usize::try_from(stream).ok().and_then(|i| self.streams.get(i))
            else {
                continue;
            };
            if stream.online(window) {
                let status = running.judge(window, position, stream, &self.shape, gaps);
                report.streams.push((position, status));
            }
        }
        let complete: Vec<u32> = report.complete().map(|stream| stream.position).collect();
        let streams = running.finish_closing(window, &complete);
        self.settle(&streams);
        Ok(report)
    }

    /// The released rows, summed over streams of a closed window, by position in
    /// the plan.
    ///
    /// # Errors
    ///
    /// If the window is not closed, or finished, or a stream was not complete in
    /// it or is named twice.
    pub fn sum(
        &self,
        plan: &PlanId,
        window: Window,
        streams: &[u32],
    ) -> Result<Vec<u64>, WindowError> {
        let (_, running) = self.plans.get(plan).ok_or(WindowError::UnknownPlan)?;
        running.sum(window, streams)
    }

    /// Forgets a closed window. True if there was something to forget.
    pub fn finish(&mut self, plan: &PlanId, window: Window) -> bool {
        self.plans.get_mut(plan).is_some_and(|(_, running)| running.finish(window))
    }

    /// Drops what no window of any plan can need any more of these streams.
    fn settle(&mut self, streams: &[u32]) {
        for stream in streams {
            let stream = usize::try_from(*stream).ok().and_then(|i| self.streams.get_mut(i));
            if let Some(stream) = stream {
                let horizon = self.plans.horizon(stream.memberships());
                stream.settle(horizon);
            }
        }
    }

    fn stream(&self, position: u32) -> Result<&Stream, Refusal> {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.streams.get(position).ok_or(Refusal::UnknownStream)
    }

    fn stream_mut(&mut self, position: u32) -> Result<&mut Stream, Refusal> {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.streams.get_mut(position).ok_or(Refusal::UnknownStream)
    }

    /// Where the stream stands, admitted if it was not.
    fn position(&mut self, stream: StreamId) -> u32 {
        let next = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        let position = *self.index.entry(stream).or_insert(next);
        if position == next && next != u32::MAX {
            self.streams.push(Stream::new(stream));
        }
        position
    }
}
