//! A database's work for one write, beside the AES that cannot be avoided.

#![expect(clippy::expect_used, reason = "a bench's way to fail")]

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alpheus_anonymous_board::dpf::digest::Kappa;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Shape, Side};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::hint::black_box;

const KEYS: u32 = 16;

fn kernel(criterion: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let prgs = Prgs::new(&[1; 16], &[2; 16], &[3; 16]);
    let shape = Shape::new(65_536, 10).expect("a shape");
    let keys: Vec<_> =
        (0..KEYS).map(|row| generate(&prgs, &shape, row, &[7; 160], rng).expect("a key")).collect();
    let shares: Vec<_> =
        keys.iter().map(|k| Share { root: &k[0].root, words: &k[0].words }).collect();
    let pass = Pass::new(&prgs, shape, Side::First);
    let mut table = vec![0; shape.bytes()];
    let mut group = criterion.benchmark_group("65536 rows of 160 bytes, 16 writes");
    group.sample_size(10).throughput(Throughput::Elements(KEYS.into()));
    let cipher = aes::Aes128Enc::new(&[1; 16].into());
    let mut blocks = vec![aes::Block::default(); 256];
    group.bench_function("floor: AES of the rows' bytes", |bencher| {
        bencher.iter(|| {
            for _ in 0..shape.bytes() * KEYS as usize / 16 / 256 {
                cipher.encrypt_blocks(black_box(&mut blocks));
            }
        });
    });
    group.bench_function("table", |bencher| bencher.iter(|| pass.add(&shares, &mut table)));
    let kappa = Kappa([5; 16]);
    group.bench_function("table and audit", |bencher| {
        bencher.iter(|| pass.add_and_digest(&shares, &mut table, &kappa));
    });
    group.finish();
}

criterion_group!(benches, kernel);
criterion_main!(benches);
