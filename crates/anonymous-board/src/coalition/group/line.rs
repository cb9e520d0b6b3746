//! A proof that all columns of a word but one hold only the negated stretched seed: y − 1 out of y
//! equalities of logarithms (Cramer, Damgård, Schoenmakers, Crypto 1994).
//!
//! The challenges of the columns lie on a line, e_c = e + (c + 1)·d, where e is a hash. The prover
//! can choose one of them freely and must know the logarithm for all others.

use super::Modular;
use crate::coalition::field::Field;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::labels;
use rand_core::CryptoRng;
use subtle::ConstantTimeEq;

/// The proof: e, d, and a response for each column. Public.
#[derive(Clone)]
pub struct Line {
    hash: Vec<u8>,
    slope: Vec<u8>,
    responses: Vec<Vec<u8>>,
}

/// One column: weighted bases and weighted cells.
struct Column {
    base: Element,
    cell: Element,
}

/// Combines each column's elements into one, with weights that nobody could choose.
fn columns(
    width: usize,
    bases: &[Element],
    cells: &[Element],
    sums: &[Element],
) -> Result<Vec<Column>, IdentityError> {
    let all: Vec<u8> = cells.iter().chain(sums).flat_map(|e| *e.as_bytes()).collect();
    let weight =
        |k: usize| Modular::from_hash(labels::BOARD_COLUMN, &[&all, &(k as u64).to_be_bytes()]);
    let weights: Vec<Modular> = (0..width).map(weight).collect();
    let weighted = |elements: &[Element]| {
        let terms: Vec<_> = weights.iter().map(|weight| &weight.0).zip(elements).collect();
        Element::combine(&terms, &[], &[])
    };
    let pairs = bases.chunks(width).zip(cells.chunks(width));
    pairs
        .map(|(bases, cells)| Ok(Column { base: weighted(bases)?, cell: weighted(cells)? }))
        .collect()
}

/// z·B − e·Z and z·Q + e·V: the commitments, if the response is right.
fn commitment(
    column: &Column,
    whole: &Element,
    challenge: &SecretScalar,
    response: &SecretScalar,
) -> Result<[Element; 2], IdentityError> {
    let minus = SecretScalar::from_small(0).minus(challenge);
    let first = Element::combine(&[(response, &Element::base()), (&minus, whole)], &[], &[])?;
    let second =
        Element::combine(&[(response, &column.base), (challenge, &column.cell)], &[], &[])?;
    Ok([first, second])
}

fn hash(whole: &Element, columns: &[Column], commitments: &[[Element; 2]]) -> Modular {
    let mut bytes = whole.as_bytes().to_vec();
    columns.iter().for_each(|column| {
        bytes.extend_from_slice(column.base.as_bytes());
        bytes.extend_from_slice(column.cell.as_bytes());
    });
    commitments.as_flattened().iter().for_each(|e| bytes.extend_from_slice(e.as_bytes()));
    Modular::from_hash(labels::BOARD_LINE, &[&bytes])
}

/// c + 1.
fn column_number(column: u32) -> Modular {
    Modular(SecretScalar::from_small(column.saturating_add(1)))
}

impl Line {
    /// Makes the proof for a word that holds a message only in column `free`. `None` in the
    /// unlikely case that an element vanishes. Takes the same time for every column.
    #[must_use]
    pub fn prove(
        width: usize,
        free: u32,
        seed: &Modular,
        bases: &[Element],
        cells: &[Element],
        sums: &[Element],
        rng: &mut impl CryptoRng,
    ) -> Option<Self> {
        let whole = Element::combine(&[], &sums.iter().collect::<Vec<_>>(), &[]).ok()?;
        let columns = columns(width, bases, cells, sums).ok()?;
        let (zero, chosen) = (Modular::node(0), Modular::random(rng));
        let numbers = || (0_u32..).take(columns.len());
        let nonces: Vec<Modular> = columns.iter().map(|_| Modular::random(rng)).collect();
        let commitments: Option<Vec<_>> = numbers()
            .zip(columns.iter().zip(&nonces))
            .map(|(c, (column, nonce))| {
                let challenge = Modular::select(&zero, &chosen, c.ct_eq(&free));
                commitment(column, &whole, &challenge.0, &nonce.0).ok()
            })
            .collect();
        let hash = hash(&whole, &columns, &commitments?);
        let slope = chosen.minus(&hash).times(&column_number(free).inverse());
        let responses = numbers().zip(nonces).map(|(c, nonce)| {
            let challenge = hash.plus(&column_number(c).times(&slope));
            let real = nonce.plus(&challenge.times(seed));
            Modular::select(&real, &nonce, c.ct_eq(&free)).expose()
        });
        let responses = responses.collect();
        Some(Self { hash: hash.expose(), slope: slope.expose(), responses })
    }

    /// The encoding: e, d, and the responses in column order.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.hash, &self.slope].into_iter().chain(&self.responses).flatten().copied().collect()
    }

    /// Decodes a proof. `None` if the bytes are not a list of numbers by length. [`Line::holds`]
    /// checks the numbers, and that there is one for each column.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<{ Modular::BYTES }>() else { return None };
        let [hash, slope, responses @ ..] = numbers else { return None };
        let responses = responses.iter().map(|response| response.to_vec()).collect();
        Some(Self { hash: hash.to_vec(), slope: slope.to_vec(), responses })
    }

    /// Whether the proof holds for a word and the servers' sums of seeds.
    #[must_use]
    pub fn holds(
        &self,
        width: usize,
        bases: &[Element],
        cells: &[Element],
        sums: &[Element],
    ) -> bool {
        self.verify(width, bases, cells, sums).unwrap_or(false)
    }

    fn verify(
        &self,
        width: usize,
        bases: &[Element],
        cells: &[Element],
        sums: &[Element],
    ) -> Option<bool> {
        let whole = Element::combine(&[], &sums.iter().collect::<Vec<_>>(), &[]).ok()?;
        let columns = columns(width, bases, cells, sums).ok()?;
        let (e, d) = (Modular::from_bytes(&self.hash)?, Modular::from_bytes(&self.slope)?);
        if self.responses.len() != columns.len() {
            return None;
        }
        let mut commitments = Vec::with_capacity(columns.len());
        for (c, (column, response)) in (0..).zip(columns.iter().zip(&self.responses)) {
            let challenge = e.plus(&column_number(c).times(&d));
            let response = Modular::from_bytes(response)?;
            commitments.push(commitment(column, &whole, &challenge.0, &response.0).ok()?);
        }
        Some(hash(&whole, &columns, &commitments).equals(&e))
    }
}
