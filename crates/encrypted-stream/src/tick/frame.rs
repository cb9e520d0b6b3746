//! Tick frames on the wire. The stream is the record's key and is not in the frame.
//!
//! | bytes | tick `0x21`, closing tick `0x23` | gap `0x22`, closing gap `0x24` |
//! | --- | --- | --- |
//! | 1 | version and kind | version and kind |
//! | 8 | session | session |
//! | 8 | to | from |
//! | 8 | masked count | to |
//! | 8 | | masked count |
//! | 16 | root | root |
//! | 16 | tag | tag |
//! | 8·L | words | |
//! | 16 | MAC of the session key | MAC of the session key |
//!
//! Numbers and words are little-endian. An [`opening`](crate::tick::opening) is `0x20`.

use crate::frame::Words;
use crate::tick::claim::{Claim, ClaimKind, RootPrefix};
use crate::tick::opening::OpeningView;
use alpheus_crypto::labels;
use alpheus_crypto::mac::{MacKey, Tag, TagError};
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::StreamId;
use alpheus_time::{Span, Timestamp};

/// The first byte of an opening.
pub const OPENING: u8 = 0x20;
const TICK: u8 = 0x21;
const GAP: u8 = 0x22;
const CLOSING_TICK: u8 = 0x23;
const CLOSING_GAP: u8 = 0x24;

/// Bytes of a tick frame before its words.
pub const TICK_HEAD: usize = 57;
/// Bytes of a gap frame before its MAC.
pub const GAP_HEAD: usize = 65;
/// Bytes of the MAC at the end of every frame.
pub const MAC_LEN: usize = 16;

/// The key of a session, which the device shares with the service alone. It authenticates
/// frames to the service and opens nothing.
pub struct SessionKey(MacKey);

impl SessionKey {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &Secret<32>) -> Self {
        Self(MacKey::new(key))
    }

    /// Completes a frame: appends the MAC of what is there.
    pub fn finish(&self, stream: &StreamId, frame: &mut Vec<u8>) {
        let tag = self.0.tag(labels::TICK_FRAME, &[&stream.0, frame]);
        frame.extend(tag.0);
    }

    /// Checks the MAC at the end of a frame. A frame counts for nothing before.
    ///
    /// # Errors
    /// [`TagError`] if the session's device did not send it for this stream.
    pub fn verify(&self, stream: &StreamId, frame: &[u8]) -> Result<(), TagError> {
        let (body, tag) = frame.split_last_chunk::<MAC_LEN>().ok_or(TagError)?;
        self.0.verify(labels::TICK_FRAME, &[&stream.0, body], &Tag(*tag))
    }
}

/// A frame over received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TickFrame<'a> {
    /// The first of a session.
    Opening(OpeningView<'a>),
    /// A tick with its words.
    Tick(Claim, Words<'a>),
    /// A time in which nothing happened.
    Gap(Claim),
}

/// Why bytes are not a frame. Reveals only times and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickFrameError {
    /// There are no bytes.
    #[error("the frame is empty")]
    Empty,
    /// The first byte is not a known version and kind.
    #[error(
        "unknown frame kind {0:#04x}, expected 0x20 to 0x24; the sender may run another version"
    )]
    UnknownKind(u8),
    /// It ends too early.
    #[error("the frame has {length} bytes; this kind has at least {least}")]
    Truncated {
        /// Bytes of the frame.
        length: usize,
        /// The fewest that its kind has.
        least: usize,
    },
    /// It continues after its end.
    #[error("the frame has {length} bytes; this kind has {most}")]
    TooLong {
        /// Bytes of the frame.
        length: usize,
        /// The most that its kind has.
        most: usize,
    },
    /// The ciphertext is missing, too long, or not a whole number of words.
    #[error(transparent)]
    Words(#[from] crate::frame::FrameError),
    /// The time does not fit the cipher's 52 bits.
    #[error("the time {} µs is not below 2^52", .0.0)]
    TimeBeyondLimit(Timestamp),
    /// The time that it covers ends before it starts.
    #[error("the frame covers no time: it ends at {} µs and starts at {} µs", .to.0, .from.0)]
    Order {
        /// The start.
        from: Timestamp,
        /// The end.
        to: Timestamp,
    },
    /// The flag of a previous session is neither 0 nor 1, or 0 and followed by one.
    #[error("the flag of the previous session is {0}; expected 1, or 0 with zeros after it")]
    PreviousFlag(u8),
}

