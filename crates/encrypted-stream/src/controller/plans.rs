//! Announced plans: the checks that remain once there is an [`AnnouncedPlan`], in the order of
//! the design.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::comply::Demand;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan, PlannedStream};
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::past_epochs::add_span;
use super::plan_state::PlanState;
use super::stream_state::StreamState;
use super::totals::Totals;
use crate::announced_plan::AnnouncedPlan;
use crate::consumer::ConsumerPad;
use crate::error::{PlanConsumerError, PlanRefusalError, PlanShapeError};
use crate::ledger::{LogEvent, LogLine, Record, Step};
use crate::mask::cuts::ROSTERS;
use crate::mask::neighbours::{pick, roster_digest};
use crate::mask::{Masker, OwnKey, PairKeyError, PairKeys, Storage};
use crate::messages::{Acceptance, ControllerMessage, Picks};

impl Controller {
    /// Answers an announcement: accepts the plan durably, or returns the reason for
    /// refusing it.
    ///
    /// # Errors
    /// [`PlanRefusalError`] names the first rule that is broken.
    pub fn handle_announcement(
        &mut self,
        announced: &Arc<AnnouncedPlan>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, PlanRefusalError> {
        let plan = announced.id();
        if !self.plans.contains_key(&plan) {
            let mut joined = self.join(now, announced)?;
            if announced.plan().epoch.is_none() {
                joined.settled = joined.settled.max(self.forgotten_until);
            }
            self.insert(joined);
        }
        let roster = self.roster_of(announced);
        self.rosters.extend(roster);
        let joined = self.plans.get_mut(&plan).filter(|joined| joined.ended.is_none());
        let joined = joined.ok_or(PlanRefusalError::Ended)?;
        // A repeated announcement writes the same line again, so the service cannot fill
        // the log.
        if joined.accepted_at.is_none() {
            joined.begin_asked();
        }
        let (controller, accepted) =
            (joined.position, *joined.accepted_at.get_or_insert(now.max(self.clock)));
        joined.begin_noise();
        let accepted_plan = joined.record();
        let mark = joined.mark_of_past();
        let signing = self.identity.signing();
        let picks = joined.masks.as_ref().map(Masker::picks).filter(|_| roster.is_some());
        let picks = picks.map(|picks| Signed::new(&Picks { plan, controller, picks }, signing));
        let acceptance = Signed::new(&Acceptance { plan, controller }, signing);
        let line = announced.plan().epoch.is_none();
        let line = line.then(|| Record::Log(self.accepted_line(accepted, announced.plan())));
        let records = [accepted_plan, announced.record()].into_iter().chain(mark).chain(line);
        let records = roster.map(|digest| Record::Roster { digest }).into_iter().chain(records);
        let mut changes: Vec<_> = records.map(|record| self.put(now, record)).collect();
        changes.extend(self.note_list(announced, now));
        changes.extend(self.drop_ended_plans(now));
        let picks = picks.map(ControllerMessage::Picks).into_iter();
        let messages = picks.chain([ControllerMessage::Acceptance(acceptance)]);
        Ok(Step::new(changes, messages.collect()))
    }

    /// Digest of the roster that the plan's picks are drawn for; `None` unless the plan has
    /// `Neighbours`.
    fn roster_of(&self, announced: &AnnouncedPlan) -> Option<Digest> {
        let MaskStrategy::Neighbours { picks, .. } = announced.plan().masks else { return None };
        Some(roster_digest(&announced.plan().roster, picks))
    }

    /// The service sees the picks and could plan again until it likes them, so the number
    /// of rosters is limited.
    fn check_rosters(&self, announced: &AnnouncedPlan) -> Result<(), PlanRefusalError> {
        let fresh = self.roster_of(announced).filter(|roster| !self.rosters.contains(roster));
        if fresh.is_some() && self.rosters.len() >= ROSTERS as usize {
            return Err(PlanRefusalError::TooManyRosters { most: ROSTERS });
        }
        Ok(())
    }

    /// Checks the plan against this controller's streams, policies and running plans.
    fn join(
        &self,
        now: Timestamp,
        announced: &Arc<AnnouncedPlan>,
    ) -> Result<PlanState, PlanRefusalError> {
        if announced.authority() != self.deployment.authority()
            || announced.service() != self.deployment.service()
        {
            return Err(PlanRefusalError::NotTheService);
        }
        let plan = announced.plan();
        let position = announced.position(&self.id()).ok_or(PlanRefusalError::NotInRoster)?;
        if plan.horizon().is_some() && self.restored_at.is_some_and(|at| plan.from < at) {
            return Err(PlanRefusalError::TotalsLost);
        }
        self.check_parties(plan)?;
        self.check_list(announced, position)?;
        let own = || plan.streams.iter().filter(|stream| stream.controller == position);
        for planned in own() {
            self.check_held(plan, planned)?;
        }
        // All streams meet the same demand, so compute it once.
        if let Some(state) = own().find_map(|planned| self.streams.get(&planned.stream)) {
            let demand = Demand::of(plan, &state.schema, &state.layout)
                .map_err(|refusal| PlanRefusalError::Form { violation: refusal.into() })?;
            // Who has left an epoch since its attendance is excluded, and costs nobody else.
            let fixed = plan.epoch.is_none();
            let mut streams = own().filter(|_| fixed).map(|planned| planned.stream);
            streams.try_for_each(|stream| self.check_consent(now, (plan, &demand), stream))?;
        }
        if plan.integrity.is_bounded() && self.terms(plan, position).is_none() {
            return Err(PlanRefusalError::Malformed(PlanShapeError::BoundedTerms));
        }
        let held = self.held_streams(plan, position)?;
        check_owners(plan, position)?;
        self.check_rosters(announced)?;
        let mut joined = self.enter(announced, position)?;
        joined.held_elsewhere = held;
        joined.totals = Totals::of(announced)?;
        self.check_seeds(&joined)?;
        Ok(joined)
    }

    fn check_held(&self, plan: &Plan, planned: &PlannedStream) -> Result<(), PlanRefusalError> {
        let stream = planned.stream;
        let state = self.streams.get(&stream).ok_or(PlanRefusalError::NotHeld { stream })?;
        if state.tenure.ends_by(plan.from) {
            return Err(PlanRefusalError::NotHeld { stream });
        }
        if state.owner != planned.owner {
            return Err(PlanRefusalError::WrongOwner { stream });
        }
        if state.schema.id() != plan.schema {
            return Err(PlanRefusalError::WrongSchema { stream });
        }
        Ok(())
    }

    fn check_consent(
        &self,
        now: Timestamp,
        (plan, demand): (&Plan, &Demand<'_>),
        stream: StreamId,
    ) -> Result<(), PlanRefusalError> {
        let state = self
            .streams
            .get(&stream)
            .filter(|state| state.revoked.is_none() && !state.is_barred && !state.is_suspended());
        let current = state.and_then(StreamState::current);
        let current = current.filter(|taken| now < taken.annotation.valid_to);
        let current = current.ok_or(PlanRefusalError::NoConsent { stream })?;
        if !is_selected(plan, &current.annotation.metadata) {
            return Err(PlanRefusalError::NotSelected { stream });
        }
        demand
            .allowed_by(&current.annotation.policy)
            .map_err(|refusal| PlanRefusalError::Policy { stream, violation: refusal.into() })
    }

    /// An attribute of a stream may be in at most one running plan. Plans of one family are
    /// for different epochs. Returns the streams, by position, that a list names and another plan holds
    /// since their controller attended: they take no part, and cost nobody else.
    fn held_streams(&self, plan: &Plan, position: u32) -> Result<BTreeSet<u32>, PlanRefusalError> {
        let (family, mut held) = (plan.family(), BTreeSet::new());
        let own = (0_u32..).zip(&plan.streams);
        for (at, planned) in own.filter(|(_, planned)| planned.controller == position) {
            let stream = planned.stream;
            match self.holder_of(stream, &plan.attributes, family, plan.from) {
                Some(_) if plan.epoch.is_some() => drop(held.insert(at)),
                Some(plan) => return Err(PlanRefusalError::Locked { stream, plan }),
                None => {}
            }
        }
        Ok(held)
    }

    /// Agrees on keys and collects what earlier plans have released.
    pub(super) fn enter(
        &self,
        announced: &Arc<AnnouncedPlan>,
        position: u32,
    ) -> Result<PlanState, PlanRefusalError> {
        let masks =
            if announced.is_single() { None } else { Some(self.masks(announced, position)?) };
        let mut joined = PlanState::new(Arc::clone(announced), position, masks);
        joined.consumer = self.consumer_pad(announced)?;
        joined.slack_bits = check_shares(announced)?;
        let attributes = &announced.plan().attributes;
        let spans_of = |stream| {
            let spans = self.released_spans.get(&stream).into_iter().flatten();
            spans.filter(|(attribute, _)| attributes.contains(attribute)).map(|(_, span)| *span)
        };
        let released: HashMap<u32, Vec<Window>> = joined
            .own_streams()
            .map(|(position, planned)| (position, spans_of(planned.stream).collect::<Vec<_>>()))
            .filter(|(_, spans)| !spans.is_empty())
            .collect();
        joined.released_spans = released;
        Ok(joined)
    }

    /// The plan runs from now on and holds its attributes.
    pub(super) fn insert(&mut self, joined: PlanState) {
        let id = joined.id();
        for (_, planned) in joined.released_streams() {
            for attribute in &joined.plan().attributes {
                self.locks.entry((planned.stream, *attribute)).or_default().insert(id);
            }
        }
        self.plans.insert(id, joined);
    }

    /// The plan has ended: its attributes are free, except for the spans that it released.
    pub(super) fn release_locks(&mut self, id: &PlanId) {
        let Some(joined) = self.plans.get(id) else { return };
        let Some(end) = joined.ended else { return };
        let span = Window { start: joined.plan().from, end };
        for (_, planned) in joined.released_streams() {
            for attribute in &joined.plan().attributes {
                let lock = (planned.stream, *attribute);
                // Another epoch's plan may hold it as well.
                if let Entry::Occupied(mut holders) = self.locks.entry(lock) {
                    holders.get_mut().remove(id);
                    if holders.get().is_empty() {
                        holders.remove();
                    }
                }
                if span.start < span.end {
                    let spans = self.released_spans.entry(planned.stream).or_default();
                    // Epochs follow each other: a family has one span unless it paused.
                    add_span(spans, *attribute, span);
                }
            }
        }
    }

    /// Agrees on a key with the consumer that the plan is sealed to.
    fn consumer_pad(
        &self,
        announced: &AnnouncedPlan,
    ) -> Result<Option<ConsumerPad>, PlanRefusalError> {
        let low_order = |_| PlanRefusalError::Consumer(PlanConsumerError::LowOrder);
        let agree = |their| ConsumerPad::agree(self.identity.agreement(), their);
        announced.consumer().map(agree).transpose().map_err(low_order)
    }

    fn masks(&self, announced: &AnnouncedPlan, position: u32) -> Result<Masker, PlanRefusalError> {
        let (key, roster) = (self.identity.agreement(), announced.agreement());
        // Those of verified plans are the input of keys that last for a day.
        let verified = announced.plan().integrity.is_verified();
        let storage = if verified { Storage::Compact } else { self.storage };
        let pairs = match (announced.plan().masks, self.roster_of(announced)) {
            (MaskStrategy::Neighbours { picks, .. }, Some(digest)) => {
                let all = announced.controllers();
                let picks = pick(self.identity.own(), &digest, position, all, picks);
                PairKeys::agree_with_picks(key, roster, position, &picks, storage)
            }
            _ => PairKeys::agree(key, roster, position, storage),
        };
        let pairs = pairs.map_err(|error| match error {
            PairKeyError::LowOrder { position } => PlanRefusalError::BadKey { position },
            PairKeyError::ForeignKey { .. } | PairKeyError::NoSuchPosition { .. } => {
                PlanRefusalError::NotInRoster
            }
        })?;
        let own = OwnKey::new(self.identity.own(), &announced.id());
        Masker::new(announced.plan(), pairs, own).map_err(|_| PlanRefusalError::UnsafeMasks)
    }

    fn accepted_line(&self, at: Timestamp, plan: &Plan) -> LogLine {
        let all = plan.streams.iter().map(|stream| stream.stream);
        let streams = all.filter(|stream| self.streams.contains_key(stream)).collect();
        let (name, consumer) = (plan.name.clone(), plan.consumer.clone());
        let verified = plan.integrity.is_verified();
        let (plan, sealed) = (plan.id(), plan.sealed_to.is_some());
        let event = LogEvent::PlanAccepted { plan, name, consumer, sealed, verified };
        LogLine { at, streams, event }
    }

    /// The plans that this controller takes part in.
    #[must_use]
    pub fn running_plans(&self) -> Vec<PlanId> {
        let running = self.plans.values().filter(|joined| joined.ended.is_none());
        running.map(PlanState::id).collect()
    }
}

/// Whether a stream with this metadata is one that the query asks for. Only verified plans say
/// what that is.
fn is_selected(plan: &Plan, metadata: &[(String, String)]) -> bool {
    let value = |name: &str| {
        metadata.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let in_group = plan.group.iter().all(|pair| metadata.contains(pair));
    !plan.integrity.is_verified() || (in_group && plan.selection.selects(value))
}

/// The noise is sized for the largest number of streams that any owner here has in the
/// plan.
fn check_owners(plan: &Plan, position: u32) -> Result<(), PlanRefusalError> {
    let Some(privacy) = &plan.privacy else { return Ok(()) };
    let mut counts: HashMap<OwnerId, u32> = HashMap::new();
    for planned in plan.streams.iter().filter(|planned| planned.controller == position) {
        let count = counts.entry(planned.owner).or_default();
        *count += 1;
        if *count > privacy.streams_per_owner {
            return Err(PlanRefusalError::NoiseForFewer { stream: planned.stream });
        }
    }
    Ok(())
}

/// Checks that shares of the plan's noise can be drawn for the smallest and the largest
/// opening set. Returns the samplers' slack in bits.
fn check_shares(announced: &AnnouncedPlan) -> Result<u32, PlanRefusalError> {
    let plan = announced.plan();
    if plan.horizon().is_some() {
        return Ok(plan.slack_bits());
    }
    let most = announced.controllers().saturating_sub(announced.discounted());
    for floor in [plan.min_honest(), most] {
        announced.shares(floor).map_err(|_| PlanRefusalError::NoiseUnfit)?;
    }
    Ok(plan.slack_bits())
}
