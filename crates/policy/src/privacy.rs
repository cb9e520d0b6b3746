//! The noise of a plan: what is asked for, and what of each row follows from
//! that, the schema's bounds and the plan's streams.
//!
//! Neighbouring inputs differ in the *values* of one unit's events, values of the
//! schema's bounds. Participation, times, numbers of events, and all that follows
//! from them (populations, silent and excluded streams, which windows open, what
//! is refused, what budgets have left) are the same for both: the guarantee hides
//! none of it. `docs/budget.md` has the equations.

use crate::budget::{
    Ask, Calibrated, Horizon, Mechanism, RowGroup, RowNoise, Shared, Slack, Spent, Uncalibrated,
    Unprotectable, calibrate, calibrate_for, groups, holds_noise, running_slack_bits, windows_of,
};
use crate::budget::{Cost, Epsilon};
use crate::layout::Layout;
use crate::plan::Plan;
use crate::quorum::fewest_for;
use crate::schema::{Budget, PrivacyUnit, Schema};
use crate::time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The noise that a plan's windows are released with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privacy {
    /// How noise is drawn.
    pub mechanism: Mechanism,
    /// ε of one window, all attributes together, in millionths; of running totals
    /// that of all windows together.
    pub micro_epsilon: u64,
    /// Its δ in units of 10^−18; 0 only for [`Mechanism::Laplace`].
    pub atto_delta: u64,
    /// What is protected: at least what every policy under which it is released
    /// asks for.
    pub unit: PrivacyUnit,
    /// Most events of one stream in one window. Streams with more are left out
    /// by their controllers, by name: this bounds what one person contributes.
    pub events: u64,
    /// Most streams of one owner in the plan.
    pub streams_per_owner: u32,
    /// Of each row: what the honest members add in all. It follows from the rest;
    /// controllers compute it again, readers need not.
    pub noise: Vec<RowNoise>,
}

/// Why a plan's noise is not what protects its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseFault {
    /// A row that noise cannot protect.
    #[error(transparent)]
    Unprotectable(#[from] Unprotectable),
    /// There is no such noise.
    #[error(transparent)]
    Uncalibrated(#[from] Uncalibrated),
    /// No cap on events, or one above what the schema's words hold.
    #[error(
        "at most {asked} events of a stream in a window are asked for; say 1 to {most}, which is the schema's capacity"
    )]
    Events {
        /// Asked for.
        asked: u64,
        /// The schema's capacity.
        most: u64,
    },
    /// Running totals of a unit that lies in more windows than they are sized for.
    #[error(
        "the running totals are sized for a unit in {stated} windows, and theirs lies in {needed}; plan them anew"
    )]
    Touched {
        /// In the plan.
        stated: u32,
        /// What its unit asks for.
        needed: u32,
    },
    /// Running totals that reach beyond the last time that can be told.
    #[error(
        "the running totals reach to after the year 2112, beyond which no time is told; at most {most} windows fit from there"
    )]
    Beyond {
        /// Windows from the plan's first to that time.
        most: u64,
    },
    /// The plan states other noise than its ε, unit and bounds ask for.
    #[error("the noise of row {row} is not what ε, unit, events and the schema's bounds ask for")]
    Misstated {
        /// The first such row.
        row: usize,
    },
}

impl Privacy {
    /// Events of one unit of protection in one window, at most.
    #[must_use]
    pub fn unit_events(&self) -> u128 {
        match self.unit {
            PrivacyUnit::Event => 1,
            PrivacyUnit::PersonPerWindow | PrivacyUnit::PersonPerPeriod(_) => {
                u128::from(self.events) * u128::from(self.streams_per_owner.max(1))
            }
        }
    }

    /// What is asked of [`calibrate`]. Of δ the last unit is left to what samplers
    /// leave out, of running totals a 1024th as well for what their grids do.
    #[must_use]
    pub fn ask(&self) -> Ask {
        let grids = self.horizon().map_or(0, |_| self.atto_delta / 1024);
        Ask {
            mechanism: self.mechanism,
            micro_epsilon: self.micro_epsilon,
            atto_delta: self.atto_delta.saturating_sub(1 + grids),
            events: self.unit_events(),
        }
    }

