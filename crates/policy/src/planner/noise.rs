//! The noise of a query: as requested, or as policies allow if it does not say.

use super::BudgetLife;
use super::attempt::item_at;
use super::error::RuleError;
use super::finding::{Finding, Fix};
use super::population::Candidate;
use super::resolve::ResolvedItems;
use crate::budget::{
    CalibrationError, Cost, Horizon, Mechanism, NoiseRequest, NoiseShares, PrivacyLoss, RowGroup,
    Slack, calibrate, groups, row_spread,
};
use crate::catalog::{CatalogSchema, CatalogStream};
use crate::comply::Demand;
use crate::plan::Plan;
use crate::privacy::{NoiseError, Privacy, max_epsilon, stronger, touched_windows, windows_within};
use crate::query::{Create, Decimal};
use crate::schema::{Budget, PrivacyUnit};
use crate::select::Statistic;
use alpheus_time::Span;
use std::collections::BTreeSet;

/// What policies with noise allow, for all streams that match a query.
pub(super) struct NoiseOffers<'a> {
    schema: &'a CatalogSchema,
    outputs: usize,
    groups: Option<Vec<RowGroup>>,
    budgets: Vec<(u16, Budget)>,
}

impl<'a> NoiseOffers<'a> {
    pub(super) fn new<'s>(
        schema: &'a CatalogSchema,
        resolved: &ResolvedItems,
        fitting: impl Iterator<Item = &'s CatalogStream>,
    ) -> NoiseOffers<'a> {
        let mut budgets: Vec<(u16, Budget)> = Vec::new();
        for stream in fitting {
            for attribute in &resolved.attributes {
                let own = stream.policy.attribute(*attribute).into_iter();
                for budget in own.flat_map(|own| &own.alternatives).filter_map(|own| own.budget) {
                    if !budgets.contains(&(*attribute, budget)) {
                        budgets.push((*attribute, budget));
                    }
                }
            }
        }
        let groups = groups(&resolved.release, &schema.schema, &schema.layout).ok();
        NoiseOffers { schema, outputs: resolved.release.outputs(), groups, budgets }
    }

    /// The unit of protection that satisfies every policy. A person's window if none sets it.
    fn unit(&self) -> PrivacyUnit {
        let units = self.budgets.iter().map(|(_, budget)| budget.unit);
        units.reduce(stronger).unwrap_or(PrivacyUnit::PersonPerWindow)
    }

    /// The noise that the query requests, without its rows, if it requests any.
    pub(super) fn request(&self, create: &Create) -> Option<Privacy> {
        let micro_epsilon = positive(create.settings.epsilon?, 6);
        let own = self.schema.schema.capacity.events_in(create.window);
        let events = create.settings.events.unwrap_or(own);
        let delta = create.settings.delta.map_or(0, |delta| positive(delta, 18));
        let mut privacy = Privacy {
            mechanism: Mechanism::Laplace,
            micro_epsilon,
            atto_delta: delta,
            unit: self.unit(),
            events,
            streams_per_owner: 1,
            noise: Vec::new(),
        };
        if let Some(horizon) = self.horizon(create) {
            privacy.mechanism = Mechanism::Matrix(horizon);
            if create.settings.delta.is_none() {
                privacy.atto_delta = self.least_delta().unwrap_or(0);
            }
            return Some(privacy);
        }
        privacy.mechanism = create.settings.mechanism.unwrap_or_else(|| self.narrower(&privacy));
        if privacy.mechanism == Mechanism::Laplace {
            privacy.atto_delta = 0;
        }
        Some(privacy)
    }

    /// The extent of running totals, for the unit that spans the most windows.
    fn horizon(&self, create: &Create) -> Option<Horizon> {
        let steps = create.cumulating?.0 / create.window.0.max(1);
        let windows = u32::try_from(steps).unwrap_or(u32::MAX);
        let units = self.budgets.iter().map(|(_, budget)| budget.unit);
        let most = units.map(|unit| touched_windows(unit, create.window, windows)).max();
        Some(Horizon { windows, touched: most.unwrap_or(1) })
    }

    /// The smallest δ of these policies.
    fn least_delta(&self) -> Option<u64> {
        self.budgets.iter().map(|(_, budget)| budget.atto_delta).min()
    }

    /// Laplace noise, or Skellam noise if there is a δ and it is narrower.
    fn narrower(&self, privacy: &Privacy) -> Mechanism {
        let one = NoiseShares { honest: 1, members: 1, windows: 1, lost: 0 };
        let widest = |mechanism| {
            let sized = calibrate(
                &NoiseRequest { mechanism, ..privacy.noise_request() },
                self.groups.as_deref()?,
                self.outputs,
            );
            let rows = sized.ok()?.rows;
            rows.iter().map(|row| row_spread(row, one).deviation).reduce(f64::max)
        };
        match (widest(Mechanism::Laplace), widest(Mechanism::Skellam)) {
            (laplace, Some(skellam)) if laplace.is_none_or(|laplace| skellam < laplace) => {
                Mechanism::Skellam
            }
            _ => Mechanism::Laplace,
        }
    }

    /// The largest ε per window that all these policies allow. `None` if no policy requires
    /// noise, or noise cannot protect the release.
    pub(super) fn max_epsilon(&self, create: &Create) -> Option<Decimal> {
        let groups = self.groups.as_ref()?;
        let asked = Create {
            settings: crate::query::Settings {
                epsilon: Some(Decimal::from_scaled(1, 0)),
                ..create.settings.clone()
            },
            ..create.clone()
        };
        let mut request = self.request(&asked)?.noise_request();
        if request.mechanism != Mechanism::Laplace && request.atto_delta == 0 {
            // The last unit is reserved for samplers, as of any requested δ.
            request.atto_delta = self.least_delta()?.saturating_sub(1);
        }
        let most = |(attribute, budget): &(u16, Budget)| {
            max_epsilon(&request, groups, self.outputs, *attribute, budget)
        };
        let all: Option<Vec<u64>> = self.budgets.iter().map(most).collect();
        let micro = all?.into_iter().min()?;
        Some(Decimal::from_scaled(i64::try_from(micro).ok()?, 6))
    }
}

