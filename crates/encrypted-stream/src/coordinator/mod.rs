//! The service's side of a running plan: takes each window from its closing to
//! one result or one named failure (Zeph §4.3, §3.4).
//!
//! | file | step |
//! | --- | --- |
//! | [`hearing`] | whose message it is |
//! | [`round`] | what is known of a window |
//! | [`graph`] | who picked whom |
//! | [`summoning`] | presences, then M |
//! | [`collecting`] | tokens, then S, openings, the sum |
//! | [`delegating`] | where others add up |
//! | [`totals`] | running totals, window by window |
//! | [`recovery`] | back from the service's store |
//!
//! For each window there is one M and one S, ever: both are records of the
//! service's store before anybody hears of them, so that a service that comes
//! back says the same again. A result or failure comes out once, in the same
//! commit as the record that says so.
//!
//! # Privacy
//! The coordinator sees ciphertext sums, masked tokens and openings. What it
//! can compute of them is the result that it gives out. Of a plan that is sealed to a
//! consumer, the result stays under pads that only the consumer takes off.

mod collecting;
mod delegating;
mod graph;
mod hearing;
mod output;
mod recovery;
mod round;
mod summoning;
mod totals;

pub use delegating::{Answer, ForSums, SumSet};
pub use hearing::Said;
pub use output::{Opened, Outcome, Output, Sums, Timing, WindowReport};
pub use recovery::ServiceRecord;
pub use round::Present;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Timestamp, Window};

use crate::announced::Announced;
use crate::error::{Failure, NotTaken, PlanRefused, Refused};
use crate::ledger::{Change, Step};
use crate::messages::{
    Announcement, Closed, Closing, ControllerMessage, Declined, Retirement, ServiceMessage,
};
use graph::Graph;
use hearing::What;
use round::Round;
use totals::Totals;

/// Windows that are still told apart once they have ended.
const ENDED_KEPT: usize = 256;

/// The service's side of one running plan.
pub struct Coordinator {
    announced: Arc<Announced>,
    key: Arc<SigningKey>,
    timing: Timing,
    /// By roster position: whether it has accepted, and if not why.
    answers: Vec<Option<Result<(), PlanRefused>>>,
    /// When a controller was last told of the plan because it did not know it.
    announced_again: BTreeMap<u32, Timestamp>,
    /// Who picked whom.
    graph: Graph,
    rounds: BTreeMap<Timestamp, Round>,
    /// Starts of windows that have ended.
    ended: BTreeSet<Timestamp>,
    /// Windows that start before this have ended, whether they are in `ended` or not.
    settled: Timestamp,
    retired: bool,
    /// Of a plan whose results are running totals.
    totals: Totals,
    /// Whether others add up, ciphertexts and answers.
    delegates: bool,
}

