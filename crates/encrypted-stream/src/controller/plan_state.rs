//! A plan that a controller takes part in, and its windows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_bounded_influence::commit::AdmittedOwners;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::{Plan, PlannedStream};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::{Span, Timestamp, Window};

use super::budgets::Charges;
use super::policies::Verdicts;
use super::segments::KeySpan;
use super::totals::Totals;
use super::verified_plans::SummonsHistory;
use crate::announced_plan::AnnouncedPlan;
use crate::consumer::{ConsumerPad, pad_digest};
use crate::error::{ExclusionError, WindowRefusalError};
use crate::ledger::{LogLine, Record, Share, SignedOpening, SpentToken};
use crate::mask::Masker;
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::Presence;
use crate::tick::parts::NeededBlocks;

/// Closed windows of a plan that are kept separately.
const CLOSED_KEPT: usize = 64;
/// Maximum number of windows kept for a plan, closed or not.
const KEPT: usize = 1024;

/// How long after its end an epoch is answered, if nobody says that it is over, and how long a fixed plan
/// is remembered.
pub(super) const SETTLE: Span = Span::seconds(2 * 24 * 3600);

/// A plan that was accepted.
pub(super) struct PlanState {
    pub(super) announced: Arc<AnnouncedPlan>,
    /// This controller's position in the roster.
    pub(super) position: u32,
    /// When it was accepted, as the owners' log states.
    pub(super) accepted_at: Option<Timestamp>,
    /// Streams of this controller, by position, of which another plan held an attribute when this
    /// one was accepted: it never releases them.
    pub(super) held_elsewhere: BTreeSet<u32>,
    /// `None` with a single controller, whose token opens by itself.
    pub(super) masks: Option<Masker>,
    /// If the plan is sealed to a consumer: the pad that hides its tokens from everybody
    /// else.
    pub(super) consumer: Option<ConsumerPad>,
    /// Windows that end at or before this time and are not in `rounds` are settled.
    pub(super) settled: Timestamp,
    /// Once the plan has ended: the time up to which it released.
    pub(super) ended: Option<Timestamp>,
    pub(super) rounds: BTreeMap<Timestamp, WindowState>,
    /// Whether streams of this controller allow the plan.
    pub(super) verdicts: Verdicts,
    /// The same by policy: many owners choose alike, and sizing noise takes time.
    pub(super) verdicts_by_policy: Vec<(ResolvedPolicy, Option<Charges>)>,
    /// −log2 of the samplers' slack over all honest shares.
    pub(super) slack_bits: u32,
    /// Spans that this controller's streams, by position, have released to earlier plans.
    pub(super) released_spans: HashMap<u32, Vec<Window>>,
    /// Whether the authority has revoked the certificate of the plan's consumer.
    pub(super) is_barred: bool,
    /// If the plan's results are running totals.
    pub(super) totals: Option<Totals>,
    /// In a verified plan: which blocks of sessions' sums it needs, once it has looked.
    pub(super) needed: Option<Arc<NeededBlocks>>,
    /// In a verified plan: what the service has asked about its windows.
    pub(super) asked: SummonsHistory,
    /// For running totals: owners whose log states the cost.
    pub(super) cost_logged: BTreeSet<OwnerId>,
    /// In a bounded plan: what owners' logs say of windows that were out of bounds, by their start.
    pub(super) out_of_bounds: BTreeMap<Timestamp, Vec<LogLine>>,
}

/// The state of one window.
#[derive(Default)]
pub(super) struct WindowState {
    pub(super) summoned: Option<AnsweredSummons>,
    /// Different summonses that were answered since this process runs.
    pub(super) summonses: u32,
    pub(super) spent: Option<(SpentToken<Share>, Option<Arc<FixedMembership>>)>,
    pub(super) opened: Option<(Digest, SignedOpening)>,
    /// In a bounded plan: members with whom that contribution shares no pads, because the edge is struck.
    pub(super) struck: Vec<u32>,
    /// In a bounded plan: S of that opening, since the start.
    pub(super) opened_over: Option<RosterSet>,
    /// Who picked this controller, in the membership of that token.
    pub(super) pickers: Vec<u32>,
    /// In a verified plan: the generation whose keys it is answered with, since the start.
    pub(super) generation: Option<u64>,
    /// The service has closed it; requests are no longer answered.
    pub(super) closed: bool,
    /// H(M) of a token that was spent on it before it was closed. The ledger's records of
    /// it are deleted once the window is far in the past.
    pub(super) left: Option<Digest>,
}

