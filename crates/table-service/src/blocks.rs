//! A server's objects in its storage: one per table, with its owner and manifest, one per
//! block, and one per saved state.

use super::storage::{self, Storage, StorageError, StoreOutcome};
use alpheus_verifiable_table::label::{Address, DataSet, Kind, Segment};
use alpheus_verifiable_table::messages::{Block, Manifest};
use alpheus_verifiable_table::saved_state::{SavedState, StateName};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A table's owner and manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// The owner's name in its certificate.
    pub owner: String,
    /// The manifest.
    pub manifest: Manifest,
}

/// An owner stores as much as it may.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "you store {used} of {limit} bytes here, and this needs {needed} more: delete tables, merge or prune blocks, or ask the server's operator to raise `table.quota-bytes`"
)]
pub struct QuotaError {
    /// What the owner stores, in bytes.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// What the object takes.
    pub needed: u64,
}

/// Why a block or table cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The disk, or the object store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is no such table.
    #[error("there is no such table here; `alpheus table append` registers it")]
    NoTable,
    /// The table has another owner or manifest.
    #[error("another table of this name exists here")]
    OtherTable,
    /// There is no such block.
    #[error("there is no block {} of this segment and epoch here; it was never sent, or has been deleted", .0.index)]
    NoBlock(Address),
    /// The address has other bytes.
    #[error("block {} of this segment and epoch is stored with different bytes", .0.index)]
    OtherBlock(Address),
    /// There is no such saved state.
    #[error("there is no saved state {0} of this table here")]
    NoState(StateName),
    /// The saved state has other bytes.
    #[error("the saved state {0} is stored with different bytes")]
    OtherState(StateName),
    /// The table has blocks or saved states.
    #[error("the table has {0} blocks and saved states here; delete them first")]
    InUse(usize),
    /// The owner stores as much as it may.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// An object is damaged.
    #[error(
        "{0} is damaged; restore it from a backup of this storage, since its owner has no copy"
    )]
    Damaged(String),
}

/// All tables of a server.
#[derive(Clone, Debug)]
pub struct Tables {
    storage: Arc<dyn Storage>,
}

/// The parts of a block that a sum needs, in order.
pub type Parts = Vec<Bytes>;

fn about_name(table: &DataSet) -> String {
    format!("{}/table", HEXLOWER.encode(&table.0))
}

fn block_name(table: &DataSet, address: &Address) -> String {
    let Address { segment, epoch, index } = address;
    let (table, segment) = (HEXLOWER.encode(&table.0), HEXLOWER.encode(&segment.0));
    format!("{table}/{segment}-{epoch:08x}-{index:016x}")
}

/// What names of saved states begin with. It is no segment.
const STATE: &str = "state-";

fn state_name(table: &DataSet, name: &StateName) -> String {
    let (table, segment) = (HEXLOWER.encode(&table.0), HEXLOWER.encode(&name.segment.0));
    format!("{table}/{STATE}{:016x}-{segment}", name.version)
}

/// The saved state of an object's name, which is given without its table.
fn state_of(name: &str) -> Option<StateName> {
    let (version, segment) = name.strip_prefix(STATE)?.split_once('-')?;
    let segment = HEXLOWER.decode(segment.as_bytes()).ok()?.try_into().ok().map(Segment)?;
    Some(StateName { version: u64::from_str_radix(version, 16).ok()?, segment })
}

/// The segment in a block's name, which is given without its table.
fn segment_of(name: &str) -> Option<Segment> {
    let (segment, _) = name.split_once('-')?;
    HEXLOWER.decode(segment.as_bytes()).ok()?.try_into().ok().map(Segment)
}

/// Whether an object is new; `None` if another of its name is there.
fn is_new(stored: StoreOutcome) -> Option<bool> {
    match stored {
        StoreOutcome::New => Some(true),
        StoreOutcome::Same => Some(false),
        StoreOutcome::Other => None,
    }
}

