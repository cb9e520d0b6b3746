//! The owner: uploads a table in encrypted blocks, forgets it, and asks.
//!
//! What it keeps is the 32-byte key and a ledger: which blocks stand where, the rows
//! that do not fill a block yet, corrections, and the exact bytes of blocks that the
//! server has not acknowledged.

mod audit;
mod corrections;
mod merge;
mod questions;
mod records;
mod upload;
mod weighted;

pub use audit::Audit;
pub use corrections::CorrectError;
pub use merge::Merge;
pub use questions::{Missing, OpenBlock, Part, Plan};
pub use records::{APPLICATION, DamagedState};
pub use upload::AppendError;
#[cfg(feature = "measure")]
pub(crate) use weighted::horner;
pub use weighted::{PolynomialPlan, WeightedPlan};

use crate::error::{Refusal, Rejected};
use crate::keys::{Keys, TableKey};
use crate::label::{Address, DataSet, Order, Segment};
use crate::layout::{Layout, Moment, Row};
use crate::ledger::{Change, Pending, Step};
use crate::messages::{Manifest, Run};
use crate::parameters::Set;
use crate::planner::Question;
use crate::verifier::{Opened, Verified};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// The owner of one table, since its last start.
pub struct Owner {
    keys: Keys,
    manifest: Manifest,
    layout: Layout,
    /// This start's.
    segment: Segment,
    /// Epochs of this start.
    epochs: u32,
    /// Where blocks stand: in order, without gaps, from the first on.
    runs: Vec<Run>,
    /// Rows that do not fill a block yet.
    tail: Vec<Row>,
    /// How many rows each record of the tail holds, by the number of its first.
    chunks: BTreeSet<u64>,
    /// What the server has not acknowledged.
    outbox: BTreeSet<Address>,
    /// Rows that were corrected since their block was sealed: what it holds, and what
    /// is right.
    exceptions: BTreeMap<u64, (Row, Row)>,
    /// How often rows, corrections or blocks changed since this start.
    changes: u64,
    /// Whether the last change awaits its commit.
    pending: Pending,
}

/// Which state of which start of the owner a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    segment: Segment,
    changes: u64,
}

impl Owner {
    /// A table without rows, under a fresh data set.
    pub fn create(
        key: &TableKey,
        set: Set,
        order: Order,
        layout: Layout,
        rng: &mut impl CryptoRng,
    ) -> Step<Self> {
        let data_set = DataSet(random(rng));
        let owner = Self::empty(key, records::Meta { data_set, set, order, layout }, rng);
        let pending = owner.pending.clone();
        Step::new(vec![owner.meta_record()], owner, &pending)
    }

    fn empty(key: &TableKey, meta: records::Meta, rng: &mut impl CryptoRng) -> Self {
        let records::Meta { data_set, set, order, layout } = meta;
        let (columns, products) = layout.shape();
        Self {
            keys: Keys::new(key, set.ring(), data_set, order),
            manifest: Manifest { data_set, set, columns, products },
            layout,
            segment: Segment(random(rng)),
            epochs: 0,
            runs: Vec::new(),
            tail: Vec::new(),
            chunks: BTreeSet::new(),
            outbox: BTreeSet::new(),
            exceptions: BTreeMap::new(),
            changes: 0,
            pending: Pending::default(),
        }
    }

    /// What a plan is good for: until rows, corrections or blocks change.
    fn version(&self) -> Version {
        Version { segment: self.segment, changes: self.changes }
    }

    /// A change of rows, corrections or blocks, to be committed.
    fn step<T>(&mut self, changes: Vec<Change>, released: T) -> Step<T> {
        self.changes += 1;
        Step::new(changes, released, &self.pending)
    }

    /// Starts again from what a ledger holds; `records` may leave out the application's.
    ///
    /// Every start draws a segment of its own, so it may be an old copy: no label is
    /// used that an earlier life may have used. Rows that the copy lacks are lost to
    /// it, and no answer about the others is wrong.
    ///
    /// # Errors
    /// [`DamagedState`].
    pub fn open<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        key: &TableKey,
        records: impl IntoIterator<Item = (K, V)>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, DamagedState> {
        let read = records::Records::read(records)?;
        let mut owner = Self::empty(key, read.meta, rng);
        owner.runs = read.runs;
        let chunks: Vec<(u64, u64)> =
            read.chunks.iter().map(|(first, rows)| (*first, rows.len() as u64)).collect();
        owner.chunks = read.chunks.keys().copied().collect();
        owner.tail = read.chunks.into_values().flatten().collect();
        owner.outbox = read.outbox;
        owner.exceptions = read.exceptions;
        owner.check(&chunks)?;
        Ok(owner)
    }

    /// What the server is told of the table.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its columns.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// K.
    #[must_use]
    pub fn order(&self) -> Order {
        self.keys.order
    }

    /// n: rows of a block.
    #[must_use]
    pub fn block_rows(&self) -> u64 {
        self.keys.ring.degree() as u64
    }

    /// Blocks that were sealed.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.to)
    }

    /// Rows, the tail included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.blocks() * self.block_rows() + self.tail.len() as u64
    }

    /// Rows that wait for a block to be full; they are with the owner only.
    #[must_use]
    pub fn tail_rows(&self) -> u64 {
        self.tail.len() as u64
    }

    /// Rows with a correction that the server's blocks do not have yet.
    pub fn corrected_rows(&self) -> impl Iterator<Item = u64> {
        self.exceptions.keys().copied()
    }

    /// Where a block stands now.
    #[must_use]
    pub fn address(&self, index: u64) -> Option<Address> {
        let run = self.runs.iter().find(|run| (run.from..run.to).contains(&index))?;
        Some(Address { segment: run.segment, epoch: run.epoch, index })
    }

    /// Where all blocks stand.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Checks an answer; some 30 µs, however many blocks it sums, and some microseconds
    /// more for each run that they stand in: one for each start of the owner that sealed
    /// blocks, up to two for each block that was written anew.
    ///
    /// # Errors
    /// [`Rejected`], whatever is wrong.
    pub fn verify(&self, question: &Question, answer: &[u8]) -> Result<Verified, Rejected> {
        self.keys.verify(question, answer)
    }

    /// Decrypts what was verified.
    #[must_use]
    pub fn decrypt(&self, verified: &Verified) -> Opened {
        self.keys.open(verified)
    }

    /// The parts that a moment over rows `from` to `to` takes.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn plan(&self, moment: Moment, from: u64, to: u64) -> Result<Plan, Refusal> {
        let term = self.layout.term(moment).ok_or(Refusal::NotRegistered)?;
        self.plan_term(term, from, to)
    }
}

fn random<const N: usize>(rng: &mut impl CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// Rows as a change of the tail.
fn chunk_record(first: u64, rows: &[Row]) -> Change {
    Change::put(records::key(records::TAIL, &first.to_be_bytes()), records::encode(&rows))
}
