//! All that crosses between owner and server: what is stored, what is asked, what is
//! answered.

use crate::cipher::Ciphertext;
use crate::error::{BadRequest, Malformed, Rejected};
use crate::label::{Address, Column, DataSet, Kind, Segment};
use crate::packing;
use crate::parameters::Set;
use crate::ring::Ring;
use crate::sampling;
use crate::tag::Tag;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What owner and server must agree on to read each other. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The table.
    pub data_set: DataSet,
    /// Its parameters.
    pub set: Set,
    /// Columns of ciphertexts.
    pub columns: u16,
    /// Pairs of columns whose products have tags, in order.
    pub products: Vec<(Column, Column)>,
}

/// The format of stored blocks.
const FORMAT: u8 = 1;
/// Format, data set, segment, epoch, number.
const HEADER: usize = 1 + 16 + 16 + 4 + 8;
/// Columns and products that a table may have.
pub const COLUMN_LIMIT: u16 = 256;

impl Manifest {
    /// The ring of its set.
    #[must_use]
    pub fn ring(&self) -> &'static Ring {
        self.set.ring()
    }

    /// Checks what another party says.
    ///
    /// # Errors
    /// [`BadRequest::Manifest`].
    pub fn check(&self) -> Result<(), BadRequest> {
        let known = |(a, b): &(Column, Column)| a <= b && b.0 < self.columns;
        let sorted = self.products.windows(2).all(|pair| pair[0] < pair[1]);
        let few = self.columns <= COLUMN_LIMIT && self.products.len() <= usize::from(COLUMN_LIMIT);
        let fine = self.columns > 0 && few && sorted && self.products.iter().all(known);
        if fine { Ok(()) } else { Err(BadRequest::Manifest) }
    }

    fn tag_length(&self) -> usize {
        self.ring().limbs() * self.ring().spec.repetitions * 8
    }

    fn column_length(&self) -> usize {
        32 + packing::length(self.ring()) + self.tag_length()
    }

    /// Bytes of each block.
    #[must_use]
    pub fn block_length(&self) -> usize {
        let columns = usize::from(self.columns) * self.column_length();
        HEADER + columns + self.products.len() * self.tag_length()
    }

    fn product(&self, kind: Kind) -> Option<usize> {
        let Kind::Product(a, b) = kind else { return None };
        self.products.binary_search(&(a, b)).ok()
    }

    /// Where a column stands in a block's bytes.
    fn column_at(&self, column: Column) -> Option<Range<usize>> {
        let length = self.column_length();
        let from = HEADER + usize::from(column.0) * length;
        (column.0 < self.columns).then(|| from..from + length)
    }

    /// Where a column's seed and packed c0 stand in a block's bytes.
    fn body_at(&self, column: Column) -> Option<Range<usize>> {
        let Range { start, end } = self.column_at(column)?;
        Some(start..end - self.tag_length())
    }

    /// Where the tag of a column or product stands in a block's bytes.
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
    /// [`Sum::add_parts`](crate::server::Sum::add_parts) wants: a server that has many
    /// columns reads no more of its disk. None if blocks have no such tag.
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

/// A block as it is uploaded, stored and fetched: the same bytes always. What it holds
/// for each column is a seed, a packed c0 and a tag; then come the products' tags.
///
/// # Privacy
/// Whoever has it learns how many blocks and columns there are, and nothing of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<B = Vec<u8>> {
    address: Address,
    bytes: B,
}

/// Bytes of a block of so many columns, in the making.
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
    /// Reads a block of a table: header and length. Whether it is what the owner made
    /// shows when it is verified.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(manifest: &Manifest, bytes: B) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        let expected = manifest.block_length();
        if all.len() != expected {
            return Err(Malformed::Length { expected, found: all.len() });
        }
        let (header, _) = all.split_at(HEADER);
        if header[0] != FORMAT {
            return Err(Malformed::Format(header[0]));
        }
        if header[1..17] != manifest.data_set.0 {
            return Err(Malformed::DataSet);
        }
        let (mut segment, mut epoch, mut index) = ([0; 16], [0; 4], [0; 8]);
        segment.copy_from_slice(&header[17..33]);
        epoch.copy_from_slice(&header[33..37]);
        index.copy_from_slice(&header[37..45]);
        let (epoch, index) = (u32::from_be_bytes(epoch), u64::from_be_bytes(index));
        Ok(Self { address: Address { segment: Segment(segment), epoch, index }, bytes })
    }

    /// Where it says that it stands.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// The exact bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// A part of its bytes.
    pub(crate) fn part(&self, at: Range<usize>) -> Option<&[u8]> {
        self.bytes.as_ref().get(at)
    }

    /// A column's ciphertext, c1 made from its seed; none if it is not canonical.
    pub(crate) fn ciphertext(&self, manifest: &Manifest, column: Column) -> Option<Ciphertext> {
        let ring = manifest.ring();
        let mut room = Ciphertext::zero(ring, 2);
        read_column(ring, self.part(manifest.body_at(column)?)?, &mut room).map(|()| room)
    }

    /// The tag of a column or product; none if it has none or it is not canonical.
    pub(crate) fn tag(&self, manifest: &Manifest, kind: Kind) -> Option<Tag> {
        read_tag(manifest.ring(), self.part(manifest.tag_at(kind)?)?)
    }
}

