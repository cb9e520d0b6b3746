//! Steps that must be durable before a block may leave, and the guard that stops an owner
//! whose last step was not.

use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The owner's last change is in memory but not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an earlier change of the table was not stored, because its step failed or was dropped: reopen the table from its store"
)]
pub struct UncommittedError;

/// Whether a step was made and not committed. Continuing after one would add its blocks to
/// the table, although no store has their bytes.
#[derive(Clone, Default)]
pub(crate) struct CommitGuard(Arc<AtomicBool>);

impl CommitGuard {
    /// Checks that no step is outstanding.
    pub(crate) fn check(&self) -> Result<(), UncommittedError> {
        if self.0.load(Ordering::Acquire) { Err(UncommittedError) } else { Ok(()) }
    }
}

/// A [`Step`] of an owner that makes no further changes until it is committed.
///
/// If the step fails or is dropped, the owner must be reopened from its store.
#[must_use = "a step that is not committed releases nothing"]
pub struct PendingStep<T> {
    step: Step<T>,
    guard: CommitGuard,
}

impl<T> PendingStep<T> {
    pub(crate) fn new(changes: Vec<Change>, released: T, guard: &CommitGuard) -> Self {
        guard.0.store(true, Ordering::Release);
        Self { step: Step::new(changes, released), guard: guard.clone() }
    }

    /// Adds an application's own changes to the same commit.
    pub fn and(self, changes: impl IntoIterator<Item = Change>) -> Self {
        let changes = changes.into_iter().collect();
        let step = self.step.then(|released| Step::new(changes, released));
        Self { step, guard: self.guard }
    }

    /// Makes the changes durable, then returns what they release.
    ///
    /// # Errors
    /// [`LedgerError`]: what was to be released is lost, and the owner makes no more changes.
    /// Reopen it from its store.
    pub fn commit(self, ledger: &mut impl Ledger) -> Result<T, LedgerError> {
        let released = self.step.commit(ledger)?;
        self.guard.0.store(false, Ordering::Release);
        Ok(released)
    }
}
