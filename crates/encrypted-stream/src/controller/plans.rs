//! A plan is announced: what is left to check once its participants are
//! [`Announced`], in the design's order.

use std::collections::HashMap;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use alpheus_policy::comply::Demand;
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan, PlannedStream};
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::held::Held;
use super::joined::Joined;
use super::totals::Totals;
use crate::announced::Announced;
use crate::consumer::ConsumerPad;
use crate::error::{ConsumerFault, PlanRefused};
use crate::ledger::{LogEvent, LogLine, Record, Step};
use crate::mask::cuts::ROSTERS;
use crate::mask::neighbours::{pick, roster_digest};
use crate::mask::{Masker, NoPairKeys, OwnKey, PairKeys};
use crate::messages::{Acceptance, ControllerMessage, Picks};

impl Controller {
    /// Answers an announcement: accepts the plan durably, or says why not.
    ///
    /// # Errors
    /// [`PlanRefused`] names the first rule that is broken.
    pub fn announced(
        &mut self,
        now: Timestamp,
        announced: &Arc<Announced>,
    ) -> Result<Step<ControllerMessage>, PlanRefused> {
        let plan = announced.id();
        if !self.plans.contains_key(&plan) {
            let joined = self.join(now, announced)?;
            self.insert(joined);
        }
        let roster = self.roster_of(announced);
        self.rosters.extend(roster);
        let joined = self.plans.get_mut(&plan).filter(|joined| joined.ended.is_none());
        let joined = joined.ok_or(PlanRefused::Ended)?;
        // Announced again, the same line again: the service cannot fill the log.
        let (controller, accepted) =
            (joined.position, *joined.accepted.get_or_insert(now.max(self.clock)));
        joined.begin_noise();
        let signing = self.identity.signing();
        let picks = joined.masks.as_ref().map(Masker::picks).filter(|_| roster.is_some());
        let picks = picks.map(|picks| Signed::new(&Picks { plan, controller, picks }, signing));
        let acceptance = Signed::new(&Acceptance { plan, controller }, signing);
        let signed = announced.signed().clone();
        let records = [
            Record::Plan { plan },
            Record::Announcement { plan, signed },
            Record::Log(self.accepted_line(accepted, announced.plan())),
        ];
        let records = roster.map(|digest| Record::Roster { digest }).into_iter().chain(records);
        let changes = records.map(|record| self.put(now, record)).collect();
        let picks = picks.map(ControllerMessage::Picks).into_iter();
        let messages = picks.chain([ControllerMessage::Acceptance(acceptance)]);
        Ok(Step::new(changes, messages.collect()))
    }

    /// What the picks of a plan are drawn for; none unless it has `Neighbours`.
    fn roster_of(&self, announced: &Announced) -> Option<Digest> {
        let MaskStrategy::Neighbours { picks, .. } = announced.plan().masks else { return None };
        Some(roster_digest(&announced.plan().roster, picks))
    }

    /// A service sees the picks and may plan anew until it likes them: not often.
    fn check_rosters(&self, announced: &Announced) -> Result<(), PlanRefused> {
        let fresh = self.roster_of(announced).filter(|roster| !self.rosters.contains(roster));
        if fresh.is_some() && self.rosters.len() >= ROSTERS as usize {
            return Err(PlanRefused::TooManyRosters { most: ROSTERS });
        }
        Ok(())
    }

