//! The transformer: sums ciphertexts by stream, session and tick, and adds up the complete
//! ticks of a window as each running plan releases them.
//!
//! It holds no key and decides nothing. It reports for each stream whether its window is
//! complete ([`Transformer::close`]), and adds up the streams that the controllers accept
//! ([`Transformer::sum`]). It checks every frame. A refused frame changes nothing, except
//! perhaps the reason reported for its own stream.
//!
//! Results do not depend on how streams interleave, nor on the order of a hash map. The
//! same frames, in order for each stream, produce the same sums and reports.
//!
//! # Privacy
//!
//! It sees ciphertexts, timestamps, sessions and event counts, which the service sees
//! anyway.

mod absent_streams;
mod epochs;
mod error;
mod plan;
mod proofs;
mod session;
mod shape;
mod snapshot;
mod stream;
mod ticks;
mod tiles;
mod watermark;
mod window;

pub use epochs::ListedWindow;
pub use error::{IngestError, PlanMismatchError, WindowError};
pub use shape::Shape;
pub use snapshot::SnapshotError;
pub use watermark::Watermarks;
pub use window::{IncompleteError, Status, WindowReport};

use crate::frame::{Frame, FrameError, FrameView, Words};
use crate::tick::claim::ClaimKind;
use crate::tick::ingest::AuthenticFrame;
use crate::tick::sums::Blocks;
use absent_streams::AbsentStreams;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp, Window};
use plan::Plans;
use session::Event;
use std::collections::HashMap;
use stream::Stream;
use ticks::TickUse;

/// Number of frames whose streams' memory is prefetched together.
const AHEAD: usize = 16;

/// The effect of an accepted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEffect {
    /// It opened a session.
    Opened,
    /// It was added to its tick.
    Added,
    /// It was added and completed its tick. The tick that ends here is frozen: nothing can
    /// change it any more.
    Froze(Timestamp),
}

/// Sums the ciphertexts of one schema's streams.
#[derive(Debug)]
pub struct Transformer {
    shape: Shape,
    /// The index of a stream in `streams`. Looked up, never iterated.
    index: HashMap<StreamId, u32>,
    streams: Vec<Stream>,
    plans: Plans,
    watermarks: Watermarks,
    /// Streams that are waited for after an outage. Not in a snapshot: each start waits again.
    absent: AbsentStreams,
    /// How a session's sum is cut into the leaves of its tree. Not in a snapshot: it follows from
    /// the schema.
    blocks: Option<Blocks>,
}

impl Transformer {
    /// A transformer that reads this many partitions.
    #[must_use]
    pub fn new(shape: Shape, partitions: u32) -> Transformer {
        // Schemas have a tick; without one nothing would ever be complete.
        let shape = Shape { tick: Span(shape.tick.0.max(1)), ..shape };
        Transformer {
            shape,
            index: HashMap::new(),
            streams: Vec::new(),
            plans: Plans::default(),
            watermarks: Watermarks::new(partitions),
            absent: AbsentStreams::default(),
            blocks: None,
        }
    }

    /// Says how the schema's sums are cut into blocks, which verified plans need. Without it they
    /// are refused.
    pub fn prove_with(&mut self, blocks: Blocks) {
        self.blocks = Some(blocks);
    }

    /// The shape that it was created with.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Admits a stream's frames. Frames of other streams are refused, so nobody can fill
    /// the memory with streams that no owner has annotated. [`Transformer::register`]
    /// admits a plan's streams itself.
    pub fn admit(&mut self, stream: StreamId) {
        self.position(stream);
    }

    /// How many streams were admitted. It forgets none.
    #[must_use]
    pub fn admitted(&self) -> usize {
        self.streams.len()
    }

    /// Takes a stream's frame from a partition. `now` is the service's clock; in a replay,
    /// any time that is never behind the data.
    ///
    /// # Errors
    ///
    /// The rule that the frame breaks. Write it to the dead letters; no sum and no
    /// watermark has changed.
    pub fn handle(
        &mut self,
        partition: u32,
        stream: StreamId,
        frame: &[u8],
        now: Timestamp,
    ) -> Result<FrameEffect, IngestError> {
        let position = *self.index.get(&stream).ok_or(IngestError::UnknownStream)?;
        self.handle_at(partition, position, frame, now)
    }

