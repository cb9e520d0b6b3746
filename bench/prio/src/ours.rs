//! One owner's commitments and proof, and their check in batches.

use crate::{BITS, time};
use alpheus_bounded_influence::check::{Checker, Member};
use alpheus_bounded_influence::commit::{Committer, OwnerValues};
use alpheus_bounded_influence::messages::{Contribution, MaskedShare, Scope};
use alpheus_bounded_influence::terms::{Cell, Relation, Terms};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_range_proof::{Commitment, Opening, RangeProver, Shape, Terms as RangeTerms};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

/// Events of an owner's window, and the most that one can be.
pub(crate) const EVENTS: i128 = 100;
pub(crate) const MAX_VALUE: i128 = 100;
/// Proofs that are checked together.
const BATCH: u32 = 256;
/// Forms of the terms below: two sides of the count and of the relation, one of squares, two of their
/// sum, and one to fill up.
const FORMS: usize = 8;

pub(crate) fn digest(parts: &[&[u8]]) -> Digest {
    labelled_hash("alpheus/bench-prio/v1", parts)
}

/// Count, sum and sum of squares of at most 100 events from 0 to 100.
pub(crate) fn terms(owners: u32, controllers: u32) -> Terms {
    let cell = |highest| Cell { lowest: 0, highest, noise: 0 };
    let (sum, squares) = (EVENTS * MAX_VALUE, EVENTS * MAX_VALUE * MAX_VALUE);
    let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest: 0, highest: 100 };
    let cells = [cell(EVENTS), cell(sum), cell(squares)];
    Terms::new(&cells, &[relation], owners, controllers).expect("terms that hold")
}

pub(crate) fn scope(terms: &Terms) -> Scope {
    let (plan, membership) = (digest(&[b"plan"]), digest(&[b"membership"]));
    let (start, end) = (0, 1_000_000);
    Scope { plan, terms: terms.digest(), start, end, epoch: 0, cohort: 0, membership }
}

fn owner(at: u32) -> OwnerValues {
    OwnerValues::new(digest(&[&at.to_be_bytes()]), vec![10, 500, 30_000])
}

fn signed(message: &Contribution) -> Verified<Contribution> {
    let key = SigningKey::from_seed(&Secret::from_bytes([7; 32]));
    Signed::new(message, &key).open(&key.verifying_key()).expect("its own signature")
}

/// What making, checking and sending costs for each owner.
pub(crate) fn figures(runs: usize) -> Value {
    let terms = terms(BATCH, 2);
    let committer = Committer::new(terms.clone(), Secret::from_bytes([1; 32]));
    let scope = scope(&terms);
    let one = committer.admit(vec![owner(0)]).expect("one owner");
    let made = time(runs, || drop(committer.owners(&scope, 0, &one)));
    let range = range_alone(runs);
    let all = committer.admit((0..BATCH).map(owner).collect()).expect("all owners");
    let (owners, sum) = committer.owners(&scope, 0, &all).expect("proofs");
    let bytes = owners[0].proof.len() + 32 * owners[0].commitments.len();
    let share: MaskedShare = sum.dangerous_reveal();
    let given = signed(&Contribution { scope, controller: 0, share, owners });
    let member = Member { controller: 0, counted: BATCH, listed: BATCH };
    let (given, checker) = ([(member, given)], Checker::new(terms));
    let found = checker.contributions(&scope, &given).expect("a window of the terms");
    assert!(found.faulty.is_empty() && found.bounded.len() == 1);
    let checked = time(runs, || drop(checker.contributions(&scope, &given)));
    json!({
        "make_ms": made,
        "range_proof_alone_ms": range,
        "ratio": made / range,
        "check_ms_in_batches_of_256": checked / f64::from(BATCH),
        "bytes": bytes,
    })
}

/// A range proof of as many bits, with its commitments given.
fn range_alone(runs: usize) -> f64 {
    let shape = Shape::new(BITS, FORMS).expect("powers of two");
    let [value_base, blinding_base] = [Element::base(), Element::second_base()];
    let proving = RangeProver::new(RangeTerms {
        shape,
        value_base,
        blinding_base,
        label: "alpheus/bench/v1",
    });
    let blinding = |at: u64| SecretScalar::from_integer(i128::from(at) + 12_345);
    let commitments: Vec<Commitment> = (0..FORMS as u64)
        .map(|at| {
            let (value, blinding) = (SecretScalar::from_integer(at.into()), blinding(at));
            let terms = [(&value, &value_base), (&blinding, &blinding_base)];
            Commitment::of(&Element::combine(&terms, &[], &[]).expect("not the identity"))
        })
        .collect();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    time(runs, || {
        let openings = (0..FORMS as u64).map(|at| Opening::new(at, &blinding(at))).collect();
        let proof = proving.prove(openings, &commitments, &digest(&[b"bound"]), &mut rng);
        assert!(proof.is_some());
    })
}
