//! The paper's own construction for s servers (§IV-D), over ristretto255 instead of P-256, with the
//! proofs of well-formedness that its authors left out. It is slow and serves comparison only. No
//! board uses it.
//!
//! The generator's seeds add up: G(z)_p = z·P_p for hashed elements P_p. So the seeds of s servers
//! are shares, modulo the group's order, of a vector with one nonzero entry. `docs/protocol.md` has
//! the equations.
//!
//! | module | holds |
//! | --- | --- |
//! | [`mod@line`] | the proof that all columns of the word but one are empty |

pub mod line;

use super::engine::{Engine, GeneratedKeys, Points};
use super::field::Field;
use super::gate::Sums;
use crate::dpf::generate::GenerationError;
use alpheus_crypto::cells::{Cells, EMBEDDED_BYTES, MultiplicationTable};
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::labels;
use line::Line;
use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// Integers modulo the group's order.
pub struct Modular(SecretScalar);

impl Field for Modular {
    const BYTES: usize = 32;

    fn node(index: u8) -> Self {
        Self(SecretScalar::from_small(index.into()))
    }

    fn plus(&self, other: &Self) -> Self {
        Self(self.0.plus(&other.0))
    }

    fn minus(&self, other: &Self) -> Self {
        Self(self.0.minus(&other.0))
    }

    fn times(&self, other: &Self) -> Self {
        Self(self.0.times(&other.0))
    }

    fn inverse(&self) -> Self {
        self.0.inverse().map_or(Self::node(0), Self)
    }

    fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        Self(SecretScalar::from_public(&PublicScalar::from_hash(label, parts)))
    }

    fn random(rng: &mut impl CryptoRng) -> Self {
        Self(SecretScalar::random(rng))
    }

    fn expose(&self) -> Vec<u8> {
        self.0.expose().expose().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let public = PublicScalar::from_bytes(bytes.try_into().ok()?).ok()?;
        Some(Self(SecretScalar::from_public(&public)))
    }

    fn duplicate(&self) -> Self {
        Self(self.0.duplicate())
    }

    fn select(one: &Self, other: &Self, second: Choice) -> Self {
        Self(SecretScalar::select(&one.0, &other.0, second))
    }
}

/// The construction for tables of a given size.
pub struct Group {
    servers: usize,
    /// Rows of the square that a table is arranged in: entries of a key.
    down: u32,
    /// Columns of the square: the span of a word.
    across: u32,
    /// Elements in a row of the table.
    width: usize,
    /// P, by column and element.
    bases: Vec<Element>,
    multiples: Vec<MultiplicationTable>,
}

/// One server's key: its shares of the write's position and of the seed there. Secret.
pub struct Key {
    at: Vec<Modular>,
    seeds: Vec<Modular>,
}

/// The word that all servers get. Public.
#[derive(Clone)]
pub struct Word {
    /// v: turns the stretched seed into the message.
    pub cells: Vec<Element>,
    /// For each server, the sum of its seeds times the base.
    pub sums: Vec<Element>,
    /// Proves that all columns of v but one are the negated stretched seed.
    pub line: Line,
}

/// The position of a writer's write, and its seed. Secret.
pub struct Witness {
    down: u32,
    seed: Modular,
}

/// Why a key is rejected before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key or the word does not have the length required for this table.
    #[error("the key or the word does not have the length required for this table")]
    Length,
    /// The key's seeds do not match the word's sum.
    #[error("the key's seeds do not match the word")]
    Seeds,
    /// More than one column of the word may hold a message.
    #[error("the word's proof does not hold")]
    Columns,
}

impl Group {
    /// The construction for `rows` rows of at least `bytes` bytes, arranged in a square.
    #[must_use]
    pub fn new(servers: usize, rows: u32, bytes: usize) -> Self {
        let across = rows.isqrt().max(1);
        let (down, width) = (rows.div_ceil(across), bytes.div_ceil(EMBEDDED_BYTES).max(1));
        let bases: Vec<Element> = (0..u64::from(across) * width as u64)
            .map(|at| Element::from_hash(labels::BOARD_BASE, &[&at.to_be_bytes()]))
            .collect();
        let multiples = bases.iter().map(MultiplicationTable::new).collect();
        Self { servers, down, across, width, bases, multiples }
    }

    /// Elements in a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Checks one server's key and the word, before anything is expanded.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn check(&self, server: usize, word: &Word, key: &Key) -> Result<(), KeyError> {
        let down = self.down as usize;
        let fits = key.at.len() == down
            && key.seeds.len() == down
            && word.cells.len() == self.bases.len()
            && word.sums.len() == self.servers;
        if !fits {
            return Err(KeyError::Length);
        }
        let own = Element::base().times(&total(&key.seeds).0).map_err(|_| KeyError::Seeds)?;
        if word.sums.get(server) != Some(&own) {
            return Err(KeyError::Seeds);
        }
        let holds = word.line.holds(self.width, &self.bases, &word.cells, &word.sums);
        if holds { Ok(()) } else { Err(KeyError::Columns) }
    }

    /// This server's share of the mark. The shares of all servers add up to 1 for a write that
    /// counts.
    #[must_use]
    pub fn mark(key: &Key) -> Modular {
        total(&key.at)
    }

    /// The message of a row. `None` if nobody wrote there, or if the content is not a message.
    #[must_use]
    pub fn read(&self, table: &Cells, row: u32) -> Option<Vec<u8>> {
        let first = row as usize * self.width;
        let cells: Option<Vec<_>> = (first..first + self.width).map(|at| table.read(at)).collect();
        Some(cells?.iter().flat_map(Element::embedded_bytes).collect())
    }
}

fn total(numbers: &[Modular]) -> Modular {
    numbers.iter().fold(Modular::node(0), |sum, number| sum.plus(number))
}

