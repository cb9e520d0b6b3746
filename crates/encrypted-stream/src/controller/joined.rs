//! A plan that a controller takes part in, and its windows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::plan::{Plan, PlannedStream};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::time::{Timestamp, Window};

use super::budgets::Charges;
use super::held::Stretch;
use super::totals::Totals;
use crate::announced::Announced;
use crate::consumer::{ConsumerPad, bound};
use crate::error::Refused;
use crate::ledger::Spent;
use crate::mask::Masker;
use crate::membership::Fixed;
use crate::messages::{Opening, Presence};

/// Closed windows of a plan that are still told apart.
const CLOSED_KEPT: usize = 64;
/// Windows of a plan that are kept at most, closed or not.
const KEPT: usize = 1024;

/// A plan that was accepted.
pub(super) struct Joined {
    pub(super) announced: Arc<Announced>,
    /// Own position in the roster.
    pub(super) position: u32,
    /// When owners read in their log that it was accepted.
    pub(super) accepted: Option<Timestamp>,
    /// None with a single controller, whose token opens by itself.
    pub(super) masks: Option<Masker>,
    /// Of a plan that is sealed to a consumer: what hides its tokens from all others.
    pub(super) consumer: Option<ConsumerPad>,
    /// Windows that end at or before this and are not in `rounds` are settled.
    pub(super) settled: Timestamp,
    /// Up to when it released, once it has ended.
    pub(super) ended: Option<Timestamp>,
    pub(super) rounds: BTreeMap<Timestamp, Round>,
    /// Whether an own stream (by position) allows the plan under a version of
    /// its annotation, and what a window is charged then.
    pub(super) verdicts: HashMap<(u32, u32), Option<Charges>>,
    /// The same by policy: many owners choose alike, and noise takes time to size.
    pub(super) judged: Vec<(ResolvedPolicy, Option<Charges>)>,
    /// −log2 of what the samplers of all honest shares leave out.
    pub(super) slack_bits: u32,
    /// Spans that own streams (by position) have released to earlier plans.
    pub(super) released: HashMap<u32, Vec<Window>>,
    /// Of a plan whose results are running totals.
    pub(super) totals: Option<Totals>,
    /// Of such a plan: owners whose log says what it costs.
    pub(super) told: BTreeSet<OwnerId>,
}

/// One window, as far as it has come.
#[derive(Default)]
pub(super) struct Round {
    pub(super) summoned: Option<Summoned>,
    pub(super) spent: Option<(Spent, Option<Arc<Fixed>>)>,
    pub(super) opened: Option<(Digest, Signed<Opening>)>,
    /// Who picked this controller, in the membership of that token.
    pub(super) pickers: Vec<u32>,
    /// The service has closed it: nothing is answered any more.
    pub(super) closed: bool,
    /// H(M) of a token that was spent on it before it was closed; what the
    /// ledger holds of that goes when the window is far behind.
    pub(super) left: Option<Digest>,
}

impl Round {
    /// Forgets all but that it is over.
    pub(super) fn close(&mut self) -> Option<Spent> {
        let spent = self.spent.take().map(|(spent, _)| spent);
        self.left = self.left.or(spent.as_ref().map(|spent| spent.membership));
        (self.summoned, self.opened, self.closed) = (None, None, true);
        self.pickers = Vec::new();
        spent
    }

    /// H(M) of the token that was spent on it, if any.
    pub(super) fn membership(&self) -> Option<Digest> {
        self.left.or(self.spent.as_ref().map(|(spent, _)| spent.membership))
    }
}

/// An answered summons.
pub(super) struct Summoned {
    pub(super) summons: Digest,
    pub(super) presence: Presence,
    /// Digest of the signed presence: the leaf that M must hold.
    pub(super) digest: Digest,
    pub(super) signed: Signed<Presence>,
    /// What the token will cover, by position in the plan.
    pub(super) stretches: Vec<(u32, Vec<Stretch>)>,
    /// Of a plan with noise: what each stream with events was promised.
    pub(super) charges: Vec<(u32, Charges)>,
}

impl Joined {
    pub(super) fn new(announced: Arc<Announced>, position: u32, masks: Option<Masker>) -> Self {
        Self {
            announced,
            position,
            accepted: None,
            masks,
            consumer: None,
            settled: Timestamp(0),
            ended: None,
            rounds: BTreeMap::new(),
            verdicts: HashMap::new(),
            judged: Vec::new(),
            slack_bits: 0,
            released: HashMap::new(),
            totals: None,
            told: BTreeSet::new(),
        }
    }

