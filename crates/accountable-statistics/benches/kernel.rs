//! Making a tuple, checking one and many, summing, decrypting, logarithms, in processor time of
//! one core: other processes of the machine do not count.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::sums::{Part, Sums};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::Dealer;
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{
    Binding, Checker, Contribution, Prover, Terms, ThresholdKey, Tuple, message_base,
};
use alpheus_crypto::group::{Element, SecretScalar, Total};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::secret::Secret;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

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

fn binding(slot: u32) -> Binding {
    Binding {
        tag: Element::from_hash("alpheus/test-tag/v1", &[&slot.to_be_bytes()]),
        aggregate: labelled_hash("alpheus/test-aggregate/v1", &[]),
        ephemeral: OneTimePublic::from_bytes([3; 32]),
    }
}

/// A tuple as it arrives.
type EncodedTuple = (Binding, Vec<u8>);

fn arrived(terms: Terms, count: u32, rng: &mut ChaCha20Rng) -> Vec<EncodedTuple> {
    let prover = Prover::new(terms);
    let highest = terms.interval().highest();
    let value = |slot: u32| i64::from(slot) * 7919 % highest;
    let tuple = |slot: u32| {
        let given = Contribution::Sample(value(slot));
        (binding(slot), prover.prove(given, &binding(slot), rng).unwrap().to_bytes())
    };
    (0..count).map(tuple).collect()
}

/// Decoding included.
fn check(checker: &Checker, arrived: &[EncodedTuple]) {
    let read = |(binding, bytes): &EncodedTuple| {
        (*binding, Tuple::from_bytes(bytes, checker.terms().interval()).unwrap())
    };
    let verdicts = checker.check_batch(arrived.iter().map(read).collect());
    assert!(verdicts.iter().all(Result::is_ok));
}

/// Name, highest value, squares: one-sided 16 bits, and the widths around it.
const SHAPES: [(&str, i64, bool); 5] = [
    ("8 bit", 255, false),
    ("16 bit", 65_535, false),
    ("16 bit, square", 65_535, true),
    ("two-sided 16 bit, square", 50_000, true),
    ("two-sided 32 bit, square", 100_000, true),
];

fn tuples(c: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]);
    let key = Element::base().times(&SecretScalar::random(rng)).unwrap();
    for (name, highest, square) in SHAPES {
        let interval = Interval::new(0, highest, square).unwrap();
        let terms = Terms::new(ThresholdKey(key), interval);
        let (prover, checker) = (Prover::new(terms), Checker::new(terms));
        let arrived = arrived(terms, 256, rng);
        let mut group = c.benchmark_group(name);
        group.bench_function(format!("make, {} bytes", Tuple::length(&interval)), |b| {
            processor(b, || prover.prove(Contribution::Sample(9), &binding(1), rng).unwrap());
        });
        for count in [1, 16, 64, 256] {
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(format!("check {count}"), |b| {
                processor(b, || check(&checker, &arrived[..count]));
            });
        }
        group.finish();
    }
    terms_and_sums(c, key, rng);
}

fn terms_and_sums(c: &mut Criterion, key: Element, rng: &mut ChaCha20Rng) {
    let terms = Terms::new(ThresholdKey(key), Interval::new(0, 65_535, true).unwrap());
    c.bench_function("generators of a checker", |b| processor(b, || Checker::new(terms)));
    c.bench_function("generators of a prover", |b| processor(b, || Prover::new(terms)));
    let checker = Checker::new(terms);
    let tuples = arrived(terms, 64, rng).into_iter().map(|(binding, bytes)| {
        checker.check(binding, Tuple::from_bytes(&bytes, terms.interval()).unwrap()).unwrap()
    });
    let tuples: Vec<_> = tuples.collect();
    let mut sums = Sums::new(&terms, binding(0).aggregate);
    let mut next = tuples.iter().cycle();
    c.bench_function("add a tuple to the sums", |b| {
        processor(b, || sums.add(next.next().unwrap()).unwrap());
    });
}

