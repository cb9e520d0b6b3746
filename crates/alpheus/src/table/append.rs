//! `alpheus table append`: checks a file whole, then uploads it in blocks. Interrupted,
//! it goes on where it was.

use super::csv_rows::{CsvError, Reading, read};
use super::remote::{Reach, Remote};
use super::state::TableState;
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::replay::inputs::unpacked;
use crate::service::progress::Progress;
use alpheus_verifiable_table::layout::Row;
use alpheus_verifiable_table::owner::Owner;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table append counts.csv --identity pki/ada --state ada --server https://localhost:7601
  alpheus table append counts.csv.gz --identity pki/ada --state ada --server https://localhost:7601

The whole file is checked before anything of it is appended. Run the same command again
after an interruption: it goes on where it was, and appends no row twice.";

/// Arguments of `alpheus table append`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rows: CSV with a header, packed if the name ends in .gz
    file: PathBuf,
    /// Append it also if the table has rows of the same time and groups from another file
    #[arg(long)]
    repeats: bool,
    #[command(flatten)]
    reach: Reach,
}

/// A row that is there: of a file that was changed after it was appended in part, most
/// likely, and would count twice.
#[derive(Debug, thiserror::Error)]
#[error(
    "line {line}: a row of this time and these groups is in the table already; `alpheus table correct` replaces rows, --repeats appends it all the same"
)]
struct Repeated {
    line: u64,
}

/// Runs the command.
///
/// # Errors
/// If the file is wrong, the server does not answer, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    let appended = append(&mut state, &remote, &args.file, args.repeats)?;
    eprintln!("{appended}");
    Ok(())
}

/// What was done.
#[derive(Default)]
pub struct Appended {
    rows: u64,
    blocks: u64,
    tail: u64,
    bytes: u64,
    /// Whether the table has all rows of the file, so that nothing was to be done.
    already: bool,
}

impl std::fmt::Display for Appended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, blocks, tail, bytes, already } = self;
        if *already {
            f.write_str("all rows of this file are in the table already; ")?;
        }
        write!(
            f,
            "{rows} rows appended; {blocks} blocks of {bytes} bytes uploaded; {tail} rows wait here for a block to be full"
        )
    }
}

/// Appends a file.
///
/// # Errors
/// If the file is wrong, the server does not answer, or the disk fails.
pub fn append(
    state: &mut TableState,
    remote: &Remote,
    file: &Path,
    repeats: bool,
) -> Result<Appended, Failure> {
    remote.create(state.owner.manifest())?;
    let mut done = Appended::default();
    send_waiting(state, remote, &mut done)?;
    let Checked { digest, total, repeated } = check(state, file)?;
    let begun = state.imported(&digest);
    if begun == total {
        done.already = true;
        done.tail = state.owner.tail_rows();
        return Ok(done);
    }
    if let Some(line) = repeated.filter(|_| begun == 0 && !repeats) {
        return Err(Repeated { line }).blame_input(file);
    }
    let mut progress = Progress::new("rows", Some(total));
    progress.advance(begun);
    let input = open(file)?;
    let schema = state.schema.clone();
    let mut batch = Batch { digest, rows: Vec::new(), first: None, seen: 0 };
    let batch_rows = usize::try_from(state.owner.block_rows()).unwrap_or(usize::MAX);
    read(input, &schema, |reading: Reading| -> Result<(), Trouble> {
        batch.seen += 1;
        if batch.seen <= begun {
            return Ok(());
        }
        let stretch = state.index.push(reading.time, &reading.groups);
        batch.first.get_or_insert(stretch);
        batch.rows.push(reading.cells);
        if batch.rows.len() == batch_rows {
            progress.advance(batch.rows.len() as u64);
            batch.flush(state, remote, &mut done)?;
        }
        Ok(())
    })
    .map_err(|trouble| trouble.at(file))?;
    progress.advance(batch.rows.len() as u64);
    batch.flush(state, remote, &mut done).map_err(|trouble| trouble.at(file))?;
    done.tail = state.owner.tail_rows();
    Ok(done)
}

/// A file's mistake, or another.
enum Trouble {
    File(CsvError),
    Other(Failure),
}

impl From<CsvError> for Trouble {
    fn from(error: CsvError) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl Trouble {
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
    seen: u64,
}

impl Batch {
    /// One commit makes rows, labels, blocks, index and progress durable; then the
    /// blocks go out.
    fn flush(
        &mut self,
        state: &mut TableState,
        remote: &Remote,
        done: &mut Appended,
    ) -> Result<(), Trouble> {
        let Some(since) = self.first.take() else { return Ok(()) };
        let step = state.owner.append(&self.rows, &mut state.rng).blame(Category::Input)?;
        let step = step.and(state.notes(self.digest, self.seen, since));
        done.rows += self.rows.len() as u64;
        self.rows.clear();
        drop(state.commit(step)?);
        Ok(send_waiting(state, remote, done)?)
    }
}

/// Sends what the server has not acknowledged: the exact bytes that were kept. Every
/// command that asks does so first, since a command that was killed may have left them.
///
/// # Errors
/// If the server does not answer, or the disk fails.
pub fn send_waiting(
    state: &mut TableState,
    remote: &Remote,
    done: &mut Appended,
) -> Result<(), Failure> {
    let waiting: Vec<_> = state.owner.outbox().copied().collect();
    for address in waiting {
        let lost = || "the state lacks a block that it says is waiting: restore a backup";
        let bytes = state.ledger.get(&Owner::outbox_key(&address))?;
        let bytes = bytes.ok_or_else(lost).blame(Category::Io)?;
        done.bytes += bytes.len() as u64;
        done.blocks += 1;
        remote.put(bytes)?;
        let step = state.owner.acknowledged(&address).blame(Category::Io)?;
        state.commit(step)?;
    }
    Ok(())
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    Ok(unpacked(file, File::open(file).blame_io(file)?))
}

/// A reader that digests what passes.
struct Digested<R> {
    input: R,
    digest: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// What is known of a file before anything of it is appended.
struct Checked {
    digest: [u8; 32],
    /// Its rows.
    total: u64,
    /// The line of the first of them that the table has, if one was found.
    repeated: Option<u64>,
}

/// Rows of a file that are looked for in the table.
const LOOKED_FOR: u64 = 1000;

/// Reads all of a file. Of its rows the first are looked for in the table: a file that
/// was changed after it was appended in part begins with what is there.
fn check(state: &TableState, file: &Path) -> Result<Checked, Failure> {
    let (mut input, mut total) = (Digested { input: open(file)?, digest: Sha256::new() }, 0);
    let mut repeated = None;
    read(&mut input, &state.schema, |reading: Reading| -> Result<(), CsvError> {
        total += 1;
        if total <= LOOKED_FOR && repeated.is_none() {
            let there = !state.index.at(reading.time, &reading.groups).is_empty();
            repeated = there.then_some(reading.line);
        }
        Ok(())
    })
    .blame_input(file)?;
    Ok(Checked { digest: input.digest.finalize().into(), total, repeated })
}
