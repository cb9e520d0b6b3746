//! What must outlive a crash before a message may leave: a [`Step`] holds
//! changes and what they entitle to, and committing is the only way to it.
//!
//! Steps of one role are committed in the order in which they were made. Many
//! join into one commit, so that a crowd of requests costs one disk flush.

use zeroize::Zeroizing;

/// One change: a key and its new value, or its removal. A holder's values hold
/// secrets, so they are wiped and there is no `Debug`; keys hold none.
#[derive(Clone)]
pub struct Change {
    /// Starts with the kind of record.
    pub key: Vec<u8>,
    /// The value; none removes the key.
    pub value: Option<Zeroizing<Vec<u8>>>,
}

/// The store did not make the changes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger did not store the changes; nothing was released. Mend the store, then restart from it"
)]
pub struct LedgerError;

/// A durable store of changes with one writer.
///
/// - When `commit` returns `Ok`, all changes are on stable storage.
/// - After a crash either all or none of a commit's changes are there, and
///   commits are there in order.
/// - After an `Err` it refuses everything until it is opened anew, and the role
///   that wrote to it is restored from what it holds.
pub trait Ledger {
    /// Makes the changes durable, all or none. They apply in order: of several
    /// to one key, the last stands.
    ///
    /// # Errors
    /// [`LedgerError`] if they may not be durable.
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError>;
}

/// A ledger in memory, for tests and examples: it forgets with the process.
impl Ledger for std::collections::BTreeMap<Vec<u8>, Vec<u8>> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        for Change { key, value } in changes {
            match value {
                Some(value) => self.insert(key.clone(), value.to_vec()),
                None => self.remove(key),
            };
        }
        Ok(())
    }
}

/// What is known of the ledger that a role starts from. Nobody can see from a
/// ledger itself that it is an older copy: whoever opens the store must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// The role never served before. Refused if something is there that it released.
    New,
    /// Every acknowledged commit is there. Refused if nothing is.
    Whole,
    /// It may have been rolled back, cut or lost.
    Doubtful,
}

/// The ledger is not what it is said to be: damaged, empty though whole, or
/// in use though new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger is damaged, empty though said to be whole, or in use though said to be new; restore it from a copy and start with a doubtful log"
)]
pub struct DamagedLog;

/// Changes to make durable first, then what they entitle to.
#[must_use = "a step that is not committed releases nothing"]
pub struct Step<T> {
    changes: Vec<Change>,
    released: T,
}

impl<T> Step<T> {
    /// What `released` costs: a role makes it, nobody else should.
    pub fn new(changes: Vec<Change>, released: T) -> Self {
        Self { changes, released }
    }

    /// The changes alone, for a step that goes further in one commit: what this one
    /// entitles to is dropped.
    #[must_use]
    pub fn dangerous_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Goes further in the same commit: what this step entitles to goes into the next
    /// one, and comes out with it.
    pub fn then<U>(self, further: impl FnOnce(T) -> Step<U>) -> Step<U> {
        let Self { mut changes, released } = self;
        let next = further(released);
        changes.extend(next.changes);
        Step { changes, released: next.released }
    }

    /// The same with all keys under a prefix: for roles that share a ledger.
    pub fn under(mut self, prefix: &[u8]) -> Self {
        self.changes.iter_mut().for_each(|change| change.key = [prefix, &change.key].concat());
        self
    }

    /// Makes the changes durable, then hands out what they entitle to.
    ///
    /// # Errors
    /// [`LedgerError`]: what was to be released is gone. Restore the role from
    /// the ledger; the same request then gets the same answer.
    pub fn commit(self, ledger: &mut impl Ledger) -> Result<T, LedgerError> {
        if !self.changes.is_empty() {
            ledger.commit(&self.changes)?;
        }
        Ok(self.released)
    }

    /// Several steps of one ledger, in order, in one commit.
    pub fn join(steps: impl IntoIterator<Item = Self>) -> Step<Vec<T>> {
        let mut joined = Step { changes: Vec::new(), released: Vec::new() };
        for step in steps {
            joined.changes.extend(step.changes);
            joined.released.push(step.released);
        }
        joined
    }
}

/// A change that sets a value.
#[must_use]
pub fn put(key: Vec<u8>, value: Vec<u8>) -> Change {
    Change { key, value: Some(Zeroizing::new(value)) }
}
