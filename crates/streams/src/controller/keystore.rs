//! The encrypted key store of a host of controllers: identities' seeds and
//! streams' master secrets, each locked under the key file's key; a master secret
//! under its [slot](alpheus_node::slots) as well, so that it can be destroyed.
//!
//! | key | value, locked |
//! | --- | --- |
//! | `vault` | salt and hardness in the clear, and a known value to recognise a wrong key file |
//! | `identity/<name>` | a seed |
//! | `stream/<id>` | the slot in the clear; the stream's owner; its master secret, under the slot too |

use alpheus_crypto::secret::Secret;
use alpheus_crypto::vault::{Hardness, UnlockError, VaultKey};
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::ledger::scan_all;
use alpheus_node::slots::{SlotError, SlotFile};
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_transport::{Batch, Space, Store};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

const HEADER: &[u8] = b"vault";
const IDENTITIES: &[u8] = b"identity/";
const STREAMS: &[u8] = b"stream/";
const KNOWN: &[u8] = b"alpheus key store";
const VERSION: u8 = 2;
/// Minimum length of a key file's secret.
const MIN_KEY_BYTES: usize = 16;

/// Why the key store cannot be used.
#[derive(Debug, Error)]
pub enum KeyStoreError {
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// The slot file.
    #[error(transparent)]
    Slots(#[from] SlotError),
    /// Made by another version of the program.
    #[error(
        "the key store has format {0}, but this version reads format {VERSION}: use the version that created it, or hand the streams over to a new store"
    )]
    Format(u8),
    /// Too short to be a secret.
    #[error(
        "the key file has {0} bytes, fewer than 16: write random ones to it, as in `head -c 32 /dev/urandom | base64`"
    )]
    ShortKey(usize),
    /// Another key file.
    #[error(
        "the key store cannot be opened with this key file: use the one that it was created with"
    )]
    WrongKey,
    /// An entry is damaged.
    #[error("an entry of the key store is corrupted; restore the state folder from a backup")]
    Damaged,
    /// It exists already.
    #[error("there is already a key store")]
    Exists,
    /// It does not exist.
    #[error("there is no key store here; `alpheus controller init` creates one")]
    Absent,
}

impl From<UnlockError> for KeyStoreError {
    fn from(_: UnlockError) -> Self {
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

/// A stream's master secret and metadata.
pub struct StreamKey {
    /// What it is for.
    pub purpose: Purpose,
    /// The controller that holds it.
    pub controller: ControllerId,
    /// The name on the certificate of the owner, who may choose and read the log.
    pub owner_name: String,
    /// The name on the device's certificate.
    pub producer: String,
    /// The secret; none once it is destroyed.
    pub master: Option<MasterSecret>,
}

/// The metadata, as it is locked.
#[derive(Serialize, Deserialize)]
struct StoredStream {
    schema: SchemaId,
    owner: OwnerId,
    controller: ControllerId,
    owner_name: String,
    producer: String,
}

/// An entry: metadata and master secret, locked; the secret under the slot as well.
#[derive(Serialize, Deserialize)]
struct Entry {
    slot: u64,
    stream: Vec<u8>,
    master: Vec<u8>,
}

/// The key store, open.
pub struct KeyStore {
    store: Arc<dyn Store>,
    space: Space,
    key: VaultKey,
    slots: SlotFile,
}

impl KeyStore {
    /// Creates a key store.
    ///
    /// # Errors
    /// [`KeyStoreError::Exists`] if there is one.
    pub fn create(
        store: Arc<dyn Store>,
        space: Space,
        slots: SlotFile,
        key_file: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<KeyStore, KeyStoreError> {
        store.ensure_space(&space)?;
        if store.get(&space, HEADER)?.is_some() {
            return Err(KeyStoreError::Exists);
        }
        let (mut salt, hardness) = ([0; 16], Hardness::of(key_file));
        rng.fill_bytes(&mut salt);
        let key = derive(key_file, &salt, hardness)?;
        let known = key.lock(HEADER, KNOWN, rng);
        let header = Header { version: VERSION, salt, hardness, known };
        let header = postcard::to_allocvec(&header).map_err(|_| KeyStoreError::Damaged)?;
        let mut batch = Batch::new();
        batch.put(&space, HEADER, header)?;
        store.commit(batch)?;
        Ok(KeyStore { store, space, key, slots })
    }

    /// Opens the key store.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn open(
        store: Arc<dyn Store>,
        space: Space,
        slots: SlotFile,
        key_file: &[u8],
    ) -> Result<KeyStore, KeyStoreError> {
        store.ensure_space(&space)?;
        let header = store.get(&space, HEADER)?.ok_or(KeyStoreError::Absent)?;
        let header: Header = postcard::from_bytes(&header).map_err(|_| KeyStoreError::Damaged)?;
        if header.version != VERSION {
            return Err(KeyStoreError::Format(header.version));
        }
        let key = derive(key_file, &header.salt, header.hardness)?;
        key.unlock(HEADER, &header.known).map_err(|_| KeyStoreError::WrongKey)?;
        Ok(KeyStore { store, space, key, slots })
    }

    /// Draws an identity's seed and stores it.
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

    /// Adds a new stream's locked master secret to a batch; its slot is durable at once.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn stage(
        &self,
        (purpose, master): (&Purpose, &MasterSecret),
        (controller, owner_name, producer): (ControllerId, &str, &str),
        batch: &mut Batch,
        rng: &mut impl CryptoRng,
    ) -> Result<(), KeyStoreError> {
        let Purpose { stream, schema, owner } = *purpose;
        let (owner_name, producer) = (owner_name.to_owned(), producer.to_owned());
        let stored = StoredStream { schema, owner, controller, owner_name, producer };
        let stored = postcard::to_allocvec(&stored).map_err(|_| KeyStoreError::Damaged)?;
        let key = [STREAMS, &stream.0].concat();
        let (slot, secret) = self.slots.draw(rng)?;
        let (name, master) = (lock_name(&key, slot), master.secret().expose());
        let entry = Entry {
            slot,
            stream: self.key.lock(&name, &stored, rng),
            master: self.key.with_slot(&secret).lock(&name, master, rng),
        };
        let value = postcard::to_allocvec(&entry).map_err(|_| KeyStoreError::Damaged)?;
        Ok(batch.put(&self.space, key, value)?)
    }

    /// Destroys the keys of streams whose erasure is durable. Repeating it overwrites
    /// them again, as is necessary after a crash or a failure.
    ///
    /// # Errors
    /// [`KeyStoreError`]; keys may still exist then.
    pub fn destroy<'a>(
        &self,
        streams: impl IntoIterator<Item = &'a StreamId>,
    ) -> Result<(), KeyStoreError> {
        let mut slots = Vec::new();
        for stream in streams {
            let key = [STREAMS, &stream.0].concat();
            let value = self.store.get(&self.space, &key)?.ok_or(KeyStoreError::Damaged)?;
            // Authenticate the entry first: a forged slot number could be another stream's.
            slots.push(self.stored(&key, &value)?.0.slot);
        }
        Ok(self.slots.destroy(slots)?)
    }

