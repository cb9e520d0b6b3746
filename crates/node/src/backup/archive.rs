//! The file of a backup.
//!
//! ```text
//! "ALPHBAK1"  header:u16 bytes  (chunk:u32 bytes)*
//! ```
//! little-endian. The header has the salt and the hardness of the key, in the clear, and a check of the key. A
//! chunk is encrypted under its number and whether it is the last one, so that none can be changed, moved, left
//! out or cut off without notice. Within the chunks are items, each with its length before it; the first says
//! whose backup it is, and the last how many there were.

use super::BackupError;
use crate::failure::{Blame, Category, Failure};
use crate::files::other_format;
use alpheus_crypto::vault::{Hardness, VaultKey};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use zeroize::{Zeroize, Zeroizing};

const MAGIC: &[u8; 8] = b"ALPHBAK1";
const CHECK: &[u8] = b"alpheus backup key";
/// Bytes of a chunk before it is encrypted.
const CHUNK: usize = 1 << 20;
/// The largest encrypted chunk that is read.
const MAX_CHUNK: usize = CHUNK + 256;
/// The largest item: the largest value of a store, and its key.
const MAX_ITEM: usize = 128 << 20;

/// Whose backup it is, and when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The role of the process, if its identity folder is in the backup.
    pub role: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The program that made the backup.
    pub build: String,
    /// When, in microseconds since 1970.
    pub created: u64,
}

/// Where a file belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// The identity folder.
    Identity,
    /// The state folder, beside the store.
    State,
    /// The slot file.
    Slots,
    /// The fence: how far ledgers had come when the backup was made. It is never put back into use.
    Fence,
}

/// A part of a backup.
#[derive(Serialize, Deserialize)]
pub enum Item {
    /// The first.
    About(About),
    /// A file, by its path below the folder that it is from.
    File {
        /// Where it belongs.
        origin: Origin,
        /// Its path, with `/` between folders.
        name: String,
        /// Its content.
        bytes: Zeroizing<Vec<u8>>,
    },
    /// An entry of the store.
    Entry {
        /// Whether it is a chunk of records.
        is_log: bool,
        /// Its key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The last: how many were before it.
    End(u64),
}

#[derive(Serialize, Deserialize)]
struct Header {
    salt: [u8; 16],
    hardness: Hardness,
    /// Nothing, locked: it opens with the right key.
    check: Vec<u8>,
}

fn name_of(number: u64, is_last: bool) -> Vec<u8> {
    [b"alpheus backup/", &number.to_le_bytes()[..], &[u8::from(is_last)]].concat()
}

/// Writes a backup.
pub struct Writer<W, R> {
    out: W,
    rng: R,
    key: VaultKey,
    waiting: Zeroizing<Vec<u8>>,
    chunks: u64,
    items: u64,
}

impl<W: Write, R: CryptoRng> Writer<W, R> {
    /// Begins a backup that `secret` opens.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        mut out: W,
        secret: &[u8],
        hardness: Hardness,
        mut rng: R,
    ) -> Result<Self, Failure> {
        let mut salt = [0; 16];
        rng.fill_bytes(&mut salt);
        let key = VaultKey::derive(secret, &salt, hardness).blame(Category::Input)?;
        let check = key.lock(CHECK, b"", &mut rng);
        let header =
            postcard::to_allocvec(&Header { salt, hardness, check }).blame(Category::Check)?;
        let length = u16::try_from(header.len()).blame(Category::Check)?.to_le_bytes();
        out.write_all(&[MAGIC, &length[..], &header].concat()).blame(Category::Io)?;
        let waiting = Zeroizing::new(Vec::with_capacity(CHUNK));
        Ok(Self { out, rng, key, waiting, chunks: 0, items: 0 })
    }

