//! This controller's part in a plan's running totals: the seeds, and the last window whose
//! share was sent.

use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_policy::budget::{BudgetRecord, Cost, Entry};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_time::{Timestamp, Window};

use super::Controller;
use super::budgets::pairs;
use super::plan_state::PlanState;
use crate::announced_plan::AnnouncedPlan;
use crate::error::{PlanRefusalError, WindowRefusalError};
use crate::ledger::{Change, Record};
use crate::noise::{NoiseWords, SeedTables, Seeds, seed_generator};

/// Seeds that messages of one time may draw, in whole windows, for each controller. A host
/// handles all messages of a batch at one time, and other work waits meanwhile.
const AT_ONCE: u32 = 8;
/// Seeds of all running plans of a controller together: 16 bytes each.
const MAX_SEEDS: u64 = 1 << 20;

/// Seeds of the windows so far, which are secret, and the last window whose opening was
/// sent.
pub(super) struct Totals {
    tables: Arc<SeedTables>,
    seeds: Seeds,
    last: Option<u32>,
    /// Whether an answer waits for seeds.
    wanted: bool,
}

/// How many seeds messages may still draw.
#[derive(Clone, Copy)]
pub(super) struct Allowance {
    at: Timestamp,
    left: u32,
}

impl Allowance {
    pub(super) const NONE: Allowance = Allowance { at: Timestamp(0), left: 0 };

    /// The allowance at this time, also if a clock was set back.
    fn of(self, now: Timestamp) -> Self {
        if now != self.at { Allowance { at: now, left: AT_ONCE } } else { self }
    }
}

impl Totals {
    /// `None` for a plan without running totals.
    pub(super) fn of(announced: &AnnouncedPlan) -> Result<Option<Self>, PlanRefusalError> {
        let tables = announced.running().map_err(|_| PlanRefusalError::NoiseUnfit)?;
        Ok(tables.map(|tables| Self { seeds: tables.seeds(), tables, last: None, wanted: false }))
    }

    /// Draws seeds of the windows up to this place, at most `most` windows. Returns how
    /// many windows it drew.
    fn draw(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
        most: u32,
    ) -> Result<u32, WindowRefusalError> {
        let before = self.seeds.windows();
        let until = place.saturating_add(1).min(before.saturating_add(most));
        while self.seeds.windows() < until {
            let mut generator = seed_generator(secret, plan, self.seeds.windows());
            self.seeds.extend(&mut generator).map_err(|_| WindowRefusalError::WrongWindow)?;
        }
        self.wanted &= self.seeds.windows() <= place;
        Ok(self.seeds.windows() - before)
    }

    /// Draws seeds that an answer waits for, within the allowance.
    ///
    /// # Errors
    /// [`WindowRefusalError::SeedsUnderWay`] if more remain to be drawn.
    fn draw_within(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
        allowance: &mut Allowance,
    ) -> Result<(), WindowRefusalError> {
        let rows = self.tables.noisy_rows().max(1);
        let drawn = self.draw(secret, plan, place, allowance.left.div_ceil(rows))?;
        allowance.left = allowance.left.saturating_sub(drawn.saturating_mul(rows));
        match place.saturating_add(1).saturating_sub(self.seeds.windows()) {
            0 => Ok(()),
            left => {
                self.wanted = true;
                Err(WindowRefusalError::SeedsUnderWay { left })
            }
        }
    }

    /// Seeds of all windows together.
    fn total_seeds(&self) -> u64 {
        let windows = u64::from(self.tables.coefficients().windows());
        windows.saturating_mul(self.tables.noisy_rows().into())
    }

    /// The share of the window at this place: the difference to the last share. From then
    /// on it is the last share, whether or not the message that holds it ever arrives.
    fn share(&mut self, place: u32) -> Result<NoiseWords, WindowRefusalError> {
        let share = self.seeds.share(self.tables.coefficients(), place, self.last);
        let share = share.map_err(|_| WindowRefusalError::TotalsOutOfOrder)?;
        self.last = Some(place);
        Ok(share)
    }
}

impl PlanState {
    /// Applies a record of the ledger.
    pub(super) fn remember_totals(&mut self, last: u32) {
        if let Some(totals) = &mut self.totals {
            totals.last = totals.last.max(Some(last));
        }
    }

    /// Applies a line of the owners' log that states the cost of a window.
    pub(super) fn remember_cost_line(&mut self, streams: &[StreamId]) {
        let concerned = |own: &StreamId| streams.binary_search(own).is_ok();
        let owners = self.own_streams().filter(|(_, planned)| concerned(&planned.stream));
        let owners: Vec<OwnerId> = owners.map(|(_, planned)| planned.owner).collect();
        self.cost_logged.extend(owners);
    }

