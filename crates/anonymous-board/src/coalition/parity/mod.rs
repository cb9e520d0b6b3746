//! A distributed point function for s servers, of which all but one may put their keys
//! together, from a pseudorandom generator alone.
//!
//! After Boyle, Gilboa, Ishai: *Function Secret Sharing* (Eurocrypt 2015, §3.3, the
//! √-construction), with one correction word in place of 2^(s−1): `docs/protocol.md`
//! has the argument. Each added server doubles keys and work.
//!
//! Rows stand in groups. For each group there are 2^(s−1) columns of s bits, in an order
//! of their own, and a seed for each column; a server holds the seeds of the columns in
//! which its bit is set. The columns are all those of even weight, so that every seed is
//! held an even number of times and cancels, but in the group of the written row all those
//! of odd weight: there every seed remains once, and the correction word, which goes with
//! the last column, makes the message of what remains.
//!
//! | module | gives |
//! | --- | --- |
//! | [`generate`](mod@generate) | a writer's keys |
//! | [`expand`] | a key over its groups, in the processor's groups of blocks |
//! | [`scalar`] | the same one block at a time: what `expand` is tested against |

pub mod expand;
pub mod generate;
pub mod scalar;

use crate::dpf::{BLOCK, Shape};
use aes::Aes128Enc;
use aes::cipher::KeyInit;
use zeroize::Zeroizing;

/// The fewest servers: with two, mode 1's trees are smaller.
pub const FEWEST_SERVERS: u8 = 3;
/// The most servers of a board.
pub const MOST_SERVERS: u8 = 6;
/// The most servers that keys are made for, for measurements.
pub const MOST_MEASURED: u8 = 8;

/// The public permutation of an epoch: AES-128 under a key that everybody knows, in the
/// mode of Matyas, Meyer and Oseas. Block j of G(s) is π(s ⊕ j).
#[derive(Clone)]
pub struct Permutation(pub(super) Aes128Enc);

impl Permutation {
    /// Expands the key.
    #[must_use]
    pub fn new(key: &[u8; BLOCK]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }
}

/// How rows stand in groups, for so many servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    shape: Shape,
    servers: u8,
    /// Rows in a group.
    rows: u32,
}

/// No keys are made for so many servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keys are made for 3 to 8 servers")]
pub struct BadGrid;

/// Why a key is refused before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Another length than the grid's keys have.
    #[error("the key has another length than keys for this table")]
    Length,
    /// Something else than yes or no where it says whether the correction word is added.
    #[error("the key says neither that the correction word is added nor that it is not")]
    Flag,
    /// A correction word of another length than a group of rows.
    #[error("the correction word has another length than a group of rows")]
    Words,
}

impl Grid {
    /// The grid that makes a write's messages about as short as they get: correction word
    /// and all keys together.
    ///
    /// # Errors
    /// [`BadGrid`].
    pub fn new(shape: Shape, servers: u8) -> Result<Self, BadGrid> {
        if !(FEWEST_SERVERS..=MOST_MEASURED).contains(&servers) {
            return Err(BadGrid);
        }
        let grid = Self { shape, servers, rows: 1 };
        let per_group = u64::from(servers) * grid.key_bytes_of_group() as u64;
        let best = (u64::from(shape.rows.get()) * per_group / shape.width() as u64).isqrt();
        // A block's number in its group has 32 bits.
        let most = (u32::MAX / shape.blocks).min(shape.rows.get());
        let rows = u32::try_from(best).unwrap_or(u32::MAX).clamp(1, most);
        Ok(Self { rows, ..grid })
    }

    /// The table's shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Servers.
    #[must_use]
    pub fn servers(&self) -> usize {
        usize::from(self.servers)
    }

    /// Rows in a group; the last group may have fewer in the table.
    #[must_use]
    pub fn together(&self) -> usize {
        self.rows as usize
    }

    /// Groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.shape.rows().div_ceil(self.together())
    }

    /// Columns, and seeds, of a group.
    #[must_use]
    pub fn columns(&self) -> usize {
        1 << (self.servers - 1)
    }

    /// Seeds of a group that one server holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.columns() / 2
    }

    /// Bytes of the correction word: a group of rows.
    #[must_use]
    pub fn word_bytes(&self) -> usize {
        self.together() * self.shape.width()
    }

    /// Bytes of a server's key.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.groups() * self.key_bytes_of_group()
    }

    fn key_bytes_of_group(&self) -> usize {
        1 + self.held() * BLOCK
    }

    /// Checks that a correction word fits.
    ///
    /// # Errors
    /// [`BadKey::Words`].
    pub fn check_word(&self, word: &[u8]) -> Result<(), BadKey> {
        if word.len() == self.word_bytes() { Ok(()) } else { Err(BadKey::Words) }
    }
}

/// One server's key: for each group a byte that is 1 if this server holds the last column
/// and 0 if not, then the seeds that it holds, in the order of the columns. Secret.
pub struct Key(Zeroizing<Vec<u8>>);

/// One group of a key.
pub(super) struct Group<'a> {
    /// All ones if the correction word is this server's to add.
    pub(super) adds_word: u8,
    /// The seeds held.
    pub(super) seeds: &'a [[u8; BLOCK]],
}

impl Key {
    /// A key as it was received, checked as far as that goes without the other servers.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn from_bytes(grid: &Grid, bytes: Zeroizing<Vec<u8>>) -> Result<Self, BadKey> {
        if bytes.len() != grid.key_bytes() {
            return Err(BadKey::Length);
        }
        let key = Self(bytes);
        // All of them are looked at, whatever they are.
        let flags = key.0.iter().step_by(grid.key_bytes_of_group());
        let others = flags.fold(0, |bits, flag| bits | flag >> 1);
        if others == 0 { Ok(key) } else { Err(BadKey::Flag) }
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
