//! The access pass: what a login, a re-up and a registration cost the servers,
//! how many clients they carry, and what the gateway's check adds to a request.
//!
//! Servers are processes of their own, measured by the operating system's count
//! of their processor time; what is sent to them is made before. Clients are
//! simulated by this process and share the machine.

mod holders;
mod kernel;
mod load;
mod overhead;
mod town;

use crate::bench::measure::Effort;
use crate::bench::report::{Environment, Figure, Goal, Report};
use crate::failure::Failure;
use load::Crowd;
use std::time::Duration;
use town::Town;
pub(super) use town::processor_seconds;

const EXAMPLES: &str = "\
Examples:
  alpheus bench pass
  alpheus bench pass --format json > bench/results/pass.json
  alpheus bench pass --clients 12000 --epochs 40";

/// Arguments of `alpheus bench pass`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Requests of each kind to the servers
    #[arg(long, value_name = "NUMBER", default_value = "2000", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    requests: u32,
    /// Simulated clients
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
    /// For so many epochs of 15 seconds
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=240))]
    epochs: u32,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

/// Measures everything.
///
/// # Errors
/// If a process does not start or refuses what it should take.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let effort = Effort { sample: Duration::from_millis(20), repeats: 9 };
    eprintln!("kernel");
    let mut figures = kernel::figures(effort)?;
    eprintln!("servers: {} requests of each kind", args.requests);
    figures.extend(servers(args.requests)?);
    eprintln!("gateway: requests of 4 KB");
    figures.extend(overhead::figures()?);
    eprintln!("crowd: {} clients, {} epochs of 15 s", args.clients, args.epochs);
    figures.extend(crowd(args)?);
    Ok(Report { environment, figures })
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
fn crowd(args: &Args) -> Result<Vec<Figure>, Failure> {
    let town = Town::new(15, args.clients)?;
    let (verifier, gateway) = (town.verifier()?, town.gateway()?);
    let Crowd { failed, latencies, seconds, verifier_cpu, gateway_cpu, verifier_kb, gateway_kb } =
        town.runtime.block_on(load::crowd(
            &town,
            &verifier,
            &gateway,
            args.clients,
            args.epochs,
        ))?;
    let group = "pass, a crowd in epochs of 15 s";
    let named = |what: &str| format!("{} clients, {} epochs: {what}", args.clients, args.epochs);
    let figure = |what: &str, unit, value| Figure::alone(group, named(what), unit, value);
    let at = |thousandths: usize| {
        let place = latencies.len() * thousandths / 1000;
        latencies.get(place).or(latencies.last()).copied().unwrap_or(f64::NAN)
    };
    Ok(vec![
        figure("requests failed", "", failed).with_goal(Goal::AtMost(0.0)),
        figure("requests", "", latencies.len() as f64),
        figure("latency, median", "ms", at(500)),
        figure("latency, 99 of 100", "ms", at(990)),
        figure("latency, 999 of 1000", "ms", at(999)),
        figure("verifier, share of one processor", "%", 100.0 * verifier_cpu / seconds),
        figure("gateway, share of one processor", "%", 100.0 * gateway_cpu / seconds),
        figure("verifier, memory for a client", "KB", verifier_kb / f64::from(args.clients)),
        figure("gateway, memory for a client", "KB", gateway_kb / f64::from(args.clients)),
    ])
}
