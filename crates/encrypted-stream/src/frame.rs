//! Events on the wire. The stream is the record's key and not in the frame.
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
use alpheus_policy::time::Timestamp;

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

/// One event: as [`FrameView`] over received bytes, or with words of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<W> {
    /// The first border of a session. Nothing came before it, so it has no ciphertext.
    Opening {
        /// The session that it opens.
        session: u64,
        /// When, a multiple of the tick.
        t: Timestamp,
        /// MAC of the claim.
        tag: Tag,
    },
    /// An event with data.
    Data {
        /// What it follows.
        link: Link,
        /// The ciphertext `m + K(t) − K(previous)`.
        words: W,
    },
    /// A border within a session.
    Border {
        /// What it follows.
        link: Link,
        /// Data events since the last border.
        count: u64,
        /// MAC of the claim.
        tag: Tag,
        /// The ciphertext of zero.
        words: W,
    },
    /// The last border of a session that ends in order.
    Closing {
        /// What it follows.
        link: Link,
        /// Data events since the last border.
        count: u64,
        /// MAC of the claim.
        tag: Tag,
        /// The ciphertext of zero.
        words: W,
    },
}

/// A frame over received bytes.
pub type FrameView<'a> = Frame<Words<'a>>;

/// What chains an event to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The session of both.
    pub session: u64,
    /// Time of the event before.
    pub previous: Timestamp,
    /// Time of this event, later than `previous`.
    pub t: Timestamp,
}

impl Link {
    /// Its share `h(session, t) − h(session, previous)` of the tick's link digest.
    #[must_use]
    #[inline]
    pub fn digest(&self) -> u64 {
        link(self.session, self.t.0).wrapping_sub(link(self.session, self.previous.0))
    }
}

/// Why bytes are no frame. Nothing of their content is in it but times and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No bytes.
    #[error("the frame is empty")]
    Empty,
    /// The first byte names no version and kind of frame that we know.
    #[error("the frame's first byte is {0:#04x}, not one of 0x10 to 0x13; is its writer newer?")]
    UnknownKind(u8),
    /// It ends within its head.
    #[error("the frame ends after {length} bytes; its head alone has {head}")]
    Truncated {
        /// Bytes that there are.
        length: usize,
        /// Bytes that the head of this kind has.
        head: usize,
    },
    /// An opening frame goes on after its MAC.
    #[error("{0} bytes follow an opening frame, which has no ciphertext")]
    TrailingBytes(usize),
    /// The ciphertext is not a whole number of words.
    #[error("the ciphertext's {0} bytes are not a whole number of 8-byte words")]
    PartialWord(usize),
    /// There is no ciphertext where there must be.
    #[error("the frame has no ciphertext; even an empty event has its check word")]
    NoWords,
    /// There are more words than the cipher can tell apart.
    #[error("{0} words are more than the {MAX_WORDS} that an event can have")]
    TooManyWords(usize),
    /// The time does not fit the cipher's 52 bits.
    #[error("the time {} µs is not below 2^52", .0.0)]
    TimeBeyondLimit(Timestamp),
    /// The event does not come after the one that it follows.
    #[error("the time {} µs is not after {} µs, which it follows", .t.0, .previous.0)]
    TimesNotAscending {
        /// The earlier event's time.
        previous: Timestamp,
        /// This event's time.
        t: Timestamp,
    },
    /// The vector has another length than the schema's.
    #[error("the event has {found} words; its schema has {expected}")]
    WrongLength {
        /// Words of the schema.
        expected: usize,
        /// Words of the event.
        found: usize,
    },
}

impl<W> Frame<W> {
    /// Its session.
    #[must_use]
    pub fn session(&self) -> u64 {
        match self {
            Frame::Opening { session, .. } => *session,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                link.session
            }
        }
    }

    /// Its time.
    #[must_use]
    pub fn t(&self) -> Timestamp {
        match self {
            Frame::Opening { t, .. } => *t,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                link.t
            }
        }
    }

    /// What chains it to the event before: all but an opening have it.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        match self {
            Frame::Opening { .. } => None,
            Frame::Data { link, .. } | Frame::Border { link, .. } | Frame::Closing { link, .. } => {
                Some(*link)
            }
        }
    }

    /// Its ciphertext: all but an opening have one.
    #[must_use]
    pub fn words(&self) -> Option<&W> {
        match self {
            Frame::Opening { .. } => None,
            Frame::Data { words, .. }
            | Frame::Border { words, .. }
            | Frame::Closing { words, .. } => Some(words),
        }
    }

    /// What a border claims, and its MAC; `None` of a data event.
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

    /// The same frame with its words in another form.
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
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.head().as_bytes().to_vec();
        let words = self.words().map_or(&[][..], AsRef::as_ref);
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out
    }
}

impl<'a> FrameView<'a> {
    /// Reads a frame. Any bytes give a frame or an error; nothing is allocated.
    ///
    /// It checks form alone: the transformer compares the number of words with
    /// the schema's, the controller checks the MAC.
    ///
    /// # Errors
    /// [`FrameError`], which says what is wrong.
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

/// A ciphertext as it lies in the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        match bytes.as_chunks() {
            (_, [_, ..]) => Err(FrameError::PartialWord(bytes.len())),
            ([], []) => Err(FrameError::NoWords),
            (words, []) if words.len() > MAX_WORDS => Err(FrameError::TooManyWords(words.len())),
            (words, []) => Ok(Self(words)),
        }
    }

    /// How many there are; at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always the check word")]
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

    /// Adds them to a sum, modulo 2^64, without a copy in between.
    ///
    /// # Errors
    /// [`FrameError::WrongLength`] if the sum has another number of words; it
    /// is then left as it was.
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
