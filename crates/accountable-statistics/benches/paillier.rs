//! The paper's cipher beside this crate's, in processor time: Paillier with a modulus of 2048
//! bits, one number, without any proof; and a pair of lifted ElGamal.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

use alpheus_accountable_statistics::tuple::message_base;
use alpheus_crypto::group::{Element, SecretScalar};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use fast_paillier::DecryptionKey;
use fast_paillier::backend::Integer;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// Two public primes of 1024 bits, for this bench only.
const PRIMES: [&str; 2] = [
    "ebb8c8b882f23a62de2d32c47b1cec957f1748fc63e750d86d3b5cd3dd4e4ab3293f7daeafc85396c5876760ec5a67c1\
     3bfd953230ecf66eb09d1b79762a2853fab7dec785cc7eec7d55eee8dc71fe4dc16edf31204f9eb01cfbfef03623caf3\
     f556dd38d9ca3e551efd92422b17d0b00377f54398924a5fdf2e653292481d83",
    "dad78f4ce4907bdbbbb865a080ac973249117e8d46b0486cb226086b0f9dc588de56135908540b573550718bcc59d4e0\
     3ea0c24b99619ccfd8fd22f93c41ecb6d789f078a1330dba135971ce709dc0d3bc154a6e904aefa2d90f405494b082c8\
     82148dec0a36a4f4575309a5c6f7727aef8257b57f97178676bf0aa0ae5516fb",
];

fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn processor<T>(bencher: &mut Bencher, mut work: impl FnMut() -> T) {
    bencher.iter_custom(|times| {
        let before = spent();
        (0..times).for_each(|_| _ = black_box(work()));
        spent() - before
    });
}

fn paillier(c: &mut Criterion) {
    let [p, q] = PRIMES.map(|prime| Integer::from_str_radix(prime, 16).unwrap());
    // Any unit will do for a nonce; its size determines the cost.
    let nonce = Integer::from_str_radix(&PRIMES.concat()[1..], 16).unwrap();
    let key = DecryptionKey::from_primes(p, q).unwrap();
    let (public, value) = (key.encryption_key(), Integer::from(12_345_u32));
    let one = public.encrypt_with(&value, &nonce).unwrap();
    let sum = public.oadd(&one, &one).unwrap();
    assert_eq!(key.decrypt(&sum).unwrap(), Integer::from(24_690_u32));
    c.bench_function("Paillier 2048: encrypt", |b| {
        processor(b, || public.encrypt_with(&value, &nonce).unwrap());
    });
    c.bench_function("Paillier 2048: add", |b| processor(b, || public.oadd(&one, &sum).unwrap()));
    c.bench_function("Paillier 2048: decrypt", |b| processor(b, || key.decrypt(&sum).unwrap()));
}

fn elgamal(c: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]);
    let key = Element::base().times(&SecretScalar::random(rng)).unwrap();
    let (value, blinding) = (SecretScalar::from_small(12_345), SecretScalar::random(rng));
    c.bench_function("lifted ElGamal: encrypt", |b| {
        processor(b, || {
            let r = Element::base().times(&blinding).unwrap();
            let terms = [(&value, &message_base()), (&blinding, &key)];
            (r, Element::combine(&terms, &[], &[]).unwrap())
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = paillier, elgamal
}
criterion_main!(benches);
