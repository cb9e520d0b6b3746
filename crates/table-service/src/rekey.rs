//! `alpheus table rekey`: copies a table under another key, block by block: each is fetched, verified
//! under the old key and sealed under the new one. The copy may have a wider schema. If the command is
//! killed, the same command continues.

use super::correct::fetch;
use super::index::Index;
use super::remote::{Reach, Remote};
use super::save::{send_waiting, settle};
use super::schema::TableSchema;
use super::state::{CopySource, TableState};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::progress::Progress;
use alpheus_node::settings::Settings;
use alpheus_verifiable_table::layout::Row;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table rekey --into ada-2 --identity pki/ada --state ada \\
      --server https://localhost:7601
  alpheus table rekey --into ada-2 --schema wider.yaml --identity pki/ada --state ada \\
      --server https://localhost:7601

The copy is a table of its own: its folder has a new key, which cannot be derived from the old one.
Until you `alpheus table drop` the old table, its key still opens what the server has. A wider
schema may add pairs, squares and optional columns, make columns optional, widen bounds, and name
another parameter set or order. Do not change the old table meanwhile.";

/// Arguments of `alpheus table rekey`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder of the copy
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
    /// The copy's schema [default: the table's]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    reach: Reach,
}

/// A copy cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RekeyError {
    /// The folder holds a table.
    #[error(
        "this folder holds a table that is not an incomplete copy; give another one with --into"
    )]
    Complete,
    /// The copy is another table's.
    #[error(
        "this folder holds an incomplete copy of another table; give the folder of that one, or another --into"
    )]
    OtherTable,
    /// The source has changed.
    #[error(
        "the table has changed since this copy was begun, so the copy could lack corrections: remove its folder and start again"
    )]
    Changed,
    /// The copy has another schema.
    #[error(
        "this copy was begun with another schema; leave --schema out to continue with that one"
    )]
    OtherSchema,
    /// A verified block did not give its rows.
    #[error("a row of the table is missing from its block; restore the folder from a backup")]
    Rows,
}

/// Runs the command.
///
/// # Errors
/// If the schema is not wider, the folder holds something else, the server does not answer, its answer
/// is rejected, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let folder = Settings::needed(&settings.state, "state")?;
    let mut old = TableState::open(&folder)?;
    let from = Remote::new(&settings, old.owner.manifest().data_set)?;
    settle(&mut old, &from)?;
    let mut new = open_copy(args, &old)?;
    let to = Remote::new(&settings, new.owner.manifest().data_set)?;
    to.create(new.owner.manifest())?;
    send_waiting(&mut new, &to)?;
    copy((&old, &from), (&mut new, &to))?;
    new.complete_copy(&old)?;
    settle(&mut new, &to)?;
    note!(
        "{} rows copied under a new key into {}: {} blocks; `alpheus table verify` checks them, and `alpheus table drop` deletes the old ones",
        new.owner.rows(),
        args.into.display(),
        new.owner.blocks(),
    );
    Ok(())
}

/// The copy, begun now or before.
fn open_copy(args: &Args, old: &TableState) -> Result<TableState, Failure> {
    let source = old.as_source()?;
    let given = args.schema.as_ref().map(|path| read_text(path)).transpose()?;
    if args.into.join("table.key").exists() {
        return continued(&args.into, source, given.as_deref());
    }
    let text = given.map_or_else(|| old.schema_text(), Ok)?;
    let at = args.schema.as_ref().unwrap_or(&args.into);
    let schema = TableSchema::parse(&text).blame_input(at)?;
    schema.check_widens(&old.schema).blame_input(at)?;
    let layout = schema.layout().blame_input(at)?;
    TableState::create_for(&args.into, (text, &schema, layout), Some(source))
}

fn continued(
    folder: &Path,
    source: CopySource,
    schema: Option<&str>,
) -> Result<TableState, Failure> {
    let state = TableState::open_copy(folder)?;
    let begun = state.source().ok_or(RekeyError::Complete).blame(Category::Usage)?;
    if begun.table != source.table {
        return Err(RekeyError::OtherTable).blame(Category::Usage);
    }
    if begun != source {
        return Err(RekeyError::Changed).blame(Category::Refused);
    }
    match schema {
        Some(text) if text != state.schema_text()? => {
            Err(RekeyError::OtherSchema).blame(Category::Usage)
        }
        _ => Ok(state),
    }
}

/// Copies the rows that the copy lacks. One commit makes rows, labels, blocks and index of a batch
/// durable; then the blocks are sent.
fn copy(
    (old, from): (&TableState, &Remote),
    (new, to): (&mut TableState, &Remote),
) -> Result<(), Failure> {
    let columns = new.schema.columns.len();
    let mut progress = Progress::new("rows", Some(old.owner.rows()));
    progress.advance(new.owner.rows());
    while new.owner.rows() < old.owner.rows() {
        let first = new.owner.rows();
        let mut rows = rows_from(old, from, first)?;
        rows.iter_mut().for_each(|row| row.resize(columns, None));
        // A commit has one block of the copy at most: a store takes no two of the largest at once.
        let most = usize::try_from(new.owner.block_rows()).unwrap_or(usize::MAX);
        for rows in rows.chunks(most) {
            append(&old.index, new, rows)?;
            send_waiting(new, to)?;
            progress.advance(rows.len() as u64);
        }
    }
    Ok(())
}

/// Appends the next rows to the copy.
fn append(old: &Index, new: &mut TableState, rows: &[Row]) -> Result<(), Failure> {
    let (first, mut since) = (new.owner.rows(), None);
    for row in first..first + rows.len() as u64 {
        let (time, groups) = old.row(row).ok_or(RekeyError::Rows).blame(Category::Input)?;
        since.get_or_insert(new.index.push(time, groups));
    }
    let step = new.owner.append(rows, &mut new.rng).blame(Category::Input)?;
    let step = step.and(new.index_changes(since.unwrap_or_default()));
    new.commit(step).map(drop)
}

/// Rows from a number on: those of its block, or those that are in no block yet.
fn rows_from(old: &TableState, from: &Remote, first: u64) -> Result<Vec<Row>, Failure> {
    let n = old.owner.block_rows();
    let (rows, before) = if first / n < old.owner.blocks() {
        let block = fetch(old, from, first / n)?;
        (old.owner.rows_of(&block).ok_or(RekeyError::Rows).blame(Category::Input)?, first / n * n)
    } else {
        (old.owner.tail().to_vec(), old.owner.blocks() * n)
    };
    let skipped = usize::try_from(first - before).unwrap_or(usize::MAX);
    let rest = rows.get(skipped..).filter(|rest| !rest.is_empty());
    Ok(rest.ok_or(RekeyError::Rows).blame(Category::Input)?.to_vec())
}