impl WindowState {
    /// A summons is answered, with keys of this generation.
    pub(super) fn present(&mut self, summoned: AnsweredSummons, generation: Option<u64>) {
        (self.summoned, self.generation) = (Some(summoned), generation);
        self.summonses = self.summonses.saturating_add(1);
    }

    /// Drops everything except that the window is over.
    pub(super) fn close(&mut self) -> Option<SpentToken<Share>> {
        let spent = self.spent.take().map(|(spent, _)| spent);
        self.left = self.left.or(spent.as_ref().map(|spent| spent.membership));
        (self.summoned, self.opened, self.closed) = (None, None, true);
        (self.pickers, self.struck, self.opened_over) = (Vec::new(), Vec::new(), None);
        spent
    }

    /// H(M) of the token that was spent on it, if any.
    pub(super) fn membership(&self) -> Option<Digest> {
        self.left.or(self.spent.as_ref().map(|(spent, _)| spent.membership))
    }
}

/// An answered summons.
pub(super) struct AnsweredSummons {
    pub(super) summons: Digest,
    pub(super) presence: Presence,
    /// Digest of the signed presence: the leaf that M must contain.
    pub(super) digest: Digest,
    pub(super) signed: Signed<Presence>,
    /// What the token will cover, by position in the plan.
    pub(super) spans: Vec<(u32, Vec<KeySpan>)>,
    /// In a verified plan: what the accepted streams' sums release together, under their keys.
    pub(super) sums: Vec<u64>,
    /// In a plan with noise: what was promised for each stream with events.
    pub(super) charges: Vec<(u32, Charges)>,
    /// In a bounded plan: the windows of its owners with data, which are in bounds.
    pub(super) admitted: Option<AdmittedOwners>,
}

impl PlanState {
    pub(super) fn new(announced: Arc<AnnouncedPlan>, position: u32, masks: Option<Masker>) -> Self {
        Self {
            announced,
            position,
            accepted_at: None,
            held_elsewhere: BTreeSet::new(),
            masks,
            consumer: None,
            settled: Timestamp(0),
            ended: None,
            rounds: BTreeMap::new(),
            verdicts: Verdicts::default(),
            verdicts_by_policy: Vec::new(),
            slack_bits: 0,
            released_spans: HashMap::new(),
            is_barred: false,
            totals: None,
            needed: None,
            asked: SummonsHistory::default(),
            cost_logged: BTreeSet::new(),
            out_of_bounds: BTreeMap::new(),
        }
    }

    /// A line that a restart has found.
    pub(super) fn recall_out_of_bounds(&mut self, window: Window, line: LogLine) {
        self.out_of_bounds.entry(window.start).or_default().push(line);
        self.forget_out_of_bounds();
    }

    /// Notes what a presence says of owners that are out of bounds. Returns the lines of an earlier
    /// presence of the window that are no longer true.
    pub(super) fn note_out_of_bounds(
        &mut self,
        window: Window,
        lines: Vec<LogLine>,
    ) -> Vec<LogLine> {
        let mut before = self.out_of_bounds.remove(&window.start).unwrap_or_default();
        before.retain(|line| !lines.contains(line));
        if !lines.is_empty() {
            self.out_of_bounds.insert(window.start, lines);
            self.forget_out_of_bounds();
        }
        before
    }

    /// Windows of so long ago have no other presence.
    fn forget_out_of_bounds(&mut self) {
        while self.out_of_bounds.len() > KEPT {
            self.out_of_bounds.pop_first();
        }
    }

    /// A plan with noise releases no window that ended before the plan was accepted. So a
    /// restored ledger knows how many windows it may lack.
    pub(super) fn begin_noise(&mut self) {
        if let Some(accepted) = self.noise_from() {
            self.settled = self.settled.max(accepted);
        }
    }

