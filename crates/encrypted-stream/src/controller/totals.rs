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

/// Seeds that are drawn at once, so that others get their turn: up to half a second's.
const AT_ONCE: u32 = 1024;

/// Seeds of the windows so far, secret, and the last window whose opening left.
pub(super) struct Totals {
    tables: Arc<Running>,
    seeds: Seeds,
    last: Option<u32>,
}

impl Totals {
    /// Of a plan that has such; none of another.
    pub(super) fn of(announced: &Announced) -> Result<Option<Self>, PlanRefused> {
        let tables = announced.running().map_err(|_| PlanRefused::NoiseUnfit)?;
        Ok(tables.map(|tables| Self { seeds: tables.seeds(), tables, last: None }))
    }

    /// Draws seeds of the windows up to this place, some at once.
    ///
    /// # Errors
    /// [`Refused::SeedsUnderWay`] if there are more to draw.
    fn draw(&mut self, secret: &Secret<32>, plan: &PlanId, place: u32) -> Result<(), Refused> {
        let windows = (AT_ONCE / self.tables.drawn_rows().max(1)).max(1);
        let most = self.seeds.drawn().saturating_add(windows);
        while self.seeds.drawn() <= place {
            if self.seeds.drawn() >= most {
                let left = (place - self.seeds.drawn()).saturating_add(1);
                return Err(Refused::SeedsUnderWay { left });
            }
            let mut generator = seed_generator(secret, plan, self.seeds.drawn());
            self.seeds.extend(&mut generator).map_err(|_| Refused::WrongWindow)?;
        }
        Ok(())
    }

    /// The share of the window at this place: the difference to what was said last.
    /// From then on it is the last, whether or not what it is put into is ever heard.
    fn share(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
    ) -> Result<NoiseWords, Refused> {
        self.draw(secret, plan, place)?;
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

    /// Draws some more of the seeds that a window's share needs.
    ///
    /// # Errors
    /// [`Refused::SeedsUnderWay`] if there are more to draw: ask again.
    pub(super) fn draw_for(&mut self, secret: &Secret<32>, window: Window) -> Result<(), Refused> {
        let (plan, place) = (self.id(), self.plan().place_in_totals(window));
        let Some(totals) = &mut self.totals else { return Ok(()) };
        totals.draw(secret, &plan, place.ok_or(Refused::WrongWindow)?)
    }

    /// The same for all windows that are over by now, and the next; whether there are more
    /// to draw.
    fn draw_ahead(&mut self, secret: &Secret<32>, now: Timestamp) -> bool {
        let Some(all) = self.plan().cumulated().filter(|all| all.start <= now) else {
            return false;
        };
        let last = Timestamp(all.end.0.saturating_sub(1));
        let window = self.plan().window_at(now.min(last).floor(self.plan().window));
        matches!(self.draw_for(secret, window), Err(Refused::SeedsUnderWay { .. }))
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
        secret: &Secret<32>,
        window: Window,
    ) -> Result<bool, Refused> {
        let plan = self.id();
        let place = self.plan().place_in_totals(window);
        let Some(totals) = &mut self.totals else { return self.without_totals().map(|()| false) };
        let place = place.ok_or(Refused::WrongWindow)?;
        totals.share(secret, &plan, place)?.add_to(words);
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

    /// Draws some of the seeds of running totals that a controller lacks which was
    /// restarted: a host calls it when it has time, again and again, so that nobody waits
    /// for them. Whether there are more to draw.
    pub fn draw_ahead(&mut self, now: Timestamp) -> bool {
        let secret = self.identity.noise();
        let mut running = self.plans.values_mut().filter(|joined| joined.ended.is_none());
        running.any(|joined| joined.draw_ahead(secret, now))
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
