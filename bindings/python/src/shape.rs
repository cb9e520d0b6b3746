//! A schema, with what its events are encoded by.

use crate::errors;
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use pyo3::PyResult;
use std::sync::Arc;

/// A schema with its layout and encoder.
pub(crate) struct Shape {
    pub(crate) schema: Schema,
    pub(crate) layout: Layout,
    pub(crate) encoder: Encoder,
}

impl Shape {
    pub(crate) fn of(schema: Schema) -> PyResult<Arc<Shape>> {
        let layout = Layout::of(&schema).map_err(|error| errors::refused(&error))?;
        let encoder = Encoder::new(&schema, &layout).map_err(|error| errors::refused(&error))?;
        Ok(Arc::new(Shape { schema, layout, encoder }))
    }
}
