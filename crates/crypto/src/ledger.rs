//! State that must survive a crash before a message may be sent. A [`Step`] holds
//! changes to a ledger and what they release; committing is the only way to release it.
//!
//! Commit the steps of one role in the order in which the role made them. Several
//! steps can share one commit, so a crowd of requests costs one disk flush.

use std::collections::{BTreeMap, HashSet};

use zeroize::Zeroizing;

/// One change: a key and its new value, or its removal.
///
/// Some values hold secrets, so all are wiped when dropped, and there is no `Debug`.
/// Keys hold no secrets.
#[derive(Clone)]
pub struct Change {
    /// Starts with the kind of record.
    pub key: Vec<u8>,
    /// The new value; `None` removes the key.
    pub value: Option<Zeroizing<Vec<u8>>>,
}

impl Change {
    /// Sets a key.
    #[must_use]
    pub fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self { key, value: Some(Zeroizing::new(value)) }
    }

    /// Removes a key.
    #[must_use]
    pub fn remove(key: Vec<u8>) -> Self {
        Self { key, value: None }
    }

    /// Bytes of key and value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// The store did not make the changes durable. The store's own log says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger did not store the changes, so nothing was released; repair the store, then restart from it"
)]
pub struct LedgerError;

/// A durable store of changes with one writer.
///
/// - When `commit` returns `Ok`, all changes are on stable storage.
/// - After a crash, either all or none of a commit's changes are there. Commits
///   survive in order.
/// - After an `Err`, the ledger refuses everything until it is reopened. The roles
///   that wrote to it are then restored from what it holds.
pub trait Ledger {
    /// Makes the changes durable, all or none. They apply in order, so the last
    /// change to a key wins.
    ///
    /// # Errors
    /// [`LedgerError`] if they may not be durable.
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError>;
}

/// A ledger in memory, for tests and examples. It ends with the process.
impl Ledger for BTreeMap<Vec<u8>, Vec<u8>> {
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

/// A ledger that stores nothing and says so, for tests of what happens then.
#[derive(Clone, Copy, Debug, Default)]
pub struct FailingLedger;

impl Ledger for FailingLedger {
    fn commit(&mut self, _: &[Change]) -> Result<(), LedgerError> {
        Err(LedgerError)
    }
}

/// Where the ledger that a role starts from comes from. The ledger itself cannot show
/// that it is an old copy, so the caller that opens the store declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateOrigin {
    /// The role never served before. Refused if the ledger holds anything that it
    /// released.
    New,
    /// The ledger holds every acknowledged commit. Refused if it is empty.
    Intact,
    /// The ledger may have been restored from an old copy, truncated or lost.
    Restored,
}

/// The ledger contradicts its declared [`StateOrigin`], or its records are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger is damaged, empty though declared intact, or in use though declared new; restore it from a copy and declare it restored"
)]
pub struct DamagedLedgerError;

/// Changes to make durable first, then what they release.
///
/// Dropping a step releases nothing.
#[derive(Default)]
#[must_use = "a step that is not committed releases nothing"]
pub struct Step<T> {
    changes: Vec<Change>,
    released: T,
}

impl<T> Step<T> {
    /// `released` comes out once `changes` are durable. Only roles should call this.
    pub fn new(changes: Vec<Change>, released: T) -> Self {
        Self { changes, released }
    }

    /// The changes alone, for a caller that commits them with others. This step's content is
    /// dropped.
    #[must_use]
    pub fn dangerous_changes(self) -> Vec<Change> {
        self.changes
    }

    /// What the step will release, for a caller that must store part of it in the same
    /// commit. Nothing of it may be sent before that commit.
    pub fn dangerous_preview(&self) -> &T {
        &self.released
    }

