//! An owner's folder: the key, and a durable store of the table's schema, state and index.
//! One process at a time may use it.

use super::index::{Index, Stretch};
use super::schema::TableSchema;
use super::wire::MAX_OBJECT;
use alpheus_crypto::ledger::{Change, Ledger};
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::files::{Readers, make_private_folder, write_new};
use alpheus_node::ledger::scan_all;
use alpheus_node::ledger::store::StoreLedger;
use alpheus_node::pki::read_seed;
use alpheus_transport::{Space, Store, local};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Address, DataSet, Segment};
use alpheus_verifiable_table::layout::Layout;
use alpheus_verifiable_table::ledger::PendingStep;
use alpheus_verifiable_table::owner::{APPLICATION, Owner};
use alpheus_verifiable_table::saved_state::OpenedState;
use chacha20::ChaCha20Rng;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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
/// The number of appended rows of a file, by the file's digest.
const IMPORT: u8 = APPLICATION + 1;
/// The schema's text. It alone defines names, order and scales of the columns.
const SCHEMA: u8 = APPLICATION + 2;
/// A block that was rewritten, and that the server still has.
const REPLACED: u8 = APPLICATION + 3;

/// The table that this one is a copy of, under another key, as long as the copy is incomplete.
const REKEY: u8 = APPLICATION + 4;

/// The folder's store, and the space of it that holds the table.
fn open_store(folder: &Path) -> Result<(Arc<dyn Store>, Space), Failure> {
    let store = local::open(&folder.join(STORE), &local::Options::default());
    let (store, space) = (store.blame(Category::Io)?, Space::new("table").blame(Category::Io)?);
    store.ensure_space(&space).blame(Category::Io)?;
    Ok((store, space))
}

/// Creates a folder that gets its name once `fill` has completed it.
fn build(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).blame_io(parent)?;
    let building = tempfile::Builder::new().prefix(".table-").tempdir_in(parent);
    let building = building.blame_io(parent)?;
    let new = building.path().join("new");
    make_private_folder(&new)?;
    fill(&new)?;
    // Only an empty folder is replaced.
    let help = if folder.join(KEY).exists() {
        "this folder holds a table and its key: `alpheus table append` adds rows; choose another folder for another table"
    } else {
        "nothing is overwritten: remove the folder, or choose another name"
    };
    std::fs::rename(&new, folder)
        .map_err(taken)
        .blame_io(folder)
        .map_err(|failure| failure.with_help(help))?;
    File::open(parent).and_then(|parent| parent.sync_all()).blame_io(parent)
}

/// Writes the key of a new folder, and opens its ledger.
fn new_ledger(folder: &Path, secret: &Secret<32>) -> Result<StoreLedger, Failure> {
    let encoded = Zeroizing::new(HEXLOWER.encode(secret.expose()) + "\n");
    write_new(&folder.join(KEY), encoded.as_bytes(), Readers::Owner)?;
    let (store, space) = open_store(folder)?;
    Ok(StoreLedger::new(store, space))
}

/// A table, as its owner has it.
pub struct TableState {
    /// The schema.
    pub schema: TableSchema,
    /// The owner.
    pub owner: Owner,
    /// Times and groups of the rows.
    pub index: Index,
    /// The random generator.
    pub rng: ChaCha20Rng,
    /// The durable ledger of all of it.
    pub ledger: StoreLedger,
    store: Arc<dyn Store>,
    space: Space,
    imports: BTreeMap<[u8; 32], u64>,
    replaced: BTreeSet<Address>,
    source: Option<CopySource>,
}

/// The table that is being copied, as it was when the copy began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySource {
    /// Its name at the server.
    pub table: DataSet,
    /// A digest of what it held.
    pub content: [u8; 32],
}

/// The copy of a table is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`alpheus table rekey` has not completed this copy of a table; run it again with the same folders"
)]
pub(crate) struct IncompleteError;

/// The schema is missing.
#[derive(Debug, thiserror::Error)]
#[error("the table's state has no schema; restore the folder from a backup")]
pub(crate) struct NoSchemaError;

/// Index and table do not match.
#[derive(Debug, thiserror::Error)]
#[error("the index has {index} rows and the table {table}; restore the folder from a backup")]
pub(crate) struct IndexError {
    index: u64,
    table: u64,
}

