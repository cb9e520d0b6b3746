//! The slot file: what makes erasing a secret possible on a store that
//! keeps old values in its files, and on copies of that store.
//!
//! Each secret is locked under its slot, which is 32 random bytes, and perhaps under another key. Overwriting the slot in place destroys the secret, wherever copies of the
//! locked entry are. The file is the magic `ALPHSLT1`, filled up to 32 bytes,
//! then slots of 32 bytes. A destroyed slot holds a marker other than zeros, which a
//! careless copy or a file system may leave behind. Slots are not reused.
//!
//! # Assumptions
//! The file system overwrites in place, as ext4 and XFS do; copy-on-write file systems
//! and snapshots do not. No copy of this file outlives the erasure.

use crate::files::{other_format, sync_name};
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use zeroize::Zeroizing;

const MAGIC: [u8; 8] = *b"ALPHSLT1";
const SIZE: usize = 32;
const ZEROS: [u8; SIZE] = [0; SIZE];
const DESTROYED: [u8; SIZE] = *b"alpheus: this slot is destroyed\n";

/// Why the slot file cannot be used.
#[derive(Debug, Error)]
pub enum SlotError {
    /// The system.
    #[error("the slot file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Written by another version of the program.
    #[error(
        "the slot file {} has format {found}, but this version reads format 1: use the version that wrote it, or restore the slot file and the state folder from the same backup", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: char,
    },
    /// It is something else.
    #[error("{} is not a slot file: restore it and the state folder from the same backup", path.display())]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// The slot of a stream in the key store is missing.
    #[error(
        "{} is missing, incomplete, or older than its key store: restore both from the same backup", path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
    },
}

/// The slot file, open.
pub struct SlotFile {
    path: PathBuf,
    file: File,
}

