//! What must outlive a crash before a message may leave: the ledger, and the
//! steps whose messages can only be taken out by committing to it.
//!
//! A handler of a role returns a [`Step`]. It holds changes to the ledger and
//! messages; [`Step::commit`] is the only way to the messages. Steps of many
//! controllers of one host merge into one commit, so that a window costs a host
//! one disk flush a round.
//!
//! The store sees keys and bytes ([`Change`]): any store that applies a batch
//! as a whole will do.

mod records;

pub use records::{
    Fence, LogEvent, LogLine, Record, Scope, Spent, Stamped, UnreadableRecord, log_prefix,
};
pub(crate) use records::{session_key, window_keys};

use std::collections::{BTreeMap, HashSet};

/// One change to the ledger: a key and its new value, or its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Starts with the [`Scope`], so that one store holds many ledgers.
    pub key: Vec<u8>,
    /// The value; none removes the key.
    pub value: Option<Vec<u8>>,
}

/// The store did not make the changes durable. What was wrong stands in the
/// store's own log; here it only matters that nothing may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger did not store the changes; nothing was released. Mend the store, then restart from it"
)]
pub struct LedgerError;

/// A durable store of changes.
///
/// - When `commit` returns `Ok`, all changes are on stable storage.
/// - After a crash either all or none of a commit's changes are there, and
///   commits are there in order.
/// - After an `Err` it refuses everything until it is opened anew: the roles
///   that wrote to it are then restored from what it holds.
pub trait Ledger {
    /// Makes the changes durable, all or none.
    ///
    /// # Errors
    /// [`LedgerError`] if they may not be durable.
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError>;
}

/// A ledger in memory, for tests and examples: it forgets with the process.
impl Ledger for BTreeMap<Vec<u8>, Vec<u8>> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        for Change { key, value } in changes {
            match value {
                Some(value) => self.insert(key.clone(), value.clone()),
                None => self.remove(key),
            };
        }
        Ok(())
    }
}

/// What a handler decided: changes to make durable first, then messages.
///
/// Steps are committed in the order in which they were made, alone or merged.
/// One that is dropped sends nothing.
#[derive(Debug)]
#[must_use = "a step that is not committed sends nothing"]
pub struct Step<M> {
    changes: Vec<Change>,
    messages: Vec<M>,
}

impl<M> Default for Step<M> {
    fn default() -> Self {
        Self { changes: Vec::new(), messages: Vec::new() }
    }
}

impl<M> Step<M> {
    pub(crate) fn new(changes: Vec<Change>, messages: Vec<M>) -> Self {
        Self { changes, messages }
    }

    /// Whether it neither changes nor sends anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.messages.is_empty()
    }

    /// What it will send, for who must store it in the same commit.
    pub(crate) fn messages(&self) -> &[M] {
        &self.messages
    }

    /// Appends a later step, of the same or another role.
    pub fn merge(&mut self, later: Step<M>) {
        self.changes.extend(later.changes);
        self.messages.extend(later.messages);
    }

    /// Bytes of its changes, for whoever must bound a commit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let size = |change: &Change| change.key.len() + change.value.as_ref().map_or(0, Vec::len);
        self.changes.iter().map(size).sum()
    }

    /// Makes the changes durable, then hands the messages out. A step without
    /// changes does not touch the ledger.
    ///
    /// # Errors
    /// [`LedgerError`]: the messages are gone. Restore the roles from the
    /// ledger; the same requests then get the same answers.
    pub fn commit(mut self, ledger: &mut impl Ledger) -> Result<Vec<M>, LedgerError> {
        if !self.changes.is_empty() {
            last_of_each_key(&mut self.changes);
            ledger.commit(&self.changes)?;
        }
        Ok(self.messages)
    }

    /// Turns its messages into another type.
    pub fn map<N>(self, into: impl FnMut(M) -> N) -> Step<N> {
        Step { changes: self.changes, messages: self.messages.into_iter().map(into).collect() }
    }
}

/// Keeps, of several changes to one key, the last: what controllers of one host
/// share is then written once.
fn last_of_each_key(changes: &mut Vec<Change>) {
    let mut seen = HashSet::with_capacity(changes.len());
    let mut keep: Vec<bool> =
        changes.iter().rev().map(|change| seen.insert(change.key.as_slice())).collect();
    keep.reverse();
    let mut keep = keep.into_iter();
    changes.retain(|_| keep.next().unwrap_or(true));
}