/// Reports every kind of existing file alike.
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
    /// Creates a table in a new folder.
    ///
    /// # Errors
    /// If the folder exists, the schema is invalid, or the disk fails.
    pub fn create(folder: &Path, schema_file: &Path) -> Result<Self, Failure> {
        let text = read_text(schema_file)?;
        let schema = TableSchema::parse(&text).blame_input(schema_file)?;
        let layout = schema.layout().blame_input(schema_file)?;
        Self::create_for(folder, (text, &schema, layout), None)
    }

    /// Creates a table in a new folder, which is perhaps the copy of another one.
    ///
    /// # Errors
    /// If the folder exists, or the disk fails.
    pub fn create_for(
        folder: &Path,
        (text, schema, layout): (String, &TableSchema, Layout),
        source: Option<CopySource>,
    ) -> Result<Self, Failure> {
        build(folder, |new| {
            let mut rng = entropy::rng()?;
            let secret = Secret::<32>::random(&mut rng);
            let mut ledger = new_ledger(new, &secret)?;
            let key = TableKey::new(secret);
            let owner = Owner::create(&key, schema.parameters, schema.order, layout, &mut rng);
            let mut own = vec![Change::put(vec![SCHEMA], text.into_bytes())];
            own.extend(source.map(|source| {
                Change::put(vec![REKEY], postcard::to_allocvec(&source).unwrap_or_default())
            }));
            let owner = owner.and(own);
            owner.commit(&mut ledger).blame(Category::Io).map(drop)
        })?;
        Self::open_copy(folder)
    }

    /// Creates the folder of a table from its key and an opened state.
    ///
    /// # Errors
    /// If the folder exists, or the disk fails.
    pub fn recover(
        folder: &Path,
        secret: &Secret<32>,
        state: OpenedState,
    ) -> Result<Self, Failure> {
        build(folder, |new| {
            let mut ledger = new_ledger(new, secret)?;
            ledger.commit(&state.into_changes()).blame(Category::Io)
        })?;
        Self::open(folder)
    }

    /// Opens the folder of a table.
    ///
    /// # Errors
    /// If it is missing, damaged, or an incomplete copy.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let state = Self::open_copy(folder)?;
        match state.source {
            None => Ok(state),
            Some(_) => Err(IncompleteError).blame_input(folder),
        }
    }

    /// Opens the folder of a table, which may be an incomplete copy.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn open_copy(folder: &Path) -> Result<Self, Failure> {
        let missing = "`alpheus table create` creates such a folder";
        let key = read_seed(&folder.join(KEY)).map_err(|failure| failure.with_help(missing))?;
        let (store, space) = open_store(folder)?;
        let mut rng = entropy::rng()?;
        let records = scan_all(store.as_ref(), &space, b"").blame(Category::Io)?;
        let (mut stretches, mut imports) = (Vec::new(), BTreeMap::new());
        let (mut schema, mut replaced, mut source) = (None, BTreeSet::new(), None);
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
                Some((&REKEY, _)) => {
                    source = Some(postcard::from_bytes(value).blame_input(folder)?)
                }
                Some((&REPLACED, address)) => {
                    replaced.insert(postcard::from_bytes(address).blame_input(folder)?);
                }
                _ => {}
            }
        }
        let owner = Owner::open(&TableKey::new(key), records, &mut rng).blame_input(folder)?;
        let schema = schema.ok_or(NoSchemaError).blame_input(folder)?;
        let index = Index::new(stretches);
        if index.rows() != owner.rows() || !index.is_whole() {
            let other = IndexError { index: index.rows(), table: owner.rows() };
            return Err(other).blame_input(folder);
        }
        let ledger = StoreLedger::new(Arc::clone(&store), space.clone());
        Ok(Self { schema, owner, index, rng, ledger, store, space, imports, replaced, source })
    }

    /// Seals all records for the server. Returns false, with a warning, if they are too many
    /// for one message.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn save(&mut self) -> Result<bool, Failure> {
        let records = scan_all(self.store.as_ref(), &self.space, b"").blame(Category::Io)?;
        let bytes: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
        // Padding and a commit take a little more.
        if bytes > MAX_OBJECT / 8 * 7 {
            tracing::warn!(
                bytes,
                "the table's index is too large to be saved at the server: keep backups of the folder, since `alpheus table recover` cannot replace it"
            );
            return Ok(false);
        }
        let step = self.owner.save(&records, &mut self.rng).blame(Category::Io)?;
        self.commit(step).map(|_| true)
    }

    /// Rewritten blocks that the server still has, for older copies of the folder.
    #[must_use]
    pub fn replaced(&self) -> Vec<Address> {
        self.replaced.iter().copied().collect()
    }

    /// Whether blocks of a segment belong to this folder, or did before they were rewritten.
    #[must_use]
    pub fn knows(&self, segment: &Segment) -> bool {
        let current = self.owner.runs().iter().any(|run| run.segment == *segment);
        current || self.replaced.iter().any(|address| address.segment == *segment)
    }

    /// The segments of all blocks that this folder knows, rewritten ones too, and how many.
    #[must_use]
    pub fn known_blocks(&self) -> BTreeMap<Segment, u64> {
        let mut blocks = BTreeMap::new();
        for run in self.owner.runs() {
            *blocks.entry(run.segment).or_insert(0) += run.to - run.from;
        }
        for address in &self.replaced {
            *blocks.entry(address.segment).or_insert(0) += 1;
        }
        blocks
    }

    /// The change that records a rewritten block.
    pub fn record_replaced(&mut self, old: Option<Address>) -> Vec<Change> {
        self.replaced.extend(old);
        old.iter().map(|old| Change::put(replaced_key(old), Vec::new())).collect()
    }

    /// Records that the server has deleted a rewritten block.
    ///
    /// # Errors
    /// If the record may not be durable.
    pub fn record_pruned(&mut self, old: &Address) -> Result<(), Failure> {
        let step = self.owner.record(vec![Change::remove(replaced_key(old))]);
        self.commit(step.blame(Category::Io)?)?;
        self.replaced.remove(old);
        Ok(())
    }

    /// The number of appended rows of a file.
    #[must_use]
    pub fn imported(&self, digest: &[u8; 32]) -> u64 {
        self.imports.get(digest).copied().unwrap_or(0)
    }

    /// Changes that record the appended rows of a file, and the index from stretch number
    /// `since` on.
    pub fn import_changes(&mut self, digest: [u8; 32], rows: u64, since: usize) -> Vec<Change> {
        let mut changes = self.index_changes(since);
        changes.push(self.import_change(digest, rows));
        changes
    }

    fn import_change(&mut self, digest: [u8; 32], rows: u64) -> Change {
        self.imports.insert(digest, rows);
        let key = [&[IMPORT], digest.as_slice()].concat();
        Change::put(key, postcard::to_allocvec(&rows).unwrap_or_default())
    }

    /// Changes that record the index from stretch number `since` on.
    #[must_use]
    pub fn index_changes(&self, since: usize) -> Vec<Change> {
        let stretch = |stretch: &Stretch| {
            let key = [&[STRETCH], stretch.row.to_be_bytes().as_slice()].concat();
            Change::put(key, postcard::to_allocvec(stretch).unwrap_or_default())
        };
        self.index.since(since).iter().map(stretch).collect()
    }

    /// The table that this one is an incomplete copy of.
    #[must_use]
    pub fn source(&self) -> Option<CopySource> {
        self.source
    }

    /// This table as the source of a copy.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn as_source(&self) -> Result<CopySource, Failure> {
        let mut digest = Sha256::new();
        for (key, value) in scan_all(self.store.as_ref(), &self.space, b"").blame(Category::Io)? {
            if Owner::is_content(&key) {
                for part in [&key, &value] {
                    digest.update((part.len() as u64).to_be_bytes());
                    digest.update(part);
                }
            }
        }
        let table = self.owner.manifest().data_set;
        Ok(CopySource { table, content: digest.finalize().into() })
    }

    /// The schema's text.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn schema_text(&self) -> Result<String, Failure> {
        let text = self.ledger.get(&[SCHEMA]).blame(Category::Io)?;
        let text = text.ok_or(NoSchemaError).blame(Category::Input)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Records that the copy is complete, and which files its source had appended.
    ///
    /// # Errors
    /// If it may not be durable.
    pub fn complete_copy(&mut self, source: &Self) -> Result<(), Failure> {
        let mut changes = vec![Change::remove(vec![REKEY])];
        let imports: Vec<_> = source.imports.iter().map(|(file, rows)| (*file, *rows)).collect();
        changes.extend(imports.into_iter().map(|(file, rows)| self.import_change(file, rows)));
        self.ledger.commit(&changes).blame(Category::Io)?;
        self.source = None;
        Ok(())
    }

    /// Commits a step.
    ///
    /// # Errors
    /// If it may not be durable.
    pub fn commit<T>(&mut self, step: PendingStep<T>) -> Result<T, Failure> {
        step.commit(&mut self.ledger).blame(Category::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: T\nparameters: L128\ntime: { column: timestamp }\ncolumns:\n  - { name: cars, min: 0, max: 9 }\n  - { name: trucks, min: 0, max: 9 }\n";

    /// An existing folder is never changed. A new one gets its name when it is complete, so a
    /// killed `create` leaves no folder that blocks the next one.
    #[test]
    fn a_table_gets_its_name_once_it_is_complete() {
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
        // An empty folder is replaced, and a file is not.
        let (empty, plain) = (place.path().join("eve"), place.path().join("bob"));
        std::fs::create_dir(&empty).unwrap();
        assert!(TableState::create(&empty, &file).is_ok());
        std::fs::write(&plain, "mine").unwrap();
        let again = TableState::create(&plain, &file).err().unwrap().to_string();
        assert!(again.contains("exists"), "{again}");
        assert_eq!(std::fs::read(&plain).unwrap(), b"mine");
    }

    /// Names and scales come from the state, not from a schema file. Otherwise the sum of one
    /// column could be taken for another's.
    #[test]
    fn the_schema_is_the_one_that_the_table_was_created_with() {
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

    /// A row that the index lacks has no day, and others would take its place.
    #[test]
    fn an_index_with_other_rows_than_the_table_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (file, folder) = (place.path().join("schema.yaml"), place.path().join("ada"));
        std::fs::write(&file, TEXT).unwrap();
        let mut state = TableState::create(&folder, &file).unwrap();
        let step = state.owner.append(&[vec![Some(1), Some(2)]], &mut state.rng).unwrap();
        drop(state.commit(step).unwrap());
        drop(state);
        let refused = TableState::open(&folder).err().unwrap().to_string();
        assert!(refused.contains("the index has 0 rows and the table 1"), "{refused}");
    }
}
