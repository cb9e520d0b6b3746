//! Verifiable tables: each part of the work on one ciphertext, for every parameter set,
//! and what checking adds to the same work unchecked, in one run (Fiore, Gennaro, Pastro:
//! tables 4 and 5, figure 1).

use crate::bench::measure::Effort;
use crate::bench::report::{Environment, Figure, Goal, Report, Series};
use alpheus_verifiable_table::measure::{Part, Parts};
use alpheus_verifiable_table::parameters::Set;
use std::cell::RefCell;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus bench tables
  alpheus bench tables --only X128 --format json > bench/results/tables.json";

/// Arguments of `alpheus bench tables`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measure only this parameter set; may be repeated
    #[arg(long, value_name = "SET", value_parser = set)]
    only: Vec<Set>,
    /// Fewer and shorter samples
    #[arg(long)]
    quick: bool,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

fn set(name: &str) -> Result<Set, String> {
    Set::named(name).ok_or_else(|| "one of L128, S128, X128, W128, C80".to_owned())
}

/// Measures everything.
pub(super) fn measure(args: &Args) -> Report {
    let environment = Environment::here();
    let (sample, repeats) = if args.quick { (5, 5) } else { (20, 21) };
    let effort = Effort { sample: Duration::from_millis(sample), repeats };
    let (mut figures, mut series) = (Vec::new(), Vec::new());
    for set in Set::ALL {
        if args.only.is_empty() || args.only.contains(&set) {
            eprintln!("{set}, {}", set.ring().backend());
            figures.extend(of_set(set, effort));
            series.extend(figure_one(set, effort));
        }
    }
    Report { environment, figures, series }
}

/// Parts, in the order in which they are done.
struct Work(&'static str, &'static [Part]);

const WORK: &[Work] = &[
    Work("ProbGen: encrypt and tag a column", &[Part::Encrypt, Part::Tag]),
    Work("ProbGen: tag a product", &[Part::Product, Part::ProductTag]),
    Work("Add", &[Part::Add, Part::AddTag]),
    Work("ConstMult", &[Part::Scale, Part::AddTag]),
    Work("Mult, into a sum", &[Part::AddProduct, Part::AddTag]),
    Work("Verify and decrypt, degree 1", &[Part::Verify(1 << 10), Part::Decrypt]),
    Work("Verify and decrypt, degree 2", &[Part::VerifyProduct(1 << 10), Part::DecryptProduct]),
    Work("Verify over 1,000 runs, as after 1,000 starts", &[Part::VerifyRuns(1000)]),
    Work("a stored block's ciphertext, unpacked and expanded", &[Part::Unpack, Part::Expand]),
];

/// What the parts may take in the default set, in microseconds.
const GOALS: [Option<f64>; 9] =
    [Some(600.0), None, Some(60.0), Some(60.0), Some(130.0), None, Some(350.0), None, None];

fn of_set(set: Set, effort: Effort) -> Vec<Figure> {
    let (parts, group) = (RefCell::new(Parts::new(set)), group(set));
    let run = |all: &[Part]| all.iter().for_each(|part| parts.borrow_mut().run(*part));
    let mut figures = Vec::new();
    for (Work(name, all), goal) in WORK.iter().zip(GOALS) {
        let figure =
            Figure::alone(group, (*name).to_owned(), "µs", effort.time(|| run(all)) / 1000.0);
        let goal = goal.filter(|_| set == Set::X128);
        figures.push(match goal {
            Some(most) => figure.with_goal(Goal::AtMost(most)),
            None => figure,
        });
    }
    // The same work unchecked is the floor.
    let mut beside = |name: &str, floor: &[Part], ours: &[Part], most| {
        let compared = effort.compare(|| run(floor), || run(ours));
        let figure = Figure::compared(group, name.to_owned(), "ns", compared);
        figures.push(figure.with_goal(Goal::RatioAtMost(most)));
    };
    let sum = [Part::Unpack, Part::Expand, Part::Add];
    let product = [Part::Unpack, Part::Expand, Part::AddProduct];
    beside("server, sum, beside unchecked", &sum, &[&sum[..], &[Part::AddTag]].concat(), 1.03);
    beside(
        "server, sum of products, beside unchecked",
        &product,
        &[&product[..], &[Part::AddTag]].concat(),
        1.03,
    );
    let opened = [Part::DecryptProduct];
    let checked = [Part::VerifyProduct(1 << 10), Part::DecryptProduct];
    beside("owner, opening a sum of products, beside unchecked", &opened, &checked, 1.2);
    beside(
        "Verify at 10^6 blocks beside one block (figure 1)",
        &[Part::Verify(1)],
        &[Part::Verify(1_000_000)],
        1.1,
    );
    figures
}

/// The paper's figure 1: what it takes to check a sum of products over N values, and to
/// compute it.
fn figure_one(set: Set, effort: Effort) -> [Series; 2] {
    let (parts, n) = (RefCell::new(Parts::new(set)), set.ring().degree() as u64);
    let run = |all: &[Part]| all.iter().for_each(|part| parts.borrow_mut().run(*part));
    let curve = |name: &str, work: &dyn Fn(u64)| {
        let point = |power| {
            let values = 10_u64.pow(power);
            [values as f64, effort.time(|| work(values.div_ceil(n))) / 1000.0]
        };
        let name = format!("{set}: {name} a sum of products over N values (figure 1)");
        Series { name, unit: "µs", points: (1..=6).map(point).collect() }
    };
    let column = [Part::Unpack, Part::Expand];
    let block = [&column[..], &column, &[Part::AddProduct, Part::AddTag]].concat();
    [
        curve("checking", &|blocks| run(&[Part::VerifyProduct(blocks)])),
        curve("computing", &|blocks| (0..blocks).for_each(|_| run(&block))),
    ]
}

fn group(set: Set) -> &'static str {
    match set {
        Set::L128 => "tables, L128",
        Set::S128 => "tables, S128",
        Set::X128 => "tables, X128",
        Set::W128 => "tables, W128",
        Set::C80 => "tables, C80",
    }
}
