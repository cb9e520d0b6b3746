//! A value of any size under a key of a state space: a batch is limited, and so is a value on Kafka.
//!
//! The parts are written first, in batches of their own, under keys that the present value does not use. Their names are in
//! the caller's batch. Until that is durable, the value before it stands, whole.
//!
//! ```text
//! key                            -> "parts/1" slot:u8 parts:u32 bytes:u64
//! key '/' slot:u8 part:u32       -> bytes
//! ```
//! Integers are big-endian. Two slots take turns.

use crate::batch::Batch;
use crate::error::Error;
use crate::names::Space;
use crate::store::Store;

const MAGIC: &[u8] = b"parts/1";
/// Size of a part: below the limit that brokers have for a record by default.
const PART_BYTES: usize = 512 << 10;

/// Why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LargeValueError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// The store lost parts, or something else wrote them.
    #[error("parts of the value are missing in the store; restore it from a backup")]
    Incomplete,
}

/// A value in parts. Only one thread may write it at a time.
#[derive(Clone, Copy)]
pub struct LargeValue<'a> {
    store: &'a dyn Store,
    space: &'a Space,
    key: &'a [u8],
    part_bytes: usize,
}

/// Takes a value's bytes, and writes each part that is full.
pub struct PartsWriter<'a> {
    value: LargeValue<'a>,
    header: Header,
    open: Vec<u8>,
    failed: Option<Error>,
}

/// What names the parts of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    slot: u8,
    parts: u32,
    bytes: u64,
}

impl Header {
    fn to_bytes(self) -> Vec<u8> {
        let Header { slot, parts, bytes } = self;
        [MAGIC, &[slot], &parts.to_be_bytes(), &bytes.to_be_bytes()].concat()
    }

    /// None if the bytes are not a header.
    fn parse(bytes: &[u8]) -> Option<Header> {
        let (slot, rest) = bytes.strip_prefix(MAGIC)?.split_first()?;
        let (parts, bytes) = rest.split_first_chunk()?;
        let (parts, bytes) =
            (u32::from_be_bytes(*parts), u64::from_be_bytes(bytes.try_into().ok()?));
        Some(Header { slot: *slot, parts, bytes })
    }
}

impl<'a> LargeValue<'a> {
    /// The value under a key. No other key of the space may begin with it.
    #[must_use]
    pub fn new(store: &'a dyn Store, space: &'a Space, key: &'a [u8]) -> Self {
        Self { store, space, key, part_bytes: PART_BYTES }
    }

    /// The same in parts of this size.
    #[must_use]
    pub fn with_part_bytes(self, part_bytes: usize) -> Self {
        Self { part_bytes: part_bytes.max(1), ..self }
    }

    /// The value, if there is one. Bytes that were put under the key directly are a value as well.
    ///
    /// # Errors
    /// [`LargeValueError`].
    pub fn read(&self) -> Result<Option<Vec<u8>>, LargeValueError> {
        let Some(stored) = self.store.get(self.space, self.key)? else { return Ok(None) };
        let Some(header) = Header::parse(&stored) else { return Ok(Some(stored.to_vec())) };
        let length = usize::try_from(header.bytes).map_err(|_| LargeValueError::Incomplete)?;
        // Parts are read as they come: a damaged header must not ask for memory.
        let mut bytes = Vec::new();
        for part in 0..header.parts {
            let part = self.store.get(self.space, &self.part_key(header.slot, part))?;
            bytes.extend_from_slice(&part.ok_or(LargeValueError::Incomplete)?);
        }
        if bytes.len() == length { Ok(Some(bytes)) } else { Err(LargeValueError::Incomplete) }
    }

    /// Replaces the value by what `fill` gives, once `batch` is durable. Parts are in the store before.
    ///
    /// # Errors
    /// The error of `fill`, or of the store. The batch must not be committed then; the value before stands.
    pub fn write<E: From<Error>>(
        &self,
        batch: &mut Batch,
        fill: impl FnOnce(PartsWriter<'a>) -> Result<PartsWriter<'a>, E>,
    ) -> Result<(), E> {
        let present = self.store.get(self.space, self.key)?;
        let present = present.and_then(|stored| Header::parse(&stored));
        let slot = present.map_or(0, |present| present.slot ^ 1);
        let header = Header { slot, parts: 0, bytes: 0 };
        let writer = PartsWriter { value: *self, header, open: Vec::new(), failed: None };
        let header = fill(writer)?.finish()?;
        if let Some(present) = present {
            for part in 0..present.parts {
                batch.delete(self.space, self.part_key(present.slot, part))?;
            }
        }
        // What a write left that was cut off: its parts are in order.
        let mut left = header.parts;
        while self.store.get(self.space, &self.part_key(slot, left))?.is_some() {
            batch.delete(self.space, self.part_key(slot, left))?;
            left += 1;
        }
        Ok(batch.put(self.space, self.key.to_vec(), header.to_bytes())?)
    }

    fn part_key(&self, slot: u8, part: u32) -> Vec<u8> {
        [self.key, b"/", &[slot], &part.to_be_bytes()].concat()
    }
}

impl PartsWriter<'_> {
    fn finish(mut self) -> Result<Header, Error> {
        if !self.open.is_empty() {
            let last = std::mem::take(&mut self.open);
            self.put(last);
        }
        self.failed.map_or(Ok(self.header), Err)
    }

    fn put(&mut self, part: Vec<u8>) {
        if self.failed.is_some() {
            return;
        }
        let Header { slot, parts, bytes } = self.header;
        self.header = Header { slot, parts: parts + 1, bytes: bytes + part.len() as u64 };
        let (value, mut batch) = (self.value, Batch::new());
        let put = batch.put(value.space, value.part_key(slot, parts), part);
        // The header's batch is durable only after all batches before it.
        let accepted = put.and_then(|()| value.store.commit_buffered(batch).map(drop));
        self.failed = accepted.err();
    }
}

impl Extend<u8> for PartsWriter<'_> {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        self.open.extend(bytes);
        while self.open.len() >= self.value.part_bytes {
            let rest = self.open.split_off(self.value.part_bytes);
            let part = std::mem::replace(&mut self.open, rest);
            self.put(part);
        }
    }
}
