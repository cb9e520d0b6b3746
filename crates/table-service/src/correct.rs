//! `alpheus table correct`: replaces rows by those of a file with the same time and groups.

use super::csv_rows::{CsvError, Reading, read};
use super::remote::{Reach, Remote, rejected};
use super::save::{send_waiting, settle};
use super::state::TableState;
use alpheus_input::files::unpacked;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_verifiable_table::owner::OpenBlock;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus table correct fixes.csv --identity pki/ada --state ada --server https://localhost:7601
  alpheus table correct fixes.csv --rewrite --identity pki/ada --state ada \\
      --server https://localhost:7601

The file has the same header as the table's files. Each row replaces the one row with the same time
and groups. Corrections stay here until --rewrite uploads their blocks again. The server keeps the
old blocks, which other copies of the folder need, until `alpheus table prune`.";

/// Arguments of `alpheus table correct`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The corrected rows, in the same form as the appended ones
    file: PathBuf,
    /// Upload every block with corrections again
    #[arg(long)]
    rewrite: bool,
    #[command(flatten)]
    reach: Reach,
}

/// A row of the file does not match exactly one row.
#[derive(Debug, thiserror::Error)]
#[error(
    "line {line}: {found} rows of the table have this time and these groups; a correction must match exactly one"
)]
pub(crate) struct MatchError {
    line: u64,
    found: u64,
}

/// A row is corrected twice.
#[derive(Debug, thiserror::Error)]
#[error("lines {first} and {line} correct the same row; keep one of them")]
pub(crate) struct RepeatedCorrectionError {
    first: u64,
    line: u64,
}

/// Runs the command.
///
/// # Errors
/// If the file is invalid, the server does not answer, or its answer is rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    settle(&mut state, &remote)?;
    let mut readings = Vec::new();
    let input = unpacked(&args.file, File::open(&args.file).blame_io(&args.file)?);
    read(input, &state.schema, |reading| -> Result<(), CsvError> {
        readings.push(reading);
        Ok(())
    })
    .blame_input(&args.file)?;
    // All rows are looked up before the first is replaced.
    let rows: Result<Vec<u64>, MatchError> = readings.iter().map(|r| row_of(&state, r)).collect();
    let rows = rows.blame_input(&args.file)?;
    let mut lines = BTreeMap::new();
    for (row, Reading { line, .. }) in rows.iter().zip(&readings) {
        if let Some(first) = lines.insert(row, *line) {
            return Err(RepeatedCorrectionError { first, line: *line }).blame_input(&args.file);
        }
    }
    let mut open = BTreeMap::new();
    let corrected = rows.len();
    for (row, reading) in rows.into_iter().zip(readings) {
        let index = row / state.owner.block_rows();
        if index < state.owner.blocks() && !open.contains_key(&index) {
            open.insert(index, fetch(&state, &remote, index)?);
        }
        let step = state.owner.correct(row, reading.cells, open.get(&index));
        let step = step.blame_input(&args.file)?;
        state.commit(step)?;
    }
    let rewritten = if args.rewrite { rewrite(&mut state, &remote)? } else { 0 };
    settle(&mut state, &remote)?;
    note!("{corrected} rows corrected, {rewritten} blocks rewritten");
    Ok(())
}

fn row_of(state: &TableState, reading: &Reading) -> Result<u64, MatchError> {
    let found = state.index.at(reading.time, &reading.groups);
    match found.as_slice() {
        [row] => Ok(*row),
        rows => Err(MatchError { line: reading.line, found: rows.len() as u64 }),
    }
}

/// Fetches the current block with all its columns, and verifies it.
///
/// # Errors
/// If the server does not answer, or its answer is rejected.
pub(super) fn fetch(state: &TableState, remote: &Remote, index: u64) -> Result<OpenBlock, Failure> {
    let missing = || "the table has no such block";
    let address = state.owner.address(index).ok_or_else(missing).blame(Category::Io)?;
    let blocks = remote.fetch(&[address])?;
    let bytes = blocks.first().map(Vec::as_slice).unwrap_or_default();
    state.owner.open_block(index, &state.owner.all_columns(), bytes).map_err(rejected)
}

/// Rewrites every block with corrections, and returns their number.
fn rewrite(state: &mut TableState, remote: &Remote) -> Result<usize, Failure> {
    let n = state.owner.block_rows();
    let blocks: BTreeSet<u64> = state.owner.corrected_rows().map(|row| row / n).collect();
    for index in &blocks {
        let (old, block) = (state.owner.address(*index), fetch(state, remote, *index)?);
        let step = state.owner.rewrite(&block, &mut state.rng).blame(Category::Io)?;
        // The server keeps the old block, which older copies of the folder refer to.
        let step = step.and(state.record_replaced(old));
        state.commit(step)?;
        send_waiting(state, remote)?;
    }
    Ok(blocks.len())
}