impl Tables {
    /// Opens the storage of a setting: a folder, which is created if needed, or an object store.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn open(location: &Path) -> Result<Self, BlockError> {
        Ok(Self::over(storage::open(location)?))
    }

    /// Uses any storage.
    #[must_use]
    pub fn over(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// Registers a table durably. A repetition changes nothing. Whether it is new.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn create(&self, stored: &TableRecord) -> Result<bool, BlockError> {
        let bytes = postcard::to_allocvec(stored).unwrap_or_default();
        let stored = self.storage.put(&about_name(&stored.manifest.data_set), &bytes)?;
        is_new(stored).ok_or(BlockError::OtherTable)
    }

    /// The tables of an owner.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn of_owner(&self, owner: &str) -> Result<BTreeSet<DataSet>, BlockError> {
        let mut own = BTreeSet::new();
        for folder in self.storage.folders()? {
            let table = HEXLOWER.decode(folder.as_bytes()).ok();
            let Some(table) = table.and_then(|id| id.try_into().ok()).map(DataSet) else {
                continue;
            };
            match self.about(&table) {
                Ok(record) if record.owner == owner => drop(own.insert(table)),
                // A table that was forgotten leaves a folder; a damaged record is nobody's.
                Ok(_) | Err(BlockError::NoTable | BlockError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(own)
    }

    /// The sizes of all objects of a table, in bytes.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn sizes(&self, table: &DataSet) -> Result<Vec<u64>, BlockError> {
        Ok(self.storage.sizes(&HEXLOWER.encode(&table.0))?)
    }

    /// A table's owner and manifest.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn about(&self, table: &DataSet) -> Result<TableRecord, BlockError> {
        let name = about_name(table);
        let bytes = self.storage.get(&name)?.ok_or(BlockError::NoTable)?;
        postcard::from_bytes(&bytes).map_err(|_| BlockError::Damaged(name))
    }

    /// Stores a block durably. A repetition changes nothing. Whether it is new.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn put<B: AsRef<[u8]>>(
        &self,
        table: &DataSet,
        block: &Block<B>,
    ) -> Result<bool, BlockError> {
        let address = block.address();
        let stored = self.storage.put(&block_name(table, &address), block.as_bytes())?;
        is_new(stored).ok_or(BlockError::OtherBlock(address))
    }

    /// A block as it was stored.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn get(&self, manifest: &Manifest, address: &Address) -> Result<Block<Bytes>, BlockError> {
        let name = block_name(&manifest.data_set, address);
        let bytes = self.storage.get(&name)?.ok_or(BlockError::NoBlock(*address))?;
        let block = Block::from_bytes(manifest, bytes).ok();
        block.filter(|block| block.address() == *address).ok_or(BlockError::Damaged(name))
    }

    /// The parts of some blocks that a sum of a kind needs, and no more. With the first column come the
    /// headers before it: a block whose address is damaged adds up, but its owner could not fetch it.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn parts(
        &self,
        manifest: &Manifest,
        kind: Kind,
        addresses: &[Address],
    ) -> Result<Vec<Parts>, BlockError> {
        let mut ranges = manifest.parts(kind).unwrap_or_default();
        let header = manifest.header();
        let first = ranges.first_mut().filter(|range| range.start == header.end);
        let checks = first.map(|range| range.start = header.start).is_some();
        let name = |address| block_name(&manifest.data_set, address);
        let names: Vec<String> = addresses.iter().map(name).collect();
        let found = self.storage.read(&names, &ranges)?;
        let each = found.into_iter().zip(addresses.iter().zip(names));
        each.map(|(parts, (address, name))| {
            let mut parts = parts.ok_or(BlockError::NoBlock(*address))?;
            if let Some(first) = parts.first_mut().filter(|_| checks) {
                let found = manifest.address_in(&first.split_to(header.len().min(first.len())));
                if found != Some(*address) {
                    return Err(BlockError::Damaged(name));
                }
            }
            Ok(parts)
        })
        .collect()
    }

    /// Forgets a table that has no blocks and no saved states.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn forget(&self, table: &DataSet) -> Result<(), BlockError> {
        let about = about_name(table);
        let names = self.storage.list(&HEXLOWER.encode(&table.0))?;
        let left = names.iter().filter(|name| !about.ends_with(&format!("/{name}"))).count();
        if left > 0 {
            return Err(BlockError::InUse(left));
        }
        Ok(self.storage.remove(&about)?)
    }

    /// The segments of a table that have blocks, and how many.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn segments(&self, table: &DataSet) -> Result<BTreeMap<Segment, u64>, BlockError> {
        let names = self.storage.list(&HEXLOWER.encode(&table.0))?;
        let mut blocks = BTreeMap::new();
        for segment in names.iter().filter_map(|name| segment_of(name)) {
            *blocks.entry(segment).or_insert(0) += 1;
        }
        Ok(blocks)
    }

    /// Stores a saved state durably. A repetition changes nothing. Whether it is new.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn put_state<B: AsRef<[u8]>>(
        &self,
        table: &DataSet,
        state: &SavedState<B>,
    ) -> Result<bool, BlockError> {
        let name = state.name();
        let stored = self.storage.put(&state_name(table, &name), state.as_bytes())?;
        is_new(stored).ok_or(BlockError::OtherState(name))
    }

    /// The names of a table's saved states.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn states(&self, table: &DataSet) -> Result<Vec<StateName>, BlockError> {
        let names = self.storage.list(&HEXLOWER.encode(&table.0))?;
        Ok(names.iter().filter_map(|name| state_of(name)).collect())
    }

    /// A saved state as it was stored. Its owner checks it.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn state(&self, table: &DataSet, name: &StateName) -> Result<Bytes, BlockError> {
        self.storage.get(&state_name(table, name))?.ok_or(BlockError::NoState(*name))
    }

    /// Deletes a saved state, if it exists.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn remove_state(&self, table: &DataSet, name: &StateName) -> Result<(), BlockError> {
        Ok(self.storage.remove(&state_name(table, name))?)
    }

    /// Deletes a block, if it exists.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn remove(&self, table: &DataSet, address: &Address) -> Result<(), BlockError> {
        Ok(self.storage.remove(&block_name(table, address))?)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alpheus_verifiable_table::label::{Column, Segment};
    use alpheus_verifiable_table::parameters::Set;

    pub(crate) fn manifest(set: u8) -> Manifest {
        let data_set = DataSet([set; 16]);
        Manifest { data_set, set: Set::L128, columns: 2, products: vec![(Column(0), Column(1))] }
    }

    /// A block of the right length, with an address of a table.
    pub(crate) fn block(manifest: &Manifest, index: u64, fill: u8) -> Block {
        let mut bytes = vec![fill; manifest.block_length()];
        bytes[0] = 2;
        bytes[1..17].copy_from_slice(&manifest.data_set.0);
        bytes[17..37].fill(3);
        bytes[37..45].copy_from_slice(&index.to_be_bytes());
        Block::from_bytes(manifest, bytes).unwrap()
    }

    /// What every storage must do for tables.
    pub(crate) fn check_tables(tables: &Tables) {
        let (one, other) = (manifest(1), manifest(2));
        let stored = |manifest: &Manifest, owner: &str| TableRecord {
            owner: owner.to_owned(),
            manifest: manifest.clone(),
        };
        assert!(matches!(tables.about(&one.data_set), Err(BlockError::NoTable)));
        for new in [true, false] {
            assert_eq!(tables.create(&stored(&one, "ada")).unwrap(), new);
        }
        let taken = tables.create(&stored(&one, "eve"));
        assert!(matches!(taken, Err(BlockError::OtherTable)));
        assert_eq!(tables.about(&one.data_set).unwrap(), stored(&one, "ada"));

        let first = block(&one, 0, 7);
        let at = first.address();
        assert_eq!(at.segment, Segment([3; 16]));
        assert!(matches!(tables.get(&one, &at), Err(BlockError::NoBlock(_))));
        for new in [true, false] {
            assert_eq!(tables.put(&one.data_set, &first).unwrap(), new);
        }
        let changed = tables.put(&one.data_set, &block(&one, 0, 8));
        assert!(matches!(changed, Err(BlockError::OtherBlock(_))));
        assert_eq!(tables.get(&one, &at).unwrap().as_bytes(), first.as_bytes());
        assert!(matches!(tables.get(&other, &at), Err(BlockError::NoBlock(_))));

        let second = block(&one, 1, 9);
        tables.put(&one.data_set, &second).unwrap();
        let kind = Kind::Product(Column(0), Column(1));
        let addresses = [first.address(), second.address()];
        let found = tables.parts(&one, kind, &addresses).unwrap();
        for (parts, block) in found.iter().zip([&first, &second]) {
            let ranges = one.parts(kind).unwrap();
            let expected: Vec<&[u8]> = ranges.into_iter().map(|at| &block.as_bytes()[at]).collect();
            assert_eq!(*parts, expected);
        }
        check_states(tables, &one);
        assert_eq!(tables.segments(&one.data_set).unwrap(), [(at.segment, 2)].into());
        assert!(tables.segments(&other.data_set).unwrap().is_empty());
        check_sizes(tables, [&stored(&one, "ada"), &stored(&other, "eve")]);
        for _ in 0..2 {
            tables.remove(&one.data_set, &at).unwrap();
        }
        assert!(matches!(tables.get(&one, &at), Err(BlockError::NoBlock(_))));
        assert!(matches!(tables.parts(&one, kind, &addresses), Err(BlockError::NoBlock(_))));
        assert_eq!(tables.get(&one, &second.address()).unwrap().as_bytes(), second.as_bytes());
    }

    /// Of the first there are two blocks, and a state of 5,000 bytes.
    fn check_sizes(tables: &Tables, [one, other]: [&TableRecord; 2]) {
        tables.create(other).unwrap();
        assert_eq!(tables.of_owner(&one.owner).unwrap(), [one.manifest.data_set].into());
        assert!(tables.of_owner("bob").unwrap().is_empty());
        let mut sizes = tables.sizes(&one.manifest.data_set).unwrap();
        sizes.sort_unstable();
        let length = one.manifest.block_length() as u64;
        let record = postcard::to_allocvec(one).unwrap().len() as u64;
        let mut expected = [record, 5000, length, length];
        expected.sort_unstable();
        assert_eq!(sizes, expected);
    }

    fn check_states(tables: &Tables, manifest: &Manifest) {
        let table = &manifest.data_set;
        let state = |version: u64, fill: u8| {
            let segment = [4; 16];
            let mut bytes = [[1].as_slice(), &table.0, &version.to_be_bytes(), &segment].concat();
            bytes.resize(5000, fill);
            SavedState::from_bytes(table, bytes).unwrap()
        };
        let (first, second) = (state(1, 7), state(17, 7));
        let missing = tables.state(table, &first.name());
        assert!(matches!(missing, Err(BlockError::NoState(_))));
        for state in [&first, &first, &second] {
            tables.put_state(table, state).unwrap();
        }
        let changed = tables.put_state(table, &state(1, 8));
        assert!(matches!(changed, Err(BlockError::OtherState(_))));
        let mut names = tables.states(table).unwrap();
        names.sort_unstable();
        assert_eq!(names, [first.name(), second.name()]);
        assert_eq!(tables.state(table, &first.name()).unwrap(), first.as_bytes());
        for _ in 0..2 {
            tables.remove_state(table, &first.name()).unwrap();
        }
        assert_eq!(tables.states(table).unwrap(), [second.name()]);
    }

    #[test]
    fn a_folder_stores_tables() {
        let folder = tempfile::tempdir().unwrap();
        check_tables(&Tables::open(folder.path()).unwrap());
        // A restart finds them.
        let again = Tables::open(folder.path()).unwrap();
        assert_eq!(again.about(&manifest(1).data_set).unwrap().owner, "ada");
    }

    /// A block in another's file, or a truncated one.
    #[test]
    fn a_damaged_file_is_not_returned_as_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let one = manifest(1);
        tables.create(&TableRecord { owner: "ada".to_owned(), manifest: one.clone() }).unwrap();
        let (first, second) = (block(&one, 0, 7), block(&one, 1, 7));
        tables.put(&one.data_set, &first).unwrap();
        let path = |block: &Block| folder.path().join(block_name(&one.data_set, &block.address()));
        std::fs::copy(path(&first), path(&second)).unwrap();
        assert!(matches!(tables.get(&one, &second.address()), Err(BlockError::Damaged(_))));
        std::fs::write(path(&second), &second.as_bytes()[1..]).unwrap();
        assert!(matches!(tables.get(&one, &second.address()), Err(BlockError::Damaged(_))));
        let kind = Kind::Product(Column(0), Column(1));
        let cut = tables.parts(&one, kind, &[second.address()]);
        assert!(matches!(cut, Err(BlockError::Storage(StorageError::Short(_)))));
    }
}
