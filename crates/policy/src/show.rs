//! `SHOW` and `DESCRIBE`: the contents of the catalog as tables.

use crate::catalog::{Catalog, CatalogSchema, RunningQuery};
use crate::plan::Plan;
use crate::planner::offered;
use crate::query::{HintOr, QuerySpan, Show, nearest};
use crate::schema::{Attribute, AttributeKind, PolicyOption};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Named columns and rows of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// No schema or running query has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no schema or running query named `{name}`{}", HintOr(.suggestion, "SHOW SCHEMAS and SHOW QUERIES list them"))]
pub struct UnknownNameError {
    /// The name in the statement.
    pub name: String,
    /// The most similar name that exists.
    pub suggestion: Option<String>,
}

fn table<const N: usize>(title: &str, columns: [&str; N], rows: Vec<[String; N]>) -> Table {
    Table {
        title: title.to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.into_iter().map(Vec::from).collect(),
    }
}

/// The answer to `SHOW`.
#[must_use]
pub fn show(catalog: &Catalog, what: Show) -> Table {
    match what {
        Show::Schemas => schemas(catalog),
        Show::Streams => streams(catalog),
        Show::Queries => queries(catalog),
    }
}

fn schemas(catalog: &Catalog) -> Table {
    let row = |known: &CatalogSchema| {
        let schema = &known.schema;
        let names: Vec<_> =
            schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        [
            schema.name.clone(),
            schema.version.to_string(),
            names.join(", "),
            known.layout.words.to_string(),
        ]
    };
    let mut rows: Vec<_> = catalog.schemas().map(row).collect();
    rows.sort();
    table("schemas", ["name", "version", "attributes", "words per event"], rows)
}

/// Streams are counted, not listed: a list of a million ids is of no use.
fn streams(catalog: &Catalog) -> Table {
    let mut counts: BTreeMap<_, (u64, BTreeSet<_>, BTreeSet<_>)> = BTreeMap::new();
    for stream in catalog.streams() {
        let (streams, owners, controllers) = counts.entry(stream.schema).or_default();
        *streams += 1;
        owners.insert(stream.owner);
        controllers.insert(stream.controller);
    }
    let name = |id| {
        let known = catalog.schemas().find(|known| known.id == id);
        known.map_or("?", |known| known.schema.name.as_str()).to_owned()
    };
    let rows = counts.into_iter().map(|(id, (streams, owners, controllers))| {
        [name(id), streams.to_string(), owners.len().to_string(), controllers.len().to_string()]
    });
    table("streams", ["schema", "streams", "owners", "controllers"], rows.collect())
}

fn queries(catalog: &Catalog) -> Table {
    let row = |query: &RunningQuery| {
        let streams: usize = query.plans.iter().map(|plan| streams_in(catalog, plan)).sum();
        let window =
            query.plans.first().map_or_else(String::new, |plan| QuerySpan(plan.window).to_string());
        [query.name.clone(), window, query.plans.len().to_string(), streams.to_string()]
    };
    table("queries", ["name", "window", "groups", "streams"], catalog.queries().map(row).collect())
}

/// The answer to `DESCRIBE`.
///
/// # Errors
/// If no schema or running query has the name.
pub fn describe(catalog: &Catalog, name: &str) -> Result<Vec<Table>, UnknownNameError> {
    if let Some(query) = catalog.query(name) {
        return Ok(vec![describe_query(catalog, query)]);
    }
    if let Some(known) = catalog.schema(name) {
        return Ok(describe_schema(known));
    }
    let schemas = catalog.schemas().map(|known| known.schema.name.as_str());
    let names = schemas.chain(catalog.queries().map(|query| query.name.as_str()));
    Err(UnknownNameError { name: name.to_owned(), suggestion: nearest(name, names) })
}

/// How many streams take part, or by epochs may.
fn streams_in(catalog: &Catalog, plan: &Plan) -> usize {
    match plan.is_terms() {
        true => catalog.streams_of(plan).count(),
        false => plan.streams.len(),
    }
}

fn describe_query(catalog: &Catalog, query: &RunningQuery) -> Table {
    let row = |plan: &Plan| {
        let group: Vec<_> =
            plan.group.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let columns: Vec<_> = plan.select.items.iter().map(|item| item.alias.as_str()).collect();
        let population = format!("{} to {}", plan.population.min, plan.population.max);
        [
            group.join(", "),
            columns.join(", "),
            streams_in(catalog, plan).to_string(),
            population,
            plan.id().to_string(),
        ]
    };
    let title = format!("{}\n{}", query.name, query.sql);
    table(
        &title,
        ["group", "columns", "streams", "population", "plan"],
        query.plans.iter().map(row).collect(),
    )
}

fn describe_schema(known: &CatalogSchema) -> Vec<Table> {
    let schema = &known.schema;
    let metadata = schema.metadata.iter().map(|metadata| {
        let values = if metadata.symbols.is_empty() {
            "any text".to_owned()
        } else {
            metadata.symbols.join(", ")
        };
        [metadata.name.clone(), values, yes(metadata.optional)]
    });
    let attribute = |attribute: &Attribute| {
        [
            attribute.name.clone(),
            kind(attribute),
            attribute.unit.clone(),
            yes(attribute.optional),
            offered(schema, attribute),
        ]
    };
    let option = |option: &PolicyOption| {
        let windows: Vec<_> =
            option.windows.iter().map(|window| QuerySpan(*window).to_string()).collect();
        let clients: Vec<_> = option.clients.iter().map(u32::to_string).collect();
        let to = if option.to.is_empty() { "anybody".to_owned() } else { option.to.join(", ") };
        [
            option.name.clone(),
            option.kind.name().to_owned(),
            windows.join(", "),
            clients.join(", "),
            to,
        ]
    };
    let title =
        format!("{} version {}, tick {}", schema.name, schema.version, QuerySpan(schema.tick));
    vec![
        table(&format!("{title}: metadata"), ["name", "values", "optional"], metadata.collect()),
        table(
            "attributes",
            ["name", "values", "unit", "optional", "offered"],
            schema.attributes.iter().map(attribute).collect(),
        ),
        table(
            "policies",
            ["name", "option", "windows", "population", "to"],
            schema.options.iter().map(option).collect(),
        ),
    ]
}

fn yes(optional: bool) -> String {
    if optional { "yes" } else { "no" }.to_owned()
}

fn kind(attribute: &Attribute) -> String {
    match &attribute.kind {
        AttributeKind::Number { scale, min, max } => {
            let number = |scaled: &i64| crate::query::Decimal::from_scaled(*scaled, *scale);
            format!(
                "{} to {} in steps of {}",
                number(min),
                number(max),
                crate::query::Decimal::from_scaled(1, *scale)
            )
        }
        AttributeKind::Boolean => "true or false".to_owned(),
        AttributeKind::Text { max_bytes } => format!("text of at most {max_bytes} bytes"),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.columns).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                lines()
                    .filter_map(|line| line.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        writeln!(f, "{}", self.title)?;
        for line in lines() {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "  {}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}
