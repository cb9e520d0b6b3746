//! Everything that crosses between owner and server: blocks, requests and answers.

use crate::cipher::Ciphertext;
use crate::error::{BlockError, RequestError, VerifyError};
use crate::label::{Address, Column, DataSet, Kind, Segment};
use crate::packing;
use crate::parameters::Set;
use crate::ring::Ring;
use crate::sampling;
use crate::tag::Tag;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// What owner and server must agree on to read each other's messages. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The table.
    pub data_set: DataSet,
    /// Its parameters.
    pub set: Set,
    /// The number of ciphertext columns.
    pub columns: u16,
    /// Pairs of columns whose products have tags, in order.
    pub products: Vec<(Column, Column)>,
}

/// The format of stored blocks.
const FORMAT: u8 = 2;
/// Format, data set, segment, epoch, number.
const HEADER: usize = 1 + 16 + 16 + 4 + 8;
/// The most columns, and the most products, that a table may have.
pub const MAX_COLUMNS: u16 = 256;

impl Manifest {
    /// The ring of the parameter set.
    #[must_use]
    pub fn ring(&self) -> &'static Ring {
        self.set.ring()
    }

    /// Checks a manifest from another party.
    ///
    /// # Errors
    /// [`RequestError::Manifest`].
    pub fn check(&self) -> Result<(), RequestError> {
        let valid = |(a, b): &(Column, Column)| a <= b && b.0 < self.columns;
        let sorted = self.products.windows(2).all(|pair| pair[0] < pair[1]);
        let few = self.columns <= MAX_COLUMNS && self.products.len() <= usize::from(MAX_COLUMNS);
        let fine = self.columns > 0 && few && sorted && self.products.iter().all(valid);
        if fine { Ok(()) } else { Err(RequestError::Manifest) }
    }

    fn tag_length(&self) -> usize {
        self.ring().limbs() * self.ring().spec.repetitions * 8
    }

    fn column_length(&self) -> usize {
        32 + packing::length(self.ring()) + self.tag_length()
    }

    /// The length of each block in bytes.
    #[must_use]
    pub fn block_length(&self) -> usize {
        let columns = usize::from(self.columns) * self.column_length();
        HEADER + columns + self.products.len() * self.tag_length()
    }

    /// The range of a block's header in its bytes.
    #[must_use]
    pub fn header(&self) -> Range<usize> {
        0..HEADER
    }

    /// The address in a block's header. `None` if it is no header of this table's blocks.
    #[must_use]
    pub fn address_in(&self, header: &[u8]) -> Option<Address> {
        let rest = header.strip_prefix(&[FORMAT])?.strip_prefix(&self.data_set.0)?;
        let (segment, rest) = rest.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let index = u64::from_be_bytes(rest.try_into().ok()?);
        Some(Address { segment: Segment(*segment), epoch: u32::from_be_bytes(*epoch), index })
    }

    fn product(&self, kind: Kind) -> Option<usize> {
        let Kind::Product(a, b) = kind else { return None };
        self.products.binary_search(&(a, b)).ok()
    }

    /// A column's range in a block's bytes.
    fn column_at(&self, column: Column) -> Option<Range<usize>> {
        let length = self.column_length();
        let from = HEADER + usize::from(column.0) * length;
        (column.0 < self.columns).then(|| from..from + length)
    }

    /// The range of a column's seed and packed c0 in a block's bytes.
    fn body_at(&self, column: Column) -> Option<Range<usize>> {
        let Range { start, end } = self.column_at(column)?;
        Some(start..end - self.tag_length())
    }

    /// The range of a tag in a block's bytes.
    fn tag_at(&self, kind: Kind) -> Option<Range<usize>> {
        let length = self.tag_length();
        let end = match kind {
            Kind::Column(column) => self.column_at(column)?.end,
            Kind::Product(..) => {
                let columns = usize::from(self.columns) * self.column_length();
                HEADER + columns + (self.product(kind)? + 1) * length
            }
        };
        Some(end - length..end)
    }

    /// The parts of a block's bytes that a sum of this kind takes, in the order that
    /// [`Sum::add_parts`](crate::server::Sum::add_parts) expects. A server need read nothing
    /// else from its disk. `None` if blocks have no such tag.
    #[must_use]
    pub fn parts(&self, kind: Kind) -> Option<Vec<Range<usize>>> {
        let tag = self.tag_at(kind)?;
        Some(match kind {
            Kind::Product(a, b) if a != b => vec![self.body_at(a)?, self.body_at(b)?, tag],
            Kind::Column(a) | Kind::Product(a, _) => vec![self.body_at(a)?, tag],
        })
    }

    /// Whether blocks have tags of this kind.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Column(column) => column.0 < self.columns,
            Kind::Product(..) => self.product(kind).is_some(),
        }
    }
}

