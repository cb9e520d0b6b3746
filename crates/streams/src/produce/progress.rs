//! How far a device has come, for a replay whose clock waits for its devices.

use alpheus_node::clock::ClockWriter;
use alpheus_node::failure::Failure;
use alpheus_time::Timestamp;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file with a time: the service has all frames of before it, and none of before it is still to
/// come. It has the form of a replay's clock.
pub(super) struct Progress(Mutex<ClockWriter>);

impl Progress {
    /// Creates the file; a restarted device continues in its own.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        ClockWriter::open(path).map(|writer| Self(Mutex::new(writer)))
    }

    pub(super) fn set(&self, reached: Timestamp) -> Result<(), Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).set(reached)
    }
}
