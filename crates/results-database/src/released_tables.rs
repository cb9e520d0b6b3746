//! Tables of released rows. They only grow, by what the feed reads.

use crate::columns::Kind;
use async_trait::async_trait;
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A query as the service lists it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Query {
    /// Its name.
    pub(crate) name: String,
    /// Its statement.
    pub(crate) sql: String,
    /// The size of its windows, in milliseconds.
    pub(crate) window_ms: i64,
    /// The fewest and the most owners with data in a window.
    pub(crate) population: [u32; 2],
    /// Columns that groups differ in.
    pub(crate) group: Vec<String>,
    /// Whether only the consumer can read results.
    pub(crate) sealed: bool,
    /// Whether controllers sign results.
    pub(crate) verified: bool,
    /// Whether results have noise.
    pub(crate) noise: bool,
    /// What its columns are.
    pub(crate) columns: Vec<About>,
    /// What a window costs each owner in it, by attribute.
    #[serde(default)]
    pub(crate) charges: Vec<Charge>,
    /// Whether that is the cost of all windows together.
    #[serde(default)]
    pub(crate) charged_once: bool,
}

/// What a column is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) unit: String,
}

/// What an attribute is charged: ε, or ρ.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Charge {
    pub(crate) attribute: String,
    #[serde(default)]
    pub(crate) epsilon: Option<String>,
    #[serde(default)]
    pub(crate) rho: Option<String>,
}

/// Batches beyond this number are joined.
const BATCHES: usize = 32;

/// The rows of one query.
#[derive(Debug, Default)]
pub(crate) struct Table {
    query: Option<Query>,
    columns: Vec<(String, Kind)>,
    batches: Vec<RecordBatch>,
    /// Cells of rows that are in no batch yet, by column.
    waiting: Vec<Map<String, Value>>,
    /// Digests of rows: a feed that starts again reads them again.
    seen: HashSet<u64>,
}

impl Table {
    /// Adds a row, unless it is there.
    fn add(&mut self, row: Map<String, Value>, checked: bool) {
        let mut hasher = DefaultHasher::new();
        (Value::Object(row.clone()).to_string(), checked).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        let cells = self.cells(row, checked);
        for (name, value) in &cells {
            let is_text = self.query.as_ref().is_some_and(|query| query.group.contains(name));
            let kind = match name.as_str() {
                "window_start" | "window_end" => Kind::Time,
                "integrity" | "status" => Kind::Text,
                _ if is_text => Kind::Text,
                _ => Kind::of(value),
            };
            if !self.columns.iter().any(|(own, _)| own == name) {
                self.columns.push((name.clone(), Kind::Unknown));
            }
            self.widen(name, kind);
        }
        self.waiting.push(cells);
    }

    /// Makes a column hold a kind of values. Batches keep what they have: they are cast when read.
    fn widen(&mut self, name: &str, kind: Kind) {
        let own = self.columns.iter_mut().filter(|(own, _)| own == name);
        own.for_each(|(_, own)| *own = own.and(kind));
    }

    /// A row's cells, each number beside its error, and at the end whether the row was checked and what it cost.
    fn cells(&self, row: Map<String, Value>, checked: bool) -> Map<String, Value> {
        let opened =
            row.get("status").and_then(Value::as_str).is_some_and(|own| own.starts_with("ok"));
        let noise = row.get("noise").cloned().unwrap_or_default();
        let mut cells = Map::new();
        for (name, value) in row {
            if name == "noise" || name == "integrity" {
                if name == "integrity" {
                    cells.insert(name, value);
                }
                continue;
            }
            cells.insert(name.clone(), value);
            let Some(error) = noise.get(&name) else { continue };
            for part in ["deviation", "margin_95"] {
                let own = error.get(part).cloned().unwrap_or_default();
                cells.insert(format!("{name}_{part}"), own);
            }
        }
        cells.entry("integrity").or_insert(Value::Null);
        cells.insert("checked".to_owned(), checked.into());
        if let Some(query) = self.query.as_ref().filter(|query| !query.charges.is_empty()) {
            let charged = opened && !query.charged_once;
            let most = [
                ("budget_epsilon", most(&query.charges, |own| &own.epsilon)),
                ("budget_rho", most(&query.charges, |own| &own.rho)),
            ];
            for (name, value) in most.into_iter().filter(|(_, value)| !value.is_null()) {
                cells.insert(name.to_owned(), if charged { value } else { Value::Null });
            }
        }
        cells
    }

