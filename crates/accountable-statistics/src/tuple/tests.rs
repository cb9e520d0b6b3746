//! Forgeries by a prover that knows every secret of its own tuple and follows no rule.

use super::*;
use crate::error::{OutOfIntervalError, ProvingError, TupleError};
use alpheus_crypto::group::SecretScalar;
use alpheus_crypto::onetime::OneTimePublic;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

/// What a forger encrypts: any scalars, and its claims about them.
struct Forgery {
    value: SecretScalar,
    count: SecretScalar,
    /// Added to C_v, C_c, C_q after encryption: R does not match C.
    shift: [Option<Element>; 3],
    /// The squared number, if it is not the value.
    squared: Option<SecretScalar>,
}

struct Forger {
    terms: Terms,
    rng: ChaCha20Rng,
}

fn small(number: u32) -> SecretScalar {
    SecretScalar::from_small(number)
}

fn minus(number: u32) -> SecretScalar {
    small(0).minus(&small(number))
}

fn honest(value: SecretScalar, count: u32) -> Forgery {
    Forgery { value, count: small(count), shift: [None; 3], squared: None }
}

fn binding(upload: u32) -> Binding {
    let mut key = [3; 32];
    key[..4].copy_from_slice(&upload.to_be_bytes());
    Binding {
        tag: Element::second_base(),
        aggregate: labelled_hash("alpheus/test-aggregate/v1", &[]),
        ephemeral: OneTimePublic::from_bytes(key),
    }
}

impl Forger {
    fn new(lowest: i64, highest: i64) -> Self {
        let interval = Interval::new(lowest, highest, true).unwrap();
        let key = ThresholdKey(Element::from_hash("alpheus/test-key/v1", &[]));
        Self { terms: Terms::new(key, interval), rng: ChaCha20Rng::from_seed([1; 32]) }
    }

    /// (R, C) of a number, shifted as the forgery says.
    fn pair(&self, number: &SecretScalar, blinding: &SecretScalar, shift: Option<Element>) -> Pair {
        let terms = [(number, &message_base()), (blinding, &self.terms.key.0)];
        let c = Element::combine(&terms, &shift.iter().collect::<Vec<_>>(), &[]).unwrap();
        Pair { r: Element::base().times(blinding).unwrap(), c }
    }

    /// Proves the forgery's equations as if they were true. The range proof is another tuple's: for
    /// forgeries that the equations reject.
    fn tuple(&mut self, forgery: &Forgery, binding: &Binding) -> Tuple {
        self.tuple_with_blindings(forgery, binding).0
    }

    fn tuple_with_blindings(
        &mut self,
        forgery: &Forgery,
        binding: &Binding,
    ) -> (Tuple, [SecretScalar; 2]) {
        let [rv, rc, rq] = std::array::from_fn(|_| SecretScalar::random(&mut self.rng));
        let [of_value, of_count, of_square] = forgery.shift;
        let value = self.pair(&forgery.value, &rv, of_value);
        let count = self.pair(&forgery.count, &rc, of_count);
        let times = forgery.squared.as_ref().unwrap_or(&forgery.value);
        let combine = |a: &Element, b: &Element, plus: Option<Element>| {
            let plus: Vec<&Element> = plus.iter().collect();
            Element::combine(&[(times, a), (&rq, b)], &plus, &[]).unwrap()
        };
        let square = Pair {
            r: combine(&value.r, &Element::base(), None),
            c: combine(&value.c, &self.terms.key.0, of_square),
        };
        let ciphertexts = Ciphertexts { value, count, square: Some(square) };
        let dummy = small(1).minus(&forgery.count);
        let (s_c, s_v) = (dummy.times(&rc), dummy.times(&rv));
        let witness = [&forgery.value, &rv, &forgery.count, &rc, &s_c, &s_v, &rq];
        let statement = statement::statement(&self.terms, binding, &ciphertexts);
        let proof = statement.prove(&witness, &mut self.rng).unwrap();
        (Tuple { ciphertexts, proof, range: self.some_range(binding) }, [rv, rc])
    }

    /// The forgery with a range proof for its own ciphertexts and equations, valid except that it
    /// is about another interval.
    fn over(&mut self, forgery: &Forgery, value: u64, interval: Interval) -> Tuple {
        let (mut tuple, [rv, rc]) = self.tuple_with_blindings(forgery, &binding(0));
        let mut openings = vec![(value, rv.duplicate())];
        if interval.two_sided() {
            let width = u64::from(interval.width());
            let above = rc.times(&small(interval.width())).minus(&rv);
            openings.push((width - value, above));
        }
        let openings: Vec<_> = openings.iter().map(|(value, by)| (*value, by)).collect();
        let wide = Terms { interval, ..self.terms };
        tuple.range = self.range(&wide, &tuple, openings).unwrap();
        tuple
    }

