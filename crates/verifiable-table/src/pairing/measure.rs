//! The parts of the work in the paper's own scheme, each alone, for benchmarks: as
//! [`crate::measure`] has them for ours.

use super::keys::{Keys, Pair};
use super::messages::{Answer, Function, Shape, Statistic};
use super::owner::Owner;
use super::parameters::PairingSet;
use super::ring::Polynomial;
use super::scalars::signed;
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
    /// Adding a ciphertext times a weight of 32 bits to a sum.
    Scale,
    /// Adding its tag, raised likewise.
    ScaleTag,
    /// Adding the product of two ciphertexts to a sum.
    Product,
    /// Adding a product's tag: four Miller loops.
    ProductTag,
    /// Reading a sum's answer: coefficients, elements in their groups.
    Read,
    /// Reading the answer of a sum of products.
    ReadProduct,
    /// Checking a sum, of a function that was prepared.
    Verify,
    /// Checking a sum of products.
    VerifyProduct,
    /// Decrypting a sum.
    Decrypt,
    /// Decrypting a sum of products.
    DecryptProduct,
    /// Preparing a sum of products over so many blocks.
    Prepare(u64),
}

/// A question, prepared, and its answer.
struct Asked {
    prepared: Prepared,
    answer: Answer,
    bytes: Vec<u8>,
}

/// A bench: keys of its own, a ciphertext with its tag, answers, and room for sums.
pub struct Parts {
    set: PairingSet,
    keys: Keys,
    mask: Pair,
    inputs: Prf,
    slots: Vec<i64>,
    ciphertext: [Polynomial; 2],
    tag: Tag,
    linear: Linear,
    products: Products,
    verifier: Verifier,
    data_set: DataSet,
    asked: [Asked; 2],
}

impl Parts {
    /// A bench of one set; none if what it seals cannot be summed, which is our mistake.
    pub fn new(set: PairingSet, rng: &mut impl CryptoRng) -> Option<Self> {
        let key = TableKey::new(Secret::from_bytes([7; 32]));
        let shape = Shape { set, columns: 1, bound: 1000 };
        let slots: Vec<i64> = (0..1000).cycle().take(set.ring().degree()).collect();
        let mut owner = Owner::begin(&key, shape, rng).ok()?;
        let block = owner.seal(std::slice::from_ref(&slots), rng).ok()?;
        let verifier = Verifier::new(&key, shape);
        let ask = |of| {
            let function = Function { of, from: 0, to: 1 };
            let mut evaluation = Evaluation::new(&shape, &function).ok()?;
            evaluation.add(&block).ok()?;
            let answer = evaluation.answer().ok()?;
            let (prepared, bytes) = (verifier.prepare(function.clone()).ok()?, answer.to_bytes());
            Some(Asked { prepared, answer, bytes })
        };
        let square = Statistic::Products(COLUMN, COLUMN, Weights::Ones);
        let asked = [ask(Statistic::Sum(COLUMN, Weights::Ones))?, ask(square)?];
        let (ciphertext, tag) = block.ciphertext(COLUMN)?;
        let (keys, data_set) = (Keys::new(&key, set), owner.data_set());
        Some(Self {
            set,
            mask: keys.data_set(&data_set),
            inputs: keys.inputs(COLUMN),
            keys,
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

    /// Does one part of the work.
    pub fn run(&mut self, part: Part) {
        let (c, one, weight) = (&self.ciphertext, Scalar::ONE, signed(0x1_2345_6789));
        match part {
            Part::Encrypt => {
                black_box(self.keys.encrypt(b"bench", &self.slots, &[3; 32]));
            }
            Part::Tag => {
                black_box(self.keys.tag(&self.mask, &Keys::input(&self.inputs, 1), c));
            }
            Part::Add => self.linear.add(c, &one),
            Part::AddTag => self.linear.add_tag(&self.tag, &one),
            Part::Scale => self.linear.add(c, &weight),
            Part::ScaleTag => self.linear.add_tag(&self.tag, &weight),
            Part::Product => self.products.add(self.set, [c, c], &one),
            Part::ProductTag => self.products.add_tags([&self.tag, &self.tag], &one),
            Part::Read => self.read(0),
            Part::ReadProduct => self.read(1),
            Part::Verify => self.verify(0),
            Part::VerifyProduct => self.verify(1),
            Part::Decrypt => self.decrypt(0),
            Part::DecryptProduct => self.decrypt(1),
            Part::Prepare(blocks) => {
                let of = Statistic::Products(COLUMN, COLUMN, Weights::Ones);
                let function = Function { of, from: 0, to: blocks };
                black_box(self.verifier.prepare(function).is_ok());
            }
        }
    }

    fn read(&self, which: usize) {
        let bytes = &self.asked[which].bytes;
        black_box(Answer::from_bytes(self.set, which + 1, bytes).is_ok());
    }

    fn verify(&self, which: usize) {
        let Asked { prepared, answer, .. } = &self.asked[which];
        black_box(bool::from(self.verifier.check(prepared, &self.data_set, answer)));
    }

    fn decrypt(&self, which: usize) {
        black_box(self.keys.decrypt(&self.asked[which].answer.sum));
    }
}
