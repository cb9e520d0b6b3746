//! Step 2: the membership M is checked, the spend made durable, and the token
//! `T_p = τ_p + r_p + Σ ±pad(mask, M) + b_p` leaves, r_p the pad for a consumer.

use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use alpheus_policy::budget::BudgetRecord;
use alpheus_policy::ids::PlanId;
use alpheus_policy::time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::identity::Identity;
use super::joined::{Joined, Summoned};
use super::{Controller, policies};
use crate::announced::{Announced, narrow};
use crate::error::Refused;
use crate::ledger::{LogEvent, LogLine, Record, Spent, Step};
use crate::mask::set::RosterSet;
use crate::mask::{MaskRefusal, Masker, NoPairKeys, Round as MaskRound};
use crate::membership::Fixed;
use crate::messages::{ControllerMessage, HeardMembership, Own, Token, member_leaf};
use crate::noise::generator;

/// Proof that a membership holds what this controller said, that policies still
/// allow its streams, that the population suffices, and that budgets hold it: what a
/// spend asks for.
struct Checked<'a> {
    fixed: &'a Arc<Fixed>,
    population: u64,
    counted: u64,
    /// What the token is charged.
    due: Vec<BudgetRecord>,
    /// Members that picked this controller.
    pickers: &'a [u32],
}

impl Controller {
    /// Answers a membership with the window's token. There is one membership
    /// for each window, ever; the same again gets the same token.
    ///
    /// # Privacy
    /// The token hides under masks that only the other members can take off,
    /// and only for one opening set. Of a plan with this one controller, it
    /// opens the window to whoever has the ciphertexts. Of a plan that is sealed to
    /// a consumer it stays hidden from all others besides, whatever opens.
    ///
    /// # Errors
    /// [`Refused`] names the first rule that is broken.
    pub fn membership(
        &mut self,
        now: Timestamp,
        heard: &HeardMembership,
        own: &Own,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let fixed = heard.fixed.as_ref().map_err(|_| Refused::MalformedMembership)?;
        let by_service = fixed.is_by(self.deployment.service());
        let joined = self.window_of(now, &heard.plan, heard.window, by_service)?;
        let round = joined.rounds.get(&heard.window.start);
        if let Some((spent, known)) = round.and_then(|round| round.spent.as_ref()) {
            if spent.membership != fixed.digest() {
                return Err(Refused::AlreadySpent);
            }
            let (spent, known) = (spent.clone(), known.clone());
            self.check_policies(now, spent.plan, spent.window, &spent.accepted)?;
            return Ok(self.spend_step(now, spent, known.as_ref()));
        }
        let summoned = round.and_then(|r| r.summoned.as_ref()).ok_or(Refused::NotPresent)?;
        check_membership(joined, summoned, fixed, own)?;
        let accepted = summoned.presence.accepted.clone();
        self.check_policies(now, heard.plan, heard.window, &accepted)?;
        let joined = self.plans.get(&heard.plan).ok_or(Refused::UnknownPlan)?;
        let (population, counted) = self.population(now, joined, fixed, fixed.members())?;
        let due = self.due(now, heard.plan, heard.window)?;
        let pickers = own.pickers.as_deref().unwrap_or(&[]);
        let checked = Checked { fixed, population, counted, due, pickers };
        self.spend(now, heard.window, &checked)
    }

