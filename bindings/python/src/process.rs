//! Which process an object belongs to.

use crate::errors;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often this process, or the one that it is a copy of, was forked by Python.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Notes that this process is a new copy of another. Python calls it in the copy.
#[pyfunction(name = "_forked")]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which an object was made. The process's number shows forks of every kind, and the
/// count shows those in which a copy got the number of a process that had ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    process: u32,
    forks: u64,
}

impl Home {
    pub(crate) fn here() -> Home {
        Home { process: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Fails in a copy of the process: two copies of a session would use the same pads.
    pub(crate) fn check(self) -> PyResult<()> {
        if self == Home::here() {
            return Ok(());
        }
        let what = "this session was opened in another process, of which this one is a copy; a session never leaves its process: open another here";
        Err(errors::session(what))
    }
}

/// Why an object cannot be pickled or copied.
pub(crate) fn not_copied(what: &str) -> PyErr {
    let why = "it holds keys and pads that must not be used twice; open another where you need it";
    pyo3::exceptions::PyTypeError::new_err(format!("{what} cannot be pickled or copied: {why}"))
}
