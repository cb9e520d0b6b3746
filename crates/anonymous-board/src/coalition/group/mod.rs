//! The paper's own construction for s servers (§IV-D), over ristretto255 in place of P-256,
//! with the proofs of well-formedness that its authors left out: slow, and here for
//! comparison alone. No board uses it.
//!
//! A generator whose seeds add up: G(z)_p = z·P_p for hashed elements P_p, so that the
//! seeds of s servers are shares, modulo the group's order, of a vector with one place that
//! is not zero. `docs/protocol.md` has the equations.
//!
//! | module | gives |
//! | --- | --- |
//! | [`mod@line`] | the proof that all columns of the word but one are nothing |

pub mod line;

use super::engine::{Engine, Generated, Points};
use super::field::Field;
use super::gate::Sums;
use crate::dpf::generate::NotGenerated;
use alpheus_crypto::cells::{Cells, EMBEDDED, Multiples};
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

    fn place(which: u8) -> Self {
        Self(SecretScalar::from_small(which.into()))
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
        self.0.inverted().map_or(Self::place(0), Self)
    }

    fn hashed(label: &str, parts: &[&[u8]]) -> Self {
        Self(SecretScalar::from_public(&PublicScalar::hashed(label, parts)))
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

/// The construction for tables of so many rows of so many elements.
pub struct Group {
    servers: usize,
    /// Rows of the square that a table stands in: entries of a key.
    down: u32,
    /// Its columns: what a word spans.
    across: u32,
    /// Elements in a row of the table.
    width: usize,
    /// P, by column and element.
    bases: Vec<Element>,
    multiples: Vec<Multiples>,
}

/// One server's key: its shares of where the write is, and of the seed there. Secret.
pub struct Key {
    at: Vec<Modular>,
    seeds: Vec<Modular>,
}

/// What all servers get. Public.
#[derive(Clone)]
pub struct Word {
    /// v: what turns the stretched seed into the message.
    pub cells: Vec<Element>,
    /// Of each server's seeds the sum, times the base.
    pub sums: Vec<Element>,
    /// That all columns but one of v are what the seed stretches to, taken off.
    pub line: Line,
}

/// Where a writer's write is, and its seed. Secret.
pub struct Known {
    down: u32,
    seed: Modular,
}

/// Why a key is refused before anything is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Another length than keys or words of this table have.
    #[error("the key or the word has another length than those of this table")]
    Length,
    /// The key's seeds do not add up to what the word says.
    #[error("the key's seeds are not those that the word is about")]
    Seeds,
    /// More columns than one of the word may hold something.
    #[error("the word's proof does not hold")]
    Columns,
}

