//! Whether the results of a window are as exact as their query asks.

use crate::budget::{NoiseShares, OutputError, expected_errors, rank_margin};
use crate::plan::Plan;
use crate::query::{Accuracy, Decimal};
use crate::select::{ByOutput, CellRef, HistogramOutput, MomentOutput, SelectItem, Statistic};

/// Whether every column of a window with noise is as exact as its query asks, given the shares of
/// noise and the released sums. Columns of which that is not known without the sums, as in sealed
/// rows, count as exact enough.
#[must_use]
pub fn is_as_exact_as_asked(
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