fn key(members: u16, threshold: u16, rng: &mut ChaCha20Rng) -> (SharedKey, Vec<KeyShare>) {
    let purpose = labelled_hash("alpheus/test-purpose/v1", &[]);
    let committee = Committee::new(purpose, members, threshold).unwrap();
    let seeds: Vec<Secret<32>> = (0..members).map(|_| Secret::random(rng)).collect();
    let announced = (0..members)
        .zip(&seeds)
        .map(|(member, seed)| Announcement::new(&committee, 0, member, seed).unwrap());
    let ceremony = Ceremony::new(committee, 0, &announced.collect::<Vec<_>>());
    let dealers: Vec<Dealer> = (0..members)
        .zip(&seeds)
        .map(|(member, seed)| Dealer::new(&ceremony, member, seed, rng).unwrap())
        .collect();
    let dealt = dealers
        .iter()
        .map(|dealer| dealer.dealing().clone().verify(&ceremony, &dealer.pledge()).unwrap());
    let dealt: Vec<_> = dealt.collect();
    let settled = Settlement::new(&ceremony, &dealt, &[], &[]).unwrap();
    let share = |member: u16| {
        let dealer = &dealers[usize::from(member)];
        let taken = dealt.iter().map(|dealt| dealer.open_share(dealt).unwrap());
        settled.share(member, taken.collect()).unwrap()
    };
    (settled.key().clone(), (0..members).map(share).collect())
}

fn decrypting(c: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([8; 32]);
    let (key, shares) = key(7, 3, rng);
    let terms = Terms::new(*key.key(), Interval::new(0, 65_535, false).unwrap());
    let (binding, checker) = (binding(0), Checker::new(terms));
    let tuple = Prover::new(terms).prove(Contribution::Sample(9), &binding, rng).unwrap();
    let mut sums = Sums::new(&terms, binding.aggregate);
    sums.add(&checker.check(binding, tuple).unwrap()).unwrap();
    let (sum, context) = (sums.ciphertext(Part::Value).unwrap(), binding.aggregate);
    c.bench_function("decrypt in part and prove", |b| {
        processor(b, || shares[0].dangerous_open(&key, &sum, &context, rng).unwrap());
    });
    let partials: Vec<_> = shares
        .iter()
        .map(|share| share.dangerous_open(&key, &sum, &context, rng).unwrap())
        .collect();
    c.bench_function("verify a partial decryption", |b| {
        processor(b, || key.verify(partials[0].clone(), &sum, &context).unwrap());
    });
    let partials: Vec<_> =
        partials.into_iter().map(|partial| key.verify(partial, &sum, &context).unwrap()).collect();
    c.bench_function("combine 3 of 7", |b| {
        processor(b, || key.combine(&sum, &context, &partials).unwrap());
    });
}

fn logarithms(c: &mut Criterion) {
    // The first search makes it.
    let one = Total::from_bytes(message_base().as_bytes()).unwrap();
    c.bench_function("table of 2^16", |b| {
        processor(b, || assert_eq!(Table::new(16).read(&one, &Bounds::count(1)), Ok(1)));
    });
    let table = Table::new(21);
    for bits in [24, 32, 36] {
        // The last one that is looked at.
        let number = (1_u64 << bits) - 1;
        let [half, whole] =
            [u32::try_from(number >> 18).unwrap(), 1 << 18].map(SecretScalar::from_small);
        let rest = SecretScalar::from_small((1 << 18) - 1);
        let scalar = half.times(&whole).plus(&rest);
        let element = message_base().times(&scalar).unwrap();
        let total = Total::from_bytes(element.as_bytes()).unwrap();
        let bounds = Bounds::between(0, number);
        c.bench_function(&format!("logarithm of {bits} bits, 16 MiB"), |b| {
            processor(b, || assert_eq!(table.read(&total, &bounds), Ok(number)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = tuples, decrypting, logarithms
}
criterion_main!(benches);