impl Coordinator {
    /// For a plan whose roster has been checked; `key` is the service's.
    #[must_use]
    pub fn new(announced: Arc<Announced>, key: Arc<SigningKey>, timing: Timing) -> Self {
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
            delegates: false,
        }
    }

    /// Announces the plan to the roster; repeat it to those who do not answer.
    pub fn announce(&self) -> Step<Output> {
        let message = ServiceMessage::Announcement(self.announcement());
        Step::new(Vec::new(), vec![Output::Broadcast(message)])
    }

    /// The announcement, for one controller that is to answer it again.
    #[must_use]
    pub fn announcement(&self) -> Signed<Announcement> {
        self.announced.signed().clone()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.announced.plan()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.announced.id()
    }

    /// What a controller has answered to the plan.
    #[must_use]
    pub fn answer(&self, controller: u32) -> Option<&Result<(), PlanRefused>> {
        self.answers.get(controller as usize).and_then(Option::as_ref)
    }

    /// Windows under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.rounds.len()
    }

    /// When [`Coordinator::timeout`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.rounds.values().map(Self::due).min()
    }

    /// When a window asks again or goes on: one that waits for its turn does not.
    fn due(round: &Round) -> Timestamp {
        if round.waits_for_turn { round.retry } else { round.due() }
    }

    /// Takes a controller's message. `from` is its position in the roster.
    ///
    /// # Errors
    /// [`NotTaken`]: drop it and count it. Nothing else is affected.
    pub fn receive(
        &mut self,
        now: Timestamp,
        from: u32,
        message: &ControllerMessage,
        sums: &impl Sums,
    ) -> Result<Step<Output>, NotTaken> {
        let said = self.hear(from, message)?;
        self.take(now, &said, sums)
    }

    /// Goes on with what was heard.
    ///
    /// # Errors
    /// [`NotTaken`]: drop it and count it. Nothing else is affected.
    pub fn take(
        &mut self,
        now: Timestamp,
        said: &Said,
        sums: &impl Sums,
    ) -> Result<Step<Output>, NotTaken> {
        if said.plan != self.id() {
            return Err(NotTaken::OtherPlan);
        }
        match &said.what {
            What::Answer(answer) => Ok(self.answered(said.from, answer.clone())),
            What::Picks(picks) => self.picked(said.from, picks),
            What::Presence(presence) => self.presence(now, presence, sums),
            What::Token(token) => self.token(now, token, sums),
            What::Opening(opening) => self.opening(now, opening, sums),
            What::Declined(declined) => self.declined(now, said.from, declined, sums),
        }
    }

    /// Goes on where a deadline has passed, and asks again who has not answered.
    pub fn timeout(&mut self, now: Timestamp, sums: &impl Sums) -> Step<Output> {
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

    /// Ends the plan: windows under way fail by that name, and the controllers
    /// are told, which frees the plan's attributes.
    pub fn retire(&mut self) -> Step<Output> {
        let mut step = Step::default();
        for start in self.rounds.keys().copied().collect::<Vec<_>>() {
            step.merge(self.fail(start, Failure::Retired));
        }
        self.retired = true;
        let message = Signed::new(&Retirement { plan: self.id() }, &self.key);
        let messages = vec![Output::Broadcast(ServiceMessage::Retirement(message))];
        step.merge(Step::new(vec![self.put(&ServiceRecord::Retired)], messages));
        step
    }

    fn answered(&mut self, from: u32, answer: Result<(), PlanRefused>) -> Step<Output> {
        if let Some(slot) = self.answers.get_mut(from as usize) {
            *slot = Some(answer.clone());
        }
        Step::new(Vec::new(), vec![Output::Answered { controller: from, answer }])
    }

    /// Whom a controller picks: durable, so that M's tree can be made again.
    fn picked(&mut self, from: u32, picks: &[u32]) -> Result<Step<Output>, NotTaken> {
        if !self.graph.take(from, picks.to_vec()) {
            return Err(NotTaken::Malformed);
        }
        let record = ServiceRecord::Picks { controller: from, picks: picks.to_vec() };
        Ok(Step::new(vec![self.put(&record)], Vec::new()))
    }

    /// Tells one controller of the plan again, but not all the time.
    fn announce_again(&mut self, now: Timestamp, to: u32) -> Step<Output> {
        let again = self.announced_again.get(&to).map(|at| at.plus(self.timing.retry));
        if again.is_some_and(|again| again > now) {
            return Step::default();
        }
        self.announced_again.insert(to, now);
        let message = ServiceMessage::Announcement(self.announced.signed().clone());
        Step::new(Vec::new(), vec![Output::Send { to, message }])
    }

    fn declined(
        &mut self,
        now: Timestamp,
        from: u32,
        declined: &Declined,
        sums: &impl Sums,
    ) -> Result<Step<Output>, NotTaken> {
        if self.plan().roster.get(from as usize) != Some(&declined.controller) {
            return Err(NotTaken::Malformed);
        }
        let round = self.round_mut(declined.window)?;
        if !round.asks(from, &declined.about) {
            return Err(NotTaken::Mismatched);
        }
        if !declined.reason.may_pass() {
            round.declined.insert(from, declined.reason);
        }
        let mut step = Step::default();
        if declined.reason == Refused::UnknownPlan {
            // It was restored from before the plan: it may take part again.
            step = self.announce_again(now, from);
        }
        step.merge(self.advance(now, declined.window.start, sums));
        Ok(step)
    }

    fn round_mut(&mut self, window: Window) -> Result<&mut Round, NotTaken> {
        let round = self.rounds.get_mut(&window.start);
        round.filter(|round| round.window == window).ok_or(NotTaken::UnknownWindow)
    }

    /// Moves a window on as far as what has come allows, and those whose turn it
    /// then is.
    fn advance(&mut self, now: Timestamp, start: Timestamp, sums: &impl Sums) -> Step<Output> {
        let mut step = self.advance_one(now, start, sums);
        let waits = |(_, round): &(&Timestamp, &Round)| round.waits_for_turn;
        let waiting = self.rounds.iter().filter(waits).map(|(start, _)| *start);
        for start in waiting.collect::<Vec<_>>() {
            step.merge(self.advance_one(now, start, sums));
        }
        step
    }

    fn advance_one(&mut self, now: Timestamp, start: Timestamp, sums: &impl Sums) -> Step<Output> {
        let mut step = self.advance_to_membership(now, start);
        step.merge(self.advance_to_opening_set(now, start, sums));
        step.merge(self.conclude(now, start, sums));
        step
    }

    /// Ends a window without a result.
    fn fail(&mut self, start: Timestamp, failure: Failure) -> Step<Output> {
        self.end(start, Err(failure))
    }

    /// Ends a window: its outcome comes out once, with the record that says so.
    fn end(&mut self, start: Timestamp, mut result: Result<Opened, Failure>) -> Step<Output> {
        let Some(round) = self.rounds.remove(&start) else { return Step::default() };
        let window = round.window;
        let totals = self.cumulate(&round, &mut result);
        let outcome = match &result {
            Ok(opened) => Closed::Opened { population: opened.population },
            Err(failure) => Closed::Failed(*failure),
        };
        let closing = Signed::new(&Closing { plan: self.id(), window, outcome }, &self.key);
        let (excluded, refused) = (round.excluded(), round.refused());
        let untold = self.delegates.then_some(round.untold);
        let mut changes = vec![self.put(&ServiceRecord::Ended { start })];
        changes.extend(totals);
        changes.extend(self.removals(start));
        self.ended.insert(start);
        changes.extend(self.forget());
        let mut messages = vec![
            Output::Outcome(Outcome { window, result, excluded, untold, refused }),
            Output::Broadcast(ServiceMessage::Closing(closing)),
        ];
        messages.extend(self.without_set(&round));
        Step::new(changes, messages)
    }

    /// Whether a window has had its one outcome, or is beyond the plan's running totals
    /// and has none.
    #[must_use]
    pub fn has_ended(&self, start: Timestamp) -> bool {
        start < self.settled || self.ended.contains(&start) || self.is_beyond(start)
    }

    /// Moves the low-water mark over old windows, but never past one that is
    /// still under way: a restart would take that for ended.
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
            changes.push(Change { key: self.key_of(&ServiceRecord::Ended { start }), value: None });
        }
        changes.push(self.put(&ServiceRecord::Mark { settled: self.settled }));
        changes
    }
}
