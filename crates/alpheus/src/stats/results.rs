//! Results of aggregates as rows: what the aggregator answers, and what
//! `alpheus stats results` prints.

use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure, printed};
use crate::pass::serve::block_on;
use crate::stats::card;
use crate::stats::counts::plan::Planned;
use crate::stats::names::hex;
use crate::stats::plan::Plan;
use crate::stats::units::{COLUMNS, Measured};
use crate::stats::ways::{StatsError, Ways};
use alpheus_accountable_statistics::definition::{Agreed, Rule};
use alpheus_accountable_statistics::messages::{Outcome, Published};
use alpheus_accountable_statistics::results::mean_and_deviation;
use alpheus_accountable_statistics::tally::{Counter, Tally};
use alpheus_anonymous_credential::schedule::Time;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus stats results --card roads/card.json
  alpheus stats results speed.yaml --card roads/card.json
  alpheus stats results speed.yaml --card roads/card.json --format csv > results.csv

Without a plan values are in steps: a definition does not say what a step is.";

/// The state of an aggregate that has not ended.
pub const OPEN: &str = "open";
/// The state of one that has a result.
pub const RESULT: &str = "result";

/// Arguments of `alpheus stats results`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is measured, as whoever defines it wrote it: its place alone, in its unit
    plan: Option<PathBuf>,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
}

/// One aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The digest that names it everywhere.
    pub name: String,
    /// Its place.
    pub aggregate: String,
    /// In Unix milliseconds.
    pub interval_start: u64,
    /// Exclusive.
    pub interval_end: u64,
    /// Samples, if the rule says so.
    pub count: Option<u64>,
    /// Σ v, in steps.
    pub sum: Option<i128>,
    /// Σ v², in steps.
    pub squares: Option<i128>,
    /// In steps; with `release: mean` rounded as the rule says.
    pub mean: Option<f64>,
    /// Of the population, in steps.
    pub deviation: Option<f64>,
    /// Uploads that the aggregator saw at most; of a count, as many as counted.
    pub slots: u32,
    /// Of these, dummies.
    pub dummies: Option<u64>,
    /// `open`, `result`, or why there is none.
    pub state: String,
}

impl Row {
    /// A row of an aggregate.
    #[must_use]
    pub fn new(agreed: &Agreed, outcome: Option<&Outcome>, rejected: Option<usize>) -> Self {
        let milliseconds = |time: u64| time / 1000;
        let mut row = Self {
            name: hex(&agreed.name()),
            aggregate: agreed.place.as_str().to_owned(),
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

    /// A row of a count.
    #[must_use]
    pub fn of_count(tally: &Tally, counter: &Counter, now: Time) -> Self {
        let count = counter.result(now);
        let state = match count {
            _ if now < tally.closes => OPEN,
            Some(_) => RESULT,
            None => "fewer than may be published",
        };
        Self {
            name: hex(&tally.name()),
            aggregate: tally.place.as_str().to_owned(),
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

    fn publish(&mut self, agreed: &Agreed, published: Published, rejected: u64) {
        self.state = RESULT.to_owned();
        match published {
            #[expect(clippy::cast_precision_loss, reason = "a mean of 41 bits at most")]
            Published::Mean(mean) => self.mean = Some(mean as f64),
            Published::Full { count, sum, squares } => {
                (self.count, self.sum, self.squares) = (Some(count), Some(sum), squares);
                let moments = mean_and_deviation(count, sum, squares);
                self.mean = moments.map(|(mean, _)| mean);
                self.deviation = moments.and_then(|(_, deviation)| deviation);
                let others = u64::from(agreed.slots).saturating_sub(rejected);
                self.dummies = Some(others.saturating_sub(count));
            }
        }
        debug_assert!(matches!(agreed.rule, Rule::Full) || self.count.is_none());
    }
}

/// Runs the command.
///
/// # Errors
/// If the aggregator does not answer.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let ways = Ways::new(&card)?;
    let plan = args.plan.as_deref().map(Planned::open).transpose()?;
    let mut rows = block_on(async { Ok(fetch(&ways).await?) })?;
    let plan = match plan {
        Some(Planned::Count(count)) => {
            rows.retain(|row| row.aggregate == count.place.as_str());
            None
        }
        Some(Planned::Sums(plan)) => Some(plan),
        None => None,
    };
    let format = globals.format.unwrap_or_default();
    let said = match (&plan, format) {
        (Some(plan), format) => in_unit(&rows, plan, format)?,
        (None, Format::Json) => serde_json::to_string_pretty(&rows).blame(Category::Io)? + "\n",
        (None, Format::Csv) => csv(&rows),
        (None, Format::Table) => table(&rows),
    };
    let written = std::io::stdout().lock().write_all(said.as_bytes());
    printed(written).map(|_| ())
}

/// All rows, from the aggregator.
///
/// # Errors
/// If it does not answer.
pub async fn fetch(ways: &Ways) -> Result<Vec<Row>, StatsError> {
    Ok(ways.aggregator.get("/v1/rows").await?)
}

fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// As a spreadsheet takes it.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let line = |row: &Row| format!("{},{}\n", cells(row), row.state);
    format!("{COLUMNS},state\n") + &rows.iter().map(line).collect::<String>()
}

/// A row in the order of [`COLUMNS`].
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

/// Those of a plan's place, in its unit.
fn in_unit(rows: &[Row], plan: &Plan, format: Format) -> Result<String, Failure> {
    let ours = rows.iter().filter(|row| row.aggregate == plan.place.as_str());
    let ours: Vec<Measured> = ours.map(|row| Measured::new(row, plan)).collect();
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(&ours).blame(Category::Io)? + "\n");
    }
    let line = |row: &Measured| match format {
        Format::Table => sentence(
            (&row.aggregate, row.interval_start, &row.state, row.slots),
            row.count,
            row.mean,
        ),
        _ => format!("{},{}\n", row.cells(), row.state),
    };
    let header = if format == Format::Csv { format!("{COLUMNS},state\n") } else { String::new() };
    Ok(header + &ours.iter().map(line).collect::<String>())
}

/// A row for people.
fn sentence(
    (place, start, state, slots): (&str, u64, &str, u32),
    count: Option<u64>,
    mean: Option<f64>,
) -> String {
    let mean = mean.map_or_else(String::new, |mean| format!(", mean {mean:.3}"));
    let count = count.map_or_else(String::new, |count| format!(", {count} samples"));
    format!("{place} from {start}: {state}{count}{mean}, {slots} slots\n")
}

fn table(rows: &[Row]) -> String {
    let said = |row: &Row| {
        let about = (row.aggregate.as_str(), row.interval_start, row.state.as_str(), row.slots);
        sentence(about, row.count, row.mean)
    };
    rows.iter().map(said).collect()
}
