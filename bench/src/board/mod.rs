//! The anonymous board: the cost of a write at a database, compared with the AES that any
//! design needs that hides the message with a pseudorandom generator; the cost
//! at its writer; the share of messages that come back; the cost of a request at one of s equal servers; and
//! figures 3 to 7 of the paper.

mod equal_servers;
mod kernel;
mod messages;
mod servers;

use crate::measure::Effort;
use crate::report::{Environment, Figure, Goal, Report, Series};
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::row::{Format, Row};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use rand_core::Rng;
use std::hint::black_box;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus-bench board
  alpheus-bench board --only kernel --only writer
  alpheus-bench board --writes 1000 --gigabyte --format json > bench/results/board.json";

/// Arguments of `alpheus-bench board`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Measure only this part; may be repeated
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Writes to the servers
    #[arg(long, value_name = "NUMBER", default_value = "200", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    writes: u32,
    /// Measure a table of a gigabyte too
    #[arg(long)]
    gigabyte: bool,
    /// Fail if a goal is not met
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// One write over a table, compared with AES of the table's bytes
    Kernel,
    /// Tables of many sizes, and of many widths (figures 3 and 4)
    Sizes,
    /// Bytes that a write moves (figure 5)
    Bytes,
    /// The cost of a write at its writer
    Writer,
    /// Messages that come back, at three loads
    Delivery,
    /// One request at one of s equal servers
    Equal,
    /// The same by rows and by servers (figures 6 and 7)
    EqualCurves,
    /// Three servers behind HTTP
    Servers,
}

/// Rows of 160 bytes in all.
const PAPER: Format = Format { max_message: 144, recovery: false };
const ROWS: u32 = 65_536;

/// Measures everything.
///
/// # Errors
/// If a server does not start, or rejects a valid request.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let effort = Effort { sample: Duration::from_millis(50), repeats: 7 };
    let wanted = |part, what: &str| {
        let wanted = args.only.is_empty() || args.only.contains(&part);
        if wanted {
            note!("{what}");
        }
        wanted
    };
    let (mut figures, mut series) = (Vec::new(), Vec::new());
    if wanted(Part::Kernel, "kernel") {
        figures.extend(kernel::figures(effort)?);
    }
    if wanted(Part::Sizes, "sizes of tables") {
        let (sizes, curves) = kernel::sizes(args.gigabyte)?;
        figures.extend(sizes);
        series.extend(curves);
        figures.extend(kernel::widths()?);
    }
    if wanted(Part::Bytes, "bytes") {
        figures.extend(messages::figures()?);
    }
    if wanted(Part::Writer, "writer") {
        figures.push(writer(effort)?);
    }
    if wanted(Part::Delivery, "delivery") {
        let (rates, curve) = delivery()?;
        figures.extend(rates);
        series.push(curve);
    }
    if wanted(Part::Equal, "equal servers") {
        figures.extend(equal_servers::figures()?);
    }
    if wanted(Part::EqualCurves, "equal servers, by rows and number") {
        let (rates, curves) = equal_servers::curves()?;
        figures.extend(rates);
        series.extend(curves);
    }
    if wanted(Part::Servers, "servers") {
        figures.extend(servers::figures(args.writes)?);
    }
    Ok(Report { environment, figures, series })
}

fn writer(effort: Effort) -> Result<Figure, Failure> {
    let shape = PAPER.shape(ROWS).blame(Category::Check)?;
    let (prgs, mut rng) = (kernel::prgs(), entropy::rng()?);
    let message = vec![7; shape.width()];
    let time = effort.time(|| {
        _ = black_box(generate(&prgs, &shape, 9, &message, &mut rng));
        let _ = black_box(Format::RECOVERED.encode(&[7; 160], &mut rng));
    });
    let name = "both keys, and a row with recovery".to_owned();
    Ok(Figure::alone("board, a writer", name, "ms", time / 1e6).with_goal(Goal::AtMost(2.0)))
}

/// Messages that come back of 2,000, at three loads, and e^(−λ)(1 + λ).
fn delivery() -> Result<(Vec<Figure>, Series), Failure> {
    let (writers, format, mut rng) = (2_000_u32, Format::RECOVERED, entropy::rng()?);
    let usual = format.rows_for(writers);
    let (mut figures, mut points) = (Vec::new(), Vec::new());
    for rows in [usual / 2, usual, usual * 2] {
        let width = format.shape(rows).blame(Category::Check)?.width();
        let mut table = vec![0; width * rows as usize];
        for writer in 0..writers {
            let row = format.encode(&writer.to_be_bytes(), &mut rng).blame(Category::Check)?;
            let at = (rng.next_u32() % rows) as usize * width;
            table.iter_mut().skip(at).zip(row.iter()).for_each(|(a, b)| *a ^= b);
        }
        let came = |row: &[u8]| match format.decode(row) {
            Row::One(_) => 1,
            Row::Two(_) => 2,
            Row::Empty | Row::Lost => 0,
        };
        let back: u32 = table.chunks(width).map(came).sum();
        let load = f64::from(writers) / f64::from(rows);
        let expected = 100.0 * (-load).exp() * (1.0 + load);
        let name = format!("{writers} writers, {rows} rows (by the formula {expected:.1})");
        let rate = 100.0 * f64::from(back) / f64::from(writers);
        points.push([load, rate]);
        figures.push(Figure::alone("board, messages that come back", name, "%", rate));
    }
    let name = "messages that come back, by writers for each row".to_owned();
    Ok((figures, Series { name, unit: "%", points }))
}
