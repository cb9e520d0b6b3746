//! What the columns of a plan's results are, in words and with their units. Derived from the
//! release, not from names that somebody gave to columns.

use crate::budget::statistic_of;
use crate::decimal::format_scaled;
use crate::layout::{FieldStatistic, Layout};
use crate::plan::Plan;
use crate::schema::{Attribute, Schema};
use crate::select::{
    Bins, ByOutput, CellRef, HistogramOutput, MomentOutput, RegressionOutput, Statistic,
};
use serde::{Deserialize, Serialize};

/// A column of a result, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in the results.
    pub name: String,
    /// What it is: `average heart rate`.
    pub what: String,
    /// The unit of its values; empty for counts, and where the schema names none.
    pub unit: String,
    /// Of a histogram: the lower edge of each bin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<String>,
}

/// An attribute's name as people read it: `heart rate`.
#[must_use]
pub fn label(attribute: &str) -> String {
    attribute.replace(['_', '-'], " ")
}

/// The columns of a plan, in the order of the query.
#[must_use]
pub fn columns(plan: &Plan, schema: &Schema, layout: &Layout) -> Vec<Column> {
    let source = Source { plan, schema, layout };
    let column = |(alias, statistic): (&String, &Statistic)| {
        let (what, unit) = source.words(statistic);
        let edges = match statistic {
            Statistic::Histogram { output: HistogramOutput::Counts, bins } => edges(bins),
            _ => Vec::new(),
        };
        Column { name: alias.clone(), what, unit, edges }
    };
    plan.select.items.iter().map(|item| column((&item.alias, &item.statistic))).collect()
}

fn edges(bins: &Bins) -> Vec<String> {
    bins.edges.iter().map(|edge| format_scaled(*edge, bins.scale)).collect()
}

/// Where the words of columns come from.
struct Source<'a> {
    plan: &'a Plan,
    schema: &'a Schema,
    layout: &'a Layout,
}

