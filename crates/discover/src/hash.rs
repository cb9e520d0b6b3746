//! Hashes of cells, for counting what is different. The key is drawn by the process, so a file
//! cannot aim at them.

use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// A set with a fast hash.
pub(crate) type Set<T> = HashSet<T, RandomState>;
/// A map with a fast hash.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// Hashes what is distinguished in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hashes(RandomState);

impl Hashes {
    /// The hash of a value.
    pub(crate) fn of(&self, value: impl Hash) -> u64 {
        self.0.hash_one(value)
    }
}
