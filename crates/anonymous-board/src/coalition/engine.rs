//! The common interface of the two key constructions, and the construction that boards use.

use super::field::{Binary, Field};
use super::gate::Sums;
use super::parity::expand::each_group;
use super::parity::generate::generate;
use super::parity::{Grid, Key, KeyError, Permutation};
use crate::dpf::BLOCK;
use crate::dpf::generate::GenerationError;
use aes::Block;
use aes::cipher::array::Array;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The points at which an audit evaluates, drawn when all keys are fixed. Public.
pub struct Points<F> {
    /// Weights the parts of a row, or of its representative.
    pub row: F,
    /// The vector r consists of its powers.
    pub r: F,
    /// The vector s consists of its powers.
    pub s: F,
}

/// A construction of keys for s servers, all but one of which may collude.
pub trait Engine {
    /// The field of its audit.
    type Number: Field;
    /// The word that all keys of a write share. Public.
    type Word;
    /// One server's key. Secret.
    type Key;
    /// A writer's knowledge about its write. Secret.
    type Witness;
    /// One server's share of a table.
    type Table;

    /// The number of parallel audits, so that trying hashes gains an attacker nothing.
    const COPIES: usize;

    /// Makes a writer's keys for a message in a row.
    ///
    /// # Errors
    /// [`GenerationError`].
    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<GeneratedKeys<Self>, GenerationError>;

    /// The sums of the audited vector, from the writer's knowledge.
    fn sums(&self, witness: &Self::Witness, points: &Points<Self::Number>) -> Sums<Self::Number>;

    /// A table without writes.
    fn table(&self) -> Self::Table;

    /// Adds a write to a table and returns this server's shares of the sums, for each set of
    /// points.
    fn add(
        &self,
        word: &Self::Word,
        key: &Self::Key,
        points: &[Points<Self::Number>],
        table: &mut Self::Table,
    ) -> Vec<Sums<Self::Number>>;
}

/// A word, a key for each server, and the writer's witness.
pub type GeneratedKeys<E> = (<E as Engine>::Word, Vec<<E as Engine>::Key>, <E as Engine>::Witness);

/// Keys by parity, for tables of bytes.
pub struct Parity {
    permutation: Permutation,
    grid: Grid,
}

/// A row and its message.
pub struct Witness {
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

    /// Decodes and checks a key from an envelope.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn key(&self, bytes: Zeroizing<Vec<u8>>) -> Result<Key, KeyError> {
        Key::from_bytes(&self.grid, bytes)
    }
}

impl Engine for Parity {
    type Number = Binary;
    type Word = Vec<u8>;
    type Key = Key;
    type Witness = Witness;
    type Table = Zeroizing<Vec<u8>>;

    /// One audit errs with a probability of (rows + blocks)/2^128, times the number of hashes
    /// tried. With two audits, trying hashes is hopeless.
    const COPIES: usize = 2;

    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<GeneratedKeys<Self>, GenerationError> {
        let (word, keys) = generate(&self.permutation, &self.grid, row, message, rng)?;
        Ok((word, keys, Witness { row, message: Zeroizing::new(message.to_vec()) }))
    }

    fn sums(&self, witness: &Witness, points: &Points<Binary>) -> Sums<Binary> {
        let mut digest = Polyval::new(&points.row.0.into());
        digest.update(blocks(witness.message.as_chunks::<BLOCK>().0));
        let digest = Binary(digest.finalize().into());
        // POLYVAL's weights run from the highest power down.
        let exponent = self.grid.shape().rows.get() - witness.row;
        let (r, s) = (points.r.power(exponent), points.s.power(exponent));
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
        let mut states: Vec<SumState> = points.iter().map(SumState::new).collect();
        let mut rest = table.as_chunks_mut::<BLOCK>().0;
        each_group(&self.permutation, &self.grid, word, key, |_, rows| {
            // The last group may reach beyond the table.
            let here = rows.len().min(rest.len());
            let (rows, (part, after)) =
                (&rows[..here], std::mem::take(&mut rest).split_at_mut(here));
            rest = after;
            states.iter_mut().for_each(|sums| sums.update(rows, width));
            part.as_flattened_mut().iter_mut().zip(rows.as_flattened()).for_each(|(a, b)| *a ^= b);
        });
        states.into_iter().map(SumState::finish).collect()
    }
}

fn blocks(rows: &[[u8; BLOCK]]) -> &[Block] {
    Array::cast_slice_from_core(rows)
}

/// The sums of a share, accumulated row by row.
struct SumState {
    row: Polyval,
    /// Weighted by r, by s and by both.
    weighed: [Polyval; 3],
    plain: Binary,
    digests: Zeroizing<Vec<[u8; BLOCK]>>,
}

impl SumState {
    fn new(points: &Points<Binary>) -> Self {
        let both = points.r.times(&points.s);
        let weighed = [&points.r, &points.s, &both].map(|point| Polyval::new(&point.0.into()));
        let digests = Zeroizing::new(Vec::new());
        Self { row: Polyval::new(&points.row.0.into()), weighed, plain: Binary::node(0), digests }
    }

    /// Adds the next rows, of `width` blocks each.
    fn update(&mut self, rows: &[[u8; BLOCK]], width: usize) {
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
