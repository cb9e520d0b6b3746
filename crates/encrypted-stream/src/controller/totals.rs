//! This controller's part in a plan's running totals: seeds, and how far they have
//! been said.

use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_policy::budget::{BudgetRecord, Cost, Entry};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::budgets::pairs;
use super::joined::Joined;
use crate::announced::Announced;
use crate::error::{PlanRefused, Refused};
use crate::ledger::{Change, Record};
use crate::noise::{NoiseWords, Running, Seeds, seed_generator};

/// Seeds that messages of one time have drawn, in whole windows, of each controller: a host
/// takes all messages of a post at one time, and nobody else gets their turn meanwhile.
const AT_ONCE: u32 = 8;
/// Seeds of all running plans of a controller together: 16 bytes each.
const MOST_SEEDS: u64 = 1 << 20;

/// Seeds of the windows so far, secret, and the last window whose opening left.
pub(super) struct Totals {
    tables: Arc<Running>,
    seeds: Seeds,
    last: Option<u32>,
    /// Whether an answer waits for seeds.
    wanted: bool,
}

/// How many seeds messages may still have drawn.
#[derive(Clone, Copy)]
pub(super) struct Allowance {
    at: Timestamp,
    left: u32,
}

impl Allowance {
    pub(super) const NONE: Allowance = Allowance { at: Timestamp(0), left: 0 };

    /// That of this time, also where a clock was put back.
    fn of(self, now: Timestamp) -> Self {
        if now != self.at { Allowance { at: now, left: AT_ONCE } } else { self }
    }
}

impl Totals {
    /// Of a plan that has such; none of another.
    pub(super) fn of(announced: &Announced) -> Result<Option<Self>, PlanRefused> {
        let tables = announced.running().map_err(|_| PlanRefused::NoiseUnfit)?;
        Ok(tables.map(|tables| Self { seeds: tables.seeds(), tables, last: None, wanted: false }))
    }

    /// Draws seeds of the windows up to this place, of so many at most. Says how many.
    fn draw(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
        most: u32,
    ) -> Result<u32, Refused> {
        let before = self.seeds.drawn();
        let until = place.saturating_add(1).min(before.saturating_add(most));
        while self.seeds.drawn() < until {
            let mut generator = seed_generator(secret, plan, self.seeds.drawn());
            self.seeds.extend(&mut generator).map_err(|_| Refused::WrongWindow)?;
        }
        self.wanted &= self.seeds.drawn() <= place;
        Ok(self.seeds.drawn() - before)
    }

    /// The same while an answer waits for them, within what messages may have drawn now.
    ///
    /// # Errors
    /// [`Refused::SeedsUnderWay`] if there are more to draw.
    fn draw_within(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
        allowance: &mut Allowance,
    ) -> Result<(), Refused> {
        let rows = self.tables.drawn_rows().max(1);
        let drawn = self.draw(secret, plan, place, allowance.left.div_ceil(rows))?;
        allowance.left = allowance.left.saturating_sub(drawn.saturating_mul(rows));
        match place.saturating_add(1).saturating_sub(self.seeds.drawn()) {
            0 => Ok(()),
            left => {
                self.wanted = true;
                Err(Refused::SeedsUnderWay { left })
            }
        }
    }

    /// Seeds of all its windows together.
    fn most_seeds(&self) -> u64 {
        let windows = u64::from(self.tables.coefficients().windows());
        windows.saturating_mul(self.tables.drawn_rows().into())
    }

    /// The share of the window at this place: the difference to what was said last.
    /// From then on it is the last, whether or not what it is put into is ever heard.
    fn share(&mut self, place: u32) -> Result<NoiseWords, Refused> {
        let share = self.seeds.share(self.tables.coefficients(), place, self.last);
        let share = share.map_err(|_| Refused::TotalsOutOfOrder)?;
        self.last = Some(place);
        Ok(share)
    }
}

impl Joined {
    /// Takes what a ledger kept.
    pub(super) fn remember_totals(&mut self, last: u32) {
        if let Some(totals) = &mut self.totals {
            totals.last = totals.last.max(Some(last));
        }
    }

    /// Takes a line of the owners' log that told what a window costs.
    pub(super) fn remember_told(&mut self, streams: &[StreamId]) {
        let concerned = |own: &StreamId| streams.binary_search(own).is_ok();
        let told = self.own_streams().filter(|(_, planned)| concerned(&planned.stream));
        let told: Vec<OwnerId> = told.map(|(_, planned)| planned.owner).collect();
        self.told.extend(told);
    }