    /// Adds an item.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, item: &Item) -> Result<(), Failure> {
        let bytes = Zeroizing::new(postcard::to_allocvec(item).blame(Category::Check)?);
        let length = u32::try_from(bytes.len()).blame(Category::Check)?;
        self.items += 1;
        for mut rest in [&length.to_le_bytes()[..], &bytes] {
            while !rest.is_empty() {
                if self.waiting.len() == CHUNK {
                    self.chunk(false)?;
                    self.waiting.zeroize();
                }
                // It never grows: a longer copy would leave this one in memory.
                let (now, later) = rest.split_at(rest.len().min(CHUNK - self.waiting.len()));
                self.waiting.extend_from_slice(now);
                rest = later;
            }
        }
        Ok(())
    }

    /// Ends the backup, and gives back where it was written.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self) -> Result<W, Failure> {
        self.push(&Item::End(self.items))?;
        self.chunk(true)?;
        Ok(self.out)
    }

    fn chunk(&mut self, is_last: bool) -> Result<(), Failure> {
        let locked = self.key.lock(&name_of(self.chunks, is_last), &self.waiting, &mut self.rng);
        let length = u32::try_from(locked.len()).blame(Category::Check)?;
        self.out.write_all(&length.to_le_bytes()).blame(Category::Io)?;
        self.out.write_all(&locked).blame(Category::Io)?;
        self.chunks += 1;
        Ok(())
    }
}

/// Reads a backup, and checks all that it gives.
pub struct Reader<R> {
    input: R,
    key: VaultKey,
    opened: Zeroizing<Vec<u8>>,
    at: usize,
    chunks: u64,
    items: u64,
    is_last: bool,
}

