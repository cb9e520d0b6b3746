//! What a server keeps of tables: for each an object that says whose it is, and one for
//! each block, wherever objects are stored.

use super::storage::{self, Storage, StorageError};
use alpheus_verifiable_table::label::{Address, DataSet, Kind, Segment};
use alpheus_verifiable_table::messages::{Block, Manifest};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What is kept of a table beside its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Whose it is, by certificate.
    pub owner: String,
    /// What it is like.
    pub manifest: Manifest,
}

/// Why something cannot be stored or had.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The disk, or the object store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is no such table.
    #[error("there is no such table here; `alpheus table append` begins it")]
    NoTable,
    /// Somebody else's, or another manifest.
    #[error("a table of this name is here already, and is not the same")]
    OtherTable,
    /// There is no such block.
    #[error("there is no block {} of this segment and epoch here; it was never sent, or has been dropped", .0.index)]
    NoBlock(Address),
    /// Other bytes stand under the address.
    #[error("other bytes are stored for block {} of this segment and epoch", .0.index)]
    OtherBlock(Address),
    /// An object does not hold what it should.
    #[error(
        "{0} is damaged; restore it from a backup of what is stored here: its owner has no copy"
    )]
    Damaged(String),
}

/// All tables of a server.
#[derive(Clone, Debug)]
pub struct Tables {
    storage: Arc<dyn Storage>,
}

/// The parts of a block's bytes that a sum takes, in order.
pub type Parts = Vec<Bytes>;

fn about_name(table: &DataSet) -> String {
    format!("{}/table", HEXLOWER.encode(&table.0))
}

fn block_name(table: &DataSet, address: &Address) -> String {
    let Address { segment, epoch, index } = address;
    let (table, segment) = (HEXLOWER.encode(&table.0), HEXLOWER.encode(&segment.0));
    format!("{table}/{segment}-{epoch:08x}-{index:016x}")
}

/// The segment that a block's name, without its table's, begins with.
fn segment_of(name: &str) -> Option<Segment> {
    let (segment, _) = name.split_once('-')?;
    HEXLOWER.decode(segment.as_bytes()).ok()?.try_into().ok().map(Segment)
}

impl Tables {
    /// Where a setting says: in a folder, which is made if it is not there, or in an object
    /// store.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn open(place: &Path) -> Result<Self, BlockError> {
        Ok(Self::over(storage::open(place)?))
    }

    /// Over any storage.
    #[must_use]
    pub fn over(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// Begins a table, durably. The same again changes nothing.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn create(&self, stored: &Stored) -> Result<(), BlockError> {
        let bytes = postcard::to_allocvec(stored).unwrap_or_default();
        let same = self.storage.put(&about_name(&stored.manifest.data_set), &bytes)?;
        same.then_some(()).ok_or(BlockError::OtherTable)
    }

    /// What is known of a table.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn about(&self, table: &DataSet) -> Result<Stored, BlockError> {
        let name = about_name(table);
        let bytes = self.storage.get(&name)?.ok_or(BlockError::NoTable)?;
        postcard::from_bytes(&bytes).map_err(|_| BlockError::Damaged(name))
    }

    /// Keeps a block for good. The same again changes nothing.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn put<B: AsRef<[u8]>>(&self, table: &DataSet, block: &Block<B>) -> Result<(), BlockError> {
        let address = block.address();
        let same = self.storage.put(&block_name(table, &address), block.as_bytes())?;
        same.then_some(()).ok_or(BlockError::OtherBlock(address))
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

    /// Of each of some blocks what a sum of a kind takes, and no more. Where a block says
    /// that it stands is not looked at: whoever asked finds out.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn parts(
        &self,
        manifest: &Manifest,
        kind: Kind,
        addresses: &[Address],
    ) -> Result<Vec<Parts>, BlockError> {
        let ranges = manifest.parts(kind).unwrap_or_default();
        let name = |address| block_name(&manifest.data_set, address);
        let names: Vec<String> = addresses.iter().map(name).collect();
        let found = self.storage.read(&names, &ranges)?;
        let each = found.into_iter().zip(addresses);
        each.map(|(parts, address)| parts.ok_or(BlockError::NoBlock(*address))).collect()
    }

    /// Segments that a table has blocks of.
    ///
    /// # Errors
    /// [`BlockError::Storage`].
    pub fn segments(&self, table: &DataSet) -> Result<BTreeSet<Segment>, BlockError> {
        let names = self.storage.list(&HEXLOWER.encode(&table.0))?;
        Ok(names.iter().filter_map(|name| segment_of(name)).collect())
    }

    /// Forgets a block, if it is there.
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

    fn manifest(set: u8) -> Manifest {
        let data_set = DataSet([set; 16]);
        Manifest { data_set, set: Set::L128, columns: 2, products: vec![(Column(0), Column(1))] }
    }

    /// Bytes of the right length, under an address of a table.
    fn block(manifest: &Manifest, index: u64, fill: u8) -> Block {
        let mut bytes = vec![fill; manifest.block_length()];
        bytes[0] = 1;
        bytes[1..17].copy_from_slice(&manifest.data_set.0);
        bytes[17..37].fill(3);
        bytes[37..45].copy_from_slice(&index.to_be_bytes());
        Block::from_bytes(manifest, bytes).unwrap()
    }

    /// What every storage must do for tables.
    pub(crate) fn tables_are_kept(tables: &Tables) {
        let (one, other) = (manifest(1), manifest(2));
        let stored = |manifest: &Manifest, owner: &str| Stored {
            owner: owner.to_owned(),
            manifest: manifest.clone(),
        };
        assert!(matches!(tables.about(&one.data_set), Err(BlockError::NoTable)));
        for _ in 0..2 {
            tables.create(&stored(&one, "ada")).unwrap();
        }
        let taken = tables.create(&stored(&one, "eve"));
        assert!(matches!(taken, Err(BlockError::OtherTable)));
        assert_eq!(tables.about(&one.data_set).unwrap(), stored(&one, "ada"));

        let first = block(&one, 0, 7);
        let at = first.address();
        assert_eq!(at.segment, Segment([3; 16]));
        assert!(matches!(tables.get(&one, &at), Err(BlockError::NoBlock(_))));
        for _ in 0..2 {
            tables.put(&one.data_set, &first).unwrap();
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
        assert_eq!(tables.segments(&one.data_set).unwrap(), [at.segment].into());
        assert!(tables.segments(&other.data_set).unwrap().is_empty());
        for _ in 0..2 {
            tables.remove(&one.data_set, &at).unwrap();
        }
        assert!(matches!(tables.get(&one, &at), Err(BlockError::NoBlock(_))));
        assert!(matches!(tables.parts(&one, kind, &addresses), Err(BlockError::NoBlock(_))));
        assert_eq!(tables.get(&one, &second.address()).unwrap().as_bytes(), second.as_bytes());
    }

    #[test]
    fn a_folder_keeps_tables() {
        let folder = tempfile::tempdir().unwrap();
        tables_are_kept(&Tables::open(folder.path()).unwrap());
        // Another start finds what was kept.
        let again = Tables::open(folder.path()).unwrap();
        assert_eq!(again.about(&manifest(1).data_set).unwrap().owner, "ada");
    }

    /// A file under another's name, or cut, is no block.
    #[test]
    fn what_is_damaged_is_not_taken_for_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let one = manifest(1);
        tables.create(&Stored { owner: "ada".to_owned(), manifest: one.clone() }).unwrap();
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
