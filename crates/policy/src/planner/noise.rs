//! The noise of a query: as it asks for, or as policies allow where it does not say.

use super::attempt::item_at;
use super::finding::{Finding, Mend};
use super::population::Candidate;
use super::refusal::Rule;
use super::resolve::Resolved;
use crate::budget::{
    Ask, Horizon, Mechanism, RowGroup, Shared, Slack, Uncalibrated, calibrate, groups, row_spread,
};
use crate::catalog::{CatalogSchema, CatalogStream};
use crate::comply::Demand;
use crate::plan::Plan;
use crate::privacy::{NoiseFault, Privacy, most_epsilon, stronger, touched, windows_within};
use crate::query::{Create, Decimal};
use crate::schema::{Budget, PrivacyUnit};
use crate::select::Statistic;
use std::collections::BTreeSet;

/// What policies under which an attribute is released with noise allow, for all
/// streams that fit a query.
pub(super) struct Offered<'a> {
    schema: &'a CatalogSchema,
    outputs: usize,
    groups: Option<Vec<RowGroup>>,
    budgets: Vec<(u16, Budget)>,
}

impl<'a> Offered<'a> {
    pub(super) fn new<'s>(
        schema: &'a CatalogSchema,
        resolved: &Resolved,
        fitting: impl Iterator<Item = &'s CatalogStream>,
    ) -> Offered<'a> {
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
        Offered { schema, outputs: resolved.release.outputs(), groups, budgets }
    }

    /// What noise must hide to please everybody; a person's window if nobody says.
    fn unit(&self) -> PrivacyUnit {
        let units = self.budgets.iter().map(|(_, budget)| budget.unit);
        units.reduce(stronger).unwrap_or(PrivacyUnit::PersonPerWindow)
    }

    /// The noise that the query asks for, rows left open; none if it asks for none.
    pub(super) fn wanted(&self, create: &Create) -> Option<Privacy> {
        let micro_epsilon = positive(create.settings.epsilon?, 6);
        let events = create.settings.events.unwrap_or(self.schema.schema.capacity.events);
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

    /// How far running totals reach, for whoever's unit lies in the most windows.
    fn horizon(&self, create: &Create) -> Option<Horizon> {
        let steps = create.cumulating?.0 / create.window.0.max(1);
        let windows = u32::try_from(steps).unwrap_or(u32::MAX);
        let units = self.budgets.iter().map(|(_, budget)| budget.unit);
        let most = units.map(|unit| touched(unit, create.window, windows)).max();
        Some(Horizon { windows, touched: most.unwrap_or(1) })
    }

    /// The least δ that any of these policies allows.
    fn least_delta(&self) -> Option<u64> {
        self.budgets.iter().map(|(_, budget)| budget.atto_delta).min()
    }

    /// Laplace noise, or with a δ Skellam noise where that is narrower.
    fn narrower(&self, privacy: &Privacy) -> Mechanism {
        let one = Shared { honest: 1, members: 1, windows: 1, lost: 0 };
        let widest = |mechanism| {
            let sized = calibrate(
                &Ask { mechanism, ..privacy.ask() },
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

    /// The greatest ε that every one of these policies allows of a window; none if
    /// no policy asks for noise, or noise protects no such release.
    pub(super) fn most(&self, create: &Create) -> Option<Decimal> {
        let groups = self.groups.as_ref()?;
        let asked = Create {
            settings: crate::query::Settings {
                epsilon: Some(Decimal::from_scaled(1, 0)),
                ..create.settings.clone()
            },
            ..create.clone()
        };
        let mut ask = self.wanted(&asked)?.ask();
        if ask.mechanism != Mechanism::Laplace && ask.atto_delta == 0 {
            // Of which the last unit is left to samplers, as of any δ that is asked for.
            ask.atto_delta = self.least_delta()?.saturating_sub(1);
        }
        let most = |(attribute, budget): &(u16, Budget)| {
            most_epsilon(&ask, groups, self.outputs, *attribute, budget)
        };
        let all: Option<Vec<u64>> = self.budgets.iter().map(most).collect();
        let micro = all?.into_iter().min()?;
        Some(Decimal::from_scaled(i64::try_from(micro).ok()?, 6))
    }
}

/// Rounded down to places; 0 stands for what is finer, which no noise gives.
fn positive(number: Decimal, places: u8) -> u64 {
    number.scaled_towards_zero(places).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

/// Items that mean nothing once there is noise in their sums.
pub(super) fn meaningless(create: &Create, resolved: &Resolved) -> Vec<Finding> {
    let items = create.items.iter().zip(&resolved.select.items).enumerate();
    items
        .filter(|(_, (_, column))| {
            matches!(
                column.statistic,
                Statistic::Any { .. } | Statistic::All { .. } | Statistic::Distinct { .. }
            )
        })
        .map(|(position, (item, _))| {
            let rule = Rule::NotWithNoise { function: item.name };
            Finding::drop(item.at.0, rule, position)
        })
        .collect()
}

/// Sizes a plan's noise for its members.
pub(super) fn size(
    plan: &mut Plan,
    members: &[Candidate<'_>],
    schema: &CatalogSchema,
) -> Result<(), NoiseFault> {
    let streams_per_owner = plan.most_streams_of_an_owner();
    if let Some(privacy) = &mut plan.privacy {
        let units = || members.iter().filter_map(|member| member.terms.unit);
        privacy.unit = units().reduce(stronger).unwrap_or(privacy.unit);
        privacy.streams_per_owner = streams_per_owner;
        if let Mechanism::Matrix(horizon) = &mut privacy.mechanism {
            let most = units().map(|unit| touched(unit, plan.window, horizon.windows)).max();
            horizon.touched =
                most.unwrap_or(1).max(touched(privacy.unit, plan.window, horizon.windows));
        }
    }
    fill(plan, schema)
}

/// Fills in the rows that follow from the rest.
pub(super) fn fill(plan: &mut Plan, schema: &CatalogSchema) -> Result<(), NoiseFault> {
    let sized = plan.calibrated(&schema.schema, &schema.layout)?;
    if let (Some(privacy), Some(sized)) = (&mut plan.privacy, sized) {
        privacy.noise = sized.rows;
    }
    Ok(())
}

/// What is wrong, and how it could be mended.
pub(super) fn finding(create: &Create, fault: NoiseFault) -> Finding {
    let mend = match fault {
        NoiseFault::Events { most, .. } => Some(Mend::Events(most)),
        NoiseFault::Unprotectable(_) => Some(Mend::NoNoise),
        NoiseFault::Uncalibrated(Uncalibrated::NoDelta | Uncalibrated::TooManySeeds { .. })
            if create.cumulating.is_some() =>
        {
            Some(Mend::Tumbling)
        }
        NoiseFault::Uncalibrated(_)
        | NoiseFault::Touched { .. }
        | NoiseFault::Beyond { .. }
        | NoiseFault::Misstated { .. } => None,
    };
    Finding { at: item_at(create), rule: Rule::Noise { fault: fault.to_string() }, mend }
}

/// How many windows, or running totals of this length, the members' budgets allow, of
/// the one that is spent first; none if nothing is charged to any.
pub(super) fn lasting(demand: &Demand<'_>, members: &[Candidate<'_>]) -> Option<u64> {
    let mut seen = BTreeSet::new();
    let mut least: Option<u64> = None;
    for member in members {
        // Many streams have the same policy.
        let key = postcard::to_allocvec(&member.stream.policy).unwrap_or_default();
        if !seen.insert(key) {
            continue;
        }
        for (_, budget, cost) in demand.charges(&member.stream.policy).unwrap_or_default() {
            let slack = Slack::of(demand.slack_bits(), budget.window_micro_epsilon);
            let windows = windows_within(cost, slack, &budget);
            least = Some(least.map_or(windows, |least| least.min(windows)));
        }
    }
    least
}
