//! Known answers from an independent script: `vectors/bounded`.

use crate::world::World;
use alpheus_bounded_influence::blame::Blame;
use alpheus_bounded_influence::check::{
    BoundedContribution, Checker, Member, OpeningsError, RoundError,
};
use alpheus_bounded_influence::commit::{Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::{
    CommittedCells, Contribution, EdgeStatement, MaskedShare, Opening, Scope,
};
use alpheus_bounded_influence::share::{Masks, Neighbour, Share};
use alpheus_bounded_influence::terms::{Cell, Relation, Terms};
use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_test_support::vectors::{array_from_hex as array, cases, from_hex};
use serde::Deserialize;

#[derive(Deserialize)]
struct TermsCase {
    cells: Vec<[String; 3]>,
    relations: Vec<(usize, usize, Option<usize>, i64, i64)>,
}

#[derive(Deserialize)]
struct ScopeCase {
    plan: String,
    start: u64,
    end: u64,
    epoch: u64,
    cohort: u32,
    membership: String,
}

#[derive(Deserialize)]
struct OwnerCase {
    commitments: Vec<String>,
    proof: String,
}

#[derive(Deserialize)]
struct Case {
    terms: TermsCase,
    terms_digest: String,
    scope: ScopeCase,
    scope_digest: String,
    controller: u32,
    counted: u32,
    listed: u32,
    owners: Vec<OwnerCase>,
    secret: Option<String>,
    encoded: Option<String>,
    inputs: Option<Vec<(String, Vec<String>)>>,
    sums: Option<[Vec<String>; 2]>,
    error: Option<String>,
}

fn integers(values: &[String]) -> Vec<i128> {
    values.iter().map(|value| value.parse().unwrap()).collect()
}

fn scalars(values: &[String]) -> Vec<PublicScalar> {
    values.iter().map(|value| PublicScalar::from_bytes(&array(value)).unwrap()).collect()
}

fn elements(values: &[String]) -> Vec<Element> {
    values.iter().map(|value| Element::from_bytes(&array(value)).unwrap()).collect()
}

impl TermsCase {
    fn terms(&self) -> Terms {
        let cell = |[lowest, highest, noise]: &[String; 3]| Cell {
            lowest: lowest.parse().unwrap(),
            highest: highest.parse().unwrap(),
            noise: noise.parse().unwrap(),
        };
        let relation = |&(count, sum, squares, lowest, highest): &_| Relation {
            count,
            sum,
            squares,
            lowest,
            highest,
        };
        let cells: Vec<Cell> = self.cells.iter().map(cell).collect();
        let relations: Vec<Relation> = self.relations.iter().map(relation).collect();
        Terms::new(&cells, &relations, 1000, 10).unwrap()
    }
}

impl ScopeCase {
    fn scope(&self, terms: &Terms) -> Scope {
        Scope {
            plan: Digest(array(&self.plan)),
            terms: terms.digest(),
            start: self.start,
            end: self.end,
            epoch: self.epoch,
            cohort: self.cohort,
            membership: Digest(array(&self.membership)),
        }
    }
}

impl Case {
    fn owners(&self) -> Vec<CommittedCells> {
        let owner = |one: &OwnerCase| CommittedCells {
            commitments: elements(&one.commitments),
            proof: from_hex(&one.proof),
        };
        self.owners.iter().map(owner).collect()
    }

    /// The name of the fault that the checker finds.
    fn fault(&self) -> Option<String> {
        let terms = self.terms.terms();
        assert_eq!(terms.digest(), Digest(array(&self.terms_digest)));
        let scope = self.scope.scope(&terms);
        assert_eq!(scope.digest(), Digest(array(&self.scope_digest)));
        let share = MaskedShare::zero(terms.cells().len());
        let controller = self.controller;
        let contribution = Contribution { scope, controller, share, owners: self.owners() };
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let signed = Signed::new(&contribution, &key).open(&key.verifying_key()).unwrap();
        let member = Member { controller, counted: self.counted, listed: self.listed };
        let found = match Checker::new(terms).contributions(&scope, &[(member, signed)]) {
            Ok(found) => found,
            Err(RoundError::Counted { .. }) => return Some("Counted".to_owned()),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found.bounded.len() + found.faulty.len(), 1);
        found.faulty.first().map(|faulty| format!("{:?}", faulty.fault))
    }
}

#[test]
fn commitments_are_those_of_the_script_and_its_proofs_hold() {
    for case in cases::<Case>("bounded/v1/contributions.json") {
        assert_eq!(case.fault(), None);
        let terms = case.terms.terms();
        let scope = case.scope.scope(&terms);
        let secret = Secret::from_bytes(array(case.secret.as_ref().unwrap()));
        let inputs = case.inputs.as_ref().unwrap().iter();
        let owners: Vec<OwnerValues> = inputs
            .map(|(owner, values)| OwnerValues::new(Digest(array(owner)), integers(values)))
            .collect();
        let committer = Committer::new(terms, secret);
        let admitted = committer.admit(owners).unwrap();
        let (committed, sum) = committer.owners(&scope, case.controller, &admitted).unwrap();
        let ours = committed.iter().map(|one| &one.commitments);
        assert!(ours.eq(case.owners().iter().map(|one| &one.commitments)));
        let [values, blindings] = case.sums.as_ref().unwrap();
        let expected = MaskedShare { values: scalars(values), blindings: scalars(blindings) };
        assert_eq!(sum.dangerous_reveal(), expected);
        let (controller, share, owners) = (case.controller, expected, case.owners());
        let contribution = Contribution { scope, controller, share, owners };
        let encoded = postcard::to_allocvec(&contribution).unwrap();
        assert_eq!(encoded, from_hex(case.encoded.as_ref().unwrap()));
    }
}

#[test]
fn bad_contributions_are_refused_with_their_fault() {
    for (at, case) in cases::<Case>("bounded/v1/contributions_bad.json").iter().enumerate() {
        assert_eq!(case.fault(), case.error, "case {at}");
    }
}

#[derive(Deserialize)]
struct NoiseCase {
    terms: TermsCase,
    scope: ScopeCase,
    secret: String,
    set: String,
    controller: u32,
    values: Vec<String>,
    commitments: Vec<String>,
    proof: String,
    blindings: Vec<String>,
    contribution: String,
    encoded: String,
}

#[test]
fn noise_is_committed_to_as_by_the_script() {
    for case in cases::<NoiseCase>("bounded/v1/noise.json") {
        let terms = case.terms.terms();
        let (scope, set) = (case.scope.scope(&terms), Digest(array(&case.set)));
        let committer = Committer::new(terms, Secret::from_bytes(array(&case.secret)));
        let noise = Noise::new(committer.terms(), &integers(&case.values)).unwrap();
        let (committed, share) = committer.noise(&scope, case.controller, &set, &noise).unwrap();
        let committed = committed.unwrap();
        assert_eq!(committed.commitments, elements(&case.commitments));
        let (share, proof) = (share.dangerous_reveal(), from_hex(&case.proof));
        assert_eq!(
            (committed.proof.len(), &share.blindings),
            (proof.len(), &scalars(&case.blindings))
        );
        let opening = Opening {
            scope,
            controller: case.controller,
            opening_set: set,
            contribution: Digest(array(&case.contribution)),
            share,
            noise: Some(CommittedCells { proof, ..committed }),
        };
        assert_eq!(postcard::to_allocvec(&opening).unwrap(), from_hex(&case.encoded));
    }
}

/// An opening; the first of the list holds.
#[derive(Deserialize)]
struct OpeningCase {
    terms: TermsCase,
    scope: ScopeCase,
    set: String,
    controller: u32,
    commitments: Vec<String>,
    proof: Option<String>,
    error: Option<String>,
}

/// A controller without owners, for which these pads are all that its share is.
fn without_owners(
    checker: &Checker,
    scope: Scope,
    controller: u32,
    share: MaskedShare,
) -> (BoundedContribution, Digest) {
    let contribution = Contribution { scope, controller, share, owners: Vec::new() };
    let (member, signed) = (Member { controller, counted: 0, listed: 0 }, signed(&contribution));
    let digest = signed.digest();
    let found = checker.contributions(&scope, &[(member, signed)]).unwrap();
    (found.bounded[0].clone(), digest)
}

fn signed<T: Message>(message: &T) -> Verified<T> {
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    Signed::new(message, &key).open(&key.verifying_key()).unwrap()
}

impl OpeningCase {
    /// The name of the fault that the checker finds.
    fn fault(&self) -> Option<String> {
        let terms = self.terms.terms();
        let (scope, opening_set) = (self.scope.scope(&terms), Digest(array(&self.set)));
        let (checker, share) = (Checker::new(terms), MaskedShare::zero(1));
        let (bounded, contribution) =
            without_owners(&checker, scope, self.controller, share.clone());
        let committed = |proof: &String| CommittedCells {
            commitments: elements(&self.commitments),
            proof: from_hex(proof),
        };
        let (controller, noise) = (self.controller, self.proof.as_ref().map(committed));
        let opening = Opening { scope, controller, opening_set, contribution, share, noise };
        match checker.openings(&opening_set, &[(bounded, signed(&opening))]) {
            Ok(_) => None,
            Err(OpeningsError::Refused { faulty, .. }) => Some(format!("{:?}", faulty[0].fault)),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn openings_of_the_script_hold_or_have_the_fault_that_it_says() {
    for (at, case) in cases::<OpeningCase>("bounded/v1/noise_bad.json").iter().enumerate() {
        assert_eq!(case.fault(), case.error, "case {at}");
    }
}

#[derive(Deserialize)]
struct PadCase {
    key: String,
    scope: ScopeCase,
    terms_digest: String,
    set: String,
    mask: Vec<String>,
    open: Vec<String>,
    consumer: Vec<String>,
}

#[test]
fn pads_are_those_of_the_script() {
    for case in cases::<PadCase>("bounded/v1/pads.json") {
        let world = World::new(&crate::world::one_cell(), 1, 0);
        assert_eq!(world.scope.terms, Digest(array(&case.terms_digest)));
        let scope = case.scope.scope(world.checker.terms());
        let (key, set) =
            (Prf::new(&Secret::from_bytes(array(&case.key))), Digest(array(&case.set)));
        let none = Prf::new(&Secret::from_bytes([0; 16]));
        let neighbours = [Neighbour { position: 1, key: &key }];
        let with = Masks { position: 0, own: &none, neighbours: &neighbours, consumer: None };
        let without = Masks { neighbours: &[], ..with };
        let less = |mut with: MaskedShare, without: &MaskedShare| {
            with.subtract(without);
            [with.values, with.blindings].concat()
        };
        let zero = || Share::zero(2);
        let mask = less(with.masked(zero(), &scope), &without.masked(zero(), &scope));
        assert_eq!(mask, scalars(&case.mask));
        let open = |masks: &Masks<'_>, opened: bool| {
            masks.opening(zero(), &scope, &set, |_| opened).share().clone()
        };
        assert_eq!(less(open(&with, true), &open(&without, true)), scalars(&case.open));
        assert_eq!(less(open(&with, false), &open(&without, true)), scalars(&case.mask));
        let pad = Share::consumer_pad(2, &key, &scope).dangerous_reveal();
        assert_eq!([pad.values, pad.blindings].concat(), scalars(&case.consumer));
    }
}

#[derive(Deserialize)]
struct EdgeCase {
    terms: TermsCase,
    scope: ScopeCase,
    set: String,
    keys: [String; 2],
    consumer_key: String,
    edges: [Vec<String>; 2],
    consumer_pad: Vec<String>,
    encoded: String,
}

#[test]
fn edges_are_those_of_the_script() {
    for case in cases::<EdgeCase>("bounded/v1/edges.json") {
        let scope = case.scope.scope(&case.terms.terms());
        let prf = |text: &str| Prf::new(&Secret::from_bytes(array(text)));
        let keys = case.keys.each_ref().map(|key| prf(key));
        // The order of neighbours does not matter.
        let neighbours =
            [Neighbour { position: 2, key: &keys[1] }, Neighbour { position: 0, key: &keys[0] }];
        let consumer = prf(&case.consumer_key);
        let masks = Masks {
            position: 1,
            own: &consumer,
            neighbours: &neighbours,
            consumer: Some(&consumer),
        };
        let set = Digest(array(&case.set));
        let answer = masks.opening(Share::zero(2), &scope, &set, |_| true);
        let own = Opening {
            scope,
            controller: 1,
            opening_set: set,
            contribution: scope.plan,
            share: answer.share().clone(),
            noise: None,
        };
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let own = Signed::new(&own, &key).open(&key.verifying_key()).unwrap();
        let statement = answer.edges(&own).unwrap();
        let found: Vec<_> = statement.edges.iter().map(|edge| &edge.commitments).collect();
        assert!(found.into_iter().eq(&case.edges.each_ref().map(|edge| elements(edge))));
        assert_eq!(statement.consumer_pad, Some(elements(&case.consumer_pad)));
        assert_eq!(postcard::to_allocvec(&statement).unwrap(), from_hex(&case.encoded));
    }
}

/// A statement of the controller at 1 of three; the first of the list is what its share says.
#[derive(Deserialize)]
struct StatementCase {
    terms: TermsCase,
    scope: ScopeCase,
    set: String,
    keys: [String; 2],
    encoded: String,
    left_out: Vec<(u32, u32)>,
    error: Option<String>,
}

impl StatementCase {
    /// What the judge says of the statement. The other controllers say nothing.
    fn lie(&self) -> Option<String> {
        let terms = self.terms.terms();
        let (scope, set) = (self.scope.scope(&terms), Digest(array(&self.set)));
        let keys = self.keys.each_ref().map(|key| Prf::new(&Secret::from_bytes(array(key))));
        let own = Prf::new(&Secret::from_bytes([0; 16]));
        let neighbours =
            [Neighbour { position: 0, key: &keys[0] }, Neighbour { position: 2, key: &keys[1] }];
        let checker = Checker::new(terms);
        let share = |controller: u32| {
            let neighbours = if controller == 1 { &neighbours[..] } else { &[] };
            let masks = Masks { position: controller, own: &own, neighbours, consumer: None };
            let masked = masks.masked(Share::zero(2), &scope);
            let answer = masks.opening(Share::zero(2), &scope, &set, |_| true).share().clone();
            let (bounded, contribution) = without_owners(&checker, scope, controller, masked);
            let (opening_set, share, noise) = (set, answer, None);
            let opening = Opening { scope, controller, opening_set, contribution, share, noise };
            (bounded, signed(&opening))
        };
        let opened = checker.openings(&set, &[0, 1, 2].map(share)).unwrap();
        let failed = checker.failed(&[0, 1, 2], &opened).unwrap();
        let failed = failed.without(self.left_out.iter().copied());
        let statement: EdgeStatement = postcard::from_bytes(&from_hex(&self.encoded)).unwrap();
        let found = Blame::new(2).judge(&failed, &[signed(&statement)]);
        assert_eq!((found.silent, found.struck.len()), (vec![0, 2], 0));
        found.named.get(&1).map(|lie| format!("{lie:?}"))
    }
}

#[test]
fn statements_of_the_script_hold_or_are_the_lie_that_it_says() {
    for (at, case) in cases::<StatementCase>("bounded/v1/edges_bad.json").iter().enumerate() {
        assert_eq!(case.lie(), case.error, "case {at}");
    }
}
