//! Standards of others: data contracts, read as schemas and policies, and lineage, written.
//!
//! A contract says what a table holds and who may learn it. [`import`] turns it into a schema
//! and policies for each table. Every part of the contract is listed, as carried or as not
//! carried with the reason, because all parts are listed before anything is read
//! ([`inventory`]). Nothing is released more widely than the contract says ([`options`]).
//!
//! - [`tree`], [`cursor`]: the contract and places in it,
//! - [`readers`]: the standards, each read into the same [`contract`],
//! - [`sensitivity`], [`access`], [`kinds`], [`bounds`], [`roles`], [`names`]: what its words mean,
//! - [`evidence`]: what a service states for an impact assessment,
//! - [`lineage`]: windows of a plan as events of OpenLineage,
//! - [`draft`], [`options`], [`quality`], [`write`](mod@write): what a table becomes.
//!
//! # Privacy
//! A contract describes data and holds none, but its examples may be real. They are never
//! copied into a written file or an error.

pub mod access;
pub mod bounds;
pub mod contract;
pub mod cursor;
pub mod draft;
pub mod error;
pub mod evidence;
pub mod inventory;
pub mod kinds;
pub mod lineage;
pub mod names;
pub mod options;
pub mod quality;
pub mod readers;
mod reasons;
pub mod roles;
pub mod sensitivity;
mod syntax;
pub mod tree;
mod words;
pub mod write;

pub use error::ImportError;

use alpheus_policy::policy::Policies;
use alpheus_policy::query::parse;
use alpheus_policy::schema::Schema;
use contract::{Contract, Table};
use cursor::Clause;
use inventory::{Entry, Inventory};
use names::Names;
use serde::Serialize;
use std::collections::HashMap;
use tree::Tree;

/// What a contract became.
#[derive(Debug)]
pub struct Import {
    /// The files for each table.
    pub tables: Vec<TableFiles>,
    /// What became of each part.
    pub report: Report,
}

/// The files for one table.
#[derive(Debug)]
pub struct TableFiles {
    /// The table's name in the contract.
    pub table: String,
    /// Its name in file names; empty for the first.
    pub suffix: String,
    /// The schema.
    pub schema: String,
    /// The policies.
    pub policies: String,
    /// A query for its quality rules, if sums answer any.
    pub quality: Option<String>,
}

/// What became of each part of a contract: `import.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The standard of the contract.
    pub standard: String,
    /// What each table became.
    pub tables: Vec<TableReport>,
    /// Parts that are in the written files.
    pub carried: Vec<Entry>,
    /// Parts that are not.
    pub not_carried: Vec<Entry>,
    /// Questions that the contract leaves open.
    pub unsure: Vec<String>,
}

/// What one table became.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// The table's name in the contract.
    pub table: String,
    /// The file with its schema.
    pub schema: String,
    /// The file with its policies.
    pub policies: String,
    /// The file with a query for its quality rules.
    pub quality: Option<String>,
    /// The number of its attributes.
    pub attributes: usize,
    /// The column that names an event's owner, for the source file.
    pub owner: Option<String>,
    /// The column with an event's time, for the source file.
    pub time: Option<String>,
}

/// Reads a contract. The table called `first` comes first, by default the contract's first.
///
/// # Errors
/// [`ImportError`] if the text is no contract of a known standard, or has no table `first`.
pub fn import(text: &str, first: Option<&str>) -> Result<Import, ImportError> {
    let tree = readers::opened(Tree::parse(text)?);
    let mut inventory = Inventory::of(&tree);
    let mut contract = readers::read(&tree)?;
    if contract.tables.is_empty() {
        // Metadata and rules alone: they belong to a table of another file.
        contract.tables.push(Table { at: "?".to_owned(), ..Table::default() });
    }
    let columns = contract.tables.iter().map(|table| table.columns.len()).sum::<usize>();
    if columns >= readers::MAX_COLUMNS {
        return Err(ImportError::TooMany { max: readers::MAX_COLUMNS });
    }
    put_first(&mut contract.tables, first)?;
    for table in &mut contract.tables {
        table.labels.extend(contract.labels.iter().cloned());
        mark_keys(table);
        mark_unsigned(table);
    }
    let (mut names, mut suffixes) = (Names::default(), Names::default());
    let mut import = Import {
        tables: Vec::new(),
        report: Report {
            standard: contract.standard.trim().to_owned(),
            tables: Vec::new(),
            carried: Vec::new(),
            not_carried: Vec::new(),
            unsure: Vec::new(),
        },
    };
    for table in &contract.tables {
        self::table(table, &contract, (&mut names, &mut suffixes), &mut inventory, &mut import)?;
    }
    quality::leave_others(&contract, &mut inventory);
    (import.report.carried, import.report.not_carried) = inventory.close();
    Ok(import)
}