impl<'a> TickFrame<'a> {
    /// Reads a frame of a stream whose schema has this tick. Any bytes result in a frame or an
    /// error.
    ///
    /// Checks only the form: [`SessionKey::verify`] checks who sent it.
    ///
    /// # Errors
    /// [`TickFrameError`] if the bytes are not a frame.
    pub fn parse(bytes: &'a [u8], tick: Span) -> Result<Self, TickFrameError> {
        let kind = *bytes.first().ok_or(TickFrameError::Empty)?;
        let kind = match kind {
            OPENING => return OpeningView::parse(bytes).map(Self::Opening),
            TICK => ClaimKind::Tick,
            GAP => ClaimKind::Gap,
            CLOSING_TICK => ClaimKind::ClosingTick,
            CLOSING_GAP => ClaimKind::ClosingGap,
            other => return Err(TickFrameError::UnknownKind(other)),
        };
        let head = if kind.is_gap() { GAP_HEAD } else { TICK_HEAD };
        let mut fields = Fields::new(bytes, head + MAC_LEN)?;
        let session = fields.number();
        let first = fields.time()?;
        let (from, to) = if kind.is_gap() {
            (first, fields.time()?)
        } else {
            (Timestamp(first.0.saturating_sub(tick.0)), first)
        };
        if from >= to {
            return Err(TickFrameError::Order { from, to });
        }
        let masked_count = fields.number();
        let (root, tag) = (RootPrefix(fields.take()), Tag(fields.take()));
        let claim = Claim { kind, session, from, to, masked_count, root, tag };
        let rest = fields.before_mac();
        match (kind.is_gap(), rest.len()) {
            (true, 0) => Ok(Self::Gap(claim)),
            (true, more) => Err(too_long(bytes, more)),
            (false, _) => Ok(Self::Tick(claim, Words::parse(rest)?)),
        }
    }
}

/// Writes a tick or gap frame, up to the MAC that [`SessionKey::finish`] appends. Words are
/// those of a tick; a gap has none.
#[must_use]
pub fn body(claim: &Claim, words: &[u64]) -> Vec<u8> {
    let kind = match claim.kind {
        ClaimKind::Opening => OPENING,
        ClaimKind::Tick => TICK,
        ClaimKind::Gap => GAP,
        ClaimKind::ClosingTick => CLOSING_TICK,
        ClaimKind::ClosingGap => CLOSING_GAP,
    };
    let mut out = Vec::with_capacity(GAP_HEAD + 8 * words.len() + MAC_LEN);
    out.push(kind);
    out.extend(claim.session.to_le_bytes());
    if claim.kind.is_gap() {
        out.extend(claim.from.0.to_le_bytes());
    }
    out.extend(claim.to.0.to_le_bytes());
    out.extend(claim.masked_count.to_le_bytes());
    out.extend(claim.root.0);
    out.extend(claim.tag.0);
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    out
}

/// Reads the fields of a frame that is known to be long enough.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// What follows the kind of a frame of at least `least` bytes.
    pub(super) fn new(bytes: &'a [u8], least: usize) -> Result<Self, TickFrameError> {
        match bytes.split_first() {
            Some((_, rest)) if bytes.len() >= least => Ok(Self { rest }),
            _ => Err(TickFrameError::Truncated { length: bytes.len(), least }),
        }
    }

    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((own, rest)) = self.rest.split_first_chunk() else { return [0; N] };
        self.rest = rest;
        *own
    }

    pub(super) fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, TickFrameError> {
        let time = Timestamp(self.number());
        if time < Timestamp::LIMIT { Ok(time) } else { Err(TickFrameError::TimeBeyondLimit(time)) }
    }

    /// What is left, without the MAC at its end.
    pub(super) fn before_mac(&self) -> &'a [u8] {
        self.rest.split_last_chunk::<MAC_LEN>().map_or(&[][..], |(before, _)| before)
    }
}

/// A frame of a fixed length with `more` bytes in it than that.
pub(super) fn too_long(bytes: &[u8], more: usize) -> TickFrameError {
    TickFrameError::TooLong { length: bytes.len(), most: bytes.len() - more }
}
