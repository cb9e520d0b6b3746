//! Membership epochs, simulated: how many windows open, and what they cost, when most
//! controllers are asleep most of the time. Nothing is encrypted; the numbers are those that
//! decide in the protocol (`encrypted-stream/docs/protocol.md`, *Membership epochs*).

mod cohort;
mod presence;

use crate::report::{Environment, Figure, Report, Series};
use alpheus_node::note;
use alpheus_policy::membership::{DEFAULT_COHORT, DEFAULT_COLLUDERS};
use alpheus_policy::plan::Fraction;
use chacha20::ChaCha20Rng;
use cohort::{Bounds, Cohorts};
use presence::Population;
use rand_core::SeedableRng;
use std::collections::BTreeMap;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench epochs
  alpheus-bench epochs --controllers 10000 --presence 3,10 --stays 0.5
  alpheus-bench epochs --format json > bench/results/epochs.json";

/// Arguments of `alpheus-bench epochs`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Number of controllers with one owner each, or several numbers
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1000,10000,100000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    controllers: Vec<u32>,
    /// How many of a hundred are awake, or several numbers
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_value = "1,3,10,50,100", value_parser = clap::value_parser!(u32).range(1..=100))]
    presence: Vec<u32>,
    /// The chance that a controller that is awake still is in the next window
    #[arg(long, value_name = "CHANCE", default_value = "0.9", value_parser = chance)]
    stays: f64,
    /// The chance that a controller fails between two messages of a window
    #[arg(long, value_name = "CHANCE", default_value = "0.01", value_parser = chance)]
    failures: f64,
    /// Windows of each simulation
    #[arg(long, value_name = "NUMBER", default_value = "48", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    windows: u32,
    /// The least population of a window
    #[arg(long, value_name = "NUMBER", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    minimum: u32,
    /// Numbers that a row releases
    #[arg(long, value_name = "NUMBER", default_value = "169", value_parser = clap::value_parser!(u32).range(1..=8192))]
    words: u32,
    /// The same seed gives the same simulation
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
}

fn chance(text: &str) -> Result<f64, String> {
    let chance = text.parse().ok().filter(|chance| (0.0..=1.0).contains(chance));
    chance.ok_or_else(|| "expected a number from 0 to 1, for example 0.9".to_owned())
}

/// The longest epoch, in windows.
const MAX_EPOCH: u32 = 32;

/// What happened in all windows of one simulation.
#[derive(Default)]
struct Totals {
    windows: u32,
    opened: u32,
    /// Cohorts whose part of a window failed, by reason.
    failed: BTreeMap<&'static str, u32>,
    parts: u32,
    /// Sums over the members of all windows.
    members: u64,
    agreements: f64,
    bytes: f64,
    epochs: u32,
}

/// Simulates every number of controllers at every presence.
pub(super) fn measure(args: &Args) -> Report {
    let environment = Environment::here();
    let (mut figures, mut series) = (Vec::new(), Vec::new());
    for controllers in &args.controllers {
        let mut points = Vec::new();
        for percent in &args.presence {
            note!("epochs: {controllers} controllers, {percent} % awake");
            let totals = simulate(args, *controllers, f64::from(*percent) / 100.0);
            points.push([f64::from(*percent), totals.share_opened()]);
            figures.extend(totals.figures(*controllers, *percent));
        }
        let name = format!("windows that open over presence, {controllers} controllers");
        series.push(Series { name, unit: "%", points });
    }
    Report { environment, figures, series }
}

fn simulate(args: &Args, controllers: u32, presence: f64) -> Totals {
    let mut rng = ChaCha20Rng::seed_from_u64(args.seed);
    let mut population = Population::new(controllers, presence, args.stays, &mut rng);
    let bounds = Bounds {
        alpha: Fraction::THIRD,
        dropout: Fraction::FIFTH,
        colluders: DEFAULT_COLLUDERS,
        cohort: DEFAULT_COHORT,
        minimum: args.minimum,
    };
    let mut totals = Totals::default();
    let (mut length, mut recent) = (1, Vec::new());
    while totals.windows < args.windows {
        let listed = population.awake();
        recent.push(u32::try_from(listed.len()).unwrap_or(u32::MAX));
        let least = recent.iter().rev().take(24).min().copied().unwrap_or(0);
        let cohorts = Cohorts::of(&listed, population.lots(), &bounds, least, &mut rng);
        totals.epochs += 1;
        let first = totals.windows;
        while totals.windows < args.windows.min(first + length) {
            if totals.windows > first {
                population.step(&mut rng);
            }
            totals.window(args, &cohorts, &population, length, &mut rng);
        }
        // An epoch of one window shows only who would have stayed for another.
        population.step(&mut rng);
        let stayed = listed.iter().filter(|at| population.is_awake(**at)).count();
        length = if stayed * 10 >= listed.len() * 9 {
            (length * 2).min(MAX_EPOCH)
        } else {
            (length / 2).max(1)
        };
    }
    totals
}

impl Totals {
    fn window(
        &mut self,
        args: &Args,
        cohorts: &Cohorts,
        population: &Population,
        length: u32,
        rng: &mut ChaCha20Rng,
    ) {
        self.windows += 1;
        let mut opened = false;
        for cohort in &cohorts.all {
            let result = cohort.window(population, args.failures, rng);
            let members = result.members;
            self.parts += 1;
            self.members += u64::from(members);
            let each = f64::from(members);
            self.agreements += each * cohort.agreements() / f64::from(length);
            self.bytes += each * (cohort.list_bytes() / f64::from(length));
            self.bytes += each * cohort.window_bytes(members, args.words);
            match result.failed {
                None => opened = true,
                Some(reason) => *self.failed.entry(reason).or_default() += 1,
            }
        }
        self.opened += u32::from(opened);
    }

    fn share_opened(&self) -> f64 {
        f64::from(self.opened) * 100.0 / f64::from(self.windows.max(1))
    }

    fn figures(&self, controllers: u32, percent: u32) -> Vec<Figure> {
        let name = |what: &str| format!("{what}, {controllers} controllers, {percent} % awake");
        let figure = |what: &str, unit, value| Figure::alone("epochs", name(what), unit, value);
        let each = |sum: f64| sum / (self.members.max(1) as f64);
        let mut figures = vec![
            figure("windows that open", "%", self.share_opened()),
            figure("members", "each window", self.members as f64 / f64::from(self.windows)),
            figure("cohorts", "each window", f64::from(self.parts) / f64::from(self.windows)),
            figure("windows", "each epoch", f64::from(self.windows) / f64::from(self.epochs)),
            figure("key agreements", "each member and window", each(self.agreements)),
            figure("bytes", "each member and window", each(self.bytes)),
        ];
        for (reason, count) in &self.failed {
            let share = f64::from(*count) * 100.0 / f64::from(self.parts);
            figures.push(figure(&format!("cohorts that fail: {reason}"), "%", share));
        }
        figures
    }
}
