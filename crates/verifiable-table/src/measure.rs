//! The parts of a table's work, each alone, for benchmarks. One run compares verified work
//! with the same work unverified.

use crate::cipher::{Add, Ciphertext, Scale, Tensor};
use crate::keys::{Keys, TableKey};
use crate::label::{Address, Column, DataSet, Kind, Order, Segment};
use crate::mask::Masks;
use crate::messages::{Run, Weights};
use crate::owner::horner;
use crate::packing;
use crate::parameters::Set;
use crate::planner;
use crate::ring::Ring;
use crate::sampling;
use crate::tag::Tag;
use alpheus_crypto::secret::Secret;
use std::hint::black_box;
use subtle::ConstantTimeEq;

impl Part {
    /// Whether it concerns a value of degree two.
    #[must_use]
    pub fn of_products(&self) -> bool {
        use Part::{AddProduct, DecryptProduct, Tags, VerifyProduct};
        matches!(self, Tags(_) | AddProduct | VerifyProduct(_) | DecryptProduct)
    }
}

/// Fixtures of a benchmark: keys, three fresh ciphertexts, a product, and buffers for sums.
pub struct Parts {
    set: Set,
    ring: &'static Ring,
    keys: Keys,
    slots: Vec<i64>,
    fresh: [Ciphertext; 3],
    product: Ciphertext,
    sums: [Ciphertext; 2],
    tag: Tag,
    tag_sum: Tag,
    weight: Vec<u64>,
    packed: Vec<u8>,
    room: Vec<u64>,
    opened: Vec<i128>,
}

const SEGMENT: Segment = Segment([1; 16]);
const AT: Address = Address { segment: SEGMENT, epoch: 0, index: 0 };
const COLUMN: Kind = Kind::Column(Column(0));
/// The point at which a polynomial is evaluated.
const POINT: u64 = 123_456_789;

/// One part of the work, on one block of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Encoding and encrypting, as without verification.
    Encrypt,
    /// The tag of a column: its hash and its mask.
    Tag,
    /// The tags of a block of one to three columns, with squares and all pairs.
    Tags(u8),
    /// Adding a ciphertext to a sum.
    Add,
    /// Adding the product of two ciphertexts to a sum, as a server does.
    AddProduct,
    /// Multiplying a ciphertext by a weight.
    Scale,
    /// Adding a tag to a sum of tags.
    AddTag,
    /// Making c1 from its seed.
    Expand,
    /// Packing c0.
    Pack,
    /// Unpacking c0.
    Unpack,
    /// Checking a sum of a column over this many blocks.
    Verify(u64),
    /// Checking a sum of products over this many blocks.
    VerifyProduct(u64),
    /// Checking a sum over this many runs of one block each, as after as many starts that
    /// sealed one block.
    VerifyRuns(u64),
    /// Checking the sum of this many blocks of a polynomial's coefficients, weighted with
    /// powers of x.
    VerifyPowers(u64),
    /// The owner's last step for a polynomial's value: Horner over the slots.
    Horner,
    /// Decrypting a sum of a column.
    Decrypt,
    /// Decrypting a sum of products.
    DecryptProduct,
}

impl Parts {
    /// Fixtures for one set.
    #[must_use]
    pub fn new(set: Set) -> Self {
        let ring = set.ring();
        let key = TableKey::new(Secret::from_bytes([7; 32]));
        let keys = Keys::new(&key, ring, DataSet([2; 16]), Order::ONE);
        let slots: Vec<i64> = (0..1000).cycle().take(ring.degree()).collect();
        let fresh = [1, 2, 3].map(|seed| keys.encrypt(&AT, COLUMN, &slots, &[seed; 32]).1);
        let mut product = Ciphertext::zero(ring, 3);
        let [a, b, _] = &fresh;
        ring.backend.run(Tensor { ring, sum: &mut product, a, b });
        let mut packed = Vec::new();
        packing::pack(&fresh[0].0[0], &mut packed);
        let tag = keys.tag(&AT, COLUMN, &fresh[0]);
        let (sums, tag_sum) = ([fresh[0].clone(), product.clone()], Tag::zero(ring));
        let weight = vec![0x1_2345_6789; ring.limbs()];
        let room = vec![0; ring.words()];
        let t = ring.plain_modulus().cast_signed();
        let opened = (0..ring.degree() as i128).map(|slot| t / 2 - slot * (t / 16384)).collect();
        Self {
            set,
            ring,
            keys,
            slots,
            fresh,
            product,
            sums,
            tag,
            tag_sum,
            weight,
            packed,
            room,
            opened,
        }
    }

