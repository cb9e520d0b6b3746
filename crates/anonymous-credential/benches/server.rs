//! The server's CPU time for a registration, a login and a re-up, beside the floor: the bare
//! multiplication that each check consists of. `cargo bench -p alpheus-anonymous-credential`.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

#[path = "../examples/support/mod.rs"]
mod support;

use alpheus_anonymous_credential::holder::{OutboundMessage, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::Applicant;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::sessions::{LoginLookUp, ReUpLookUp, UnspentLogin};
use alpheus_anonymous_credential::verifier::verify_re_ups;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{MultiscalarMul, VartimeMultiscalarMul};
use std::hint::black_box;
use support::{Ledger, NOTHING, Service, at};

struct Load {
    service: Service,
    logins: Vec<OutboundMessage>,
    re_ups: Vec<OutboundMessage>,
}

/// This many holders, each with a login and a re-up; the logins are served.
fn load(holders: u32, limit: u32, rng: &mut ChaCha20Rng) -> Load {
    let limit = Limit::try_from(limit).unwrap();
    let mut service = Service::new(limit, rng).unwrap();
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    let (mut logins, mut re_ups) = (Vec::new(), Vec::new());
    for account in 0..holders {
        let store = &mut Ledger::new();
        let mut holder = service.register(&account.to_be_bytes(), store, rng).unwrap();
        let login = holder.log_in(Timing::Running, &compared, &NOTHING, at(1), rng).unwrap();
        let login = login.commit(store).unwrap();
        if limit == Limit::ONE {
            service.log_in(&login, at(1)).unwrap();
            re_ups.push(holder.re_up(at(13), rng).unwrap().commit(store).unwrap());
        }
        logins.push(login);
    }
    Load { service, logins, re_ups }
}

impl Load {
    /// Decodes and looks up logins, on a shard that has seen none.
    fn unspent(&self, empty: &Service, count: usize) -> Vec<UnspentLogin> {
        let unspent = |sent: &OutboundMessage| {
            let login = Login::from_bytes(&sent.bytes, self.service.pinned.limit).unwrap();
            match empty.shard.look_up(login, at(1)).unwrap() {
                LoginLookUp::Unspent(unspent) => unspent,
                LoginLookUp::Same(_) => unreachable!("nothing was spent"),
            }
        };
        self.logins.iter().take(count).map(unspent).collect()
    }

    fn log_in(&self, empty: &Service, count: usize) {
        let verdicts = self.service.verifier.verify(self.unspent(empty, count));
        assert!(verdicts.iter().all(Result::is_ok));
    }

    fn re_up(&self, count: usize) {
        let due = |sent: &OutboundMessage| {
            let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
            match self.service.shard.look_up_re_up(re_up, at(13)).unwrap() {
                ReUpLookUp::Due(due) => due,
                ReUpLookUp::Moved(_) => unreachable!("nothing moved"),
            }
        };
        let due = self.re_ups.iter().take(count).map(due).collect();
        assert!(verify_re_ups(&self.service.pinned, due).iter().all(Result::is_ok));
    }
}

fn server(c: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([7; 32]);
    let mut load256 = load(256, 1, rng);
    let empty = Service::new(Limit::ONE, rng).unwrap();
    register(c, rng);
    for count in [1, 16, 256] {
        let mut group = c.benchmark_group("login");
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count}"), |b| b.iter(|| load256.log_in(&empty, count)));
        group.finish();
        let mut group = c.benchmark_group("re-up");
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count}"), |b| b.iter(|| load256.re_up(count)));
        group.finish();
    }
    // The measured messages are valid: the service serves one.
    load256.service.re_up(&load256.re_ups[0], at(13)).unwrap();
    let thousand = load(1, 1000, rng);
    let empty = Service::new(Limit::try_from(1000).unwrap(), rng).unwrap();
    c.bench_function("login/limit 1000", |b| b.iter(|| thousand.log_in(&empty, 1)));
}

fn register(c: &mut Criterion, rng: &mut ChaCha20Rng) {
    let mut service = Service::new(Limit::ONE, rng).unwrap();
    let pinned = service.pinned.clone();
    let pending = |rng: &mut ChaCha20Rng, account: &[u8]| {
        let pending = PendingRequest::begin(pinned.clone(), account, Timing::Running, at(0), rng);
        pending.unwrap().commit(&mut Ledger::new()).unwrap().bytes()
    };
    let mut fresh = ChaCha20Rng::from_seed([8; 32]);
    let mut account = 0_u64;
    let mut setup = || {
        account += 1;
        (account.to_be_bytes(), pending(&mut fresh, &account.to_be_bytes()))
    };
    c.bench_function("register", |b| {
        b.iter_batched(
            &mut setup,
            |(account, request)| {
                let step =
                    service.issuer.issue(Applicant::named(&account), &request, at(0), rng).unwrap();
                step.commit(&mut service.books).unwrap()
            },
            BatchSize::SmallInput,
        );
    });
}

/// Decoding a message's elements, and one multiplication of elements with full-length scalars,
/// elements with 128-bit weights, and elements that all messages share.
struct Floor {
    name: &'static str,
    decoded: usize,
    whole: usize,
    short: usize,
    shared: usize,
    /// Elements multiplied by the key in constant time.
    keyed: usize,
}

const FLOORS: [Floor; 2] = [
    Floor { name: "floor of login", decoded: 7, whole: 4, short: 3, shared: 4, keyed: 2 },
    Floor { name: "floor of re-up", decoded: 4, whole: 2, short: 2, shared: 2, keyed: 0 },
];

fn floors(c: &mut Criterion) {
    let rng = &mut ChaCha20Rng::from_seed([9; 32]);
    let whole: Vec<Scalar> = (0..1028).map(|_| Scalar::random(rng)).collect();
    let short =
        whole.iter().map(|s| s.as_bytes().first_chunk().map_or(0, |b| u128::from_le_bytes(*b)));
    let short: Vec<Scalar> = short.map(Scalar::from).collect();
    let points: Vec<RistrettoPoint> = (0..1796).map(|_| RistrettoPoint::random(rng)).collect();
    let encoded = points[0].compress();
    for (floor, count) in FLOORS.iter().flat_map(|floor| [(floor, 1), (floor, 16), (floor, 256)]) {
        let mut group = c.benchmark_group(floor.name);
        group.throughput(Throughput::Elements(count as u64));
        let scalars = whole.iter().take(floor.whole * count + floor.shared);
        let scalars: Vec<Scalar> =
            scalars.chain(short.iter().take(floor.short * count)).copied().collect();
        group.bench_function(format!("{count}"), |b| {
            b.iter(|| {
                for _ in 0..floor.decoded * count {
                    black_box(black_box(encoded).decompress());
                }
                for _ in 0..if floor.keyed == 0 { 0 } else { count } {
                    let (scalars, points) = (&whole[..floor.keyed], &points[..floor.keyed]);
                    black_box(RistrettoPoint::multiscalar_mul(scalars, points));
                }
                RistrettoPoint::vartime_multiscalar_mul(&scalars, &points[..scalars.len()])
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = server, floors
}
criterion_main!(benches);