    /// Whether it protects what a policy's unit asks for: all of a person's window
    /// holds any one event, never the other way round. Windows add up to a period;
    /// running totals, charged once, must be sized for all windows of it.
    #[must_use]
    pub fn protects(&self, unit: PrivacyUnit, window: Span) -> bool {
        let reaches = |own: Horizon| own.touched >= touched(unit, window, own.windows);
        (self.unit != PrivacyUnit::Event || unit == PrivacyUnit::Event)
            && self.horizon().is_none_or(reaches)
    }

    /// How far running totals reach; none of noise that each window has anew.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        match self.mechanism {
            Mechanism::Matrix(horizon) => Some(horizon),
            _ => None,
        }
    }
}

/// The windows of running totals that the events of one unit can lie in.
#[must_use]
pub fn touched(unit: PrivacyUnit, window: Span, windows: u32) -> u32 {
    windows_of(unit, window).min(windows)
}

/// Of two units the one that protects more.
#[must_use]
pub fn stronger(one: PrivacyUnit, other: PrivacyUnit) -> PrivacyUnit {
    let strength = |unit| match unit {
        PrivacyUnit::Event => 0,
        PrivacyUnit::PersonPerWindow => 1,
        PrivacyUnit::PersonPerPeriod(period) => 1 + u128::from(period.0),
    };
    if strength(other) > strength(one) { other } else { one }
}

