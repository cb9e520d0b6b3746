//! All that crosses between owner, server and verifier: what is stored, what is asked, what
//! is answered.

use super::elements::{self, BadElement, G1, GT, Target};
use super::keys::uniform;
use super::parameters::PairingSet;
use super::ring::Polynomial;
use super::scalars::{SCALAR, signed};
use super::tag::{TAG, Tag};
use crate::error::Rejected;
use crate::label::{Column, DataSet, Kind};
use crate::messages::{Weights, power};
use crate::ring::ITEM_LIMIT;
use blstrs::{G1Affine, Scalar};
use ff::Field;
use serde::{Deserialize, Serialize};

/// What all parties must agree on. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The parameters.
    pub set: PairingSet,
    /// Columns of ciphertexts.
    pub columns: u16,
    /// The greatest magnitude of an item.
    pub bound: i64,
}

/// The shape cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a data set has at least one column, and items of at most {most}: give another shape")]
pub struct BadShape {
    /// The greatest bound.
    most: i64,
}

/// The format of stored blocks.
const FORMAT: u8 = 1;
/// Format, data set, number.
const HEADER: usize = 1 + 16 + 8;
/// A data set, columns, bound.
const NAMED: usize = 16 + 2 + 8;
/// Bytes of a column's public seed.
const SEED: usize = 32;

impl Shape {
    /// Whether a data set can have it.
    pub(crate) fn check(&self) -> Result<(), BadShape> {
        let most = ITEM_LIMIT - 1;
        let fine = self.columns > 0 && (0..=most).contains(&self.bound);
        if fine { Ok(()) } else { Err(BadShape { most }) }
    }

    /// A data set's name with its shape, as labels, masks and the secret bind them: what was
    /// sealed for another shape is another data set. The set's name goes beside.
    pub(crate) fn named(&self, data_set: &DataSet) -> [u8; NAMED] {
        let mut bytes = [0; NAMED];
        let parts = data_set.0.into_iter().chain(self.columns.to_be_bytes());
        let parts = parts.chain(self.bound.to_be_bytes());
        bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        bytes
    }

    fn column_length(&self) -> usize {
        SEED + self.set.ring().degree() * SCALAR + TAG
    }

    /// Bytes of each block.
    #[must_use]
    pub fn block_length(&self) -> usize {
        HEADER + usize::from(self.columns) * self.column_length()
    }
}

/// Bytes are no block of this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBlock {
    /// Another length.
    #[error("a block of this shape has {expected} bytes, this has {found}: send it whole")]
    Length {
        /// What a block of the shape has.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// Another format.
    #[error("the block has format {0}, this program reads 1: use the same version on both sides")]
    Format(u8),
    /// A coefficient is q or more.
    #[error("column {0} has a coefficient that is not canonical: send the block as it was made")]
    Coefficient(u16),
    /// A tag is none.
    #[error("column {column}: {error}; send the block as it was made")]
    Tag {
        /// The column.
        column: u16,
        /// What is wrong.
        error: BadElement,
    },
}

/// One column of a block: a ciphertext, c1 by its seed, and its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) seed: [u8; SEED],
    pub(crate) c0: Polynomial,
    pub(crate) tag: Tag,
}

/// A block: for each column n items under one label.
///
/// # Privacy
/// Whoever has it learns how many blocks and columns there are, and nothing of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub(crate) shape: Shape,
    pub(crate) data_set: DataSet,
    pub(crate) index: u64,
    pub(crate) columns: Vec<Stored>,
}

impl Block {
    /// Reads a block: every coefficient canonical, every element in its group. Whether it
    /// is what the owner made shows when an answer is verified.
    ///
    /// # Errors
    /// [`BadBlock`].
    pub fn from_bytes(shape: &Shape, bytes: &[u8]) -> Result<Self, BadBlock> {
        let wrong = BadBlock::Length { expected: shape.block_length(), found: bytes.len() };
        if bytes.len() != shape.block_length() {
            return Err(wrong);
        }
        let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(wrong)?;
        let [format, header @ ..] = header;
        if *format != FORMAT {
            return Err(BadBlock::Format(*format));
        }
        let (data_set, index) = header.split_first_chunk::<16>().ok_or(wrong)?;
        let index =
            index.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or(wrong)?;
        let columns = (0..shape.columns).zip(body.chunks_exact(shape.column_length()));
        let columns = columns.map(|(column, bytes)| read_column(column, bytes).ok_or(wrong)?);
        let columns = columns.collect::<Result<_, BadBlock>>()?;
        Ok(Self { shape: *shape, data_set: DataSet(*data_set), index, columns })
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.shape.block_length());
        bytes.push(FORMAT);
        bytes.extend(self.data_set.0);
        bytes.extend(self.index.to_be_bytes());
        for Stored { seed, c0, tag } in &self.columns {
            bytes.extend(seed);
            write(c0, &mut bytes);
            bytes.extend(tag.to_bytes());
        }
        bytes
    }

    /// The data set that it says it is of.
    #[must_use]
    pub fn data_set(&self) -> DataSet {
        self.data_set
    }

    /// Its number in the data set.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// A column's ciphertext, c1 made from its seed.
    pub(crate) fn ciphertext(&self, column: Column) -> Option<([Polynomial; 2], &Tag)> {
        let Stored { seed, c0, tag } = self.columns.get(usize::from(column.0))?;
        Some(([c0.clone(), uniform(self.shape.set.ring(), seed)], tag))
    }
}

