//! Records, and the framing of several records.
//!
//! A producer's records for a partition are framed together, as Kafka's record batches are, so
//! that a store handles one value instead of a thousand. All integers are little-endian:
//!
//! ```text
//! chunk  = version:u8  count:u32  record*
//! record = length:u32  timestamp:u64  key:u32  headers:u32  key  headers  value
//! header = name:u16  value:u32  name  value
//! ```
//! `length` is the number of bytes that follow it. The value takes the rest.

use crate::names::Offset;
use bytes::Bytes;

/// First byte of a chunk.
const VERSION: u8 = 1;
/// Version and count.
pub(crate) const CHUNK_HEADER: usize = 5;
/// Bytes of a record before its key.
pub(crate) const RECORD_HEADER: usize = 20;

/// A record to append. It is copied only when it is framed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRecord<'a> {
    /// The key. Records of one key keep their order if they are in one partition (see
    /// [`crate::partition_for_key`]). May be empty.
    pub key: &'a [u8],
    /// The value. May be empty.
    pub value: &'a [u8],
    /// Microseconds since 1970, by the producer's clock.
    pub timestamp: u64,
    /// Names and values for every reader, in addition to the value.
    pub headers: &'a [(&'a str, &'a [u8])],
}

/// A record that was read. Its parts share the memory of its chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its offset in the partition.
    pub offset: Offset,
    /// See [`NewRecord::key`].
    pub key: Bytes,
    /// See [`NewRecord::value`].
    pub value: Bytes,
    /// See [`NewRecord::timestamp`].
    pub timestamp: u64,
    headers: Bytes,
}

impl Record {
    /// Names and values of the headers, in their original order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = &self.headers[..];
        std::iter::from_fn(move || take_header(&mut rest))
    }

    /// The first header with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

#[cfg(feature = "kafka")]
impl Record {
    /// A record with copies of these parts. Headers that exceed our limits are omitted.
    pub(crate) fn new<'a>(
        offset: Offset,
        timestamp: u64,
        key: &[u8],
        value: &[u8],
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let mut bytes = Vec::with_capacity(key.len() + value.len());
        bytes.extend_from_slice(key);
        for (name, value) in headers {
            encode_header(name, value, &mut bytes);
        }
        let end_of_headers = bytes.len();
        bytes.extend_from_slice(value);
        let bytes = Bytes::from(bytes);
        Self {
            offset,
            key: bytes.slice(..key.len()),
            headers: bytes.slice(key.len()..end_of_headers),
            value: bytes.slice(end_of_headers..),
            timestamp,
        }
    }

    /// Bytes of key, headers and value.
    pub(crate) fn len(&self) -> usize {
        self.key.len() + self.headers.len() + self.value.len()
    }
}

/// Appends the framed form of `record`. `None` if a length does not fit.
pub(crate) fn encode(record: &NewRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
    let headers = headers_len(record.headers)?;
    let length = encoded_len(record)?.checked_sub(4)?;
    out.reserve(length + 4);
    out.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    out.extend_from_slice(&record.timestamp.to_le_bytes());
    out.extend_from_slice(&u32::try_from(record.key.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&u32::try_from(headers).ok()?.to_le_bytes());
    out.extend_from_slice(record.key);
    for (name, value) in record.headers {
        encode_header(name, value, out)?;
    }
    out.extend_from_slice(record.value);
    Some(())
}

fn encode_header(name: &str, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (name_len, value_len) = (u16::try_from(name.len()).ok()?, u32::try_from(value.len()).ok()?);
    out.extend_from_slice(&name_len.to_le_bytes());
    out.extend_from_slice(&value_len.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value);
    Some(())
}

/// The number of bytes that [`encode`] adds. `None` if a length does not fit.
pub(crate) fn encoded_len(record: &NewRecord<'_>) -> Option<usize> {
    let sum = [record.key.len(), headers_len(record.headers)?, record.value.len()]
        .into_iter()
        .try_fold(RECORD_HEADER, usize::checked_add)?;
    u32::try_from(sum).ok().map(|_| sum)
}

fn headers_len(headers: &[(&str, &[u8])]) -> Option<usize> {
    headers.iter().try_fold(0usize, |sum, (name, value)| {
        u16::try_from(name.len()).ok()?;
        sum.checked_add(6)?.checked_add(name.len())?.checked_add(value.len())
    })
}

/// Several framed records of a partition, with consecutive offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    bytes: Bytes,
    count: u32,
}

