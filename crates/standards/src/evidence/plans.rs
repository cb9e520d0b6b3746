//! Plans as they are stated: who takes part, what noise is added, and what that costs.

use super::PlanCost;
use super::lines::{ChargeLine, CostLine, GroupLine, NoiseLine, PlanLine};
use alpheus_policy::budget::{Cost, RowGroup, groups};
use alpheus_policy::catalog::CatalogSchema;
use alpheus_policy::columns::columns;
use alpheus_policy::ids::OwnerId;
use alpheus_policy::plan::Plan;
use alpheus_policy::privacy::Privacy;
use std::collections::BTreeSet;

/// A plan's line, and what its rows cost.
pub(super) fn describe<'a>(
    plan: &'a Plan,
    schema: &CatalogSchema,
    running: bool,
    announcement: Option<String>,
) -> (PlanLine<'a>, PlanCost) {
    let CatalogSchema { schema, layout, .. } = schema;
    let owners: BTreeSet<OwnerId> = plan.streams.iter().map(|stream| stream.owner).collect();
    let charges = plan.calibration(schema, layout).ok().flatten();
    let charges = charges.map_or_else(Vec::new, |needed| needed.charges);
    let slack_bits = plan.slack_bits();
    let noise = plan.privacy.as_ref().map(|asked| {
        let all = groups(&plan.release, schema, layout).unwrap_or_default().into_iter();
        let groups = all.map(|group| group_line(group, asked)).collect();
        let charges = charge_lines(&charges);
        NoiseLine { asked, groups, charges, slack_bits }
    });
    let (epochs, once) = (plan.is_terms(), plan.horizon().is_some());
    let line = PlanLine {
        id: plan.id().to_string(),
        query: &plan.name,
        consumer: &plan.consumer,
        running,
        epochs,
        sealed: plan.sealed_to.is_some(),
        integrity: plan.integrity.word(),
        group: &plan.group,
        window_us: plan.window.0,
        from_us: plan.from.0,
        population: [plan.population.min, plan.population.max],
        alpha: plan.alpha,
        colluders: plan.colluders,
        dropout: plan.dropout,
        tolerated: plan.tolerated(),
        controllers: plan.roster.len(),
        streams: plan.streams.len(),
        owners: owners.len(),
        columns: columns(plan, schema, layout),
        noise,
        announcement,
    };
    (line, PlanCost { charges, once, slack_bits, owners: (!epochs).then_some(owners) })
}

fn group_line(group: RowGroup, asked: &Privacy) -> GroupLine {
    let noise = |row: &u16| asked.noise.get(usize::from(*row)).copied();
    let attributes: BTreeSet<u16> = group.statistic.attributes().collect();
    GroupLine {
        noise: group.rows.first().and_then(noise),
        rows: group.rows,
        statistic: group.statistic,
        attributes: attributes.into_iter().collect(),
        l1: group.event.l1.to_string(),
        l2_squared: group.event.l2_squared.to_string(),
    }
}

/// Charges as they are written.
pub(super) fn charge_lines(charges: &[(u16, Cost)]) -> Vec<ChargeLine> {
    let line = |(attribute, cost): &(u16, Cost)| ChargeLine {
        attribute: *attribute,
        cost: CostLine::from(*cost),
    };
    charges.iter().map(line).collect()
}
