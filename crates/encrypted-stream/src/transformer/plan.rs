//! Running plans: what each keeps of a complete tick, and its windows.

use super::epochs::Members;
use super::proofs;
use super::session::{FrozenTick, Interest};
use super::stream::{Membership, Stream};
use super::window::{OpenWindow, Status};
use super::{PlanMismatchError, Shape, WindowError};
use crate::frame::Words;
use crate::tick::claim::Claim;
use crate::tick::parts::NeededBlocks;
use crate::tick::sums::Blocks;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Plan, Release};
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All running plans, by slot. A slot is never reused.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Plans {
    slots: BTreeMap<PlanId, u32>,
    running: BTreeMap<u32, RunningPlan>,
    next: u32,
}

/// A running plan.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunningPlan {
    window: Span,
    grace: Span,
    /// The start of its first window.
    from: Timestamp,
    /// Windows that end at or before this time are closed, or lie before the plan's start.
    closed: Timestamp,
    release: Release,
    /// In a verified plan: the blocks of sessions' sums that its members need.
    needed: Option<NeededBlocks>,
    /// Indexes of its streams in the transformer, in the plan's order.
    streams: Vec<u32>,
    /// Windows with data, by start. Closed ones stay until they are finished.
    pub(super) windows: BTreeMap<Timestamp, OpenWindow>,
    /// Whether its streams are fixed.
    pub(super) members: Members,
}

