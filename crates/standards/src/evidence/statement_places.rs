//! How many statements are written at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Statements that are written at once: each reads all rows that there are.
pub const MAX_AT_ONCE: usize = 2;

/// No other statement is written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusyError {
    /// One is being written for this consumer, or waits.
    #[error("your last statement of evidence is still being written; ask again when it is done")]
    Own,
    /// As many are being written as there may be at once.
    #[error("{MAX_AT_ONCE} statements of evidence are being written; ask again later")]
    All,
}

/// Consumers whose statements are being written or wait: one statement each, so that others wait
/// for no more than one of each consumer.
#[derive(Clone, Debug, Default)]
pub struct StatementPlaces(Arc<Mutex<BTreeSet<String>>>);

impl StatementPlaces {
    /// A place for a consumer's statement.
    ///
    /// # Errors
    /// [`BusyError::Own`] if it has one.
    pub fn take(&self, consumer: &str) -> Result<StatementPlace, BusyError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !taken.insert(consumer.to_owned()) {
            return Err(BusyError::Own);
        }
        Ok(StatementPlace { of: consumer.to_owned(), among: self.clone() })
    }
}

/// A place, which is free again when it is dropped.
#[derive(Debug)]
pub struct StatementPlace {
    of: String,
    among: StatementPlaces,
}

impl Drop for StatementPlace {
    fn drop(&mut self) {
        let mut taken = self.among.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.of);
    }
}
