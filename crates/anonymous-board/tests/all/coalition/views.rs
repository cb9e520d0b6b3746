//! What s − 1 colluding servers see of the last one: their view could result from a write to any
//! row.

use alpheus_anonymous_board::coalition::field::{Binary, Field};
use alpheus_anonymous_board::coalition::gate::{EvaluationPoint, Opening, Proof, Sums};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

/// Sums of a vector with one nonzero entry, as anybody may write it.
fn one_row(rng: &mut ChaCha20Rng) -> Sums<Binary> {
    let [r, s, m] = [Binary::random(rng), Binary::random(rng), Binary::random(rng)];
    Sums { r: r.times(&m), s: s.times(&m), both: r.times(&s).times(&m), plain: m }
}

fn nothing() -> (Sums<Binary>, Vec<u8>) {
    let zero = || Binary::node(0);
    (Sums { r: zero(), s: zero(), both: zero(), plain: zero() }, vec![0; 7 * 16])
}

/// A proof for these sums that opens to given f(τ) and g(τ), using f(0) and g(0). It is built as
/// any writer builds it.
fn proof_that_opens(
    place: &EvaluationPoint<Binary>,
    sums: &Sums<Binary>,
    f: &Binary,
    g: &Binary,
) -> Proof<Binary> {
    let (none, mut bytes) = nothing();
    let without = place.open(sums, &Proof::from_bytes(&bytes).unwrap());
    bytes[..16].copy_from_slice(&Binary::node(1).expose());
    bytes[16..32].copy_from_slice(&Binary::node(1).expose());
    // The contribution of f(0) = 1 and g(0) = 1 at τ, with nothing else.
    let unit = place.open(&none, &Proof::from_bytes(&bytes).unwrap());
    let at_f = f.minus(&without.f).times(&unit.f.inverse());
    let at_g = g.minus(&without.g).times(&unit.g.inverse());
    Proof::dangerous_masked(sums, at_f, at_g)
}

/// For a fixed view (the others' shares of the proof, and all openings), every row and message has
/// exactly one choice of the writer's randomness.
#[test]
fn every_row_has_a_proof_with_the_same_view() {
    let rng = &mut ChaCha20Rng::from_seed([8; 32]);
    let place = EvaluationPoint::<Binary>::from_hash("alpheus/test/v1", &[b"place"]);
    let (f, g) = (Binary::random(rng), Binary::random(rng));
    for _ in 0..20 {
        let sums = one_row(rng);
        let opened = place.open(&sums, &proof_that_opens(&place, &sums, &f, &g));
        assert!(opened.f.equals(&f) && opened.g.equals(&g));
        assert!(opened.h.equals(&f.times(&g)), "h follows from f and g");
        assert!(opened.gate.equals(&Binary::node(0)), "and the gate is nothing");
        assert!(Opening::verify([&opened]));
    }
}

/// The result of an error that a server adds to its openings depends only on f(τ) and g(τ), which
/// are random whatever was written.
#[test]
fn the_result_of_a_lie_depends_on_no_row() {
    let rng = &mut ChaCha20Rng::from_seed([9; 32]);
    let place = EvaluationPoint::<Binary>::from_hash("alpheus/test/v1", &[b"place"]);
    let (f, g) = (Binary::random(rng), Binary::random(rng));
    for lie in 0..16_u8 {
        let error = |bit: u8| {
            Binary::from_hash("alpheus/test/v1", &[&[lie >> bit & 1]])
                .times(&Binary::node(lie >> bit & 1))
        };
        let lie = Opening { f: error(0), g: error(1), h: error(2), gate: error(3) };
        let outcome = |rng: &mut ChaCha20Rng| {
            let sums = one_row(rng);
            let honest = place.open(&sums, &proof_that_opens(&place, &sums, &f, &g));
            Opening::verify([&honest, &lie])
        };
        let first = outcome(rng);
        assert!((0..8).all(|_| outcome(rng) == first));
    }
}

/// The detector: without f(0), the opening does depend on the row.
#[test]
fn without_masks_the_view_depends_on_the_row() {
    let rng = &mut ChaCha20Rng::from_seed([10; 32]);
    let place = EvaluationPoint::<Binary>::from_hash("alpheus/test/v1", &[b"place"]);
    let mut opened = || {
        let sums = one_row(rng);
        place.open(&sums, &Proof::dangerous_masked(&sums, Binary::node(0), Binary::node(0))).f
    };
    let first = opened();
    assert!((0..8).all(|_| !opened().equals(&first)));
}
