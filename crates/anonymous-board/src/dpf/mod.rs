//! The distributed point function that a write is: a tree of seeds for each of
//! two servers, equal everywhere but on the path to one row.
//!
//! After Boyle, Gilboa, Ishai: *Function Secret Sharing: Improvements and
//! Extensions* (CCS 2016), with a payload that the leaf seed stretches to and a
//! check word for the audit (after de Castro, Polychroniadou: *Lightweight,
//! Maliciously Secure Verifiable Function Secret Sharing*, Eurocrypt 2022).
//! The module stands alone: it knows neither epochs nor rows' contents.
//!
//! | module | gives |
//! | --- | --- |
//! | [`prg`] | the three public permutations |
//! | [`generate`](mod@generate) | a writer's pair of keys |
//! | [`pass`] | many keys over a table, level by level, block by block |
//! | [`digest`] | the audit's digest, a universal hash |
//! | [`scalar`] | the same as `pass` and `digest`, one row at a time: what they are tested against |

pub mod digest;
pub mod generate;
pub(crate) mod kernel;
pub mod pass;
pub mod prg;
pub mod scalar;
mod vaes;

use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Bytes of an AES block, of a seed, and of what rows are a multiple of.
pub const BLOCK: usize = 16;
/// The largest tree: what the audit's hash binds a row by has 32 bits.
pub const DEEPEST: u32 = 31;

/// Which of the two databases. It fixes the root's control bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// Control bit 0.
    First,
    /// Control bit 1.
    Second,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// Its place in a pair.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// Its name where it is hashed.
    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Self::First => b"first",
            Self::Second => b"second",
        }
    }
}

/// The shape of a table: how many rows, of how many blocks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Rows.
    pub rows: NonZeroU32,
    /// Blocks of 16 bytes in a row.
    pub blocks: NonZeroU32,
}

/// The shape is none that tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a table has 1 to 2^31 rows of 1 to 4096 blocks of 16 bytes")]
pub struct BadShape;

impl Shape {
    /// A shape.
    ///
    /// # Errors
    /// [`BadShape`] beyond 2^31 rows or 4,096 blocks in each, or with none.
    pub fn new(rows: u32, blocks: u32) -> Result<Self, BadShape> {
        let (Some(rows), Some(blocks)) = (NonZeroU32::new(rows), NonZeroU32::new(blocks)) else {
            return Err(BadShape);
        };
        let shape = Self { rows, blocks };
        shape.check()?;
        Ok(shape)
    }

    /// Whether the shape is one of those that [`Shape::new`] makes.
    ///
    /// # Errors
    /// [`BadShape`].
    pub fn check(&self) -> Result<(), BadShape> {
        let good = self.rows.get() <= 1 << DEEPEST && self.blocks.get() <= 4096;
        if good { Ok(()) } else { Err(BadShape) }
    }

    /// Levels of the tree: ⌈log₂ rows⌉.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.rows.get().next_power_of_two().trailing_zeros() as usize
    }

    /// Rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.get() as usize
    }

    /// Bytes of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.blocks.get() as usize * BLOCK
    }

    /// Bytes of a table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows() * self.width()
    }
}

/// A level's correction word: 127 bits of seed, then the left child's control
/// bit in the lowest bit of the first byte. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// What the seeds of children are corrected by, and the left one's control bit.
    pub seed: [u8; BLOCK],
    /// The right child's control bit.
    pub right: bool,
}

/// What both servers' keys have in common. Public to both of them; alone it
/// tells nothing of row or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// A correction word for each level, from the root down.
    pub levels: Vec<Word>,
    /// C = M ⊕ G(s₀) ⊕ G(s₁): what turns the stretched leaf seed into the message.
    pub payload: Vec<u8>,
    /// cs = H(α, s₀, t₀) ⊕ H(α, s₁, t₁).
    #[serde(with = "check_word")]
    pub check: [u8; 64],
}

/// One server's key: a root seed that only it knows, and the common words.
pub struct Key {
    /// The root: 127 bits; the lowest bit of the first byte is zero.
    pub root: Secret<BLOCK>,
    /// The common words.
    pub words: Words,
}

/// Why a key is refused before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum BadKey {
    /// Another number of levels than the table's tree has.
    #[error("the key has another depth than the table's tree")]
    Depth,
    /// Another payload than a row.
    #[error("the key's payload has another length than a row")]
    Payload,
    /// cs = 0, with which a write of every row would pass the audit.
    #[error("the key's check word is zero")]
    ZeroCheck,
    /// The root's lowest bit is set; a seed has 127 bits.
    #[error("the key's root has its lowest bit set")]
    Root,
}

impl Words {
    /// Checks that the words fit a table, all but what the audit is for.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn check(&self, shape: &Shape) -> Result<(), BadKey> {
        if self.levels.len() != shape.depth() {
            return Err(BadKey::Depth);
        }
        if self.payload.len() != shape.width() {
            return Err(BadKey::Payload);
        }
        if self.check == [0; 64] {
            return Err(BadKey::ZeroCheck);
        }
        Ok(())
    }
}

impl Key {
    /// Checks that the key fits a table, all but what the audit is for.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn check(&self, shape: &Shape) -> Result<(), BadKey> {
        if self.root.expose()[0] & 1 != 0 {
            return Err(BadKey::Root);
        }
        self.words.check(shape)
    }
}

/// Serde has arrays up to 32 bytes only.
mod check_word {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(word: &[u8; 64], to: S) -> Result<S::Ok, S::Error> {
        let (low, high) = word.split_at(32);
        let half = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).unwrap_or([0; 32]);
        (half(low), half(high)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 64], D::Error> {
        let (low, high) = <([u8; 32], [u8; 32])>::deserialize(from)?;
        let mut word = [0; 64];
        word[..32].copy_from_slice(&low);
        word[32..].copy_from_slice(&high);
        Ok(word)
    }
}
