//! The parts of the work in the paper's own scheme, each alone, for benchmarks: as
//! [`crate::measure`] has them for ours.

use super::keys::{DataSetSecret, Keys, Pair, uniform};
use super::messages::{Answer, Block, Function, Shape, Statistic, read};
use super::owner::Owner;
use super::parameters::PairingSet;
use super::planner;
use super::ring::Polynomial;
use super::scalars::{SCALAR, signed};
use super::server::{Evaluation, Linear, Products};
use super::tag::Tag;
use super::verifier::{Prepared, Verifier};
use crate::keys::TableKey;
use crate::label::{Column, DataSet};
use crate::messages::Weights;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use blstrs::Scalar;
use ff::Field;
use rand_core::CryptoRng;
use std::hint::black_box;

const COLUMN: Column = Column(0);

/// One part of the work, on one block of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Encoding and encrypting, as without any checking.
    Encrypt,
    /// The tag: its hash, mask and four elements.
    Tag,
    /// Adding a ciphertext to a sum.
    Add,
    /// Adding its tag to a sum's.
    AddTag,
    /// Adding a ciphertext and all of its tag, so that the sum can be multiplied.
    AddWhole,
    /// Adding a ciphertext times a weight of 32 bits to a sum.
    Scale,
    /// Adding its tag, raised likewise.
    ScaleTag,
    /// Adding the product of two ciphertexts to a sum.
    Product,
    /// Adding a product's tag: four Miller loops.
    ProductTag,
    /// A product as without any checking: reduced modulo `X^n + 1`, so half as long.
    PlainProduct,
    /// What ends a sum of products: its coefficients, and last powers of its tag.
    Finish,
    /// Reading a stored block: coefficients, elements in their groups.
    ReadBlock,
    /// Reading a block's coefficients alone.
    ReadPlainBlock,
    /// Making c1 from its seed.
    Expand,
    /// Reading a sum's answer: coefficients, elements in their groups.
    Read,
    /// Reading the answer of a sum of products.
    ReadProduct,
    /// Reading the coefficients that the answer of a sum has.
    ReadPlain,
    /// Reading those that the answer of a sum of products would have, were it reduced.
    ReadPlainProduct,
    /// Checking a sum, of a function that was prepared.
    Verify,
    /// Checking a sum of products.
    VerifyProduct,
    /// The secret of a data set: what comes before its first value is decrypted.
    Secret,
    /// Decrypting a sum.
    Decrypt,
    /// Decrypting a sum of products.
    DecryptProduct,
    /// Decrypting one that was reduced before.
    DecryptPlainProduct,
    /// Preparing a sum of products over so many blocks.
    Prepare(u64),
}

/// A question, prepared, and its answer.
struct Asked {
    of: Statistic,
    prepared: Prepared,
    answer: Answer,
    bytes: Vec<u8>,
}

/// Blocks that a function may be prepared for here.
const MOST: u64 = 1 << 10;

/// A bench: keys of its own, a ciphertext with its tag, answers, and room for sums.
pub struct Parts {
    shape: Shape,
    keys: Keys,
    secret: DataSetSecret,
    mask: Pair,
    inputs: Prf,
    slots: Vec<i64>,
    ciphertext: [Polynomial; 2],
    tag: Tag,
    block: Vec<u8>,
    linear: Linear,
    products: Products,
    /// A sum of products of n values a component, and a product of n coefficients.
    plain: [Polynomial; 3],
    reduced: Vec<Polynomial>,
    verifier: Verifier,
    data_set: DataSet,
    asked: [Asked; 2],
}

impl Parts {
    /// A bench of one set; none if a value is not what it should be, which is our mistake.
    pub fn new(set: PairingSet, rng: &mut impl CryptoRng) -> Option<Self> {
        let key = TableKey::new(Secret::from_bytes([7; 32]));
        let shape = Shape { set, columns: 1, bound: 1000 };
        let slots: Vec<i64> = (0..1000).cycle().take(set.ring().degree()).collect();
        let mut owner = Owner::begin(&key, shape, rng).ok()?;
        let block = owner.seal(std::slice::from_ref(&slots), rng).ok()?;
        let verifier = Verifier::new(&key, shape).ok()?;
        let square = Statistic::Products(COLUMN, COLUMN, Weights::Ones);
        let asked = [Statistic::Sum(COLUMN, Weights::Ones), square];
        let [sum, squares] = asked.map(|of| ask(&verifier, &shape, &block, of));
        let asked = [sum?, squares?];
        let power = |x: &i64, degree| i128::from(*x).pow(degree);
        for (degree, Asked { prepared, bytes, .. }) in (1..).zip(&asked) {
            let opened = prepared.verify(&owner.data_set(), bytes).ok()?.decrypt();
            let expected = slots.iter().map(|x| power(x, degree));
            expected.eq(opened.slots().iter().copied()).then_some(())?;
        }
        let (ciphertext, tag) = block.ciphertext(COLUMN)?;
        let (keys, data_set) = (Keys::new(&key, set), owner.data_set());
        let ring = set.ring();
        let reduced = asked[1].answer.sum.iter().map(|c| ring.reduced(c)).collect();
        Some(Self {
            shape,
            secret: keys.secret(&shape, &data_set),
            mask: keys.data_set(&shape, &data_set),
            inputs: keys.inputs(COLUMN),
            keys,
            block: block.to_bytes(),
            plain: [(); 3].map(|()| vec![Scalar::ZERO; ring.degree()]),
            reduced,
            slots,
            ciphertext,
            tag: *tag,
            linear: Linear::zero(set),
            products: Products::zero(set),
            verifier,
            data_set,
            asked,
        })
    }

