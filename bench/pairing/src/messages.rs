//! Everything that crosses between owner, server and verifier: blocks, functions, answers.

use crate::elements::{self, ElementError, G1, GT, Target};
use crate::parameters::PairingSet;
use crate::ring::Polynomial;
use crate::scalars::{SCALAR, signed};
use crate::tag::{TAG, Tag};
use alpheus_verifiable_table::baseline::power;
use alpheus_verifiable_table::error::VerifyError;
use alpheus_verifiable_table::label::{Column, DataSet, Kind};
use alpheus_verifiable_table::messages::Weights;
use alpheus_verifiable_table::ring::ITEM_LIMIT;
use blstrs::{G1Affine, Scalar};
use ff::Field;
use serde::{Deserialize, Serialize};

/// The shape of a data set, which all parties must agree on. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The parameters.
    pub set: PairingSet,
    /// The number of ciphertext columns.
    pub columns: u16,
    /// The largest magnitude of an item.
    pub bound: i64,
}

/// An invalid shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a data set has at least one column, and a bound from 0 to {max}: use another shape")]
pub struct ShapeError {
    /// The largest bound.
    max: i64,
}

/// The format of stored blocks.
const FORMAT: u8 = 1;
/// Format, data set, number.
const HEADER: usize = 1 + 16 + 8;
/// A data set, columns, bound.
const LABEL: usize = 16 + 2 + 8;
/// The bytes of a column's public seed.
const SEED: usize = 32;

impl Shape {
    /// Checks that a data set can have this shape.
    pub(crate) fn check(&self) -> Result<(), ShapeError> {
        let max = ITEM_LIMIT - 1;
        let fine = self.columns > 0 && (0..=max).contains(&self.bound);
        if fine { Ok(()) } else { Err(ShapeError { max }) }
    }

    /// A data set with its shape, as labels, masks and the secret bind them. Another shape makes
    /// another data set. The parameter set's name is bound separately.
    pub(crate) fn data_set_label(&self, data_set: &DataSet) -> [u8; LABEL] {
        let mut bytes = [0; LABEL];
        let parts = data_set.0.into_iter().chain(self.columns.to_be_bytes());
        let parts = parts.chain(self.bound.to_be_bytes());
        bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        bytes
    }

    fn column_length(&self) -> usize {
        SEED + self.set.ring().degree() * SCALAR + TAG
    }

    /// The length of each block in bytes.
    #[must_use]
    pub fn block_length(&self) -> usize {
        HEADER + usize::from(self.columns) * self.column_length()
    }
}

/// Bytes that are not a block of this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The length is wrong.
    #[error("a block of this shape has {expected} bytes, but this one has {actual}: send it whole")]
    Length {
        /// The length of a block of this shape.
        expected: usize,
        /// The length of these bytes.
        actual: usize,
    },
    /// The format is unknown.
    #[error(
        "the block has format {0}, but this program reads 1: use the same version on both sides"
    )]
    Format(u8),
    /// A coefficient is q or more.
    #[error("column {0} has a coefficient that is not canonical: send the block unchanged")]
    Coefficient(u16),
    /// A tag is invalid.
    #[error("column {column}: {error}; send the block unchanged")]
    Tag {
        /// The column.
        column: u16,
        /// The invalid element.
        error: ElementError,
    },
}

/// One column of a block: a ciphertext, with its seed in place of c1, and its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredColumn {
    pub(crate) seed: [u8; SEED],
    pub(crate) c0: Polynomial,
    pub(crate) tag: Tag,
}

/// A block: n items under one label for each column.
///
/// # Privacy
/// It reveals how many blocks and columns there are, and nothing about values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub(crate) shape: Shape,
    pub(crate) data_set: DataSet,
    pub(crate) index: u64,
    pub(crate) columns: Vec<StoredColumn>,
}

impl Block {
    /// Reads a block. Every coefficient must be canonical and every element in its group.
    /// Verifying an answer shows whether the owner made the block.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn from_bytes(shape: &Shape, bytes: &[u8]) -> Result<Self, BlockError> {
        let wrong = BlockError::Length { expected: shape.block_length(), actual: bytes.len() };
        if bytes.len() != shape.block_length() {
            return Err(wrong);
        }
        let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(wrong)?;
        let [format, header @ ..] = header;
        if *format != FORMAT {
            return Err(BlockError::Format(*format));
        }
        let (data_set, index) = header.split_first_chunk::<16>().ok_or(wrong)?;
        let index =
            index.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or(wrong)?;
        let columns = (0..shape.columns).zip(body.chunks_exact(shape.column_length()));
        let columns = columns.map(|(column, bytes)| read_column(column, bytes).ok_or(wrong)?);
        let columns = columns.collect::<Result<_, BlockError>>()?;
        Ok(Self { shape: *shape, data_set: DataSet(*data_set), index, columns })
    }

    /// The block's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.shape.block_length());
        bytes.push(FORMAT);
        bytes.extend(self.data_set.0);
        bytes.extend(self.index.to_be_bytes());
        for StoredColumn { seed, c0, tag } in &self.columns {
            bytes.extend(seed);
            write(c0, &mut bytes);
            bytes.extend(tag.to_bytes());
        }
        bytes
    }

    /// The data set in its header.
    #[must_use]
    pub fn data_set(&self) -> DataSet {
        self.data_set
    }

    /// The block's number in the data set.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// A column's ciphertext, with c1 expanded from its seed.
    pub(crate) fn ciphertext(&self, column: Column) -> Option<([Polynomial; 2], &Tag)> {
        let StoredColumn { seed, c0, tag } = self.columns.get(usize::from(column.0))?;
        Some(([c0.clone(), self.shape.set.ring().uniform(seed)], tag))
    }
}