    /// In a plan with noise: when it was accepted.
    fn noise_from(&self) -> Option<Timestamp> {
        self.accepted_at.filter(|_| self.plan().privacy.is_some())
    }

    pub(super) fn plan(&self) -> &Plan {
        self.announced.plan()
    }

    /// That it was accepted, for the ledger.
    pub(super) fn record(&self) -> Record {
        let at = self.accepted_at.unwrap_or(Timestamp(0));
        Record::Plan { plan: self.id(), at, held: self.held_elsewhere.iter().copied().collect() }
    }

    /// If its first windows count as settled: that they do, for the ledger.
    pub(super) fn mark_of_past(&self) -> Option<Record> {
        let (plan, settled, ended) = (self.id(), self.settled, self.ended);
        (settled > self.plan().from).then_some(Record::Mark { plan, settled, ended })
    }

    pub(super) fn id(&self) -> PlanId {
        self.announced.id()
    }

    /// The terms that its list follows from, or the plan itself.
    pub(super) fn family(&self) -> PlanId {
        self.plan().epoch.map_or_else(|| self.id(), |epoch| epoch.terms)
    }

    /// Whether the members of its windows decide what rows say.
    pub(super) fn is_verified(&self) -> bool {
        self.plan().integrity.is_verified()
    }

    /// In a verified plan: the blocks of sessions' sums that it needs.
    pub(super) fn needed_blocks(&mut self, layout: &Layout) -> Option<Arc<NeededBlocks>> {
        if !self.is_verified() {
            return None;
        }
        let release = &self.announced.plan().release;
        let needed = || Arc::new(NeededBlocks::of_layout(layout, release));
        Some(Arc::clone(self.needed.get_or_insert_with(needed)))
    }

    /// Adds the consumer's pad to a token, if the plan is sealed to one. Without the
    /// consumer's key the token then stays hidden, whatever happens to the masks.
    pub(super) fn seal(&self, fixed: &FixedMembership, words: &mut [u64]) {
        if let Some(consumer) = &self.consumer {
            consumer
                .add_to(&pad_digest(&self.id(), fixed.membership().window, &fixed.digest()), words);
        }
    }

    /// The stream at a position, if it is at this controller.
    pub(super) fn own(&self, position: u32) -> Option<&PlannedStream> {
        let stream = self.plan().streams.get(position as usize)?;
        (stream.controller == self.position).then_some(stream)
    }

    /// This controller's streams at these positions.
    pub(super) fn streams_at(&self, positions: &[u32]) -> impl Iterator<Item = StreamId> {
        positions.iter().filter_map(|position| Some(self.own(*position)?.stream))
    }

    /// Who picked this controller, according to the membership of the window's token.
    pub(super) fn pickers(&self, window: Window) -> Vec<u32> {
        self.rounds.get(&window.start).map_or_else(Vec::new, |round| round.pickers.clone())
    }

    /// This controller's streams with their positions.
    pub(super) fn own_streams(&self) -> impl Iterator<Item = (u32, &PlannedStream)> {
        let own = self.position;
        (0_u32..).zip(&self.plan().streams).filter(move |(_, stream)| stream.controller == own)
    }

    /// Checks that requests about a window may be answered now. It must be one of the
    /// plan's, it must have passed with its grace on the controller's own clock, and
    /// nothing may show that it was released before. A window that began before an
    /// untrusted restore counts as released, whichever plan it belongs to. A plan that the
    /// ledger has lost may have covered the same time with other windows.
    pub(super) fn admit(
        &self,
        window: Window,
        now: Timestamp,
        restored: Option<Timestamp>,
    ) -> Result<(), WindowRefusalError> {
        let plan = self.plan();
        if self.ended.is_some() || self.is_past(now) {
            return Err(WindowRefusalError::PlanEnded);
        }
        let whole = window == plan.window_at(window.start) && window.end <= Timestamp::LIMIT;
        let late = plan.epoch_end().is_some_and(|end| window.end > end);
        let early = window.start < plan.from;
        if !whole || early || late || !window.start.0.is_multiple_of(plan.window.0) {
            return Err(WindowRefusalError::WrongWindow);
        }
        let over = window.end.plus(plan.grace);
        if now < over {
            return Err(WindowRefusalError::NotEnded);
        }
        let round = self.rounds.get(&window.start);
        if round.is_none() && self.noise_from().is_some_and(|from| window.end <= from) {
            return Err(WindowRefusalError::BeforeAcceptance);
        }
        if round.is_some_and(|round| round.closed)
            || (round.is_none() && window.end <= self.settled)
        {
            return Err(WindowRefusalError::Settled);
        }
        let spent = round.is_some_and(|round| round.spent.is_some());
        if !spent && restored.is_some_and(|restored| window.start < restored) {
            return Err(WindowRefusalError::CountsAsReleased);
        }
        if spent { Ok(()) } else { self.admit_to_totals(window, restored) }
    }

