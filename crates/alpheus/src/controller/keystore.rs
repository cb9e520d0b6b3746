//! The encrypted key store of a host of controllers: identities' seeds and
//! streams' master secrets, each locked under the key file's key.
//!
//! | key | value, locked |
//! | --- | --- |
//! | `vault` | salt and hardness in the clear, and a known word to tell a wrong key file |
//! | `identity/<name>` | a seed |
//! | `stream/<id>` | a master secret and what it is for |

use crate::failure::{Blame, Category, Failure};
use crate::runtime::storage::scan_all;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::vault::{Hardness, Locked, VaultKey};
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_transport::{Batch, Space, Store};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use zeroize::Zeroizing;

const HEADER: &[u8] = b"vault";
const IDENTITIES: &[u8] = b"identity/";
const STREAMS: &[u8] = b"stream/";
const KNOWN: &[u8] = b"alpheus key store";
const VERSION: u8 = 1;
/// Permissions that a key file gives to nobody but its owner.
const OTHERS: u32 = 0o077;
/// A key file is at least so long.
const SHORTEST: usize = 16;

/// Why the key store does not open.
#[derive(Debug, Error)]
pub enum KeyStoreError {
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// Too short to be a secret.
    #[error(
        "the key file holds {0} bytes, fewer than 16: put random ones there, as in `head -c 32 /dev/urandom | base64`"
    )]
    ShortKey(usize),
    /// Others can read it.
    #[error(
        "others than its owner can read the key file (mode {0:o}); `chmod 600` it, and make a new one if somebody may have read it"
    )]
    OpenKey(u32),
    /// Another key file.
    #[error("the key store does not open with this key file: give the one that it was made with")]
    WrongKey,
    /// An entry is damaged.
    #[error("an entry of the key store is damaged; restore the state folder from a backup")]
    Damaged,
    /// It is there already.
    #[error("there is a key store already")]
    Exists,
    /// It is not there.
    #[error("there is no key store here; `alpheus controller init` makes one")]
    Absent,
}

impl From<Locked> for KeyStoreError {
    fn from(_: Locked) -> Self {
        KeyStoreError::Damaged
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u8,
    salt: [u8; 16],
    hardness: Hardness,
    known: Vec<u8>,
}

/// A stream's master secret, and what else its holder knows of it.
pub struct StreamKey {
    /// What it is for.
    pub purpose: Purpose,
    /// Whose identity holds it.
    pub controller: ControllerId,
    /// The name on the owner's certificate, who may choose and read the log.
    pub owner_name: String,
    /// The name on the device's certificate.
    pub producer: String,
    /// The secret.
    pub master: MasterSecret,
}

/// The same, as it is locked.
#[derive(Serialize, Deserialize)]
struct StoredStream {
    schema: SchemaId,
    owner: OwnerId,
    controller: ControllerId,
    owner_name: String,
    producer: String,
    master: Zeroizing<[u8; 32]>,
}

/// The key store, open.
pub struct KeyStore {
    store: Arc<dyn Store>,
    space: Space,
    key: VaultKey,
}

impl KeyStore {
    /// Makes a key store.
    ///
    /// # Errors
    /// [`KeyStoreError::Exists`] if there is one.
    pub fn create(
        store: Arc<dyn Store>,
        space: Space,
        key_file: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<KeyStore, KeyStoreError> {
        store.ensure_space(&space)?;
        if store.get(&space, HEADER)?.is_some() {
            return Err(KeyStoreError::Exists);
        }
        let (mut salt, hardness) = ([0; 16], Hardness::default());
        rng.fill_bytes(&mut salt);
        let key = derive(key_file, &salt, hardness)?;
        let known = key.lock(HEADER, KNOWN, rng);
        let header = Header { version: VERSION, salt, hardness, known };
        let header = postcard::to_allocvec(&header).map_err(|_| KeyStoreError::Damaged)?;
        let mut batch = Batch::new();
        batch.put(&space, HEADER, header)?;
        store.commit(batch)?;
        Ok(KeyStore { store, space, key })
    }

    /// Opens the key store.
    ///
    /// # Errors
    /// [`KeyStoreError`]; it never guesses.
    pub fn open(
        store: Arc<dyn Store>,
        space: Space,
        key_file: &[u8],
    ) -> Result<KeyStore, KeyStoreError> {
        store.ensure_space(&space)?;
        let header = store.get(&space, HEADER)?.ok_or(KeyStoreError::Absent)?;
        let header: Header = postcard::from_bytes(&header).map_err(|_| KeyStoreError::Damaged)?;
        if header.version != VERSION {
            return Err(KeyStoreError::Damaged);
        }
        let key = derive(key_file, &header.salt, header.hardness)?;
        key.unlock(HEADER, &header.known).map_err(|_| KeyStoreError::WrongKey)?;
        Ok(KeyStore { store, space, key })
    }

    /// Draws an identity's seed and keeps it.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn new_identity(
        &self,
        name: &str,
        rng: &mut impl CryptoRng,
    ) -> Result<IdentitySecrets, KeyStoreError> {
        let (key, seed) = ([IDENTITIES, name.as_bytes()].concat(), Secret::random(rng));
        if self.store.get(&self.space, &key)?.is_some() {
            return Err(KeyStoreError::Exists);
        }
        let locked = self.key.lock(&key, seed.expose(), rng);
        self.put(key, locked)?;
        Ok(IdentitySecrets::from_seed(&seed))
    }

