//! Step 3: checks the opening set S against the membership of this controller's token,
//! makes it durable, and sends
//! `o_p = b_p + Σ_{M∖S} ±pad(mask, M) + Σ_S ±pad(open, M, S) + η_p`, where η_p is the share
//! of noise.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_time::Timestamp;

use super::Controller;
use super::plan_state::PlanState;
use super::tokens::{add_noise, mask_refusal, mask_round};
use crate::counts::narrow;
use crate::error::WindowRefusalError;
use crate::ledger::{Share, SignedOpening, SpentToken, Step};
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::{ControllerMessage, Opening, OpeningSet};

impl Controller {
    /// Answers an opening set. A window has at most one, ever, and the same set always gets
    /// the same answer.
    ///
    /// # Privacy
    /// With the openings of all of S the service learns the sum over S and nothing else;
    /// with fewer it learns nothing. A token outside S stays hidden.
    ///
    /// # Errors
    /// [`WindowRefusalError`] names the first rule that is broken.
    pub fn handle_opening_set(
        &mut self,
        request: &Verified<OpeningSet>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let by_service = request.signer() == self.deployment.service();
        let joined = self.window_of(now, &request.plan, request.window, by_service)?;
        if joined.announced.is_single() {
            return Err(WindowRefusalError::NothingToOpen);
        }
        let round = joined.rounds.get(&request.window.start).ok_or(WindowRefusalError::NoToken)?;
        let (spent, fixed) = round.spent.as_ref().ok_or(WindowRefusalError::NoToken)?;
        if spent.membership != request.membership {
            return Err(WindowRefusalError::OtherMembership);
        }
        let other = round.opened.as_ref().is_some_and(|(set, _)| *set != request.digest());
        if other {
            return Err(WindowRefusalError::AlreadyOpened);
        }
        let (again, spent, fixed) = (round.opened.clone(), spent.clone(), fixed.clone());
        self.check_policies(now, request.plan, request.window, &spent.accepted)?;
        if let Some((_, answer)) = again {
            let sets = fixed.map_or_else(Vec::new, |fixed| self.set_records(now, &fixed));
            let mut step = self.opening_step(now, request, answer);
            step.merge(Step::new(sets, Vec::new()));
            return Ok(step);
        }
        // An opening that the ledger lacks may have gone to another set.
        if self.restored_at.is_some_and(|restored| request.window.start < restored) {
            return Err(WindowRefusalError::CountsAsReleased);
        }
        // A restored ledger may have lost the records that its host shares.
        let fixed = fixed.ok_or(WindowRefusalError::Settled)?;
        self.open_first(now, request, &spent, &fixed)
    }

    fn open_first(
        &mut self,
        now: Timestamp,
        request: &Verified<OpeningSet>,
        spent: &SpentToken<Share>,
        fixed: &FixedMembership,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let joined = self.plans.get(&request.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let is_bounded = joined.plan().integrity.is_bounded();
        joined.admit_to_totals(request.window, self.restored_at)?;
        check_set(joined, fixed, &request.set)?;
        self.check_members(joined, &request.set)?;
        let (population, counted) = self.population(now, joined, fixed, &request.set)?;
        let set = self.check_sets(fixed, &request.set, &spent.accepted)?;
        // After a restart since the token, the seeds may be missing.
        self.draw_for(now, &request.plan, request.window)?;
        let given = (fixed, spent.answer.digest());
        let answer = match is_bounded {
            true => self.open_bounded(request, given)?,
            false => self.open(request, given)?,
        };
        // Only once nothing can fail any more: this may be the one line about the cost of
        // the totals.
        let line = self.release_line(now, spent, population, counted);
        let mut step = self.opening_step(now, request, answer);
        let mut kept = self.note_set(now, fixed, set);
        kept.extend(line.map(|line| self.put(now, line)));
        step.merge(Step::new(kept, Vec::new()));
        Ok(step)
    }

    fn open(
        &mut self,
        request: &Verified<OpeningSet>,
        (fixed, token): (&FixedMembership, Digest),
    ) -> Result<SignedOpening, WindowRefusalError> {
        let digest: Digest = request.digest();
        let joined = self.plans.get_mut(&request.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let outputs = joined.plan().release.outputs();
        let pickers = joined.pickers(request.window);
        let keys =
            joined.window_keys(&mut self.generations, &self.identity, (fixed, &pickers), None)?;
        let masks = joined.masks.as_mut().ok_or(WindowRefusalError::NothingToOpen)?;
        let (round, opened) = (mask_round(fixed, &pickers), (&request.set, &digest));
        let mut words =
            masks.opening_with(keys.pads(), &round, opened, outputs).map_err(mask_refusal)?;
        add_noise(&mut words, joined, keys.noise(&self.identity), fixed, Some(opened))?;
        let opening = Opening {
            plan: request.plan,
            window: request.window,
            controller: joined.position,
            opening_set: digest,
            token: joined.is_verified().then_some(token),
            words,
        };
        let answer = SignedOpening::Words(Signed::new(&opening, self.identity.signing()));
        let round = joined.rounds.entry(request.window.start).or_default();
        round.opened = Some((digest, answer.clone()));
        Ok(answer)
    }

    /// S and o first, then o is sent. Both come out of one commit, also when repeated.
    fn opening_step(
        &mut self,
        now: Timestamp,
        request: &Verified<OpeningSet>,
        answer: SignedOpening,
    ) -> Step<Vec<ControllerMessage>> {
        let (plan, window, opening_set) = (request.plan, request.window, request.digest());
        let mut changes = vec![self.put(now, answer.record(plan, window, opening_set))];
        changes.extend(self.totals_record(now, plan));
        Step::new(changes, vec![answer.message()])
    }
}

/// Checks p ∈ S ⊆ M and the quorum: more than t members, so that one of them is honest.
fn check_set(
    joined: &PlanState,
    fixed: &FixedMembership,
    set: &RosterSet,
) -> Result<(), WindowRefusalError> {
    if !set.is_subset_of(fixed.members()) {
        return Err(WindowRefusalError::NotASubset);
    }
    if !set.contains(joined.position) {
        return Err(WindowRefusalError::NotInOpeningSet);
    }
    let (held, needed) = (narrow(set.count()), joined.announced.min_opening(fixed.size()));
    if held < needed {
        return Err(WindowRefusalError::BelowQuorum { held, needed });
    }
    Ok(())
}
