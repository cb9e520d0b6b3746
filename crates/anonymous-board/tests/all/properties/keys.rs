//! Keys: what they write, what the audit accepts, and that the fast code matches the scalar code.

use alpheus_anonymous_board::dpf::digest::{Kappa, KeyDigest};
use alpheus_anonymous_board::dpf::generate::{GenerationError, generate};
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Key, KeyError, Shape, Side, scalar};
use alpheus_crypto::secret::Secret;
use chacha20::{ChaCha20Rng, rand_core::Rng, rand_core::SeedableRng};
use proptest::prelude::*;

fn prgs() -> Prgs {
    Prgs::new(&[1; 16], &[2; 16], &[3; 16])
}

fn share(key: &Key) -> Share<'_> {
    Share { root: &key.root, words: &key.words }
}

fn message(shape: &Shape, rng: &mut impl Rng) -> Vec<u8> {
    let mut message = vec![0; shape.width()];
    rng.fill_bytes(&mut message);
    message
}

/// The sum of both servers' tables after a write, and the digests.
fn written(shape: Shape, keys: &[Key; 2], kappa: &Kappa) -> (Vec<u8>, [[u8; 32]; 2]) {
    let prgs = prgs();
    let mut sum = vec![0; shape.bytes()];
    let digests = Side::BOTH.map(|side| {
        let mut table = vec![0; shape.bytes()];
        let pass = Pass::new(&prgs, shape, side);
        let key = share(&keys[side.index()]);
        let digests = pass.add_and_digest(&[key], &mut table, kappa).unwrap();
        sum.iter_mut().zip(&table).for_each(|(a, b)| *a ^= b);
        digests[0].0
    });
    (sum, digests)
}

fn shape() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![
        (1_u32..200, 1_u32..30),
        // More than one table block, and not a power of two.
        (Just(3001), Just(23)),
        (Just(4096), Just(10)),
        (Just(1), Just(1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_write_writes_its_row_and_no_other((rows, blocks) in shape(), at: prop::sample::Index, seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let shape = Shape::new(rows, blocks).unwrap();
        let row = at.index(rows as usize);
        let message = message(&shape, rng);
        let keys = generate(&prgs(), &shape, row as u32, &message, rng).unwrap();
        let (sum, digests) = written(shape, &keys, &Kappa([9; 16]));
        let width = shape.width();
        prop_assert_eq!(&sum[row * width..][..width], message.as_slice());
        prop_assert!(sum[..row * width].iter().chain(&sum[(row + 1) * width..]).all(|b| *b == 0));
        prop_assert_eq!(digests[0], digests[1]);
    }

    /// Covers tables, digests, groups of keys, and tails of batches and table blocks, with this
    /// processor's AES and one block at a time.
    #[test]
    fn the_fast_pass_matches_the_scalar_one((rows, blocks) in shape(), many in 1_usize..5, seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let (prgs, shape) = (prgs(), Shape::new(rows, blocks).unwrap());
        let many = if rows > 200 { 1 } else { many };
        let kappa = Kappa(std::array::from_fn(|_| rng.next_u32() as u8));
        let keys: Vec<[Key; 2]> = (0..many).map(|_| {
            let message = message(&shape, rng);
            generate(&prgs, &shape, rng.next_u32() % rows, &message, rng).unwrap()
        }).collect();
        for side in Side::BOTH {
            let shares: Vec<Share> = keys.iter().map(|k| share(&k[side.index()])).collect();
            let mut slow = vec![0; shape.bytes()];
            let digest = |pair: &[Key; 2]| {
                let key = &pair[side.index()];
                scalar::add(&prgs, &shape, side, key, &mut slow);
                KeyDigest(scalar::digest(&prgs, &shape, side, key, &kappa))
            };
            let digests: Vec<KeyDigest> = keys.iter().map(digest).collect();
            for prgs in [prgs.clone(), prgs.clone().narrow()] {
                let pass = Pass::new(&prgs, shape, side);
                let mut fast = vec![0; shape.bytes()];
                prop_assert!(pass.add_and_digest(&shares, &mut fast, &kappa).unwrap() == digests);
                prop_assert!(pass.digests(&shares, &kappa).unwrap() == digests);
                prop_assert!(fast == slow);
                // Adding twice cancels.
                pass.add(&shares, &mut fast).unwrap();
                prop_assert!(fast.iter().all(|b| *b == 0));
            }
        }
    }

    /// A bit of the words flipped for both servers is detected, or changes nothing in the table.
    #[test]
    fn malformed_words_are_caught(rows in 2_u32..70, bit: prop::sample::Index, seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let shape = Shape::new(rows, 2).unwrap();
        let row = rng.next_u32() % rows;
        let message = message(&shape, rng);
        let mut keys = generate(&prgs(), &shape, row, &message, rng).unwrap();
        let levels = shape.depth();
        let (honest, _) = written(shape, &keys, &Kappa([9; 16]));
        let bit = bit.index(levels * 129 + 512);
        for key in &mut keys {
            match key.words.levels.get_mut(bit / 129) {
                Some(word) if bit % 129 == 128 => word.right ^= true,
                Some(word) => word.seed[bit % 129 / 8] ^= 1 << (bit % 129 % 8),
                None => key.words.check[(bit - levels * 129) / 8] ^= 1 << (bit % 8),
            }
        }
        let (sum, digests) = written(shape, &keys, &Kappa([9; 16]));
        // Only changes to rows beyond the table may pass: they change nothing.
        let passes = bit < levels * 129 && sum == honest;
        prop_assert!(digests[0] != digests[1] || passes, "bit {bit} of {levels} levels");
    }
}

#[test]
fn keys_that_fit_no_table_are_rejected_with_specific_errors() {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let (prgs, shape) = (prgs(), Shape::new(100, 2).unwrap());
    let refused = |row, length: usize, rng: &mut ChaCha20Rng| {
        generate(&prgs, &shape, row, &vec![0; length], rng).err()
    };
    assert_eq!(refused(100, 32, rng), Some(GenerationError::Row));
    assert_eq!(refused(0, 31, rng), Some(GenerationError::Length));
    let good = || generate(&prgs, &shape, 7, &[5; 32], &mut ChaCha20Rng::from_seed([4; 32]));
    let corrupted = |corrupt: fn(&mut Key)| {
        let [mut key, _] = good().unwrap();
        corrupt(&mut key);
        key.check(&shape).err()
    };
    assert_eq!(corrupted(|_| ()), None);
    assert_eq!(corrupted(|key| key.words.levels.truncate(3)), Some(KeyError::Depth));
    assert_eq!(corrupted(|key| key.words.payload.push(0)), Some(KeyError::Payload));
    assert_eq!(corrupted(|key| key.words.check = [0; 64]), Some(KeyError::ZeroCheck));
    assert_eq!(corrupted(|key| key.root = Secret::from_bytes([1; 16])), Some(KeyError::Root));
    let [mut key, _] = good().unwrap();
    key.words.levels.pop();
    let pass = Pass::new(&prgs, shape, Side::First);
    assert!(pass.digests(&[share(&key)], &Kappa([1; 16])).is_err());
    assert!(pass.add(&[], &mut [0; 31]).is_err());
    for (rows, blocks) in [(0, 1), (1, 0), (u32::MAX, 1), (1, 4097)] {
        assert!(Shape::new(rows, blocks).is_err());
    }
}