    /// All identities, by name.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn identities(&self) -> Result<Vec<(String, IdentitySecrets)>, KeyStoreError> {
        let mut identities = Vec::new();
        for (key, locked) in scan_all(self.store.as_ref(), &self.space, IDENTITIES)? {
            let seed = self.key.unlock(&key, &locked)?;
            let seed = Secret::from_slice(&seed).ok_or(KeyStoreError::Damaged)?;
            let name = String::from_utf8_lossy(key.get(IDENTITIES.len()..).unwrap_or_default());
            let secrets = IdentitySecrets::from_seed(&seed);
            identities.push((name.into_owned(), secrets));
        }
        Ok(identities)
    }

    /// Adds a stream's master secret, locked, to a batch.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn stage(
        &self,
        stream: &StreamKey,
        batch: &mut Batch,
        rng: &mut impl CryptoRng,
    ) -> Result<(), KeyStoreError> {
        let stored = StoredStream {
            schema: stream.purpose.schema,
            owner: stream.purpose.owner,
            controller: stream.controller,
            owner_name: stream.owner_name.clone(),
            producer: stream.producer.clone(),
            master: Zeroizing::new(*stream.master.secret().expose()),
        };
        // As large as it needs: growing would leave copies behind.
        let size = postcard::experimental::serialized_size(&stored);
        let mut bytes = Zeroizing::new(vec![0; size.map_err(|_| KeyStoreError::Damaged)?]);
        postcard::to_slice(&stored, &mut bytes).map_err(|_| KeyStoreError::Damaged)?;
        let key = [STREAMS, &stream.purpose.stream.0].concat();
        let locked = self.key.lock(&key, &bytes, rng);
        Ok(batch.put(&self.space, key, locked)?)
    }

    /// One stream.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn stream_of(&self, stream: &StreamId) -> Result<Option<StreamKey>, KeyStoreError> {
        let key = [STREAMS, &stream.0].concat();
        let locked = self.store.get(&self.space, &key)?;
        locked.map(|locked| self.stream(&key, &locked)).transpose()
    }

    /// All streams.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn streams(&self) -> Result<Vec<StreamKey>, KeyStoreError> {
        let entries = scan_all(self.store.as_ref(), &self.space, STREAMS)?;
        entries.iter().map(|(key, locked)| self.stream(key, locked)).collect()
    }

    fn stream(&self, key: &[u8], locked: &[u8]) -> Result<StreamKey, KeyStoreError> {
        let opened = self.key.unlock(key, locked)?;
        let stored: StoredStream =
            postcard::from_bytes(&opened).map_err(|_| KeyStoreError::Damaged)?;
        let id = key.get(STREAMS.len()..).and_then(|id| id.try_into().ok());
        let stream = StreamId(id.ok_or(KeyStoreError::Damaged)?);
        let StoredStream { schema, owner, controller, owner_name, producer, master } = stored;
        let purpose = Purpose { stream, schema, owner };
        let master =
            MasterSecret::new(Secret::from_slice(&master[..]).ok_or(KeyStoreError::Damaged)?);
        Ok(StreamKey { purpose, controller, owner_name, producer, master })
    }

    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> Result<(), KeyStoreError> {
        let mut batch = Batch::new();
        batch.put(&self.space, key, value)?;
        self.store.commit(batch)?;
        Ok(())
    }
}

fn derive(key_file: &[u8], salt: &[u8; 16], hardness: Hardness) -> Result<VaultKey, KeyStoreError> {
    if key_file.len() < SHORTEST {
        return Err(KeyStoreError::ShortKey(key_file.len()));
    }
    VaultKey::derive(key_file, salt, hardness).map_err(|_| KeyStoreError::Damaged)
}

/// Reads a key file; a line's end does not count.
///
/// # Errors
/// If it cannot be read, or if others than its owner can.
pub fn read_key_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mode = std::fs::metadata(path).blame_io(path)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(KeyStoreError::OpenKey(mode & 0o777)).blame_input(path);
    }
    let mut bytes = Zeroizing::new(std::fs::read(path).blame_io(path)?);
    while bytes.last().is_some_and(u8::is_ascii_whitespace) {
        bytes.pop();
    }
    Ok(bytes)
}

impl From<KeyStoreError> for Failure {
    fn from(error: KeyStoreError) -> Failure {
        let category = match error {
            KeyStoreError::Store(_) => Category::Io,
            _ => Category::Input,
        };
        Failure::new(category, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "a key file of some length\n").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_key_file(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Ok(bytes) = read {
                assert_eq!(*bytes, b"a key file of some length");
            }
        }
    }
}