    /// Whether the planner allows products with this set. Otherwise no value of degree two can
    /// be decrypted.
    #[must_use]
    pub fn supports_products(&self) -> bool {
        planner::check_single_block(self.set, Kind::Product(Column(0), Column(0)), 1).is_ok()
    }

    /// Runs one part.
    pub fn run(&mut self, part: Part) {
        let ring = self.ring;
        match part {
            Part::Encrypt => {
                black_box(self.keys.encrypt(&AT, COLUMN, &self.slots, &[3; 32]));
            }
            Part::Tag => drop(black_box(self.keys.tags(&AT, &self.fresh[..1], &[]))),
            Part::Tags(columns) => {
                let columns = columns.min(3);
                let pairs = |a| (a..columns).map(move |b| (Column(a.into()), Column(b.into())));
                let products: Vec<_> = (0..columns).flat_map(pairs).collect();
                let columns = &self.fresh[..usize::from(columns)];
                drop(black_box(self.keys.tags(&AT, columns, &products)));
            }
            Part::Add => {
                let (sum, other) = (&mut self.sums[0], &self.fresh[1]);
                ring.backend.run(Add { ring, sum, other, weight: None });
            }
            Part::AddProduct => {
                let ([a, b, _], sum) = (&self.fresh, &mut self.sums[1]);
                ring.backend.run(Tensor { ring, sum, a, b });
            }
            Part::Scale => {
                let (ciphertext, weight) = (&mut self.sums[0], self.weight.as_slice());
                ring.backend.run(Scale { ring, ciphertext, weight });
            }
            Part::AddTag => self.tag_sum.add(ring, &self.tag),
            Part::Expand => sampling::uniform_to(ring, &[5; 32], &mut self.room),
            Part::Pack => {
                self.packed.clear();
                packing::pack(&self.fresh[0].0[0], &mut self.packed);
            }
            Part::Unpack => {
                black_box(packing::unpack_to(ring, &self.packed, &mut self.room));
            }
            Part::Verify(blocks) => self.verify(&self.sums[0], 1, blocks, &Weights::Ones),
            Part::VerifyProduct(blocks) => self.verify(&self.sums[1], 1, blocks, &Weights::Ones),
            Part::VerifyRuns(runs) => self.verify(&self.sums[0], runs, 1, &Weights::Ones),
            Part::VerifyPowers(blocks) => {
                self.verify(&self.sums[0], 1, blocks, &Weights::Powers(POINT));
            }
            Part::Horner => {
                black_box(horner(&self.opened, POINT, ring.plain_modulus()));
            }
            Part::Decrypt => drop(black_box(self.keys.secret.decrypt(ring, &self.fresh[0]))),
            Part::DecryptProduct => drop(black_box(self.keys.secret.decrypt(ring, &self.product))),
        }
    }

    fn verify(&self, sum: &Ciphertext, runs: u64, blocks: u64, weights: &Weights) {
        let mut expected = self.keys.hash.hash(self.ring, &sum.parts());
        for run in 0..runs {
            let (from, to) = (run * blocks, (run + 1) * blocks);
            let run = Run { segment: SEGMENT, epoch: 0, from, to };
            let masks = Masks::new(&self.keys, (SEGMENT, 0), COLUMN);
            masks.add_run(&mut expected, &run, weights);
        }
        black_box(bool::from(expected.ct_eq(&self.tag)));
    }
}