/// A block as it is uploaded, stored and fetched: always the same bytes. It has a seed, a
/// packed c0 and a tag for each column, then the products' tags.
///
/// # Privacy
/// It reveals how many blocks and columns there are, and nothing about values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<B = Vec<u8>> {
    address: Address,
    bytes: B,
}

/// Writes the bytes of a block.
pub(crate) struct BlockWriter(pub(crate) Vec<u8>);

impl BlockWriter {
    pub(crate) fn new(manifest: &Manifest, address: &Address) -> Self {
        let mut bytes = Vec::with_capacity(manifest.block_length());
        bytes.push(FORMAT);
        bytes.extend(manifest.data_set.0);
        bytes.extend(address.segment.0);
        bytes.extend(address.epoch.to_be_bytes());
        bytes.extend(address.index.to_be_bytes());
        Self(bytes)
    }

    pub(crate) fn column(&mut self, ring: &Ring, seed: &[u8; 32], c0: &[u64], tag: &Tag) {
        self.0.extend(seed);
        packing::pack(c0, &mut self.0);
        self.tag(ring, tag);
    }

    pub(crate) fn tag(&mut self, ring: &Ring, tag: &Tag) {
        tag.words(ring).for_each(|word| self.0.extend(word.to_le_bytes()));
    }
}

impl Block {
    pub(crate) fn sealed(address: Address, writer: BlockWriter) -> Self {
        Self { address, bytes: writer.0 }
    }
}

impl<B: AsRef<[u8]>> Block<B> {
    /// Reads a block of a table. Checks the header and the length only; verifying shows
    /// whether the owner made it.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn from_bytes(manifest: &Manifest, bytes: B) -> Result<Self, BlockError> {
        let all = bytes.as_ref();
        let expected = manifest.block_length();
        if all.len() != expected {
            return Err(BlockError::Length { expected, actual: all.len() });
        }
        let (header, _) = all.split_at(HEADER);
        if header[0] != FORMAT {
            return Err(BlockError::Format(header[0]));
        }
        let address = manifest.address_in(header).ok_or(BlockError::DataSet)?;
        Ok(Self { address, bytes })
    }

    /// The address in its header.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// The exact bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// A part of the bytes.
    pub(crate) fn part(&self, at: Range<usize>) -> Option<&[u8]> {
        self.bytes.as_ref().get(at)
    }

    /// A column's ciphertext, with c1 expanded from its seed. `None` if it is not canonical.
    pub(crate) fn ciphertext(&self, manifest: &Manifest, column: Column) -> Option<Ciphertext> {
        let ring = manifest.ring();
        let mut ciphertext = Ciphertext::zero(ring, 2);
        read_column(ring, self.part(manifest.body_at(column)?)?, &mut ciphertext)?;
        Some(ciphertext)
    }

    /// The tag of a column or product. `None` if there is none or it is not canonical.
    pub(crate) fn tag(&self, manifest: &Manifest, kind: Kind) -> Option<Tag> {
        read_tag(manifest.ring(), self.part(manifest.tag_at(kind)?)?)
    }
}

