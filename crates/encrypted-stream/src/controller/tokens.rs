//! Step 2: checks the membership M, makes the spend durable, and sends the token `T_p = τ_p
//! + r_p + Σ ±pad(mask, M) + b_p`, where r_p is the consumer's pad.

use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::bounded_plans::struck_edges;
use super::identity::Identity;
use super::plan_state::{AnsweredSummons, PlanState};
use super::sets::SetId;
use super::{Controller, policies};
use crate::announced_plan::AnnouncedPlan;
use crate::counts::narrow;
use crate::error::WindowRefusalError;
use crate::inbox::{InboundMembership, MemberProof};
use crate::ledger::{LogEvent, LogLine, Record, Share, SpentToken, Step};
use crate::mask::set::RosterSet;
use crate::mask::{MaskError, Masker, PairKeyError, WindowMembers};
use crate::membership::FixedMembership;
use crate::messages::{ControllerMessage, Token, member_leaf};
use crate::noise::generator;
use crate::sums::add;

/// Everything a spend requires: the membership contains this controller's presence,
/// policies still allow its streams, the population suffices, and the budgets cover it.
pub(super) struct CheckedMembership<'a> {
    pub(super) fixed: &'a Arc<FixedMembership>,
    population: u64,
    counted: u64,
    /// The set of owners.
    set: SetId,
    /// What the token is charged.
    pub(super) due: Vec<BudgetRecord>,
    /// Members that picked this controller.
    pickers: &'a [u32],
    /// In a bounded plan: members with whom it shares no pads, because the edge is struck.
    pub(super) struck: Vec<u32>,
}

