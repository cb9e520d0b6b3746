//! This controller's part in a plan's running totals: seeds, and how far they have
//! been said.

use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use alpheus_policy::time::{Timestamp, Window};

use super::Controller;
use super::joined::Joined;
use crate::announced::Announced;
use crate::error::{PlanRefused, Refused};
use crate::ledger::{Change, Record};
use crate::noise::{NoiseWords, Running, Seeds, seed_generator};

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

    /// The share of the window at this place: the difference to what was said last.
    /// From then on it is the last, whether or not what it is put into is ever heard.
    fn share(
        &mut self,
        secret: &Secret<32>,
        plan: &PlanId,
        place: u32,
    ) -> Result<NoiseWords, Refused> {
        while self.seeds.drawn() <= place {
            let mut generator = seed_generator(secret, plan, self.seeds.drawn());
            self.seeds.extend(&mut generator).map_err(|_| Refused::WrongWindow)?;
        }
        let share = self.seeds.share(self.tables.coefficients(), place, self.last);
        let share = share.map_err(|_| Refused::TotalsOutOfOrder)?;
        self.last = Some(place);
        Ok(share)
    }
}

impl Joined {
    /// Takes what a ledger kept. The log has told what it costs with the first of them.
    pub(super) fn remember_totals(&mut self, last: u32) {
        if let Some(totals) = &mut self.totals {
            totals.last = totals.last.max(Some(last));
            self.untold = false;
        }
    }

    /// Whether a first answer about a window may be given: of running totals it is one
    /// of theirs, none later was opened, and what was said last is known.
    pub(super) fn admit_to_totals(
        &self,
        window: Window,
        restored: Option<Timestamp>,
    ) -> Result<(), Refused> {
        let Some(totals) = &self.totals else { return Ok(()) };
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
        let Some(totals) = &mut self.totals else { return Ok(false) };
        let place = place.ok_or(Refused::WrongWindow)?;
        totals.share(secret, &plan, place)?.add_to(words);
        Ok(true)
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
}