/// Columns that the table lists as its key.
fn mark_keys(table: &mut Table) {
    let keys: HashMap<&str, &str> =
        table.keys.iter().rev().map(|key| (key.value.as_str(), key.at.as_str())).collect();
    for column in table.columns.iter_mut().filter(|column| column.key.is_none()) {
        let at = keys.get(column.name.value.as_str());
        column.key = at.map(|at| Clause { value: true, at: (*at).to_owned() });
    }
}

/// Columns whose types have no sign: their least value comes before all stated limits.
fn mark_unsigned(table: &mut Table) {
    for column in &mut table.columns {
        let words = column.types.iter().chain(&column.limits.width);
        let least = words.filter_map(|word| {
            let value = kinds::least(&word.value)?.to_owned();
            Some(Clause { value, at: word.at.clone() })
        });
        let least: Vec<_> = least.collect();
        column.limits.min.splice(0..0, least);
    }
}

fn put_first(tables: &mut [Table], first: Option<&str>) -> Result<(), ImportError> {
    let Some(name) = first else { return Ok(()) };
    match tables.iter().position(|table| table.name.value == name) {
        Some(at) => {
            if let Some(head) = tables.get_mut(..=at) {
                head.rotate_right(1);
            }
            Ok(())
        }
        None => {
            let known: Vec<_> = tables.iter().map(|table| table.name.value.as_str()).collect();
            Err(ImportError::NoSuchTable { name: name.to_owned(), known: known.join(", ") })
        }
    }
}

fn table(
    table: &Table,
    contract: &Contract,
    (names, suffixes): (&mut Names, &mut Names),
    inventory: &mut Inventory,
    import: &mut Import,
) -> Result<(), ImportError> {
    let draft = draft::of(table, contract, names, inventory);
    let offers = options::of(&draft, table, contract, inventory);
    let quality = quality::of(table, &draft, &offers, contract, inventory);
    let suffix = suffixes.give(&draft.table, "table");
    let suffix = if import.tables.is_empty() { String::new() } else { format!("-{suffix}") };
    let standard = &import.report.standard;
    let files = TableFiles {
        table: draft.table.clone(),
        schema: write::schema(&draft, &offers, standard),
        policies: write::policies(&draft, &offers, standard),
        quality,
        suffix: suffix.clone(),
    };
    check(&files)?;
    import.report.tables.push(TableReport {
        table: draft.table,
        schema: format!("schema{suffix}.yaml"),
        policies: format!("policies{suffix}.yaml"),
        quality: files.quality.as_ref().map(|_| format!("quality{suffix}.sql")),
        attributes: draft.attributes.len(),
        owner: draft.owner,
        time: draft.time,
    });
    import.report.unsure.extend(draft.unsure);
    import.tables.push(files);
    Ok(())
}

/// What is written is read again by those who use it.
fn check(files: &TableFiles) -> Result<(), ImportError> {
    let invalid = |file, problem: String| ImportError::Invalid { file, problem };
    let schema = Schema::from_yaml(&files.schema).map_err(|e| invalid("schema", e.to_string()))?;
    Policies::from_yaml(&files.policies, &schema)
        .map_err(|e| invalid("policies", e.to_string()))?;
    if let Some(query) = &files.quality {
        parse(query).map_err(|error| invalid("quality query", error.to_string()))?;
    }
    Ok(())
}
