//! A round of blame among many members, one of which lied.
//!
//! All pairs share one key, so that all edges have the same commitments: it takes one member's time to make
//! everybody's statement. The cost of each, and the service's work, are the same as with keys of their own.
//! In sparse graphs all have about as many edges.

use crate::ours::{digest, scope, terms};
use crate::processor;
use alpheus_bounded_influence::blame::Blame;
use alpheus_bounded_influence::check::{Checker, Member, OpenedContribution};
use alpheus_bounded_influence::commit::{Committer, Noise};
use alpheus_bounded_influence::messages::{Contribution, Edge, EdgeStatement, Opening, Scope};
use alpheus_bounded_influence::share::{Answer, Masks, Neighbour};
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use serde_json::{Value, json};

/// Who lied.
const LIAR: u32 = 7;

/// One window of so many members without owners: what blame costs does not depend on them.
struct Round {
    members: u32,
    /// One in so many pairs share pads.
    one_in: u32,
    scope: Scope,
    set: Digest,
    committer: Committer,
    key: SigningKey,
    pair: Prf,
}

impl Round {
    fn new(members: u32, one_in: u32) -> Self {
        let terms = terms(members, members);
        Self {
            members,
            one_in,
            scope: scope(&terms),
            set: digest(&[b"set"]),
            committer: Committer::new(terms, Secret::from_bytes([1; 32])),
            key: SigningKey::from_seed(&Secret::from_bytes([2; 32])),
            pair: Prf::new(&Secret::from_bytes([3; 16])),
        }
    }

    /// With whom a member shares pads.
    fn neighbours(&self, of: u32) -> impl Iterator<Item = u32> {
        let shared = move |other: &u32| *other != of && (of + other) % self.one_in == 0;
        (0..self.members).filter(shared)
    }

    fn masks<T>(&self, position: u32, with: impl FnOnce(&Masks<'_>) -> T) -> T {
        let others = self.neighbours(position);
        let neighbour = |position| Neighbour { position, key: &self.pair };
        let neighbours: Vec<Neighbour<'_>> = others.map(neighbour).collect();
        with(&Masks { position, own: &self.pair, neighbours: &neighbours, consumer: None })
    }

    fn sign<T: Message>(&self, message: &T) -> Verified<T> {
        let signed = Signed::new(message, &self.key);
        signed.open(&self.key.verifying_key()).expect("its own signature")
    }

    fn contribution(&self, position: u32) -> Verified<Contribution> {
        let none = self.committer.admit(Vec::new()).expect("no owners");
        let made = self.committer.owners(&self.scope, position, &none);
        let (owners, sum) = made.expect("nothing to prove");
        let mut share = self.masks(position, |masks| masks.masked(sum, &self.scope));
        if position == LIAR {
            share.values[0] = share.values[0].plus(&PublicScalar::of(1_000));
        }
        self.sign(&Contribution { scope: self.scope, controller: position, share, owners })
    }

    fn answer<T>(&self, position: u32, with: impl FnOnce(&Answer<'_>) -> T) -> T {
        let noise = Noise::new(self.committer.terms(), &[0; 3]).expect("no noise");
        let made = self.committer.noise(&self.scope, position, &self.set, &noise);
        let (_, share) = made.expect("no noise to prove");
        self.masks(position, |masks| with(&masks.opening(share, &self.scope, &self.set, |_| true)))
    }

    fn opening(&self, position: u32, contribution: Digest) -> Verified<Opening> {
        let share = self.answer(position, |answer| answer.share().clone());
        let (scope, opening_set, noise) = (self.scope, self.set, None);
        self.sign(&Opening { scope, controller: position, opening_set, contribution, share, noise })
    }

    /// The statement of any member, from that of the first.
    fn statement(&self, of: u32, first: &EdgeStatement) -> EdgeStatement {
        let commitments = &first.edges[0].commitments;
        let edge = |other| Edge { other, commitments: commitments.clone() };
        let edges = self.neighbours(of).map(edge).collect();
        let EdgeStatement { scope, opening_set, .. } = *first;
        EdgeStatement { scope, controller: of, opening_set, edges, consumer_pad: None }
    }
}

/// What a round of blame costs a member and the service, if one in so many pairs share pads.
pub(crate) fn figures(members: u32, one_in: u32) -> Value {
    let round = Round::new(members, one_in);
    let checker = Checker::new(round.committer.terms().clone());
    let given: Vec<_> = (0..members)
        .map(|controller| {
            let member = Member { controller, counted: 0, listed: 1 };
            (member, round.contribution(controller))
        })
        .collect();
    let digests: Vec<Digest> = given.iter().map(|(_, one)| one.digest()).collect();
    let bounded = checker.contributions(&round.scope, &given).expect("a window").bounded;
    let openings = (0..).zip(&digests).map(|(at, digest)| round.opening(at, *digest));
    let pairs: Vec<_> = bounded.into_iter().zip(openings).collect();
    let opened: Vec<OpenedContribution> =
        checker.openings(&round.set, &pairs).expect("openings that hold");
    let all: Vec<u32> = (0..members).collect();
    assert!(checker.row(&all, &opened, None).is_err(), "the row fails");
    let begun = processor();
    let first = round.answer(0, |answer| answer.edges(&pairs[0].1)).expect("its own opening");
    let stating = processor() - begun;
    let begun = processor();
    let stated: Vec<_> = all.iter().map(|at| round.sign(&round.statement(*at, &first))).collect();
    let reading = processor() - begun;
    let bytes = postcard::to_allocvec(&first).map_or(0, |bytes| bytes.len());
    let begun = processor();
    let failed = checker.failed(&all, &opened).expect("one of each");
    let judgement = Blame::new(members / 3).judge(&failed, &stated);
    let judging = processor() - begun;
    assert!(judgement.named.keys().eq([&LIAR]) && judgement.silent.is_empty());
    json!({
        "members": members,
        "edges_of_a_member": first.edges.len(),
        "member_states_ms": stating,
        "all_signed_and_read_ms": reading,
        "service_judges_ms": judging,
        "bytes_of_a_statement": bytes,
    })
}