impl Chunk {
    /// Starts the framed form of a chunk.
    pub(crate) fn start(capacity: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity.max(CHUNK_HEADER));
        out.push(VERSION);
        out.extend_from_slice(&[0; 4]);
        out
    }

    /// Finishes a chunk started by [`Chunk::start`].
    pub(crate) fn finish(mut bytes: Vec<u8>, count: u32) -> Self {
        if let Some(field) = bytes.get_mut(1..CHUNK_HEADER) {
            field.copy_from_slice(&count.to_le_bytes());
        }
        Self { bytes: bytes.into(), count }
    }

    /// Checks every length in a chunk from a disk. `None` if one is wrong.
    pub(crate) fn parse(bytes: Bytes) -> Option<Self> {
        let mut rest = &bytes[..];
        let &[version] = take(&mut rest)?;
        let count = u32::from_le_bytes(*take(&mut rest)?);
        for _ in 0..count {
            let length = u32::from_le_bytes(*take(&mut rest)?) as usize;
            let (body, after) = rest.split_at_checked(length)?;
            Parts::split(body)?;
            rest = after;
        }
        (version == VERSION && rest.is_empty()).then_some(Self { bytes, count })
    }

    /// The number of records.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.count)
    }

    /// Bytes of the framed form.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The framed form.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its records, without valid offsets.
    #[cfg(feature = "kafka")]
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let mut at = CHUNK_HEADER;
        std::iter::from_fn(move || {
            let (record, next) = self.record_at(at, Offset(0))?;
            at = next;
            Some(record)
        })
    }

    /// The record whose length field is at byte `at`, and the position of the next one's.
    pub(crate) fn record_at(&self, at: usize, offset: Offset) -> Option<(Record, usize)> {
        let mut rest = self.bytes.get(at..)?;
        let length = u32::from_le_bytes(*take(&mut rest)?) as usize;
        let parts = Parts::split(rest.get(..length)?)?;
        let share = |part: &[u8]| self.bytes.slice_ref(part);
        let record = Record {
            offset,
            key: share(parts.key),
            value: share(parts.value),
            timestamp: parts.timestamp,
            headers: share(parts.headers),
        };
        Some((record, at + 4 + length))
    }
}

/// The parts of a record's body.
struct Parts<'a> {
    timestamp: u64,
    key: &'a [u8],
    headers: &'a [u8],
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    fn split(mut body: &'a [u8]) -> Option<Self> {
        let timestamp = u64::from_le_bytes(*take(&mut body)?);
        let key = u32::from_le_bytes(*take(&mut body)?) as usize;
        let headers = u32::from_le_bytes(*take(&mut body)?) as usize;
        let (key, body) = body.split_at_checked(key)?;
        let (headers, value) = body.split_at_checked(headers)?;
        let mut left = headers;
        while !left.is_empty() {
            take_header(&mut left)?;
        }
        Some(Self { timestamp, key, headers, value })
    }
}

fn take_header<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, &'a [u8])> {
    let name = usize::from(u16::from_le_bytes(*take(rest)?));
    let value = u32::from_le_bytes(*take(rest)?) as usize;
    let (name, after) = rest.split_at_checked(name)?;
    let (value, after) = after.split_at_checked(value)?;
    *rest = after;
    Some((std::str::from_utf8(name).ok()?, value))
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Chunk {
        let mut bytes = Chunk::start(0);
        let headers: &[(&str, &[u8])] = &[("kind", b"data"), ("", b"")];
        let full = NewRecord { key: b"k", value: b"value", timestamp: 7, headers };
        for record in [full, NewRecord::default(), full] {
            let before = bytes.len();
            encode(&record, &mut bytes).unwrap();
            assert_eq!(bytes.len() - before, encoded_len(&record).unwrap());
        }
        Chunk::finish(bytes, 3)
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let chunk = chunk();
        let mut at = CHUNK_HEADER;
        let next = |offset| {
            let (record, after) = chunk.record_at(at, Offset(offset))?;
            at = after;
            Some(record)
        };
        let read: Vec<_> = (40..).map_while(next).collect();
        assert_eq!(read.iter().map(|r| r.offset.0).collect::<Vec<_>>(), [40, 41, 42]);
        assert_eq!(
            (&read[0].key[..], &read[0].value[..], read[0].timestamp),
            (&b"k"[..], &b"value"[..], 7)
        );
        assert_eq!(read[2].headers().collect::<Vec<_>>(), [("kind", &b"data"[..]), ("", b"")]);
        assert_eq!(read[1].header("kind"), None);
        assert!(read[1].value.is_empty() && read[1].key.is_empty());
    }

    #[test]
    fn a_chunk_that_is_cut_or_has_a_wrong_length_is_rejected() {
        let good = chunk();
        assert_eq!(Chunk::parse(good.bytes.clone()), Some(good.clone()));
        for cut in 0..good.len() {
            assert_eq!(Chunk::parse(good.bytes.slice(..cut)), None, "cut at {cut}");
        }
        for at in [0, 1, 4, 5, 9, 17, 21] {
            let mut bad = good.bytes.to_vec();
            bad[at] ^= 0x40;
            let is_timestamp = (9..17).contains(&at);
            assert_eq!(Chunk::parse(bad.into()).is_some(), is_timestamp, "byte {at}");
        }
    }

    /// Damaged bytes are either rejected or read to their end.
    #[test]
    fn any_bytes_are_rejected_or_read_completely() {
        let good = chunk();
        let mut seed = 1u64;
        let mut draw = |bound: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            usize::try_from(seed >> 33).unwrap() % bound
        };
        for _ in 0..20_000 {
            let mut bytes = good.bytes.to_vec();
            for _ in 0..=draw(3) {
                let at = draw(bytes.len());
                bytes[at] = u8::try_from(draw(256)).unwrap();
            }
            let Some(parsed) = Chunk::parse(bytes.into()) else { continue };
            let mut at = CHUNK_HEADER;
            for offset in 0..parsed.count() {
                let (record, after) = parsed.record_at(at, Offset(offset)).unwrap();
                record.headers().for_each(drop);
                at = after;
            }
            assert_eq!(at, parsed.len());
        }
    }
}
