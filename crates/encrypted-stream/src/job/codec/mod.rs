//! The encoding of the job's messages: version, kind, body. Numbers are big-endian, and
//! texts and lists follow their length.

mod instructions;
mod reports;
mod summaries;

use super::SetDigest;
use super::digest::WORDS;
use alpheus_time::Timestamp;
use std::str::FromStr;

const VERSION: u8 = 1;
/// Maximum elements in a list. No valid list has more, and a false length must not use up
/// memory.
const MAX_ELEMENTS: usize = 1 << 20;
const MAX_BYTES: usize = 1 << 26;

/// Why bytes are not a message of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobMessageError {
    /// The version is not supported.
    #[error(
        "the message has version {0}, which is not supported; run service and job of the same release"
    )]
    Version(u8),
    /// The kind does not belong to the topic.
    #[error("the message has kind {0}, which does not belong to this topic")]
    Kind(u8),
    /// The message ends too early.
    #[error("the message is truncated")]
    Truncated,
    /// A list exceeds the limit.
    #[error("a list in the message exceeds the maximum length")]
    TooLong,
    /// An id, a key, a reason or a flag is invalid.
    #[error("the message has an invalid id, key, reason, flag or number")]
    Malformed,
    /// There are trailing bytes.
    #[error("the message has trailing bytes")]
    Trailing,
}

impl JobMessageError {
    /// A short name for counters and dead letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version(_) => "version",
            Self::Kind(_) => "kind",
            Self::Truncated => "truncated",
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::Trailing => "trailing",
        }
    }
}

/// A message to or from the job.
pub trait JobMessage: Sized {
    /// The number of the message's kind.
    const KIND: u8;

    /// Writes the body.
    #[doc(hidden)]
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the body.
    #[doc(hidden)]
    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError>;

    /// The message as a record of its topic.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, Self::KIND];
        self.write(&mut out);
        out
    }

    /// Reads a record of a topic.
    ///
    /// # Errors
    /// [`JobMessageError`] if the record is not a message of this kind.
    fn from_bytes(bytes: &[u8]) -> Result<Self, JobMessageError> {
        let mut input = Input(bytes);
        let (version, kind) = (input.u8()?, input.u8()?);
        if version != VERSION {
            return Err(JobMessageError::Version(version));
        }
        if kind != Self::KIND {
            return Err(JobMessageError::Kind(kind));
        }
        let message = Self::read(&mut input)?;
        if input.0.is_empty() { Ok(message) } else { Err(JobMessageError::Trailing) }
    }
}

/// The unread rest of a message.
#[doc(hidden)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], JobMessageError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(JobMessageError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u8(&mut self) -> Result<u8, JobMessageError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, JobMessageError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, JobMessageError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, JobMessageError> {
        self.array().map(u64::from_be_bytes)
    }

    fn time(&mut self) -> Result<Timestamp, JobMessageError> {
        self.u64().map(Timestamp)
    }

    fn flag(&mut self) -> Result<bool, JobMessageError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(JobMessageError::Malformed),
        }
    }

    fn length(&mut self, max: usize) -> Result<usize, JobMessageError> {
        let length = usize::try_from(self.u32()?).map_err(|_| JobMessageError::TooLong)?;
        if length > max { Err(JobMessageError::TooLong) } else { Ok(length) }
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], JobMessageError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(JobMessageError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// An id in lower-case hexadecimal digits.
    fn id<T: FromStr + ToString>(&mut self) -> Result<T, JobMessageError> {
        let length = usize::from(self.u16()?);
        let text =
            std::str::from_utf8(self.bytes(length)?).map_err(|_| JobMessageError::Malformed)?;
        let id = text.parse::<T>().map_err(|_| JobMessageError::Malformed)?;
        if id.to_string() == text { Ok(id) } else { Err(JobMessageError::Malformed) }
    }

    /// A list. Its memory grows with the bytes present, not with the stated length.
    fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, JobMessageError>,
    ) -> Result<Vec<T>, JobMessageError> {
        let length = self.length(MAX_ELEMENTS)?;
        let mut list = Vec::with_capacity(length.min(self.0.len()));
        for _ in 0..length {
            list.push(one(self)?);
        }
        Ok(list)
    }

    fn words(&mut self) -> Result<Vec<u64>, JobMessageError> {
        self.list(Self::u64)
    }

    fn digest(&mut self) -> Result<SetDigest, JobMessageError> {
        let words: Result<[u64; WORDS], _> = self.words()?.try_into();
        words.map(SetDigest).map_err(|_| JobMessageError::Malformed)
    }

    /// The positions in a bitmap, ascending; bit 0 is the lowest.
    fn positions(&mut self) -> Result<Vec<u32>, JobMessageError> {
        let length = self.length(MAX_BYTES)?;
        let bytes = (0u32..).zip(self.bytes(length)?);
        let of = |(at, byte): (u32, &u8)| {
            let byte = *byte;
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * at + bit)
        };
        Ok(bytes.flat_map(of).collect())
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    // No message is longer, since a plan's rows, streams and controllers are bounded.
    out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_id(out: &mut Vec<u8>, id: &impl ToString) {
    let text = id.to_string();
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    put_length(out, words.len());
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// As `java.util.BitSet` writes it: without zero bytes at the end.
fn put_positions(out: &mut Vec<u8>, positions: &[u32]) {
    let length = positions.iter().max().map_or(0, |last| last / 8 + 1) as usize;
    put_length(out, length);
    let from = out.len();
    out.resize(from + length, 0);
    for position in positions {
        if let Some(byte) = out.get_mut(from + (position / 8) as usize) {
            *byte |= 1 << (position % 8);
        }
    }
}
