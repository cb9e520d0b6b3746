//! Step 3: the opening set S is checked against the membership of the own
//! token, made durable, and
//! `o_p = b_p + Σ_{M∖S} ±pad(mask, M) + Σ_S ±pad(open, M, S) + η_p` leaves, η_p the
//! share of noise.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_policy::time::Timestamp;

use super::Controller;
use super::joined::Joined;
use super::tokens::{add_noise, mask_refused, mask_round, meet};
use crate::announced::narrow;
use crate::error::Refused;
use crate::ledger::{Record, Spent, Step};
use crate::mask::set::RosterSet;
use crate::membership::Fixed;
use crate::messages::{ControllerMessage, Opening, OpeningSet};

impl Controller {
    /// Answers an opening set. There is one for each window, ever; the same
    /// again gets the same answer.
    ///
    /// # Privacy
    /// With the openings of all of S the service learns the sum over S and
    /// nothing else; with fewer, nothing. A token outside S stays hidden.
    ///
    /// # Errors
    /// [`Refused`] names the first rule that is broken.
    pub fn opening_set(
        &mut self,
        now: Timestamp,
        heard: &Verified<OpeningSet>,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let by_service = heard.signer() == self.deployment.service();
        let joined = self.window_of(now, &heard.plan, heard.window, by_service)?;
        if joined.announced.is_single() {
            return Err(Refused::NothingToOpen);
        }
        let round = joined.rounds.get(&heard.window.start).ok_or(Refused::NoToken)?;
        let (spent, fixed) = round.spent.as_ref().ok_or(Refused::NoToken)?;
        if spent.membership != heard.membership {
            return Err(Refused::OtherMembership);
        }
        let other = round.opened.as_ref().is_some_and(|(set, _)| *set != heard.digest());
        if other {
            return Err(Refused::AlreadyOpened);
        }
        let (again, spent, fixed) = (round.opened.clone(), spent.clone(), fixed.clone());
        self.check_policies(now, heard.plan, heard.window, &spent.accepted)?;
        if let Some((_, answer)) = again {
            return Ok(self.opened_step(now, heard, answer));
        }
        // What the ledger does not hold may have been said to another set.
        if self.restored.is_some_and(|restored| heard.window.start < restored) {
            return Err(Refused::CountsAsReleased);
        }
        // A restored ledger may have lost what is shared on its host.
        let fixed = fixed.ok_or(Refused::Settled)?;
        self.open_first(now, heard, &spent, &fixed)
    }

    fn open_first(
        &mut self,
        now: Timestamp,
        heard: &Verified<OpeningSet>,
        spent: &Spent,
        fixed: &Fixed,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let joined = self.plans.get(&heard.plan).ok_or(Refused::UnknownPlan)?;
        joined.admit_to_totals(heard.window, self.restored)?;
        check_set(joined, fixed, &heard.set)?;
        let (population, counted) = self.population(now, joined, fixed, &heard.set)?;
        // It was restarted since its token, if it lacks any.
        self.draw_for(now, &heard.plan, heard.window)?;
        let answer = self.open(heard, fixed)?;
        // Once nothing can fail any more: it may be the one line that says what totals cost.
        let line = self.release_line(now, spent, population, counted);
        let mut step = self.opened_step(now, heard, answer);
        let line = line.map(|line| self.put(now, line)).into_iter().collect();
        step.merge(Step::new(line, Vec::new()));
        Ok(step)
    }

    fn open(
        &mut self,
        heard: &Verified<OpeningSet>,
        fixed: &Fixed,
    ) -> Result<Signed<Opening>, Refused> {
        let digest: Digest = heard.digest();
        let joined = self.plans.get_mut(&heard.plan).ok_or(Refused::UnknownPlan)?;
        let outputs = joined.plan().release.outputs();
        let pickers = joined.pickers(heard.window);
        let masks = joined.masks.as_mut().ok_or(Refused::NothingToOpen)?;
        // After a restart they are strangers again.
        meet(masks, &self.identity, &joined.announced, &pickers)?;
        let mut words = masks
            .opening(&mask_round(fixed, &pickers), &heard.set, &digest, outputs)
            .map_err(mask_refused)?;
        let set = Some((&heard.set, &digest));
        add_noise(&mut words, joined, self.identity.noise(), fixed, set)?;
        let opening = Opening {
            plan: heard.plan,
            window: heard.window,
            controller: joined.position,
            opening_set: digest,
            words,
        };
        let answer = Signed::new(&opening, self.identity.signing());
        let round = joined.rounds.entry(heard.window.start).or_default();
        round.opened = Some((digest, answer.clone()));
        Ok(answer)
    }

    /// S and o first, then o: both come as one, also when asked again.
    fn opened_step(
        &mut self,
        now: Timestamp,
        heard: &Verified<OpeningSet>,
        answer: Signed<Opening>,
    ) -> Step<ControllerMessage> {
        let (plan, window, opening_set) = (heard.plan, heard.window, heard.digest());
        let record = Record::Opened { plan, window, opening_set, answer: answer.clone() };
        let mut changes = vec![self.put(now, record)];
        changes.extend(self.totals_record(now, plan));
        Step::new(changes, vec![ControllerMessage::Opening(answer)])
    }
}

/// p ∈ S ⊆ M, and a quorum: more than t, so that somebody honest is in it.
fn check_set(joined: &Joined, fixed: &Fixed, set: &RosterSet) -> Result<(), Refused> {
    if !set.is_subset_of(fixed.members()) {
        return Err(Refused::NotASubset);
    }
    if !set.contains(joined.position) {
        return Err(Refused::NotInOpeningSet);
    }
    let (held, needed) = (narrow(set.count()), joined.announced.least_opening(fixed.size()));
    if held < needed {
        return Err(Refused::BelowQuorum { held, needed });
    }
    Ok(())
}