impl<R: Read> Reader<R> {
    /// Opens a backup; whose it is.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn open(mut input: R, secret: &[u8]) -> Result<(Self, About), BackupError> {
        let mut magic = [0; 8];
        input.read_exact(&mut magic).map_err(|_| BackupError::Other)?;
        if magic != *MAGIC {
            let other =
                || other_format(&magic, MAGIC).map_or(BackupError::Other, BackupError::Format);
            return Err(other());
        }
        let mut length = [0; 2];
        input.read_exact(&mut length).map_err(|_| BackupError::Cut)?;
        let mut header = vec![0; usize::from(u16::from_le_bytes(length))];
        input.read_exact(&mut header).map_err(|_| BackupError::Cut)?;
        let header: Header = postcard::from_bytes(&header).map_err(|_| BackupError::Changed)?;
        let key = VaultKey::derive(secret, &header.salt, header.hardness);
        let key = key.map_err(|_| BackupError::Changed)?;
        key.unlock(CHECK, &header.check).map_err(|_| BackupError::Key)?;
        let opened = Zeroizing::default();
        let mut reader = Self { input, key, opened, at: 0, chunks: 0, items: 0, is_last: false };
        match reader.next_item()? {
            Some(Item::About(about)) => Ok((reader, about)),
            _ => Err(BackupError::Changed),
        }
    }

    /// The next item; none after the last one.
    ///
    /// # Errors
    /// [`BackupError`]: what was read before is not a whole backup.
    pub fn next_item(&mut self) -> Result<Option<Item>, BackupError> {
        let length = u32::from_le_bytes(self.take(4)?[..].try_into().unwrap_or_default());
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_ITEM {
            return Err(BackupError::Changed);
        }
        let item = postcard::from_bytes(&self.take(length)?).map_err(|_| BackupError::Changed)?;
        if let Item::End(items) = item {
            let is_whole = items == self.items && self.is_last && self.at == self.opened.len();
            let is_alone = self.input.read(&mut [0]).map_err(BackupError::from)? == 0;
            return if is_whole && is_alone { Ok(None) } else { Err(BackupError::Changed) };
        }
        self.items += 1;
        Ok(Some(item))
    }

    /// So many bytes of the items.
    fn take(&mut self, wanted: usize) -> Result<Zeroizing<Vec<u8>>, BackupError> {
        let mut taken = Zeroizing::new(Vec::with_capacity(wanted));
        while taken.len() < wanted {
            if self.at == self.opened.len() {
                self.chunk()?;
                continue;
            }
            let end = self.opened.len().min(self.at + wanted - taken.len());
            taken.extend_from_slice(self.opened.get(self.at..end).unwrap_or_default());
            self.at = end;
        }
        Ok(taken)
    }

    fn chunk(&mut self) -> Result<(), BackupError> {
        if self.is_last {
            return Err(BackupError::Changed);
        }
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_CHUNK {
            return Err(BackupError::Changed);
        }
        let mut locked = vec![0; length];
        self.input.read_exact(&mut locked)?;
        let open = |is_last| self.key.unlock(&name_of(self.chunks, is_last), &locked);
        let (opened, is_last) = match open(false) {
            Ok(opened) => (opened, false),
            Err(_) => (open(true).map_err(|_| BackupError::Changed)?, true),
        };
        (self.opened, self.at, self.is_last) = (opened, 0, is_last);
        self.chunks += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    const SECRET: &[u8] = b"a key file of some length";
    const WEAK: Hardness = Hardness { memory: 8, passes: 1 };

    fn about() -> About {
        let (role, name) = (Some("server".to_owned()), Some("service".to_owned()));
        About { role, name, build: "alpheus/1".into(), created: 7 }
    }

    fn written(entries: usize) -> Vec<u8> {
        let rng = ChaCha20Rng::seed_from_u64(1);
        let mut writer = Writer::begin(Vec::new(), SECRET, WEAK, rng).unwrap();
        writer.push(&Item::About(about())).unwrap();
        let bytes = Zeroizing::new(b"seed".to_vec());
        let file = Item::File { origin: Origin::Identity, name: "tls.key".into(), bytes };
        writer.push(&file).unwrap();
        for number in 0..entries {
            let (key, value) = (number.to_be_bytes().to_vec(), vec![7; 100_000]);
            writer.push(&Item::Entry { is_log: true, key, value }).unwrap();
        }
        writer.end().unwrap()
    }

    /// How many items follow the first, if all is well.
    fn read(bytes: &[u8], secret: &[u8]) -> Result<usize, BackupError> {
        let (mut reader, found) = Reader::open(bytes, secret)?;
        assert_eq!(found, about());
        let mut items = 0;
        while reader.next_item()?.is_some() {
            items += 1;
        }
        Ok(items)
    }

    #[test]
    fn what_was_written_is_read() {
        for entries in [0, 1, 50] {
            assert_eq!(read(&written(entries), SECRET).unwrap(), entries + 1);
        }
        let written = written(1);
        assert!(!written.windows(4).any(|four| four == b"seed"));
    }

    #[test]
    fn another_key_another_format_and_another_file_differ() {
        let bytes = written(1);
        assert!(matches!(read(&bytes, b"another key file"), Err(BackupError::Key)));
        let newer = [b"ALPHBAK2", &bytes[8..]].concat();
        assert!(matches!(read(&newer, SECRET), Err(BackupError::Format('2'))));
        assert!(matches!(read(b"ALPHOWN1 and more", SECRET), Err(BackupError::Other)));
        assert!(matches!(read(b"", SECRET), Err(BackupError::Other)));
    }

    #[test]
    fn a_backup_that_was_cut_anywhere_is_refused() {
        let bytes = written(25);
        for end in (8..bytes.len()).step_by(4_999) {
            assert!(matches!(read(&bytes[..end], SECRET), Err(BackupError::Cut)), "{end}");
        }
    }

    #[test]
    fn a_backup_that_was_changed_anywhere_is_refused() {
        let bytes = written(25);
        for at in (8..bytes.len()).step_by(9_973).chain([8, 9, 12, 60, bytes.len() - 1]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(&changed, SECRET).is_err(), "{at}");
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(matches!(read(&longer, SECRET), Err(BackupError::Changed)));
    }

    /// The second and the third chunk change places.
    #[test]
    fn chunks_keep_their_order() {
        let bytes = written(40);
        let header = usize::from(u16::from_le_bytes(bytes[8..10].try_into().unwrap()));
        let mut at = 10 + header;
        let mut chunks = Vec::new();
        while at < bytes.len() {
            let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            chunks.push(&bytes[at..at + 4 + length]);
            at += 4 + length;
        }
        assert!(chunks.len() > 3);
        chunks.swap(1, 2);
        let moved = [&bytes[..10 + header], &chunks.concat()].concat();
        assert!(matches!(read(&moved, SECRET), Err(BackupError::Changed)));
        // The end without what was before it.
        let last = chunks.last().unwrap();
        let short = [&bytes[..10 + header], chunks[0], last].concat();
        assert!(matches!(read(&short, SECRET), Err(BackupError::Changed)));
    }
}
