//! A lane's journal: its steps, and snapshots that make earlier ones superfluous. The journal of a
//! partition of events is the same partition of the topic of journals.

use crate::lane::Step;
use alpheus_transport::{Batch, Bytes, Error, Limits, NewRecord, Offset, Partition, Store};
use serde::{Deserialize, Serialize};

/// Version of the entries.
const VERSION: u8 = 3;
/// The program that takes steps. Another one may take them differently.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// A snapshot is cut into pieces of so many bytes: records have a limit.
const PIECE: usize = 8 << 20;
/// Pieces are committed in batches of about so many bytes.
const MAX_BATCH: usize = 32 << 20;

/// An entry.
#[derive(Debug, Serialize, Deserialize)]
enum Entry<'a> {
    /// What a step rested on, and the version of the program that took it.
    Step(Step, &'a str),
    /// A piece of a snapshot, and how many there are.
    Piece {
        number: u32,
        of: u32,
        #[serde(borrow)]
        bytes: &'a [u8],
    },
    /// So much of what the last step has to say was said: it is too long for one transaction.
    Said(Prefix),
    /// Nothing: somebody asks the brokers for their time.
    Clock,
}

/// How much of a step's output was sent: its first messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// The entry's number, of the numbers of steps.
    pub number: u64,
    /// So many messages, from the first on.
    pub messages: u64,
}

/// What a journal says.
#[derive(Debug, Default)]
pub struct History {
    /// The last whole snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// The steps after it.
    pub steps: Vec<Step>,
    /// How much the last of them has said; none if it is everything.
    pub said: Option<Prefix>,
    /// The version of another program that took one of them.
    pub other: Option<String>,
    /// The snapshot that is being read.
    pieces: Vec<u8>,
    next: u32,
}

/// An entry that is not of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryError;

impl History {
    /// The number of the last step, or of its last part; none without a step.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        let step = self.steps.last().map(|step| step.number);
        self.said.map(|said| said.number).or(step)
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// [`EntryError`].
    pub fn take(&mut self, record: &[u8]) -> Result<(), EntryError> {
        let (version, entry) = record.split_first().ok_or(EntryError)?;
        if *version != VERSION {
            return Err(EntryError);
        }
        match postcard::from_bytes(entry).map_err(|_| EntryError)? {
            Entry::Clock => {}
            Entry::Step(step, program) => {
                if program != PROGRAM {
                    self.other = Some(program.to_owned());
                }
                self.steps.push(step);
                self.said = None;
            }
            Entry::Said(said) => self.said = Some(said),
            // A snapshot that its writer did not finish is followed by another one's beginning.
            Entry::Piece { number, .. } if number != 0 && number != self.next => {}
            Entry::Piece { number, of, bytes } => {
                if number == 0 {
                    self.pieces.clear();
                }
                self.pieces.extend_from_slice(bytes);
                self.next = number + 1;
                if self.next == of {
                    self.snapshot = Some(std::mem::take(&mut self.pieces));
                    self.steps.clear();
                    self.other = None;
                    self.said = None;
                    self.next = 0;
                }
            }
        }
        Ok(())
    }
}

/// Reads on from a position, which moves along.
///
/// # Errors
/// The store's error; `None` where an entry is not of this version.
pub fn read(
    store: &dyn Store,
    journal: &Partition,
    position: &mut Offset,
    history: &mut History,
) -> Result<Result<(), EntryError>, Error> {
    loop {
        let fetched = store.read(journal, *position, Limits::default())?;
        let next = fetched.next_offset();
        for record in fetched {
            if history.take(&record.value).is_err() {
                return Ok(Err(EntryError));
            }
        }
        if next == *position {
            return Ok(Ok(()));
        }
        *position = next;
    }
}

/// Adds a step.
///
/// # Errors
/// None in practice: it is short.
pub fn note(batch: &mut Batch, journal: &Partition, step: Step) -> Result<(), Error> {
    note_as(batch, journal, step, PROGRAM)
}

/// Adds a step that a program of this version took.
///
/// # Errors
/// None in practice: it is short.
pub fn note_as(
    batch: &mut Batch,
    journal: &Partition,
    step: Step,
    program: &str,
) -> Result<(), Error> {
    let value = encoded(&Entry::Step(step, program));
    batch.append(journal, &NewRecord { value: &value, ..Default::default() })
}

/// Adds an entry that says nothing: with it the brokers say their time.
///
/// # Errors
/// None in practice: it is short.
pub fn ask_the_time(batch: &mut Batch, journal: &Partition) -> Result<(), Error> {
    batch.append(journal, &NewRecord { value: &encoded(&Entry::Clock), ..Default::default() })
}

/// Adds how much of a step was said.
///
/// # Errors
/// None in practice: it is short.
pub fn note_said(batch: &mut Batch, journal: &Partition, said: Prefix) -> Result<(), Error> {
    batch.append(journal, &NewRecord { value: &encoded(&Entry::Said(said)), ..Default::default() })
}

/// A snapshot as batches, to be committed in this order with nothing between them.
///
/// # Errors
/// None in practice: pieces fit into records.
pub fn snapshot(journal: &Partition, bytes: &[u8]) -> Result<Vec<Batch>, Error> {
    let (mut batches, mut batch) = (Vec::new(), Batch::new());
    let of = u32::try_from(bytes.len().div_ceil(PIECE).max(1)).unwrap_or(u32::MAX);
    for (number, bytes) in (0..of).zip(bytes.chunks(PIECE)) {
        let value = Bytes::from(encoded(&Entry::Piece { number, of, bytes }));
        batch.append(journal, &NewRecord { value: &value, ..Default::default() })?;
        if batch.bytes() >= MAX_BATCH {
            batches.push(std::mem::take(&mut batch));
        }
    }
    batches.push(batch);
    batches.retain(|batch| !batch.is_empty());
    Ok(batches)
}

fn encoded(entry: &Entry<'_>) -> Vec<u8> {
    // All of it can be serialised.
    postcard::to_extend(entry, vec![VERSION]).unwrap_or_default()
}
