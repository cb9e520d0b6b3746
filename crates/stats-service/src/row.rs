//! Results of aggregates as rows: what the aggregator answers, and what the CSV files hold.

use crate::names::hex;
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Location, ReleaseRule};
use alpheus_accountable_statistics::messages::{Outcome, PublishedResult};
use alpheus_accountable_statistics::publication::{Publication, PublicationError, PublishedEnd};
use alpheus_accountable_statistics::results::mean_and_deviation;
use alpheus_accountable_statistics::tally::Tally;
use alpheus_crypto::hash::Digest;
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

/// The outcome of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CountOutcome {
    /// It is not over.
    Open,
    /// So many accounts took part.
    Counted(u64),
    /// Fewer took part than may be published.
    TooFew,
    /// The aggregator's state is an old copy, so accounts that had an answer may be missing.
    Lost,
}

impl Row {
    /// The row of an aggregate.
    #[must_use]
    pub fn new(agreed: &AgreedDefinition, outcome: Option<&Outcome>) -> Self {
        let mut row = Self::open(agreed.name(), &agreed.location, [agreed.start, agreed.end]);
        row.slots = agreed.slots;
        match outcome.map(|outcome| outcome.result) {
            None => {}
            Some(Err(reason)) => row.state = reason.to_string(),
            Some(Ok(published)) => row.publish(agreed, published),
        }
        row
    }

    /// The row of an aggregate, of what its smoothers have signed and no more.
    ///
    /// # Errors
    /// [`PublicationError`].
    pub fn published(
        shown: &Publication,
        pinned: &PinnedConfiguration,
    ) -> Result<Self, PublicationError> {
        let (agreed, end) = shown.check(pinned)?;
        Ok(match end {
            PublishedEnd::Open => Self::new(&agreed, None),
            PublishedEnd::Signed(outcome) => Self::new(&agreed, Some(&outcome)),
            PublishedEnd::Claimed(reason) => {
                let state = format!("{reason}, as the aggregator says");
                Self { state, ..Self::new(&agreed, None) }
            }
        })
    }

    /// The row of a count, of which the aggregator says how many there were.
    #[must_use]
    pub fn of_count(tally: &Tally, outcome: CountOutcome) -> Self {
        let (count, state) = match outcome {
            CountOutcome::Open => (None, OPEN),
            CountOutcome::Counted(count) => (Some(count), RESULT),
            CountOutcome::TooFew => (None, "fewer than may be published"),
            CountOutcome::Lost => (None, "lost: the aggregator's state is an old copy"),
        };
        let mut row = Self::open(tally.name(), &tally.location, [tally.start, tally.end]);
        (row.count, row.state) = (count, state.to_owned());
        row.slots = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        row
    }

    /// The row of something that has not ended.
    fn open(name: Digest, location: &Location, [start, end]: [Timestamp; 2]) -> Self {
        let milliseconds = |time: Timestamp| time.0 / 1000;
        Self {
            name: hex(&name),
            aggregate: location.as_str().to_owned(),
            interval_start: milliseconds(start),
            interval_end: milliseconds(end),
            count: None,
            sum: None,
            squares: None,
            mean: None,
            deviation: None,
            slots: 0,
            dummies: None,
            state: OPEN.to_owned(),
        }
    }

    fn publish(&mut self, agreed: &AgreedDefinition, published: PublishedResult) {
        self.state = RESULT.to_owned();
        match published {
            #[expect(clippy::cast_precision_loss, reason = "a mean of 41 bits at most")]
            PublishedResult::Mean(mean) => self.mean = Some(mean as f64),
            PublishedResult::Full { count, sum, squares, uploads } => {
                (self.count, self.sum, self.squares) = (Some(count), Some(sum), squares);
                let moments = mean_and_deviation(count, sum, squares);
                self.mean = moments.map(|(mean, _)| mean);
                self.deviation = moments.and_then(|(_, deviation)| deviation);
                self.dummies = Some(u64::from(uploads).saturating_sub(count));
            }
        }
        debug_assert!(matches!(agreed.rule, ReleaseRule::Full) || self.count.is_none());
    }
}

/// By time, then by place.
pub(crate) fn by_time(a: &Row, b: &Row) -> std::cmp::Ordering {
    (a.interval_start, &a.aggregate).cmp(&(b.interval_start, &b.aggregate))
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
