//! The access pass: the cost of a login, a re-up and a registration at the servers,
//! the number of clients they support, and the cost of the gateway's check.
//!
//! Servers are separate processes, measured by the operating system's count
//! of their processor time. Requests are made in advance. Clients are
//! simulated by this process and share the machine.

mod crowd;
mod holders;
mod kernel;
mod load;
mod overhead;
mod throughput;
mod town;

use crate::measure::Effort;
use crate::report::{Environment, Figure, Goal, Report, Series};
use alpheus_node::failure::Failure;
use alpheus_node::note;
use crowd::Crowd;
use holders::Stay;
use std::sync::Arc;
use std::time::Duration;
use town::Town;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench pass
  alpheus-bench pass --format json > bench/results/pass.json
  alpheus-bench pass --clients 12000 --epochs 40
  alpheus-bench pass --clients 12000 --epochs 40 --join 1200 --login-only
  alpheus-bench pass --processors 1,2,4 --requests 8000";

/// Arguments of `alpheus-bench pass`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Requests of each kind to the servers
    #[arg(long, value_name = "NUMBER", default_value = "2000", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    requests: u32,
    /// Simulated clients
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
    /// Number of epochs of 15 seconds
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=240))]
    epochs: u32,
    /// New clients in each epoch; by default all arrive in the first
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    join: Option<u32>,
    /// Clients log in again in each epoch, without re-ups
    #[arg(long)]
    login_only: bool,
    /// Measure the maximum requests a second of verifiers on this many processors; the
    /// requests are made on the others, so leave at least one free
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    processors: Vec<u16>,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

/// Measures everything.
///
/// # Errors
/// If a process does not start, or rejects a valid request.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let effort = Effort { sample: Duration::from_millis(20), repeats: 9 };
    note!("kernel");
    let mut figures = kernel::figures(effort)?;
    note!("servers: {} requests of each kind", args.requests);
    figures.extend(servers(args.requests)?);
    note!("gateway: requests of 4 KB");
    figures.extend(overhead::figures()?);
    for processors in &args.processors {
        note!("the most: verifiers on {processors} processors");
        figures.extend(throughput::figures(args.requests, usize::from(*processors))?);
    }
    note!("crowd: {} clients, {} epochs of 15 s", args.clients, args.epochs);
    let (crowded, series) = crowd(args)?;
    figures.extend(crowded);
    Ok(Report { environment, figures, series })
}

const GROUP: &str = "pass, servers behind HTTP";

fn servers(requests: u32) -> Result<Vec<Figure>, Failure> {
    let town = Town::new(4, requests)?;
    let issuer = town.issuer()?;
    let registered = town.runtime.block_on(load::register(&town, requests.min(500)))?;
    let register = registered.per_request(&issuer)?;
    let verifier = town.verifier()?;
    let sent = town.runtime.block_on(load::log_in_and_re_up(&town, &verifier, requests))?;
    let figure = |name: &str, ours, most| {
        let named = format!("{name}, processor time of its server");
        Figure::alone(GROUP, named, "ms", ours).with_goal(Goal::AtMost(most))
    };
    Ok(vec![
        figure("register", register, 1.25),
        figure("login", sent.login, 0.33),
        figure("re-up", sent.re_up, 0.125),
    ])
}

/// The paper's: 12,000 clients, of whose requests 0.02 % failed; bytes per client
/// 2.1 KB at the hash server, 23.8 at the authentication server, 7.3 at the
/// application's.
fn crowd(args: &Args) -> Result<(Vec<Figure>, Vec<Series>), Failure> {
    let town = Town::new(15, 0)?;
    let (verifier, gateway) = (Arc::new(town.verifier()?), Arc::new(town.gateway()?));
    let stay = Stay { epochs: args.epochs, join: args.join, login_only: args.login_only };
    let crowd = crowd::crowd(&town, &verifier, &gateway, args.clients, stay);
    let Crowd { failed, latencies, verifier, gateway } = town.runtime.block_on(crowd)?;
    let group = "pass, a crowd in epochs of 15 s";
    let each = if args.login_only { "logins only" } else { "carried on" };
    let named =
        |what: &str| format!("{} clients, {} epochs, {each}: {what}", args.clients, args.epochs);
    let figure = |what: &str, unit, value| Figure::alone(group, named(what), unit, value);
    let at = |thousandths: usize| {
        let place = latencies.len() * thousandths / 1000;
        latencies.get(place).or(latencies.last()).copied().unwrap_or(f64::NAN)
    };
    let (clients, share) = (f64::from(args.clients), "% of one processor");
    let figures = vec![
        figure("requests failed", "", failed as f64).with_goal(Goal::AtMost(0.0)),
        figure("requests answered", "", latencies.len() as f64),
        figure("latency, median", "ms", at(500)),
        figure("latency, 99 of 100", "ms", at(990)),
        figure("latency, 999 of 1000", "ms", at(999)),
        figure("verifier, once all are there", share, verifier.steady),
        figure("gateway, once all are there", share, gateway.steady),
        figure("verifier, memory for a client", "KB", verifier.memory / clients),
        figure("gateway, memory for a client", "KB", gateway.memory / clients),
    ];
    Ok((figures, vec![verifier.processor, gateway.processor]))
}
