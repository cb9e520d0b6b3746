//! The Python package's native part, over PyO3: schemas, sessions that encrypt, devices that also
//! deliver, and consumers. Everything else of the package is Python.
//!
//! It holds no cryptography and no protocol of its own. A session never leaves its process: it cannot
//! be pickled or copied, and in a forked process it is closed.

mod cells;
mod columns;
mod consumer;
mod errors;
mod process;
mod schema;
mod session;
mod shape;
mod stream;

pub use errors::refused;
pub use session::OpenSession;

use pyo3::prelude::*;

/// Adds everything to a module.
///
/// # Errors
/// Python's.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<schema::PySchema>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<stream::PyStream>()?;
    module.add_class::<consumer::PyConsumer>()?;
    module.add_function(wrap_pyfunction!(process::forked, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
