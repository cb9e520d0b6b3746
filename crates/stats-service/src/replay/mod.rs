//! `alpheus stats replay`: replays a recorded file through a local deployment with one process per
//! role. All share one clock that runs as fast as they do.
//!
//! - [`samples`]: the recorded file,
//! - [`stage`]: the processes,
//! - [`driver`]: the schedule of events,
//! - [`counts`]: the schedule for counts.

pub mod counts;
pub mod driver;
pub mod samples;
pub mod stage;

use crate::plan::Plan;
use crate::plan::count::AnyPlan;
use crate::row::{COLUMNS, Row, cells};
use crate::units::ResultInUnits;
use alpheus_input::calendar::moment;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::write_output;
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_time::Span;
use alpheus_time::Timestamp;
use driver::ReplayResult;
use samples::{Part, Samples};
use stage::{Size, Stage};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus stats replay --input speed.csv --source source.yaml --define define.yaml \\
      --output out.csv
  alpheus stats replay --input speed.csv --source source.yaml --define gate.yaml \\
      --output gate.csv
  alpheus stats replay --from 2012-03-01T06:00 --until 2012-03-01T10:00 \\
      --input traffic_speed.csv --source examples/real/traffic_speed/statistics/source.yaml \\
      --define examples/real/traffic_speed/statistics/define.yaml --output speed.csv

One person runs all roles on one machine, so this demonstrates the results but hides nothing from
that person. The clients live in this process, each with its own credentials and keys. With a plan
of `release: count`, each client takes part in every count during which the recording has its data.";

/// Arguments of `alpheus stats replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recorded file
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// How its columns become clients' samples
    #[arg(long, value_name = "FILE")]
    source: PathBuf,
    /// The plan of the measurement
    #[arg(long, value_name = "FILE")]
    define: PathBuf,
    /// The file for the results; it must not exist yet. `-` is standard output
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Samples from this time on: 2012-03-01T06:00 (UTC), or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Timestamp>,
    /// Samples before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Timestamp>,
    /// The number of smoothers: at least three times the threshold, minus two
    #[arg(long, value_name = "NUMBER", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    smoothers: u16,
    /// The number of smoothers that can decrypt together; fewer cannot
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = clap::value_parser!(u16).range(1..=22))]
    threshold: u16,
}

const DAY: u64 = 86_400_000_000;

/// Aggregates have no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} aggregates have no result; see the reasons above")]
pub(crate) struct WithoutResultError(usize);

/// A result does not include all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} samples are not counted: they found no slot in time; give more `slots`, or more turns `during` the aggregate"
)]
pub(crate) struct NotCountedError(u64);

/// Runs the command.
///
/// # Errors
/// If a file cannot be read or written, a process does not start, an aggregate has no result, or a
/// result does not include all its samples.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let files = (args.input.as_path(), args.source.as_path());
    let part = Part {
        from: args.from.unwrap_or(Timestamp(0)),
        until: args.until.unwrap_or(Timestamp(u64::MAX)),
    };
    match AnyPlan::open(&args.define)? {
        AnyPlan::Sums(plan) => {
            let samples = samples::read(files, &plan, part)?;
            let stage = Stage::start(size(args, plan.every, &samples), Some(&plan))?;
            let ReplayResult { rows, unplaced } = block_on(driver::run(stage, &plan, &samples))?;
            write_output(&args.output, csv(&rows, &plan))?;
            let lost = lost(&rows, &samples).max(unplaced);
            ended(&rows, &samples, lost)
        }
        AnyPlan::Count(plan) => {
            let samples = samples::presences(files, plan.every, part)?;
            let stage = Stage::start(size(args, plan.every, &samples), None)?;
            let rows = block_on(counts::run(stage, &plan, &samples))?;
            write_output(&args.output, counted(&rows))?;
            ended(&rows, &samples, counts::lost(&rows, &samples))
        }
    }
}

/// Prints a summary, and checks that the results include all samples.
fn ended(rows: &[Row], samples: &Samples, lost: u64) -> Result<(), Failure> {
    let without: Vec<&Row> = rows.iter().filter(|row| row.state != "result").collect();
    for Row { aggregate, interval_start, state, .. } in &without {
        note!("{aggregate} from {interval_start}: {state}");
    }
    note!(
        "{} of {} samples of {} clients, {} aggregates, {} readings rejected",
        (samples.all.len() as u64).saturating_sub(lost),
        samples.all.len(),
        samples.clients,
        rows.len(),
        samples.refused
    );
    match (without.len(), lost) {
        (0, 0) => Ok(()),
        (0, lost) => Err(NotCountedError(lost)).blame(Category::Check),
        (many, _) => Err(WithoutResultError(many)).blame(Category::Check),
    }
}

/// The difference between the samples counted and those in the recording.
fn lost(rows: &[Row], samples: &Samples) -> u64 {
    let mut lost = 0;
    for Row { aggregate, interval_start, interval_end, count, .. } in rows {
        let Some(count) = *count else { continue };
        let of = |time: u64| (*interval_start..*interval_end).contains(&(time / 1000));
        let given = samples.all.iter().filter(|sample| of(sample.time.0)).count() as u64;
        if count != given {
            note!("{aggregate} from {interval_start}: {count} of {given} samples are counted");
        }
        lost += count.abs_diff(given);
    }
    lost
}

fn size(args: &Args, every: Span, samples: &Samples) -> Size {
    let first = samples.starts.first().map_or(0, |start| start.0);
    let last = samples.starts.last().map_or(0, |start| start.0);
    // Start a day early, so that the first aggregate can be defined before it begins.
    let start = Timestamp((first / DAY * DAY).saturating_sub(DAY));
    Size {
        smoothers: args.smoothers.into(),
        threshold: args.threshold,
        clients: samples.clients,
        start,
        days: (last - start.0) / DAY + 2,
        now: Timestamp(first.saturating_sub(every.0.min(DAY)).max(start.0)),
        first: Timestamp(first),
    }
}

/// Counts as CSV, in the same columns.
fn counted(rows: &[Row]) -> String {
    let lines: Vec<String> =
        std::iter::once(COLUMNS.to_owned()).chain(rows.iter().map(cells)).collect();
    lines.join("\n") + "\n"
}

/// Results as CSV, in the unit of the recording.
fn csv(rows: &[Row], plan: &Plan) -> String {
    let lines = rows.iter().map(|row| ResultInUnits::new(row, plan).cells());
    let lines: Vec<String> = std::iter::once(COLUMNS.to_owned()).chain(lines).collect();
    lines.join("\n") + "\n"
}
