//! The noise of a plan: the request, and the noise of each row that follows from it
//! (`plan_noise`), the schema's bounds and the plan's streams.
//!
//! Neighbouring inputs differ in the *values* of the events of one unit of protection,
//! within the schema's bounds. Participation, times and numbers of events are the same for
//! both, and so is everything that follows from them: populations, silent and excluded
//! streams, which windows open, refusals, and remaining budgets. The guarantee hides none
//! of these. `docs/budget.md` has the equations.

use crate::budget::{
    CalibrationError, Cost, Epsilon, Horizon, Mechanism, NoiseRequest, PrivacyLoss, RowGroup,
    RowNoise, SensitivityError, Slack, calibrate, windows_of,
};
use crate::schema::{Budget, PrivacyUnit};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

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