/// Reads a stored column's ciphertext into an existing one of two components.
pub(crate) fn read_column(ring: &Ring, bytes: &[u8], out: &mut Ciphertext) -> Option<()> {
    let (seed, rest) = bytes.split_first_chunk::<32>()?;
    let packed = rest.get(..packing::length(ring))?;
    let [c0, c1] = out.0.as_mut_slice() else { return None };
    sampling::uniform_to(ring, seed, c1);
    packing::unpack_to(ring, packed, c0).then_some(())
}

pub(crate) fn read_tag(ring: &Ring, bytes: &[u8]) -> Option<Tag> {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = rest.is_empty() && words.len() == ring.limbs() * ring.spec.repetitions;
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    whole.then(|| Tag::from_words(ring, words))?
}

/// Blocks `from..to` of one segment and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The start of the owner that sealed them.
    pub segment: Segment,
    /// The epoch within that start.
    pub epoch: u32,
    /// The first block.
    pub from: u64,
    /// One past the last block.
    pub to: u64,
}

impl Run {
    /// The addresses of its blocks.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let Self { segment, epoch, from, to } = *self;
        (from..to).map(move |index| Address { segment, epoch, index })
    }
}

/// The weight of each block, as a function of its number i.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weights {
    /// One.
    Ones,
    /// Σ c_k·i^k, lowest degree first.
    Polynomial(#[serde(deserialize_with = "few")] Vec<i128>),
    /// x^(n·i) modulo t, centred. Evaluates at x a polynomial whose coefficients the table
    /// holds.
    Powers(u64),
    /// The first block's number, and one weight for each block, in order.
    Each(u64, #[serde(deserialize_with = "few")] Vec<i128>),
}

impl Weights {
    /// The numbers that it holds.
    fn numbers(&self) -> usize {
        match self {
            Self::Ones | Self::Powers(_) => 0,
            Self::Polynomial(weights) | Self::Each(_, weights) => weights.len(),
        }
    }

    /// The weight of block i, modulo each limb's prime.
    pub(crate) fn residues(&self, ring: &Ring, i: u64) -> Vec<u64> {
        match self {
            Self::Ones => vec![1; ring.limbs()],
            Self::Polynomial(coefficients) => {
                let value = |prime: &crate::arithmetic::prime::Prime| {
                    let i = prime.reduce(i.into());
                    let step = |sum, c: &i128| (prime.mul(sum, i) + prime.signed(*c)) % prime.p;
                    coefficients.iter().rev().fold(0, step)
                };
                ring.q.iter().map(|ntt| value(&ntt.prime)).collect()
            }
            Self::Powers(x) => residues(ring, power(ring, *x, i)),
            Self::Each(first, weights) => {
                let at = i.checked_sub(*first).and_then(|at| usize::try_from(at).ok());
                residues(ring, at.and_then(|at| weights.get(at).copied()).unwrap_or(0))
            }
        }
    }
}

fn residues(ring: &Ring, weight: i128) -> Vec<u64> {
    ring.q.iter().map(|ntt| ntt.prime.signed(weight)).collect()
}

/// x^(n·i) modulo t, centred.
pub(crate) fn power(ring: &Ring, x: u64, i: u64) -> i128 {
    let [a, b] = ring.t.each_ref().map(|ntt| {
        let prime = &ntt.prime;
        prime.pow(prime.pow(x % prime.p, ring.degree() as u64), i)
    });
    let [first, second] = ring.t.each_ref().map(|ntt| &ntt.prime);
    let difference = second.signed(i128::from(b) - i128::from(a));
    let digit = second.mul(difference, second.invert(first.p % second.p));
    let whole = i128::from(a) + i128::from(first.p) * i128::from(digit);
    let t = ring.plain_modulus().cast_signed();
    if whole > t / 2 { whole - t } else { whole }
}

/// A request for a weighted sum of blocks, or of products of blocks.
///
/// # Privacy
/// The server sees all of it: columns, blocks, weights and x.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What to sum.
    pub kind: Kind,
    /// The blocks, in order of their numbers.
    #[serde(deserialize_with = "few")]
    pub runs: Vec<Run>,
    /// Their weights.
    pub weights: Weights,
}

