//! A distributed point function for s servers, from a pseudorandom generator alone. All servers but
//! one may pool their keys.
//!
//! After Boyle, Gilboa, Ishai: *Function Secret Sharing* (Eurocrypt 2015, §3.3, the
//! √-construction), with one correction word instead of 2^(s−1): `docs/protocol.md` has the
//! argument. Each additional server doubles keys and work.
//!
//! Rows are arranged in groups. Each group has 2^(s−1) columns of s bits, in an order of its own,
//! and a seed for each column. A server holds the seeds of the columns in which its bit is set. The
//! columns are all those of even weight, so every seed is held an even number of times and cancels.
//! Only the written row's group has all columns of odd weight: there one copy of every seed
//! remains. The correction word, which goes with the last column, turns what remains into the
//! message.
//!
//! | module | holds |
//! | --- | --- |
//! | [`generate`](mod@generate) | a writer's keys |
//! | [`expand`] | a key over its groups, several blocks at a time |
//! | [`scalar`] | the same one block at a time, as a reference for tests |

pub mod expand;
pub mod generate;
pub mod scalar;

use crate::dpf::{BLOCK, Shape};
use aes::Aes128Enc;
use aes::cipher::KeyInit;
use zeroize::Zeroizing;

/// The minimum number of servers: for two, mode 1's trees are smaller.
pub const MIN_SERVERS: u8 = 3;
/// The maximum number of servers of a board.
pub const MAX_SERVERS: u8 = 6;
/// The maximum number of servers that keys are made for, in measurements.
pub const MAX_MEASURED_SERVERS: u8 = 8;

/// The public permutation of an epoch: AES-128 under a publicly known key, in the mode of Matyas,
/// Meyer and Oseas. Block j of G(s) is π(s ⊕ j).
#[derive(Clone)]
pub struct Permutation(pub(super) Aes128Enc);

impl Permutation {
    /// Expands the key.
    #[must_use]
    pub fn new(key: &[u8; BLOCK]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }
}

/// The arrangement of rows in groups, for a number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    shape: Shape,
    servers: u8,
    /// Rows in a group.
    rows: u32,
}

/// No keys are made for that many servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keys are made for 3 to 8 servers")]
pub struct GridError;

/// Why a key is rejected before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key does not have the grid's key length.
    #[error("the key does not have the length of keys for this table")]
    Length,
    /// A flag for adding the correction word is neither 0 nor 1.
    #[error("the key's flag for the correction word is neither 0 nor 1")]
    Flag,
    /// The correction word does not have the length of a group of rows.
    #[error("the correction word does not have the length of a group of rows")]
    Words,
}

impl Grid {
    /// The grid that makes a write's messages about as short as possible: correction word and all
    /// keys together.
    ///
    /// # Errors
    /// [`GridError`].
    pub fn new(shape: Shape, servers: u8) -> Result<Self, GridError> {
        if !(MIN_SERVERS..=MAX_MEASURED_SERVERS).contains(&servers) {
            return Err(GridError);
        }
        let grid = Self { shape, servers, rows: 1 };
        let per_group = u64::from(servers) * grid.key_bytes_of_group() as u64;
        let best = (u64::from(shape.rows.get()) * per_group / shape.width() as u64).isqrt();
        // A block's index in its group has 32 bits.
        let max = (u32::MAX / shape.blocks).min(shape.rows.get());
        let rows = u32::try_from(best).unwrap_or(u32::MAX).clamp(1, max);
        Ok(Self { rows, ..grid })
    }

    /// The table's shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of servers.
    #[must_use]
    pub fn servers(&self) -> usize {
        usize::from(self.servers)
    }

    /// Rows in a group. The last group may extend beyond the table.
    #[must_use]
    pub fn rows_per_group(&self) -> usize {
        self.rows as usize
    }

    /// The number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.shape.rows().div_ceil(self.rows_per_group())
    }

    /// Columns in a group, and seeds.
    #[must_use]
    pub fn columns(&self) -> usize {
        1 << (self.servers - 1)
    }

    /// Seeds of a group that one server holds.
    #[must_use]
    pub fn seeds_per_server(&self) -> usize {
        self.columns() / 2
    }

    /// Bytes of the correction word, which is as long as a group of rows.
    #[must_use]
    pub fn word_bytes(&self) -> usize {
        self.rows_per_group() * self.shape.width()
    }

    /// Bytes of a server's key.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.groups() * self.key_bytes_of_group()
    }

    fn key_bytes_of_group(&self) -> usize {
        1 + self.seeds_per_server() * BLOCK
    }

    /// Checks that a correction word fits.
    ///
    /// # Errors
    /// [`KeyError::Words`].
    pub fn check_word(&self, word: &[u8]) -> Result<(), KeyError> {
        if word.len() == self.word_bytes() { Ok(()) } else { Err(KeyError::Words) }
    }
}

/// One server's key: for each group, a byte that is 1 if this server holds the last column and 0 if
/// not, then the seeds that it holds, in column order. Secret.
pub struct Key(Zeroizing<Vec<u8>>);

/// One group of a key.
pub(super) struct Group<'a> {
    /// All ones if this server adds the correction word.
    pub(super) adds_word: u8,
    /// The seeds that this server holds.
    pub(super) seeds: &'a [[u8; BLOCK]],
}

impl Key {
    /// Checks a received key, as far as that is possible without the other servers.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_bytes(grid: &Grid, bytes: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        if bytes.len() != grid.key_bytes() {
            return Err(KeyError::Length);
        }
        let key = Self(bytes);
        // This checks all flags, whatever their values.
        let flags = key.0.iter().step_by(grid.key_bytes_of_group());
        let others = flags.fold(0, |bits, flag| bits | flag >> 1);
        if others == 0 { Ok(key) } else { Err(KeyError::Flag) }
    }

    /// The encoding, for the envelope.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn groups(&self, grid: &Grid) -> impl Iterator<Item = Group<'_>> {
        self.0.chunks_exact(grid.key_bytes_of_group()).map(|group| {
            let (flag, seeds) = group.split_at(1);
            let adds_word = flag.iter().fold(0, |_, flag| 0_u8.wrapping_sub(flag & 1));
            Group { adds_word, seeds: seeds.as_chunks().0 }
        })
    }
}
