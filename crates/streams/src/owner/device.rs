//! A device's file: the key of one stream. Anyone who has it can read the stream, so
//! only its owner may read the file.

use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::schema::Schema;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// The file, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    version: u32,
    stream: StreamId,
    schema: SchemaId,
    /// The master secret.
    secret: Zeroizing<String>,
}

impl DeviceFile {
    /// The file of a stream.
    #[must_use]
    pub fn new(stream: StreamId, schema: &Schema, master: &MasterSecret) -> DeviceFile {
        DeviceFile {
            version: VERSION,
            stream,
            schema: schema.id(),
            secret: Zeroizing::new(HEXLOWER.encode(master.secret().expose())),
        }
    }

    /// Writes a new file that only its owner can read.
    ///
    /// # Errors
    /// If it exists already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = Zeroizing::new(serde_json::to_string_pretty(self).blame_io(path)?);
        write_new(path, text.as_bytes(), Readers::Owner)
    }

    /// Checks that this is the file of a stream.
    ///
    /// # Errors
    /// If it cannot be read, or belongs to another stream.
    pub fn check(path: &Path, stream: &StreamId) -> Result<(), Failure> {
        if DeviceFile::load(path)?.stream == *stream {
            return Ok(());
        }
        Err("this is the file of another stream").blame_input(path)
    }

    /// Overwrites it in place, then removes it.
    ///
    /// # Errors
    /// If that fails; the key may still be there.
    pub fn destroy(path: &Path) -> Result<(), Failure> {
        let wipe = || {
            let mut file = OpenOptions::new().write(true).open(path)?;
            let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
            file.write_all(&vec![0; length])?;
            file.sync_all()?;
            std::fs::remove_file(path)
        };
        wipe().blame_io(path)
    }

    fn load(path: &Path) -> Result<DeviceFile, Failure> {
        let text = Zeroizing::new(std::fs::read_to_string(path).blame_io(path)?);
        serde_json::from_str(&text)
            .map_err(|error| format!("not a device file: line {}", error.line()))
            .blame_input(path)
    }

    /// Reads it; it must be of this schema.
    ///
    /// # Errors
    /// If it cannot be read, is not a device file, or is for another schema.
    pub fn read(path: &Path, schema: &Schema) -> Result<(StreamId, MasterSecret), Failure> {
        let file = DeviceFile::load(path)?;
        if file.version != VERSION {
            let found = file.version;
            return Err(format!(
                "the device file has format {found}, but this version reads format {VERSION}: use the version that wrote it, or create the stream again with `alpheus owner add`"
            ))
            .blame_input(path);
        }
        if file.schema != schema.id() {
            return Err("the device file is for another schema, or another version of it")
                .blame_input(path);
        }
        let secret = HEXLOWER_PERMISSIVE.decode(file.secret.as_bytes()).ok().map(Zeroizing::new);
        let secret = secret.and_then(|secret| <[u8; 32]>::try_from(secret.as_slice()).ok());
        let Some(secret) = secret else {
            return Err("the secret is not 64 hexadecimal digits").blame_input(path);
        };
        Ok((file.stream, MasterSecret::new(Secret::from_bytes(secret))))
    }
}
