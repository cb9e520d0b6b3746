//! Plans by epochs: who is called when a window is over, and the coordinator that follows from
//! each list.
//!
//! A window is closed only once the epoch before it has its list, or none. So a controller gets
//! the list of an epoch before it is called for the next.

use super::{Query, Service, ServiceError, ServiceOutput};
use crate::controller_host::FromController;
use crate::query_planner::preference;
use alpheus_crypto::ledger::Step;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::ControllerChange;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::coordinator::{DaySets, Outcome, Output, WindowReport, Withholders};
use alpheus_encrypted_stream::epoch::{Caller, EpochOutput, EpochProgress, VerifiedAttendance};
use alpheus_encrypted_stream::error::{ExclusionError, MessageError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_encrypted_stream::transformer::{ListedWindow, PlanMismatchError};
use alpheus_policy::catalog::CatalogStream;
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::query::MaskChoice;
use alpheus_time::{Span, Timestamp, Window};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How long an epoch waits for attendances, unless its window is short.
const PRESENCES: Span = Span::seconds(10);

/// The plans by epochs, and who may take part in them.
#[derive(Default)]
pub(super) struct Epochs {
    callers: BTreeMap<PlanId, Caller>,
    placed: HashMap<StreamId, Placement>,
    certificates: HashMap<ControllerId, Signed<Certificate>>,
    /// Who has ruined windows, by terms: each epoch has another coordinator.
    withholders: BTreeMap<PlanId, Withholders>,
    /// Which sets of owners the days have had, by the plan of the call.
    sets: BTreeMap<PlanId, DaySets>,
}

/// Where an owner has placed a stream.
struct Placement {
    owner: OwnerId,
    controller: ControllerId,
    moved: Option<ControllerChange>,
}

impl Placement {
    /// Who guards it in a window. One across the border of a move is nobody's, and nobody attends it.
    fn at(&self, window: Window) -> ControllerId {
        let before = self.moved.filter(|moved| window.start < moved.at);
        before.map_or(self.controller, |moved| moved.from)
    }
}

/// The epoch of a plan that follows from a list.
pub(super) struct EpochWindow {
    terms: PlanId,
    window: Window,
    /// Streams that were online and are not listed.
    left_out: BTreeMap<ExclusionError, u32>,
}

/// What a controller answers to a call.
enum Answer {
    Attends(VerifiedAttendance),
    Declines(WindowRefusalError),
}

impl Epochs {
    pub(super) fn has(&self, plan: &PlanId) -> bool {
        self.callers.contains_key(plan)
    }

    /// Which sets of owners the days of an epoch's query have had.
    pub(super) fn sets_of(&mut self, epoch: &EpochWindow) -> &DaySets {
        self.sets.entry(epoch.terms).or_default()
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = PlanId> {
        self.callers.keys().copied()
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.callers.values().filter_map(Caller::deadline).min()
    }

    /// How many epochs wait for attendances.
    pub(super) fn calling(&self) -> usize {
        self.callers.values().filter(|caller| caller.is_calling()).count()
    }

    /// Those who were in the last list of each plan.
    pub(super) fn last_members(&self) -> impl Iterator<Item = ControllerId> {
        self.callers.values().flat_map(Caller::last_members).copied()
    }

    /// The certificates of the controllers of these streams in a window, without those that are left out.
    fn called(
        &self,
        window: Window,
        online: &[StreamId],
        left_out: &BTreeSet<ControllerId>,
    ) -> Vec<Signed<Certificate>> {
        let placed = online.iter().filter_map(|stream| self.placed.get(stream));
        let controllers: BTreeSet<ControllerId> = placed.map(|place| place.at(window)).collect();
        let called = controllers.into_iter().filter(|id| !left_out.contains(id));
        called.filter_map(|id| self.certificates.get(&id).cloned()).collect()
    }

    fn verify(
        &self,
        (from, plan, message): &FromController,
    ) -> Result<(PlanId, ControllerId, Answer), MessageError> {
        let caller = self.callers.get(plan).ok_or(MessageError::OtherPlan)?;
        let answer = match message {
            ControllerMessage::Attendance(signed) => {
                let window = caller.window().ok_or(MessageError::Late)?;
                let at = |place: &Placement| (place.owner, place.at(window));
                let guards = |stream: &StreamId| self.placed.get(stream).map(at);
                Answer::Attends(caller.verify(*from, signed, guards)?)
            }
            ControllerMessage::WindowRefusal(signed) => {
                Answer::Declines(caller.verify_refusal(*from, signed)?)
            }
            _ => return Err(MessageError::OtherPlan),
        };
        Ok((*plan, *from, answer))
    }
}

impl EpochWindow {
    fn of(terms: PlanId, announced: &AnnouncedPlan) -> EpochWindow {
        let plan = announced.plan();
        EpochWindow { terms, window: plan.window_at(plan.from), left_out: BTreeMap::new() }
    }
}

impl Query {
    /// An outcome with the streams that are not listed.
    pub(super) fn whole(&self, outcome: &Outcome) -> Outcome {
        let mut outcome = outcome.clone();
        for (reason, streams) in self.epoch.iter().flat_map(|epoch| &epoch.left_out) {
            *outcome.excluded.entry(*reason).or_default() += streams;
        }
        outcome
    }
}

/// The streams of a window that are not listed, by reason.
fn left_out(listed: &ListedWindow) -> BTreeMap<ExclusionError, u32> {
    let mut counts = BTreeMap::new();
    if listed.unlisted > 0 {
        counts.insert(ExclusionError::ControllerAbsent, listed.unlisted);
    }
    for reason in &listed.incomplete {
        *counts.entry(ExclusionError::from(*reason)).or_default() += 1;
    }
    counts
}

impl Service {
    /// Starts or resumes a plan by epochs, which these streams may take part in.
    ///
    /// # Errors
    /// [`ServiceError`] if its records cannot be read.
    pub fn start_terms<'a>(
        &mut self,
        now: Timestamp,
        (terms, masks): (&Plan, Option<MaskChoice>),
        deployment: &Deployment,
        streams: impl Iterator<Item = &'a CatalogStream>,
    ) -> Result<(), ServiceError> {
        let (id, now) = (terms.id(), self.counted(now));
        let damaged = || ServiceError::Damaged { what: "lists" };
        let transformer = self.plane.epochs_mut().ok_or_else(damaged)?;
        match transformer.register_terms(terms) {
            // A restored transformer runs it already.
            Ok(_) | Err(PlanMismatchError::Running) => {}
            Err(mismatch) => return Err(mismatch.into()),
        }
        streams.for_each(|known| transformer.enrol(&id, known.stream));
        let presences = PRESENCES.min(Span(terms.window.0 / 2));
        let (key, deployment) = (self.key.clone(), deployment.clone());
        let masks = masks.map(preference);
        let caller = Caller::new(terms.clone(), None, key, deployment, presences, masks);
        let prefix = Scope::Service(id).prefix();
        let records =
            alpheus_node::ledger::scan_all(self.store.as_ref(), &self.topics.service, &prefix)?;
        let values = records.iter().map(|(_, value)| value.as_ref());
        let caller = caller.ok().and_then(|caller| caller.restore(values).ok());
        let caller = caller.ok_or_else(damaged)?;
        let listed = caller.listed();
        self.epochs.callers.insert(id, caller);
        listed.into_iter().try_for_each(|announced| self.begin_epoch(now, id, announced))
    }

    /// All plans that run have been resumed: sums of others are dropped.
    pub fn resumed(&mut self) {
        let running = self.queries.keys().copied().chain(self.epochs.plans()).collect();
        self.plane.keep_only(&running);
    }

    /// A stream, as its owner has placed it. It may take part from the next epoch on.
    pub fn place(&mut self, known: &CatalogStream, moved: Option<ControllerChange>) {
        let (owner, controller) = (known.owner, known.controller);
        self.epochs.placed.insert(known.stream, Placement { owner, controller, moved });
        let Some(transformer) = self.plane.epochs_mut() else { return };
        let open = self.epochs.callers.iter();
        for (id, _) in open.filter(|(_, caller)| known.may_join(caller.terms())) {
            transformer.enrol(id, known.stream);
        }
    }

    /// A stream takes part in no later epoch.
    pub fn displace(&mut self, stream: &StreamId) {
        self.epochs.placed.remove(stream);
    }

    /// A controller that may be called.
    pub fn know(&mut self, id: ControllerId, certificate: &Signed<Certificate>) {
        self.epochs.certificates.insert(id, certificate.clone());
    }

    /// The plans of lists for these plans by epochs.
    pub(super) fn epochs_of(&self, terms: &[PlanId]) -> Vec<PlanId> {
        let of = |query: &Query| query.epoch.as_ref().is_some_and(|own| terms.contains(&own.terms));
        self.queries.iter().filter(|(_, query)| of(query)).map(|(id, _)| *id).collect()
    }

    /// Forgets plans by epochs that have ended.
    pub(super) fn drop_terms(&mut self, plans: &[PlanId]) -> Result<(), ServiceError> {
        for plan in plans {
            let Some(caller) = self.epochs.callers.remove(plan) else { continue };
            self.epochs.withholders.remove(plan);
            self.epochs.sets.remove(plan);
            self.plane.unregister(plan);
            self.write_down(&[], Step::<Vec<()>>::new(caller.removals(), Vec::new()))?;
        }
        Ok(())
    }

    /// Whether a window is over whose epoch has no list, and none is waited for.
    pub(super) fn has_due_epochs(&self, idle: Timestamp) -> bool {
        let idling = self.epochs.callers.iter().filter(|(_, caller)| !caller.is_calling());
        let mut idling = idling.map(|(id, _)| id);
        let unlisted = |id| self.plane.epochs().is_some_and(|own| own.unlisted(id).is_some());
        idling.any(|id| self.plane.due(id, idle).is_some() || unlisted(id))
    }

    /// Closes windows of plans by epochs, and calls those who may take part.
    pub(super) fn close_epochs(
        &mut self,
        now: Timestamp,
        idle: Timestamp,
        outgoing: &mut ServiceOutput,
    ) -> Result<(), ServiceError> {
        loop {
            let mut steps = Vec::new();
            for id in self.epochs.plans().collect::<Vec<_>>() {
                let called = self.call_next(now, idle, &id);
                steps.extend(called.map(|step| (id, step)));
            }
            if steps.is_empty() {
                let resumed = std::mem::take(&mut self.pending);
                outgoing.add(self.finish_round(resumed)?);
                return Ok(());
            }
            outgoing.add(self.finish_calls(now, steps)?);
        }
    }

    /// Calls for the next window that is over, unless a call is under way.
    fn call_next(
        &mut self,
        now: Timestamp,
        idle: Timestamp,
        id: &PlanId,
    ) -> Option<Step<Vec<EpochOutput>>> {
        while !self.epochs.callers.get(id)?.is_calling() {
            let (window, online) = self.next_unlisted(id, idle)?;
            match self.epochs.callers.get(id)?.progress(window.start) {
                EpochProgress::Over => drop(self.plane.epochs_mut()?.give_up(id, window)),
                // It was fixed before a restart, and its coordinator waits for the sums.
                EpochProgress::Listed => self.adopt_waiting(now, id, window)?,
                EpochProgress::Open => {
                    let called = self.epochs.called(window, &online, &self.owing(now, id));
                    let known = self.epochs.withholders.get(id);
                    let last = known.map(|own| own.left_out(window.start)).unwrap_or_default();
                    let caller = self.epochs.callers.get_mut(id)?;
                    caller.list_last(last);
                    let mut step = caller.call(window, &called, now);
                    // If there is nobody to wait for, the epoch has no list at once.
                    step.merge(caller.poll(now));
                    return Some(step);
                }
            }
        }
        None
    }

    /// The first closed window without a list, and who was online. Closes one if it must.
    fn next_unlisted(&mut self, id: &PlanId, idle: Timestamp) -> Option<(Window, Vec<StreamId>)> {
        if self.plane.epochs()?.unlisted(id).is_none() {
            let due = self.plane.due(id, idle)?;
            self.plane.close(id, due)?;
        }
        self.plane.epochs()?.unlisted(id)
    }

    /// Controllers that have ruined windows, and that the next ones are to open without.
    pub(super) fn asked_last(&self) -> BTreeSet<ControllerId> {
        let of_plans = self.queries.values().map(|query| query.coordinator.withholders());
        of_plans
            .chain(self.epochs.withholders.values())
            .flat_map(Withholders::left_out_now)
            .collect()
    }

    /// Controllers that owe openings of earlier epochs: a window with them would wait as well.
    fn owing(&self, now: Timestamp, terms: &PlanId) -> BTreeSet<ControllerId> {
        let of = |query: &&Query| query.epoch.as_ref().is_some_and(|own| own.terms == *terms);
        let earlier = self.queries.values().filter(of);
        earlier.flat_map(|query| query.coordinator.owing_controllers(now)).collect()
    }

    /// The coordinator of a list takes over the window. Its messages are pending.
    fn begin_epoch(
        &mut self,
        now: Timestamp,
        terms: PlanId,
        announced: Arc<AnnouncedPlan>,
    ) -> Result<(), ServiceError> {
        let (id, epoch) = (announced.id(), EpochWindow::of(terms, &announced));
        self.coordinate(now, announced, Some(epoch))?;
        self.adopt(now, &id);
        Ok(())
    }

    fn adopt_waiting(&mut self, now: Timestamp, terms: &PlanId, window: Window) -> Option<()> {
        let of = |query: &Query| {
            query.epoch.as_ref().is_some_and(|own| (own.terms, own.window) == (*terms, window))
        };
        let id = self.queries.iter().find(|(_, query)| of(query)).map(|(id, _)| *id);
        if !id.is_some_and(|id| self.adopt(now, &id)) {
            self.plane.epochs_mut()?.give_up(terms, window);
        }
        Some(())
    }

    /// Gives a coordinator the window's report over the listed streams, if it is closed.
    fn adopt(&mut self, now: Timestamp, id: &PlanId) -> bool {
        let (Some(query), Some(transformer)) = (self.queries.get_mut(id), self.plane.epochs_mut())
        else {
            return false;
        };
        let Some(epoch) = &mut query.epoch else { return false };
        let Some(listed) = transformer.list(&epoch.terms, query.coordinator.plan()) else {
            return false;
        };
        epoch.left_out = left_out(&listed);
        let report = WindowReport::from(listed.report);
        let step = query.coordinator.handle_window_report(&report, now);
        self.pending.push((*id, step));
        true
    }

    /// The only window of a list's plan is over: nothing of the plan stays.
    pub(super) fn end_epoch(&mut self, id: &PlanId, outcome: &Outcome) -> Step<Vec<Output>> {
        let Some(query) = self.queries.get_mut(id) else { return Step::default() };
        if let Some(epoch) = &query.epoch {
            let withholders = self.epochs.withholders.entry(epoch.terms).or_default();
            withholders.note(query.coordinator.plan(), outcome);
        }
        let mut step = query.coordinator.dismiss();
        let Some(epoch) = &query.epoch else { return step };
        let caller = self.epochs.callers.get_mut(&epoch.terms);
        let changes = caller.map(|caller| caller.end(epoch.window.start));
        step.merge(Step::new(changes.unwrap_or_default(), Vec::new()));
        step
    }

    /// Takes answers to calls.
    pub(super) fn receive_attendances(
        &mut self,
        now: Timestamp,
        messages: &[FromController],
    ) -> Result<ServiceOutput, ServiceError> {
        let epochs = &self.epochs;
        let verified: Vec<_> = messages.par_iter().map(|message| epochs.verify(message)).collect();
        let mut steps = Vec::new();
        for answer in verified {
            let known = answer.map(|(plan, from, answer)| {
                let caller = self.epochs.callers.get_mut(&plan)?;
                let step = match answer {
                    Answer::Attends(attended) => caller.attend(attended, now),
                    Answer::Declines(reason) => caller.decline(from, reason, now),
                };
                Some((plan, step))
            });
            match known {
                Ok(step) => steps.extend(step),
                Err(reason) => {
                    *self.counters.refused_messages.entry(reason.to_string()).or_default() += 1;
                }
            }
        }
        self.finish_calls(now, steps)
    }

    /// Fixes lists whose time is up.
    pub(super) fn time_out_calls(&mut self, now: Timestamp) -> Result<ServiceOutput, ServiceError> {
        let polled = self.epochs.callers.iter_mut().map(|(id, caller)| (*id, caller.poll(now)));
        let steps = polled.collect();
        self.finish_calls(now, steps)
    }

    /// Makes durable what callers have fixed, with the rows of windows that get no list. Then
    /// lists go to their members.
    fn finish_calls(
        &mut self,
        now: Timestamp,
        steps: Vec<(PlanId, Step<Vec<EpochOutput>>)>,
    ) -> Result<ServiceOutput, ServiceError> {
        self.check_not_failed()?;
        let (mut rows, mut merged) = (Vec::new(), Step::default());
        for (id, step) in steps {
            for output in EpochOutput::in_step(&step) {
                rows.extend(self.unlisted_row(&id, output));
            }
            merged.merge(step.map(|outputs: Vec<EpochOutput>| {
                outputs.into_iter().map(|output| (id, output)).collect::<Vec<_>>()
            }));
        }
        let outputs = self.write_down(&rows, merged);
        self.failed |= outputs.is_err();
        let mut outgoing = ServiceOutput { messages: Vec::new(), rows };
        for (id, output) in outputs? {
            match output {
                EpochOutput::Call { to, message } => {
                    outgoing.messages.extend(to.into_iter().map(|to| (to, id, message.clone())));
                }
                EpochOutput::Listed(announced) => self.begin_epoch(now, id, announced)?,
                EpochOutput::NotListed { .. } => {}
            }
        }
        let begun = std::mem::take(&mut self.pending);
        outgoing.add(self.finish_round(begun)?);
        Ok(outgoing)
    }

    /// The row of a window whose epoch has no list, once.
    fn unlisted_row(&mut self, id: &PlanId, output: &EpochOutput) -> Option<crate::results::Row> {
        let EpochOutput::NotListed { window, reason, refused } = output else { return None };
        let listed = self.plane.epochs_mut()?.give_up(id, *window)?;
        let (excluded, refused) = (left_out(&listed), refused.clone());
        let (window, result) = (*window, Err(*reason));
        let outcome = Outcome {
            window,
            result,
            excluded,
            unreported: None,
            refused,
            unopened: Vec::new(),
            opening_set: None,
            faults: Vec::new(),
            silent: Vec::new(),
        };
        self.counters.row(self.epochs.callers.get(id)?.terms(), &outcome, None)
    }
}
