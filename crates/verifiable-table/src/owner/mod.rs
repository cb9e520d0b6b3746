//! The owner: uploads a table in encrypted blocks, deletes its copy, and queries it.
//!
//! It keeps the 32-byte key and a ledger: the addresses of blocks, the rows that do not
//! fill a block yet, corrections, and the exact bytes of blocks that the server has not
//! acknowledged.

mod audit;
mod corrections;
mod merge;
mod questions;
mod records;
mod unsent_state;
mod upload;
mod weighted_sums;

pub use audit::Audit;
pub use corrections::CorrectError;
pub use merge::Merge;
pub use questions::{OpenBlock, Part, Plan, TotalError};
pub use records::{APPLICATION, StateError};
pub use unsent_state::{SaveError, UnsentState};
pub use upload::AppendError;
#[cfg(feature = "measure")]
pub(crate) use weighted_sums::horner;
pub use weighted_sums::{PolynomialPlan, WeightedPlan};

use crate::error::{PlanError, VerifyError};
use crate::keys::{Keys, TableKey};
use crate::label::{Address, Order, Segment};
use crate::layout::{Layout, Moment, Row};
use crate::ledger::{CommitGuard, PendingStep};
use crate::messages::{Manifest, Run};
use crate::parameters::Set;
use crate::planner::Question;
use crate::saved_state::StateKey;
use crate::verifier::{DecryptedSum, VerifiedSum};
use alpheus_crypto::ledger::Change;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// The owner of one table, since its last start.
pub struct Owner {
    keys: Keys,
    manifest: Manifest,
    layout: Layout,
    /// The segment of this start.
    segment: Segment,
    /// The epochs used in this start.
    epochs: u32,
    /// The runs of blocks: in order, without gaps, from block 0.
    runs: Vec<Run>,
    /// Rows that do not fill a block yet.
    tail: Vec<Row>,
    /// The number of the first row in each record of the tail.
    chunks: BTreeSet<u64>,
    /// Blocks that the server has not acknowledged.
    outbox: BTreeSet<Address>,
    /// Rows corrected since their block was sealed: the sealed row and the correct one.
    exceptions: BTreeMap<u64, (Row, Row)>,
    /// The key that seals saved states.
    state_key: StateKey,
    /// What is saved at the server.
    standing: unsent_state::SavedStatus,
    /// Changes to rows, corrections or blocks since this start.
    changes: u64,
    /// Stops changes while a step is uncommitted.
    guard: CommitGuard,
}

/// The start of the owner and the state within it that a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    segment: Segment,
    changes: u64,
}

impl Owner {
    /// Creates an empty table, whose data set follows from the key: each table has a key of
    /// its own.
    pub fn create(
        key: &TableKey,
        set: Set,
        order: Order,
        layout: Layout,
        rng: &mut impl CryptoRng,
    ) -> PendingStep<Self> {
        let data_set = key.data_set();
        let mut owner = Self::empty(key, records::Meta { data_set, set, order, layout }, rng);
        owner.standing.changed = true;
        let guard = owner.guard.clone();
        PendingStep::new(vec![owner.meta_record(), unsent_state::changed_record()], owner, &guard)
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
            state_key: StateKey::new(key, data_set),
            standing: unsent_state::SavedStatus::default(),
            changes: 0,
            guard: CommitGuard::default(),
        }
    }

    /// The version of rows, corrections and blocks.
    fn version(&self) -> Version {
        Version { segment: self.segment, changes: self.changes }
    }

    /// A step that changes rows, corrections or blocks.
    fn step<T>(&mut self, mut changes: Vec<Change>, released: T) -> PendingStep<T> {
        self.changes += 1;
        if !std::mem::replace(&mut self.standing.changed, true) {
            changes.push(unsent_state::changed_record());
        }
        PendingStep::new(changes, released, &self.guard)
    }

    /// Starts from the records of a ledger. `records` may omit the application's.
    ///
    /// The ledger may be an old copy. Every start draws its own segment, so it never reuses a
    /// label of an earlier one. Rows missing from the copy are lost, but no answer about the
    /// others is wrong.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        key: &TableKey,
        records: impl IntoIterator<Item = (K, V)>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, StateError> {
        let read = records::Records::read(records)?;
        let mut owner = Self::empty(key, read.meta, rng);
        owner.runs = read.runs;
        let chunks: Vec<(u64, u64)> =
            read.chunks.iter().map(|(first, rows)| (*first, rows.len() as u64)).collect();
        owner.chunks = read.chunks.keys().copied().collect();
        owner.tail = read.chunks.into_values().flatten().collect();
        owner.outbox = read.outbox;
        owner.exceptions = read.exceptions;
        owner.standing = read.standing;
        owner.check(&chunks)?;
        Ok(owner)
    }

    /// The table's manifest for the server.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The table's columns.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// K.
    #[must_use]
    pub fn order(&self) -> Order {
        self.keys.order
    }

    /// n, the number of rows in a block.
    #[must_use]
    pub fn block_rows(&self) -> u64 {
        self.keys.ring.degree() as u64
    }

    /// The number of sealed blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.to)
    }

    /// The number of rows, including the tail.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.blocks() * self.block_rows() + self.tail.len() as u64
    }

    /// The number of rows that do not fill a block yet. Only the owner has them.
    #[must_use]
    pub fn tail_rows(&self) -> u64 {
        self.tail.len() as u64
    }

    /// Those rows.
    #[must_use]
    pub fn tail(&self) -> &[Row] {
        &self.tail
    }

    /// Rows with a correction that is not in the server's blocks yet.
    pub fn corrected_rows(&self) -> impl Iterator<Item = u64> {
        self.exceptions.keys().copied()
    }

    /// The current address of a block.
    #[must_use]
    pub fn address(&self, index: u64) -> Option<Address> {
        let run = self.runs.iter().find(|run| (run.from..run.to).contains(&index))?;
        Some(Address { segment: run.segment, epoch: run.epoch, index })
    }

    /// The runs of all blocks.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Checks an answer. It takes some 30 µs, however many blocks it sums, and some
    /// microseconds more for each run: one for each start of the owner that sealed blocks,
    /// up to two for each rewritten block.
    ///
    /// # Errors
    /// [`VerifyError`], whatever is wrong.
    pub fn verify(&self, question: &Question, answer: &[u8]) -> Result<VerifiedSum, VerifyError> {
        self.keys.verify(question, answer)
    }

    /// Decrypts a verified sum.
    #[must_use]
    pub fn decrypt(&self, verified: &VerifiedSum) -> DecryptedSum {
        self.keys.open(verified)
    }

    /// Plans the sum of a moment over rows `from..to`.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(&self, moment: Moment, from: u64, to: u64) -> Result<Plan, PlanError> {
        let term = self.layout.term(moment).ok_or(PlanError::NotRegistered)?;
        self.plan_term(term, from, to)
    }
}

fn random<const N: usize>(rng: &mut impl CryptoRng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// The change that stores rows of the tail.
fn chunk_record(first: u64, rows: &[Row]) -> Change {
    Change::put(records::key(records::TAIL, &first.to_be_bytes()), records::encode(&rows))
}