/// The most blocks in one request.
pub const MAX_REQUEST_BLOCKS: u64 = 1 << 20;
/// The most coefficients of a polynomial of weights.
pub const MAX_COEFFICIENTS: usize = 16;

/// Reads a list that belongs to one request. A weight of one byte takes sixteen in memory, so a
/// limit on bytes alone would not do.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_REQUEST_BLOCKS} runs or weights")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(next) = from.next_element()? {
                if list.len() as u64 >= MAX_REQUEST_BLOCKS {
                    return Err(Error::invalid_length(list.len(), &self));
                }
                list.push(next);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(Few(PhantomData))
}

impl Request {
    /// The runs and weights that it lists, and itself: what its memory grows with.
    #[must_use]
    pub fn parts(&self) -> usize {
        1 + self.runs.len() + self.weights.numbers()
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.to.saturating_sub(run.from)))
    }

    /// Checks that a server can serve this request.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn check(&self, manifest: &Manifest) -> Result<(), RequestError> {
        if !manifest.has(self.kind) {
            return Err(RequestError::Kind(self.kind));
        }
        let ordered = self.runs.windows(2).all(|pair| pair[0].to <= pair[1].from);
        if self.runs.is_empty() || !ordered || self.runs.iter().any(|run| run.from >= run.to) {
            return Err(RequestError::Runs);
        }
        check_size(self.blocks(), &self.weights)
    }
}

/// Checks that a server accepts this many blocks and these weights in one request.
pub(crate) fn check_size(blocks: u64, weights: &Weights) -> Result<(), RequestError> {
    if blocks > MAX_REQUEST_BLOCKS {
        return Err(RequestError::Blocks { max: MAX_REQUEST_BLOCKS, count: blocks });
    }
    match weights {
        Weights::Polynomial(c) if c.len() > MAX_COEFFICIENTS => {
            Err(RequestError::Weights { max: MAX_COEFFICIENTS })
        }
        _ => Ok(()),
    }
}

/// ν and σ: the sum and its tag.
pub struct Answer {
    pub(crate) sum: Ciphertext,
    pub(crate) tag: Tag,
}

impl Answer {
    /// The packed components, then the tag.
    #[must_use]
    pub fn to_bytes(&self, ring: &Ring) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.sum.0.len() * packing::length(ring) + 256);
        self.sum.0.iter().for_each(|component| packing::pack(component, &mut bytes));
        self.tag.words(ring).for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    /// Reads an answer of this kind. Accepts the exact length and canonical words only.
    ///
    /// # Errors
    /// [`VerifyError`], as for every wrong answer.
    pub fn from_bytes(ring: &Ring, kind: Kind, bytes: &[u8]) -> Result<Self, VerifyError> {
        let length = packing::length(ring);
        let (components, tag) =
            bytes.split_at_checked(kind.components() * length).ok_or(VerifyError)?;
        let tag = read_tag(ring, tag).ok_or(VerifyError)?;
        let components = components.chunks_exact(length);
        let components: Option<Vec<_>> =
            components.map(|bytes| packing::unpack(ring, bytes)).collect();
        Ok(Self { sum: Ciphertext(components.ok_or(VerifyError)?), tag })
    }

    /// The length in bytes of an answer of this kind.
    #[must_use]
    pub fn length(ring: &Ring, kind: Kind) -> usize {
        kind.components() * packing::length(ring) + ring.limbs() * ring.spec.repetitions * 8
    }
}
