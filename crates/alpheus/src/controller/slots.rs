//! The slot file: what makes erasing a stream's key possible on a store that
//! keeps old values in its files, and on copies of that store.
//!
//! Each master secret is locked under the key file's key and 32 random bytes of
//! its own, its slot. Overwriting the slot in place destroys the secret wherever
//! its locked entry lies. The file is the magic `ALPHSLT1`, filled up to 32 bytes,
//! then slots of 32 bytes; a slot of zeros is destroyed. Slots are not used twice.
//!
//! # What it rests on
//! That the file system overwrites in place, as ext4 and XFS do, and copy-on-write
//! ones and snapshots do not; and that no copy of this file outlives the erasure.

use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

const MAGIC: [u8; 8] = *b"ALPHSLT1";
const SIZE: usize = 32;

/// Why the slot file cannot be used.
#[derive(Debug, Error)]
pub enum SlotError {
    /// The system.
    #[error("the slot file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is no slot file, or of another version", path.display())]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// It has fewer slots than the key store has streams.
    #[error(
        "{} is missing, or older than the key store beside it: restore both from one backup", path.display()
    )]
    Short {
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
    /// Opens the file, or makes it, for nobody but its owner.
    ///
    /// # Errors
    /// [`SlotError`] if it cannot be had, or is something else.
    pub fn open(path: &Path) -> Result<SlotFile, SlotError> {
        let failed = |source| SlotError::Io { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        let (mut head, mut wanted) = ([0; SIZE], [0; SIZE]);
        wanted[..MAGIC.len()].copy_from_slice(&MAGIC);
        // Shorter than its head: a crash while it was made.
        if file.metadata().map_err(failed)?.len() < SIZE as u64 {
            file.write_all_at(&wanted, 0).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        if head != wanted {
            return Err(SlotError::Other { path: path.to_owned() });
        }
        Ok(SlotFile { path: path.to_owned(), file })
    }

    /// Fills a new slot, durably.
    ///
    /// # Errors
    /// [`SlotError::Io`].
    pub fn draw(&self, rng: &mut impl CryptoRng) -> Result<(u64, Secret<32>), SlotError> {
        let length = self.file.metadata().map_err(|e| self.failed(e))?.len();
        // A crash may have left a part of one.
        let (slot, secret) = (length.div_ceil(SIZE as u64), Secret::random(rng));
        self.put(slot, secret.expose())?;
        Ok((slot, secret))
    }

    /// What a slot holds; none once it is destroyed.
    ///
    /// # Errors
    /// [`SlotError`] if there is no such slot.
    pub fn read(&self, slot: u64) -> Result<Option<Secret<32>>, SlotError> {
        let mut bytes = zeroize::Zeroizing::new([0; SIZE]);
        let read = self.file.read_exact_at(&mut bytes[..], slot.saturating_mul(SIZE as u64));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => SlotError::Short { path: self.path.clone() },
            _ => self.failed(error),
        })?;
        let destroyed = bytes.iter().fold(0, |all, byte| all | byte) == 0;
        Ok(if destroyed { None } else { Secret::from_slice(&bytes[..]) })
    }

    /// Overwrites a slot with zeros, durably. Once more changes nothing.
    ///
    /// # Errors
    /// [`SlotError`]; it may still be there then.
    pub fn destroy(&self, slot: u64) -> Result<(), SlotError> {
        match self.read(slot)? {
            Some(_) => self.put(slot, &[0; SIZE]),
            None => Ok(()),
        }
    }

    fn put(&self, slot: u64, bytes: &[u8; SIZE]) -> Result<(), SlotError> {
        let written = self.file.write_all_at(bytes, slot.saturating_mul(SIZE as u64));
        written.and_then(|()| self.file.sync_all()).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> SlotError {
        SlotError::Io { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn a_destroyed_slot_is_gone_from_the_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut rng) = (folder.path().join("slots"), ChaCha20Rng::seed_from_u64(1));
        let slots = SlotFile::open(&path).unwrap();
        let drawn: Vec<_> = (0..3).map(|_| slots.draw(&mut rng).unwrap()).collect();
        slots.destroy(drawn[1].0).unwrap();
        slots.destroy(drawn[1].0).unwrap();
        let slots = SlotFile::open(&path).unwrap();
        for (place, (slot, secret)) in drawn.iter().enumerate() {
            let read = slots.read(*slot).unwrap();
            assert_eq!(read.is_some_and(|read| read == *secret), place != 1);
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(8).any(|part| part == &drawn[1].1.expose()[..8]));
        assert!(matches!(slots.read(9), Err(SlotError::Short { .. })));
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
        std::fs::write(&path, [7; 64]).unwrap();
        assert!(matches!(SlotFile::open(&path), Err(SlotError::Other { .. })));
    }
}
