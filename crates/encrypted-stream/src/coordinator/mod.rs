//! The service's side of a running plan: takes each window from its closing to one result
//! or one specific failure (Zeph §4.3, §3.4).
//!
//! | file | contents |
//! | --- | --- |
//! | [`inbound`] | checks of incoming messages |
//! | [`round`] | the state of a window |
//! | [`graph`] | who picked whom |
//! | [`presences`] | presences, then M |
//! | [`openings`] | tokens, then S, openings and the sum |
//! | [`mask_keys`] | members' keys for pads, in verified plans |
//! | [`receipts`] | receipts of verified windows |
//! | [`bounded_windows`] | bounded windows: commitments, openings and rows are checked |
//! | [`proofs`] | the same proofs, checked by another thread |
//! | [`blame`] | who made a bounded row fail |
//! | [`adder`] | sums that an adder computes |
//! | [`withholders`] | controllers whose openings did not come |
//! | [`day_sets`], [`known_sets`] | which sets of owners a day has had |
//! | [`totals`] | running totals, window by window |
//! | [`recovery`] | restart from the service's store |
//!
//! Each window has at most one M and one S, ever. Both are records in the service's store
//! before anybody receives them, so a restarted service repeats them unchanged. A result or
//! failure comes out once, in the same commit as its record.
//!
//! # Privacy
//! The coordinator sees ciphertext sums, masked tokens and openings. All it can compute
//! from them is the result that it outputs. If a plan is sealed to a consumer, the result
//! stays under pads that only the consumer can remove.

mod adder;
mod blame;
mod bounded_windows;
mod day_sets;
mod graph;
mod inbound;
mod known_sets;
mod mask_keys;
mod openings;
mod output;
mod presences;
mod proofs;
mod receipts;
mod recovery;
mod round;
mod totals;
mod withholders;

pub use adder::{AdderMessage, Answer, SumSet};
pub use blame::UnstatedEdgesError;
pub use bounded_windows::MemberFaultError;
pub use day_sets::DaySets;
pub use inbound::VerifiedMessage;
pub use output::{Outcome, Output, Sums, Timing, WindowReport, WindowResult};
pub use proofs::{CheckedProofs, ProofCheck};
pub use recovery::ServiceRecord;
pub use round::MemberReport;
pub use withholders::Withholders;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};

use crate::announced_plan::AnnouncedPlan;
use crate::error::{MessageError, PlanRefusalError, ReleaseError, WindowRefusalError};
use crate::ledger::{Change, Step};
use crate::messages::{Closing, Retirement, ServiceMessage, WindowOutcome, WindowRefusal};
use bounded_windows::BoundedSide;
use graph::Graph;
use inbound::Content;
use mask_keys::MaskKeys;
use round::Round;
use totals::Totals;

/// Ended windows that are kept separately.
const ENDED_KEPT: usize = 256;

/// The service's side of one running plan.
pub struct Coordinator {
    announced: Arc<AnnouncedPlan>,
    key: Arc<SigningKey>,
    timing: Timing,
    /// By roster position: whether the controller accepted the plan, or why not.
    answers: Vec<Option<Result<(), PlanRefusalError>>>,
    /// When the plan was last announced to a controller that did not know it.
    announced_again: BTreeMap<u32, Timestamp>,
    /// Who picked whom.
    graph: Graph,
    rounds: BTreeMap<Timestamp, Round>,
    /// Starts of windows that have ended.
    ended: BTreeSet<Timestamp>,
    /// Windows that start before this time have ended, whether they are in `ended` or not.
    settled: Timestamp,
    retired: bool,
    /// For a plan whose results are running totals.
    totals: Totals,
    /// In a verified plan: members' keys for pads.
    mask_keys: MaskKeys,
    bounded: BoundedSide,
    /// The time of day, if deadlines go by another clock.
    clock: Option<Timestamp>,
    /// Who has ruined windows of this plan.
    withholders: Withholders,
    /// Which sets of owners the days have had.
    day_sets: DaySets,
    /// Whether an adder sums ciphertexts and answers.
    delegates: bool,
}