    /// The policies in force now, which may have changed since the presence:
    /// whatever leaves, also an answer that left before, must comply with them.
    pub(super) fn check_policies(
        &mut self,
        now: Timestamp,
        plan: PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Result<(), Refused> {
        let joined = self.plans.get_mut(&plan).ok_or(Refused::UnknownPlan)?;
        for position in accepted.iter().copied() {
            let stream = joined.own(position).ok_or(Refused::PolicyChanged)?.stream;
            let held = self.streams.get(&stream).ok_or(Refused::PolicyChanged)?;
            policies::allow(joined, position, held, window, now)
                .map_err(|_| Refused::PolicyChanged)?;
            if joined.was_released(position, window) {
                return Err(Refused::Overlaps);
            }
        }
        Ok(())
    }

    /// Owners with data in a set: as M states, and as this controller counts
    /// them. The count is compared with the plan's minimum, which is no less
    /// than any own policy's.
    pub(super) fn population(
        &self,
        now: Timestamp,
        joined: &Joined,
        fixed: &Fixed,
        set: &RosterSet,
    ) -> Result<(u64, u64), Refused> {
        let (bounds, discounted) = (joined.plan().population, joined.announced.discounted());
        let stated = fixed.population(set);
        let trusts = self.trusts_other(joined, fixed.membership().window, now);
        let counted = fixed.counted(set, joined.position, discounted, trusts);
        if counted < u64::from(bounds.min) {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            return Err(Refused::PopulationTooSmall { counted, needed: bounds.min });
        }
        if stated > u64::from(bounds.max) {
            return Err(Refused::PopulationTooLarge);
        }
        Ok((stated, counted))
    }

    /// Whether, of a plan of two, every own owner trusts the other controller.
    fn trusts_other(&self, joined: &Joined, window: Window, now: Timestamp) -> bool {
        let Some(other) = policies::only_other(joined) else { return false };
        let attributes = &joined.plan().attributes;
        joined.own_streams().all(|(_, planned)| {
            let held = self.streams.get(&planned.stream);
            held.is_some_and(|held| held.trusts(attributes, &other, window, now))
        })
    }

    /// Computes the token and the step that spends the window on it.
    fn spend(
        &mut self,
        now: Timestamp,
        window: Window,
        checked: &Checked<'_>,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let fixed = checked.fixed;
        let plan = fixed.membership().plan;
        let mut tau = self.key_sum(fixed)?;
        let joined = self.plans.get_mut(&plan).ok_or(Refused::UnknownPlan)?;
        let position = joined.position;
        joined.refine(&mut tau);
        joined.seal(fixed, &mut tau);
        let words = match &mut joined.masks {
            // One controller named in the plan: its token opens by itself.
            None => {
                let mut tau = tau.to_vec();
                add_noise(&mut tau, joined, self.identity.noise(), fixed, None)?;
                tau
            }
            Some(masks) => {
                meet(masks, &self.identity, &joined.announced, checked.pickers)?;
                let round = mask_round(fixed, checked.pickers);
                masks.token(&round, tau.to_vec()).map_err(mask_refused)?
            }
        };
        let digest = fixed.digest();
        let token = Token { plan, window, controller: position, membership: digest, words };
        let answer = Signed::new(&token, self.identity.signing());
        let round = joined.rounds.entry(window.start).or_default();
        let summoned = round.summoned.as_ref().ok_or(Refused::NotPresent)?;
        let (accepted, owners) = (summoned.presence.accepted.clone(), summoned.presence.owners);
        let spent = Spent { plan, window, membership: digest, accepted, owners, answer };
        round.pickers = checked.pickers.to_vec();
        round.spent = Some((spent.clone(), Some(Arc::clone(fixed))));
        self.books.spend(&checked.due);
        let mut step = self.spend_step(now, spent.clone(), Some(fixed));
        if self.plans.get(&plan).is_some_and(|joined| joined.announced.is_single()) {
            let line = self.release_line(now, &spent, checked.population, checked.counted);
            let line = line.map(|line| self.put(now, line)).into_iter();
            step.merge(Step::new(line.collect(), vec![]));
        }
        Ok(step)
    }

    /// τ: the key sums of all accepted streams.
    fn key_sum(&mut self, fixed: &Fixed) -> Result<Zeroizing<Vec<u64>>, Refused> {
        let membership = fixed.membership();
        let joined = self.plans.get(&membership.plan).ok_or(Refused::UnknownPlan)?;
        let round = joined.rounds.get(&membership.window.start);
        let summoned = round.and_then(|r| r.summoned.as_ref()).ok_or(Refused::NotPresent)?;
        let release = &joined.plan().release;
        let mut tau = Zeroizing::new(vec![0; release.outputs()]);
        for (position, stretches) in &summoned.stretches {
            let stream = joined.own(*position).ok_or(Refused::MalformedSummons)?.stream;
            let held = self.streams.get_mut(&stream).ok_or(Refused::PolicyChanged)?;
            if !held.add_keys(release, stretches, &mut tau) {
                return Err(Refused::WrongWindow);
            }
        }
        Ok(tau)
    }

    /// Spend first, then the token: both come as one, also when asked again.
    fn spend_step(
        &mut self,
        now: Timestamp,
        spent: Spent,
        fixed: Option<&Arc<Fixed>>,
    ) -> Step<ControllerMessage> {
        let answer = ControllerMessage::Token(spent.answer.clone());
        let membership = fixed.map(|fixed| Record::Membership {
            digest: fixed.digest(),
            membership: fixed.membership().clone(),
        });
        let mut changes = self.budget_records(now, &spent.plan, spent.window, &spent.accepted);
        let (plan, window) = (spent.plan, spent.window);
        let pickers = self.plans.get(&plan).map(|joined| joined.pickers(window));
        let pickers = pickers.filter(|pickers| !pickers.is_empty());
        let pickers = pickers.map(|pickers| Record::Pickers { plan, window, pickers });
        // A lone controller's token holds its share.
        let single = self.plans.get(&plan).is_some_and(|joined| joined.announced.is_single());
        changes.extend(if single { self.totals_record(now, plan) } else { None });
        let records = membership.into_iter().chain(pickers).chain([Record::Spent(spent)]);
        changes.extend(records.collect::<Vec<_>>().into_iter().map(|r| self.put(now, r)));
        Step::new(changes, vec![answer])
    }

    /// What the owners read about a release.
    pub(super) fn release_line(
        &mut self,
        at: Timestamp,
        spent: &Spent,
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

/// The membership is of the plan's roster, holds this controller's presence,
/// and states its count of owners.
fn check_membership(
    joined: &Joined,
    summoned: &Summoned,
    fixed: &Fixed,
    own: &Own,
) -> Result<(), Refused> {
    if fixed.members().roster() != joined.announced.controllers() {
        return Err(Refused::MalformedMembership);
    }
    let rank = fixed.rank(joined.position).ok_or(Refused::NotAMember)?;
    let (proof, pickers) = (&own.proof, own.pickers.as_deref());
    check_pickers(joined, fixed, pickers)?;
    let stands = proof.index == rank && proof.size == u64::from(fixed.size());
    let leaf = member_leaf(&summoned.digest, pickers);
    if !stands || proof.verify(&leaf, &fixed.membership().root).is_err() {
        return Err(Refused::PresenceMisstated);
    }
    if fixed.owners_at(joined.position) != summoned.presence.owners {
        return Err(Refused::OwnersMisstated);
    }
    // Too few to open anything: not worth saying whom this controller masks with.
    let (held, needed) = (fixed.size(), joined.announced.least_opening(0));
    if held < needed {
        return Err(Refused::BelowQuorum { held, needed });
    }
    // What a set must hold to count as enough was reckoned from the owners in the plan.
    let invented = |member: &u32| fixed.owners_at(*member) > joined.announced.owners(*member);
    if fixed.members().iter().any(|member| invented(&member)) {
        return Err(Refused::OwnersInvented);
    }
    Ok(())
}

/// Of a plan with `Neighbours`, and of no other, M says who picked this controller:
/// other members, ascending.
fn check_pickers(joined: &Joined, fixed: &Fixed, pickers: Option<&[u32]>) -> Result<(), Refused> {
    let wanted = joined.plan().masks.needed_picks().is_some();
    let picked = pickers.unwrap_or(&[]);
    let ascends = picked.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    let others = |at: &u32| *at != joined.position && fixed.members().contains(*at);
    let fits = wanted == pickers.is_some() && ascends && picked.iter().all(others);
    if fits { Ok(()) } else { Err(Refused::MalformedMembership) }
}

/// Agrees on keys with those that picked this controller, where that is not done yet.
pub(super) fn meet(
    masks: &mut Masker,
    identity: &Identity,
    announced: &Announced,
    pickers: &[u32],
) -> Result<(), Refused> {
    masks.meet(identity.agreement(), announced.agreement(), pickers).map_err(|error| match error {
        NoPairKeys::LowOrder { position }
        | NoPairKeys::NoSuch { position }
        | NoPairKeys::NotOurs { position } => Refused::BadNeighbour { position },
    })
}

pub(super) fn mask_round<'a>(fixed: &'a Fixed, pickers: &'a [u32]) -> MaskRound<'a> {
    MaskRound {
        window: fixed.membership().window,
        members: fixed.members(),
        membership: fixed.digest(),
        pickers,
    }
}

pub(super) fn mask_refused(refusal: MaskRefusal) -> Refused {
    match refusal {
        MaskRefusal::OtherRoster { .. } => Refused::MalformedMembership,
        MaskRefusal::OtherWindow => Refused::WrongWindow,
        MaskRefusal::NotAMember => Refused::NotAMember,
        MaskRefusal::NotOpened => Refused::NotInOpeningSet,
        MaskRefusal::NotASubset => Refused::NotASubset,
        MaskRefusal::Isolated { .. } => Refused::NoNeighbours,
        MaskRefusal::TooFewPicks { held, needed, .. } => Refused::TooFewPicks { held, needed },
        MaskRefusal::NoKey { position } => Refused::BadNeighbour { position },
    }
}

/// Adds this controller's share of the plan's noise, if it adds any: of running totals
/// the difference to what it said last, else sized for the honest floor of the set that
/// opens, |S| − t − r, whose shares alone keep the promise.
pub(super) fn add_noise(
    words: &mut [u64],
    joined: &mut Joined,
    secret: &Secret<32>,
    fixed: &Fixed,
    set: Option<(&RosterSet, &Digest)>,
) -> Result<(), Refused> {
    if joined.add_to_totals(words, fixed.membership().window)? {
        return Ok(());
    }
    let opening = set.map_or(1, |(set, _)| narrow(set.count()));
    let honest = opening.saturating_sub(joined.announced.discounted());
    let shares = joined.announced.shares(honest).map_err(|_| Refused::NoiseUnfit)?;
    let Some(shares) = shares else { return Ok(()) };
    let (plan, window) = (joined.id(), fixed.membership().window);
    let set = set.map(|(_, digest)| digest);
    let mut generator = generator(secret, &plan, window, &fixed.digest(), set);
    shares.draw(&mut generator).add_to(words);
    Ok(())
}
