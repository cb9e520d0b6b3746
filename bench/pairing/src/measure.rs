//! The parts of the paper's own scheme, each alone, for benchmarks.
//! [`alpheus_verifiable_table::measure`] has those of the main scheme.

use crate::keys::{DataSetSecret, Keys, Pair};
use crate::messages::{Answer, Block, Function, Shape, Statistic, read};
use crate::owner::Owner;
use crate::parameters::PairingSet;
use crate::planner;
use crate::ring::Polynomial;
use crate::scalars::{SCALAR, signed};
use crate::server::{Evaluation, Linear, Products};
use crate::tag::Tag;
use crate::verifier::{PreparedFunction, Verifier};
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Column, DataSet};
use alpheus_verifiable_table::messages::Weights;
use blstrs::Scalar;
use ff::Field;
use rand_core::CryptoRng;
use std::hint::black_box;

const COLUMN: Column = Column(0);

/// One part of the work, on one block of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Encoding and encrypting, as without verification.
    Encrypt,
    /// The tag: its hash, mask and four elements.
    Tag,
    /// Adding a ciphertext to a sum.
    Add,
    /// Adding its tag to a sum's.
    AddTag,
    /// Adding a ciphertext and its whole tag, so that the sum can be multiplied.
    AddWhole,
    /// Adding a ciphertext times a weight of 32 bits to a sum.
    Scale,
    /// Adding its tag, raised to that weight.
    ScaleTag,
    /// Adding the product of two ciphertexts to a sum.
    Product,
    /// Adding a product's tag: four Miller loops.
    ProductTag,
    /// A product as without verification: reduced modulo `X^n + 1`, so half as long.
    PlainProduct,
    /// Finishing a sum of products: its coefficients, and its tag's final exponentiations.
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
    /// Reading the coefficients of a sum's answer alone.
    ReadPlain,
    /// Reading the coefficients that a sum of products would have if it were reduced.
    ReadPlainProduct,
    /// Checking a sum, with the function prepared.
    Verify,
    /// Checking a sum of products.
    VerifyProduct,
    /// Deriving a data set's secret, once before its first value is decrypted.
    Secret,
    /// Decrypting a sum.
    Decrypt,
    /// Decrypting a sum of products.
    DecryptProduct,
    /// Decrypting a sum of products that was already reduced.
    DecryptPlainProduct,
    /// Preparing a sum of products over this many blocks.
    Prepare(u64),
}

/// A prepared function and its answer.
struct PreparedQuestion {
    of: Statistic,
    prepared: PreparedFunction,
    answer: Answer,
    bytes: Vec<u8>,
}

/// The most blocks that a function is prepared for here.
const MAX_BLOCKS: u64 = 1 << 10;

/// Fixtures of a benchmark: keys, a ciphertext with its tag, answers, and buffers for sums.
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
    questions: [PreparedQuestion; 2],
}

impl Parts {
    /// Fixtures for one set. `None` if a value is wrong, which is a bug.
    pub fn new(set: PairingSet, rng: &mut impl CryptoRng) -> Option<Self> {
        let key = TableKey::new(Secret::from_bytes([7; 32]));
        let shape = Shape { set, columns: 1, bound: 1000 };
        let slots: Vec<i64> = (0..1000).cycle().take(set.ring().degree()).collect();
        let mut owner = Owner::begin(&key, shape, rng).ok()?;
        let block = owner.seal(std::slice::from_ref(&slots), rng).ok()?;
        let verifier = Verifier::new(&key, shape).ok()?;
        let square = Statistic::Products(COLUMN, COLUMN, Weights::Ones);
        let statistics = [Statistic::Sum(COLUMN, Weights::Ones), square];
        let [sum, squares] = statistics.map(|of| ask(&verifier, &shape, &block, of));
        let questions = [sum?, squares?];
        let power = |x: &i64, degree| i128::from(*x).pow(degree);
        for (degree, PreparedQuestion { prepared, bytes, .. }) in (1..).zip(&questions) {
            let opened = prepared.verify(&owner.data_set(), bytes).ok()?.decrypt();
            let expected = slots.iter().map(|x| power(x, degree));
            expected.eq(opened.slots().iter().copied()).then_some(())?;
        }
        let (ciphertext, tag) = block.ciphertext(COLUMN)?;
        let (keys, data_set) = (Keys::new(&key, set), owner.data_set());
        let ring = set.ring();
        let reduced = questions[1].answer.sum.iter().map(|c| ring.reduce(c)).collect();
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
            questions,
        })
    }

    /// From now on, checks functions over this many blocks. The answers are still those of
    /// one block, so checking rejects them, in the same time.
    ///
    /// `None` if the function is rejected, which is a bug.
    pub fn reach(&mut self, blocks: u64) -> Option<()> {
        for question in &mut self.questions {
            let function = Function { of: question.of.clone(), from: 0, to: blocks };
            question.prepared = self.verifier.prepare(function).ok()?;
        }
        Some(())
    }

    /// Runs one part.
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
            Part::Expand => drop(black_box(set.ring().uniform(&[5; 32]))),
            Part::Read => self.read(0),
            Part::ReadProduct => self.read(1),
            Part::ReadPlain => self.read_plain(2, set.ring().degree()),
            Part::ReadPlainProduct => self.read_plain(3, set.ring().degree()),
            Part::Verify => self.verify(0),
            Part::VerifyProduct => self.verify(1),
            Part::Secret => drop(black_box(self.keys.secret(&self.shape, &self.data_set))),
            Part::Decrypt => self.decrypt(&self.questions[0].answer.sum),
            Part::DecryptProduct => self.decrypt(&self.questions[1].answer.sum),
            Part::DecryptPlainProduct => self.decrypt(&self.reduced),
            Part::Prepare(blocks) => {
                let function = Function { of: self.questions[1].of.clone(), from: 0, to: blocks };
                black_box(self.verifier.prepare(function).is_ok());
            }
        }
    }

    fn read(&self, which: usize) {
        let bytes = &self.questions[which].bytes;
        black_box(Answer::from_bytes(self.shape.set, which + 1, bytes).is_ok());
    }

    fn verify(&self, which: usize) {
        let PreparedQuestion { prepared, answer, .. } = &self.questions[which];
        black_box(bool::from(prepared.check(&self.data_set, answer)));
    }

    fn decrypt(&self, components: &[Polynomial]) {
        black_box(self.keys.decrypt(&self.secret, components));
    }

    /// Reads components of this many coefficients from an answer's bytes.
    fn read_plain(&self, components: usize, length: usize) {
        let chunks = self.questions[1].bytes.chunks_exact(length * SCALAR);
        black_box(chunks.take(components).filter_map(read).count());
    }

    /// Multiplies and adds values at the roots of `X^n + 1`, element by element.
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

/// Prepares a function of one block and answers it honestly.
fn ask(
    verifier: &Verifier,
    shape: &Shape,
    block: &Block,
    of: Statistic,
) -> Option<PreparedQuestion> {
    // A rejected function would do no work, so none may be timed.
    planner::check(shape, &Function { of: of.clone(), from: 0, to: MAX_BLOCKS }).ok()?;
    let function = Function { of: of.clone(), from: 0, to: 1 };
    let mut evaluation = Evaluation::new(shape, &function).ok()?;
    evaluation.add(block).ok()?;
    let answer = evaluation.answer().ok()?;
    let (prepared, bytes) = (verifier.prepare(function.clone()).ok()?, answer.to_bytes());
    Some(PreparedQuestion { of, prepared, answer, bytes })
}