fn read_column(column: u16, bytes: &[u8]) -> Option<Result<Stored, BadBlock>> {
    let (seed, rest) = bytes.split_first_chunk::<SEED>()?;
    let (c0, tag) = rest.split_last_chunk::<TAG>()?;
    let Some(c0) = read(c0) else { return Some(Err(BadBlock::Coefficient(column))) };
    let tag = Tag::from_bytes(tag).map_err(|error| BadBlock::Tag { column, error });
    Some(tag.map(|tag| Stored { seed: *seed, c0, tag }))
}

fn write(coefficients: &[Scalar], bytes: &mut Vec<u8>) {
    coefficients.iter().for_each(|x| bytes.extend(x.to_bytes_le()));
}

/// Coefficients; none if one is not canonical or a rest stays.
pub(crate) fn read(bytes: &[u8]) -> Option<Polynomial> {
    let (scalars, rest) = bytes.as_chunks::<SCALAR>();
    let scalars = scalars.iter().map(|bytes| Option::from(Scalar::from_bytes_le(bytes)));
    rest.is_empty().then(|| scalars.collect())?
}

/// What is computed over blocks, slot by slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// Σ w_i·x_i.
    Sum(Column, Weights),
    /// Σ w_i·x_i·y_i.
    Products(Column, Column, Weights),
    /// N·Σ x_i·y_i − Σ x_i·Σ y_i: N² times the covariance, or of one column the variance.
    Covariance(Column, Column),
}

/// A function of blocks `from` to `to`, the last excluded. It names no data set: it may be
/// asked of each that has those blocks.
///
/// # Privacy
/// The server sees all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// What is computed.
    pub of: Statistic,
    /// The first block.
    pub from: u64,
    /// One more than the last.
    pub to: u64,
}

impl Function {
    /// One or two.
    #[must_use]
    pub fn degree(&self) -> usize {
        if matches!(self.of, Statistic::Sum(..)) { 1 } else { 2 }
    }

    /// What is summed.
    pub(crate) fn kind(&self) -> Kind {
        match self.of {
            Statistic::Sum(a, _) => Kind::Column(a),
            Statistic::Products(a, b, _) | Statistic::Covariance(a, b) => Kind::Product(a, b),
        }
    }

    /// The columns that it takes.
    pub(crate) fn columns(&self) -> [Column; 2] {
        match self.kind() {
            Kind::Column(a) => [a, a],
            Kind::Product(a, b) => [a, b],
        }
    }

    /// Its weights.
    pub(crate) fn weights(&self) -> &Weights {
        match &self.of {
            Statistic::Sum(_, weights) | Statistic::Products(_, _, weights) => weights,
            Statistic::Covariance(..) => &Weights::Ones,
        }
    }

    /// The weight of a block.
    pub(crate) fn weight(&self, set: PairingSet, index: u64) -> Scalar {
        match self.weights() {
            Weights::Ones => Scalar::ONE,
            Weights::Polynomial(coefficients) => {
                let i = Scalar::from(index);
                coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum * i + signed(*c))
            }
            Weights::Powers(x) => signed(power(set.ring().plain, *x, index)),
            Weights::Each(first, weights) => {
                let at = index.checked_sub(*first).and_then(|at| usize::try_from(at).ok());
                signed(at.and_then(|at| weights.get(at).copied()).unwrap_or(0))
            }
        }
    }
}

/// What a server says: the value's ciphertext, without reduction modulo `X^n + 1`, and its
/// tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(crate) sum: Vec<Polynomial>,
    pub(crate) tag: ValueTag,
}

/// The tag of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueTag {
    /// Of a sum: T and X.
    Linear(G1Affine, G1Affine),
    /// Of degree two: T₂, X₂', Λ.
    Quadratic(Box<[Target; 3]>),
}

impl Answer {
    /// Bytes of an answer of a degree.
    #[must_use]
    pub fn length(set: PairingSet, degree: usize) -> usize {
        let ring = set.ring();
        match degree {
            1 => 2 * ring.degree() * SCALAR + 2 * G1,
            _ => 3 * ring.product_length() * SCALAR + 3 * GT,
        }
    }

    /// Its bytes: the components, then the tag.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.sum.iter().for_each(|component| write(component, &mut bytes));
        match &self.tag {
            ValueTag::Linear(t, x) => {
                [t, x].iter().for_each(|element| bytes.extend(element.to_compressed()));
            }
            ValueTag::Quadratic(elements) => {
                elements.iter().for_each(|element| bytes.extend(element.to_bytes()));
            }
        }
        bytes
    }

    /// Reads an answer to a function of a degree: exact length, canonical coefficients,
    /// elements of their groups.
    ///
    /// # Errors
    /// [`Rejected`], as for any other wrong answer.
    pub fn from_bytes(set: PairingSet, degree: usize, bytes: &[u8]) -> Result<Self, Rejected> {
        if bytes.len() != Self::length(set, degree) {
            return Err(Rejected);
        }
        let (length, elements) = match degree {
            1 => (set.ring().degree(), 2 * G1),
            _ => (set.ring().product_length(), 3 * GT),
        };
        let (sum, tag) = bytes.split_at(bytes.len() - elements);
        let tag = read_tag(degree, tag).ok_or(Rejected)?;
        let components = sum.chunks_exact(length * SCALAR).map(read);
        let sum = components.collect::<Option<_>>().ok_or(Rejected)?;
        Ok(Self { sum, tag })
    }
}

fn read_tag(degree: usize, bytes: &[u8]) -> Option<ValueTag> {
    if degree == 1 {
        let [t, x] = bytes.as_chunks().0 else { return None };
        return Some(ValueTag::Linear(elements::first(t).ok()?, elements::first(x).ok()?));
    }
    let [t, x, lambda] = bytes.as_chunks().0 else { return None };
    let read = |bytes| Target::from_bytes(bytes).ok();
    Some(ValueTag::Quadratic(Box::new([read(t)?, read(x)?, read(lambda)?])))
}
