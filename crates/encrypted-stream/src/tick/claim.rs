//! What a frame states, apart from its words.

use crate::keys::StreamKeys;
use alpheus_crypto::mac::{Tag, TagError};
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClaimKind {
    /// The first frame of a session. It covers no time.
    Opening,
    /// A tick of a device that was awake.
    Tick,
    /// Ticks that passed while the device was asleep. Nothing happened in them.
    Gap,
    /// The last tick of a session that ends properly.
    ClosingTick,
    /// The same for a device that was asleep at its session's end.
    ClosingGap,
}

impl ClaimKind {
    /// Whether nothing happened in the time that the frame covers, and its words are absent.
    #[must_use]
    pub const fn is_gap(self) -> bool {
        matches!(self, Self::Gap | Self::ClosingGap)
    }

    /// Whether the session ends with the frame.
    #[must_use]
    pub const fn is_closing(self) -> bool {
        matches!(self, Self::ClosingTick | Self::ClosingGap)
    }

    const fn number(self) -> u64 {
        match self {
            Self::Opening => 0,
            Self::Tick => 1,
            Self::Gap => 2,
            Self::ClosingTick => 3,
            Self::ClosingGap => 4,
        }
    }
}

/// The first bytes of the root of a session's sum. Finding another sum with the same bytes
/// takes about 2^128 hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RootPrefix(pub [u8; 16]);

/// What the device states of the time `(from, to]` in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The kind of frame.
    pub kind: ClaimKind,
    /// The session.
    pub session: u64,
    /// Where the frame's time starts: the last border before, or `to` for an opening.
    pub from: Timestamp,
    /// Where it ends.
    pub to: Timestamp,
    /// Number of events since the last anchor.
    pub count: u64,
    /// Root of the sum since the last anchor.
    pub root: RootPrefix,
}

/// The same as the service sees it. Public.
///
/// # Privacy
/// The service sees when the device was awake. The number of events is hidden from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The kind of frame.
    pub kind: ClaimKind,
    /// The session.
    pub session: u64,
    /// Where the frame's time starts.
    pub from: Timestamp,
    /// Where it ends.
    pub to: Timestamp,
    /// Number of events since the last anchor, under a pad that the controller knows.
    pub masked_count: u64,
    /// Root of the sum since the last anchor.
    pub root: RootPrefix,
    /// The MAC under the stream's border key.
    pub tag: Tag,
}

impl Claim {
    /// Whether sum and count start again at the frame's end: an anchor lies in its time, or it
    /// opens the session.
    #[must_use]
    pub fn ends_period(&self, anchor: Span) -> bool {
        self.kind == ClaimKind::Opening || self.from.floor(anchor) != self.to.floor(anchor)
    }
}

impl StreamKeys {
    /// Makes the claim that states this.
    #[must_use]
    pub fn claim(&self, statement: &Statement) -> Claim {
        let Statement { kind, session, from, to, count, root } = *statement;
        let masked_count = count.wrapping_add(self.pad_of(kind, session, to));
        Claim { kind, session, from, to, masked_count, root, tag: self.claim_tag(statement) }
    }

    /// Checks a claim, and returns what it states.
    ///
    /// # Errors
    /// [`TagError`] if the device of this stream did not state it.
    pub fn open_claim(&self, claim: &Claim) -> Result<Statement, TagError> {
        let Claim { kind, session, from, to, masked_count, root, tag } = *claim;
        let count = masked_count.wrapping_sub(self.pad_of(kind, session, to));
        let statement = Statement { kind, session, from, to, count, root };
        if self.claim_tag(&statement) == tag { Ok(statement) } else { Err(TagError) }
    }

    /// The pad over a frame's count. An opening counts nothing, and has none.
    fn pad_of(&self, kind: ClaimKind, session: u64, to: Timestamp) -> u64 {
        if kind == ClaimKind::Opening { 0 } else { self.count_pad(session, to) }
    }

    fn claim_tag(&self, statement: &Statement) -> Tag {
        let Statement { kind, session, from, to, count, root } = statement;
        let numbers = [kind.number(), *session, from.0, to.0, *count].map(u64::to_be_bytes);
        let [kind, session, from, to, count] = &numbers;
        self.tick_tag(&[kind, session, from, to, count, &root.0])
    }
}
