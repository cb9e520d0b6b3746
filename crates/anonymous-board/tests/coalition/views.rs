//! What s − 1 servers that work together see of the last one: whatever was written, their
//! view could have come of any other row.

use alpheus_anonymous_board::coalition::field::{Binary, Field};
use alpheus_anonymous_board::coalition::gate::{Opening, Place, Proof, Sums};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// Sums of a vector with one place that is not zero, as anybody may have written it.
fn one_row(rng: &mut ChaCha20Rng) -> Sums<Binary> {
    let [r, s, m] = [Binary::random(rng), Binary::random(rng), Binary::random(rng)];
    Sums { r: r.times(&m), s: s.times(&m), both: r.times(&s).times(&m), plain: m }
}

fn nothing() -> (Sums<Binary>, Vec<u8>) {
    let zero = || Binary::place(0);
    (Sums { r: zero(), s: zero(), both: zero(), plain: zero() }, vec![0; 7 * 16])
}

/// A proof for these sums that opens to given f(τ) and g(τ): that is what f(0) and g(0)
/// are for. The proof is built as any writer builds it.
fn proof_that_opens(
    place: &Place<Binary>,
    sums: &Sums<Binary>,
    f: &Binary,
    g: &Binary,
) -> Proof<Binary> {
    let (none, mut bytes) = nothing();
    let without = place.open(sums, &Proof::from_bytes(&bytes).unwrap());
    bytes[..16].copy_from_slice(&Binary::place(1).expose());
    bytes[16..32].copy_from_slice(&Binary::place(1).expose());
    // What f(0) = 1 and g(0) = 1 give at τ, with nothing else.
    let unit = place.open(&none, &Proof::from_bytes(&bytes).unwrap());
    let at_f = f.minus(&without.f).times(&unit.f.inverse());
    let at_g = g.minus(&without.g).times(&unit.g.inverse());
    Proof::dangerous_masked(sums, at_f, at_g)
}

/// For one and the same view (the others' shares of the proof, and all that is opened) there
/// is for every row and message exactly one choice of what the writer draws.
#[test]
fn every_row_has_a_proof_with_the_same_view() {
    let rng = &mut ChaCha20Rng::from_seed([8; 32]);
    let place = Place::<Binary>::hashed("alpheus/test/v1", &[b"place"]);
    let (f, g) = (Binary::random(rng), Binary::random(rng));
    for _ in 0..20 {
        let sums = one_row(rng);
        let opened = place.open(&sums, &proof_that_opens(&place, &sums, &f, &g));
        assert!(opened.f.equals(&f) && opened.g.equals(&g));
        assert!(opened.h.equals(&f.times(&g)), "h follows from f and g");
        assert!(opened.gate.equals(&Binary::place(0)), "and the gate is nothing");
        assert!(Opening::hold([&opened]));
    }
}

/// Whatever a server adds to its openings, what comes of it depends on f(τ) and g(τ), which
/// are random whatever was written, and on nothing else.
#[test]
fn what_comes_of_a_lie_depends_on_no_row() {
    let rng = &mut ChaCha20Rng::from_seed([9; 32]);
    let place = Place::<Binary>::hashed("alpheus/test/v1", &[b"place"]);
    let (f, g) = (Binary::random(rng), Binary::random(rng));
    for lie in 0..16_u8 {
        let error = |bit: u8| {
            Binary::hashed("alpheus/test/v1", &[&[lie >> bit & 1]])
                .times(&Binary::place(lie >> bit & 1))
        };
        let lie = Opening { f: error(0), g: error(1), h: error(2), gate: error(3) };
        let outcome = |rng: &mut ChaCha20Rng| {
            let sums = one_row(rng);
            let honest = place.open(&sums, &proof_that_opens(&place, &sums, &f, &g));
            Opening::hold([&honest, &lie])
        };
        let first = outcome(rng);
        assert!((0..8).all(|_| outcome(rng) == first));
    }
}

/// The detector: without f(0) what is opened does depend on the row.
#[test]
fn without_masks_it_would_tell() {
    let rng = &mut ChaCha20Rng::from_seed([10; 32]);
    let place = Place::<Binary>::hashed("alpheus/test/v1", &[b"place"]);
    let mut opened = || {
        let sums = one_row(rng);
        place.open(&sums, &Proof::dangerous_masked(&sums, Binary::place(0), Binary::place(0))).f
    };
    let first = opened();
    assert!((0..8).all(|_| !opened().equals(&first)));
}
