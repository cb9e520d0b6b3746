//! Backups of a process's state and identity: taken while it runs, encrypted, checked.
//!
//! - [`archive`]: the file,
//! - [`source`]: what goes into it, from folders and from a running process.
//!
//! # Privacy
//! A backup holds the keys of an identity folder and all that a store holds. Anyone who has it and the secret that opens
//! it can act as the process. It never holds a slot file beside a store: what was erased stays erased.

pub mod archive;
pub mod source;

use std::io;

/// Why a backup is refused.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It is something else.
    #[error("not a backup that `alpheus backup` wrote")]
    Other,
    /// Another version of the program wrote it.
    #[error(
        "the backup has format {0}, but this version reads format 1: use the version that made it"
    )]
    Format(char),
    /// The secret does not open it.
    #[error("the key file or passphrase is not the one that the backup was made with")]
    Key,
    /// Its end is missing.
    #[error("the backup is cut short: its end is missing; copy it again, or take another one")]
    Cut,
    /// It is not what was written.
    #[error("the backup was changed after it was made, or is damaged; take another one")]
    Changed,
    /// It cannot be read.
    #[error("the backup cannot be read: {0}")]
    Io(io::Error),
}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => BackupError::Cut,
            _ => BackupError::Io(error),
        }
    }
}