    /// The columns, as a client sees them: names in lower case, unless two would be the same.
    fn schema(&self) -> SchemaRef {
        let lower: Vec<String> = self.columns.iter().map(|(name, _)| name.to_lowercase()).collect();
        let field = |(at, (name, kind)): (usize, &(String, Kind))| {
            let alone = lower.iter().filter(|own| **own == lower[at]).count() == 1;
            let name = if alone { &lower[at] } else { name };
            Field::new(name, kind.data_type(), true)
        };
        Arc::new(Schema::new(self.columns.iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    /// All rows so far.
    fn provider(&mut self) -> Result<Arc<dyn TableProvider>> {
        let schema = self.schema();
        let known = self.batches.first().is_none_or(|batch| batch.schema() == schema);
        if !known {
            let old = std::mem::take(&mut self.batches);
            let batches = old.iter().map(|batch| as_wide(batch, &schema));
            self.batches = batches.collect::<Result<_, ArrowError>>()?;
        }
        if !self.waiting.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            let array = |(name, kind): &(String, Kind)| {
                kind.array(waiting.iter().map(|cells| cells.get(name).unwrap_or(&Value::Null)))
            };
            let arrays = self.columns.iter().map(array).collect();
            self.batches.push(RecordBatch::try_new(Arc::clone(&schema), arrays)?);
        }
        if self.batches.len() > BATCHES {
            self.batches = vec![concat_batches(&schema, &self.batches)?];
        }
        Ok(Arc::new(MemTable::try_new(schema, vec![self.batches.clone()])?))
    }
}

/// The most that any attribute is charged.
fn most(charges: &[Charge], of: impl Fn(&Charge) -> &Option<String>) -> Value {
    let numbers = charges.iter().filter_map(|own| of(own).as_ref()?.parse::<f64>().ok());
    numbers.reduce(f64::max).map_or(Value::Null, Value::from)
}

/// A batch with the columns of a later schema.
fn as_wide(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |(at, field): (usize, &Arc<Field>)| match batch.columns().get(at) {
        Some(own) => cast(own, field.data_type()),
        None => Ok(datafusion::arrow::array::new_null_array(field.data_type(), batch.num_rows())),
    };
    let columns = schema.fields().iter().enumerate().map(column).collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// All tables of released rows, and what is known about them.
#[derive(Debug, Default)]
pub(crate) struct ReleasedTables {
    tables: Mutex<BTreeMap<String, Table>>,
    schemas: Mutex<Vec<String>>,
}

impl ReleasedTables {
    fn tables(&self) -> MutexGuard<'_, BTreeMap<String, Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a query as the service lists it. The rows of another statement of its name are forgotten.
    pub(crate) fn declare(&self, query: Query) {
        let mut tables = self.tables();
        let table = tables.entry(query.name.to_lowercase()).or_default();
        if table.query.as_ref().is_some_and(|own| own.sql != query.sql) {
            *table = Table::default();
        }
        table.query = Some(query);
    }

    /// Adds a row of a query.
    pub(crate) fn add(&self, query: &str, row: Map<String, Value>, checked: bool) {
        self.tables().entry(query.to_lowercase()).or_default().add(row, checked);
    }

    /// Takes the names of the schemas of encrypted streams.
    pub(crate) fn set_schemas(&self, names: Vec<String>) {
        *self.schemas.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// The schema that a name means, in whatever case it is written.
    pub(crate) fn stream(&self, name: &str) -> Option<String> {
        let schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.iter().find(|own| own.eq_ignore_ascii_case(name)).cloned()
    }

    /// The schema that a text mentions.
    pub(crate) fn stream_in(&self, text: &str) -> Option<String> {
        let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        words.into_iter().find_map(|word| self.stream(word))
    }

    /// The names of all tables.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tables().keys().cloned().collect()
    }

    /// Whether there is such a table.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tables().contains_key(name)
    }

    /// A table, as it is now.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables().get_mut(name).map(Table::provider).transpose()
    }

    /// The tables that describe the others: `queries` and `columns`.
    fn about(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let mut about = Table::default();
        for table in self.tables().values() {
            let Some(query) = &table.query else { continue };
            match name {
                "queries" => about.add_plain(describe(query)),
                _ => query.columns.iter().for_each(|own| {
                    let row = json!({ "query": query.name.to_lowercase(), "name": own.name.to_lowercase(),
                        "what": own.what, "unit": own.unit });
                    about.add_plain(row);
                }),
            }
        }
        about.provider().map(Some)
    }
}

impl Table {
    /// Adds a row as it is.
    fn add_plain(&mut self, row: Value) {
        let Value::Object(row) = row else { return };
        for (name, value) in &row {
            if !self.columns.iter().any(|(own, _)| own == name) {
                self.columns.push((name.clone(), Kind::Unknown));
            }
            self.widen(name, if value.is_string() { Kind::Text } else { Kind::of(value) });
        }
        self.waiting.push(row);
    }
}

fn describe(query: &Query) -> Value {
    let charges = query.charges.iter().map(|own| {
        let cost = json!({ "epsilon": own.epsilon, "rho": own.rho });
        (own.attribute.clone(), cost)
    });
    let budget: Map<String, Value> = charges.collect();
    json!({ "name": query.name.to_lowercase(), "sql": query.sql, "window_ms": query.window_ms,
        "population_min": query.population[0], "population_max": query.population[1],
        "sealed": query.sealed, "verified": query.verified, "noise": query.noise,
        "budget": (!budget.is_empty()).then(|| Value::Object(budget).to_string()),
        "budget_of_all_windows": query.charged_once })
}

/// The schema `released`.
#[derive(Debug)]
pub(crate) struct ReleasedSchema(pub(crate) Arc<ReleasedTables>);

#[async_trait]
impl SchemaProvider for ReleasedSchema {
    fn table_names(&self) -> Vec<String> {
        self.0.names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.has(name)
    }
}

/// The schema `about`.
#[derive(Debug)]
pub(crate) struct AboutSchema(pub(crate) Arc<ReleasedTables>);

/// Its tables.
const ABOUT: [&str; 2] = ["columns", "queries"];

#[async_trait]
impl SchemaProvider for AboutSchema {
    fn table_names(&self) -> Vec<String> {
        ABOUT.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if ABOUT.contains(&name) { self.0.about(name) } else { Ok(None) }
    }

