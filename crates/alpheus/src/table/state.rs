//! An owner's folder: the key, the schema, and a durable store of the table's state and
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
use alpheus_verifiable_table::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_verifiable_table::owner::{APPLICATION, Owner};
use data_encoding::HEXLOWER;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

const KEY: &str = "table.key";
const SCHEMA: &str = "schema.yaml";
const STORE: &str = "store";

/// A stretch of the index, by its first row.
const STRETCH: u8 = APPLICATION;
/// How far a file has been appended, by its digest.
const IMPORT: u8 = APPLICATION + 1;

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
}

/// An owner's folder is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("the index does not go with the table: {index} rows here, {table} there")]
struct OtherIndex {
    index: u64,
    table: u64,
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
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).blame_io(parent)?;
        }
        make_private_folder(folder)?;
        let mut rng = entropy::rng()?;
        let secret = Secret::<32>::random(&mut rng);
        let encoded = Zeroizing::new(HEXLOWER.encode(secret.expose()) + "\n");
        write_new(&folder.join(KEY), encoded.as_bytes(), For::Owner)?;
        write_new(&folder.join(SCHEMA), text.as_bytes(), For::Owner)?;
        let mut ledger = StoreLedger::open(folder).blame(Category::Io)?;
        let key = TableKey::new(secret);
        let owner = Owner::create(&key, schema.parameters, schema.order, layout, &mut rng);
        let owner = owner.commit(&mut ledger).blame(Category::Io)?;
        let (index, imports) = (Index::default(), BTreeMap::new());
        Ok(Self { schema, owner, index, rng, ledger, imports })
    }

    /// Opens the folder of a table.
    ///
    /// # Errors
    /// If it is not there, or damaged.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let missing = "`alpheus table create` makes such a folder";
        let key = read_seed(&folder.join(KEY)).map_err(|failure| failure.with_help(missing))?;
        let path = folder.join(SCHEMA);
        let schema = TableSchema::parse(&read_text(&path)?).blame_input(&path)?;
        let ledger = StoreLedger::open(folder).blame(Category::Io)?;
        let mut rng = entropy::rng()?;
        let records = scan_all(ledger.store.as_ref(), &ledger.space, b"").blame(Category::Io)?;
        let (mut stretches, mut imports) = (Vec::new(), BTreeMap::new());
        for (key, value) in &records {
            match key.split_first() {
                Some((&STRETCH, _)) => {
                    stretches.push(postcard::from_bytes::<Stretch>(value).blame_input(folder)?);
                }
                Some((&IMPORT, digest)) => {
                    let rows = postcard::from_bytes(value).blame_input(folder)?;
                    imports.extend(digest.try_into().ok().map(|digest: [u8; 32]| (digest, rows)));
                }
                _ => {}
            }
        }
        let owner = Owner::open(&TableKey::new(key), records, &mut rng).blame_input(folder)?;
        let index = Index::new(stretches);
        if index.rows() != owner.rows() {
            let other = OtherIndex { index: index.rows(), table: owner.rows() };
            return Err(other).blame_input(folder);
        }
        Ok(Self { schema, owner, index, rng, ledger, imports })
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
