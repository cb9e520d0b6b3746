//! A file of captured requests.

use crate::intake::{IntakeError, Outcome, room};
use crate::message::ExportRequest;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::{Readers, write_new};
use prost::Message;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most bytes of a file. A schema needs one request of each program.
const MAX_BYTES: usize = 64 << 20;

/// A file that requests are added to. Clones share it.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    room: Arc<Semaphore>,
    file: Mutex<Recording>,
}

struct Recording {
    file: File,
    bytes: usize,
    requests: usize,
}

impl Recorder {
    /// Creates the file, which only its user can read.
    ///
    /// # Errors
    /// It exists, or cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Recorder, Failure> {
        write_new(path, b"", Readers::Owner)?;
        let file = OpenOptions::new().append(true).open(path).blame_io(path)?;
        let file = Mutex::new(Recording { file, bytes: 0, requests: 0 });
        Ok(Recorder(Arc::new(Inner { room: room(), file })))
    }

    /// A place for a request that is in memory; none if there are enough.
    pub(crate) fn door(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.room).try_acquire_owned().ok()
    }

    /// How many requests were added.
    pub(crate) fn requests(&self) -> usize {
        self.0.file.lock().unwrap_or_else(PoisonError::into_inner).requests
    }

    /// Adds a request: the encodings of several, behind each other, are that of one with the
    /// metrics of all.
    pub(crate) fn add(&self, request: &ExportRequest) -> Result<Outcome, IntakeError> {
        let bytes = request.encode_to_vec();
        let mut recording = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        if recording.bytes + bytes.len() > MAX_BYTES {
            return Err(IntakeError::Long);
        }
        if let Err(error) = recording.file.write_all(&bytes) {
            // A part of a request would make the rest unreadable.
            let before = u64::try_from(recording.bytes).unwrap_or(u64::MAX);
            let _ = recording.file.set_len(before);
            return Err(IntakeError::File(error));
        }
        recording.bytes += bytes.len();
        recording.requests += 1;
        Ok(Outcome::default())
    }
}
