//! The records in an owner's ledger.

use super::Owner;
use super::unsent_state::SavedStatus;
use crate::label::{Address, DataSet, Order, Segment};
use crate::layout::{Layout, Row};
use crate::messages::Run;
use crate::parameters::Set;
use alpheus_crypto::ledger::Change;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An application's keys begin with this byte or a larger one.
pub const APPLICATION: u8 = 0x80;

pub(super) const META: u8 = 0;
pub(super) const RUNS: u8 = 1;
pub(super) const TAIL: u8 = 2;
pub(super) const OUTBOX: u8 = 3;
pub(super) const EXCEPTION: u8 = 4;
pub(super) const STATE: u8 = 5;

/// The format of records.
const FORMAT: u8 = 2;

/// The constants of a table's life.
#[derive(Serialize, Deserialize)]
pub(super) struct Meta {
    pub(super) data_set: DataSet,
    pub(super) set: Set,
    pub(super) order: Order,
    pub(super) layout: Layout,
}

/// An owner's state that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It contains no table.
    #[error("there is no table here: create one first, or name the folder that has it")]
    Empty,
    /// Another version wrote it.
    #[error(
        "the table's state has format {0}, but this program reads format 2: use the version that wrote it"
    )]
    Format(u8),
    /// A record does not decode, or records contradict each other.
    #[error(
        "the table's state is damaged (record kind {0}): restore it from a backup; even an old one makes no answer wrong"
    )]
    Record(u8),
}

pub(super) fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind], rest].concat()
}

/// A record's value. Encoding the types used here cannot fail.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

pub(super) fn address_key(address: &Address) -> Vec<u8> {
    let Address { segment, epoch, index } = address;
    let rest = [segment.0.as_slice(), &epoch.to_be_bytes(), &index.to_be_bytes()].concat();
    key(OUTBOX, &rest)
}

fn read_address(bytes: &[u8]) -> Option<Address> {
    let (segment, rest) = bytes.split_first_chunk::<16>()?;
    let (epoch, rest) = rest.split_first_chunk::<4>()?;
    let index = rest.try_into().ok()?;
    let (epoch, index) = (u32::from_be_bytes(*epoch), u64::from_be_bytes(index));
    Some(Address { segment: Segment(*segment), epoch, index })
}

/// All records, decoded.
pub(super) struct Records {
    pub(super) meta: Meta,
    pub(super) runs: Vec<Run>,
    pub(super) chunks: BTreeMap<u64, Vec<Row>>,
    pub(super) outbox: BTreeSet<Address>,
    pub(super) exceptions: BTreeMap<u64, (Row, Row)>,
    pub(super) standing: SavedStatus,
}

impl Records {
    pub(super) fn read<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, StateError> {
        let (mut meta, mut runs) = (None, Vec::new());
        let (mut chunks, mut exceptions) = (BTreeMap::new(), BTreeMap::new());
        let (mut outbox, mut standing) = (BTreeSet::new(), SavedStatus::default());
        for (key, value) in records {
            let Some((kind, rest)) = key.as_ref().split_first() else { continue };
            let (value, damaged) = (value.as_ref(), StateError::Record(*kind));
            let number = || rest.try_into().map(u64::from_be_bytes).map_err(|_| damaged);
            match *kind {
                META => meta = Some(read_meta(value)?),
                RUNS => runs = decode(value, damaged)?,
                TAIL => drop(chunks.insert(number()?, decode(value, damaged)?)),
                OUTBOX => drop(outbox.insert(read_address(rest).ok_or(damaged)?)),
                EXCEPTION => drop(exceptions.insert(number()?, decode(value, damaged)?)),
                STATE => standing.read(rest, value).ok_or(damaged)?,
                APPLICATION.. => {}
                _ => return Err(damaged),
            }
        }
        let meta = meta.ok_or(StateError::Empty)?;
        Ok(Self { meta, runs, chunks, outbox, exceptions, standing })
    }
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], damaged: StateError) -> Result<T, StateError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(damaged),
    }
}

fn read_meta(bytes: &[u8]) -> Result<Meta, StateError> {
    match bytes.split_first() {
        Some((&FORMAT, meta)) => decode(meta, StateError::Record(META)),
        Some((format, _)) => Err(StateError::Format(*format)),
        None => Err(StateError::Record(META)),
    }
}

impl Owner {
    pub(super) fn meta_record(&self) -> Change {
        let meta = Meta {
            data_set: self.manifest.data_set,
            set: self.manifest.set,
            order: self.keys.order,
            layout: self.layout.clone(),
        };
        let mut value = vec![FORMAT];
        value.extend(encode(&meta));
        Change::put(key(META, &[]), value)
    }

    pub(super) fn runs_record(&self) -> Change {
        Change::put(key(RUNS, &[]), encode(&self.runs))
    }

    pub(super) fn exception_record(row: u64, cells: &(Row, Row)) -> Change {
        Change::put(key(EXCEPTION, &row.to_be_bytes()), encode(cells))
    }

    /// Checks that runs have no gaps, that the tail continues where they end, and that every
    /// row has all cells. `chunks` holds, for each record of the tail, the number of its first
    /// row and its row count.
    pub(super) fn check(&self, chunks: &[(u64, u64)]) -> Result<(), StateError> {
        let (mut next, max) = (0, u64::MAX / self.block_rows() - 1);
        for run in &self.runs {
            if run.from != next || run.to <= run.from || run.to > max {
                return Err(StateError::Record(RUNS));
            }
            next = run.to;
        }
        let columns = self.layout.declarations().len();
        let sealed = self.blocks() * self.block_rows();
        let mut row = sealed;
        let follow = chunks.iter().all(|(first, rows)| {
            let follows = *first == row && *rows > 0;
            row = row.saturating_add(*rows);
            follows
        });
        let long = self.tail.len() as u64 >= self.block_rows();
        let whole = self.tail.iter().all(|row| row.len() == columns);
        if long || !whole || !follow {
            return Err(StateError::Record(TAIL));
        }
        let fine = |(row, (old, new)): (&u64, &(Row, Row))| {
            *row < sealed && old.len() == columns && new.len() == columns
        };
        if self.exceptions.iter().all(fine) { Ok(()) } else { Err(StateError::Record(EXCEPTION)) }
    }
}
