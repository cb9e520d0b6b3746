//! Results of aggregates as rows: what the aggregator answers, and what the CSV files hold.

use crate::names::hex;
use alpheus_accountable_statistics::definition::{AgreedDefinition, ReleaseRule};
use alpheus_accountable_statistics::messages::{Outcome, PublishedResult};
use alpheus_accountable_statistics::results::mean_and_deviation;
use alpheus_accountable_statistics::tally::{Counter, Tally};
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// The columns of a table of results.
pub const COLUMNS: &str =
    "aggregate,interval_start,interval_end,count,sum,mean,stddev,slots,dummies";

/// The state of an open aggregate.
pub const OPEN: &str = "open";
/// The state of an aggregate with a result.
pub const RESULT: &str = "result";

/// One aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The aggregate's name, a digest.
    pub name: String,
    /// The aggregate's location.
    pub aggregate: String,
    /// In Unix milliseconds.
    pub interval_start: u64,
    /// Exclusive.
    pub interval_end: u64,
    /// The number of samples, if the release rule includes it.
    pub count: Option<u64>,
    /// Σ v, in steps.
    pub sum: Option<i128>,
    /// Σ v², in steps.
    pub squares: Option<i128>,
    /// The mean in steps; with `release: mean`, rounded by the rule.
    pub mean: Option<f64>,
    /// The population's standard deviation, in steps.
    pub deviation: Option<f64>,
    /// The number of slots, the maximum number of uploads; for a count, the count.
    pub slots: u32,
    /// The number of dummies among them.
    pub dummies: Option<u64>,
    /// `open`, `result`, or the reason for no result.
    pub state: String,
}

impl Row {
    /// The row of an aggregate.
    #[must_use]
    pub fn new(
        agreed: &AgreedDefinition,
        outcome: Option<&Outcome>,
        rejected: Option<usize>,
    ) -> Self {
        let milliseconds = |time: u64| time / 1000;
        let mut row = Self {
            name: hex(&agreed.name()),
            aggregate: agreed.location.as_str().to_owned(),
            interval_start: milliseconds(agreed.start.0),
            interval_end: milliseconds(agreed.end.0),
            count: None,
            sum: None,
            squares: None,
            mean: None,
            deviation: None,
            slots: agreed.slots,
            dummies: None,
            state: OPEN.to_owned(),
        };
        match outcome.map(|outcome| outcome.result) {
            None => {}
            Some(Err(reason)) => row.state = reason.to_string(),
            Some(Ok(published)) => row.publish(agreed, published, rejected.unwrap_or(0) as u64),
        }
        row
    }

    /// The row of a count.
    #[must_use]
    pub fn of_count(tally: &Tally, counter: &Counter, now: Timestamp) -> Self {
        let count = counter.result(now);
        let state = match count {
            _ if now < tally.closes => OPEN,
            Some(_) => RESULT,
            None => "fewer than may be published",
        };
        Self {
            name: hex(&tally.name()),
            aggregate: tally.location.as_str().to_owned(),
            interval_start: tally.start.0 / 1000,
            interval_end: tally.end.0 / 1000,
            count,
            sum: None,
            squares: None,
            mean: None,
            deviation: None,
            slots: count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            dummies: None,
            state: state.to_owned(),
        }
    }

    fn publish(&mut self, agreed: &AgreedDefinition, published: PublishedResult, rejected: u64) {
        self.state = RESULT.to_owned();
        match published {
            #[expect(clippy::cast_precision_loss, reason = "a mean of 41 bits at most")]
            PublishedResult::Mean(mean) => self.mean = Some(mean as f64),
            PublishedResult::Full { count, sum, squares } => {
                (self.count, self.sum, self.squares) = (Some(count), Some(sum), squares);
                let moments = mean_and_deviation(count, sum, squares);
                self.mean = moments.map(|(mean, _)| mean);
                self.deviation = moments.and_then(|(_, deviation)| deviation);
                let others = u64::from(agreed.slots).saturating_sub(rejected);
                self.dummies = Some(others.saturating_sub(count));
            }
        }
        debug_assert!(matches!(agreed.rule, ReleaseRule::Full) || self.count.is_none());
    }
}

pub(crate) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Rows as CSV.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let line = |row: &Row| format!("{},{}\n", cells(row), row.state);
    format!("{COLUMNS},state\n") + &rows.iter().map(line).collect::<String>()
}

/// A row's cells in the order of [`COLUMNS`].
#[must_use]
pub fn cells(row: &Row) -> String {
    let cells = [
        row.aggregate.clone(),
        row.interval_start.to_string(),
        row.interval_end.to_string(),
        cell(row.count),
        cell(row.sum),
        cell(row.mean),
        cell(row.deviation),
        row.slots.to_string(),
        cell(row.dummies),
    ];
    cells.join(",")
}
