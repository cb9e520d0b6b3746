//! What the two constructions of keys have in common, and the one that boards use.

use super::field::{Binary, Field};
use super::gate::Sums;
use super::parity::expand::each_group;
use super::parity::generate::generate;
use super::parity::{BadKey, Grid, Key, Permutation};
use crate::dpf::BLOCK;
use crate::dpf::generate::NotGenerated;
use aes::Block;
use aes::cipher::array::Array;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Where an audit evaluates: drawn when all keys are fixed. Public.
pub struct Points<F> {
    /// What weighs the parts of a row, or of what stands for it.
    pub row: F,
    /// r holds its powers.
    pub r: F,
    /// s holds its powers.
    pub s: F,
}

/// A construction of keys for s servers, all but one of which may work together.
pub trait Engine {
    /// What its audit computes with.
    type Number: Field;
    /// What all keys of a write have in common. Public.
    type Word;
    /// One server's key. Secret.
    type Key;
    /// What a writer knows of its write. Secret.
    type Known;
    /// One server's share of a table.
    type Table;

    /// How many audits stand side by side, so that whoever may try hashes gains nothing.
    const COPIES: usize;

    /// A writer's keys for a message in a row.
    ///
    /// # Errors
    /// [`NotGenerated`].
    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Generated<Self>, NotGenerated>;

    /// The sums of the audited vector, as its writer knows it.
    fn sums(&self, known: &Self::Known, points: &Points<Self::Number>) -> Sums<Self::Number>;

    /// A table without a write.
    fn table(&self) -> Self::Table;

    /// Adds a write to a table, and gives this server's shares of the sums for each of the
    /// points.
    fn add(
        &self,
        word: &Self::Word,
        key: &Self::Key,
        points: &[Points<Self::Number>],
        table: &mut Self::Table,
    ) -> Vec<Sums<Self::Number>>;
}

/// A word, a key for each server, and what only the writer knows.
pub type Generated<E> = (<E as Engine>::Word, Vec<<E as Engine>::Key>, <E as Engine>::Known);

/// Keys by parity, over tables of bytes.
pub struct Parity {
    permutation: Permutation,
    grid: Grid,
}

/// A row and what is written to it.
pub struct Known {
    row: u32,
    message: Zeroizing<Vec<u8>>,
}

impl Parity {
    /// The construction for an epoch's permutation.
    #[must_use]
    pub fn new(permutation: Permutation, grid: Grid) -> Self {
        Self { permutation, grid }
    }

    /// The grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Checks what came in an envelope.
    ///
    /// # Errors
    /// [`BadKey`].
    pub fn key(&self, bytes: Zeroizing<Vec<u8>>) -> Result<Key, BadKey> {
        Key::from_bytes(&self.grid, bytes)
    }
}

impl Engine for Parity {
    type Number = Binary;
    type Word = Vec<u8>;
    type Key = Key;
    type Known = Known;
    type Table = Zeroizing<Vec<u8>>;

    /// One audit is wrong with a chance of (rows + blocks)/2^128, times the hashes tried;
    /// two leave nothing to try for.
    const COPIES: usize = 2;

    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Generated<Self>, NotGenerated> {
        let (word, keys) = generate(&self.permutation, &self.grid, row, message, rng)?;
        Ok((word, keys, Known { row, message: Zeroizing::new(message.to_vec()) }))
    }

    fn sums(&self, known: &Known, points: &Points<Binary>) -> Sums<Binary> {
        let mut digest = Polyval::new(&points.row.0.into());
        digest.update(blocks(known.message.as_chunks::<BLOCK>().0));
        let digest = Binary(digest.finalize().into());
        // POLYVAL's weights run from the highest power down.
        let place = self.grid.shape().rows.get() - known.row;
        let (r, s) = (points.r.power(place), points.s.power(place));
        let both = r.times(&s);
        Sums { r: r.times(&digest), s: s.times(&digest), both: both.times(&digest), plain: digest }
    }

    fn table(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(vec![0; self.grid.shape().bytes()])
    }

    fn add(
        &self,
        word: &Vec<u8>,
        key: &Key,
        points: &[Points<Binary>],
        table: &mut Zeroizing<Vec<u8>>,
    ) -> Vec<Sums<Binary>> {
        let width = self.grid.shape().blocks.get() as usize;
        let mut running: Vec<Running> = points.iter().map(Running::new).collect();
        let mut rest = table.as_chunks_mut::<BLOCK>().0;
        each_group(&self.permutation, &self.grid, word, key, |_, rows| {
            // The last group may reach beyond the table.
            let here = rows.len().min(rest.len());
            let (rows, (part, after)) =
                (&rows[..here], std::mem::take(&mut rest).split_at_mut(here));
            rest = after;
            running.iter_mut().for_each(|sums| sums.take(rows, width));
            part.as_flattened_mut().iter_mut().zip(rows.as_flattened()).for_each(|(a, b)| *a ^= b);
        });
        running.into_iter().map(Running::finish).collect()
    }
}

fn blocks(rows: &[[u8; BLOCK]]) -> &[Block] {
    Array::cast_slice_from_core(rows)
}

/// The sums of a share, row by row.
struct Running {
    row: Polyval,
    /// Weighed by r, by s, by both.
    weighed: [Polyval; 3],
    plain: Binary,
    digests: Zeroizing<Vec<[u8; BLOCK]>>,
}

impl Running {
    fn new(points: &Points<Binary>) -> Self {
        let both = points.r.times(&points.s);
        let weighed = [&points.r, &points.s, &both].map(|point| Polyval::new(&point.0.into()));
        let digests = Zeroizing::new(Vec::new());
        Self { row: Polyval::new(&points.row.0.into()), weighed, plain: Binary::place(0), digests }
    }

    /// The next rows, of so many blocks each.
    fn take(&mut self, rows: &[[u8; BLOCK]], width: usize) {
        self.digests.clear();
        for row in rows.chunks_exact(width) {
            let mut digest = self.row.clone();
            digest.update(blocks(row));
            let digest = digest.finalize();
            self.plain = self.plain.plus(&Binary(digest.into()));
            self.digests.push(digest.into());
        }
        self.weighed.iter_mut().for_each(|sum| sum.update(blocks(&self.digests)));
    }

    fn finish(self) -> Sums<Binary> {
        let [r, s, both] = self.weighed.map(|sum| Binary(sum.finalize().into()));
        Sums { r, s, both, plain: self.plain }
    }
}
