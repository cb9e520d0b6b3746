//! The module `alpheus._native`, as the wheel has it.

use pyo3::prelude::*;

/// What the package `alpheus` is written over. Use the package.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    alpheus_python::register(module)
}