/// Rounded down to `places`. Smaller numbers become 0, which no noise meets.
fn positive(number: Decimal, places: u8) -> u64 {
    number.scaled_towards_zero(places).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

/// Items that have no meaning if their sums contain noise.
pub(super) fn meaningless(create: &Create, resolved: &ResolvedItems) -> Vec<Finding> {
    let items = create.items.iter().zip(&resolved.select.items).enumerate();
    items
        .filter(|(_, (_, column))| {
            matches!(
                column.statistic,
                Statistic::Any { .. } | Statistic::All { .. } | Statistic::Distinct { .. }
            )
        })
        .map(|(position, (item, _))| {
            let rule = RuleError::NotWithNoise { function: item.name };
            Finding::drop(item.at.0, rule, position)
        })
        .collect()
}

/// Sizes a plan's noise for its members.
pub(super) fn size(
    plan: &mut Plan,
    members: &[Candidate<'_>],
    schema: &CatalogSchema,
) -> Result<(), NoiseError> {
    let streams_per_owner = plan.max_streams_per_owner();
    if let Some(privacy) = &mut plan.privacy {
        let units = || members.iter().filter_map(|member| member.terms.unit);
        privacy.unit = units().reduce(stronger).unwrap_or(privacy.unit);
        privacy.streams_per_owner = streams_per_owner;
        if let Mechanism::Matrix(horizon) = &mut privacy.mechanism {
            let most =
                units().map(|unit| touched_windows(unit, plan.window, horizon.windows)).max();
            horizon.touched =
                most.unwrap_or(1).max(touched_windows(privacy.unit, plan.window, horizon.windows));
        }
    }
    fill(plan, schema)
}

/// Fills in the rows that follow from the rest.
pub(super) fn fill(plan: &mut Plan, schema: &CatalogSchema) -> Result<(), NoiseError> {
    let sized = plan.calibration(&schema.schema, &schema.layout)?;
    if let (Some(privacy), Some(sized)) = (&mut plan.privacy, sized) {
        privacy.noise = sized.rows;
    }
    Ok(())
}

/// The finding for an error about noise, with a fix if there is one.
pub(super) fn finding(create: &Create, fault: NoiseError) -> Finding {
    let fix = match fault {
        NoiseError::Events { max, .. } => Some(Fix::Events(max)),
        NoiseError::Sensitivity(_) => Some(Fix::NoNoise),
        NoiseError::Calibration(
            CalibrationError::NoDelta | CalibrationError::TooManySeeds { .. },
        ) if create.cumulating.is_some() => Some(Fix::Tumbling),
        NoiseError::Calibration(_)
        | NoiseError::Touched { .. }
        | NoiseError::Beyond { .. }
        | NoiseError::Misstated { .. } => None,
    };
    Finding { at: item_at(create), rule: RuleError::Noise { fault: fault.to_string() }, fix }
}

/// How long the members' budgets last, and the most that one member's allow. `None` if
/// nothing is charged.
pub(super) fn budget_life(
    demand: &Demand<'_>,
    members: &[Candidate<'_>],
    plan: &Plan,
) -> Option<BudgetLife> {
    // Running totals are charged once.
    let window = if plan.horizon().is_some() { None } else { Some(plan.window) };
    let mut seen = BTreeSet::new();
    let mut life: Option<BudgetLife> = None;
    for member in members {
        // Many streams have the same policy.
        let key = postcard::to_allocvec(&member.stream.policy).unwrap_or_default();
        if !seen.insert(key) {
            continue;
        }
        let charges = demand.charges(&member.stream.policy).unwrap_or_default();
        let own = life_of(&charges, demand.slack_bits(), window);
        life = [life, own].into_iter().flatten().reduce(BudgetLife::worse);
    }
    life
}

/// How long one member's budgets last: until the first attribute's is used up.
fn life_of(
    charges: &[(u16, Budget, Cost)],
    slack_bits: u32,
    window: Option<Span>,
) -> Option<BudgetLife> {
    let lasts = |(_, budget, cost): &(u16, Budget, Cost)| {
        windows_within(*cost, Slack::of(slack_bits, budget.window_micro_epsilon), budget)
    };
    let windows = charges.iter().map(lasts).min()?;
    let spent = |(_, budget, cost): &(u16, Budget, Cost)| match cost {
        Cost::Pure(epsilon) => {
            let all = u128::from(epsilon.floor_micro() + 1).saturating_mul(windows.into());
            u64::try_from(all).unwrap_or(u64::MAX).min(budget.total_micro_epsilon)
        }
        Cost::Concentrated(_) => budget.total_micro_epsilon,
    };
    let period = |(_, budget, _): &(u16, Budget, Cost)| match budget.unit {
        PrivacyUnit::PersonPerPeriod(period) => Some(period),
        PrivacyUnit::Event | PrivacyUnit::PersonPerWindow => None,
    };
    Some(BudgetLife {
        windows,
        total_micro_epsilon: charges.iter().map(spent).fold(0, u64::saturating_add),
        period: charges.iter().map(period).min().flatten(),
        day_micro_epsilon: spent_in(Span::DAY, charges, slack_bits, window),
        year_micro_epsilon: spent_in(Span(365 * Span::DAY.0), charges, slack_bits, window),
    })
}

/// What all windows of a span cost, in millionths of ε rounded up, added up over attributes. No
/// more windows open than the budgets allow.
fn spent_in(
    span: Span,
    charges: &[(u16, Budget, Cost)],
    slack_bits: u32,
    window: Option<Span>,
) -> u64 {
    let of = |(_, budget, cost): &(u16, Budget, Cost)| {
        let slack = Slack::of(slack_bits, budget.window_micro_epsilon);
        let lasts = windows_within(*cost, slack, budget);
        let begun = |part: Span| window.map_or(1, |own| part.0.div_ceil(own.0.max(1)));
        let windows = match budget.unit {
            PrivacyUnit::PersonPerPeriod(period) if period.0 < span.0 => {
                let periods = span.0.div_ceil(period.0.max(1));
                begun(period).min(lasts).saturating_mul(periods)
            }
            _ => begun(span).min(lasts),
        };
        let spent = PrivacyLoss::of_many(*cost, slack, windows);
        let epsilon = spent.min_epsilon(budget.atto_delta);
        epsilon.map_or(budget.total_micro_epsilon, |own| own.ceil_micro())
    };
    charges.iter().map(of).fold(0, u64::saturating_add)
}

impl BudgetLife {
    /// The fewer windows, the larger total, and the period without end if there is one.
    pub(super) fn worse(self, other: Self) -> Self {
        Self {
            windows: self.windows.min(other.windows),
            total_micro_epsilon: self.total_micro_epsilon.max(other.total_micro_epsilon),
            period: self.period.zip(other.period).map(|(a, b)| a.min(b)),
            day_micro_epsilon: self.day_micro_epsilon.max(other.day_micro_epsilon),
            year_micro_epsilon: self.year_micro_epsilon.max(other.year_micro_epsilon),
        }
    }
}