    /// Draws more of the seeds that a window's share needs, before anybody depends on it.
    ///
    /// # Errors
    /// [`WindowRefusalError::SeedsUnderWay`] if more remain to be drawn; the service asks again.
    fn draw_for(
        &mut self,
        secret: &Secret<32>,
        window: Window,
        allowance: &mut Allowance,
    ) -> Result<(), WindowRefusalError> {
        let (plan, place) = (self.id(), self.plan().index_in_totals(window));
        let Some(totals) = &mut self.totals else { return Ok(()) };
        totals.draw_within(secret, &plan, place.ok_or(WindowRefusalError::WrongWindow)?, allowance)
    }

    /// Draws seeds for all windows that are over by now, and for the next one, if this
    /// controller has a share in these totals. Announcing a plan alone causes no drawing.
    /// Draws at most `most` seeds, but always whole windows. Returns how many it drew.
    fn draw_ahead(&mut self, secret: &Secret<32>, now: Timestamp, most: u32) -> u32 {
        let Some(all) = self.plan().totals_window().filter(|all| all.start <= now) else {
            return 0;
        };
        let last = Timestamp(all.end.0.saturating_sub(1));
        let window = self.plan().window_at(now.min(last).floor(self.plan().window));
        let (plan, place) = (self.id(), self.plan().index_in_totals(window));
        let (Some(place), Some(totals)) = (place, &mut self.totals) else { return 0 };
        let mut rounds = self.rounds.values();
        let shares = totals.wanted || totals.last.is_some();
        if !shares && !rounds.any(|round| round.membership().is_some()) {
            return 0;
        }
        let rows = totals.tables.noisy_rows().max(1);
        let drawn = totals.draw(secret, &plan, place, most.div_ceil(rows)).unwrap_or(0);
        drawn.saturating_mul(rows)
    }

    /// Seeds of all windows of its totals.
    pub(super) fn total_seeds(&self) -> u64 {
        self.totals.as_ref().map_or(0, Totals::total_seeds)
    }

    /// Checks that a first answer about a window may be sent. In running totals the window
    /// must belong to them, no later window was opened, and the last share is known.
    pub(super) fn admit_to_totals(
        &self,
        window: Window,
        restored: Option<Timestamp>,
    ) -> Result<(), WindowRefusalError> {
        let Some(totals) = &self.totals else { return self.without_totals() };
        let place = self.plan().index_in_totals(window).ok_or(WindowRefusalError::WrongWindow)?;
        if restored.is_some_and(|restored| self.plan().from < restored) {
            return Err(WindowRefusalError::TotalsLost);
        }
        if totals.last.is_some_and(|last| place <= last) {
            return Err(WindowRefusalError::TotalsOutOfOrder);
        }
        Ok(())
    }

    /// Adds this controller's share of the running totals. Returns false if the plan has
    /// none.
    pub(super) fn add_to_totals(
        &mut self,
        words: &mut [u64],
        window: Window,
    ) -> Result<bool, WindowRefusalError> {
        let place = self.plan().index_in_totals(window);
        let Some(totals) = &mut self.totals else { return self.without_totals().map(|()| false) };
        let place = place.ok_or(WindowRefusalError::WrongWindow)?;
        totals.share(place)?.add_to(words);
        Ok(true)
    }

    /// A plan without seeds never had any, or has ended.
    fn without_totals(&self) -> Result<(), WindowRefusalError> {
        if self.plan().horizon().is_some() { Err(WindowRefusalError::PlanEnded) } else { Ok(()) }
    }

    /// Multiplies a token's key sums by 2^f, row by row, as the service does with the
    /// ciphertexts. The noise of running totals is finer than the sums.
    pub(super) fn refine(&self, words: &mut [u64]) {
        let noise = self.plan().privacy.as_ref().map_or(&[][..], |privacy| &privacy.noise);
        for (word, row) in words.iter_mut().zip(noise) {
            *word = word.wrapping_shl(row.fraction_bits());
        }
    }

    /// The window that is charged: in running totals all windows together, once.
    pub(super) fn charged_for(&self, window: Window) -> Window {
        self.plan().totals_window().unwrap_or(window)
    }
}

impl Controller {
    /// Records the last share of a plan's running totals. Part of every commit of an answer
    /// that holds a share.
    pub(super) fn totals_record(&mut self, now: Timestamp, plan: PlanId) -> Option<Change> {
        let last = self.plans.get(&plan)?.totals.as_ref()?.last?;
        Some(self.put(now, Record::Totals { plan, last }))
    }

    /// Draws the seeds that a window's share needs, if it is one of running totals.
    ///
    /// # Errors
    /// [`WindowRefusalError::SeedsUnderWay`] if more are missing than messages may draw now.
    pub(super) fn draw_for(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
    ) -> Result<(), WindowRefusalError> {
        self.allowance = self.allowance.of(now);
        let joined = self.plans.get_mut(plan).ok_or(WindowRefusalError::UnknownPlan)?;
        joined.draw_for(self.identity.noise(), window, &mut self.allowance)
    }