impl Plans {
    pub(super) fn contains(&self, plan: &PlanId) -> bool {
        self.slots.contains_key(plan)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PlanId> {
        self.slots.keys().copied()
    }

    pub(super) fn insert(&mut self, id: PlanId, mut plan: RunningPlan, streams: Vec<u32>) -> u32 {
        let slot = self.next;
        self.next += 1;
        plan.streams = streams;
        self.slots.insert(id, slot);
        self.running.insert(slot, plan);
        slot
    }

    pub(super) fn remove(&mut self, plan: &PlanId) -> Option<(u32, RunningPlan)> {
        let slot = self.slots.remove(plan)?;
        self.running.remove(&slot).map(|running| (slot, running))
    }

    pub(super) fn get(&self, plan: &PlanId) -> Option<(u32, &RunningPlan)> {
        let slot = *self.slots.get(plan)?;
        self.running.get(&slot).map(|running| (slot, running))
    }

    pub(super) fn get_mut(&mut self, plan: &PlanId) -> Option<(u32, &mut RunningPlan)> {
        let slot = *self.slots.get(plan)?;
        self.running.get_mut(&slot).map(|running| (slot, running))
    }

    /// Whether any plan has an open window for a stream's tick that ends at `end`.
    pub(super) fn interest_in(&self, memberships: &[Membership], end: Timestamp) -> Interest {
        if memberships.is_empty() {
            return Interest::No;
        }
        let plans = memberships.iter().filter_map(|member| self.running.get(&member.slot));
        let mut late = true;
        for plan in plans {
            if end > plan.closed {
                return Interest::Yes;
            }
            // Before its first window a plan wants nothing, but nothing is late either.
            late &= end > plan.from;
        }
        if late { Interest::Late } else { Interest::No }
    }

    /// The time up to which all windows of the plans are closed.
    pub(super) fn horizon(&self, memberships: &[Membership]) -> Timestamp {
        let plans = memberships.iter().filter_map(|member| self.running.get(&member.slot));
        plans.map(|plan| plan.closed).min().unwrap_or(Timestamp(0))
    }

    /// Adds a complete tick to the window of each plan that it belongs to.
    pub(super) fn freeze(&mut self, memberships: &[Membership], shape: &Shape, tick: &FrozenTick) {
        if tick.sum.words().is_empty() {
            return;
        }
        for member in memberships {
            if let Some(plan) = self.running.get_mut(&member.slot) {
                plan.freeze(member.position, shape, tick);
            }
        }
    }

    /// Whether an open window of some plan starts at `t`, where all before it are closed.
    pub(super) fn window_starts_at(&self, memberships: &[Membership], t: Timestamp) -> bool {
        self.of(memberships).any(|plan| plan.closed == t)
    }

    /// Whether a window of some plan starts or ends at `t`.
    pub(super) fn cuts_at(&self, memberships: &[Membership], t: Timestamp) -> bool {
        self.of(memberships).any(|plan| t.0.is_multiple_of(plan.window.0))
    }

    /// Whether a window of some plan starts or ends at `t` that is not closed.
    pub(super) fn open_window_cuts_at(&self, memberships: &[Membership], t: Timestamp) -> bool {
        self.of(memberships).any(|plan| plan.closed <= t && t.0.is_multiple_of(plan.window.0))
    }

    /// Whether a plan of these needs sessions' sums.
    pub(super) fn prove(&self, memberships: &[Membership]) -> bool {
        self.of(memberships).any(|plan| plan.needed.is_some())
    }

    /// Whether a window of a verified plan starts or ends at a frame's end, or within a gap.
    pub(super) fn proof_cuts(&self, memberships: &[Membership], claim: &Claim) -> bool {
        self.of(memberships).any(|plan| plan.needed.is_some() && plan.cuts(claim))
    }

    /// Whether an open window of a verified plan needs the sum at a claim.
    pub(super) fn need_proof(
        &self,
        memberships: &[Membership],
        claim: &Claim,
        anchor: Span,
    ) -> bool {
        let inside = claim.ends_period(anchor) || claim.kind.is_closing();
        let needs = |plan: &RunningPlan| {
            plan.needed.is_some() && claim.to >= plan.closed && (inside || plan.cuts(claim))
        };
        self.of(memberships).any(needs)
    }

    fn of(&self, memberships: &[Membership]) -> impl Iterator<Item = &RunningPlan> {
        memberships.iter().filter_map(|member| self.running.get(&member.slot))
    }

    /// Adds a tick's words to the window of each plan that it belongs to.
    pub(super) fn project(&mut self, memberships: &[Membership], claim: &Claim, words: &Words<'_>) {
        for member in memberships {
            if let Some(plan) = self.running.get_mut(&member.slot) {
                plan.project(member.position, claim, words);
            }
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.running.values().map(RunningPlan::heap).sum()
    }
}

impl RunningPlan {
    /// Checks a plan against the shape of its events.
    pub(super) fn new(plan: &Plan, shape: &Shape) -> Result<RunningPlan, PlanMismatchError> {
        if plan.schema != shape.schema {
            return Err(PlanMismatchError::Schema);
        }
        if plan.window.0 == 0 || shape.tick.0 == 0 || !plan.window.0.is_multiple_of(shape.tick.0) {
            return Err(PlanMismatchError::Window);
        }
        let words = |row: &Vec<u16>| row.iter().all(|word| *word < shape.words);
        if let Some(row) = plan.release.rows.iter().position(|row| !words(row)) {
            return Err(PlanMismatchError::Release { row });
        }
        if plan.release.rows.last() != Some(&vec![shape.words.saturating_sub(1)]) {
            return Err(PlanMismatchError::Release {
                row: plan.release.rows.len().saturating_sub(1),
            });
        }
        if !plan.streams.is_sorted_by(|a, b| a.stream < b.stream) {
            return Err(PlanMismatchError::Streams);
        }
        // The first window that starts at or after `from`.
        let from = Timestamp(plan.from.0.div_ceil(plan.window.0).saturating_mul(plan.window.0));
        Ok(RunningPlan {
            window: plan.window,
            grace: plan.grace,
            from,
            closed: from,
            release: plan.release.clone(),
            needed: None,
            streams: Vec::new(),
            windows: BTreeMap::new(),
            members: Members::Fixed(BTreeMap::new()),
        })
    }

    /// The same; its members get parts of sums, if the plan is verified.
    pub(super) fn proving(
        self,
        plan: &Plan,
        blocks: Option<&Blocks>,
    ) -> Result<RunningPlan, PlanMismatchError> {
        if !plan.integrity.is_verified() {
            return Ok(self);
        }
        let needed = NeededBlocks::of(blocks.ok_or(PlanMismatchError::Blocks)?, &plan.release);
        Ok(RunningPlan { needed: Some(needed), ..self })
    }

    /// Whether a window starts or ends at a frame's end, or within a gap.
    fn cuts(&self, claim: &Claim) -> bool {
        let last = claim.to.floor(self.window);
        last == claim.to || (claim.kind.is_gap() && claim.from <= last)
    }

    /// Adds a stream, by its index in the transformer. Returns its position.
    pub(super) fn enrol(&mut self, stream: u32) -> u32 {
        self.streams.push(stream);
        u32::try_from(self.streams.len() - 1).unwrap_or(u32::MAX)
    }

    /// Of a plan that releases one window, which is closed with these sums.
    pub(super) fn closed_with(mut self, window: Window, sums: OpenWindow) -> RunningPlan {
        self.closed = window.end;
        self.windows.insert(window.start, sums);
        self
    }

    pub(super) fn grace(&self) -> Span {
        self.grace
    }

    pub(super) fn streams(&self) -> &[u32] {
        &self.streams
    }

    /// The window that contains the time right after `t`.
    pub(super) fn window_of(&self, t: Timestamp) -> Window {
        let start = t.floor(self.window);
        Window { start, end: start.plus(self.window) }
    }

    /// The first open window.
    pub(super) fn next_window(&self) -> Window {
        self.window_of(self.closed)
    }

    fn freeze(&mut self, position: u32, shape: &Shape, tick: &FrozenTick) {
        let end = tick.border.at;
        if end <= self.closed {
            return;
        }
        let window = self.window_of(Timestamp(end.0 - shape.tick.0));
        let streams = self.streams.len();
        let open = self.windows.entry(window.start).or_insert_with(|| OpenWindow::new(streams));
        open.widen(streams);
        open.add(position, &self.release, tick);
    }

    fn project(&mut self, position: u32, claim: &Claim, words: &Words<'_>) {
        if claim.to <= self.closed {
            return;
        }
        let (window, streams) = (self.window_of(claim.from), self.streams.len());
        let open = self.windows.entry(window.start).or_insert_with(|| OpenWindow::new(streams));
        open.widen(streams);
        open.add_words(position, &self.release, claim, words);
    }

    /// Whether `window` may be closed now.
    pub(super) fn begin_closing(&self, window: Window) -> Result<(), WindowError> {
        if self.window_of(window.start) != window {
            return Err(WindowError::NoSuchWindow);
        }
        if window.end <= self.closed {
            return Err(WindowError::AlreadyClosed);
        }
        match self.windows.range(self.closed..window.start).next() {
            Some(_) => Err(WindowError::OutOfOrder),
            None => Ok(()),
        }
    }

    /// The state of a stream that was online in the window.
    pub(super) fn judge(
        &self,
        window: Window,
        position: u32,
        stream: &Stream,
        shape: &Shape,
        gaps: u64,
    ) -> Status {
        let sum = self.windows.get(&window.start).and_then(|open| open.get(position));
        let status = super::window::judge(window, position, stream, sum, shape, gaps);
        match &self.needed {
            Some(needed) => proofs::prove(status, stream.ticks(), shape, needed),
            None => status,
        }
    }

    /// Closes the window and keeps only the sums of the complete streams.
    pub(super) fn finish_closing(&mut self, window: Window, complete: &[u32]) -> Vec<u32> {
        self.closed = window.end;
        if !complete.is_empty() {
            let streams = self.streams.len();
            let open = self.windows.entry(window.start);
            let open = open.or_insert_with(|| OpenWindow::new(streams));
            open.widen(streams);
            open.keep(complete, self.release.outputs());
        } else if let Some(open) = self.windows.get_mut(&window.start) {
            open.keep(&[], 0);
        }
        self.streams.clone()
    }

    pub(super) fn sum(&self, window: Window, streams: &[u32]) -> Result<Vec<u64>, WindowError> {
        if window.end > self.closed || self.window_of(window.start) != window {
            return Err(WindowError::NotClosed);
        }
        let mut rows = vec![0; self.release.outputs()];
        match self.windows.get(&window.start) {
            Some(open) => open.sum(streams, &mut rows)?,
            None if streams.is_empty() => {}
            None => return Err(WindowError::NotClosed),
        }
        Ok(rows)
    }

    pub(super) fn finish(&mut self, window: Window) -> bool {
        self.members.forget(window);
        window.end <= self.closed && self.windows.remove(&window.start).is_some()
    }

    fn heap(&self) -> usize {
        let windows: usize = self.windows.values().map(OpenWindow::heap).sum();
        windows + self.members.heap() + self.streams.capacity() * size_of::<u32>()
    }
}
