//! The anonymous board: what a write costs a database, beside the AES that no
//! design which hides the message by a pseudorandom generator can do without; what
//! it costs its writer; how many come back; and the paper's figures.

use crate::bench::measure::Effort;
use crate::bench::program::processor_seconds;
use crate::bench::report::{Environment, Figure, Goal, Report};
use crate::board::client::{Client, Posted};
use crate::board::replay::first_view;
use crate::board::stage::Stage;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::serve::block_on;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::configuration::Party;
use alpheus_anonymous_board::dpf::digest::Kappa;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, Shape, Side};
use alpheus_anonymous_board::row::{Format, Row};
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use rand_core::Rng;
use std::hint::black_box;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus bench board
  alpheus bench board --writes 1000 --gigabyte --format json > bench/results/board.json";

/// Arguments of `alpheus bench board`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
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

const KERNEL: &str = "board, one write at one database";
const HTTP: &str = "board, behind HTTP";
const WRITER: &str = "board, a writer";
const DELIVERY: &str = "board, messages that come back";
/// Rows of 160 bytes in all.
const PAPER: Format = Format { message: 144, recovery: false };
const ROWS: u32 = 65_536;
/// Keys that pass over a table together.
const KEYS: usize = 16;

/// Measures everything.
///
/// # Errors
/// If a server does not start or refuses what it should take.
pub(super) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let effort = Effort { sample: Duration::from_millis(50), repeats: 7 };
    eprintln!("kernel");
    let mut figures = kernel(effort)?;
    eprintln!("sizes of tables (the paper's figures 3 and 4)");
    figures.extend(sizes(args.gigabyte)?);
    eprintln!("writer and delivery");
    figures.push(writer(effort)?);
    figures.extend(delivery()?);
    eprintln!("servers: {} writes", args.writes);
    figures.extend(behind_http(args.writes)?);
    Ok(Report { environment, figures, series: Vec::new() })
}

fn prgs() -> Prgs {
    Prgs::new(&[1; 16], &[2; 16], &[3; 16])
}

fn keys(shape: &Shape, many: usize) -> Result<Vec<Key>, Failure> {
    let mut rng = entropy::rng()?;
    let message = vec![7; shape.width()];
    let pair = |_| {
        let row = rng.next_u32() % shape.rows;
        let [first, _] =
            generate(&prgs(), shape, row, &message, &mut rng).blame(Category::Check)?;
        Ok(first)
    };
    (0..many).map(pair).collect()
}

/// Shares of all keys.
fn shares(keys: &[Key]) -> Vec<Share<'_>> {
    keys.iter().map(|key| Share { root: &key.root, words: &key.words }).collect()
}

/// As many blocks of AES as a table has, a first-level cache at a time.
fn floor(shape: &Shape) -> impl FnMut() + use<> {
    let cipher = aes::Aes128Enc::new(&[1; 16].into());
    let mut blocks = vec![aes::Block::default(); 256];
    let times = shape.bytes() * KEYS / 16 / 256;
    move || (0..times).for_each(|_| cipher.encrypt_blocks(black_box(&mut blocks)))
}

fn kernel(effort: Effort) -> Result<Vec<Figure>, Failure> {
    let shape = PAPER.shape(ROWS).blame(Category::Check)?;
    let (prgs, keys) = (prgs(), keys(&shape, KEYS)?);
    let (pass, shares) = (Pass::new(&prgs, shape, Side::First), shares(&keys));
    let (mut table, kappa) = (vec![0; shape.bytes()], Kappa([5; 16]));
    let milliseconds = |compared: crate::bench::measure::Compared| compared.per(KEYS * 1_000_000);
    let add = effort.compare(floor(&shape), || _ = black_box(pass.add(&shares, &mut table)));
    let both = effort.compare(floor(&shape), || {
        _ = black_box(pass.add_and_digest(&shares, &mut table, &kappa));
    });
    let named = |what: &str| format!("{ROWS} rows of 160 bytes: {what}; floor: AES of the rows");
    Ok(vec![
        Figure::compared(KERNEL, named("table"), "ms", milliseconds(add)),
        Figure::compared(KERNEL, named("table and audit"), "ms", milliseconds(both))
            .with_goal(Goal::RatioAtMost(2.0)),
    ])
}