impl Coordinator {
    /// For a plan whose roster has been checked. `key` is the service's.
    #[must_use]
    pub fn new(announced: Arc<AnnouncedPlan>, key: Arc<SigningKey>, timing: Timing) -> Self {
        let answers = vec![None; announced.plan().roster.len()];
        let graph = Graph::of(announced.plan());
        Self {
            announced,
            key,
            timing,
            answers,
            announced_again: BTreeMap::new(),
            graph,
            rounds: BTreeMap::new(),
            ended: BTreeSet::new(),
            settled: Timestamp(0),
            retired: false,
            totals: Totals::default(),
            mask_keys: MaskKeys::default(),
            bounded: BoundedSide::default(),
            clock: None,
            withholders: Withholders::default(),
            day_sets: DaySets::default(),
            delegates: false,
        }
    }

    /// States the time of day, by which the keys of a verified plan's members are judged, for a service
    /// whose deadlines go by another clock. Without it, that of the deadlines counts.
    pub fn note_clock(&mut self, clock: Timestamp) {
        self.clock = Some(clock);
    }

    /// Announces the plan to the roster. Repeat it to controllers that do not answer.
    pub fn announce(&self) -> Step<Vec<Output>> {
        Step::new(Vec::new(), vec![Output::Broadcast(self.announcement())])
    }

    /// The announcement or the list, for a controller that must answer it again.
    #[must_use]
    pub fn announcement(&self) -> ServiceMessage {
        self.announced.message()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.announced.plan()
    }