impl Group {
    /// The construction for `rows` rows of at least `bytes` bytes, in a square.
    #[must_use]
    pub fn new(servers: usize, rows: u32, bytes: usize) -> Self {
        let across = rows.isqrt().max(1);
        let (down, width) = (rows.div_ceil(across), bytes.div_ceil(EMBEDDED).max(1));
        let bases: Vec<Element> = (0..u64::from(across) * width as u64)
            .map(|at| Element::hashed(labels::BOARD_BASE, &[&at.to_be_bytes()]))
            .collect();
        let multiples = bases.iter().map(Multiples::of).collect();
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
    /// [`BadKey`].
    pub fn check(&self, server: usize, word: &Word, key: &Key) -> Result<(), BadKey> {
        let down = self.down as usize;
        let fits = key.at.len() == down
            && key.seeds.len() == down
            && word.cells.len() == self.bases.len()
            && word.sums.len() == self.servers;
        if !fits {
            return Err(BadKey::Length);
        }
        let own = Element::base().times(&total(&key.seeds).0).map_err(|_| BadKey::Seeds)?;
        if word.sums.get(server) != Some(&own) {
            return Err(BadKey::Seeds);
        }
        let holds = word.line.holds(self.width, &self.bases, &word.cells, &word.sums);
        if holds { Ok(()) } else { Err(BadKey::Columns) }
    }

    /// This server's share of what all keys' marks add up to: 1, for a write that counts.
    #[must_use]
    pub fn mark(key: &Key) -> Modular {
        total(&key.at)
    }

    /// The message of a row, or none if nobody wrote there or something that is none.
    #[must_use]
    pub fn read(&self, table: &Cells, row: u32) -> Option<Vec<u8>> {
        let first = row as usize * self.width;
        let cells: Option<Vec<_>> = (first..first + self.width).map(|at| table.read(at)).collect();
        Some(cells?.iter().flat_map(Element::held).collect())
    }
}

fn total(numbers: &[Modular]) -> Modular {
    numbers.iter().fold(Modular::place(0), |sum, number| sum.plus(number))
}

/// Shares of a vector that is `value` at one place and zero elsewhere.
fn shared(
    servers: usize,
    many: u32,
    place: u32,
    value: &Modular,
    rng: &mut impl CryptoRng,
) -> Vec<Vec<Modular>> {
    let zero = Modular::place(0);
    let mut rest: Vec<Modular> =
        (0..many).map(|at| Modular::select(&zero, value, at.ct_eq(&place))).collect();
    let mut shares: Vec<Vec<Modular>> = (1..servers)
        .map(|_| {
            let share: Vec<Modular> = (0..many).map(|_| Modular::random(rng)).collect();
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
    type Known = Known;
    type Table = Cells;

    /// The order is near 2^252: nobody finds a hash that helps.
    const COPIES: usize = 1;

    fn generate(
        &self,
        row: u32,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Generated<Self>, NotGenerated> {
        let (down, across) = (row / self.across, row % self.across);
        if down >= self.down {
            return Err(NotGenerated::Row);
        }
        if message.len() != self.width * EMBEDDED {
            return Err(NotGenerated::Length);
        }
        let seed = Modular::random(rng);
        let (parts, _) = message.as_chunks::<EMBEDDED>();
        let held: Vec<Element> = parts.iter().map(|part| Element::holding(part, rng)).collect();
        let cells = self.word(across, &seed, &held)?;
        let at = shared(self.servers, self.down, down, &Modular::place(1), rng);
        let seeds = shared(self.servers, self.down, down, &seed, rng);
        let vanished = |_| NotGenerated::Seeds;
        let sums = seeds.iter().map(|seeds| Element::base().times(&total(seeds).0));
        let sums: Vec<Element> = sums.collect::<Result<_, _>>().map_err(vanished)?;
        let line = Line::prove(self.width, across, &seed, &self.bases, &cells, &sums, rng);
        let word = Word { cells, sums, line: line.ok_or(NotGenerated::Seeds)? };
        let keys = at.into_iter().zip(seeds).map(|(at, seeds)| Key { at, seeds }).collect();
        Ok((word, keys, Known { down, seed }))
    }

    /// Of u = at + α·seeds, which has one place that is not zero.
    fn sums(&self, known: &Known, points: &Points<Modular>) -> Sums<Modular> {
        let u = Modular::place(1).plus(&points.row.times(&known.seed));
        let place = self.down - known.down;
        let (r, s) = (points.r.power(place), points.s.power(place));
        let both = r.times(&s).times(&u);
        Sums { r: r.times(&u), s: s.times(&u), both, plain: u }
    }

    fn table(&self) -> Cells {
        Cells::empty(self.down as usize * self.bases.len())
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
            let cell = Multiples::of(cell);
            for (down, (at, seed)) in key.at.iter().zip(&key.seeds).enumerate() {
                table.add(down * each + column, &seed.0, base);
                table.add(down * each + column, &at.0, &cell);
            }
        }
        points.iter().map(|points| share_of_sums(key, points)).collect()
    }
}

impl Group {
    /// v: the message in one column, and the stretched seed taken off everywhere.
    fn word(
        &self,
        across: u32,
        seed: &Modular,
        held: &[Element],
    ) -> Result<Vec<Element>, NotGenerated> {
        let (minus, zero, one) = (
            Modular::place(0).minus(seed),
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
        cells.collect::<Result<_, _>>().map_err(|_| NotGenerated::Seeds)
    }
}

fn share_of_sums(key: &Key, points: &Points<Modular>) -> Sums<Modular> {
    let zero = || Modular::place(0);
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
    /// The encoding, which writers are bound to: marks, then seeds.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.at.iter().chain(&self.seeds).flat_map(Field::expose).collect())
    }

    /// Decodes a key; none if the bytes are no list of numbers. Whether it fits
    /// [`Group::check`] says.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.chunks(Modular::BYTES).map(Modular::from_bytes);
        let mut at: Vec<Modular> = numbers.collect::<Option<_>>()?;
        let seeds = at.split_off(at.len() / 2);
        Some(Self { at, seeds })
    }
}