    /// Prepares what is checked over so many blocks from now on. Answers stay those of one
    /// block, so that checking finds them wrong, in the time that it always takes.
    ///
    /// None if the function is refused, which is our mistake.
    pub fn reach(&mut self, blocks: u64) -> Option<()> {
        for asked in &mut self.asked {
            let function = Function { of: asked.of.clone(), from: 0, to: blocks };
            asked.prepared = self.verifier.prepare(function).ok()?;
        }
        Some(())
    }

    /// Does one part of the work.
    pub fn run(&mut self, part: Part) {
        let (c, one, weight) = (&self.ciphertext, Scalar::ONE, signed(0x1_2345_6789));
        let set = self.shape.set;
        match part {
            Part::Encrypt => {
                black_box(self.keys.encrypt(&self.secret, b"bench", &self.slots, &[3; 32]));
            }
            Part::Tag => {
                black_box(self.keys.tag(&self.mask, &Keys::input(&self.inputs, 1), c));
            }
            Part::Add => self.linear.add(c, &one),
            Part::AddTag => self.linear.add_tag(&self.tag, &one),
            Part::AddWhole => self.linear.add_whole(c, &self.tag),
            Part::Scale => self.linear.add(c, &weight),
            Part::ScaleTag => self.linear.add_tag(&self.tag, &weight),
            Part::Product => self.products.add(set, [c, c], &one),
            Part::ProductTag => self.products.add_tags([&self.tag, &self.tag], &one),
            Part::PlainProduct => self.plain_product(),
            Part::Finish => drop(black_box(self.products.clone().answer(set))),
            Part::ReadBlock => {
                black_box(Block::from_bytes(&self.shape, &self.block).is_ok());
            }
            Part::ReadPlainBlock => self.read_plain(1, set.ring().degree()),
            Part::Expand => drop(black_box(uniform(set.ring(), &[5; 32]))),
            Part::Read => self.read(0),
            Part::ReadProduct => self.read(1),
            Part::ReadPlain => self.read_plain(2, set.ring().degree()),
            Part::ReadPlainProduct => self.read_plain(3, set.ring().degree()),
            Part::Verify => self.verify(0),
            Part::VerifyProduct => self.verify(1),
            Part::Secret => drop(black_box(self.keys.secret(&self.shape, &self.data_set))),
            Part::Decrypt => self.decrypt(&self.asked[0].answer.sum),
            Part::DecryptProduct => self.decrypt(&self.asked[1].answer.sum),
            Part::DecryptPlainProduct => self.decrypt(&self.reduced),
            Part::Prepare(blocks) => {
                let function = Function { of: self.asked[1].of.clone(), from: 0, to: blocks };
                black_box(self.verifier.prepare(function).is_ok());
            }
        }
    }

    fn read(&self, which: usize) {
        let bytes = &self.asked[which].bytes;
        black_box(Answer::from_bytes(self.shape.set, which + 1, bytes).is_ok());
    }

    fn verify(&self, which: usize) {
        let Asked { prepared, answer, .. } = &self.asked[which];
        black_box(bool::from(prepared.check(&self.data_set, answer)));
    }

    fn decrypt(&self, components: &[Polynomial]) {
        black_box(self.keys.decrypt(&self.secret, components));
    }

    /// Components of so many coefficients, out of those of an answer.
    fn read_plain(&self, components: usize, length: usize) {
        let chunks = self.asked[1].bytes.chunks_exact(length * SCALAR);
        black_box(chunks.take(components).filter_map(read).count());
    }

    /// Values at the roots of `X^n + 1`, multiplied and added up place by place.
    fn plain_product(&mut self) {
        let ring = self.shape.set.ring();
        let [a, b] = [(); 2].map(|()| self.ciphertext.each_ref().map(|c| ring.values(c.clone())));
        let [d0, d1, d2] = &mut self.plain;
        let ([a0, a1], [b0, b1]) = (a, b);
        for (at, ((a0, a1), (b0, b1))) in a0.iter().zip(&a1).zip(b0.iter().zip(&b1)).enumerate() {
            d0[at] += *a0 * b0;
            d1[at] += *a0 * b1 + *a1 * b0;
            d2[at] += *a1 * b1;
        }
    }
}

/// A function of one block, prepared, and answered honestly.
fn ask(verifier: &Verifier, shape: &Shape, block: &Block, of: Statistic) -> Option<Asked> {
    // None that is timed may be refused: that would be no work.
    planner::check(shape, &Function { of: of.clone(), from: 0, to: MOST }).ok()?;
    let function = Function { of: of.clone(), from: 0, to: 1 };
    let mut evaluation = Evaluation::new(shape, &function).ok()?;
    evaluation.add(block).ok()?;
    let answer = evaluation.answer().ok()?;
    let (prepared, bytes) = (verifier.prepare(function.clone()).ok()?, answer.to_bytes());
    Some(Asked { of, prepared, answer, bytes })
}