impl SlotFile {
    /// Opens the file, or creates it, readable only by its owner.
    ///
    /// # Errors
    /// [`SlotError`] if it cannot be opened, or is not a slot file.
    pub fn open(path: &Path) -> Result<SlotFile, SlotError> {
        let failed = |source| SlotError::Io { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        let (mut head, mut wanted) = ([0; SIZE], [0; SIZE]);
        wanted[..MAGIC.len()].copy_from_slice(&MAGIC);
        // At most a header: a crash may have come while the file was created.
        if file.metadata().map_err(failed)?.len() <= SIZE as u64 {
            file.write_all_at(&wanted, 0).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            sync_name(path).map_err(failed)?;
        }
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        if head != wanted {
            let path = path.to_owned();
            return Err(match other_format(&head, &MAGIC) {
                Some(found) => SlotError::Format { path, found },
                None => SlotError::Other { path },
            });
        }
        Ok(SlotFile { path: path.to_owned(), file })
    }

    /// Fills a new slot, durably.
    ///
    /// # Errors
    /// [`SlotError::Io`].
    pub fn draw(&self, rng: &mut impl CryptoRng) -> Result<(u64, Secret<32>), SlotError> {
        let length = self.file.metadata().map_err(|e| self.failed(e))?.len();
        // A crash may have left a partial slot.
        let (slot, secret) = (length.div_ceil(SIZE as u64), Secret::random(rng));
        self.write(slot, secret.expose())?;
        self.sync()?;
        Ok((slot, secret))
    }

    /// A slot's secret; none once it is destroyed.
    ///
    /// # Errors
    /// [`SlotError`] if there is no such slot.
    pub fn read(&self, slot: u64) -> Result<Option<Secret<32>>, SlotError> {
        let mut bytes = Zeroizing::new([0; SIZE]);
        let read = self.file.read_exact_at(&mut bytes[..], slot.saturating_mul(SIZE as u64));
        let lost = || SlotError::Lost { path: self.path.clone() };
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => lost(),
            _ => self.failed(error),
        })?;
        match *bytes {
            DESTROYED => Ok(None),
            ZEROS => Err(lost()),
            _ => Ok(Secret::from_slice(&bytes[..])),
        }
    }

    /// All slots that are neither destroyed nor empty, in order.
    ///
    /// # Errors
    /// [`SlotError::Io`].
    pub fn filled(&self) -> Result<Vec<u64>, SlotError> {
        let length = self.file.metadata().map_err(|e| self.failed(e))?.len();
        let mut filled = Vec::new();
        for slot in 1..length / SIZE as u64 {
            match self.read(slot) {
                Ok(Some(_)) => filled.push(slot),
                Ok(None) | Err(SlotError::Lost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Overwrites slots, durably. A repetition overwrites them again, since the first
    /// write may not have reached the disk.
    ///
    /// # Errors
    /// [`SlotError`]; the slots may still exist then. A slot beyond the file's end is an
    /// error, because the next new stream would get it.
    pub fn destroy(&self, slots: impl IntoIterator<Item = u64>) -> Result<(), SlotError> {
        let mut any = false;
        for slot in slots {
            self.read(slot)?;
            self.write(slot, &DESTROYED)?;
            any = true;
        }
        if any { self.sync() } else { Ok(()) }
    }

    fn write(&self, slot: u64, bytes: &[u8; SIZE]) -> Result<(), SlotError> {
        let written = self.file.write_all_at(bytes, slot.saturating_mul(SIZE as u64));
        written.map_err(|error| self.failed(error))
    }

    fn sync(&self) -> Result<(), SlotError> {
        self.file.sync_all().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> SlotError {
        SlotError::Io { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn a_destroyed_slot_is_gone_from_the_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut rng) = (folder.path().join("slots"), ChaCha20Rng::seed_from_u64(1));
        let slots = SlotFile::open(&path).unwrap();
        let drawn: Vec<_> = (0..3).map(|_| slots.draw(&mut rng).unwrap()).collect();
        slots.destroy([drawn[1].0]).unwrap();
        slots.destroy([drawn[1].0]).unwrap();
        let slots = SlotFile::open(&path).unwrap();
        for (place, (slot, secret)) in drawn.iter().enumerate() {
            let read = slots.read(*slot).unwrap();
            assert_eq!(read.is_some_and(|read| read == *secret), place != 1);
        }
        assert_eq!(slots.filled().unwrap(), [drawn[0].0, drawn[2].0]);
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(8).any(|part| part == &drawn[1].1.expose()[..8]));
        assert!(matches!(slots.read(9), Err(SlotError::Lost { .. })));
        assert!(matches!(slots.destroy([9]), Err(SlotError::Lost { .. })));
        slots.write(drawn[0].0, &ZEROS).unwrap();
        assert!(matches!(slots.read(drawn[0].0), Err(SlotError::Lost { .. })));
    }

    /// A failed erasure is not reported as done.
    #[test]
    fn a_failing_disk_is_reported_and_destroys_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut rng) = (folder.path().join("slots"), ChaCha20Rng::seed_from_u64(1));
        let slots = SlotFile::open(&path).unwrap();
        let (slot, secret) = slots.draw(&mut rng).unwrap();
        let broken = SlotFile { path: path.clone(), file: File::open(&path).unwrap() };
        for _ in 0..2 {
            assert!(matches!(broken.destroy([slot]), Err(SlotError::Io { .. })));
            assert!(matches!(broken.draw(&mut rng), Err(SlotError::Io { .. })));
            assert!(slots.read(slot).unwrap().is_some_and(|read| read == secret));
        }
        slots.destroy([slot]).unwrap();
        assert!(broken.read(slot).unwrap().is_none());
    }

    #[test]
    fn a_torn_slot_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut rng) = (folder.path().join("slots"), ChaCha20Rng::seed_from_u64(1));
        std::fs::write(&path, b"ALP").unwrap();
        SlotFile::open(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[7; 5], SIZE as u64).unwrap();
        assert_eq!(SlotFile::open(&path).unwrap().draw(&mut rng).unwrap().0, 2);
    }

    #[test]
    fn another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slots");
        std::fs::write(&path, [7; 65]).unwrap();
        assert!(matches!(SlotFile::open(&path), Err(SlotError::Other { .. })));
    }
}