    /// Draws some more of the seeds that a window's share needs, before anybody counts on it.
    ///
    /// # Errors
    /// [`Refused::SeedsUnderWay`] if there are more to draw: ask again.
    fn draw_for(
        &mut self,
        secret: &Secret<32>,
        window: Window,
        allowance: &mut Allowance,
    ) -> Result<(), Refused> {
        let (plan, place) = (self.id(), self.plan().place_in_totals(window));
        let Some(totals) = &mut self.totals else { return Ok(()) };
        totals.draw_within(secret, &plan, place.ok_or(Refused::WrongWindow)?, allowance)
    }

    /// The same for all windows that are over by now, and the next, if this controller has
    /// a share in these totals: whoever announces plans has nothing drawn by that alone.
    /// How many windows' seeds were drawn, of so many seeds at most, but of one window.
    fn draw_ahead(&mut self, secret: &Secret<32>, now: Timestamp, most: u32) -> u32 {
        let Some(all) = self.plan().cumulated().filter(|all| all.start <= now) else { return 0 };
        let last = Timestamp(all.end.0.saturating_sub(1));
        let window = self.plan().window_at(now.min(last).floor(self.plan().window));
        let (plan, place) = (self.id(), self.plan().place_in_totals(window));
        let (Some(place), Some(totals)) = (place, &mut self.totals) else { return 0 };
        let mut rounds = self.rounds.values();
        let shares = totals.wanted || totals.last.is_some();
        if !shares && !rounds.any(|round| round.membership().is_some()) {
            return 0;
        }
        let rows = totals.tables.drawn_rows().max(1);
        let drawn = totals.draw(secret, &plan, place, most.div_ceil(rows)).unwrap_or(0);
        drawn.saturating_mul(rows)
    }

    /// Seeds of all windows of its totals.
    pub(super) fn most_seeds(&self) -> u64 {
        self.totals.as_ref().map_or(0, Totals::most_seeds)
    }

    /// Whether a first answer about a window may be given: of running totals it is one
    /// of theirs, none later was opened, and what was said last is known.
    pub(super) fn admit_to_totals(
        &self,
        window: Window,
        restored: Option<Timestamp>,
    ) -> Result<(), Refused> {
        let Some(totals) = &self.totals else { return self.without_totals() };
        let place = self.plan().place_in_totals(window).ok_or(Refused::WrongWindow)?;
        if restored.is_some_and(|restored| self.plan().from < restored) {
            return Err(Refused::TotalsLost);
        }
        if totals.last.is_some_and(|last| place <= last) {
            return Err(Refused::TotalsOutOfOrder);
        }
        Ok(())
    }

    /// Adds this controller's share of the running totals; false if the plan has none.
    pub(super) fn add_to_totals(
        &mut self,
        words: &mut [u64],
        window: Window,
    ) -> Result<bool, Refused> {
        let place = self.plan().place_in_totals(window);
        let Some(totals) = &mut self.totals else { return self.without_totals().map(|()| false) };
        let place = place.ok_or(Refused::WrongWindow)?;
        totals.share(place)?.add_to(words);
        Ok(true)
    }

    /// A plan without seeds has never had any, or has ended.
    fn without_totals(&self) -> Result<(), Refused> {
        if self.plan().horizon().is_some() { Err(Refused::PlanEnded) } else { Ok(()) }
    }

    /// Multiplies a token's key sums by 2^f, row by row, as the service does with the
    /// ciphertexts': the noise of running totals is finer than the sums.
    pub(super) fn refine(&self, words: &mut [u64]) {
        let noise = self.plan().privacy.as_ref().map_or(&[][..], |privacy| &privacy.noise);
        for (word, row) in words.iter_mut().zip(noise) {
            *word = word.wrapping_shl(row.fraction_bits());
        }
    }

    /// What is charged for a window: of running totals all of them, once.
    pub(super) fn charged_for(&self, window: Window) -> Window {
        self.plan().cumulated().unwrap_or(window)
    }
}

impl Controller {
    /// How far a plan's running totals have been said: in every commit of an answer that
    /// holds a share of them.
    pub(super) fn totals_record(&mut self, now: Timestamp, plan: PlanId) -> Option<Change> {
        let last = self.plans.get(&plan)?.totals.as_ref()?.last?;
        Some(self.put(now, Record::Totals { plan, last }))
    }

    /// Has seeds ready that a window's share needs, if it is one of running totals.
    ///
    /// # Errors
    /// [`Refused::SeedsUnderWay`] if more are missing than messages may have drawn now.
    pub(super) fn draw_for(
        &mut self,
        now: Timestamp,
        plan: &PlanId,
        window: Window,
    ) -> Result<(), Refused> {
        self.allowance = self.allowance.of(now);
        let joined = self.plans.get_mut(plan).ok_or(Refused::UnknownPlan)?;
        joined.draw_for(self.identity.noise(), window, &mut self.allowance)
    }

