//! Results in the unit of the measurement: exact sums, and derived values rounded once.

use crate::plan::Plan;
use crate::row::{Row, cell};
use alpheus_encrypted_stream::decode::Rational;
use alpheus_policy::decimal::format_scaled;
use serde::Serialize;

/// A result in its unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultInUnits {
    /// The aggregate's location.
    pub aggregate: String,
    /// In Unix milliseconds.
    pub interval_start: u64,
    /// Exclusive.
    pub interval_end: u64,
    /// The number of samples, if the release rule includes it.
    pub count: Option<u64>,
    /// Exact.
    pub sum: Option<String>,
    /// Rounded once.
    pub mean: Option<f64>,
    /// The population's standard deviation, rounded once.
    pub stddev: Option<f64>,
    /// The number of slots, the maximum number of uploads.
    pub slots: u32,
    /// The number of dummies among them.
    pub dummies: Option<u64>,
    /// `open`, `result`, or the reason for no result.
    pub state: String,
}

impl ResultInUnits {
    /// Converts a row to the unit of a plan.
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

    /// The cells in the order of [`crate::row::COLUMNS`].
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

/// The population's standard deviation, rounded once.
fn deviation(row: &Row, decimals: i32) -> Option<f64> {
    let (n, sum, squares) = (i128::from(row.count?), row.sum?, row.squares?);
    let spread = n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)?;
    let variance = Rational::new(spread, n.checked_mul(n)?)?;
    variance.times_ten_to(decimals.checked_mul(-2)?).sqrt_to_f64()
}
