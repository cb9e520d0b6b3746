//! Writes over tables of many shapes, in processor time of one thread.

use super::{PAPER, ROWS};
use crate::measure::{Comparison, Effort};
use crate::report::{Figure, Goal, Series};
use alpheus_anonymous_board::dpf::digest::Kappa;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{BLOCK, Key, Shape, Side};
use alpheus_anonymous_board::row::Format;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use rand_core::Rng;
use std::hint::black_box;
use std::time::Duration;

const KERNEL: &str = "board, one write at one database";
/// Keys that pass over a table together.
const KEYS: usize = 16;
/// Keys over the larger tables: each passes over a gigabyte.
const FEW: usize = 4;
const KAPPA: Kappa = Kappa([5; 16]);

pub(super) fn prgs() -> Prgs {
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

fn shares(keys: &[Key]) -> Vec<Share<'_>> {
    keys.iter().map(|key| Share { root: &key.root, words: &key.words }).collect()
}

/// As many blocks of AES as `keys` passes over a table have, a first-level cache at a time.
fn floor<'a>(prgs: &'a Prgs, shape: &Shape, keys: usize) -> impl FnMut() + use<'a> {
    let mut blocks = vec![[0; BLOCK]; 256];
    let all = shape.bytes() * keys / BLOCK;
    let (times, rest) = (all / blocks.len(), all % blocks.len());
    move || {
        (0..times).for_each(|_| prgs.aes_only(black_box(&mut blocks)));
        prgs.aes_only(black_box(&mut blocks[..rest]));
    }
}

/// A write of the paper's size, and one of a row with recovery, with the AES of this processor,
/// and one block at a time as on others.
pub(super) fn figures(effort: Effort) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for (format, rows) in [(PAPER, ROWS), (Format::RECOVERED, Format::RECOVERED.rows_for(3_500))] {
        let shape = format.shape(rows).blame(Category::Check)?;
        let keys = keys(&shape, KEYS)?;
        let shares = shares(&keys);
        let mut table = vec![0; shape.bytes()];
        for (prgs, how) in [(prgs(), ""), (prgs().narrow(), ", one block of AES at a time")] {
            let pass = Pass::new(&prgs, shape, Side::First);
            let milliseconds = |compared: Comparison| compared.per(KEYS * 1_000_000);
            let named = |what: &str| {
                let bytes = shape.width();
                format!("{rows} rows of {bytes} bytes{how}: {what}; floor: AES of the rows")
            };
            let add = effort.compare(floor(&prgs, &shape, KEYS), || {
                _ = black_box(pass.add(&shares, &mut table));
            });
            let both = effort.compare(floor(&prgs, &shape, KEYS), || {
                _ = black_box(pass.add_and_digest(&shares, &mut table, &KAPPA));
            });
            let both = Figure::compared(KERNEL, named("table and audit"), "ms", milliseconds(both));
            figures.extend([
                Figure::compared(KERNEL, named("table"), "ms", milliseconds(add)),
                both.with_goal(Goal::RatioAtMost(2.0)),
            ]);
        }
    }
    Ok(figures)
}

/// Nanoseconds for a byte of table with audit, compared with those of its AES.
fn of_byte(shape: Shape) -> Result<Comparison, Failure> {
    let effort = Effort { sample: Duration::from_millis(5), repeats: 3 };
    let (prgs, keys) = (prgs(), keys(&shape, FEW)?);
    let (pass, shares) = (Pass::new(&prgs, shape, Side::First), shares(&keys));
    let mut table = vec![0; shape.bytes()];
    let compared = effort.compare(floor(&prgs, &shape, FEW), || {
        _ = black_box(pass.add_and_digest(&shares, &mut table, &KAPPA));
    });
    Ok(compared.per(FEW * shape.bytes()))
}

/// Writes a second, at so many nanoseconds for a byte.
fn rate(shape: &Shape, of_byte: f64) -> f64 {
    1e9 / (of_byte * shape.bytes() as f64)
}

/// Figure 3: writes a second by rows, and the most that AES allows. The cost of a byte
/// must not grow with the table.
pub(super) fn sizes(gigabyte: bool) -> Result<(Vec<Figure>, Vec<Series>), Failure> {
    let mut figures = Vec::new();
    let (mut ours, mut most) = (Vec::new(), Vec::new());
    let mut first = None;
    let largest = if gigabyte { 6_553_600 } else { 1_048_576 };
    for rows in [16, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 6_553_600] {
        if rows > largest {
            break;
        }
        let shape = PAPER.shape(rows).blame(Category::Check)?;
        let Comparison { ours: of_ours, floor: of_floor, .. } = of_byte(shape)?;
        let (writes, bound) = (rate(&shape, of_ours), rate(&shape, of_floor));
        ours.push([f64::from(rows), writes]);
        most.push([f64::from(rows), bound]);
        let name =
            format!("{rows} rows of 160 bytes: writes a second, one core (by AES {bound:.0})");
        figures.push(Figure::alone("board, rows of a table (figure 3)", name, "", writes));
        // Smaller tables have less than one group of keys and rows to work on.
        if rows >= 1_024 {
            let megabytes = shape.bytes() as f64 / 1e6;
            let name = format!("{megabytes:.1} MB of table: one byte");
            let figure = Figure::alone("board, rows of a table (figure 3)", name, "ns", of_ours);
            let reference = *first.get_or_insert(of_ours);
            figures.push(figure.with_goal(Goal::AtMost(1.3 * reference)));
        }
    }
    let curve = |name: &str, points| Series { name: name.into(), unit: "writes/s", points };
    Ok((figures, vec![curve("ours, by rows", ours), curve("AES alone, by rows", most)]))
}

/// Figure 4: ten megabytes of table, narrow or wide. The paper's keys are the square root
/// of the table at best; a tree's are nowhere near it.
pub(super) fn widths() -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for blocks in [1, 4, 10, 40, 160, 640, 2_560] {
        let rows = 10_485_760 / (blocks * 16);
        let shape = Shape::new(rows, blocks).blame(Category::Check)?;
        let writes = rate(&shape, of_byte(shape)?.ours);
        // Root, words of the levels, payload word, check word.
        let key = BLOCK + (BLOCK + 1) * shape.depth() + shape.width() + 64;
        let name = format!(
            "{rows} rows of {} bytes, keys of {:.1} kB: writes a second",
            shape.width(),
            key as f64 / 1e3
        );
        figures.push(Figure::alone(
            "board, 10 MB in rows of any width (figure 4)",
            name,
            "",
            writes,
        ));
    }
    Ok(figures)
}
