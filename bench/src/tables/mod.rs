//! Verifiable tables: each part of the work on one ciphertext, for every parameter set,
//! what checking adds to the same work unchecked, and the paper's own figures beside (Fiore,
//! Gennaro, Pastro: tables 4 and 5, figure 1).

mod ours;
#[cfg(feature = "pairing")]
mod pairing;
mod paper;
mod rows;

use crate::measure::Effort;
use crate::report::{Environment, Report, Series};
use alpheus_node::note;
use alpheus_verifiable_table::parameters::Set;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench tables
  alpheus-bench tables --only X128 --format json > bench/results/tables.json

A build with `--features pairing` measures the paper's own scheme too, as P80 and P128.";

/// Arguments of `alpheus-bench tables`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measure only this parameter set; may be repeated
    #[arg(long, value_name = "SET", value_parser = named)]
    only: Vec<MeasuredSet>,
    /// Fewer and shorter samples
    #[arg(long)]
    quick: bool,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

/// A set of one of the schemes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MeasuredSet {
    Ours(Set),
    #[cfg(feature = "pairing")]
    Paper(alpheus_pairing_table::parameters::PairingSet),
}

#[cfg(feature = "pairing")]
fn papers() -> impl Iterator<Item = MeasuredSet> {
    use alpheus_pairing_table::parameters::PairingSet;
    PairingSet::ALL.into_iter().map(MeasuredSet::Paper)
}

#[cfg(not(feature = "pairing"))]
fn papers() -> impl Iterator<Item = MeasuredSet> {
    std::iter::empty()
}

fn all() -> impl Iterator<Item = MeasuredSet> {
    Set::ALL.into_iter().map(MeasuredSet::Ours).chain(papers())
}

fn named(name: &str) -> Result<MeasuredSet, String> {
    let found = all().find(|set| set.name().eq_ignore_ascii_case(name));
    let names = || all().map(MeasuredSet::name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("one of {}", names()))
}

impl MeasuredSet {
    fn name(self) -> &'static str {
        match self {
            Self::Ours(set) => set.name(),
            #[cfg(feature = "pairing")]
            Self::Paper(set) => set.name(),
        }
    }

    fn measure(self, effort: Effort, report: &mut Report) {
        match self {
            Self::Ours(set) => {
                report.figures.extend(ours::figures(set, effort));
                report.series.extend(ours::curves(set, effort));
            }
            #[cfg(feature = "pairing")]
            Self::Paper(set) => {
                report.figures.extend(pairing::figures(set, effort));
                report.series.extend(pairing::curves(set, effort));
            }
        }
    }
}

/// Measures everything.
pub(super) fn measure(args: &Args) -> Report {
    let (sample, repeats) = if args.quick { (5, 5) } else { (20, 21) };
    let effort = Effort { sample: Duration::from_millis(sample), repeats };
    let environment = Environment::here();
    let mut report = Report { environment, figures: Vec::new(), series: Vec::new() };
    for set in all().filter(|set| args.only.is_empty() || args.only.contains(set)) {
        note!("{}, {}", set.name(), Set::X128.ring().backend());
        set.measure(effort, &mut report);
    }
    report
}

/// Nanoseconds of what takes N values, which fill so many blocks of n, over N.
fn curve(set: &str, name: &str, n: u64, time: impl Fn(u64) -> f64) -> Series {
    let point = |power| {
        let values = 10_u64.pow(power);
        [values as f64, time(values.div_ceil(n)) / 1000.0]
    };
    let name = format!("{set}: {name} a sum of products over N values (figure 1)");
    Series { name, unit: "µs", points: (1..=6).map(point).collect() }
}