impl Controller {
    /// Answers a membership with the window's token. A window has at most one membership,
    /// ever, and the same membership always gets the same token.
    ///
    /// # Privacy
    /// Masks hide the token. Only the other members can remove them, and only for one
    /// opening set. If this controller is the only one in the plan, the token opens the
    /// window to anyone who has the ciphertexts. If the plan is sealed to a consumer, the
    /// token also stays hidden from everybody else, even after the opening.
    ///
    /// # Errors
    /// [`WindowRefusalError`] names the first rule that is broken.
    pub fn handle_membership(
        &mut self,
        message: &InboundMembership,
        own: &MemberProof,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let fixed = message.fixed.as_ref().map_err(|_| WindowRefusalError::MalformedMembership)?;
        let by_service = fixed.is_by(self.deployment.service());
        let joined = self.window_of(now, &message.plan, message.window, by_service)?;
        let round = joined.rounds.get(&message.window.start);
        if let Some((spent, known)) = round.and_then(|round| round.spent.as_ref()) {
            if spent.membership != fixed.digest() {
                return Err(WindowRefusalError::AlreadySpent);
            }
            // Without its keys it could not be opened.
            if round.is_some_and(|round| round.opened.is_none())
                && joined.lacks_keys(&self.generations, message.window)
            {
                return Err(WindowRefusalError::KeysGone);
            }
            let (spent, known) = (spent.clone(), known.clone());
            // Others note a set with the opening.
            let single = known.clone().filter(|_| joined.announced.is_single());
            self.check_policies(now, spent.plan, spent.window, &spent.accepted)?;
            let sets = single.map_or_else(Vec::new, |known| self.set_records(now, &known));
            let mut step = self.spend_step(now, spent, known.as_ref());
            step.merge(Step::new(sets, Vec::new()));
            return Ok(step);
        }
        let summoned =
            round.and_then(|r| r.summoned.as_ref()).ok_or(WindowRefusalError::NotPresent)?;
        check_membership(joined, summoned, fixed, own)?;
        let accepted = summoned.presence.accepted.clone();
        self.check_policies(now, message.plan, message.window, &accepted)?;
        let joined = self.plans.get(&message.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        self.check_members(joined, fixed.members())?;
        let (population, counted) = self.population(now, joined, fixed, fixed.members())?;
        let set = self.check_sets(fixed, fixed.members(), &accepted)?;
        let struck = struck_edges(joined, &own.strikes)?;
        let is_bounded = joined.plan().integrity.is_bounded();
        let due = self.due(now, message.plan, message.window)?;
        let pickers = own.pickers.as_deref().unwrap_or(&[]);
        let checked = CheckedMembership { fixed, population, counted, set, due, pickers, struck };
        match is_bounded {
            true => self.contribute(now, message.window, &checked),
            false => self.spend(now, message.window, &checked),
        }
    }

    /// Checks the policies in force now, which may have changed since the presence.
    /// Everything sent must comply with them, including an answer that was sent before.
    pub(super) fn check_policies(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Result<(), WindowRefusalError> {
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        for position in accepted.iter().copied() {
            let stream = joined.own(position).ok_or(WindowRefusalError::PolicyChanged)?.stream;
            let state = self.streams.get(&stream).ok_or(WindowRefusalError::PolicyChanged)?;
            policies::allow(joined, position, state, window, now)
                .map_err(|_| WindowRefusalError::PolicyChanged)?;
            if joined.was_released(position, window) {
                return Err(WindowRefusalError::Overlaps);
            }
        }
        Ok(())
    }

    /// Owners with data in a set: as M states, and as this controller counts them. The
    /// count is compared with the plan's minimum, which is at least that of each policy
    /// here.
    pub(super) fn population(
        &self,
        now: Timestamp,
        joined: &PlanState,
        fixed: &FixedMembership,
        set: &RosterSet,
    ) -> Result<(u64, u64), WindowRefusalError> {
        let (bounds, discounted) = (joined.plan().population, joined.announced.discounted());
        let stated = fixed.population(set);
        let trusts = self.trusts_other(joined, fixed.membership().window, now);
        let counted = fixed.population_for(set, joined.position, discounted, trusts);
        if counted < u64::from(bounds.min) {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            return Err(WindowRefusalError::PopulationTooSmall { counted, needed: bounds.min });
        }
        if stated > u64::from(bounds.max) {
            return Err(WindowRefusalError::PopulationTooLarge);
        }
        Ok((stated, counted))
    }

    /// Whether every owner here trusts the other controller, in a plan of two.
    fn trusts_other(&self, joined: &PlanState, window: Window, now: Timestamp) -> bool {
        let Some(other) = policies::only_other(joined) else { return false };
        let attributes = &joined.plan().attributes;
        joined.own_streams().all(|(_, planned)| {
            let state = self.streams.get(&planned.stream);
            state.is_some_and(|state| state.trusts(attributes, &other, window, now))
        })
    }

    /// Computes the token and the step that spends the window on it.
    fn spend(
        &mut self,
        now: Timestamp,
        window: Window,
        checked: &CheckedMembership<'_>,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let (fixed, plan) = (checked.fixed, checked.fixed.membership().plan);
        let mut tau = self.key_sum(fixed)?;
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let position = joined.position;
        joined.refine(&mut tau);
        joined.seal(fixed, &mut tau);
        let keys = joined.window_keys(
            &mut self.generations,
            &self.identity,
            (fixed, checked.pickers),
            Some(now),
        )?;
        let words = match &mut joined.masks {
            // The plan names one controller, so its token opens by itself.
            None => {
                let mut tau = tau.to_vec();
                add_noise(&mut tau, joined, keys.noise(&self.identity), fixed, None)?;
                tau
            }
            Some(masks) => {
                let round = mask_round(fixed, checked.pickers);
                masks.token_with(keys.pads(), &round, tau.to_vec()).map_err(mask_refusal)?
            }
        };
        let membership = fixed.digest();
        let token = Token { plan, window, controller: position, membership, words };
        let answer = Share::Words(Signed::new(&token, self.identity.signing()));
        self.spend_on(now, window, checked, answer)
    }

    /// The step that spends a window on an answer.
    pub(super) fn spend_on(
        &mut self,
        now: Timestamp,
        window: Window,
        checked: &CheckedMembership<'_>,
        answer: Share,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let (fixed, plan) = (checked.fixed, checked.fixed.membership().plan);
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let digest = fixed.digest();
        let round = joined.rounds.entry(window.start).or_default();
        let summoned = round.summoned.as_ref().ok_or(WindowRefusalError::NotPresent)?;
        let (accepted, owners) = (summoned.presence.accepted.clone(), summoned.presence.owners);
        let spent = SpentToken { plan, window, membership: digest, accepted, owners, answer };
        round.pickers = checked.pickers.to_vec();
        round.spent = Some((spent.clone(), Some(Arc::clone(fixed))));
        self.generations.cover(joined, window, &spent.accepted);
        self.books.spend(&checked.due);
        let mut step = self.spend_step(now, spent.clone(), Some(fixed));
        if self.plans.get(&plan).is_some_and(|joined| joined.announced.is_single()) {
            let line = self.release_line(now, &spent, checked.population, checked.counted);
            let mut kept = self.note_set(now, fixed, checked.set);
            kept.extend(line.map(|line| self.put(now, line)));
            step.merge(Step::new(kept, vec![]));
        }
        Ok(step)
    }

    /// τ: the key sums of all accepted streams. In a verified plan their released sums are added,
    /// as their devices stated them, which is y: what the streams themselves add up to.
    fn key_sum(
        &mut self,
        fixed: &FixedMembership,
    ) -> Result<Zeroizing<Vec<u64>>, WindowRefusalError> {
        let membership = fixed.membership();
        let joined = self.plans.get(&membership.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let round = joined.rounds.get(&membership.window.start);
        let summoned =
            round.and_then(|r| r.summoned.as_ref()).ok_or(WindowRefusalError::NotPresent)?;
        let release = &joined.plan().release;
        let mut tau = Zeroizing::new(vec![0; release.outputs()]);
        add(&mut tau, &summoned.sums);
        for (position, spans) in &summoned.spans {
            let stream = joined.own(*position).ok_or(WindowRefusalError::MalformedSummons)?.stream;
            let state = self.streams.get_mut(&stream).ok_or(WindowRefusalError::PolicyChanged)?;
            if !state.add_keys(release, spans, &mut tau) {
                return Err(WindowRefusalError::WrongWindow);
            }
        }
        Ok(tau)
    }

    /// The spend, then the token. Both come out of one commit, also when repeated.
    pub(super) fn spend_step(
        &mut self,
        now: Timestamp,
        spent: SpentToken<Share>,
        fixed: Option<&Arc<FixedMembership>>,
    ) -> Step<Vec<ControllerMessage>> {
        let answer = spent.answer.message();
        let membership = fixed.map(|fixed| Record::Membership {
            digest: fixed.digest(),
            membership: fixed.membership().clone(),
        });
        let mut changes = self.budget_records(now, &spent.plan, spent.window, &spent.accepted);
        let (plan, window) = (spent.plan, spent.window);
        let pickers = self.plans.get(&plan).map(|joined| joined.pickers(window));
        let pickers = pickers.filter(|pickers| !pickers.is_empty());
        let pickers = pickers.map(|pickers| Record::Pickers { plan, window, pickers });
        // The token of a single controller holds its share.
        let single = self.plans.get(&plan).is_some_and(|joined| joined.announced.is_single());
        changes.extend(if single { self.totals_record(now, plan) } else { None });
        let records = membership.into_iter().chain(pickers).chain([spent.record()]);
        changes.extend(records.collect::<Vec<_>>().into_iter().map(|r| self.put(now, r)));
        Step::new(changes, vec![answer])
    }

    /// The line about a release in the owners' log.
    pub(super) fn release_line(
        &mut self,
        at: Timestamp,
        spent: &SpentToken<Share>,
        population: u64,
        counted: u64,
    ) -> Option<Record> {
        let costs = self.costs_to_tell(&spent.plan, spent.window, &spent.accepted);
        let joined = self.plans.get(&spent.plan)?;
        let of = |position: &u32| joined.own(*position).map(|planned| planned.stream);
        let streams = spent.accepted.iter().filter_map(of).collect();
        let plan = joined.plan();
        let event = LogEvent::Released {
            plan: spent.plan,
            name: plan.name.clone(),
            consumer: plan.consumer.clone(),
            sealed: plan.sealed_to.is_some(),
            window: spent.window,
            attributes: plan.attributes.clone(),
            population,
            counted,
            costs,
        };
        Some(Record::Log(LogLine { at, streams, event }))
    }
}

/// Checks that the membership is of the plan's roster, contains this controller's presence,
/// and states its count of owners.
fn check_membership(
    joined: &PlanState,
    summoned: &AnsweredSummons,
    fixed: &FixedMembership,
    own: &MemberProof,
) -> Result<(), WindowRefusalError> {
    if fixed.members().roster() != joined.announced.controllers() {
        return Err(WindowRefusalError::MalformedMembership);
    }
    let rank = fixed.rank(joined.position).ok_or(WindowRefusalError::NotAMember)?;
    let (proof, pickers) = (&own.proof, own.pickers.as_deref());
    check_pickers(joined, fixed, pickers)?;
    let stands = proof.index == rank && proof.size == u64::from(fixed.size());
    let leaf = member_leaf(&summoned.digest, pickers);
    if !stands || proof.verify(&leaf, &fixed.membership().root).is_err() {
        return Err(WindowRefusalError::PresenceMisstated);
    }
    if fixed.owners_at(joined.position) != summoned.presence.owners {
        return Err(WindowRefusalError::OwnersMisstated);
    }
    if fixed.mask_key(joined.position) != summoned.presence.mask_key.as_ref() {
        return Err(WindowRefusalError::BadMaskKey { position: joined.position });
    }
    // Too few members to open anything: do not reveal whom this controller masks with.
    let (held, needed) = (fixed.size(), joined.announced.min_opening(0));
    if held < needed {
        return Err(WindowRefusalError::BelowQuorum { held, needed });
    }
    // The population that a set needs was computed from the owners in the plan.
    let invented = |member: &u32| fixed.owners_at(*member) > joined.announced.owners(*member);
    if fixed.members().iter().any(|member| invented(&member)) {
        return Err(WindowRefusalError::OwnersInvented);
    }
    Ok(())
}

/// In a plan with `Neighbours`, and in no other, M lists who picked this controller: other
/// members, in ascending order.
fn check_pickers(
    joined: &PlanState,
    fixed: &FixedMembership,
    pickers: Option<&[u32]>,
) -> Result<(), WindowRefusalError> {
    let wanted = joined.plan().masks.needed_picks().is_some();
    let picked = pickers.unwrap_or(&[]);
    let ascends = picked.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    let others = |at: &u32| *at != joined.position && fixed.members().contains(*at);
    let fits = wanted == pickers.is_some() && ascends && picked.iter().all(others);
    if fits { Ok(()) } else { Err(WindowRefusalError::MalformedMembership) }
}

/// Agrees on keys with members that picked this controller, unless that is done already.
pub(super) fn meet(
    masks: &mut Masker,
    identity: &Identity,
    announced: &AnnouncedPlan,
    pickers: &[u32],
) -> Result<(), WindowRefusalError> {
    masks.extend_keys(identity.agreement(), announced.agreement(), pickers).map_err(|error| {
        match error {
            PairKeyError::LowOrder { position }
            | PairKeyError::NoSuchPosition { position }
            | PairKeyError::ForeignKey { position } => {
                WindowRefusalError::BadNeighbour { position }
            }
        }
    })
}

pub(super) fn mask_round<'a>(fixed: &'a FixedMembership, pickers: &'a [u32]) -> WindowMembers<'a> {
    WindowMembers {
        window: fixed.membership().window,
        members: fixed.members(),
        membership: fixed.digest(),
        pickers,
    }
}

pub(super) fn mask_refusal(refusal: MaskError) -> WindowRefusalError {
    match refusal {
        MaskError::OtherRoster { .. } => WindowRefusalError::MalformedMembership,
        MaskError::OtherWindow => WindowRefusalError::WrongWindow,
        MaskError::NotAMember => WindowRefusalError::NotAMember,
        MaskError::NotOpened => WindowRefusalError::NotInOpeningSet,
        MaskError::NotASubset => WindowRefusalError::NotASubset,
        MaskError::Isolated { .. } => WindowRefusalError::NoNeighbours,
        MaskError::TooFewPicks { held, needed, .. } => {
            WindowRefusalError::TooFewPicks { held, needed }
        }
        MaskError::NoKey { position } => WindowRefusalError::BadNeighbour { position },
    }
}

/// Adds this controller's share of the plan's noise, if the plan adds any. For running
/// totals that is the difference to the last share. Otherwise it is sized for the honest
/// floor of the opening set, |S| − t − r, because those shares alone keep the promise.
pub(super) fn add_noise(
    words: &mut [u64],
    joined: &mut PlanState,
    secret: &Secret<32>,
    fixed: &FixedMembership,
    set: Option<(&RosterSet, &Digest)>,
) -> Result<(), WindowRefusalError> {
    if joined.add_to_totals(words, fixed.membership().window)? {
        return Ok(());
    }
    let opening = set.map_or(1, |(set, _)| narrow(set.count()));
    let honest = opening.saturating_sub(joined.announced.discounted());
    let shares = joined.announced.shares(honest).map_err(|_| WindowRefusalError::NoiseUnfit)?;
    let Some(shares) = shares else { return Ok(()) };
    let (plan, window) = (joined.id(), fixed.membership().window);
    let set = set.map(|(_, digest)| digest);
    let mut generator = generator(secret, &plan, window, &fixed.digest(), set);
    shares.draw(&mut generator).add_to(words);
    Ok(())
}
