//! Mode 2: one request at one of s equal servers, in processor time of one thread, by both
//! constructions of keys; figures 6 and 7 of the paper.
//!
//! A request is the work of a server for a write: it checks its part, adds it to its share of
//! the table and computes its opening. All servers do this at the same time, so the
//! cluster handles as many requests a second as each of them.

use crate::measure::Effort;
use crate::report::{Figure, Goal, Series};
use alpheus_anonymous_board::coalition::audit::{CheckedPart, Part, evaluation_points, write};
use alpheus_anonymous_board::coalition::engine::{Engine, Parity, Points};
use alpheus_anonymous_board::coalition::field::Field;
use alpheus_anonymous_board::coalition::gate::{EvaluationPoint, Proof};
use alpheus_anonymous_board::coalition::group::{Group, Modular};
use alpheus_anonymous_board::coalition::parity::{Grid, Permutation};
use alpheus_anonymous_board::dpf::Shape;
use alpheus_crypto::cells::EMBEDDED_BYTES;
use alpheus_crypto::hash::Digest;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use std::hint::black_box;
use std::time::Duration;

const ONE: &str = "board, one request at one of s equal servers";
const BY_ROWS: &str = "board, rows of a table, eight servers (figure 6)";
const BY_SERVERS: &str = "board, number of servers (figure 7)";
/// Bytes of a row, and blocks of it.
const ROW: usize = 160;
const BLOCKS: u32 = 10;
/// The paper's servers, and its table.
const SERVERS: u8 = 8;
const ROWS: u32 = 1_024;
const EFFORT: Effort = Effort { sample: Duration::from_millis(20), repeats: 5 };
const LABEL: &str = "measured";

/// Seconds of a request, and bytes that the writer sends for it to all servers together.
struct Request {
    seconds: f64,
    bytes: usize,
}

/// Keys from AES.
fn parity(servers: u8, rows: u32) -> Result<Request, Failure> {
    let mut rng = entropy::rng()?;
    let shape = Shape::new(rows, BLOCKS).blame(Category::Check)?;
    let grid = Grid::new(shape, servers).blame(Category::Check)?;
    let (engine, bound) = (Parity::new(Permutation::new(&[1; 16]), grid), Digest([2; 32]));
    let (common, mut parts) =
        write(&engine, &bound, 0, &[7; ROW], &mut rng).blame(Category::Check)?;
    let bytes = common.word.len() + parts.len() * (grid.key_bytes() + 32);
    let sent = postcard::to_allocvec(&parts.swap_remove(0)).blame(Category::Check)?;
    let (points, mut table) = (evaluation_points(&[3]), engine.table());
    let nanoseconds = EFFORT.time(|| {
        if let Ok(part) = postcard::from_bytes::<Part>(&sent)
            && let Ok(held) = CheckedPart::open(&engine, &bound, 0, &common, part)
        {
            _ = black_box(held.add(&engine, &points, &mut table));
        }
    });
    Ok(Request { seconds: nanoseconds / 1e9, bytes })
}

/// Keys from a group, as in the paper, with the proofs that it omits.
fn group(servers: u8, rows: u32) -> Result<Request, Failure> {
    let mut rng = entropy::rng()?;
    let engine = Group::new(servers.into(), rows, ROW);
    let message = vec![7; engine.width() * EMBEDDED_BYTES];
    let (word, keys, known) = engine.generate(0, &message, &mut rng).blame(Category::Check)?;
    let point = |which: &[u8]| Modular::from_hash(LABEL, &[which]);
    let points = [Points { row: point(b"row"), r: point(b"r"), s: point(b"s") }];
    let mut proofs =
        Proof::new(&engine.sums(&known, &points[0]), &mut rng).share(keys.len(), &mut rng);
    let (place, proof) = (EvaluationPoint::from_hash(LABEL, &[]), proofs.swap_remove(0));
    let key = keys.first().ok_or("no key").blame(Category::Check)?;
    let bytes = 32 * word.cells.len() + keys.len() * key.expose().len();
    let mut table = engine.table();
    let nanoseconds = EFFORT.time(|| {
        if engine.check(0, &word, key).is_ok()
            && let Some(sums) = engine.add(&word, key, &points, &mut table).pop()
        {
            _ = black_box((place.open(&sums, &proof).to_bytes(), Group::mark(key).expose()));
        }
    });
    Ok(Request { seconds: nanoseconds / 1e9, bytes })
}

/// The paper's table and its eight servers, with both kinds of keys.
pub(super) fn figures() -> Result<Vec<Figure>, Failure> {
    let named = |what: &str, bytes: usize| {
        let sent = bytes as f64 / 1e3;
        format!(
            "{SERVERS} servers, {ROWS} rows of {ROW} bytes, {what}; {sent:.0} kB to each (paper 3.44 s, without proofs)"
        )
    };
    let (ours, theirs) = (parity(SERVERS, ROWS)?, group(SERVERS, ROWS)?);
    let mut figures = vec![
        Figure::alone(ONE, named("AES, audited", ours.bytes), "ms", 1e3 * ours.seconds)
            .with_goal(Goal::AtMost(170.0)),
        Figure::alone(ONE, named("group, audited", theirs.bytes), "ms", 1e3 * theirs.seconds),
    ];
    for servers in 3..=6 {
        let request = parity(servers, ROWS)?;
        let kilobytes = request.bytes as f64 / 1e3;
        let name = format!(
            "{servers} servers, {ROWS} rows of {ROW} bytes, AES, audited; {kilobytes:.0} kB to each"
        );
        figures.push(Figure::alone(ONE, name, "ms", 1e3 * request.seconds));
    }
    Ok(figures)
}

/// Figures 6 and 7.
pub(super) fn curves() -> Result<(Vec<Figure>, Vec<Series>), Failure> {
    let (mut figures, mut series) = (Vec::new(), Vec::new());
    let mut ours = Vec::new();
    for rows in [16, 64, 256, 1_024, 4_096, 16_384] {
        let rate = 1.0 / parity(SERVERS, rows)?.seconds;
        let name = format!("{rows} rows of {ROW} bytes, AES, audited: requests a second");
        figures.push(Figure::alone(BY_ROWS, name, "", rate));
        ours.push([f64::from(rows), rate]);
    }
    series.push(curve("eight servers, AES, by rows", ours));
    let mut theirs = Vec::new();
    for rows in [16, 64, 256, 1_024] {
        let rate = 1.0 / group(SERVERS, rows)?.seconds;
        let name = format!("{rows} rows of {ROW} bytes, group, audited: requests a second");
        figures.push(Figure::alone(BY_ROWS, name, "", rate));
        theirs.push([f64::from(rows), rate]);
    }
    series.push(curve("eight servers, group, by rows", theirs));
    for rows in [16, 64] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for servers in 3..=SERVERS {
            let rates = [1.0 / parity(servers, rows)?.seconds, 1.0 / group(servers, rows)?.seconds];
            for (what, rate) in ["AES", "group"].into_iter().zip(rates) {
                let name =
                    format!("{servers} servers, {rows} rows, {what}, audited: requests a second");
                figures.push(Figure::alone(BY_SERVERS, name, "", rate));
            }
            ours.push([f64::from(servers), rates[0]]);
            theirs.push([f64::from(servers), rates[1]]);
        }
        series.push(curve(&format!("{rows} rows, AES, by servers"), ours));
        series.push(curve(&format!("{rows} rows, group, by servers"), theirs));
    }
    Ok((figures, series))
}

fn curve(name: &str, points: Vec<[f64; 2]>) -> Series {
    Series { name: name.into(), unit: "requests/s", points }
}