/// The cost of a byte of table must not grow with the table.
fn sizes(gigabyte: bool) -> Result<Vec<Figure>, Failure> {
    let effort = Effort { sample: Duration::from_millis(1), repeats: 3 };
    // Fewer keys than elsewhere: a gigabyte is passed over by each.
    let many = 4;
    let mut figures = Vec::new();
    let (mut first, largest) = (None, if gigabyte { 6_553_600 } else { 262_144 });
    for rows in [1_024, 16_384, 65_536, 262_144, 6_553_600] {
        if rows > largest {
            break;
        }
        let shape = PAPER.shape(rows).blame(Category::Check)?;
        let (prgs, keys) = (prgs(), keys(&shape, many)?);
        let (pass, shares) = (Pass::new(&prgs, shape, Side::First), shares(&keys));
        let mut table = vec![0; shape.bytes()];
        let time = effort.time(|| {
            _ = black_box(pass.add_and_digest(&shares, &mut table, &Kappa([5; 16])));
        });
        let of_byte = time / many as f64 / shape.bytes() as f64;
        let name =
            format!("{rows} rows of 160 bytes ({} MB): a byte of table", shape.bytes() / 1_000_000);
        let figure = Figure::alone(KERNEL, name, "ns", of_byte);
        let reference = *first.get_or_insert(of_byte);
        figures.push(figure.with_goal(Goal::AtMost(1.3 * reference)));
        let rate = 1e9 / (of_byte * shape.bytes() as f64);
        let name = format!("{rows} rows of 160 bytes: writes a second, one core (figure 3)");
        figures.push(Figure::alone(KERNEL, name, "", rate));
    }
    Ok(figures)
}

fn writer(effort: Effort) -> Result<Figure, Failure> {
    let shape = PAPER.shape(ROWS).blame(Category::Check)?;
    let (prgs, mut rng) = (prgs(), entropy::rng()?);
    let message = vec![7; shape.width()];
    let time = effort.time(|| {
        _ = black_box(generate(&prgs, &shape, 9, &message, &mut rng));
        let _ = black_box(Format::RECOVERED.encode(&[7; 160], &mut rng));
    });
    let name = "both keys, and a row with recovery".to_owned();
    Ok(Figure::alone(WRITER, name, "ms", time / 1e6).with_goal(Goal::AtMost(2.0)))
}

/// Messages that come back of 2,000, at three loads, beside e^(−λ)(1 + λ).
fn delivery() -> Result<Vec<Figure>, Failure> {
    let (writers, format, mut rng) = (2_000_u32, Format::RECOVERED, entropy::rng()?);
    let usual = format.rows_for(writers);
    let mut figures = Vec::new();
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
        figures.push(Figure::alone(DELIVERY, name, "%", rate));
    }
    Ok(figures)
}

/// Writes that were made before, from the first request to the table.
fn behind_http(writes: u32) -> Result<Vec<Figure>, Failure> {
    let mut rng = entropy::rng()?;
    let writers: Vec<SigningKey> =
        (0..writes).map(|_| SigningKey::from_seed(&Secret::random(&mut rng))).collect();
    let stage = Stage::start(&writers, PAPER, Some(ROWS))?;
    let databases = Side::BOTH.map(|side| stage.process(Party::Database(side)));
    let (spent, bytes) = block_on(async {
        let client = Client::new(&stage.card)?;
        let view = first_view(&client).await?;
        let mut made = Vec::new();
        for key in &writers {
            let tag = Members::tag_of(&key.verifying_key());
            let ticket = |name: &_| Members::ticket(key, name);
            let content = Content::Message(b"a message of some length");
            made.push(view.write(content, tag, ticket, &mut rng).blame(Category::Check)?);
        }
        let bytes = made.first().and_then(|(_, one)| postcard::to_allocvec(one).ok());
        let before = [processor_seconds(databases[0])?, processor_seconds(databases[1])?];
        let mut posted = Vec::new();
        for (written, submission) in made {
            let received = client.submit(&written, &submission).await?;
            posted.push(Posted { written, submission, received });
        }
        client.settled(view.epoch(), &posted).await?;
        let after = [processor_seconds(databases[0])?, processor_seconds(databases[1])?];
        let spent = (after[0] - before[0]).max(after[1] - before[1]);
        Ok((spent, bytes.map_or(0, |bytes| bytes.len())))
    })?;
    let name = format!(
        "{ROWS} rows of 160 bytes, {writes} writes: processor time of a database, all included"
    );
    let each = 1000.0 * spent / f64::from(writes);
    let upload = "65536 rows of 160 bytes: upload to each server".to_owned();
    Ok(vec![
        Figure::alone(HTTP, name, "ms", each).with_goal(Goal::AtMost(1.6)),
        Figure::alone(
            HTTP,
            "writes a second, one core; the paper's cluster: 38.4, its code run anew: 36 to 105"
                .into(),
            "",
            1000.0 / each,
        ),
        Figure::alone(HTTP, upload, "bytes", bytes as f64).with_goal(Goal::AtMost(1500.0)),
    ])
}
