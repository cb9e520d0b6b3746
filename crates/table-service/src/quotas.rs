//! How much each owner stores at a server, and the limit: one owner cannot fill the disk of all.

use super::blocks::{BlockError, QuotaError, Tables};
use alpheus_verifiable_table::label::DataSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The default limit for an owner, in bytes.
pub const DEFAULT_BYTES: u64 = 64 << 30;
/// An object counts as at least so many bytes: what a file takes.
pub const MIN_OBJECT: u64 = 4096;

/// What owners store. It is counted when an owner first stores something, and again before an
/// owner who has deleted something is refused.
#[derive(Clone, Debug)]
pub struct Quotas {
    limit: u64,
    owners: Arc<Mutex<BTreeMap<String, Arc<Mutex<Usage>>>>>,
}

#[derive(Debug, Default)]
struct Usage {
    /// The owner's tables, once they have been looked for.
    tables: Option<BTreeSet<DataSet>>,
    bytes: u64,
    /// Of these: bytes of objects that are being stored.
    pending: u64,
    /// Whether something was deleted since the count.
    deleted: bool,
}

/// What an object counts as.
fn counted(length: u64) -> u64 {
    length.max(MIN_OBJECT)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Usage {
    /// Counts again. The first count looks at all tables of the server, a later one at the owner's.
    fn count(&mut self, tables: &Tables, owner: &str) -> Result<(), BlockError> {
        let own = match self.tables.take() {
            Some(own) => own,
            None => tables.of_owner(owner)?,
        };
        let mut bytes = self.pending;
        for table in &own {
            bytes = tables.sizes(table)?.into_iter().map(counted).fold(bytes, u64::saturating_add);
        }
        self.deleted = false;
        (self.tables, self.bytes) = (Some(own), bytes);
        Ok(())
    }
}

impl Quotas {
    /// With a limit for each owner, in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, owners: Arc::default() }
    }

    fn usage(&self, owner: &str) -> Arc<Mutex<Usage>> {
        lock(&self.owners).entry(owner.to_owned()).or_default().clone()
    }

    /// Stores an object of an owner if there is room for it. `store` says whether the object is new;
    /// one that was there, as `there` says, takes nothing.
    ///
    /// # Errors
    /// [`QuotaError`], or what `store` fails with.
    pub fn store(
        &self,
        tables: &Tables,
        (owner, table, length): (&str, &DataSet, usize),
        (store, there): (impl FnOnce() -> Result<bool, BlockError>, impl FnOnce() -> bool),
    ) -> Result<(), BlockError> {
        let (needed, usage) = (counted(length as u64), self.usage(owner));
        let room = self.reserve(tables, owner, (&mut lock(&usage), needed));
        if matches!(room, Err(BlockError::Quota(_))) && there() {
            return Ok(());
        }
        room?;
        let stored = store();
        let mut usage = lock(&usage);
        usage.pending = usage.pending.saturating_sub(needed);
        if !matches!(stored, Ok(true)) {
            usage.bytes = usage.bytes.saturating_sub(needed);
        }
        usage.tables.get_or_insert_default().insert(*table);
        stored.map(drop)
    }

    fn reserve(
        &self,
        tables: &Tables,
        owner: &str,
        (usage, needed): (&mut Usage, u64),
    ) -> Result<(), BlockError> {
        let fits = |usage: &Usage| usage.bytes.saturating_add(needed) <= self.limit;
        if usage.tables.is_none() || (usage.deleted && !fits(usage)) {
            usage.count(tables, owner)?;
        }
        if !fits(usage) {
            return Err(QuotaError { used: usage.bytes, limit: self.limit, needed }.into());
        }
        usage.bytes = usage.bytes.saturating_add(needed);
        usage.pending = usage.pending.saturating_add(needed);
        Ok(())
    }

    /// An owner has deleted something.
    pub fn deleted(&self, owner: &str) {
        lock(&self.usage(owner)).deleted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::TableRecord;
    use crate::blocks::tests::{block, manifest};
    use alpheus_verifiable_table::messages::{Block, Manifest};

    /// A server's tables with a quota for so many blocks and two tables, and a stored block.
    #[test]
    fn an_owner_stores_no_more_than_its_quota_and_takes_nothing_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let (one, two) = (manifest(1), manifest(2));
        let length = one.block_length();
        let size = counted(length as u64);
        let quota = MIN_OBJECT + 2 * size;
        let quotas = Quotas::new(quota);
        let create = |owner: &str, of: &Manifest| {
            let record = TableRecord { owner: owner.to_owned(), manifest: of.clone() };
            let about = (owner, &of.data_set, 200);
            quotas.store(&tables, about, (|| tables.create(&record), || false))
        };
        let put = |quotas: &Quotas, owner: &str, of: &Manifest, block: &Block| {
            let about = (owner, &of.data_set, length);
            let found = || tables.get(of, &block.address());
            let there = || found().is_ok_and(|found| found.as_bytes() == block.as_bytes());
            quotas.store(&tables, about, (|| tables.put(&of.data_set, block), there))
        };
        create("ada", &one).unwrap();
        for index in [0, 0, 1, 0] {
            put(&quotas, "ada", &one, &block(&one, index, 7)).unwrap();
        }
        let other = put(&quotas, "ada", &one, &block(&one, 1, 8));
        assert!(matches!(other, Err(BlockError::Quota(_))), "it is not the same");
        let full = put(&quotas, "ada", &one, &block(&one, 2, 7)).unwrap_err();
        assert_eq!(
            full.to_string(),
            QuotaError { used: quota, limit: quota, needed: size }.to_string()
        );
        create("eve", &two).unwrap();
        put(&quotas, "eve", &two, &block(&two, 0, 7)).unwrap();
        // A restart counts what is there.
        let again = Quotas::new(quota);
        assert!(put(&again, "ada", &one, &block(&one, 2, 7)).is_err());
        tables.remove(&one.data_set, &block(&one, 0, 7).address()).unwrap();
        again.deleted("ada");
        put(&again, "ada", &one, &block(&one, 2, 7)).unwrap();
        assert!(put(&again, "ada", &one, &block(&one, 3, 7)).is_err());
    }
}