    fn table_exist(&self, name: &str) -> bool {
        ABOUT.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;

    fn add(released: &ReleasedTables, row: Value) {
        let Value::Object(row) = row else { panic!("a row is an object") };
        released.add("Sums", row, true);
    }

    async fn shown(released: &ReleasedTables, columns: &[&str]) -> String {
        let table = released.table("sums").unwrap().unwrap();
        let rows = SessionContext::new().read_table(table).unwrap();
        let batches = rows.select_columns(columns).unwrap().collect().await.unwrap();
        let text = pretty_format_batches(&batches).unwrap().to_string();
        let rows = text.lines().skip(3).filter(|line| line.starts_with('|'));
        rows.map(|line| line.replace(' ', "")).collect::<Vec<_>>().join("\n")
    }

    fn query(sql: &str) -> Query {
        let text = json!({ "name": "Sums", "sql": sql, "window_ms": 10, "population": [3, 9], "group": ["Place"],
            "sealed": false, "verified": false, "noise": true, "columns": [],
            "charges": [{ "attribute": "x", "rho": "0.5" }, { "attribute": "y", "rho": "0.25" }] });
        serde_json::from_value(text).unwrap()
    }

    #[tokio::test]
    async fn columns_become_wider_and_rows_come_once() {
        let released = ReleasedTables::default();
        released.declare(query("first"));
        add(&released, json!({ "Place": "1", "n": null, "status": "late" }));
        assert_eq!(shown(&released, &["place", "n"]).await, "|1||");
        for n in [json!(3), json!(3), json!("1.5")] {
            add(&released, json!({ "Place": "1", "n": n, "status": "ok" }));
            let _ = shown(&released, &["n"]).await;
        }
        assert_eq!(shown(&released, &["place", "n"]).await, "|1||\n|1|3.0|\n|1|1.5|");
        // Only a window with a result costs something.
        assert_eq!(shown(&released, &["budget_rho"]).await, "||\n|0.5|\n|0.5|");
        // Another statement of the name has rows of its own.
        released.declare(query("second"));
        add(&released, json!({ "n": 7, "status": "ok" }));
        assert_eq!(shown(&released, &["n", "checked"]).await, "|7|true|");
    }

    #[tokio::test]
    async fn a_number_stands_beside_its_error() {
        let released = ReleasedTables::default();
        let noise = json!({ "n": { "deviation": 2.5, "margin_95": 5.0 } });
        add(&released, json!({ "n": 7, "m": 1, "status": "ok", "noise": noise }));
        assert_eq!(
            shown(&released, &["n", "n_deviation", "n_margin_95", "m"]).await,
            "|7|2.5|5.0|1|"
        );
    }
}
