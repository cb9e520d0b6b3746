//! Events as Python gives them: a mapping from names to values, or one from names to columns.

use crate::cells::{cell, integer, number, wrong_type};
use crate::errors;
use crate::shape::Shape;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_input::rows::Cell;
use alpheus_policy::schema::{Attribute, Schema};
use alpheus_stream_runtime::devices::value_of;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// One event's cells, in the order of the schema's attributes.
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    /// Reads a mapping. A name that the schema lacks is an error: it may be misspelt.
    pub(crate) fn of(
        event: &Bound<'_, PyDict>,
        schema: &Schema,
        row: Option<usize>,
    ) -> PyResult<Row> {
        let py = event.py();
        let (mut cells, mut found) = (Vec::with_capacity(schema.attributes.len()), 0);
        for attribute in &schema.attributes {
            // Names come back with each event.
            let name = PyString::intern(py, &attribute.name);
            match event.get_item(name)? {
                Some(value) => {
                    found += 1;
                    cells.push(cell(&value, attribute, row)?);
                }
                None => cells.push(Cell::Absent),
            }
        }
        if found != event.len() {
            return Err(unknown_name(event, schema, row));
        }
        Ok(Row(cells))
    }

    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.0.iter().map(value_of).collect()
    }

    pub(crate) fn check(&self, encoder: &Encoder, row: Option<usize>) -> PyResult<()> {
        encoder.check(&self.values()).map_err(|error| errors::encode(&error, row))
    }
}

fn unknown_name(given: &Bound<'_, PyDict>, schema: &Schema, row: Option<usize>) -> PyErr {
    let names = given.keys();
    let known = |name: &str| schema.attributes.iter().any(|own| own.name == name);
    let unknown =
        names.iter().find(|name| name.extract::<&str>().map_or(true, |name| !known(name)));
    let what = match unknown.and_then(|name| name.extract::<String>().ok()) {
        Some(name) => format!("the schema {} has no attribute `{name}`", schema.name),
        // What is no text is not shown: it may be a value in the place of a name.
        None => {
            format!("the names of an event's values are texts, of attributes of {}", schema.name)
        }
    };
    errors::event(row, "UnknownAttribute", what)
}

/// A column of numbers as they lie in memory, with a mark where a value is missing; or objects.
enum Column {
    Absent,
    Whole(Vec<i64>, Option<Vec<u8>>),
    Float(Vec<f64>, Option<Vec<u8>>),
    Truth(Vec<u8>, Option<Vec<u8>>),
    Cells(Vec<Cell>),
}

/// Events as columns, in the order of the schema's attributes.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// Reads a mapping from names to `(kind, buffer, mask)` or lists.
    pub(crate) fn of(given: &Bound<'_, PyDict>, schema: &Schema) -> PyResult<Table> {
        let (mut columns, mut rows, mut found) = (Vec::new(), None, 0);
        for attribute in &schema.attributes {
            let column = match given.get_item(&attribute.name)? {
                Some(values) => {
                    found += 1;
                    let column = Column::of(&values, attribute)?;
                    let length = column.len();
                    if *rows.get_or_insert(length) != length {
                        let what = "columns have different lengths";
                        return Err(errors::event(None, "WrongLength", what));
                    }
                    column
                }
                None => Column::Absent,
            };
            columns.push(column);
        }
        if found != given.len() {
            return Err(unknown_name(given, schema, None));
        }
        Ok(Table { columns, rows: rows.unwrap_or(0) })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Checks all rows, so that none is encrypted if one is wrong.
    pub(crate) fn check(&self, shape: &Shape) -> PyResult<()> {
        for row in 0..self.rows {
            self.row(row, &shape.schema)?.check(&shape.encoder, Some(row))?;
        }
        Ok(())
    }

    /// The cells of one row.
    pub(crate) fn row(&self, row: usize, schema: &Schema) -> PyResult<Row> {
        let cells = self.columns.iter().zip(&schema.attributes);
        cells
            .map(|(column, attribute)| column.cell(row, attribute))
            .collect::<PyResult<_>>()
            .map(Row)
    }
}

impl Column {
    fn of(given: &Bound<'_, PyAny>, attribute: &Attribute) -> PyResult<Column> {
        if let Ok(objects) = given.cast::<PyList>() {
            let cells = objects.iter().enumerate();
            let cells = cells.map(|(row, value)| cell(&value, attribute, Some(row)));
            return Ok(Column::Cells(cells.collect::<PyResult<_>>()?));
        }
        let (kind, values, mask): (String, Bound<'_, PyAny>, Option<Bound<'_, PyAny>>) =
            given.cast::<PyTuple>()?.extract()?;
        let mask = mask.map(|mask| copied::<u8>(&mask)).transpose()?;
        let column = match kind.as_str() {
            "whole" => Column::Whole(copied(&values)?, mask),
            "float" => Column::Float(copied(&values)?, mask),
            "truth" => Column::Truth(copied(&values)?, mask),
            _ => return Err(wrong_type(attribute, None)),
        };
        match column.mask() {
            Some(mask) if mask.len() != column.len() => {
                Err(errors::event(None, "WrongLength", "a mask's length differs from its column's"))
            }
            _ => Ok(column),
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Absent => 0,
            Column::Whole(values, _) => values.len(),
            Column::Float(values, _) => values.len(),
            Column::Truth(values, _) => values.len(),
            Column::Cells(cells) => cells.len(),
        }
    }

    fn mask(&self) -> Option<&Vec<u8>> {
        match self {
            Column::Whole(_, mask) | Column::Float(_, mask) | Column::Truth(_, mask) => {
                mask.as_ref()
            }
            Column::Absent | Column::Cells(_) => None,
        }
    }

    fn cell(&self, row: usize, attribute: &Attribute) -> PyResult<Cell> {
        if self.mask().and_then(|mask| mask.get(row)).is_some_and(|mark| *mark != 0) {
            return Ok(Cell::Absent);
        }
        let found = match self {
            Column::Absent => Some(Ok(Cell::Absent)),
            Column::Whole(values, _) => values.get(row).map(|x| integer(*x, attribute, Some(row))),
            Column::Float(values, _) => values.get(row).map(|x| number(*x, attribute, Some(row))),
            Column::Truth(values, _) => values.get(row).map(|x| Ok(Cell::Boolean(*x != 0))),
            Column::Cells(cells) => cells.get(row).map(|cell| Ok(cell.clone())),
        };
        found.unwrap_or(Ok(Cell::Absent))
    }
}

/// The content of a buffer, such as a NumPy array's.
pub(crate) fn copied<T: pyo3::buffer::Element>(given: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(given)?.to_vec(given.py())
}
