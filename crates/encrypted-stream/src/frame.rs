//! Events on the wire. The stream is the record's key and is not in the frame.
//!
//! | bytes | opening | data | border, closing |
//! | --- | --- | --- | --- |
//! | 1 | `0x10` | `0x11` | `0x12`, `0x13` |
//! | 8 | session | session | session |
//! | 8 | t | t | t |
//! | 8 | | previous t | previous t |
//! | 8 | | | data events since the last border |
//! | 16 | MAC | | MAC |
//! | 8·L | | words | words |
//!
//! Numbers and words are little-endian. A frame ends with its last word; its
//! length gives L.

use crate::keys::{BorderClaim, BorderKind, MAX_WORDS};
use alpheus_crypto::hash::link;
use alpheus_crypto::mac::Tag;
use alpheus_time::Timestamp;

const OPENING: u8 = 0x10;
const DATA: u8 = 0x11;
const BORDER: u8 = 0x12;
const CLOSING: u8 = 0x13;

/// Bytes of a data frame before its words.
pub const DATA_HEAD: usize = 25;
/// Bytes of a border or closing frame before its words.
pub const BORDER_HEAD: usize = 49;
/// Bytes of an opening frame.
pub const OPENING_LEN: usize = 33;

/// One event: a [`FrameView`] over received bytes, or a frame that owns its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<W> {
    /// The first border of a session. It has no predecessor, so it has no ciphertext.
    Opening {
        /// The new session.
        session: u64,
        /// The time, a multiple of the tick.
        t: Timestamp,
        /// MAC over the border's claim.
        tag: Tag,
    },
    /// An event with data.
    Data {
        /// Link to the previous event.
        link: Link,
        /// The ciphertext `m + K(t) − K(previous)`.
        words: W,
    },
    /// A border within a session.
    Border {
        /// Link to the previous event.
        link: Link,
        /// Data events since the last border.
        count: u64,
        /// MAC over the border's claim.
        tag: Tag,
        /// The ciphertext of zero.
        words: W,
    },
    /// The last border of a session that ends properly.
    Closing {
        /// Link to the previous event.
        link: Link,
        /// Data events since the last border.
        count: u64,
        /// MAC over the border's claim.
        tag: Tag,
        /// The ciphertext of zero.
        words: W,
    },
}

/// A frame over received bytes.
pub type FrameView<'a> = Frame<Words<'a>>;

/// The link from an event to its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The session of both events.
    pub session: u64,
    /// Time of the previous event.
    pub previous: Timestamp,
    /// Time of this event, later than `previous`.
    pub t: Timestamp,
}

impl Link {
    /// The event's part of the tick's link digest: `h(session, t) − h(session, previous)`.
    #[must_use]
    #[inline]
    pub fn digest(&self) -> u64 {
        link(self.session, self.t.0).wrapping_sub(link(self.session, self.previous.0))
    }
}

/// Why bytes are not a frame. Reveals only times and lengths of their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// There are no bytes.
    #[error("the frame is empty")]
    Empty,
    /// The first byte is not a known version and kind.
    #[error(
        "unknown frame kind {0:#04x}, expected 0x10 to 0x13; the sender may run a newer version"
    )]
    UnknownKind(u8),
    /// The frame ends within its header.
    #[error("the frame ends after {length} bytes, within its header of {head} bytes")]
    Truncated {
        /// Length of the frame in bytes.
        length: usize,
        /// Length of this kind's header in bytes.
        head: usize,
    },
    /// An opening frame continues after its MAC.
    #[error("{0} bytes follow an opening frame, which has no ciphertext")]
    TrailingBytes(usize),
    /// The ciphertext is not a whole number of words.
    #[error("the ciphertext has {0} bytes, which is not a whole number of 8-byte words")]
    PartialWord(usize),
    /// The ciphertext is missing.
    #[error("the frame has no ciphertext; even an empty event has a check word")]
    NoWords,
    /// There are more words than the cipher has block numbers for.
    #[error("the event has {0} words; the maximum is {MAX_WORDS}")]
    TooManyWords(usize),
    /// The time does not fit the cipher's 52 bits.
    #[error("the time {} µs is not below 2^52", .0.0)]
    TimeBeyondLimit(Timestamp),
    /// The event is not later than its predecessor.
    #[error("the event's time {} µs is not after its predecessor's, {} µs", .t.0, .previous.0)]
    TimesNotAscending {
        /// The predecessor's time.
        previous: Timestamp,
        /// This event's time.
        t: Timestamp,
    },
    /// The vector's length differs from the schema's.
    #[error("the event has {found} words; its schema has {expected}")]
    WrongLength {
        /// Words in the schema's layout.
        expected: usize,
        /// Words in the event.
        found: usize,
    },
}

