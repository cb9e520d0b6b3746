//! `alpheus table append`: checks a whole file, then uploads it in blocks. After an
//! interruption it continues where it stopped.

use super::csv_rows::{CsvError, Reading, read};
use super::remote::{Reach, Remote};
use super::save::{Upload, send_waiting, settle};
use super::state::TableState;
use alpheus_input::files::unpacked;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::progress::Progress;
use alpheus_verifiable_table::layout::Row;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table append counts.csv --identity pki/ada --state ada --server https://localhost:7601
  alpheus table append counts.csv.gz --identity pki/ada --state ada \\
      --server https://localhost:7601

The whole file is checked before its first row is appended. After an interruption, run the same
command again: it continues where it stopped, and appends no row twice.";

/// Arguments of `alpheus table append`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rows: CSV with a header, JSON lines or Parquet, compressed if the name ends in .gz
    file: PathBuf,
    /// Append it even if the table has rows of the same time and groups from another file
    #[arg(long)]
    repeats: bool,
    #[command(flatten)]
    reach: Reach,
}

/// The table has this row already. Most likely the file was changed after a part of it was
/// appended, and its rows would count twice.
#[derive(Debug, thiserror::Error)]
#[error(
    "line {line}: the table already has a row of this time and these groups; `alpheus table correct` replaces rows, --repeats appends it anyway"
)]
pub(crate) struct RepeatedRowError {
    line: u64,
}

/// Runs the command.
///
/// # Errors
/// If the file is invalid, the server does not answer, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    let summary = append(&mut state, &remote, &args.file, args.repeats)?;
    note!("{summary}");
    Ok(())
}

/// A summary of what was appended.
#[derive(Default)]
pub struct AppendSummary {
    rows: u64,
    blocks: u64,
    tail: u64,
    bytes: u64,
    /// Whether the table had all rows of the file before.
    already: bool,
}

impl AppendSummary {
    fn add(&mut self, sent: &Upload) {
        self.blocks += sent.blocks;
        self.bytes += sent.bytes;
    }
}

impl std::fmt::Display for AppendSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, blocks, tail, bytes, already } = self;
        if *already {
            f.write_str("the table already has all rows of this file; ")?;
        }
        write!(
            f,
            "{rows} rows appended; {blocks} blocks with {bytes} bytes uploaded; {tail} rows wait here until a block is full"
        )
    }
}

/// Appends a file.
///
/// # Errors
/// If the file is invalid, the server does not answer, or the disk fails.
pub fn append(
    state: &mut TableState,
    remote: &Remote,
    file: &Path,
    repeats: bool,
) -> Result<AppendSummary, Failure> {
    remote.create(state.owner.manifest())?;
    let mut summary = AppendSummary::default();
    summary.add(&send_waiting(state, remote)?);
    settle(state, remote)?;
    let FileCheck { digest, total, repeated } = check(state, file)?;
    let imported = state.imported(&digest);
    if imported == total {
        summary.already = true;
        summary.tail = state.owner.tail_rows();
        return Ok(summary);
    }
    if let Some(line) = repeated.filter(|_| imported == 0 && !repeats) {
        return Err(RepeatedRowError { line }).blame_input(file);
    }
    let mut progress = Progress::new("rows", Some(total));
    progress.advance(imported);
    let input = open(file)?;
    let schema = state.schema.clone();
    let mut batch = Batch { digest, rows: Vec::new(), first: None, read: 0 };
    let batch_rows = usize::try_from(state.owner.block_rows()).unwrap_or(usize::MAX);
    read(input, &schema, |reading: Reading| -> Result<(), AppendError> {
        batch.read += 1;
        if batch.read <= imported {
            return Ok(());
        }
        let stretch = state.index.push(reading.time, &reading.groups);
        batch.first.get_or_insert(stretch);
        batch.rows.push(reading.cells);
        if batch.rows.len() == batch_rows {
            progress.advance(batch.rows.len() as u64);
            batch.flush(state, remote, &mut summary)?;
        }
        Ok(())
    })
    .map_err(|error| error.at(file))?;
    progress.advance(batch.rows.len() as u64);
    batch.flush(state, remote, &mut summary).map_err(|error| error.at(file))?;
    settle(state, remote)?;
    summary.tail = state.owner.tail_rows();
    Ok(summary)
}

/// An error in the file, or another failure.
enum AppendError {
    File(CsvError),
    Other(Failure),
}

impl From<CsvError> for AppendError {
    fn from(error: CsvError) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for AppendError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl AppendError {
    fn at(self, file: &Path) -> Failure {
        match self {
            Self::File(error) => {
                Failure::new(Category::Input, error).at(file.display().to_string())
            }
            Self::Other(failure) => failure,
        }
    }
}

/// Rows that are appended together.
struct Batch {
    digest: [u8; 32],
    rows: Vec<Row>,
    /// The first stretch of the index that they changed.
    first: Option<usize>,
    /// Rows of the file so far.
    read: u64,
}

impl Batch {
    /// One commit makes rows, labels, blocks, index and progress durable. Then the blocks are
    /// sent.
    fn flush(
        &mut self,
        state: &mut TableState,
        remote: &Remote,
        summary: &mut AppendSummary,
    ) -> Result<(), AppendError> {
        let Some(since) = self.first.take() else { return Ok(()) };
        let step = state.owner.append(&self.rows, &mut state.rng).blame(Category::Input)?;
        let step = step.and(state.import_changes(self.digest, self.read, since));
        summary.rows += self.rows.len() as u64;
        self.rows.clear();
        drop(state.commit(step)?);
        summary.add(&send_waiting(state, remote)?);
        Ok(())
    }
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    Ok(unpacked(file, File::open(file).blame_io(file)?))
}

/// A reader that computes the digest of its input.
struct DigestReader<R> {
    input: R,
    digest: Sha256,
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// The result of checking a file before it is appended.
struct FileCheck {
    digest: [u8; 32],
    /// The number of rows.
    total: u64,
    /// The line of the first row that the table has already, if one was found.
    repeated: Option<u64>,
}

/// The number of first rows of a file that are looked up in the table.
const MAX_LOOKUPS: u64 = 1000;

/// Reads a whole file. Its first rows are looked up in the table: a file that was changed
/// after a part of it was appended begins with rows that are there.
fn check(state: &TableState, file: &Path) -> Result<FileCheck, Failure> {
    let (mut input, mut total) = (DigestReader { input: open(file)?, digest: Sha256::new() }, 0);
    let mut repeated = None;
    read(&mut input, &state.schema, |reading: Reading| -> Result<(), CsvError> {
        total += 1;
        if total <= MAX_LOOKUPS && repeated.is_none() {
            let exists = !state.index.at(reading.time, &reading.groups).is_empty();
            repeated = exists.then_some(reading.line);
        }
        Ok(())
    })
    .blame_input(file)?;
    Ok(FileCheck { digest: input.digest.finalize().into(), total, repeated })
}
