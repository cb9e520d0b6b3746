//! Public facts about a recorded stream, from the cells of its rows.

use super::refusals::RowError;
use super::source::{Metadata, Source};
use alpheus_policy::schema::{MetadataAttribute, Schema};
use csv::StringRecord;
use std::collections::BTreeMap;

/// Where each metadata attribute of a stream is read.
pub(crate) struct MetadataColumns<'a> {
    columns: Vec<(&'a MetadataAttribute, From<'a>)>,
}

enum From<'a> {
    Column(usize),
    Constant(&'a str),
    StreamKey,
}

/// A cell that cannot be a stream's metadata, and why.
pub(crate) type BadCell = (Option<usize>, RowError);

impl<'a> MetadataColumns<'a> {
    /// Looks the columns up with `column`.
    ///
    /// # Errors
    /// The error for the first missing column.
    pub(crate) fn resolve<E>(
        source: &'a Source,
        schema: &'a Schema,
        column: impl Fn(&str) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let mut columns = Vec::new();
        for attribute in &schema.metadata {
            let from = match source.metadata.get(&attribute.name) {
                Some(Metadata::Column(name)) => From::Column(column(name)?),
                Some(Metadata::Constant(value)) => From::Constant(value),
                Some(Metadata::StreamKey) => From::StreamKey,
                None => continue,
            };
            columns.push((attribute, from));
        }
        Ok(MetadataColumns { columns })
    }

    /// A stream's metadata, from its first row. Empty optional values are left out.
    ///
    /// # Errors
    /// A value that the schema does not allow.
    pub(crate) fn of(
        &self,
        record: &StringRecord,
        key: &str,
    ) -> Result<BTreeMap<String, String>, BadCell> {
        let mut found = BTreeMap::new();
        for (MetadataAttribute { name, symbols, optional, .. }, from) in &self.columns {
            let (column, value) = from.read(record, key);
            match value {
                "" if *optional => continue,
                "" => return Err((column, RowError::NoMetadata)),
                _ if symbols.is_empty() || symbols.iter().any(|symbol| symbol == value) => {}
                _ => return Err((column, RowError::UnknownSymbol)),
            }
            found.insert(name.clone(), value.to_owned());
        }
        Ok(found)
    }

    /// Checks that a later row has the same metadata.
    ///
    /// # Errors
    /// The column that differs.
    pub(crate) fn same(
        &self,
        record: &StringRecord,
        key: &str,
        known: &BTreeMap<String, String>,
    ) -> Result<(), BadCell> {
        for (attribute, from) in &self.columns {
            let (column, value) = from.read(record, key);
            if known.get(&attribute.name).map_or("", String::as_str) != value {
                return Err((column, RowError::MetadataChanged));
            }
        }
        Ok(())
    }
}

impl From<'_> {
    fn read<'r>(&'r self, record: &'r StringRecord, key: &'r str) -> (Option<usize>, &'r str) {
        match self {
            From::Column(column) => (Some(*column), &record[*column]),
            From::Constant(value) => (None, value),
            From::StreamKey => (None, key),
        }
    }
}