    /// Checks the plan against own streams, policies and running plans.
    fn join(&self, now: Timestamp, announced: &Arc<Announced>) -> Result<Joined, PlanRefused> {
        if announced.authority() != self.deployment.authority()
            || announced.service() != self.deployment.service()
        {
            return Err(PlanRefused::NotTheService);
        }
        let plan = announced.plan();
        let position = announced.position(&self.id()).ok_or(PlanRefused::NotInRoster)?;
        if plan.horizon().is_some() && self.restored.is_some_and(|at| plan.from < at) {
            return Err(PlanRefused::TotalsLost);
        }
        let own = || plan.streams.iter().filter(|stream| stream.controller == position);
        for planned in own() {
            self.check_held(plan, planned)?;
        }
        // What policies are asked is the same for all streams: read it once.
        if let Some(held) = own().find_map(|planned| self.streams.get(&planned.stream)) {
            let demand = Demand::of(plan, &held.schema, &held.layout)
                .map_err(|refusal| PlanRefused::Form { violation: refusal.into() })?;
            own().try_for_each(|planned| self.check_consent(now, &demand, planned.stream))?;
        }
        self.check_locks(plan, position)?;
        check_owners(plan, position)?;
        self.check_rosters(announced)?;
        let mut joined = self.enter(announced, position)?;
        joined.totals = Totals::of(announced)?;
        self.check_seeds(&joined)?;
        Ok(joined)
    }

    fn check_held(&self, plan: &Plan, planned: &PlannedStream) -> Result<(), PlanRefused> {
        let stream = planned.stream;
        let held = self.streams.get(&stream).ok_or(PlanRefused::NotHeld { stream })?;
        if held.owner != planned.owner {
            return Err(PlanRefused::WrongOwner { stream });
        }
        if held.schema.id() != plan.schema {
            return Err(PlanRefused::WrongSchema { stream });
        }
        Ok(())
    }

    fn check_consent(
        &self,
        now: Timestamp,
        demand: &Demand<'_>,
        stream: StreamId,
    ) -> Result<(), PlanRefused> {
        let held =
            self.streams.get(&stream).filter(|held| held.revoked.is_none() && !held.is_suspended());
        let current = held.and_then(Held::current);
        let current = current.filter(|taken| now < taken.annotation.valid_to);
        let current = current.ok_or(PlanRefused::NoConsent { stream })?;
        demand
            .allowed_by(&current.annotation.policy)
            .map_err(|refusal| PlanRefused::Policy { stream, violation: refusal.into() })
    }

    /// An attribute of a stream is in one running plan at most.
    fn check_locks(&self, plan: &Plan, position: u32) -> Result<(), PlanRefused> {
        for planned in plan.streams.iter().filter(|planned| planned.controller == position) {
            let stream = planned.stream;
            for attribute in &plan.attributes {
                if let Some(plan) = self.locks.get(&(stream, *attribute)).copied() {
                    return Err(PlanRefused::Locked { stream, plan });
                }
            }
        }
        Ok(())
    }

    /// Agrees on keys and notes what earlier plans have released.
    pub(super) fn enter(
        &self,
        announced: &Arc<Announced>,
        position: u32,
    ) -> Result<Joined, PlanRefused> {
        let masks =
            if announced.is_single() { None } else { Some(self.masks(announced, position)?) };
        let mut joined = Joined::new(Arc::clone(announced), position, masks);
        joined.consumer = self.consumer_pad(announced)?;
        joined.slack_bits = check_shares(announced)?;
        let attributes = &announced.plan().attributes;
        let spans_of = |stream| {
            let spans = self.released.get(&stream).into_iter().flatten();
            spans.filter(|(attribute, _)| attributes.contains(attribute)).map(|(_, span)| *span)
        };
        let released: HashMap<u32, Vec<Window>> = joined
            .own_streams()
            .map(|(position, planned)| (position, spans_of(planned.stream).collect::<Vec<_>>()))
            .filter(|(_, spans)| !spans.is_empty())
            .collect();
        joined.released = released;
        Ok(joined)
    }

    /// A plan runs from now on: its attributes are taken.
    pub(super) fn insert(&mut self, joined: Joined) {
        let id = joined.id();
        for (_, planned) in joined.own_streams() {
            for attribute in &joined.plan().attributes {
                self.locks.insert((planned.stream, *attribute), id);
            }
        }
        self.plans.insert(id, joined);
    }