    /// One stream.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn stream_of(&self, stream: &StreamId) -> Result<Option<StreamKey>, KeyStoreError> {
        let key = [STREAMS, &stream.0].concat();
        let value = self.store.get(&self.space, &key)?;
        value.map(|value| self.stream(&key, &value)).transpose()
    }

    /// All streams, including those whose keys are destroyed.
    ///
    /// # Errors
    /// [`KeyStoreError`].
    pub fn streams(&self) -> Result<Vec<StreamKey>, KeyStoreError> {
        let entries = scan_all(self.store.as_ref(), &self.space, STREAMS)?;
        entries.iter().map(|(key, value)| self.stream(key, value)).collect()
    }

    fn stream(&self, key: &[u8], value: &[u8]) -> Result<StreamKey, KeyStoreError> {
        let (Entry { slot, master, .. }, stored) = self.stored(key, value)?;
        let id = key.get(STREAMS.len()..).and_then(|id| id.try_into().ok());
        let stream = StreamId(id.ok_or(KeyStoreError::Damaged)?);
        let StoredStream { schema, owner, controller, owner_name, producer } = stored;
        let purpose = Purpose { stream, schema, owner };
        let name = lock_name(key, slot);
        let unlock = |slot| {
            let master = self.key.with_slot(&slot).unlock(&name, &master)?;
            let master = Secret::from_slice(&master).ok_or(KeyStoreError::Damaged)?;
            Ok::<_, KeyStoreError>(MasterSecret::new(master))
        };
        let master = self.slots.read(slot)?.map(unlock).transpose()?;
        Ok(StreamKey { purpose, controller, owner_name, producer, master })
    }

    fn stored(&self, key: &[u8], value: &[u8]) -> Result<(Entry, StoredStream), KeyStoreError> {
        let damaged = |_| KeyStoreError::Damaged;
        let entry: Entry = postcard::from_bytes(value).map_err(damaged)?;
        let opened = self.key.unlock(&lock_name(key, entry.slot), &entry.stream)?;
        Ok((entry, postcard::from_bytes(&opened).map_err(damaged)?))
    }

    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> Result<(), KeyStoreError> {
        let mut batch = Batch::new();
        batch.put(&self.space, key, value)?;
        self.store.commit(batch)?;
        Ok(())
    }
}

/// The name under which an entry's parts are locked, with the slot's number.
fn lock_name(key: &[u8], slot: u64) -> Vec<u8> {
    [key, &slot.to_le_bytes()].concat()
}

fn derive(key_file: &[u8], salt: &[u8; 16], hardness: Hardness) -> Result<VaultKey, KeyStoreError> {
    if key_file.len() < MIN_KEY_BYTES {
        return Err(KeyStoreError::ShortKey(key_file.len()));
    }
    VaultKey::derive(key_file, salt, hardness).map_err(|_| KeyStoreError::Damaged)
}

impl From<KeyStoreError> for Failure {
    fn from(error: KeyStoreError) -> Failure {
        let category = match error {
            KeyStoreError::Store(_) | KeyStoreError::Slots(SlotError::Io { .. }) => Category::Io,
            _ => Category::Input,
        };
        Failure::new(category, error)
    }
}