    fn range(
        &mut self,
        terms: &Terms,
        tuple: &Tuple,
        openings: Vec<(u64, &SecretScalar)>,
    ) -> Option<range::EncodedProof> {
        let bound = range::bound(&self.terms, &binding(0), &tuple.ciphertexts, &tuple.proof);
        let opening = |(value, blinding)| alpheus_range_proof::Opening::new(value, blinding);
        let openings = openings.into_iter().map(opening).collect();
        let proving = range::RangeProver::new(terms);
        proving.prove_openings(openings, &tuple.ciphertexts, &bound, &mut self.rng)
    }

    fn some_range(&mut self, binding: &Binding) -> range::EncodedProof {
        self.honest(Contribution::Sample(self.terms.interval.lowest()), binding).range
    }

    fn honest(&mut self, contribution: Contribution, binding: &Binding) -> Tuple {
        Prover::new(self.terms).prove(contribution, binding, &mut self.rng).unwrap()
    }

    fn verdict(&self, tuple: Tuple) -> Option<TupleError> {
        Checker::new(self.terms).check(binding(0), tuple).err()
    }

    fn refusal(&mut self, forgery: &Forgery) -> Option<TupleError> {
        let tuple = self.tuple(forgery, &binding(0));
        self.verdict(tuple)
    }
}

#[test]
fn a_value_outside_cannot_be_proven() {
    let mut forger = Forger::new(-5, 94);
    let prover = Prover::new(forger.terms);
    for value in [-6, 95, i64::MIN, i64::MAX] {
        let refused = prover.prove(Contribution::Sample(value), &binding(0), &mut forger.rng);
        assert_eq!(refused.err(), Some(ProvingError::OutOfInterval(OutOfIntervalError)));
    }
}

/// The equations hold for any v' and c = 1, so only the range proof rejects these. Each is proven
/// in full to lie in a slightly wider interval.
#[test]
fn a_value_next_to_the_interval_is_rejected_by_its_range_proof() {
    let cases: [(i64, u32, &[i64]); 6] = [
        (255, 256, &[256, 511, 65_535]),
        (99, 100, &[100, 127, 255, 65_535]),
        (99, 120, &[120, 127, 255]),
        (65_535, 65_536, &[65_536, 100_000, (1 << 32) - 1]),
        (100_000, 100_001, &[100_001, 1 << 17, (1 << 32) - 1]),
        (100_000, 99_999, &[99_999, 100_001]),
    ];
    for (highest, value, wider) in cases {
        let mut forger = Forger::new(0, highest);
        let own = forger.terms.interval;
        // A value of the interval, proven the same way, counts.
        let good = forger.over(&honest(small(9), 1), 9, own);
        assert_eq!(forger.verdict(good), None);
        for wide in wider {
            let wide = Interval::new(0, *wide, true).unwrap();
            let forged = forger.over(&honest(small(value), 1), value.into(), wide);
            assert_eq!(forger.verdict(forged), Some(TupleError::Range), "{value} in {wide:?}");
        }
    }
}

/// Openings that a forger may try for the range proof of its own tuple. The library proves none,
/// because none opens the commitment. Any proof that it did make would have to be rejected.
#[test]
fn no_opening_proves_a_value_outside_the_interval() {
    for (lowest, highest, value) in [(0, 255, 256), (0, 99, 100), (0, 99, 120), (0, 255, 511)] {
        let mut forger = Forger::new(lowest, highest);
        let interval = forger.terms.interval;
        let fitting = value % (1_u64 << interval.bits());
        let forgery = honest(small(u32::try_from(value).unwrap()), 1);
        let (mut tuple, [rv, rc]) = forger.tuple_with_blindings(&forgery, &binding(0));
        let above = rc.times(&small(interval.width())).minus(&rv);
        let first = [(value, &rv), (fitting, &rv)];
        let second = [(0, &above), (fitting, &above), (fitting, &rv), (value, &rv), (255, &above)];
        for (first, second) in first.iter().flat_map(|f| second.iter().map(move |s| (f, s))) {
            let openings =
                [*first, *second].into_iter().take(1 + usize::from(interval.two_sided()));
            let terms = forger.terms;
            if let Some(range) = forger.range(&terms, &tuple, openings.collect()) {
                tuple.range = range;
                assert_eq!(forger.verdict(tuple.clone()), Some(TupleError::Range));
            }
        }
    }
}

/// An honest tuple of a wider interval with the same bits.
#[test]
fn a_tuple_of_a_wider_interval_is_rejected() {
    let forger = Forger::new(0, 99);
    let mut wide = Forger::new(0, 127);
    let tuple = wide.honest(Contribution::Sample(120), &binding(0));
    assert_eq!(wide.verdict(tuple.clone()), None);
    assert_eq!(forger.verdict(tuple), Some(TupleError::Statement));
}