    /// Draws some of the seeds of running totals that a controller lacks which was
    /// restarted or away, so many at most (but those of a window together): a host calls it
    /// when it has time, again and again, so that nobody waits for them. How many were
    /// drawn; fewer than `most` if no more are missing.
    pub fn draw_ahead(&mut self, now: Timestamp, most: u32) -> u32 {
        let secret = self.identity.noise();
        let lost = |joined: &Joined| self.restored.is_some_and(|at| joined.plan().from < at);
        let mut drawn = 0;
        let running = |joined: &&mut Joined| joined.ended.is_none() && !lost(joined);
        for joined in self.plans.values_mut().filter(running) {
            if drawn >= most {
                break;
            }
            drawn = joined.draw_ahead(secret, now, most - drawn).saturating_add(drawn);
        }
        drawn
    }

    /// Whether an answer was declined because its seeds are not drawn yet.
    #[must_use]
    pub fn lacks_seeds(&self) -> bool {
        let mut totals = self.plans.values().filter_map(|joined| joined.totals.as_ref());
        totals.any(|totals| totals.wanted)
    }

    /// Whether seeds of one more plan stay within what a controller keeps.
    pub(super) fn check_seeds(&self, joined: &Joined) -> Result<(), PlanRefused> {
        let running = self.plans.values().map(Joined::most_seeds).fold(0, u64::saturating_add);
        within_most(running, joined.most_seeds())
    }

    /// What the owners' log says that a window costs: running totals cost once, which
    /// each owner reads with the first window that their streams are in.
    pub(super) fn costs_to_tell(
        &mut self,
        plan: &PlanId,
        window: Window,
        accepted: &[u32],
    ) -> Vec<(u16, Cost)> {
        if self.plans.get(plan).is_some_and(|joined| joined.plan().horizon().is_some()) {
            let charged = self.owners_charged(plan, window, accepted);
            let Some(joined) = self.plans.get_mut(plan) else { return Vec::new() };
            let known = joined.told.len();
            joined.told.extend(charged);
            if joined.told.len() == known {
                return Vec::new();
            }
        }
        self.costs(plan, window, accepted)
    }

    /// A plan has ended: what its running totals cost stands under the time that they may
    /// have told something of, and no longer under all that was planned. What was
    /// promised and never spent is free.
    ///
    /// Nothing that began after the last token is in any total, so budgets of that time
    /// are as they were. In the commit that ends the plan: an older copy of the ledger has
    /// the longer span.
    pub(super) fn settle_totals(&mut self, now: Timestamp, plan: PlanId) -> Vec<Change> {
        let Some(joined) = self.plans.get(&plan) else { return Vec::new() };
        let (Some(span), Some(end)) = (joined.plan().cumulated(), joined.ended) else {
            return Vec::new();
        };
        let least = span.start.plus(joined.plan().window);
        let told = Window { start: span.start, end: end.max(least).min(span.end) };
        let owners = joined.own_streams().map(|(_, planned)| planned.owner).collect();
        let attributes = joined.plan().attributes.clone();
        let mut changes = Vec::new();
        for (owner, attribute) in pairs(&owners, &attributes) {
            let stands = self.books.restate((owner, attribute), plan, (span, told));
            let Some(record) = stands.filter(|_| told != span) else { continue };
            changes.push(self.put(now, Record::Budget(record)));
            let entry = Entry::Refunded { plan, window: span };
            let before = BudgetRecord { owner, attribute, entry }.key();
            let key = Record::budget_key(self.id(), &before);
            changes.push(Change { key, value: None });
        }
        changes
    }
}

/// Whether so many more seeds may be kept. Plans without any are none of this.
fn within_most(running: u64, wanted: u64) -> Result<(), PlanRefused> {
    match wanted > 0 && running.saturating_add(wanted) > MOST_SEEDS {
        true => Err(PlanRefused::TooManySeeds { running, wanted, most: MOST_SEEDS }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_all_plans_together_are_bounded() {
        assert_eq!(within_most(MOST_SEEDS - 5, 5), Ok(()));
        assert_eq!(within_most(MOST_SEEDS, 0), Ok(()));
        let refused =
            |running, wanted| Err(PlanRefused::TooManySeeds { running, wanted, most: MOST_SEEDS });
        assert_eq!(within_most(MOST_SEEDS - 5, 6), refused(MOST_SEEDS - 5, 6));
        assert_eq!(within_most(1, u64::MAX), refused(1, u64::MAX));
    }

    #[test]
    fn what_messages_may_have_drawn_comes_back_with_time() {
        let at = |t| Timestamp(t);
        let used = Allowance { left: 0, ..Allowance::NONE.of(at(5)) };
        assert_eq!(used.of(at(5)).left, 0);
        assert_eq!((used.of(at(4)).left, used.of(at(6)).left), (AT_ONCE, AT_ONCE));
    }
}
