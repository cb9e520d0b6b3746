//! The noise that a plan needs: how many honest members draw it, and what each row gets.

use crate::budget::{
    Calibration, Horizon, NoiseShares, RowNoise, calibrate_for, check_noise_fits, groups,
    running_slack_bits,
};
use crate::layout::Layout;
use crate::plan::Plan;
use crate::privacy::{NoiseError, Privacy, slack_bits, touched_windows};
use crate::quorum::{majority, min_controllers_for};
use crate::schema::Schema;
use alpheus_time::{Span, Timestamp, Window};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

impl Plan {
    /// The extent of running totals, if the plan's results are running totals.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        self.privacy.as_ref().and_then(Privacy::horizon)
    }

    /// The span of the running totals: from the plan's first window to its last.
    #[must_use]
    pub fn totals_window(&self) -> Option<Window> {
        let start =
            Timestamp(self.from.0.div_ceil(self.window.0.max(1)).saturating_mul(self.window.0));
        let span = Span(self.window.0.saturating_mul(self.horizon()?.windows.into()));
        Some(Window { start, end: start.plus(span) })
    }

    /// The index of a window in the running totals, from 0. `None` without running totals, or
    /// beyond them.
    #[must_use]
    pub fn index_in_totals(&self, window: Window) -> Option<u32> {
        let all = self.totals_window()?;
        let place = window.start.0.checked_sub(all.start.0)? / self.window.0.max(1);
        let inside = all.start <= window.start && window.end <= all.end;
        u32::try_from(place).ok().filter(|_| inside)
    }

    /// The number of honest controllers in the smallest opening set that any controller
    /// answers, whichever bound is larger. A set of ⌊(N + t)/2⌋ + 1 + r has
    /// ⌊(N + t)/2⌋ + 1 − t of them, since t may collude and r may be cut off. A set that
    /// makes up the minimum population has all but t + r. Noise is never sized for fewer.
    #[must_use]
    pub fn min_honest(&self) -> u32 {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (all, tolerated) = (narrow(self.roster.len()), self.tolerated());
        let max = all.max(1);
        let quorum = majority(all, tolerated).min(max);
        let discounted = self.discounted();
        let fewest =
            min_controllers_for(&self.owners_per_controller(), discounted, self.population.min);
        let populous = fewest.min(max).saturating_sub(discounted);
        quorum.saturating_sub(tolerated).max(populous)
    }

    /// The number of different owners at each controller, in roster order.
    #[must_use]
    pub fn owners_per_controller(&self) -> Vec<u32> {
        let pairs: BTreeSet<_> =
            self.streams.iter().map(|stream| (stream.controller, stream.owner)).collect();
        let mut owners = vec![0_u32; self.roster.len()];
        for (controller, _) in pairs {
            if let Some(count) = owners.get_mut(controller as usize) {
                *count += 1;
            }
        }
        owners
    }

    /// The number of owners as an honest controller counts them if all have data: without those of
    /// the t + r largest controllers.
    #[must_use]
    pub fn counted(&self) -> u32 {
        let mut sizes = self.owners_per_controller();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.iter().skip(self.discounted() as usize).sum()
    }

    /// −log2 of the probability mass that the samplers of all shares of all rows, and the
    /// grids of running totals, may omit.
    #[must_use]
    pub fn slack_bits(&self) -> u32 {
        let (rows, controllers) = (self.release.outputs(), self.roster.len());
        let (Some(privacy), Some(horizon)) = (&self.privacy, self.horizon()) else {
            // A bounded plan's noise is cut, with less probability than that.
            return slack_bits(rows, controllers)
                .saturating_sub(self.integrity.is_bounded().into());
        };
        let fine = privacy.noise.iter().filter_map(|row| match row {
            RowNoise::Running(own) => Some(u32::from(own.fine_bits)),
            _ => None,
        });
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let members = NonZeroU32::new(narrow(controllers)).unwrap_or(NonZeroU32::MIN);
        let grid = running_slack_bits(fine.min().unwrap_or(96), horizon.windows, members, rows);
        // A seed is a share. Rounding its parts instead of the sum differs by at most 2^−113
        // per total.
        let seeds = slack_bits(rows.saturating_mul(horizon.windows as usize), controllers);
        grid.min(seeds).saturating_sub(2)
    }

    /// The noise that the plan needs and its cost for each attribute, or `None` if the plan
    /// adds no noise. The stated rows are ignored.
    ///
    /// # Errors
    /// [`NoiseError`] if noise cannot protect the release.
    pub fn calibration(
        &self,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Option<Calibration>, NoiseError> {
        let Some(privacy) = &self.privacy else { return Ok(None) };
        let (requested, max) = (privacy.events, schema.capacity.events);
        if requested == 0 || requested > max {
            return Err(NoiseError::Events { requested, max });
        }
        if let Some(Horizon { windows, touched: stated }) = privacy.horizon() {
            self.ends_in_time(windows)?;
            let needed = touched_windows(privacy.unit, self.window, windows);
            if stated < needed {
                return Err(NoiseError::Touched { stated, needed });
            }
        }
        let groups = groups(&self.release, schema, layout)?;
        let honest = NonZeroU32::new(self.min_honest()).unwrap_or(NonZeroU32::MIN);
        let needed =
            calibrate_for(&privacy.noise_request(), &groups, self.release.outputs(), honest)?;
        let members = u32::try_from(self.roster.len()).unwrap_or(u32::MAX).max(1);
        let windows = privacy.horizon().map_or(1, |horizon| horizon.windows);
        let (release, rows) = (&self.release, &needed.rows);
        let shared = NoiseShares { honest: honest.get(), members, windows, lost: 0 };
        check_noise_fits(release, rows, schema, layout, shared)?;
        Ok(Some(needed))
    }

    /// All windows of running totals must end at a representable time, because they stay in
    /// their owners' accounts until then.
    fn ends_in_time(&self, windows: u32) -> Result<(), NoiseError> {
        let start = self.totals_window().map_or(Timestamp::LIMIT, |all| all.start);
        let left = Timestamp::LIMIT.0.saturating_sub(start.0);
        let max = left / self.window.0.max(1);
        if u64::from(windows) > max { Err(NoiseError::Beyond { max }) } else { Ok(()) }
    }

    /// The same, and checks that the plan states this noise.
    ///
    /// # Errors
    /// [`NoiseError`]. [`NoiseError::Misstated`] has the first row that differs.
    pub fn check_noise(
        &self,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Option<Calibration>, NoiseError> {
        let Some(needed) = self.calibration(schema, layout)? else { return Ok(None) };
        let stated = self.privacy.as_ref().map_or(&[][..], |privacy| &privacy.noise);
        if let Some(row) = (0..needed.rows.len().max(stated.len()))
            .find(|row| needed.rows.get(*row) != stated.get(*row))
        {
            return Err(NoiseError::Misstated { row });
        }
        Ok(Some(needed))
    }
}