/// Shares of a vector that is `value` at one position and zero elsewhere.
fn share_vector(
    servers: usize,
    length: u32,
    position: u32,
    value: &Modular,
    rng: &mut impl CryptoRng,
) -> Vec<Vec<Modular>> {
    let zero = Modular::node(0);
    let mut rest: Vec<Modular> =
        (0..length).map(|at| Modular::select(&zero, value, at.ct_eq(&position))).collect();
    let mut shares: Vec<Vec<Modular>> = (1..servers)
        .map(|_| {
            let share: Vec<Modular> = (0..length).map(|_| Modular::random(rng)).collect();
            rest.iter_mut().zip(&share).for_each(|(rest, share)| *rest = rest.minus(share));
            share
        })
        .collect();
    shares.push(rest);
    shares
}

impl Engine for Group {
    type Number = Modular;
    type Word = Word;
    type Key = Key;
    type Witness = Witness;
    type Table = Cells;

    /// The order is near 2^252, so searching for a helpful hash is infeasible.
    const COPIES: usize = 1;

    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<GeneratedKeys<Self>, GenerationError> {
        let (down, across) = (row / self.across, row % self.across);
        if down >= self.down {
            return Err(GenerationError::Row);
        }
        if message.len() != self.width * EMBEDDED_BYTES {
            return Err(GenerationError::Length);
        }
        let seed = Modular::random(rng);
        let (parts, _) = message.as_chunks::<EMBEDDED_BYTES>();
        let held: Vec<Element> = parts.iter().map(|part| Element::embed(part, rng)).collect();
        let cells = self.word(across, &seed, &held)?;
        let at = share_vector(self.servers, self.down, down, &Modular::node(1), rng);
        let seeds = share_vector(self.servers, self.down, down, &seed, rng);
        let vanished = |_| GenerationError::Seeds;
        let sums = seeds.iter().map(|seeds| Element::base().times(&total(seeds).0));
        let sums: Vec<Element> = sums.collect::<Result<_, _>>().map_err(vanished)?;
        let line = Line::prove(self.width, across, &seed, &self.bases, &cells, &sums, rng);
        let word = Word { cells, sums, line: line.ok_or(GenerationError::Seeds)? };
        let keys = at.into_iter().zip(seeds).map(|(at, seeds)| Key { at, seeds }).collect();
        Ok((word, keys, Witness { down, seed }))
    }

    /// The sums of u = at + α·seeds, which has one nonzero entry.
    fn sums(&self, witness: &Witness, points: &Points<Modular>) -> Sums<Modular> {
        let u = Modular::node(1).plus(&points.row.times(&witness.seed));
        let exponent = self.down - witness.down;
        let (r, s) = (points.r.power(exponent), points.s.power(exponent));
        let both = r.times(&s).times(&u);
        Sums { r: r.times(&u), s: s.times(&u), both, plain: u }
    }

    fn table(&self) -> Cells {
        Cells::zero(self.down as usize * self.bases.len())
    }

    fn add(
        &self,
        word: &Word,
        key: &Key,
        points: &[Points<Modular>],
        table: &mut Cells,
    ) -> Vec<Sums<Modular>> {
        let each = self.bases.len();
        for (column, (base, cell)) in self.multiples.iter().zip(&word.cells).enumerate() {
            let cell = MultiplicationTable::new(cell);
            for (down, (at, seed)) in key.at.iter().zip(&key.seeds).enumerate() {
                table.add(down * each + column, &seed.0, base);
                table.add(down * each + column, &at.0, &cell);
            }
        }
        points.iter().map(|points| share_of_sums(key, points)).collect()
    }
}

impl Group {
    /// v: the message in one column, minus the stretched seed in every column.
    fn word(
        &self,
        across: u32,
        seed: &Modular,
        held: &[Element],
    ) -> Result<Vec<Element>, GenerationError> {
        let (minus, zero, one) = (
            Modular::node(0).minus(seed),
            SecretScalar::from_small(0),
            SecretScalar::from_small(1),
        );
        let columns = (0..self.across).zip(self.bases.chunks(self.width));
        let cells = columns.flat_map(|(column, bases)| {
            let here = SecretScalar::select(&zero, &one, column.ct_eq(&across));
            let minus = &minus;
            bases.iter().zip(held).map(move |(base, held)| {
                Element::combine(&[(&minus.0, base), (&here, held)], &[], &[])
            })
        });
        cells.collect::<Result<_, _>>().map_err(|_| GenerationError::Seeds)
    }
}

fn share_of_sums(key: &Key, points: &Points<Modular>) -> Sums<Modular> {
    let zero = || Modular::node(0);
    let mut sums = Sums { r: zero(), s: zero(), both: zero(), plain: zero() };
    let both = points.r.times(&points.s);
    // Horner's rule: the first entry gets the highest power.
    for (at, seed) in key.at.iter().zip(&key.seeds) {
        let u = at.plus(&points.row.times(seed));
        sums = Sums {
            r: sums.r.plus(&u).times(&points.r),
            s: sums.s.plus(&u).times(&points.s),
            both: sums.both.plus(&u).times(&both),
            plain: sums.plain.plus(&u),
        };
    }
    sums
}

impl Key {
    /// The encoding, to which writers commit: marks, then seeds.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.at.iter().chain(&self.seeds).flat_map(Field::expose).collect())
    }

    /// Decodes a key. `None` if the bytes are not a list of numbers. [`Group::check`] tests whether
    /// it fits.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.chunks(Modular::BYTES).map(Modular::from_bytes);
        let mut at: Vec<Modular> = numbers.collect::<Option<_>>()?;
        let seeds = at.split_off(at.len() / 2);
        Some(Self { at, seeds })
    }
}
