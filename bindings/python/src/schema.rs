//! A schema: what events may hold, and how they are encoded.

use crate::columns::{Row, Table};
use crate::errors;
use crate::shape::Shape;
use alpheus_node::entropy;
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::schema::{Attribute, AttributeKind, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// A schema that was checked.
#[pyclass(name = "Schema", module = "alpheus._native", frozen)]
pub struct PySchema(pub(crate) Arc<Shape>);

#[pymethods]
impl PySchema {
    /// Reads YAML, or an Avro schema as JSON.
    #[staticmethod]
    #[pyo3(signature = (text, avro = false))]
    fn parse(text: &str, avro: bool) -> PyResult<PySchema> {
        let read = if avro { Schema::from_avsc(text) } else { Schema::from_yaml(text) };
        Ok(PySchema(Shape::of(read.map_err(|error| errors::schema(&error))?)?))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.schema.name
    }

    #[getter]
    fn version(&self) -> u32 {
        self.0.schema.version
    }

    /// The hash of its content, in hexadecimal digits.
    #[getter]
    fn id(&self) -> String {
        self.0.schema.id().to_string()
    }

    /// Microseconds between borders.
    #[getter]
    fn tick_us(&self) -> u64 {
        self.0.schema.tick.0
    }

    /// Words of an event.
    #[getter]
    fn words(&self) -> u16 {
        self.0.layout.words
    }

    /// What a device sends: a frame for each event (`events`), or one a tick (`ticks`).
    #[getter]
    fn frames(&self) -> &'static str {
        if self.0.schema.frames.is_events() { "events" } else { "ticks" }
    }

    /// Each attribute's name, type, unit, bounds, decimals, and whether it is optional.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let described = self.0.schema.attributes.iter().map(|own| describe(own, py));
        PyList::new(py, described.collect::<PyResult<Vec<_>>>()?)
    }

    /// The words of an event in the clear: what is encrypted.
    fn encode(&self, event: &Bound<'_, PyDict>) -> PyResult<Vec<u64>> {
        let row = Row::of(event, &self.0.schema, None)?;
        let mut words = vec![0_u64; self.0.layout.words.into()];
        let mut rng = entropy::rng().map_err(|failure| errors::failure(&failure))?;
        let add = |at: u16, addend: u64| {
            if let Some(word) = words.get_mut(usize::from(at)) {
                *word = word.wrapping_add(addend);
            }
        };
        let encoded = self.0.encoder.encode(&row.values(), &mut rng, add);
        encoded.map_err(|error| errors::encode(&error, None))?;
        Ok(words)
    }

    /// Raises if an event is not as the schema declares.
    fn check(&self, event: &Bound<'_, PyDict>) -> PyResult<()> {
        Row::of(event, &self.0.schema, None)?.check(&self.0.encoder, None)
    }

    /// Raises if a row of columns is not as the schema declares; says how many rows there are.
    fn check_columns(&self, columns: &Bound<'_, PyDict>) -> PyResult<usize> {
        let table = Table::of(columns, &self.0.schema)?;
        table.check(&self.0)?;
        Ok(table.rows())
    }

    fn __repr__(&self) -> String {
        let Schema { name, version, .. } = &self.0.schema;
        format!("<alpheus.Schema {name}, version {version}, {} words>", self.0.layout.words)
    }
}

fn describe<'py>(own: &Attribute, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let said = PyDict::new(py);
    said.set_item("name", &own.name)?;
    said.set_item("unit", &own.unit)?;
    said.set_item("optional", own.optional)?;
    match own.kind {
        AttributeKind::Number { scale, min, max } => {
            said.set_item("type", "number")?;
            said.set_item("decimals", scale)?;
            said.set_item("min", format_scaled(min, scale))?;
            said.set_item("max", format_scaled(max, scale))?;
        }
        AttributeKind::Boolean => said.set_item("type", "boolean")?,
        AttributeKind::Text { max_bytes } => {
            said.set_item("type", "text")?;
            said.set_item("max_bytes", max_bytes)?;
        }
    }
    Ok(said)
}