#[test]
fn a_count_that_is_not_a_bit_is_rejected() {
    let mut forger = Forger::new(0, 255);
    for count in [small(2), minus(1), small(u32::MAX)] {
        let forgery = Forgery { count, ..honest(small(7), 1) };
        assert_eq!(forger.refusal(&forgery), Some(TupleError::Statement));
    }
}

#[test]
fn a_dummy_with_a_value_is_rejected() {
    let mut forger = Forger::new(0, 255);
    assert_eq!(forger.refusal(&honest(small(7), 0)), Some(TupleError::Statement));
    assert_eq!(forger.refusal(&honest(small(1), 0)), Some(TupleError::Statement));
}

#[test]
fn a_wrong_square_is_rejected() {
    let mut forger = Forger::new(0, 255);
    for squared in [small(8), small(0), minus(7)] {
        let forgery = Forgery { squared: Some(squared), ..honest(small(7), 1) };
        assert_eq!(forger.refusal(&forgery), Some(TupleError::Statement));
    }
}

#[test]
fn an_r_that_does_not_match_its_c_is_rejected() {
    let mut forger = Forger::new(0, 255);
    for at in 0..3 {
        for by in [message_base(), forger.terms.key.0, Element::second_base()] {
            let mut shift = [None; 3];
            shift[at] = Some(by);
            let forgery = Forgery { shift, ..honest(small(7), 1) };
            assert_eq!(forger.refusal(&forgery), Some(TupleError::Statement), "{at}");
        }
    }
}

/// The same secrets, proven for two slots: not even their owner can mix the parts.
#[test]
fn no_part_of_a_tuple_is_valid_in_another() {
    let mut forger = Forger::new(0, 255);
    let tuple = forger.honest(Contribution::Sample(9), &binding(0));
    let prover = Prover::new(forger.terms);
    let mut same = ChaCha20Rng::from_seed([9; 32]);
    let opening =
        Opening::new(&forger.terms, Contribution::Sample(9), &binding(0), &mut same).unwrap();
    let first = prover.finish(&opening, &binding(0), &mut forger.rng).unwrap();
    let second = prover.finish(&opening, &binding(1), &mut forger.rng).unwrap();
    let again = prover.finish(&opening, &binding(0), &mut forger.rng).unwrap();
    assert_eq!(first.ciphertexts, second.ciphertexts);
    assert_eq!(forger.verdict(first.clone()), None);
    assert_eq!(forger.verdict(second.clone()), Some(TupleError::Statement));
    let with = |range: &range::EncodedProof| Tuple { range: range.clone(), ..first.clone() };
    assert_eq!(forger.verdict(with(&second.range)), Some(TupleError::Range));
    assert_eq!(forger.verdict(with(&tuple.range)), Some(TupleError::Range));
    // Proven twice for one slot: the range proof is bound to its own proof of equations.
    assert_eq!(forger.verdict(with(&again.range)), Some(TupleError::Range));
}

/// A tuple without squares where squares are required, with a valid proof.
#[test]
fn a_tuple_of_another_shape_is_rejected() {
    let forger = Forger::new(0, 255);
    let plain = Interval::new(0, 255, false).unwrap();
    let mut other = Forger { terms: Terms { interval: plain, ..forger.terms }, rng: forger.rng };
    let tuple = other.honest(Contribution::Sample(9), &binding(0));
    // Its terms carry the squared interval's digest: only the square is missing.
    assert_eq!(other.verdict(tuple.clone()), None);
    assert_eq!(Forger::new(0, 255).verdict(tuple), Some(TupleError::Statement));
}

/// A generator that repeats itself, as when a machine's snapshot is resumed.
#[test]
fn a_generator_that_repeats_itself_reveals_no_difference() {
    let forger = Forger::new(0, 255);
    let prover = Prover::new(forger.terms);
    let contributions = [Contribution::Sample(1), Contribution::Sample(2), Contribution::Dummy];
    let tuples = contributions.map(|contribution| {
        let rng = &mut ChaCha20Rng::from_seed([4; 32]);
        prover.prove(contribution, &binding(0), rng).unwrap().ciphertexts
    });
    let [a, b, c] = tuples;
    assert!(a.value.r != b.value.r && b.value.r != c.value.r && a.value.r != c.value.r);
    let rng = &mut ChaCha20Rng::from_seed([4; 32]);
    let elsewhere = prover.prove(Contribution::Sample(1), &binding(1), rng).unwrap().ciphertexts;
    assert!(a.value.r != elsewhere.value.r && a.count.r != elsewhere.count.r);
}