    /// The plan's id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.announced.id()
    }

    /// A controller's answer to the plan.
    #[must_use]
    pub fn answer(&self, controller: u32) -> Option<&Result<(), PlanRefusalError>> {
        self.answers.get(controller as usize).and_then(Option::as_ref)
    }

    /// Number of windows in progress.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.rounds.len()
    }

    /// When [`Coordinator::poll`] is next needed.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.rounds.values().map(Self::due).min()
    }

    /// When a window asks again or moves on; while it waits for its turn it only asks
    /// again.
    fn due(round: &Round) -> Timestamp {
        if round.waits_for_turn { round.retry } else { round.due() }
    }

    /// Handles a verified message.
    ///
    /// # Errors
    /// [`MessageError`]: drop the message and count it. Nothing else is affected.
    pub fn handle(
        &mut self,
        message: &VerifiedMessage,
        now: Timestamp,
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        if message.plan != self.id() {
            return Err(MessageError::OtherPlan);
        }
        match &message.content {
            Content::Answer(answer) => Ok(self.take_answer(message.from, answer.clone())),
            Content::Picks(picks) => self.take_picks(message.from, picks),
            Content::Presence(presence, signed) => {
                self.presence(now, (presence, signed.as_ref()), sums)
            }
            Content::Token(token, signed) => self.token(now, (token, signed.as_ref()), sums),
            Content::Opening(opening, signed) => {
                self.opening(now, (opening, signed.as_ref()), sums)
            }
            Content::Contribution(answer) => self.contribution(now, answer, sums),
            Content::BoundedOpening(answer) => self.bounded_opening(now, answer, sums),
            Content::Edges(stated, signed) => self.edges(now, (stated, signed), sums),
            Content::WindowRefusal(declined) => {
                self.take_refusal(now, message.from, declined, sums)
            }
        }
    }

    /// Moves windows on whose deadline has passed, and asks controllers again that have not
    /// answered.
    pub fn poll(&mut self, now: Timestamp, sums: &impl Sums) -> Step<Vec<Output>> {
        let due: Vec<Timestamp> = self
            .rounds
            .iter()
            .filter(|(_, round)| Self::due(round) <= now)
            .map(|(at, _)| *at)
            .collect();
        let mut step = Step::default();
        for start in due {
            step.merge(self.advance(now, start, sums));
            step.merge(self.ask_again(now, start));
        }
        step
    }

    /// Ends the plan. Windows in progress fail with [`ReleaseError::Retired`], and the
    /// controllers are informed, which frees the plan's attributes.
    pub fn retire(&mut self) -> Step<Vec<Output>> {
        let mut step = Step::default();
        for start in self.rounds.keys().copied().collect::<Vec<_>>() {
            step.merge(self.fail(start, ReleaseError::Retired));
        }
        self.retired = true;
        let message = Signed::new(&Retirement { plan: self.id() }, &self.key);
        let messages = vec![Output::Broadcast(ServiceMessage::Retirement(message))];
        step.merge(Step::new(vec![self.put(&ServiceRecord::Retired)], messages));
        step
    }

    /// Ends the plan of an epoch whose windows are over. The controllers are informed, and
    /// nothing of it stays in the store: that the epoch is over is a record of its own.
    pub fn dismiss(&mut self) -> Step<Vec<Output>> {
        let step = self.retire();
        let records = self.ended.iter().map(|start| ServiceRecord::Ended { start: *start });
        let mark = ServiceRecord::Mark { settled: self.settled };
        let records: Vec<ServiceRecord> = records.chain([ServiceRecord::Retired, mark]).collect();
        let gone = records.iter().map(|record| Change::remove(self.key_of(record)));
        step.then(|messages| Step::new(gone.collect(), messages))
    }

    /// Controllers that have kept a window waiting for their openings for long.
    #[must_use]
    pub fn owing_controllers(&self, now: Timestamp) -> Vec<ControllerId> {
        self.owing(now).into_iter().filter_map(|at| self.controller_at(at)).collect()
    }

    /// The controller at a position of the roster.
    fn controller_at(&self, position: u32) -> Option<ControllerId> {
        self.plan().roster.get(position as usize).copied()
    }

    /// Who has ruined windows of this plan.
    #[must_use]
    pub fn withholders(&self) -> &Withholders {
        &self.withholders
    }

    fn take_answer(
        &mut self,
        from: u32,
        answer: Result<(), PlanRefusalError>,
    ) -> Step<Vec<Output>> {
        if let Some(slot) = self.answers.get_mut(from as usize) {
            *slot = Some(answer.clone());
        }
        Step::new(Vec::new(), vec![Output::Answered { controller: from, answer }])
    }

    /// Stores a controller's picks, so that M's tree can be rebuilt after a restart.
    fn take_picks(&mut self, from: u32, picks: &[u32]) -> Result<Step<Vec<Output>>, MessageError> {
        if !self.graph.take(from, picks.to_vec()) {
            return Err(MessageError::Malformed);
        }
        let record = ServiceRecord::Picks { controller: from, picks: picks.to_vec() };
        Ok(Step::new(vec![self.put(&record)], Vec::new()))
    }

    /// Announces the plan to one controller again, at limited intervals.
    fn announce_again(&mut self, now: Timestamp, to: u32) -> Step<Vec<Output>> {
        let again = self.announced_again.get(&to).map(|at| at.plus(self.timing.retry));
        if again.is_some_and(|again| again > now) {
            return Step::default();
        }
        self.announced_again.insert(to, now);
        let message = self.announced.message();
        Step::new(Vec::new(), vec![Output::Send { to, message }])
    }

    fn take_refusal(
        &mut self,
        now: Timestamp,
        from: u32,
        declined: &WindowRefusal,
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        if self.controller_at(from) != Some(declined.controller) {
            return Err(MessageError::Malformed);
        }
        let round = self.round_mut(declined.window)?;
        if !round.asks(from, &declined.about) {
            return Err(MessageError::Mismatched);
        }
        self.note_bound(from, declined.window, declined.reason);
        let round = self.round_mut(declined.window)?;
        if !declined.reason.may_pass() {
            round.refusals.insert(from, declined.reason);
        }
        let mut step = Step::default();
        if declined.reason == WindowRefusalError::UnknownPlan {
            // It was restored from a ledger older than the plan, and may take part again.
            step = self.announce_again(now, from);
        }
        step.merge(self.advance(now, declined.window.start, sums));
        Ok(step)
    }

    fn round_mut(&mut self, window: Window) -> Result<&mut Round, MessageError> {
        let round = self.rounds.get_mut(&window.start);
        round.filter(|round| round.window == window).ok_or(MessageError::UnknownWindow)
    }

    /// Moves a window on as far as the received messages allow, and then the windows whose
    /// turn it is.
    fn advance(&mut self, now: Timestamp, start: Timestamp, sums: &impl Sums) -> Step<Vec<Output>> {
        let mut step = self.advance_one(now, start, sums);
        let waits = |(_, round): &(&Timestamp, &Round)| round.waits_for_turn;
        let waiting = self.rounds.iter().filter(waits).map(|(start, _)| *start);
        for start in waiting.collect::<Vec<_>>() {
            step.merge(self.advance_one(now, start, sums));
        }
        step
    }

    fn advance_one(
        &mut self,
        now: Timestamp,
        start: Timestamp,
        sums: &impl Sums,
    ) -> Step<Vec<Output>> {
        let mut step = self.advance_to_membership(now, start);
        step.merge(self.advance_to_opening_set(now, start, sums));
        step.merge(self.conclude(now, start, sums));
        step
    }

    /// Ends a window without a result.
    fn fail(&mut self, start: Timestamp, failure: ReleaseError) -> Step<Vec<Output>> {
        self.end(start, Err(failure))
    }

    /// Ends a window: its outcome comes out once, with its record.
    fn end(
        &mut self,
        start: Timestamp,
        mut result: Result<WindowResult, ReleaseError>,
    ) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.remove(&start) else { return Step::default() };
        let window = round.window;
        let totals = self.cumulate(&round, &mut result);
        let without_set = result.is_err().then(|| self.without_set(window)).flatten();
        let outcome = match &result {
            Ok(opened) => WindowOutcome::Opened { population: opened.population },
            Err(failure) => WindowOutcome::Failed(failure.without_counts()),
        };
        let closing = Signed::new(&Closing { plan: self.id(), window, outcome }, &self.key);
        let (excluded, refused) = (round.exclusion_counts(), round.refusal_counts());
        let unreported = self.delegates.then_some(round.unreported);
        let unopened = self.without_answer(&round, &result);
        let (faults, silent) = self.named_and_silent(&round);
        let opening_set = round.opening_set();
        let mut changes = vec![self.put(&ServiceRecord::Ended { start })];
        changes.extend(totals);
        changes.extend(self.removals(start));
        self.ended.insert(start);
        self.note_opened(&round);
        changes.extend(self.forget());
        let outcome = Outcome {
            window,
            result,
            excluded,
            unreported,
            refused,
            unopened,
            opening_set,
            faults,
            silent,
        };
        self.withholders.note(self.announced.plan(), &outcome);
        let mut messages = vec![
            Output::Outcome(Box::new(outcome)),
            Output::Broadcast(ServiceMessage::Closing(closing)),
        ];
        messages.extend(without_set);
        Step::new(changes, messages)
    }

    /// Members whose answers a window lacked, and those of an earlier one that were found out since.
    fn without_answer(
        &self,
        round: &Round,
        result: &Result<WindowResult, ReleaseError>,
    ) -> Vec<ControllerId> {
        let mut unopened = self.at_fault(round, result);
        unopened.extend(self.bounded.late.keys());
        unopened.into_iter().filter_map(|at| self.controller_at(at)).collect()
    }

    /// Whether a window has had its one outcome, or lies beyond the plan's running totals
    /// and has none.
    #[must_use]
    pub fn has_ended(&self, start: Timestamp) -> bool {
        start < self.settled || self.ended.contains(&start) || self.is_beyond(start)
    }

    /// Moves the low-water mark over old windows, but never past one that is in progress. A
    /// restart would take that one for ended.
    fn forget(&mut self) -> Vec<Change> {
        if self.ended.len() < 2 * ENDED_KEPT {
            return Vec::new();
        }
        let under_way = self.rounds.keys().next().copied().unwrap_or(Timestamp::LIMIT);
        let before = self.ended.range(..under_way);
        let oldest: Vec<Timestamp> = before.take(ENDED_KEPT).copied().collect();
        if oldest.is_empty() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for start in oldest {
            self.ended.remove(&start);
            self.settled = self.settled.max(start.plus(self.plan().window));
            changes.push(Change::remove(self.key_of(&ServiceRecord::Ended { start })));
        }
        changes.push(self.put(&ServiceRecord::Mark { settled: self.settled }));
        changes
    }
}