    /// A plan with noise releases nothing of windows that ended before it was
    /// accepted: so a ledger that is restored knows how many windows it may lack.
    pub(super) fn begin_noise(&mut self) {
        if let (Some(accepted), true) = (self.accepted, self.plan().privacy.is_some()) {
            self.settled = self.settled.max(accepted);
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        self.announced.plan()
    }

    pub(super) fn id(&self) -> PlanId {
        self.announced.id()
    }

    /// Puts the consumer's pad on a token, if the plan is sealed to one: whatever is
    /// done to the masks then, without the consumer's key the token stays hidden.
    pub(super) fn seal(&self, fixed: &Fixed, words: &mut [u64]) {
        if let Some(consumer) = &self.consumer {
            consumer.put_on(&bound(&self.id(), fixed.membership().window, &fixed.digest()), words);
        }
    }

    /// The stream at a position, if it is at this controller.
    pub(super) fn own(&self, position: u32) -> Option<&PlannedStream> {
        let stream = self.plan().streams.get(position as usize)?;
        (stream.controller == self.position).then_some(stream)
    }

    /// Who picked this controller, as the membership of the window's token says.
    pub(super) fn pickers(&self, window: Window) -> Vec<u32> {
        self.rounds.get(&window.start).map_or_else(Vec::new, |round| round.pickers.clone())
    }

    /// Own streams with their positions.
    pub(super) fn own_streams(&self) -> impl Iterator<Item = (u32, &PlannedStream)> {
        let own = self.position;
        (0_u32..).zip(&self.plan().streams).filter(move |(_, stream)| stream.controller == own)
    }

    /// What may be asked about a window now: it is one of the plan's, it has
    /// passed with its grace on the controller's own clock, and nothing says
    /// that it was released before. What began before an untrusted restore counts
    /// as released, whichever plan asks: one that the ledger has lost may have
    /// run over the same time with other windows.
    pub(super) fn admit(
        &self,
        window: Window,
        now: Timestamp,
        restored: Option<Timestamp>,
    ) -> Result<(), Refused> {
        let plan = self.plan();
        if self.ended.is_some() {
            return Err(Refused::PlanEnded);
        }
        let whole = window == plan.window_at(window.start) && window.end <= Timestamp::LIMIT;
        if !whole || !window.start.0.is_multiple_of(plan.window.0) || window.start < plan.from {
            return Err(Refused::WrongWindow);
        }
        let over = window.end.plus(plan.grace);
        if now < over {
            return Err(Refused::NotEnded);
        }
        let round = self.rounds.get(&window.start);
        if round.is_some_and(|round| round.closed)
            || (round.is_none() && window.end <= self.settled)
        {
            return Err(Refused::Settled);
        }
        let spent = round.is_some_and(|round| round.spent.is_some());
        if !spent && restored.is_some_and(|restored| window.start < restored) {
            return Err(Refused::CountsAsReleased);
        }
        if spent { Ok(()) } else { self.admit_to_totals(window, restored) }
    }

    /// The start of the first window that is not closed: nothing that ends by then
    /// is charged or given back any more.
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

    /// Whether this own stream has released an attribute of the plan for an
    /// overlapping window to another plan.
    pub(super) fn was_released(&self, position: u32, window: Window) -> bool {
        let spans = self.released.get(&position);
        spans.is_some_and(|spans| spans.iter().any(|span| span.overlaps(window)))
    }

    /// Up to when it may have released anything.
    pub(super) fn released_until(&self) -> Timestamp {
        let spent = self.rounds.iter().filter(|(_, round)| round.membership().is_some());
        let last = spent.map(|(start, _)| start.plus(self.plan().window)).max();
        last.unwrap_or(self.settled).max(self.settled)
    }

    /// Windows to forget, oldest first, so that memory stays bounded: those
    /// that are closed once there are many, and any once there are far too many.
    pub(super) fn forgettable(&self) -> Vec<Timestamp> {
        let closed = self.rounds.values().take_while(|round| round.closed).count();
        let spare = closed.saturating_sub(CLOSED_KEPT);
        let excess = self.rounds.len().saturating_sub(KEPT);
        // Several at a time, so that the mark is not rewritten for each window.
        let many = if spare >= CLOSED_KEPT / 2 { spare } else { 0 };
        self.rounds.keys().take(many.max(excess)).copied().collect()
    }
}
