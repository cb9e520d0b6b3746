//! Many controllers: the cost of a window at the service and at them, and its delay,
//! when each is a process with its own certificate.
//!
//! Everything is as in production, except that all share this machine: one service, a
//! controller for each owner with its own keys, ledger and disk flushes, mutual
//! TLS between them, windows that end by the clock. Only devices are simulated,
//! by this process.

mod deployment;
mod devices;
mod windows;

use crate::report::{Environment, Figure, Report};
use alpheus_node::failure::Failure;
use alpheus_node::note;
use deployment::{Deployment, ResourceUse};
use std::time::Duration;
use windows::Windows;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench hosts --controllers 30
  alpheus-bench hosts --controllers 1000 --format json > bench/results/hosts.json";

/// Arguments of `alpheus-bench hosts`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Number of controllers, each a process with one owner's stream; a thousand take
    /// a quarter of an hour and 3 GB of memory
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(20..=10_000))]
    controllers: u32,
    /// Number of measured windows, after two whole ones that are not measured
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1000))]
    windows: u32,
    /// Length of a window in seconds; controllers must be able to keep up
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u32).range(2..=3600))]
    window: u32,
}

/// The first windows set up graphs of masks and connections.
const WARM_UP: u32 = 2;
/// The duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(20);

/// Measures everything.
///
/// # Errors
/// If a process does not start, or rejects a valid request; if a window does
/// not open, or over fewer owners.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let deployment = Deployment::new(args.controllers as usize, args.window)?;
    deployment.register()?;
    let idle = deployment.used_over(|| {
        std::thread::sleep(IDLE);
        Ok(())
    })?;
    let mut windows = Windows::begin(&deployment, args.window)?;
    windows.warm_up(WARM_UP)?;
    let mut delays = Vec::new();
    let used = deployment.used_over(|| {
        for number in 1..=args.windows {
            let delay = windows.one()?;
            note!("window {number} of {}: {:.0} ms", args.windows, delay.as_secs_f64() * 1e3);
            delays.push(delay.as_secs_f64() * 1e3);
        }
        Ok(())
    })?;
    let figures = figures(args, &deployment, (&idle, &used), delays)?;
    Ok(Report { environment, figures, series: Vec::new() })
}

fn figures(
    args: &Args,
    deployment: &Deployment,
    (idle, used): (&ResourceUse, &ResourceUse),
    mut delays: Vec<f64>,
) -> Result<Vec<Figure>, Failure> {
    delays.sort_by(f64::total_cmp);
    let at = |place: Option<&f64>| place.copied().unwrap_or(f64::NAN);
    let group = "hosts, each a process over mutual TLS";
    let named = |what: &str| format!("{} controllers: {what}", args.controllers);
    let figure = |what: &str, unit, value| Figure::alone(group, named(what), unit, value);
    let (windows, controllers) = (f64::from(args.windows), f64::from(args.controllers));
    // The constant cost of polling is not part of the windows'.
    let over = |used: f64, idle: f64, seconds: f64| (used - idle * seconds) / windows;
    let idle_share = |cpu: f64| cpu / idle.seconds;
    let service = over(used.service, idle_share(idle.service), used.seconds);
    let all = over(used.controllers, idle_share(idle.controllers), used.seconds);
    let memory = deployment.memory()?;
    Ok(vec![
        figure("last border taken to row read, median", "ms", at(delays.get(delays.len() / 2))),
        figure("the same, slowest", "ms", at(delays.last())),
        figure("service, processor time of a window", "s", service),
        figure("all controllers, processor time of a window", "s", all),
        figure("one controller, processor time of a window", "ms", 1e3 * all / controllers),
        figure("service, nothing to do", "% of one processor", 100.0 * idle_share(idle.service)),
        figure(
            "one controller, nothing to do",
            "% of one processor",
            100.0 * idle_share(idle.controllers) / controllers,
        ),
        figure("service, memory", "MB", memory.0 / 1024.0),
        figure("one controller, memory", "MB", memory.1 / 1024.0 / controllers),
    ])
}
