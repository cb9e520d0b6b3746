//! The cost of each part of a table's work, for every parameter set.
//! `cargo bench -p alpheus-verifiable-table --features measure`.

use alpheus_verifiable_table::measure::{Part, Parts};
use alpheus_verifiable_table::parameters::Set;
use criterion::{Criterion, criterion_group, criterion_main};

fn parts(c: &mut Criterion) {
    for set in Set::ALL {
        let mut parts = Parts::new(set);
        let mut group = c.benchmark_group(format!("{set}/{}", set.ring().backend()));
        for part in [
            Part::Encrypt,
            Part::Tag,
            Part::Tags(1),
            Part::Tags(3),
            Part::Add,
            Part::AddProduct,
            Part::Scale,
            Part::AddTag,
            Part::Expand,
            Part::Pack,
            Part::Unpack,
            Part::Verify(1),
            Part::Verify(1 << 20),
            Part::VerifyProduct(1 << 20),
            Part::VerifyPowers(123),
            Part::Horner,
            Part::Decrypt,
            Part::DecryptProduct,
        ] {
            group.bench_function(format!("{part:?}"), |b| b.iter(|| parts.run(part)));
        }
        group.finish();
    }
}

criterion_group!(benches, parts);
criterion_main!(benches);
