//! A role's own schemas: views and tables over released rows. They are held in memory and end with the program.

use crate::refusal::{
    DEPENDED_ON, ENDLESS, FORBIDDEN, NO_MEMORY, NO_SCHEMA, NO_TABLE, READ_ONLY, StatementError,
    TAKEN,
};
use crate::released_tables::ReleasedTables;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::datasource::{TableType, ViewTable};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The database that clients connect to.
pub(crate) const DATABASE: &str = "alpheus";
/// How many views may stand on each other.
const DEEPEST: usize = 32;
/// What a view may say in bytes.
const LONGEST: usize = 1 << 20;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Rows.
    Table(Arc<MemTable>),
    /// A query, and the tables that it reads.
    View(String, Vec<Name>),
}

/// A schema and a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.schema, self.table)
    }
}

/// What a name stood for before a transaction changed it.
pub(crate) type Before = (Name, Option<Entry>);

/// The schemas of a role.
pub(crate) struct Scratch {
    role: String,
    released: Arc<ReleasedTables>,
    entries: Mutex<BTreeMap<Name, Entry>>,
    schemas: Mutex<Vec<String>>,
    /// What changes of open transactions took the place of, by connection.
    undo: Mutex<BTreeMap<i32, Vec<Before>>>,
    /// What plans views.
    engine: OnceLock<SessionContext>,
    /// The most bytes of tables.
    room: usize,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Scratch").field(&self.role).finish()
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scratch {
    pub(crate) fn new(role: &str, released: Arc<ReleasedTables>, room: usize) -> Scratch {
        Scratch {
            role: role.to_owned(),
            released,
            entries: Mutex::default(),
            schemas: Mutex::new(vec![role.to_owned()]),
            undo: Mutex::default(),
            engine: OnceLock::new(),
            room,
        }
    }

    /// Takes what plans views, and adds the schemas to it.
    pub(crate) fn attach(self: &Arc<Self>, engine: &SessionContext) -> Result<()> {
        let _ = self.engine.set(engine.clone());
        self.register(&self.role)
    }

    fn register(self: &Arc<Self>, name: &str) -> Result<()> {
        let schema = ScratchSchema { scratch: Arc::clone(self), name: name.to_owned() };
        let catalog = self.engine.get().and_then(|engine| engine.catalog(DATABASE));
        match catalog {
            Some(catalog) => catalog.register_schema(name, Arc::new(schema)).map(drop),
            None => Err(DataFusionError::Internal("there is no catalog".to_owned())),
        }
    }

    /// Whether this is a schema of the role.
    pub(crate) fn owns(&self, schema: &str) -> bool {
        locked(&self.schemas).iter().any(|own| own == schema)
    }

    /// The name of a table of this role, if it may be changed.
    pub(crate) fn own(&self, parts: &[String]) -> Result<Name, StatementError> {
        let (schema, table) = match parts {
            [table] => (self.role.clone(), table),
            [schema, table] => (schema.clone(), table),
            [database, schema, table] if database == DATABASE => (schema.clone(), table),
            _ => {
                let what = format!("the only database is `{DATABASE}`");
                return Err(StatementError::new("3D000", what));
            }
        };
        if self.owns(&schema) {
            return Ok(Name { schema, table: table.clone() });
        }
        let role = &self.role;
        let refusal = match schema.as_str() {
            "released" | "about" => StatementError::new(READ_ONLY, "released rows are read-only"),
            _ if self.may_have(&schema) => {
                StatementError::new(NO_SCHEMA, format!("there is no schema `{schema}`"))
            }
            _ => StatementError::new(FORBIDDEN, format!("`{schema}` is not a schema of `{role}`")),
        };
        Err(refusal.with_hint(format!(
            "create views and tables in the schema `{role}`, which is yours, or in one whose name begins with `{role}_`"
        )))
    }

    fn may_have(&self, schema: &str) -> bool {
        let rest = schema.strip_prefix(&self.role);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }

    /// Adds a schema. One that is there is left as it is.
    pub(crate) fn add_schema(
        self: &Arc<Self>,
        name: &str,
        unless: bool,
    ) -> Result<(), StatementError> {
        if self.owns(name) {
            let taken =
                || StatementError::new("42P06", format!("there is a schema `{name}` already"));
            return if unless { Ok(()) } else { Err(taken()) };
        }
        if !self.may_have(name) {
            let what = format!("`{}` cannot have a schema `{name}`", self.role);
            return Err(StatementError::new(FORBIDDEN, what)
                .with_hint(format!("names of your schemas begin with `{}_`", self.role)));
        }
        self.register(name)?;
        locked(&self.schemas).push(name.to_owned());
        Ok(())
    }

    /// Drops a schema. The role's first one stays, empty.
    pub(crate) fn drop_schema(&self, name: &str, cascade: bool) -> Result<(), StatementError> {
        let mut entries = locked(&self.entries);
        if !cascade && entries.keys().any(|own| own.schema == name) {
            return Err(StatementError::new(
                DEPENDED_ON,
                format!("the schema `{name}` is not empty"),
            )
            .with_hint("DROP … CASCADE drops what is in it"));
        }
        entries.retain(|own, _| own.schema != name);
        drop(entries);
        if name != self.role {
            locked(&self.schemas).retain(|own| own != name);
            let catalog = self.engine.get().and_then(|engine| engine.catalog(DATABASE));
            catalog.map(|catalog| catalog.deregister_schema(name, true)).transpose()?;
        }
        Ok(())
    }

    /// What a name stands for.
    pub(crate) fn get(&self, name: &Name) -> Option<Entry> {
        locked(&self.entries).get(name).cloned()
    }

    /// The name for what is not there.
    pub(crate) fn missing(name: &Name) -> StatementError {
        StatementError::new(NO_TABLE, format!("there is no table or view `{name}`"))
    }

    /// Refuses a name that is taken.
    pub(crate) fn free(&self, name: &Name) -> Result<(), StatementError> {
        match self.get(name) {
            Some(_) => Err(StatementError::new(TAKEN, format!("there is a `{name}` already"))),
            None => Ok(()),
        }
    }

    /// Puts an entry under a name, or takes it away. In a transaction, what was there is noted.
    pub(crate) fn put(&self, name: Name, entry: Option<Entry>, transaction: Option<i32>) {
        let mut entries = locked(&self.entries);
        let before = match entry {
            Some(entry) => entries.insert(name.clone(), entry),
            None => entries.remove(&name),
        };
        let Some(connection) = transaction else { return };
        if let Some(changes) = locked(&self.undo).get_mut(&connection) {
            changes.push((name, before));
        }
    }

    /// Begins to note what a connection changes.
    pub(crate) fn begin(&self, connection: i32) {
        locked(&self.undo).insert(connection, Vec::new());
    }

    /// Keeps what a connection has changed.
    pub(crate) fn commit(&self, connection: i32) {
        locked(&self.undo).remove(&connection);
    }

    /// Undoes what a connection has changed.
    pub(crate) fn roll_back(&self, connection: i32) {
        let changes = locked(&self.undo).remove(&connection).unwrap_or_default();
        let mut entries = locked(&self.entries);
        for (name, before) in changes.into_iter().rev() {
            match before {
                Some(entry) => drop(entries.insert(name, entry)),
                None => drop(entries.remove(&name)),
            }
        }
    }

    /// A view under a name, if it does not lead back to itself.
    pub(crate) fn view(
        &self,
        name: &Name,
        sql: String,
        reads: Vec<Name>,
    ) -> Result<Entry, StatementError> {
        if sql.len() > LONGEST {
            return Err(StatementError::new(
                "54000",
                "the query of the view is longer than a megabyte",
            ));
        }
        self.check_reads(name, &reads, 0)?;
        Ok(Entry::View(sql, reads))
    }

    /// Refuses what reads `name`, also through other views.
    fn check_reads(&self, name: &Name, reads: &[Name], depth: usize) -> Result<(), StatementError> {
        if depth > DEEPEST {
            let what = format!("more than {DEEPEST} views would depend on each other");
            return Err(StatementError::new("54001", what).with_hint("make one of them a table"));
        }
        for read in reads {
            if read == name {
                return Err(StatementError::new(ENDLESS, format!("`{name}` would read itself")));
            }
            if let Some(Entry::View(_, reads)) = self.get(read) {
                self.check_reads(name, &reads, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Refuses a rename after which a view reads itself.
    pub(crate) fn check_rename(&self, to: &Name, entry: &Entry) -> Result<(), StatementError> {
        match entry {
            Entry::View(_, reads) => self.check_reads(to, reads, 0),
            Entry::Table(_) => Ok(()),
        }
    }

    /// The views that read a table.
    pub(crate) fn readers(&self, name: &Name) -> Vec<Name> {
        let reads = |entry: &Entry| matches!(entry, Entry::View(_, reads) if reads.contains(name));
        let entries = locked(&self.entries);
        entries.iter().filter(|(_, entry)| reads(entry)).map(|(own, _)| own.clone()).collect()
    }

    /// The rows of a query as a table, if there is room for them.
    pub(crate) async fn fill(&self, rows: DataFrame) -> Result<(Entry, usize), StatementError> {
        let schema: SchemaRef = Arc::new(rows.schema().as_arrow().clone());
        let schema = nullable(&schema);
        let mut names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|own| own[0] == own[1]) {
            return Err(StatementError::new(
                "42701",
                format!("two columns are named `{}`", twice[0]),
            )
            .with_hint("name one of them with AS"));
        }
        let (mut stream, mut batches, mut used) =
            (rows.execute_stream().await?, Vec::new(), self.used());
        let mut count = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            used = used.saturating_add(batch.get_array_memory_size());
            if used > self.room {
                let what = format!(
                    "tables of `{}` would be larger than its {} MB",
                    self.role,
                    self.room >> 20
                );
                return Err(StatementError::new(NO_MEMORY, what)
                    .with_hint("drop tables, or start with more --memory-megabytes"));
            }
            count += batch.num_rows();
            let columns = batch.columns().to_vec();
            batches.push(
                RecordBatch::try_new(Arc::clone(&schema), columns)
                    .map_err(DataFusionError::from)?,
            );
        }
        let table = MemTable::try_new(schema, vec![batches])?;
        Ok((Entry::Table(Arc::new(table)), count))
    }

    /// Bytes of all tables.
    fn used(&self) -> usize {
        let size = |entry: &Entry| match entry {
            Entry::Table(table) => {
                rows_of(table).iter().map(RecordBatch::get_array_memory_size).sum()
            }
            Entry::View(..) => 0,
        };
        locked(&self.entries).values().map(size).sum()
    }

    /// Makes a table that can be changed without changing what an open transaction has noted.
    pub(crate) fn copied(
        &self,
        name: &Name,
        transaction: Option<i32>,
    ) -> Result<(), StatementError> {
        match self.get(name) {
            None => Err(Scratch::missing(name)),
            Some(Entry::View(..)) => {
                let what = format!("`{name}` is a view");
                Err(StatementError::new("42809", what).with_hint("change the tables that it reads"))
            }
            Some(Entry::Table(table)) => {
                let copy = MemTable::try_new(table.schema(), vec![rows_of(&table)])?;
                self.put(name.clone(), Some(Entry::Table(Arc::new(copy))), transaction);
                Ok(())
            }
        }
    }
}

/// The rows of a table that nobody is changing.
fn rows_of(table: &MemTable) -> Vec<RecordBatch> {
    let read = table.batches.iter().filter_map(|part| part.try_read().ok());
    read.flat_map(|batches| batches.clone()).collect()
}

/// The same columns, any of which may be null: later rows may lack what the first have.
fn nullable(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &datafusion::arrow::datatypes::FieldRef| {
        datafusion::arrow::datatypes::Field::new(field.name(), field.data_type().clone(), true)
    };
    Arc::new(datafusion::arrow::datatypes::Schema::new(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
    ))
}

/// One schema of a role.
#[derive(Debug)]
struct ScratchSchema {
    scratch: Arc<Scratch>,
    name: String,
}

impl ScratchSchema {
    fn name(&self, table: &str) -> Name {
        Name { schema: self.name.clone(), table: table.to_owned() }
    }

    /// Whether names without a schema are looked for here. Those that are not here are released tables.
    fn is_first(&self) -> bool {
        self.name == self.scratch.role
    }
}

#[async_trait]
impl SchemaProvider for ScratchSchema {
    fn table_names(&self) -> Vec<String> {
        let entries = locked(&self.scratch.entries);
        let own = entries.keys().filter(|name| name.schema == self.name);
        own.map(|name| name.table.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.scratch.get(&self.name(name)) {
            Some(Entry::Table(table)) => Ok(Some(table)),
            Some(Entry::View(sql, _)) => {
                let Some(engine) = self.scratch.engine.get() else { return Ok(None) };
                let plan = engine.state().create_logical_plan(&sql).await?;
                Ok(Some(Arc::new(ViewTable::new(plan, Some(sql)))))
            }
            None if self.is_first() => self.scratch.released.table(name),
            None => Ok(None),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.scratch.get(&self.name(name)).map(|entry| match entry {
            Entry::Table(_) => TableType::Base,
            Entry::View(..) => TableType::View,
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.scratch.get(&self.name(name)).is_some()
            || self.is_first() && self.scratch.released.has(name)
    }
}