impl Source<'_> {
    /// What a column is, and its unit.
    fn words(&self, statistic: &Statistic) -> (String, String) {
        match statistic {
            Statistic::Sum { sum, .. } => self.of("total", *sum),
            Statistic::Count { count, .. } => self.unitless(self.number(*count)),
            Statistic::Moments { output, sum, .. } => self.moments(*output, *sum),
            Statistic::Histogram { output, bins } => self.histogram(*output, bins),
            Statistic::Regression { output, xy, .. } => self.unitless(self.pair(*output, *xy)),
            Statistic::By { output, counts, .. } => self.by(*output, counts),
            Statistic::SideSum { sum, .. } => {
                let (what, unit) = self.of("total", *sum);
                (format!("{what} on one side of its threshold"), unit)
            }
            Statistic::Any { cell } => {
                self.unitless(format!("whether any {} is true", self.name(*cell)))
            }
            Statistic::All { cell } => {
                self.unitless(format!("whether all {} are true", self.name(*cell)))
            }
            Statistic::Distinct { cells } => {
                self.unitless(format!("number of different values of {}", self.first(cells)))
            }
            Statistic::Frequency { cells } => {
                self.unitless(format!("how often one value of {} occurs", self.first(cells)))
            }
        }
    }

    fn unitless(&self, what: String) -> (String, String) {
        (what, String::new())
    }

    fn of(&self, word: &str, cell: CellRef) -> (String, String) {
        (format!("{word} {}", self.name(cell)), self.unit(cell))
    }

    fn number(&self, count: CellRef) -> String {
        match self.field(count) {
            None | Some(FieldStatistic::EventCount) => "number of readings".to_owned(),
            Some(FieldStatistic::Threshold { .. }) => {
                format!("number of readings of {} on one side of its threshold", self.name(count))
            }
            Some(_) => format!("number of readings of {}", self.name(count)),
        }
    }

    fn moments(&self, output: MomentOutput, sum: CellRef) -> (String, String) {
        match output {
            MomentOutput::Mean => self.of("average", sum),
            MomentOutput::Deviation => self.of("standard deviation of", sum),
            MomentOutput::Variance => {
                let (what, unit) = self.of("variance of", sum);
                let squared = if unit.is_empty() { unit } else { format!("{unit}²") };
                (what, squared)
            }
        }
    }

    fn histogram(&self, output: HistogramOutput, bins: &Bins) -> (String, String) {
        let Some(cell) = bins.cells.iter().flatten().next().copied() else {
            return self.unitless("distribution".to_owned());
        };
        match output {
            HistogramOutput::Counts => self.of("distribution of", cell),
            HistogramOutput::Quantile { numerator: 1, denominator: 2 } => self.of("median", cell),
            HistogramOutput::Quantile { numerator, denominator } => {
                let percent = 100.0 * f64::from(numerator) / f64::from(denominator.max(1));
                (
                    format!("value that {percent} % of {} stay below", self.name(cell)),
                    self.unit(cell),
                )
            }
            HistogramOutput::Min => self.of("lowest", cell),
            HistogramOutput::Max => self.of("highest", cell),
            HistogramOutput::Range => self.of("range of", cell),
            HistogramOutput::Mode => self.of("most common", cell),
            HistogramOutput::Top { k } => self.of(&format!("{k} most common ranges of"), cell),
        }
    }

    fn pair(&self, output: RegressionOutput, xy: CellRef) -> String {
        let Some(FieldStatistic::Pair { y, x, .. }) = self.field(xy) else {
            return "relation of two attributes".to_owned();
        };
        let (y, x) = (self.called(y), self.called(x));
        match output {
            RegressionOutput::Slope => format!("slope of {y} over {x}"),
            RegressionOutput::Intercept => format!("{y} where {x} is 0, by a straight line"),
            RegressionOutput::RSquared => format!("share of {y} that {x} explains"),
            RegressionOutput::Covariance => format!("covariance of {y} and {x}"),
        }
    }

    fn by(&self, output: ByOutput, counts: &Bins) -> (String, String) {
        let cell = counts.cells.iter().flatten().next().copied();
        let Some(FieldStatistic::By { of, by, .. }) = cell.and_then(|cell| self.field(cell)) else {
            return self.unitless("values by bucket".to_owned());
        };
        let unit = self.attribute(of).map_or_else(String::new, |found| found.unit.clone());
        let (of, by) = (self.called(of), self.called(by));
        match output {
            ByOutput::Count => self.unitless(format!("number of readings of {of} by {by}")),
            ByOutput::Sum => (format!("total {of} by {by}"), unit),
            ByOutput::Mean => (format!("average {of} by {by}"), unit),
            ByOutput::Variance => self.unitless(format!("variance of {of} by {by}")),
        }
    }

    /// The statistic that a cell is a sum of.
    fn field(&self, cell: CellRef) -> Option<FieldStatistic> {
        statistic_of((&self.plan.release, &self.plan.select), self.layout, cell)
    }

    fn attribute(&self, position: u16) -> Option<&Attribute> {
        self.schema.attributes.get(usize::from(position))
    }

    fn called(&self, position: u16) -> String {
        self.attribute(position).map_or_else(String::new, |found| label(&found.name))
    }

    fn main_attribute(&self, cell: CellRef) -> Option<u16> {
        self.field(cell)?.attributes().next()
    }

    fn name(&self, cell: CellRef) -> String {
        self.main_attribute(cell).map_or_else(String::new, |position| self.called(position))
    }

    fn first(&self, cells: &[CellRef]) -> String {
        cells.first().map_or_else(String::new, |cell| self.name(*cell))
    }

    fn unit(&self, cell: CellRef) -> String {
        let found = self.main_attribute(cell).and_then(|position| self.attribute(position));
        found.map_or_else(String::new, |found| found.unit.clone())
    }
}