fn read_column(column: u16, bytes: &[u8]) -> Option<Result<StoredColumn, BlockError>> {
    let (seed, rest) = bytes.split_first_chunk::<SEED>()?;
    let (c0, tag) = rest.split_last_chunk::<TAG>()?;
    let Some(c0) = read(c0) else { return Some(Err(BlockError::Coefficient(column))) };
    let tag = Tag::from_bytes(tag).map_err(|error| BlockError::Tag { column, error });
    Some(tag.map(|tag| StoredColumn { seed: *seed, c0, tag }))
}

fn write(coefficients: &[Scalar], bytes: &mut Vec<u8>) {
    coefficients.iter().for_each(|x| bytes.extend(x.to_bytes_le()));
}

/// Reads coefficients. `None` if one is not canonical or bytes are left over.
pub(crate) fn read(bytes: &[u8]) -> Option<Polynomial> {
    let (scalars, rest) = bytes.as_chunks::<SCALAR>();
    let scalars = scalars.iter().map(|bytes| Option::from(Scalar::from_bytes_le(bytes)));
    rest.is_empty().then(|| scalars.collect())?
}

/// A statistic over blocks, computed slot by slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// Σ w_i·x_i.
    Sum(Column, Weights),
    /// Σ w_i·x_i·y_i.
    Products(Column, Column, Weights),
    /// N·Σ x_i·y_i − Σ x_i·Σ y_i: N² times the covariance, or of one column the variance.
    Covariance(Column, Column),
}

/// A function of blocks `from..to`. It names no data set and applies to every one that has
/// these blocks.
///
/// # Privacy
/// The server sees all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The statistic.
    pub of: Statistic,
    /// The first block.
    pub from: u64,
    /// One past the last block.
    pub to: u64,
}

impl Function {
    /// The degree, 1 or 2.
    #[must_use]
    pub fn degree(&self) -> usize {
        if matches!(self.of, Statistic::Sum(..)) { 1 } else { 2 }
    }

    /// The kind of the sum.
    pub(crate) fn kind(&self) -> Kind {
        match self.of {
            Statistic::Sum(a, _) => Kind::Column(a),
            Statistic::Products(a, b, _) | Statistic::Covariance(a, b) => Kind::Product(a, b),
        }
    }

    /// The columns of the statistic.
    pub(crate) fn columns(&self) -> [Column; 2] {
        match self.kind() {
            Kind::Column(a) => [a, a],
            Kind::Product(a, b) => [a, b],
        }
    }

    /// The weights.
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

/// A server's answer: the value's ciphertext, not reduced modulo `X^n + 1`, and its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(crate) sum: Vec<Polynomial>,
    pub(crate) tag: ValueTag,
}

/// The tag of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueTag {
    /// The tag of a sum: T and X.
    Linear(G1Affine, G1Affine),
    /// The tag of a value of degree two: T₂, X₂', Λ.
    Quadratic(Box<[Target; 3]>),
}

impl Answer {
    /// The length in bytes of an answer of this degree.
    #[must_use]
    pub fn length(set: PairingSet, degree: usize) -> usize {
        let ring = set.ring();
        match degree {
            1 => 2 * ring.degree() * SCALAR + 2 * G1,
            _ => 3 * ring.product_length() * SCALAR + 3 * GT,
        }
    }

    /// The components, then the tag.
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

    /// Reads an answer to a function of this degree. Accepts the exact length, canonical
    /// coefficients and elements of their groups only.
    ///
    /// # Errors
    /// [`VerifyError`], as for every wrong answer.
    pub fn from_bytes(set: PairingSet, degree: usize, bytes: &[u8]) -> Result<Self, VerifyError> {
        if bytes.len() != Self::length(set, degree) {
            return Err(VerifyError);
        }
        let (length, elements) = match degree {
            1 => (set.ring().degree(), 2 * G1),
            _ => (set.ring().product_length(), 3 * GT),
        };
        let (sum, tag) = bytes.split_at(bytes.len() - elements);
        let tag = read_tag(degree, tag).ok_or(VerifyError)?;
        let components = sum.chunks_exact(length * SCALAR).map(read);
        let sum = components.collect::<Option<_>>().ok_or(VerifyError)?;
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
