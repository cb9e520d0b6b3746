//! The noise of a plan: the request, and the noise of each row that follows from it, the
//! schema's bounds and the plan's streams.
//!
//! Neighbouring inputs differ in the *values* of the events of one unit of protection,
//! within the schema's bounds. Participation, times and numbers of events are the same for
//! both, and so is everything that follows from them: populations, silent and excluded
//! streams, which windows open, refusals, and remaining budgets. The guarantee hides none
//! of these. `docs/budget.md` has the equations.

use crate::budget::{
    Calibration, CalibrationError, Horizon, Mechanism, NoiseRequest, NoiseShares, PrivacyLoss,
    RowGroup, RowNoise, SensitivityError, Slack, calibrate, calibrate_for, check_noise_fits,
    groups, running_slack_bits, windows_of,
};
use crate::budget::{Cost, Epsilon};
use crate::layout::Layout;
use crate::plan::Plan;
use crate::quorum::{majority, min_controllers_for};
use crate::schema::{Budget, PrivacyUnit, Schema};
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The noise of a plan's windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privacy {
    /// How noise is drawn.
    pub mechanism: Mechanism,
    /// ε of one window over all attributes, in millionths. For running totals, ε of all
    /// windows together.
    pub micro_epsilon: u64,
    /// Its δ in units of 10^−18, 0 only for [`Mechanism::Laplace`].
    pub atto_delta: u64,
    /// The unit of protection: at least that of every policy under which the plan releases.
    pub unit: PrivacyUnit,
    /// Maximum number of events of a stream in a window. Controllers exclude streams with
    /// more, explicitly. This bounds the contribution of one person.
    pub events: u64,
    /// Maximum number of streams of one owner in the plan.
    pub streams_per_owner: u32,
    /// For each row, the noise that the honest members add in total. It follows from the
    /// other fields. Controllers compute it again; readers need not.
    pub noise: Vec<RowNoise>,
}

/// The plan's noise does not protect its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// Noise cannot protect a row.
    #[error(transparent)]
    Sensitivity(#[from] SensitivityError),
    /// No noise meets the request.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// No limit on events, or one above what the schema's words can hold.
    #[error(
        "a limit of {requested} events per stream and window is out of range; use 1 to {max}, the schema's capacity"
    )]
    Events {
        /// The limit in the plan.
        requested: u64,
        /// The schema's capacity.
        max: u64,
    },
    /// Running totals whose unit of protection spans more windows than they are sized for.
    #[error(
        "the running totals are sized for a unit of protection that spans {stated} windows, but it spans {needed}; plan the query again"
    )]
    Touched {
        /// The number in the plan.
        stated: u32,
        /// The number that its unit requires.
        needed: u32,
    },
    /// Running totals that extend past the last representable time.
    #[error(
        "the running totals extend past the year 2112, where the range of times ends; at most {max} windows fit"
    )]
    Beyond {
        /// The number of windows from the plan's first to that time.
        max: u64,
    },
    /// The stated noise does not follow from ε, unit and bounds.
    #[error(
        "the noise of row {row} is not what epsilon, unit, events and the schema's bounds require"
    )]
    Misstated {
        /// The first such row.
        row: usize,
    },
}

impl Privacy {
    /// Maximum number of events of one unit of protection in one window.
    #[must_use]
    pub fn unit_events(&self) -> u128 {
        match self.unit {
            PrivacyUnit::Event => 1,
            PrivacyUnit::PersonPerWindow | PrivacyUnit::PersonPerPeriod(_) => {
                u128::from(self.events) * u128::from(self.streams_per_owner.max(1))
            }
        }
    }

    /// The request for [`calibrate`]. The last unit of δ is reserved for the probability mass
    /// that samplers omit. Running totals also reserve a 1024th for their grids.
    #[must_use]
    pub fn noise_request(&self) -> NoiseRequest {
        let grids = self.horizon().map_or(0, |_| self.atto_delta / 1024);
        NoiseRequest {
            mechanism: self.mechanism,
            micro_epsilon: self.micro_epsilon,
            atto_delta: self.atto_delta.saturating_sub(1 + grids),
            events: self.unit_events(),
        }
    }

    /// Whether it protects a policy's unit. Protecting a person's window protects any one
    /// event, but not the other way round. Windows add up to a period. Running totals are
    /// charged once, so they must be sized for all windows of the period.
    #[must_use]
    pub fn protects(&self, unit: PrivacyUnit, window: Span) -> bool {
        let reaches = |own: Horizon| own.touched >= touched_windows(unit, window, own.windows);
        (self.unit != PrivacyUnit::Event || unit == PrivacyUnit::Event)
            && self.horizon().is_none_or(reaches)
    }

    /// The extent of running totals, or `None` if each window has its own noise.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        match self.mechanism {
            Mechanism::Matrix(horizon) => Some(horizon),
            _ => None,
        }
    }
}

/// The number of windows of running totals that the events of one unit can span.
#[must_use]
pub fn touched_windows(unit: PrivacyUnit, window: Span, windows: u32) -> u32 {
    windows_of(unit, window).min(windows)
}

/// The unit that protects more.
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

/// −log2 of the probability mass that the samplers of one controller's share of one row may
/// omit (`noise::SHARE_SLACK_BITS` in the crate that draws it).
const SHARE_SLACK_BITS: u32 = 110;
/// Assumed number of controllers while it is unknown.
const ASSUMED_CONTROLLERS: usize = 1 << 20;

/// −log2 of the probability mass that the samplers of all shares of all rows may omit.
#[must_use]
pub fn slack_bits(rows: usize, controllers: usize) -> u32 {
    let controllers = if controllers == 0 { ASSUMED_CONTROLLERS } else { controllers };
    let shares = (rows.max(1) as u128).saturating_mul(controllers as u128);
    SHARE_SLACK_BITS.saturating_sub(shares.next_power_of_two().ilog2())
}

/// Whether a release at this cost is within a budget's limit per window, including what
/// its samplers omit.
#[must_use]
pub fn allows_window(cost: Cost, slack_bits: u32, budget: &Budget) -> bool {
    let limit = Epsilon::from_micro(budget.window_micro_epsilon.min(budget.total_micro_epsilon));
    let slack = Slack::of(slack_bits, budget.window_micro_epsilon);
    PrivacyLoss::default().with(cost, slack).within(limit, budget.atto_delta)
}

/// The largest ε of a whole release, in millionths, at which the cost for `attribute` is
/// within its budget per window. `None` if no ε is.
#[must_use]
pub fn max_epsilon(
    request: &NoiseRequest,
    groups: &[RowGroup],
    outputs: usize,
    attribute: u16,
    budget: &Budget,
) -> Option<u64> {
    let fits = |micro_epsilon: u64| {
        let Ok(sized) = calibrate(&NoiseRequest { micro_epsilon, ..*request }, groups, outputs)
        else {
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

/// How many windows of this cost a budget allows in total (in one period, if it is per
/// period), at most 2^32.
#[must_use]
pub fn windows_within(cost: Cost, slack: Slack, budget: &Budget) -> u64 {
    let times = |count: u64| {
        let spent = PrivacyLoss::of_many(cost, slack, count);
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
    fn protecting_a_persons_window_protects_an_event_but_not_vice_versa() {
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

    /// 0.1 per window and 10 in total: a hundred windows if ε adds up, and more as zCDP if
    /// there is a δ.
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
