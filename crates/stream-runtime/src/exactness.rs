//! Whether the results of a window are as exact as their query asks.

use alpheus_policy::budget::{NoiseShares, OutputError, expected_errors, rank_margin};
use alpheus_policy::plan::Plan;
use alpheus_policy::query::{Accuracy, Decimal};
use alpheus_policy::select::{
    ByOutput, CellRef, HistogramOutput, MomentOutput, SelectItem, Statistic,
};

/// Whether every column of a window with noise is as exact as its query asks, given the shares of
/// noise and the released sums. Columns of which that is not known without the sums, as in sealed
/// rows, count as exact enough.
#[must_use]
pub(crate) fn is_as_exact_as_asked(
    asked: &Accuracy,
    plan: &Plan,
    shared: NoiseShares,
    sums: &[f64],
) -> bool {
    let Some(privacy) = plan.privacy.as_ref().filter(|_| asked.is_asked()) else { return true };
    let errors = expected_errors(&plan.select, &privacy.noise, shared, sums);
    plan.select.items.iter().zip(errors).all(|(item, OutputError { spread, .. })| {
        let margin = spread.map(|spread| spread.within);
        // Without its sums, the margin of a quotient is not known. With them, there is one unless
        // the noise hides all.
        let is_within = |accepted: f64| margin.map_or(sums.is_empty(), |own| own <= accepted);
        let rank = match &item.statistic {
            Statistic::Histogram { output: HistogramOutput::Quantile { .. }, bins } => {
                let values = sum_of(sums, bins.cells.iter().flatten());
                Some(rank_margin(&plan.select, &privacy.noise, shared, bins, values))
            }
            _ => None,
        };
        let share = asked.error.map(number).is_none_or(|share| match (rank, whole(item, sums)) {
            (Some(rank), _) => sums.is_empty() || rank <= share,
            // The true value may be larger than the result by the margin: at what is just as exact
            // as asked, noise alone must not decide.
            (None, Some(whole)) => {
                margin.map_or(sums.is_empty(), |own| own <= share * (whole.abs() + own))
            }
            (None, None) => true,
        });
        share && asked.within.map(number).is_none_or(is_within)
    })
}

/// What an error is a share of, if that is known.
fn whole(item: &SelectItem, sums: &[f64]) -> Option<f64> {
    let cell = |cell: &CellRef| sums.get(usize::from(*cell)).copied();
    let unit = |scale: u8| 10f64.powi(-i32::from(scale));
    let whole = match &item.statistic {
        Statistic::Count { count, .. } => cell(count),
        Statistic::Sum { sum, scale, .. } => cell(sum).map(|sum| sum * unit(*scale)),
        Statistic::Moments { output: MomentOutput::Mean, count, sum, scale, .. } => {
            Some(cell(sum)? / cell(count)? * unit(*scale))
        }
        Statistic::Histogram { output: HistogramOutput::Counts, bins: counts }
        | Statistic::By { output: ByOutput::Count, counts, .. } => {
            Some(sum_of(sums, counts.cells.iter().flatten()))
        }
        _ => None,
    };
    whole.filter(|whole| whole.is_finite() && !sums.is_empty())
}

fn sum_of<'a>(sums: &[f64], cells: impl Iterator<Item = &'a CellRef>) -> f64 {
    cells.filter_map(|cell| sums.get(usize::from(*cell))).sum()
}

fn number(decimal: Decimal) -> f64 {
    decimal.to_string().parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::budget::assumed_sums;
    use alpheus_policy::catalog::{Catalog, CatalogStream};
    use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
    use alpheus_policy::plan::MaskStrategy;
    use alpheus_policy::planner::{self, MaskRequest, PlanOptions};
    use alpheus_policy::policy::Policies;
    use alpheus_policy::query::{Create, Statement, parse};
    use alpheus_policy::schema::Schema;
    use alpheus_time::{Span, Timestamp};

    const SCHEMA: &str = "
name: Homes
tick: 1h
capacity: { population: 1000, eventsPerSecond: 0.000277, window: 31d }
streamAttributes:
  - { name: energy, type: decimal, scale: 1, min: 0, max: 2000, aggregations: [var] }
streamPolicyOptions:
  - { name: noisy, option: dp-aggregate, clients: [50], window: 1d, alpha: 0, budget: { perWindow: 5, total: 100, unit: person-per-window } }
";

    fn parsed(text: &str) -> Create {
        match parse(text) {
            Ok(Statement::Create(create)) => create,
            other => panic!("{other:?}"),
        }
    }

    /// Two hundred homes, each with a controller.
    fn homes() -> Catalog {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let policies = Policies::from_yaml("default: { '*': noisy }", &schema).unwrap();
        let mut catalog = Catalog::default();
        catalog.add_schema(schema.clone()).unwrap();
        for n in 0..200u8 {
            catalog.put_stream(CatalogStream {
                stream: StreamId([n; 16]),
                owner: OwnerId([n; 32]),
                controller: ControllerId([n; 32]),
                schema: schema.id(),
                metadata: Vec::new(),
                policy: policies.of_owner("home").clone(),
            });
        }
        catalog
    }

    fn options() -> PlanOptions<'static> {
        PlanOptions {
            now: Timestamp(1_700_000_003_000_000),
            from: None,
            nonce: &[7; 32],
            consumer: "service",
            readers: &|_| None,
            grace: Span::seconds(5),
            mask_delta_exponent: 9,
            masks: &|_: &MaskRequest<'_>| Some(MaskStrategy::Clique),
        }
    }

    /// With the sums of a window, it is known whether it is as exact as asked.
    #[test]
    fn a_window_with_fewer_or_smaller_values_than_said_is_less_exact() {
        let catalog = homes();
        for (item, tail) in [
            ("AVG(energy)", "WITH (error = 20 %, typical = 300, values = 24)"),
            ("AVG(energy)", "WITH (values = 24) WITHIN 60 OF 95 %"),
            ("SUM(energy)", "WITH (error = 20 %, typical = 300, values = 24)"),
        ] {
            let query = parsed(&format!(
                "CREATE STREAM s AS SELECT {item} WINDOW TUMBLING (SIZE 1 DAY) FROM Homes {tail}"
            ));
            let planned = planner::plan(&query, &catalog, &options()).unwrap();
            let plan = &planned.plans[0];
            let asked = query.settings.accuracy;
            // What runs is planned from the query as it is shown.
            assert_eq!(parsed(&planned.sql).settings.accuracy, asked);
            let honest = plan.min_honest();
            let shared = NoiseShares { honest, members: honest, windows: 1, lost: 0 };
            let layout = &catalog.schema("Homes").unwrap().layout;
            let sums = |values: f64, mean: f64| {
                assumed_sums((&plan.release, &plan.select), layout, values, |_| mean * 10.0)
            };
            let is_met =
                |values, mean| is_as_exact_as_asked(&asked, plan, shared, &sums(values, mean));
            assert!(is_met(50.0 * 24.0, 301.0), "{item} {tail}");
            assert!(!is_met(25.0 * 24.0, 300.0), "{item} {tail}");
            assert_eq!(is_met(50.0 * 24.0, 150.0), tail.contains("WITHIN"), "{item} {tail}");
            // Nothing is known of sealed sums.
            assert!(is_as_exact_as_asked(&asked, plan, shared, &[]));
        }
    }
}