    /// Takes a tick's frame, or an opening, from a partition. Its words are added to the
    /// windows of all running plans, and dropped.
    ///
    /// # Errors
    ///
    /// As [`Transformer::handle`]. A [conflicting](IngestError::Conflicting) frame is kept as
    /// evidence for the stream's controller.
    pub fn handle_tick(
        &mut self,
        partition: u32,
        frame: &AuthenticFrame<'_>,
        now: Timestamp,
    ) -> Result<FrameEffect, IngestError> {
        let claim = frame.claim();
        let position = *self.index.get(&frame.stream()).ok_or(IngestError::UnknownStream)?;
        if self.shape.frames.is_events() {
            return Err(IngestError::OtherFrames);
        }
        if claim.to > now.plus(self.shape.skew) {
            return Err(IngestError::Future);
        }
        let tick = self.shape.tick.0;
        if !claim.to.0.is_multiple_of(tick) || !claim.from.0.is_multiple_of(tick) {
            return Err(IngestError::BorderOffTick);
        }
        if let Some(words) = frame.words()
            && words.len() != usize::from(self.shape.words)
        {
            let (expected, found) = (usize::from(self.shape.words), words.len());
            return Err(FrameError::WrongLength { expected, found }.into());
        }
        let place = usize::try_from(position).unwrap_or(usize::MAX);
        let stream = self.streams.get_mut(place).ok_or(IngestError::UnknownStream)?;
        let before = stream.open_partition();
        let taken = if claim.kind == ClaimKind::Opening {
            let proves = self.plans.prove(stream.memberships());
            let words = proves.then_some(self.shape.words);
            let opened = stream.open_ticks(claim, frame.bytes(), partition, words);
            opened.map(|()| FrameEffect::Opened)
        } else {
            let taken = stream.take_tick(&self.shape, &self.plans, frame);
            if taken == Ok(TickUse::Counts)
                && let Some(words) = frame.words()
            {
                self.plans.project(stream.memberships(), &claim, words);
            }
            taken.map(|_| FrameEffect::Froze(claim.to))
        };
        let after = stream.open_partition();
        if before != after {
            before.into_iter().for_each(|before| self.watermarks.session_ended(before));
            after.into_iter().for_each(|after| self.watermarks.session_opened(after));
        }
        let effect = taken?;
        self.watermarks.observe(partition, claim.to.min(now));
        Ok(effect)
    }

    /// The opening of a stream's session, as it came; none if nothing of the session is kept.
    #[must_use]
    pub fn opening(&self, stream: &StreamId, session: u64) -> Option<&[u8]> {
        let position = *self.index.get(stream)?;
        self.stream(position).ok()?.opening(session)
    }

