//! What proofs cost, in processor time of one thread.

use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::labelled_hash;
use alpheus_range_proof::{Commitment, Opening, RangeChecker, RangeProver, Shape, Terms, culprits};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use rustix::time::{ClockId, clock_gettime};

/// Milliseconds of this thread.
fn spent<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let before = now();
    let result = work();
    (result, now() - before)
}

/// Three cells with two sides of 32 bits: 8 values with the padding.
#[test]
#[ignore = "it measures"]
fn measures_256_bits() {
    let label = "alpheus/test-range/v1";
    let (value_base, blinding_base) = (Element::base(), Element::second_base());
    let shape = Shape::new(32, 8).unwrap();
    let terms = Terms { shape, value_base, blinding_base, label };
    let (proving, checking) = (RangeProver::new(terms), RangeChecker::new(terms));
    let (bound, rng) = (labelled_hash(label, &[]), &mut ChaCha20Rng::from_seed([7; 32]));
    let (mut claims, mut made) = (Vec::new(), 0.0);
    for _ in 0..256 {
        let (mut commitments, mut openings) = (Vec::new(), Vec::new());
        for value in (0..8).map(|at| 0xffff_ffff - at * 12_345) {
            let (secret, by) = (SecretScalar::from_small(value), SecretScalar::random(rng));
            let terms = [(&secret, &value_base), (&by, &blinding_base)];
            commitments.push(Commitment::of(&Element::combine(&terms, &[], &[]).unwrap()));
            openings.push(Opening::new(value.into(), &by));
        }
        let (proof, time) = spent(|| proving.prove(openings, &commitments, &bound, rng).unwrap());
        made += time / 256.0;
        claims.push(checking.claim(&commitments, &proof, bound).unwrap());
    }
    let alone = || claims.iter().take(64).all(|claim| culprits(&[vec![claim.clone()]]).is_empty());
    let (alone_hold, alone) = spent(alone);
    let (all_hold, batch) = spent(|| culprits(std::slice::from_ref(&claims)).is_empty());
    assert!(alone_hold && all_hold);
    let (alone, batch, bytes) = (alone / 64.0, batch / 256.0, shape.proof_length());
    eprintln!("make {made:.2} ms, verify {alone:.2}, in 256: {batch:.3}; {bytes} bytes");
}