    /// A plan has ended: its attributes are free, but for what they released.
    pub(super) fn release_locks(&mut self, id: &PlanId) {
        let Some(joined) = self.plans.get(id) else { return };
        let Some(end) = joined.ended else { return };
        let span = Window { start: joined.plan().from, end };
        for (_, planned) in joined.own_streams() {
            for attribute in &joined.plan().attributes {
                self.locks.remove(&(planned.stream, *attribute));
                if span.start < span.end {
                    let spans = self.released.entry(planned.stream).or_default();
                    spans.push((*attribute, span));
                }
            }
        }
    }

    /// Agrees with the consumer that the plan is sealed to.
    fn consumer_pad(&self, announced: &Announced) -> Result<Option<ConsumerPad>, PlanRefused> {
        let low_order = |_| PlanRefused::Consumer(ConsumerFault::LowOrder);
        let agree = |their| ConsumerPad::agree(self.identity.agreement(), their);
        announced.consumer().map(agree).transpose().map_err(low_order)
    }

    fn masks(&self, announced: &Announced, position: u32) -> Result<Masker, PlanRefused> {
        let (key, roster) = (self.identity.agreement(), announced.agreement());
        let pairs = match (announced.plan().masks, self.roster_of(announced)) {
            (MaskStrategy::Neighbours { picks, .. }, Some(digest)) => {
                let all = announced.controllers();
                let picks = pick(self.identity.own(), &digest, position, all, picks);
                PairKeys::agree_with(key, roster, position, &picks, self.storage)
            }
            _ => PairKeys::agree(key, roster, position, self.storage),
        };
        let pairs = pairs.map_err(|error| match error {
            NoPairKeys::LowOrder { position } => PlanRefused::BadKey { position },
            NoPairKeys::NotOurs { .. } | NoPairKeys::NoSuch { .. } => PlanRefused::NotInRoster,
        })?;
        let own = OwnKey::new(self.identity.own(), &announced.id());
        Masker::new(announced.plan(), pairs, own).map_err(|_| PlanRefused::UnsafeMasks)
    }

    fn accepted_line(&self, at: Timestamp, plan: &Plan) -> LogLine {
        let held = plan.streams.iter().map(|stream| stream.stream);
        let streams = held.filter(|stream| self.streams.contains_key(stream)).collect();
        let (name, consumer) = (plan.name.clone(), plan.consumer.clone());
        let (plan, sealed) = (plan.id(), plan.sealed_to.is_some());
        LogLine { at, streams, event: LogEvent::PlanAccepted { plan, name, consumer, sealed } }
    }

    /// The plans that it takes part in.
    #[must_use]
    pub fn running_plans(&self) -> Vec<PlanId> {
        let running = self.plans.values().filter(|joined| joined.ended.is_none());
        running.map(Joined::id).collect()
    }
}

/// The noise is sized for as many streams as any own owner has in the plan.
fn check_owners(plan: &Plan, position: u32) -> Result<(), PlanRefused> {
    let Some(privacy) = &plan.privacy else { return Ok(()) };
    let mut counts: HashMap<OwnerId, u32> = HashMap::new();
    for planned in plan.streams.iter().filter(|planned| planned.controller == position) {
        let count = counts.entry(planned.owner).or_default();
        *count += 1;
        if *count > privacy.streams_per_owner {
            return Err(PlanRefused::NoiseForFewer { stream: planned.stream });
        }
    }
    Ok(())
}

/// Shares of the plan's noise can be drawn for the smallest and for the largest
/// opening set. Says what their samplers leave out.
fn check_shares(announced: &Announced) -> Result<u32, PlanRefused> {
    let plan = announced.plan();
    if plan.horizon().is_some() {
        return Ok(plan.slack_bits());
    }
    let most = announced.controllers().saturating_sub(announced.discounted());
    for floor in [plan.least_honest(), most] {
        announced.shares(floor).map_err(|_| PlanRefused::NoiseUnfit)?;
    }
    Ok(plan.slack_bits())
}
