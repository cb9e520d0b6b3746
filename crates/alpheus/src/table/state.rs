//! An owner's folder: the key, and a durable store of the table's schema, state and
//! index. One process at a time has it.

use super::index::{Index, Stretch};
use super::schema::TableSchema;
use crate::ca::read_seed;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::files::{For, make_private_folder, write_new};
use crate::replay::inputs::read_text;
use crate::runtime::storage::scan_all;
use alpheus_crypto::secret::Secret;
use alpheus_transport::{Batch, Error, Space, Store, local};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Address, Segment};
use alpheus_verifiable_table::layout::Layout;
use alpheus_verifiable_table::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_verifiable_table::owner::{APPLICATION, Owner};
use data_encoding::HEXLOWER;
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

const KEY: &str = "table.key";
const STORE: &str = "store";

/// A stretch of the index, by its first row.
const STRETCH: u8 = APPLICATION;
/// How far a file has been appended, by its digest.
const IMPORT: u8 = APPLICATION + 1;
/// The schema's text: names, order and scales of the columns, which nothing else may say.
const SCHEMA: u8 = APPLICATION + 2;
/// A block that was written anew, which the server still has.
const REPLACED: u8 = APPLICATION + 3;

/// A ledger in a durable store.
pub struct StoreLedger {
    store: Arc<dyn Store>,
    space: Space,
    failed: bool,
}

impl StoreLedger {
    fn open(folder: &Path) -> Result<Self, Error> {
        let store = local::open(&folder.join(STORE), &local::Options::default())?;
        let space = Space::new("table")?;
        store.ensure_space(&space)?;
        Ok(Self { store, space, failed: false })
    }

    /// A value.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let value = self.store.get(&self.space, key).blame(Category::Io)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn write(&self, changes: &[Change]) -> Result<(), Error> {
        let mut batch = Batch::new();
        for Change { key, value } in changes {
            match value {
                Some(value) => batch.put(&self.space, key.clone(), value.to_vec())?,
                None => batch.delete(&self.space, key.clone())?,
            }
        }
        self.store.commit(batch).map(drop)
    }
}

impl Ledger for StoreLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        self.write(changes).map_err(|error| {
            tracing::error!(%error, "the table's state could not be written");
            self.failed = true;
            LedgerError
        })
    }
}

/// A table, as its owner has it.
pub struct TableState {
    /// What it is made of.
    pub schema: TableSchema,
    /// The owner.
    pub owner: Owner,
    /// Which rows are when.
    pub index: Index,
    /// Randomness.
    pub rng: ChaCha20Rng,
    /// Where all of it lasts.
    pub ledger: StoreLedger,
    imports: BTreeMap<[u8; 32], u64>,
    replaced: BTreeSet<Address>,
}

/// There is no schema with the table.
#[derive(Debug, thiserror::Error)]
#[error("the table's state lacks its schema: restore the folder from a backup")]
struct NoSchema;

/// An owner's folder is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("the index does not go with the table: {index} rows here, {table} there")]
struct OtherIndex {
    index: u64,
    table: u64,
}

/// A name that is taken, whatever by.
fn taken(error: io::Error) -> io::Error {
    use ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    match error.kind() {
        DirectoryNotEmpty | NotADirectory => AlreadyExists.into(),
        _ => error,
    }
}

fn replaced_key(address: &Address) -> Vec<u8> {
    [vec![REPLACED], postcard::to_allocvec(address).unwrap_or_default()].concat()
}