impl Plan {
    /// How far running totals reach, where the plan's results are such.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        self.privacy.as_ref().and_then(Privacy::horizon)
    }

    /// What running totals add up: from the plan's first window to its last.
    #[must_use]
    pub fn cumulated(&self) -> Option<Window> {
        let start =
            Timestamp(self.from.0.div_ceil(self.window.0.max(1)).saturating_mul(self.window.0));
        let span = Span(self.window.0.saturating_mul(self.horizon()?.windows.into()));
        Some(Window { start, end: start.plus(span) })
    }

    /// The place of a window among those of the running totals, from 0; none where
    /// the plan has none, or beyond them.
    #[must_use]
    pub fn place_in_totals(&self, window: Window) -> Option<u32> {
        let all = self.cumulated()?;
        let place = window.start.0.checked_sub(all.start.0)? / self.window.0.max(1);
        let inside = all.start <= window.start && window.end <= all.end;
        u32::try_from(place).ok().filter(|_| inside)
    }

    /// Honest controllers in the smallest opening set that any controller answers:
    /// of ⌊(N + t)/2⌋ + 1 + r, less the r that may be cut off, ⌊(N + t)/2⌋ + 1 − t; or
    /// of as many as make up the least population, less t + r. Shares of noise are
    /// never sized for fewer.
    #[must_use]
    pub fn least_honest(&self) -> u32 {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (all, tolerated) = (self.roster.len(), self.tolerated());
        let most = all.max(1);
        let quorum = (all.saturating_add(tolerated) / 2 + 1).min(most);
        let discounted = narrow(self.discounted());
        let fewest = fewest_for(&self.owners_per_controller(), discounted, self.population.min);
        let populous = fewest.min(narrow(most)).saturating_sub(discounted);
        narrow(quorum.saturating_sub(tolerated)).max(populous)
    }

    /// How many different owners each controller stands for, in roster order.
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

    /// −log2 of what the samplers of all shares of all rows, and the grids of running
    /// totals, may leave out.
    #[must_use]
    pub fn slack_bits(&self) -> u32 {
        let (rows, controllers) = (self.release.outputs(), self.roster.len());
        let (Some(privacy), Some(horizon)) = (&self.privacy, self.horizon()) else {
            return slack_bits(rows, controllers);
        };
        let fine = privacy.noise.iter().filter_map(|row| match row {
            RowNoise::Running(own) => Some(u32::from(own.fine_bits)),
            _ => None,
        });
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let members = NonZeroU32::new(narrow(controllers)).unwrap_or(NonZeroU32::MIN);
        let grid = running_slack_bits(fine.min().unwrap_or(96), horizon.windows, members, rows);
        // A seed is a share; that rounding adds up as if once is within 2^−113 a total.
        let seeds = slack_bits(rows.saturating_mul(horizon.windows as usize), controllers);
        grid.min(seeds).saturating_sub(2)
    }

    /// The noise that the plan needs and what it costs each attribute; none where
    /// it adds none. The stated rows have no say in it.
    ///
    /// # Errors
    /// [`NoiseFault`], where noise cannot protect the release.
    pub fn calibrated(
        &self,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Option<Calibrated>, NoiseFault> {
        let Some(privacy) = &self.privacy else { return Ok(None) };
        let (asked, most) = (privacy.events, schema.capacity.events);
        if asked == 0 || asked > most {
            return Err(NoiseFault::Events { asked, most });
        }
        if let Some(Horizon { windows, touched: stated }) = privacy.horizon() {
            self.ends_in_time(windows)?;
            let needed = touched(privacy.unit, self.window, windows);
            if stated < needed {
                return Err(NoiseFault::Touched { stated, needed });
            }
        }
        let groups = groups(&self.release, schema, layout)?;
        let honest = NonZeroU32::new(self.least_honest()).unwrap_or(NonZeroU32::MIN);
        let needed = calibrate_for(&privacy.ask(), &groups, self.release.outputs(), honest)?;
        let members = u32::try_from(self.roster.len()).unwrap_or(u32::MAX).max(1);
        let windows = privacy.horizon().map_or(1, |horizon| horizon.windows);
        let (release, rows) = (&self.release, &needed.rows);
        let shared = Shared { honest: honest.get(), members, windows, lost: 0 };
        holds_noise(release, rows, schema, layout, shared)?;
        Ok(Some(needed))
    }

    /// All windows of running totals end at a time that can be told: until then they
    /// stand in their owners' accounts.
    fn ends_in_time(&self, windows: u32) -> Result<(), NoiseFault> {
        let start = self.cumulated().map_or(Timestamp::LIMIT, |all| all.start);
        let left = Timestamp::LIMIT.0.saturating_sub(start.0);
        let most = left / self.window.0.max(1);
        if u64::from(windows) > most { Err(NoiseFault::Beyond { most }) } else { Ok(()) }
    }

    /// The same, where the plan states what it needs.
    ///
    /// # Errors
    /// [`NoiseFault`]; [`NoiseFault::Misstated`] names the first row that is not as it
    /// must be.
    pub fn checked_noise(
        &self,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Option<Calibrated>, NoiseFault> {
        let Some(needed) = self.calibrated(schema, layout)? else { return Ok(None) };
        let stated = self.privacy.as_ref().map_or(&[][..], |privacy| &privacy.noise);
        if let Some(row) = (0..needed.rows.len().max(stated.len()))
            .find(|row| needed.rows.get(*row) != stated.get(*row))
        {
            return Err(NoiseFault::Misstated { row });
        }
        Ok(Some(needed))
    }
}

/// −log2 of what the samplers of one controller's share of one row may leave out
/// (`noise::SHARE_SLACK_BITS` of the crate that draws it).
const SHARE_SLACK_BITS: u32 = 110;
/// Controllers that a plan is taken to have while nobody knows how many.
const MANY: usize = 1 << 20;

/// −log2 of what the samplers of all shares of all rows may leave out.
#[must_use]
pub fn slack_bits(rows: usize, controllers: usize) -> u32 {
    let controllers = if controllers == 0 { MANY } else { controllers };
    let shares = (rows.max(1) as u128).saturating_mul(controllers as u128);
    SHARE_SLACK_BITS.saturating_sub(shares.next_power_of_two().ilog2())
}

/// Whether one release at this cost is within what a budget allows of one window,
/// with what its samplers leave out.
#[must_use]
pub fn allows_window(cost: Cost, slack_bits: u32, budget: &Budget) -> bool {
    let limit = Epsilon::from_micro(budget.window_micro_epsilon.min(budget.total_micro_epsilon));
    let slack = Slack::of(slack_bits, budget.window_micro_epsilon);
    Spent::default().with(cost, slack).within(limit, budget.atto_delta)
}

/// The greatest ε of a whole release, in millionths, at which it costs `attribute`
/// no more than its budget allows of a window; none if nothing is.
#[must_use]
pub fn most_epsilon(
    ask: &Ask,
    groups: &[RowGroup],
    outputs: usize,
    attribute: u16,
    budget: &Budget,
) -> Option<u64> {
    let fits = |micro_epsilon: u64| {
        let Ok(sized) = calibrate(&Ask { micro_epsilon, ..*ask }, groups, outputs) else {
            return false;
        };
        let own = sized.charges.iter().find(|(charged, _)| *charged == attribute);
        own.is_none_or(|(_, cost)| allows_window(*cost, slack_bits(outputs, 0), budget))
    };
    let (mut low, mut high) = (0, budget.window_micro_epsilon.saturating_mul(groups.len() as u64));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    (low > 0).then_some(low)
}

/// How many windows of this cost a budget allows in all (of one period, where it
/// is by period), at most 2^32.
#[must_use]
pub fn windows_within(cost: Cost, slack: Slack, budget: &Budget) -> u64 {
    let times = |count: u64| {
        let many = u128::from(count);
        let slack = Slack(slack.0.saturating_mul(many));
        let spent = match cost {
            Cost::Pure(epsilon) => Spent {
                epsilon: Epsilon(epsilon.0.saturating_mul(many)),
                rho_of_pure: crate::budget::Rho(epsilon.rho().0.saturating_mul(many)),
                slack,
                ..Spent::default()
            },
            Cost::Concentrated(rho) => Spent {
                rho: crate::budget::Rho(rho.0.saturating_mul(many)),
                slack,
                ..Spent::default()
            },
        };
        spent.within(Epsilon::from_micro(budget.total_micro_epsilon), budget.atto_delta)
    };
    let (mut low, mut high) = (0u64, 1 << 32);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if times(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persons_window_protects_an_event_and_not_the_other_way_round() {
        let of = |unit| Privacy {
            mechanism: Mechanism::Laplace,
            micro_epsilon: 1,
            atto_delta: 0,
            unit,
            events: 7,
            streams_per_owner: 2,
            noise: Vec::new(),
        };
        let day = PrivacyUnit::PersonPerPeriod(Span::seconds(86_400));
        let hour = Span::seconds(3600);
        for strong in [PrivacyUnit::PersonPerWindow, day] {
            assert!(
                of(strong).protects(PrivacyUnit::Event, hour) && of(strong).protects(day, hour)
            );
            assert!(!of(PrivacyUnit::Event).protects(strong, hour));
            assert_eq!((of(strong).unit_events(), of(PrivacyUnit::Event).unit_events()), (14, 1));
        }
        assert_eq!(stronger(PrivacyUnit::Event, day), day);
        assert_eq!(stronger(day, PrivacyUnit::PersonPerWindow), day);
    }

    /// A tenth a window, a hundred in all: a thousand windows if ε adds up, and
    /// many more as zCDP where there is a δ.
    #[test]
    fn budgets_last_as_long_as_their_best_sum() {
        let cost = Cost::Pure(Epsilon::from_micro(100_000));
        let budget = |atto_delta| Budget {
            window_micro_epsilon: 100_000,
            total_micro_epsilon: 10_000_000,
            atto_delta,
            unit: PrivacyUnit::Event,
        };
        assert_eq!(windows_within(cost, Slack(0), &budget(0)), 100);
        let with_delta = windows_within(cost, Slack(0), &budget(1_000_000_000));
        assert!((150..400).contains(&with_delta), "{with_delta}");
        assert_eq!(
            windows_within(Cost::Concentrated(crate::budget::Rho(1)), Slack(0), &budget(0)),
            0
        );
    }
}