/// A stored column's ciphertext, into room of two components.
pub(crate) fn read_column(ring: &Ring, bytes: &[u8], room: &mut Ciphertext) -> Option<()> {
    let (seed, rest) = bytes.split_first_chunk::<32>()?;
    let packed = rest.get(..packing::length(ring))?;
    let [c0, c1] = room.0.as_mut_slice() else { return None };
    sampling::uniform_to(ring, seed, c1);
    packing::unpack_to(ring, packed, c0).then_some(())
}

pub(crate) fn read_tag(ring: &Ring, bytes: &[u8]) -> Option<Tag> {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = rest.is_empty() && words.len() == ring.limbs() * ring.spec.repetitions;
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    whole.then(|| Tag::from_words(ring, words))?
}

/// Blocks `from` to `to`, the last excluded, of one segment and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The start of the owner that made them.
    pub segment: Segment,
    /// The epoch in it.
    pub epoch: u32,
    /// The first.
    pub from: u64,
    /// One more than the last.
    pub to: u64,
}

impl Run {
    /// The addresses of its blocks.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let Self { segment, epoch, from, to } = *self;
        (from..to).map(move |index| Address { segment, epoch, index })
    }
}

/// What each block is multiplied by, as a function of its number i.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weights {
    /// One.
    Ones,
    /// Σ c_k·i^k, lowest degree first.
    Polynomial(Vec<i128>),
    /// x^(n·i) modulo t, centred: for the value at x of a polynomial whose coefficients
    /// the table holds.
    Powers(u64),
    /// The weight of each block that is asked, in order of their numbers, the first
    /// number beside them.
    Each(u64, Vec<i128>),
}

impl Weights {
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

/// A weighted sum of blocks, or of products of blocks.
///
/// # Privacy
/// The server sees all of it: which columns, which blocks, the weights, x.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What is summed.
    pub kind: Kind,
    /// Over which blocks, in order of their numbers.
    pub runs: Vec<Run>,
    /// With which weights.
    pub weights: Weights,
}

/// Blocks of one request.
pub const REQUEST_LIMIT: u64 = 1 << 20;
/// Coefficients of a polynomial of weights.
pub(crate) const COEFFICIENTS: usize = 16;

impl Request {
    /// How many blocks it takes.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.to.saturating_sub(run.from)))
    }

    /// Whether a server may begin with it.
    ///
    /// # Errors
    /// [`BadRequest`].
    pub fn check(&self, manifest: &Manifest) -> Result<(), BadRequest> {
        if !manifest.has(self.kind) {
            return Err(BadRequest::Kind(self.kind));
        }
        let ordered = self.runs.windows(2).all(|pair| pair[0].to <= pair[1].from);
        if self.runs.is_empty() || !ordered || self.runs.iter().any(|run| run.from >= run.to) {
            return Err(BadRequest::Runs);
        }
        within(self.blocks(), &self.weights)
    }
}

/// Whether a server takes so many blocks with such weights at once.
pub(crate) fn within(blocks: u64, weights: &Weights) -> Result<(), BadRequest> {
    if blocks > REQUEST_LIMIT {
        return Err(BadRequest::Blocks { most: REQUEST_LIMIT, asked: blocks });
    }
    match weights {
        Weights::Polynomial(c) if c.len() > COEFFICIENTS => {
            Err(BadRequest::Weights { most: COEFFICIENTS })
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
    /// Its bytes: the components packed, then the tag.
    #[must_use]
    pub fn to_bytes(&self, ring: &Ring) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.sum.0.len() * packing::length(ring) + 256);
        self.sum.0.iter().for_each(|component| packing::pack(component, &mut bytes));
        self.tag.words(ring).for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes
    }

    /// Reads an answer to a question of this kind: exact length, canonical words.
    ///
    /// # Errors
    /// [`Rejected`], as for any other wrong answer.
    pub fn from_bytes(ring: &Ring, kind: Kind, bytes: &[u8]) -> Result<Self, Rejected> {
        let length = packing::length(ring);
        let (components, tag) =
            bytes.split_at_checked(kind.components() * length).ok_or(Rejected)?;
        let tag = read_tag(ring, tag).ok_or(Rejected)?;
        let components = components.chunks_exact(length);
        let components: Option<Vec<_>> =
            components.map(|bytes| packing::unpack(ring, bytes)).collect();
        Ok(Self { sum: Ciphertext(components.ok_or(Rejected)?), tag })
    }

    /// Bytes of an answer of a kind.
    #[must_use]
    pub fn length(ring: &Ring, kind: Kind) -> usize {
        kind.components() * packing::length(ring) + ring.limbs() * ring.spec.repetitions * 8
    }
}