    /// Whether it is for an epoch that is long over, so that it ends by itself. An epoch whose list came
    /// late, after an outage, has as much time from then on.
    pub(super) fn is_past(&self, now: Timestamp) -> bool {
        let end = self.plan().epoch_end();
        end.is_some_and(|end| end.max(self.accepted_at.unwrap_or(end)).plus(SETTLE) <= now)
    }

    /// Once a fixed plan has ended: the time at or before which all windows end that it may ever have
    /// released. Running totals are one release, whatever they covered in the end.
    pub(super) fn over_at(&self) -> Option<Timestamp> {
        let ended = self.ended.filter(|_| self.plan().epoch.is_none())?;
        let totals = self.plan().totals_window().map(|all| all.end);
        Some(ended.max(self.settled).max(totals.unwrap_or(ended)))
    }

    /// This controller's streams that it may release, with their positions.
    pub(super) fn released_streams(&self) -> impl Iterator<Item = (u32, &PlannedStream)> {
        self.own_streams().filter(|(position, _)| !self.held_elsewhere.contains(position))
    }

    /// The start of the first window that is not closed. Nothing that ends by then is
    /// charged or refunded any more.
    pub(super) fn first_unsettled(&self) -> Timestamp {
        let window = self.plan().window;
        // Running totals are charged as one, from their beginning.
        if self.plan().horizon().is_some() {
            return self.plan().from.floor(window);
        }
        let open = self.rounds.iter().find(|(_, round)| !round.closed).map(|(start, _)| *start);
        let mut start = self.plan().from.max(self.settled).floor(window);
        while self.rounds.get(&start).is_some_and(|round| round.closed) {
            start = start.plus(window);
        }
        open.map_or(start, |open| open.min(start))
    }

    /// Checks that no other plan holds an attribute of a stream, or has released it for an overlapping
    /// window.
    pub(super) fn check_free(&self, position: u32, window: Window) -> Result<(), ExclusionError> {
        if self.held_elsewhere.contains(&position) {
            return Err(ExclusionError::HeldElsewhere);
        }
        if self.was_released(position, window) {
            return Err(ExclusionError::Released);
        }
        Ok(())
    }

    /// Whether this stream has released an attribute of the plan to another plan, for an
    /// overlapping window.
    pub(super) fn was_released(&self, position: u32, window: Window) -> bool {
        let spans = self.released_spans.get(&position);
        spans.is_some_and(|spans| spans.iter().any(|span| span.overlaps(window)))
    }

    /// The time up to which it may have released anything.
    pub(super) fn released_until(&self) -> Timestamp {
        let spent = self.rounds.iter().filter(|(_, round)| round.membership().is_some());
        let last = spent.map(|(start, _)| start.plus(self.plan().window)).max();
        last.unwrap_or(self.settled).max(self.settled)
    }

    /// Windows to delete, oldest first, so that memory stays bounded: closed ones once
    /// there are many, and any once there are far too many.
    pub(super) fn forgettable(&self) -> Vec<Timestamp> {
        let closed = self.rounds.values().take_while(|round| round.closed).count();
        let spare = closed.saturating_sub(CLOSED_KEPT);
        let excess = self.rounds.len().saturating_sub(KEPT);
        // Delete several at a time, so that the mark is not rewritten for each window.
        let many = if spare >= CLOSED_KEPT / 2 { spare } else { 0 };
        self.rounds.keys().take(many.max(excess)).copied().collect()
    }
}