impl TableState {
    /// Makes a table in a folder that is not there yet.
    ///
    /// # Errors
    /// If the folder is there, the schema makes no table, or the disk fails.
    pub fn create(folder: &Path, schema_file: &Path) -> Result<Self, Failure> {
        let text = read_text(schema_file)?;
        let schema = TableSchema::parse(&text).blame_input(schema_file)?;
        let layout = schema.layout().blame_input(schema_file)?;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).blame_io(parent)?;
        // It has its name only once all of it is there.
        let building = tempfile::Builder::new().prefix(".table-").tempdir_in(parent);
        let building = building.blame_io(parent)?;
        let new = building.path().join("new");
        make_private_folder(&new)?;
        Self::fill(&new, &schema, layout, text)?;
        // An empty folder is replaced, any other is not.
        let help = if folder.join(KEY).exists() {
            "it is a table already, and has the only key to it: `alpheus table append` adds rows; name another folder for another table"
        } else {
            "nothing is written over: remove the folder, or name another"
        };
        std::fs::rename(&new, folder)
            .map_err(taken)
            .blame_io(folder)
            .map_err(|failure| failure.with_help(help))?;
        File::open(parent).and_then(|parent| parent.sync_all()).blame_io(parent)?;
        Self::open(folder)
    }

    /// Key and first records of a table.
    fn fill(
        folder: &Path,
        schema: &TableSchema,
        layout: Layout,
        text: String,
    ) -> Result<(), Failure> {
        let mut rng = entropy::rng()?;
        let secret = Secret::<32>::random(&mut rng);
        let encoded = Zeroizing::new(HEXLOWER.encode(secret.expose()) + "\n");
        write_new(&folder.join(KEY), encoded.as_bytes(), For::Owner)?;
        let mut ledger = StoreLedger::open(folder).blame(Category::Io)?;
        let key = TableKey::new(secret);
        let owner = Owner::create(&key, schema.parameters, schema.order, layout, &mut rng);
        let owner = owner.and([Change::put(vec![SCHEMA], text.into_bytes())]);
        owner.commit(&mut ledger).blame(Category::Io).map(drop)
    }

    /// Opens the folder of a table.
    ///
    /// # Errors
    /// If it is not there, or damaged.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let missing = "`alpheus table create` makes such a folder";
        let key = read_seed(&folder.join(KEY)).map_err(|failure| failure.with_help(missing))?;
        let ledger = StoreLedger::open(folder).blame(Category::Io)?;
        let mut rng = entropy::rng()?;
        let records = scan_all(ledger.store.as_ref(), &ledger.space, b"").blame(Category::Io)?;
        let (mut stretches, mut imports) = (Vec::new(), BTreeMap::new());
        let (mut schema, mut replaced) = (None, BTreeSet::new());
        for (key, value) in &records {
            match key.split_first() {
                Some((&STRETCH, _)) => {
                    stretches.push(postcard::from_bytes::<Stretch>(value).blame_input(folder)?);
                }
                Some((&IMPORT, digest)) => {
                    let rows = postcard::from_bytes(value).blame_input(folder)?;
                    imports.extend(digest.try_into().ok().map(|digest: [u8; 32]| (digest, rows)));
                }
                Some((&SCHEMA, _)) => {
                    let text = String::from_utf8_lossy(value);
                    schema = Some(TableSchema::parse(&text).blame_input(folder)?);
                }
                Some((&REPLACED, address)) => {
                    replaced.insert(postcard::from_bytes(address).blame_input(folder)?);
                }
                _ => {}
            }
        }
        let owner = Owner::open(&TableKey::new(key), records, &mut rng).blame_input(folder)?;
        let schema = schema.ok_or(NoSchema).blame_input(folder)?;
        let index = Index::new(stretches);
        if index.rows() != owner.rows() || !index.is_whole() {
            let other = OtherIndex { index: index.rows(), table: owner.rows() };
            return Err(other).blame_input(folder);
        }
        Ok(Self { schema, owner, index, rng, ledger, imports, replaced })
    }

    /// Blocks that were written anew, and that the server still has for older copies.
    #[must_use]
    pub fn replaced(&self) -> Vec<Address> {
        self.replaced.iter().copied().collect()
    }

    /// Whether blocks of a segment are this folder's, or were before they were written anew.
    #[must_use]
    pub fn knows(&self, segment: &Segment) -> bool {
        let stands = self.owner.runs().iter().any(|run| run.segment == *segment);
        stands || self.replaced.iter().any(|address| address.segment == *segment)
    }

    /// The change that notes a block which was written anew.
    pub fn replaced_by(&mut self, old: Option<Address>) -> Vec<Change> {
        self.replaced.extend(old);
        old.iter().map(|old| Change::put(replaced_key(old), Vec::new())).collect()
    }

    /// The server has dropped a block that was written anew.
    ///
    /// # Errors
    /// If it may not be durable.
    pub fn pruned(&mut self, old: &Address) -> Result<(), Failure> {
        let change = Change::remove(replaced_key(old));
        self.ledger.commit(&[change]).blame(Category::Io)?;
        self.replaced.remove(old);
        Ok(())
    }

    /// How many rows of a file have been appended.
    #[must_use]
    pub fn imported(&self, digest: &[u8; 32]) -> u64 {
        self.imports.get(digest).copied().unwrap_or(0)
    }

    /// Changes that note how far a file is, and what is new in the index since the
    /// stretch of that number.
    pub fn notes(&mut self, digest: [u8; 32], rows: u64, since: usize) -> Vec<Change> {
        self.imports.insert(digest, rows);
        let encoded = |value: Result<Vec<u8>, postcard::Error>| value.unwrap_or_default();
        let stretch = |stretch: &Stretch| {
            let key = [&[STRETCH], stretch.row.to_be_bytes().as_slice()].concat();
            Change::put(key, encoded(postcard::to_allocvec(stretch)))
        };
        let mut changes: Vec<Change> = self.index.since(since).iter().map(stretch).collect();
        let key = [&[IMPORT], digest.as_slice()].concat();
        changes.push(Change::put(key, encoded(postcard::to_allocvec(&rows))));
        changes
    }

    /// Commits a step.
    ///
    /// # Errors
    /// If it may not be durable.
    pub fn commit<T>(&mut self, step: Step<T>) -> Result<T, Failure> {
        step.commit(&mut self.ledger).blame(Category::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: T\nparameters: L128\ntime: { column: timestamp }\ncolumns:\n  - { name: cars, min: 0, max: 9 }\n  - { name: trucks, min: 0, max: 9 }\n";

    /// A folder that is there is left alone, and one has its name only when it is whole:
    /// a `create` that was killed leaves none that neither opens nor can be made again.
    #[test]
    fn a_table_has_its_name_once_it_is_whole() {
        let place = tempfile::tempdir().unwrap();
        let (file, folder) = (place.path().join("schema.yaml"), place.path().join("ada"));
        std::fs::write(&file, TEXT).unwrap();
        drop(TableState::create(&folder, &file).unwrap());
        let key = std::fs::read(folder.join(KEY)).unwrap();
        let again = TableState::create(&folder, &file).err().unwrap().to_string();
        assert!(again.contains("exists"), "{again}");
        assert_eq!(std::fs::read(folder.join(KEY)).unwrap(), key);
        let names: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "nothing else is left");
        // An empty folder is no table, and a file is not taken for one.
        let (empty, plain) = (place.path().join("eve"), place.path().join("bob"));
        std::fs::create_dir(&empty).unwrap();
        assert!(TableState::create(&empty, &file).is_ok());
        std::fs::write(&plain, "mine").unwrap();
        let again = TableState::create(&plain, &file).err().unwrap().to_string();
        assert!(again.contains("exists"), "{again}");
        assert_eq!(std::fs::read(&plain).unwrap(), b"mine");
    }

    /// Names and scales are those that the table was made with, whatever lies beside it:
    /// else one column's sum would be believed to be another's.
    #[test]
    fn the_schema_is_the_one_that_the_table_was_made_with() {
        let place = tempfile::tempdir().unwrap();
        let (file, folder) = (place.path().join("schema.yaml"), place.path().join("ada"));
        std::fs::write(&file, TEXT).unwrap();
        drop(TableState::create(&folder, &file).unwrap());
        let other =
            TEXT.replace("cars", "x").replace("trucks", "cars").replace("name: x", "name: trucks");
        for path in [&file, &folder.join("schema.yaml")] {
            std::fs::write(path, &other).unwrap();
        }
        let state = TableState::open(&folder).unwrap();
        assert_eq!(
            (state.schema.column("cars"), state.schema.column("trucks")),
            (Some(0), Some(1))
        );
    }
}