    /// Takes many frames, in order. `on_result` gets the effect of each, with its index.
    ///
    /// Streams alternate in a log. By the time a stream's next frame comes, its state has
    /// left the processor's caches. So the memory of several streams is prefetched
    /// together.
    pub fn handle_all<'a>(
        &mut self,
        partition: u32,
        frames: impl IntoIterator<Item = (StreamId, &'a [u8])>,
        now: Timestamp,
        mut on_result: impl FnMut(usize, Result<FrameEffect, IngestError>),
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
                let position = position.ok_or(IngestError::UnknownStream);
                let taken = position.and_then(|at| self.handle_at(partition, at, frame, now));
                on_result(place, taken);
                place += 1;
            }
        }
    }

    /// Prefetches the memory that the next frames of these streams will touch, step by
    /// step, so that the fetches of a step overlap. Changes nothing.
    fn fetch(&self, positions: impl Iterator<Item = u32> + Clone) {
        let streams = positions.filter_map(|position| self.stream(position).ok());
        std::hint::black_box(streams.clone().fold(0, |seen, stream| seen ^ stream.fetch()));
        std::hint::black_box(streams.fold(0, |seen, stream| seen ^ stream.fetch_words()));
    }

    fn handle_at(
        &mut self,
        partition: u32,
        position: u32,
        frame: &[u8],
        now: Timestamp,
    ) -> Result<FrameEffect, IngestError> {
        if !self.shape.frames.is_events() {
            return Err(IngestError::OtherFrames);
        }
        let frame = FrameView::parse(frame)?;
        let t = frame.t();
        if t > now.plus(self.shape.skew) {
            return Err(IngestError::Future);
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
    ) -> Result<FrameEffect, IngestError> {
        if !t.0.is_multiple_of(self.shape.tick.0) {
            return Err(IngestError::BorderOffTick);
        }
        let stream = self.stream_mut(position)?;
        let before = stream.open_partition();
        stream.open(session, t, tag, partition)?;
        if let Some(before) = before {
            self.watermarks.session_ended(before);
        }
        self.watermarks.session_opened(partition);
        Ok(FrameEffect::Opened)
    }

    fn add(
        &mut self,
        position: u32,
        event: Event,
        words: &Words<'_>,
    ) -> Result<FrameEffect, IngestError> {
        let stream = self
            .streams
            .get_mut(usize::try_from(position).unwrap_or(usize::MAX))
            .ok_or(IngestError::UnknownStream)?;
        let before = stream.open_partition();
        let frozen = stream.add(&self.shape, &self.plans, event, words)?;
        if let (Some(before), None) = (before, stream.open_partition()) {
            self.watermarks.session_ended(before);
        }
        let Some(tick) = frozen else { return Ok(FrameEffect::Added) };
        self.plans.freeze(stream.memberships(), &self.shape, &tick);
        Ok(FrameEffect::Froze(tick.border.at))
    }

    /// Starts to keep the windows of a plan, beginning at its `from`. A tick that began
    /// before this call may be missing from them, so `from` should lie ahead of the
    /// streams.
    ///
    /// # Errors
    ///
    /// If the plan does not fit the schema's shape, or is already running.
    pub fn register(&mut self, plan: &Plan) -> Result<PlanId, PlanMismatchError> {
        let checked =
            plan::RunningPlan::new(plan, &self.shape)?.proving(plan, self.blocks.as_ref())?;
        self.run(plan, checked)
    }

    fn run(
        &mut self,
        plan: &Plan,
        checked: plan::RunningPlan,
    ) -> Result<PlanId, PlanMismatchError> {
        let id = plan.id();
        if self.plans.contains(&id) {
            return Err(PlanMismatchError::Running);
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

    /// Stops a plan and drops its windows. Returns false if it was not running.
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

    /// The watermark; see [`Watermarks::now`]. It does not pass what [absent
    /// streams](Transformer::wait_for_streams) have reached.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.absent.hold_back(self.watermarks.now())
    }

    /// The watermarks, to report that a partition was read to its end or that there is no
    /// more input.
    pub fn watermarks(&mut self) -> &mut Watermarks {
        &mut self.watermarks
    }

    /// The next window of a plan to close. It is the earliest open window that has passed
    /// by the watermark, with the plan's grace, and in which a stream of the plan was
    /// online.
    #[must_use]
    pub fn closable_window(&self, plan: &PlanId) -> Option<Window> {
        let grace = self.plans.get(plan)?.1.grace();
        self.closable_window_by(plan, Timestamp(self.watermark().0.saturating_sub(grace.0)))
    }

    /// The next window of a plan to close that ends at or before `limit`. For a caller
    /// whose wall clock decides, because idle streams hold back the watermark.
    #[must_use]
    pub fn closable_window_by(&self, plan: &PlanId, limit: Timestamp) -> Option<Window> {
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

    /// Closes a window and reports, for each stream of the plan that was online in it,
    /// whether it is complete. Later frames for it are refused as late.
    ///
    /// Up to `gaps` ticks may be missing between the end of one session and the opening of
    /// the next. Use 0 unless the policy allows more.
    ///
    /// # Errors
    ///
    /// If the plan is not running, or this is not its next window, not counting windows in
    /// which nobody was online.
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
        running.members.note(&report);
        self.settle(&streams);
        Ok(report)
    }

    /// The released rows, summed over streams of a closed window. Streams are given by
    /// position in the plan.
    ///
    /// # Errors
    ///
    /// If the window is not closed or was finished, or if a stream was not complete in it
    /// or is listed twice.
    pub fn sum(
        &self,
        plan: &PlanId,
        window: Window,
        streams: &[u32],
    ) -> Result<Vec<u64>, WindowError> {
        let (_, running) = self.plans.get(plan).ok_or(WindowError::UnknownPlan)?;
        running.sum(window, streams)
    }

    /// Drops a closed window. Returns true if there was something to drop.
    pub fn finish(&mut self, plan: &PlanId, window: Window) -> bool {
        self.plans.get_mut(plan).is_some_and(|(_, running)| running.finish(window))
    }

    /// Drops everything about these streams that no window of any plan can still need.
    fn settle(&mut self, streams: &[u32]) {
        for stream in streams {
            let stream = usize::try_from(*stream).ok().and_then(|i| self.streams.get_mut(i));
            if let Some(stream) = stream {
                stream.settle(&self.shape, &self.plans);
            }
        }
    }

    fn stream(&self, position: u32) -> Result<&Stream, IngestError> {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.streams.get(position).ok_or(IngestError::UnknownStream)
    }

    fn stream_mut(&mut self, position: u32) -> Result<&mut Stream, IngestError> {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.streams.get_mut(position).ok_or(IngestError::UnknownStream)
    }

    /// The index of a stream, which is admitted if it was not.
    fn position(&mut self, stream: StreamId) -> u32 {
        let next = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        let position = *self.index.entry(stream).or_insert(next);
        if position == next && next != u32::MAX {
            self.streams.push(Stream::new(stream));
        }
        position
    }
}
