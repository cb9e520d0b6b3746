//! Results in the unit of what was measured: exact sums, and what follows from them rounded once.

use crate::stats::plan::Plan;
use crate::stats::results::Row;
use alpheus_encrypted_stream::decode::Rational;
use alpheus_policy::decimal::format_scaled;
use serde::Serialize;

/// The columns of a table of results.
pub const COLUMNS: &str =
    "aggregate,interval_start,interval_end,count,sum,mean,stddev,slots,dummies";

/// A result in its unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its place.
    pub aggregate: String,
    /// In Unix milliseconds.
    pub interval_start: u64,
    /// Exclusive.
    pub interval_end: u64,
    /// Samples, if the rule says so.
    pub count: Option<u64>,
    /// Exact.
    pub sum: Option<String>,
    /// Rounded once.
    pub mean: Option<f64>,
    /// Of the population, rounded once.
    pub stddev: Option<f64>,
    /// Uploads that the aggregator saw at most.
    pub slots: u32,
    /// Of these, dummies.
    pub dummies: Option<u64>,
    /// `open`, `result`, or why there is none.
    pub state: String,
}

fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

impl Measured {
    /// What a row says in the unit of a plan.
    #[must_use]
    pub fn new(row: &Row, plan: &Plan) -> Self {
        let decimals = i32::from(plan.decimals);
        let mean = match (row.sum, row.count) {
            (Some(sum), Some(count)) => Rational::new(sum, count),
            #[expect(clippy::cast_possible_truncation, reason = "a rounded mean is whole steps")]
            _ => row.mean.and_then(|mean| Rational::new(mean as i64, 1)),
        };
        Self {
            aggregate: row.aggregate.clone(),
            interval_start: row.interval_start,
            interval_end: row.interval_end,
            count: row.count,
            sum: row.sum.map(|sum| format_scaled(sum, plan.decimals)),
            mean: mean.map(|mean| mean.times_ten_to(-decimals).to_f64()),
            stddev: deviation(row, decimals),
            slots: row.slots,
            dummies: row.dummies,
            state: row.state.clone(),
        }
    }

    /// In the order of [`COLUMNS`].
    #[must_use]
    pub fn cells(&self) -> String {
        let cells = [
            self.aggregate.clone(),
            self.interval_start.to_string(),
            self.interval_end.to_string(),
            cell(self.count),
            cell(self.sum.clone()),
            cell(self.mean),
            cell(self.stddev),
            self.slots.to_string(),
            cell(self.dummies),
        ];
        cells.join(",")
    }
}

/// Of the population, rounded once.
fn deviation(row: &Row, decimals: i32) -> Option<f64> {
    let (n, sum, squares) = (i128::from(row.count?), row.sum?, row.squares?);
    let spread = n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)?;
    let variance = Rational::new(spread, n.checked_mul(n)?)?;
    variance.times_ten_to(decimals.checked_mul(-2)?).sqrt_to_f64()
}
