//! The pass file: all data of a subscriber, locked as a whole under a key file or passphrase.
//!
//! ```text
//! "ALPHPASS"  version:8  salt[16]  memory:32  passes:32  locked…
//! ```
//! The locked part is [`Contents`] in postcard, with the head as its name.

use crate::error::{FILE_VERSION, FileError};
use alpheus_anonymous_credential::ledger::Change;
use alpheus_crypto::labels;
use alpheus_crypto::vault::{Hardness, VaultKey};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zeroize::{Zeroize, Zeroizing};

const MAGIC: &[u8; 8] = b"ALPHPASS";
const HEAD: usize = 8 + 1 + 16 + 4 + 4;
/// A file that asks for more, in KiB and passes, is probably an attack on this machine's memory.
const MAX_HARDNESS: Hardness = Hardness { memory: 1 << 20, passes: 64 };

/// Content of the file. Not `Clone`, not `Debug`; wiped on drop.
#[derive(Default, Serialize, Deserialize)]
pub struct Contents {
    /// The service's public card, from its operator.
    pub card: Vec<u8>,
    /// The account at the issuer.
    pub account: String,
    /// What the account shows to the issuer.
    pub evidence: Evidence,
    /// The holder's ledger.
    pub records: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What an account shows to the issuer. Not `Clone`, not `Debug`; wiped with its file.
#[derive(Serialize, Deserialize)]
pub enum Evidence {
    /// Its secret.
    Secret(String),
    /// An ID token, which this command of the subscriber's prints.
    IdTokenCommand(String),
}

impl Default for Evidence {
    fn default() -> Self {
        Self::Secret(String::new())
    }
}

/// The file's key, derived once. It locks every later version of the file.
pub struct FileKey {
    head: [u8; HEAD],
    key: VaultKey,
}

impl Drop for Contents {
    fn drop(&mut self) {
        match &mut self.evidence {
            Evidence::Secret(text) | Evidence::IdTokenCommand(text) => text.zeroize(),
        }
        self.records.values_mut().for_each(Zeroize::zeroize);
    }
}

impl Contents {
    /// Applies a step's changes.
    pub fn apply(&mut self, changes: &[Change]) {
        for Change { key, value } in changes {
            let old = match value {
                Some(value) => self.records.insert(key.clone(), value.to_vec()),
                None => self.records.remove(key),
            };
            old.into_iter().for_each(|mut old| old.zeroize());
        }
    }
}

impl FileKey {
    /// The key of a new file.
    ///
    /// # Errors
    /// [`FileError::Hardness`].
    pub fn create(
        passphrase: &[u8],
        hardness: Hardness,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, FileError> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8] = FILE_VERSION;
        rng.fill_bytes(&mut head[9..25]);
        head[25..29].copy_from_slice(&hardness.memory.to_be_bytes());
        head[29..].copy_from_slice(&hardness.passes.to_be_bytes());
        Self::derive(passphrase, head)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open(passphrase: &[u8], file: &[u8]) -> Result<(Self, Contents), FileError> {
        let (head, locked) = file.split_first_chunk::<HEAD>().ok_or(FileError::Unreadable)?;
        if !head.starts_with(MAGIC) {
            return Err(FileError::Unreadable);
        }
        if head[8] != FILE_VERSION {
            return Err(FileError::Version(head[8]));
        }
        let key = Self::derive(passphrase, *head)?;
        let opened = key.key.unlock(&key.name(), locked).map_err(|_| FileError::Locked)?;
        let contents = postcard::from_bytes(&opened).map_err(|_| FileError::Unreadable)?;
        Ok((key, contents))
    }

    /// The file with these contents.
    ///
    /// # Errors
    /// [`FileError::Unreadable`]; never in practice.
    pub fn seal(
        &self,
        contents: &Contents,
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<u8>, FileError> {
        let plain = postcard::to_allocvec(contents).map(Zeroizing::new);
        let plain = plain.map_err(|_| FileError::Unreadable)?;
        Ok([&self.head[..], &self.key.lock(&self.name(), &plain, rng)].concat())
    }

    fn derive(passphrase: &[u8], head: [u8; HEAD]) -> Result<Self, FileError> {
        let (mut salt, mut memory, mut passes) = ([0; 16], [0; 4], [0; 4]);
        salt.copy_from_slice(&head[9..25]);
        memory.copy_from_slice(&head[25..29]);
        passes.copy_from_slice(&head[29..]);
        let hardness =
            Hardness { memory: u32::from_be_bytes(memory), passes: u32::from_be_bytes(passes) };
        if hardness.memory > MAX_HARDNESS.memory || hardness.passes > MAX_HARDNESS.passes {
            return Err(FileError::Hardness);
        }
        let key = VaultKey::derive(passphrase, &salt, hardness);
        Ok(Self { head, key: key.map_err(|_| FileError::Hardness)? })
    }

    fn name(&self) -> Vec<u8> {
        [labels::PASS_FILE.as_bytes(), &self.head].concat()
    }
}
