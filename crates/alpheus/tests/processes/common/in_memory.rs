//! Folders for simulations that end processes, and not machines: nothing in them needs a disk.

use std::path::Path;
use tempfile::TempDir;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A folder in memory, if the machine has such a place. A fence is flushed for every message, and
/// a simulation of hours would wait for the disk all the time.
pub(crate) fn folder() -> TempDir {
    let place = Some(Path::new(MEMORY)).filter(|place| place.is_dir());
    let made = place.and_then(|place| tempfile::tempdir_in(place).ok());
    made.unwrap_or_else(|| tempfile::tempdir().unwrap())
}
