//! `alpheus stats replay`: a recorded file through all roles, each a process, under one
//! clock that goes as fast as they do.
//!
//! - [`samples`]: the file,
//! - [`stage`]: the processes,
//! - [`drive`]: what happens when.

pub mod drive;
pub mod samples;
pub mod stage;

use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::pass::init::write_new;
use crate::pass::serve::block_on;
use crate::stats::plan::Plan;
use crate::stats::results::Row;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_encrypted_stream::decode::Rational;
use alpheus_policy::decimal::format_scaled;
use samples::Samples;
use stage::{Size, Stage};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus stats replay --input traffic_speed.csv --source examples/real/traffic_speed/statistics/source.yaml --define examples/real/traffic_speed/statistics/define.yaml --output speed.csv

One machine and one person run all roles here: it shows what comes out, and hides nothing from
who runs it. The clients live in this process, each with its own credentials and keys.";

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
    /// What is measured
    #[arg(long, value_name = "FILE")]
    define: PathBuf,
    /// Where the results are written; must not be there yet
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Smoothers: at least three times the threshold, less two
    #[arg(long, value_name = "NUMBER", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    smoothers: u16,
    /// So many smoothers together can decrypt, and fewer cannot
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = clap::value_parser!(u16).range(1..=22))]
    threshold: u16,
}

const DAY: u64 = 86_400_000_000;

/// An aggregate has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} aggregates have no result; the output says why, in its last column")]
struct WithoutResult(usize);

/// Runs the command.
///
/// # Errors
/// If a file cannot be read or written, a process does not start, or an aggregate has no
/// result.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let plan = Plan::open(&args.define)?;
    let samples = samples::read(&args.input, &args.source, &plan)?;
    let stage = Stage::start(size(args, &plan, &samples), &plan)?;
    let rows = block_on(drive::run(stage, &plan, &samples))?;
    write_new(&args.output, &csv(&rows, &plan), 0o644)?;
    let without = rows.iter().filter(|row| row.state != "result").count();
    eprintln!(
        "{} samples of {} clients, {} aggregates, {} readings refused",
        samples.all.len(),
        samples.clients,
        rows.len(),
        samples.refused
    );
    if without > 0 { Err(WithoutResult(without)).blame(Category::Check) } else { Ok(()) }
}

fn size(args: &Args, plan: &Plan, samples: &Samples) -> Size {
    let first = samples.starts.first().map_or(0, |start| start.0);
    let last = samples.starts.last().map_or(0, |start| start.0);
    // The day before, so that the first aggregate can be defined before it begins.
    let start = Time((first / DAY * DAY).saturating_sub(DAY));
    Size {
        smoothers: args.smoothers.into(),
        threshold: args.threshold,
        clients: samples.clients,
        start,
        days: (last - start.0) / DAY + 2,
        now: Time(first.saturating_sub(plan.every.0.min(DAY)).max(start.0)),
        first: Time(first),
    }
}

/// Results in the unit of the recording: exact sums, and what follows rounded once.
fn csv(rows: &[Row], plan: &Plan) -> String {
    let mut said =
        "aggregate,interval_start,interval_end,count,sum,mean,stddev,slots,dummies\n".to_owned();
    let decimals = i32::from(plan.decimals);
    for row in rows {
        let count = row.count.map(|count| count.to_string()).unwrap_or_default();
        let sum = row.sum.map(|sum| format_scaled(sum, plan.decimals)).unwrap_or_default();
        let mean = match (row.sum, row.count) {
            (Some(sum), Some(count)) => Rational::new(sum, count),
            #[expect(clippy::cast_possible_truncation, reason = "a rounded mean is whole steps")]
            _ => row.mean.and_then(|mean| Rational::new(mean as i64, 1)),
        };
        let mean = mean.map(|mean| mean.times_ten_to(-decimals).to_f64().to_string());
        let deviation = deviation(row, decimals).map(|deviation| deviation.to_string());
        let dummies = row.dummies.map(|dummies| dummies.to_string());
        let (mean, deviation) = (mean.unwrap_or_default(), deviation.unwrap_or_default());
        let Row { aggregate, interval_start, interval_end, slots, .. } = row;
        let dummies = dummies.unwrap_or_default();
        said += &format!(
            "{aggregate},{interval_start},{interval_end},{count},{sum},{mean},{deviation},{slots},{dummies}\n"
        );
    }
    said
}

/// Of the population, rounded once.
fn deviation(row: &Row, decimals: i32) -> Option<f64> {
    let (n, sum, squares) = (i128::from(row.count?), row.sum?, row.squares?);
    let spread = n.checked_mul(squares)?.checked_sub(sum.checked_mul(sum)?)?;
    let variance = Rational::new(spread, n.checked_mul(n)?)?;
    variance.times_ten_to(decimals.checked_mul(-2)?).sqrt_to_f64()
}
