//! The distributed point function (DPF) behind a write: two trees of seeds, one for each server,
//! equal everywhere except on the path to one row.
//!
//! After Boyle, Gilboa, Ishai: *Function Secret Sharing: Improvements and Extensions* (CCS 2016),
//! with a payload that the leaf seed is stretched to, and a check word for the audit (after de
//! Castro, Polychroniadou: *Lightweight, Maliciously Secure Verifiable Function Secret Sharing*,
//! Eurocrypt 2022). The module stands alone: it knows neither epochs nor the contents of rows.
//!
//! | module | holds |
//! | --- | --- |
//! | [`prg`] | the three public permutations |
//! | [`generate`](mod@generate) | a writer's pair of keys |
//! | [`pass`] | many keys over a table, level by level, block by block |
//! | [`digest`] | the audit's digest, a universal hash |
//! | [`scalar`] | `pass` and `digest` one row at a time, as a reference for tests |

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

/// Bytes of an AES block and of a seed. A row's width is a multiple of it.
pub const BLOCK: usize = 16;
/// The maximum depth of a tree: the audit's hash binds a row by 32 bits.
pub const MAX_DEPTH: u32 = 31;

/// One of the two databases. It determines the root's control bit.
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

    /// Its index in a pair.
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

    /// The name that goes into hashes.
    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Self::First => b"first",
            Self::Second => b"second",
        }
    }
}

/// The shape of a table: the number of rows, and of blocks in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Rows.
    pub rows: NonZeroU32,
    /// Blocks of 16 bytes in a row.
    pub blocks: NonZeroU32,
}

/// No table has this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a table has 1 to 2^31 rows of 1 to 4096 blocks of 16 bytes")]
pub struct ShapeError;

impl Shape {
    /// A shape.
    ///
    /// # Errors
    /// [`ShapeError`] beyond 2^31 rows or 4,096 blocks in each, or with none.
    pub fn new(rows: u32, blocks: u32) -> Result<Self, ShapeError> {
        let (Some(rows), Some(blocks)) = (NonZeroU32::new(rows), NonZeroU32::new(blocks)) else {
            return Err(ShapeError);
        };
        let shape = Self { rows, blocks };
        shape.check()?;
        Ok(shape)
    }

    /// Checks that [`Shape::new`] would accept the shape.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn check(&self) -> Result<(), ShapeError> {
        let good = self.rows.get() <= 1 << MAX_DEPTH && self.blocks.get() <= 4096;
        if good { Ok(()) } else { Err(ShapeError) }
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

/// A level's correction word: 127 bits of seed, and the left child's control bit in the lowest bit
/// of the first byte. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Corrects the seeds of both children and the left child's control bit.
    pub seed: [u8; BLOCK],
    /// Corrects the right child's control bit.
    pub right: bool,
}

/// The words that both servers' keys share. Public to both; alone they reveal nothing about row or
/// message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// A correction word for each level, from the root down.
    pub levels: Vec<Word>,
    /// C = M ⊕ G(s₀) ⊕ G(s₁): turns the stretched leaf seed into the message.
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

/// Why a key is rejected before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum KeyError {
    /// The number of levels is not the depth of the table's tree.
    #[error("the key's depth is not that of the table's tree")]
    Depth,
    /// The payload's length is not that of a row.
    #[error("the key's payload does not have the length of a row")]
    Payload,
    /// cs = 0. A write to every row would pass the audit.
    #[error("the key's check word is zero")]
    ZeroCheck,
    /// The root's lowest bit is set; a seed has 127 bits.
    #[error("the lowest bit of the key's root is set; it must be zero")]
    Root,
}

impl Words {
    /// Checks that the words fit a table, as far as that is possible before the audit.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn check(&self, shape: &Shape) -> Result<(), KeyError> {
        if self.levels.len() != shape.depth() {
            return Err(KeyError::Depth);
        }
        if self.payload.len() != shape.width() {
            return Err(KeyError::Payload);
        }
        if self.check == [0; 64] {
            return Err(KeyError::ZeroCheck);
        }
        Ok(())
    }
}

impl Key {
    /// Checks that the key fits a table, as far as that is possible before the audit.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn check(&self, shape: &Shape) -> Result<(), KeyError> {
        if self.root.expose()[0] & 1 != 0 {
            return Err(KeyError::Root);
        }
        self.words.check(shape)
    }
}

/// Serde supports arrays of up to 32 bytes only.
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
