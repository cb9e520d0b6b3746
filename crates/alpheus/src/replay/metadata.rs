//! Public facts about a recorded stream, from the cells of its rows.

use super::refused::RowFault;
use super::source::{Metadata, Source};
use alpheus_policy::schema::Schema;
use csv::StringRecord;
use std::collections::BTreeMap;

/// Where each metadata attribute of a stream is read.
pub(super) struct MetadataColumns<'a> {
    columns: Vec<(&'a str, From<'a>, &'a [String])>,
}

enum From<'a> {
    Column(usize),
    Constant(&'a str),
    StreamKey,
}

/// A cell that cannot be a stream's metadata, and why.
pub(super) type BadCell = (Option<usize>, RowFault);

impl<'a> MetadataColumns<'a> {
    /// Looks the columns up with `column`.
    ///
    /// # Errors
    /// The first that `column` does not find.
    pub(super) fn resolve<E>(
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
            columns.push((attribute.name.as_str(), from, attribute.symbols.as_slice()));
        }
        Ok(MetadataColumns { columns })
    }

    /// A stream's metadata, as its first row says them. What is empty and
    /// optional is left out.
    ///
    /// # Errors
    /// A value that the schema does not allow.
    pub(super) fn of(
        &self,
        record: &StringRecord,
        key: &str,
        schema: &Schema,
    ) -> Result<BTreeMap<String, String>, BadCell> {
        let mut found = BTreeMap::new();
        for (name, from, symbols) in &self.columns {
            let (column, value) = from.read(record, key);
            let optional = schema.metadata.iter().any(|m| m.name == *name && m.optional);
            match value {
                "" if optional => continue,
                "" => return Err((column, RowFault::NoMetadata)),
                _ if symbols.is_empty() || symbols.iter().any(|symbol| symbol == value) => {}
                _ => return Err((column, RowFault::UnknownSymbol)),
            }
            found.insert((*name).to_owned(), value.to_owned());
        }
        Ok(found)
    }

    /// Whether a later row says the same.
    ///
    /// # Errors
    /// The column that differs.
    pub(super) fn same(
        &self,
        record: &StringRecord,
        key: &str,
        known: &BTreeMap<String, String>,
    ) -> Result<(), BadCell> {
        for (name, from, _) in &self.columns {
            let (column, value) = from.read(record, key);
            if known.get(*name).map_or("", String::as_str) != value {
                return Err((column, RowFault::MetadataChanged));
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