    /// Draws some of the seeds of running totals that a controller lacks after a restart or
    /// an absence. Draws at most `most` seeds, except that a window's seeds are drawn
    /// together. A host calls it repeatedly when it is idle, so that nobody waits for
    /// seeds. Returns how many were drawn: fewer than `most` if none are missing any more.
    pub fn draw_ahead(&mut self, most: u32, now: Timestamp) -> u32 {
        let secret = self.identity.noise();
        let lost = |joined: &PlanState| self.restored_at.is_some_and(|at| joined.plan().from < at);
        let mut drawn = 0;
        let running = |joined: &&mut PlanState| joined.ended.is_none() && !lost(joined);
        for joined in self.plans.values_mut().filter(running) {
            if drawn >= most {
                break;
            }
            drawn = joined.draw_ahead(secret, now, most - drawn).saturating_add(drawn);
        }
        drawn
    }

    /// Whether a request was declined because its seeds are not drawn yet.
    #[must_use]
    pub fn lacks_seeds(&self) -> bool {
        let mut totals = self.plans.values().filter_map(|joined| joined.totals.as_ref());
        totals.any(|totals| totals.wanted)
    }

    /// Checks that the seeds of one more plan stay within the limit of a controller.
    pub(super) fn check_seeds(&self, joined: &PlanState) -> Result<(), PlanRefusalError> {
        let running = self.plans.values().map(PlanState::total_seeds).fold(0, u64::saturating_add);
        within_max(running, joined.total_seeds())
    }

    /// The cost of a window as stated in the owners' log. Running totals cost once; each
    /// owner reads it with the first window that includes their streams.
    pub(super) fn costs_to_tell(
        &mut self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<(u16, Cost)> {
        if self.plans.get(plan).is_some_and(|joined| joined.plan().horizon().is_some()) {
            let charged = self.owners_charged(plan, window, accepted);
            let Some(joined) = self.plans.get_mut(plan) else { return Vec::new() };
            let known = joined.cost_logged.len();
            joined.cost_logged.extend(charged);
            if joined.cost_logged.len() == known {
                return Vec::new();
            }
        }
        self.costs(plan, window, accepted)
    }

    /// Settles a plan that has ended: the cost of its running totals is charged to the time
    /// that they may cover, and no longer to the whole planned time. Promises that were never spent
    /// are free again.
    ///
    /// No total includes anything after the last token, so budgets of that later time are
    /// as before. This happens in the commit that ends the plan, so an older copy of the
    /// ledger has the longer span.
    pub(super) fn settle_totals(&mut self, now: Timestamp, plan: PlanId) -> Vec<Change> {
        let Some(joined) = self.plans.get(&plan) else { return Vec::new() };
        let (Some(span), Some(end)) = (joined.plan().totals_window(), joined.ended) else {
            return Vec::new();
        };
        let least = span.start.plus(joined.plan().window);
        let covered = Window { start: span.start, end: end.max(least).min(span.end) };
        let owners = joined.own_streams().map(|(_, planned)| planned.owner).collect();
        let attributes = joined.plan().attributes.clone();
        let mut changes = Vec::new();
        for (owner, attribute) in pairs(&owners, &attributes) {
            let stands = self.books.restate((owner, attribute), plan, (span, covered));
            let Some(record) = stands.filter(|_| covered != span) else { continue };
            changes.push(self.put(now, Record::Budget(record)));
            let entry = Entry::Refunded { plan, window: span };
            let before = BudgetRecord { owner, attribute, entry }.key();
            let key = Record::budget_key(self.id(), &before);
            changes.push(Change::remove(key));
        }
        changes
    }
}

/// Whether this many more seeds may be kept. Plans without seeds always pass.
fn within_max(running: u64, wanted: u64) -> Result<(), PlanRefusalError> {
    match wanted > 0 && running.saturating_add(wanted) > MAX_SEEDS {
        true => Err(PlanRefusalError::TooManySeeds { running, wanted, most: MAX_SEEDS }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_all_plans_together_are_bounded() {
        assert_eq!(within_max(MAX_SEEDS - 5, 5), Ok(()));
        assert_eq!(within_max(MAX_SEEDS, 0), Ok(()));
        let refused = |running, wanted| {
            Err(PlanRefusalError::TooManySeeds { running, wanted, most: MAX_SEEDS })
        };
        assert_eq!(within_max(MAX_SEEDS - 5, 6), refused(MAX_SEEDS - 5, 6));
        assert_eq!(within_max(1, u64::MAX), refused(1, u64::MAX));
    }

    #[test]
    fn the_allowance_of_seeds_is_renewed_with_time() {
        let at = |t| Timestamp(t);
        let used = Allowance { left: 0, ..Allowance::NONE.of(at(5)) };
        assert_eq!(used.of(at(5)).left, 0);
        assert_eq!((used.of(at(4)).left, used.of(at(6)).left), (AT_ONCE, AT_ONCE));
    }
}
