//! A database's work for a write, beside the unavoidable AES, in processor time, which excludes
//! other processes on the machine.

#![expect(clippy::expect_used, reason = "a bench's way to fail")]

use alpheus_anonymous_board::dpf::digest::Kappa;
use alpheus_anonymous_board::dpf::generate::generate;
use alpheus_anonymous_board::dpf::pass::{Pass, Share};
use alpheus_anonymous_board::dpf::prg::Prgs;
use alpheus_anonymous_board::dpf::{Shape, Side};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

const KEYS: u32 = 16;

fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn processor(bencher: &mut Bencher, mut work: impl FnMut()) {
    bencher.iter_custom(|times| {
        let before = spent();
        (0..times).for_each(|_| work());
        spent() - before
    });
}

fn kernel(criterion: &mut Criterion, rows: u32, blocks: u32) {
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let prgs = Prgs::new(&[1; 16], &[2; 16], &[3; 16]);
    let shape = Shape::new(rows, blocks).expect("a shape");
    let message = vec![7; shape.width()];
    let keys: Vec<_> =
        (0..KEYS).map(|row| generate(&prgs, &shape, row, &message, rng).expect("a key")).collect();
    let shares: Vec<_> =
        keys.iter().map(|k| Share { root: &k[0].root, words: &k[0].words }).collect();
    let pass = Pass::new(&prgs, shape, Side::First);
    let mut table = vec![0; shape.bytes()];
    let name = format!("{rows} rows of {} bytes, {KEYS} writes", shape.width());
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Elements(KEYS.into()));
    let mut buffer = vec![[0; 16]; 256];
    for (prgs, how) in [(&prgs, ""), (&prgs.clone().narrow(), ", one block at a time")] {
        group.bench_function(format!("floor: AES of the rows' bytes{how}"), |bencher| {
            processor(bencher, || {
                for _ in 0..shape.bytes() * KEYS as usize / 16 / 256 {
                    prgs.aes_only(black_box(&mut buffer));
                }
            });
        });
    }
    let kappa = Kappa([5; 16]);
    group.bench_function("table", |bencher| {
        processor(bencher, || _ = black_box(pass.add(&shares, &mut table)));
    });
    group.bench_function("audit", |bencher| {
        processor(bencher, || _ = black_box(pass.digests(&shares, &kappa)));
    });
    group.bench_function("table and audit", |bencher| {
        processor(bencher, || _ = black_box(pass.add_and_digest(&shares, &mut table, &kappa)));
    });
    group.finish();
}

/// The paper's table, and one for 3,500 writers.
fn tables(criterion: &mut Criterion) {
    kernel(criterion, 65_536, 10);
    kernel(criterion, 9_870, 23);
}

criterion_group!(benches, tables);
criterion_main!(benches);
