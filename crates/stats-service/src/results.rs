//! `alpheus stats results`: fetches and prints results.

use crate::card;
use crate::parties::Parties;
use crate::plan::Plan;
use crate::plan::count::AnyPlan;
use crate::results_reader::{HeldResults, ResultsReader, UnsignedResultsError};
use crate::row::{COLUMNS, Row, csv};
use crate::units::ResultInUnits;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::settings::Format;
use std::io::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus stats results --card roads/card.json
  alpheus stats results speed.yaml --card roads/card.json
  alpheus stats results speed.yaml --card roads/card.json --format csv > results.csv

Without a plan, values are in steps, because a definition does not contain the unit. A result is
shown as smoothers have signed it. The command fails if the aggregator shows another one. A count is
the aggregator's own statement, and so is anything followed by `as the aggregator says`.";

/// Arguments of `alpheus stats results`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The definer's plan; prints only its location, in its unit
    plan: Option<PathBuf>,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If the aggregator does not answer, or shows results that its smoothers have not signed.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let card = card::open(&args.card)?;
    let parties = Parties::new(&card)?;
    let plan = args.plan.as_deref().map(AnyPlan::open).transpose()?;
    let mut reader = ResultsReader::new(&card.pinned);
    let held = block_on(async { Ok(reader.fetch(&parties).await?) })?;
    let HeldResults { mut rows, unsigned } = held;
    let plan = match plan {
        Some(AnyPlan::Count(count)) => {
            rows.retain(|row| row.aggregate == count.place.as_str());
            None
        }
        Some(AnyPlan::Sums(plan)) => Some(plan),
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
    let _ = printed(written)?;
    if unsigned > 0 {
        return Err(UnsignedResultsError(unsigned)).blame(Category::Check);
    }
    Ok(())
}

/// The rows of a plan's location, in its unit.
fn in_unit(rows: &[Row], plan: &Plan, format: Format) -> Result<String, Failure> {
    let ours = rows.iter().filter(|row| row.aggregate == plan.place.as_str());
    let ours: Vec<ResultInUnits> = ours.map(|row| ResultInUnits::new(row, plan)).collect();
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(&ours).blame(Category::Io)? + "\n");
    }
    let line = |row: &ResultInUnits| match format {
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

/// A row as a sentence.
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