impl<W> Frame<W> {
    /// The session.
    #[must_use]
    pub fn session(&self) -> u64 {
        match self {
            Frame::Opening { session, .. } => *session,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                link.session
            }
        }
    }

    /// The time.
    #[must_use]
    pub fn t(&self) -> Timestamp {
        match self {
            Frame::Opening { t, .. } => *t,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                link.t
            }
        }
    }

    /// The link to the previous event; `None` for an opening.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        match self {
            Frame::Opening { .. } => None,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                Some(*link)
            }
        }
    }

    /// The ciphertext; `None` for an opening.
    #[must_use]
    pub fn words(&self) -> Option<&W> {
        match self {
            Frame::Opening { .. } => None,
            Frame::Data { words, .. }
            | Frame::Border { words, .. }
            | Frame::Closing { words, .. } => Some(words),
        }
    }

    /// A border's claim and its MAC; `None` for a data event.
    #[must_use]
    pub fn claim(&self) -> Option<(BorderClaim, Tag)> {
        let (kind, count, tag) = match self {
            Frame::Opening { tag, .. } => (BorderKind::Opening, 0, tag),
            Frame::Data { .. } => return None,
            Frame::Border { count, tag, .. } => (BorderKind::Interior, *count, tag),
            Frame::Closing { count, tag, .. } => (BorderKind::Closing, *count, tag),
        };
        let claim = BorderClaim { kind, session: self.session(), t: self.t(), count };
        Some((claim, *tag))
    }

    /// The same frame with its words converted.
    #[must_use]
    pub fn map<V>(self, words_as: impl FnOnce(W) -> V) -> Frame<V> {
        match self {
            Frame::Opening { session, t, tag } => Frame::Opening { session, t, tag },
            Frame::Data { link, words } => Frame::Data { link, words: words_as(words) },
            Frame::Border { link, count, tag, words } => {
                Frame::Border { link, count, tag, words: words_as(words) }
            }
            Frame::Closing { link, count, tag, words } => {
                Frame::Closing { link, count, tag, words: words_as(words) }
            }
        }
    }

    /// Everything before the words.
    #[inline]
    pub(crate) fn head(&self) -> Head {
        let (kind, link, claim) = match self {
            Frame::Opening { .. } => (OPENING, None, self.claim()),
            Frame::Data { link, .. } => (DATA, Some(link), None),
            Frame::Border { link, .. } => (BORDER, Some(link), self.claim()),
            Frame::Closing { link, .. } => (CLOSING, Some(link), self.claim()),
        };
        let mut head = Head { bytes: [0; BORDER_HEAD], len: 0 };
        head.push(&[kind]);
        head.push(&self.session().to_le_bytes());
        head.push(&self.t().0.to_le_bytes());
        if let Some(link) = link {
            head.push(&link.previous.0.to_le_bytes());
        }
        if let Some((claim, tag)) = claim {
            if link.is_some() {
                head.push(&claim.count.to_le_bytes());
            }
            head.push(&tag.0);
        }
        head
    }
}

/// The bytes of a frame before its words.
pub(crate) struct Head {
    bytes: [u8; BORDER_HEAD],
    len: usize,
}

impl Head {
    #[inline]
    fn push(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(part);
            self.len = end;
        }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<W: AsRef<[u64]>> Frame<W> {
    /// The encoded frame.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.head().as_bytes().to_vec();
        let words = self.words().map_or(&[][..], AsRef::as_ref);
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out
    }
}

impl<'a> FrameView<'a> {
    /// Reads a frame. Any bytes result in a frame or an error; nothing is allocated.
    ///
    /// Checks only the form. The transformer compares the number of words with
    /// the schema's, and the controller checks the MAC.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are not a frame.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (&kind, mut rest) = bytes.split_first().ok_or(FrameError::Empty)?;
        let head = match kind {
            OPENING => OPENING_LEN,
            DATA => DATA_HEAD,
            BORDER | CLOSING => BORDER_HEAD,
            other => return Err(FrameError::UnknownKind(other)),
        };
        let short = FrameError::Truncated { length: bytes.len(), head };
        let session = take_u64(&mut rest).ok_or(short)?;
        let t = Timestamp(take_u64(&mut rest).ok_or(short)?);
        if t >= Timestamp::LIMIT {
            return Err(FrameError::TimeBeyondLimit(t));
        }
        if kind == OPENING {
            let tag = take_tag(&mut rest).ok_or(short)?;
            return match rest.len() {
                0 => Ok(Frame::Opening { session, t, tag }),
                more => Err(FrameError::TrailingBytes(more)),
            };
        }
        let previous = Timestamp(take_u64(&mut rest).ok_or(short)?);
        if previous >= t {
            return Err(FrameError::TimesNotAscending { previous, t });
        }
        let link = Link { session, previous, t };
        if kind == DATA {
            return Ok(Frame::Data { link, words: Words::parse(rest)? });
        }
        let count = take_u64(&mut rest).ok_or(short)?;
        let tag = take_tag(&mut rest).ok_or(short)?;
        let words = Words::parse(rest)?;
        Ok(match kind {
            BORDER => Frame::Border { link, count, tag, words },
            _ => Frame::Closing { link, count, tag, words },
        })
    }
}

/// A ciphertext within the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match bytes.as_chunks() {
            (_, [_, ..]) => Err(FrameError::PartialWord(bytes.len())),
            ([], []) => Err(FrameError::NoWords),
            (words, []) if words.len() > MAX_WORDS => Err(FrameError::TooManyWords(words.len())),
            (words, []) => Ok(Self(words)),
        }
    }

    /// The number of words; at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a check word")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The word at `position`.
    #[must_use]
    #[inline]
    pub fn get(&self, position: usize) -> Option<u64> {
        self.0.get(position).copied().map(u64::from_le_bytes)
    }

    /// All words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.0.iter().copied().map(u64::from_le_bytes)
    }

    /// Adds the words to a sum modulo 2^64, without an intermediate copy.
    ///
    /// # Errors
    /// [`FrameError::WrongLength`] if the sum has a different number of words.
    /// It is then unchanged.
    #[inline]
    pub fn add_to(&self, sum: &mut [u64]) -> Result<(), FrameError> {
        if sum.len() != self.0.len() {
            return Err(FrameError::WrongLength { expected: sum.len(), found: self.0.len() });
        }
        for (sum, word) in sum.iter_mut().zip(self.0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        Ok(())
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

fn take_tag(bytes: &mut &[u8]) -> Option<Tag> {
    take(bytes).map(Tag)
}