    /// Bytes of its changes, for callers that bound a commit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(Change::bytes).sum()
    }

    /// Transforms what the step releases.
    pub fn map<U>(self, transform: impl FnOnce(T) -> U) -> Step<U> {
        Step { changes: self.changes, released: transform(self.released) }
    }

    /// Continues in the same commit: `next` gets what this step releases, and what its
    /// own step releases comes out instead.
    pub fn then<U>(self, next: impl FnOnce(T) -> Step<U>) -> Step<U> {
        let Self { mut changes, released } = self;
        let next = next(released);
        changes.extend(next.changes);
        Step { changes, released: next.released }
    }

    /// The same step with all keys under a prefix, for roles that share a ledger.
    pub fn under(mut self, prefix: &[u8]) -> Self {
        self.changes.iter_mut().for_each(|change| change.key = [prefix, &change.key].concat());
        self
    }

    /// Makes the changes durable, then returns what they release. A step without
    /// changes does not touch the ledger.
    ///
    /// # Errors
    /// [`LedgerError`]: what was to be released is gone. Restore the role from the
    /// ledger; it then answers the same request in the same way.
    pub fn commit(mut self, ledger: &mut impl Ledger) -> Result<T, LedgerError> {
        if !self.changes.is_empty() {
            keep_last_of_each_key(&mut self.changes);
            ledger.commit(&self.changes)?;
        }
        Ok(self.released)
    }

    /// Puts several steps of one ledger into one commit, in order.
    pub fn join(steps: impl IntoIterator<Item = Self>) -> Step<Vec<T>> {
        let mut joined = Step { changes: Vec::new(), released: Vec::new() };
        for step in steps {
            joined.changes.extend(step.changes);
            joined.released.push(step.released);
        }
        joined
    }
}

impl<M> Step<Vec<M>> {
    /// Whether it neither changes nor releases anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.released.is_empty()
    }

    /// Appends a later step of the same ledger, of this or another role.
    pub fn merge(&mut self, later: Self) {
        self.changes.extend(later.changes);
        self.released.extend(later.released);
    }
}

/// Roles that share a ledger may write the same key in one commit; only the last
/// change to it needs to be written.
fn keep_last_of_each_key(changes: &mut Vec<Change>) {
    let mut seen = HashSet::with_capacity(changes.len());
    let mut keep: Vec<bool> =
        changes.iter().rev().map(|change| seen.insert(change.key.as_slice())).collect();
    keep.reverse();
    let mut keep = keep.into_iter();
    changes.retain(|_| keep.next().unwrap_or(true));
}

/// A change that sets a value.
#[must_use]
pub fn put(key: Vec<u8>, value: Vec<u8>) -> Change {
    Change::put(key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct CountingStore {
        store: BTreeMap<Vec<u8>, Vec<u8>>,
        written: Vec<usize>,
    }

    impl Ledger for CountingStore {
        fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
            self.written.push(changes.len());
            self.store.commit(changes)
        }
    }

    #[test]
    fn merged_steps_write_each_key_once_with_its_last_value() {
        let mut step = Step::new(
            vec![put(b"a".to_vec(), vec![1]), put(b"b".to_vec(), vec![1])],
            vec!["first"],
        );
        step.merge(Step::new(
            vec![put(b"a".to_vec(), vec![2]), Change::remove(b"b".to_vec())],
            vec!["second"],
        ));
        assert_eq!(step.bytes(), 7);
        let mut ledger = CountingStore::default();
        assert_eq!(step.commit(&mut ledger), Ok(vec!["first", "second"]));
        assert_eq!(ledger.written, [2]);
        assert_eq!(ledger.store, BTreeMap::from([(b"a".to_vec(), vec![2])]));
    }

    #[test]
    fn a_step_without_changes_does_not_touch_the_ledger() {
        let step = Step::<Vec<u8>>::default();
        assert!(step.is_empty());
        let mut ledger = CountingStore::default();
        assert_eq!(step.map(|messages| messages.len()).commit(&mut ledger), Ok(0));
        assert!(ledger.written.is_empty());
    }
}
