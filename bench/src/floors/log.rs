//! A plain append-only file: one write and one fsync for each batch.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The file, and how long to wait after each fsync.
pub(crate) struct Log(File, Duration);

impl Log {
    /// A new file.
    pub(crate) fn create(path: &Path, delay: Duration) -> io::Result<Log> {
        Ok(Log(File::create_new(path)?, delay))
    }

    /// Appends records, each after its length, and makes them durable.
    pub(crate) fn commit(&mut self, records: &[&[u8]]) -> io::Result<()> {
        let mut batch = Vec::with_capacity(records.iter().map(|record| record.len() + 4).sum());
        for record in records {
            batch.extend_from_slice(&(record.len() as u32).to_le_bytes());
            batch.extend_from_slice(record);
        }
        self.0.write_all(&batch)?;
        self.0.sync_data()?;
        std::thread::sleep(self.1);
        Ok(())
    }
}
