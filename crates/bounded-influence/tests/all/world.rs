//! Controllers, keys and one window of a bounded plan.

use alpheus_bounded_influence::blame::EdgesError;
use alpheus_bounded_influence::check::{
    BoundedContribution, Checker, Contributions, FailedWindow, FaultyError, Member,
    OpenedContribution, OpeningsError,
};
use alpheus_bounded_influence::commit::{Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::{
    CommittedCells, Contribution, EdgeStatement, Opening, Scope,
};
use alpheus_bounded_influence::share::{Answer, Masks, Neighbour, Share};
use alpheus_bounded_influence::terms::{Cell, Relation, Terms};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};

/// The noise of a controller in these worlds lies in −NOISE ..= NOISE.
pub(crate) const NOISE: u64 = 3;

pub(crate) struct World {
    pub(crate) scope: Scope,
    pub(crate) checker: Checker,
    pub(crate) committers: Vec<Committer>,
    /// H(S).
    pub(crate) set: Digest,
    /// S. M is everybody.
    pub(crate) opened: Vec<u32>,
    signing: Vec<SigningKey>,
    pairs: Vec<Vec<Prf>>,
    own: Vec<Prf>,
    consumers: Vec<Prf>,
    sealed: bool,
}

/// Openings of one window that do not hold.
#[derive(Debug)]
pub(crate) struct RefusedOpenings {
    pub(crate) faulty: Vec<FaultyError>,
    pub(crate) misplaced: Vec<u32>,
}

/// Values of the owners of one controller.
pub(crate) type Owners<'a> = &'a [&'a [i128]];

pub(crate) fn digest(parts: &[&[u8]]) -> Digest {
    labelled_hash("alpheus/test-digest/v1", parts)
}

fn prf(parts: &[&[u8]]) -> Prf {
    let mut key = [0; 16];
    key.copy_from_slice(&digest(parts).0[..16]);
    Prf::new(&Secret::from_bytes(key))
}

pub(crate) fn cell(lowest: i128, highest: i128) -> Cell {
    Cell { lowest, highest, noise: NOISE }
}

/// One cell from −20 to 100.
pub(crate) fn one_cell() -> Terms {
    Terms::new(&[cell(-20, 100)], &[], 1000, 10).unwrap()
}

/// Count, sum and squares of at most 3 events from −2 to 5.
pub(crate) fn three_cells() -> Terms {
    let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest: -2, highest: 5 };
    Terms::new(&[cell(0, 3), cell(-6, 15), cell(0, 75)], &[relation], 1000, 10).unwrap()
}

impl World {
    /// A window number `seed` of a plan with so many controllers, all of which are in S.
    pub(crate) fn new(terms: &Terms, controllers: u32, seed: u64) -> Self {
        let number = seed.to_be_bytes();
        let scope = Scope {
            plan: digest(&[b"plan"]),
            terms: terms.digest(),
            start: 1_000_000 * seed,
            end: 1_000_000 * (seed + 1),
            epoch: 0,
            cohort: 0,
            membership: digest(&[b"membership", &number]),
        };
        let all = || 0..controllers as u8;
        let secret = |p: u8| Secret::from_bytes(digest(&[b"secret", &[p]]).0);
        Self {
            scope,
            checker: Checker::new(terms.clone()),
            committers: all().map(|p| Committer::new(terms.clone(), secret(p))).collect(),
            set: digest(&[b"set", &number]),
            opened: (0..controllers).collect(),
            signing: all().map(|p| SigningKey::from_seed(&secret(p + 100))).collect(),
            pairs: all()
                .map(|p| all().map(|q| prf(&[b"pair", &[p.min(q), p.max(q)]])).collect())
                .collect(),
            own: all().map(|p| prf(&[b"own", &[p]])).collect(),
            consumers: all().map(|p| prf(&[b"consumer", &[p]])).collect(),
            sealed: false,
        }
    }

    /// The same world, with a consumer who alone reads its rows.
    pub(crate) fn sealed(terms: &Terms, controllers: u32, seed: u64) -> Self {
        let checker = Checker::sealed(terms.clone());
        Self { sealed: true, checker, ..Self::new(terms, controllers, seed) }
    }

    pub(crate) fn cells(&self) -> usize {
        self.checker.terms().cells().len()
    }

    pub(crate) fn controllers(&self) -> u32 {
        self.signing.len() as u32
    }

    /// Moves on to another window with the same keys.
    pub(crate) fn at(&mut self, window: u64) {
        let number = window.to_be_bytes();
        (self.scope.start, self.scope.end) = (1_000_000 * window, 1_000_000 * (window + 1));
        self.scope.membership = digest(&[b"membership", &number]);
        self.set = digest(&[b"set", &number]);
        self.opened = (0..self.controllers()).collect();
    }

    pub(crate) fn masks<T>(&self, p: u32, with: impl FnOnce(&Masks<'_>) -> T) -> T {
        let others = (0..self.controllers()).filter(|q| *q != p);
        let key = |q: u32| &self.pairs[p as usize][q as usize];
        let neighbours: Vec<Neighbour<'_>> =
            others.map(|position| Neighbour { position, key: key(position) }).collect();
        let consumer = self.sealed.then(|| &self.consumers[p as usize]);
        with(&Masks { position: p, own: &self.own[p as usize], neighbours: &neighbours, consumer })
    }

    pub(crate) fn pad(&self, p: u32) -> Share {
        Share::consumer_pad(self.cells(), &self.consumers[p as usize], &self.scope)
    }

    pub(crate) fn contribution(&self, p: u32, owners: Owners<'_>) -> Contribution {
        self.contribution_by(&self.committers[p as usize], p, owners)
    }

    /// As if these were the terms of the plan.
    pub(crate) fn contribution_by(
        &self,
        committer: &Committer,
        p: u32,
        owners: Owners<'_>,
    ) -> Contribution {
        let owner = |(at, values): (usize, &&[i128])| {
            OwnerValues::new(digest(&[b"owner", &[p as u8, at as u8]]), values.to_vec())
        };
        let admitted = committer.admit(owners.iter().enumerate().map(owner).collect()).unwrap();
        let (owners, sum) = committer.owners(&self.scope, p, &admitted).unwrap();
        let share = self.masks(p, |masks| masks.masked(sum, &self.scope));
        Contribution { scope: self.scope, controller: p, share, owners }
    }

    pub(crate) fn opening(&self, p: u32, contribution: &Digest, noise: &[i128]) -> Opening {
        self.opening_by(&self.committers[p as usize], p, contribution, noise)
    }

    pub(crate) fn opening_by(
        &self,
        committer: &Committer,
        p: u32,
        contribution: &Digest,
        noise: &[i128],
    ) -> Opening {
        self.masks(p, |masks| {
            let (answer, noise) = self.answer(committer, masks, noise);
            let (opening_set, contribution) = (self.set, *contribution);
            let (scope, share) = (self.scope, answer.share().clone());
            Opening { scope, controller: p, opening_set, contribution, share, noise }
        })
    }

    /// What these masks answer to the set, and commitments to the noise.
    pub(crate) fn answer<'a>(
        &self,
        committer: &Committer,
        masks: &Masks<'a>,
        noise: &[i128],
    ) -> (Answer<'a>, Option<CommittedCells>) {
        let noise = Noise::new(committer.terms(), noise).unwrap();
        let (committed, share) =
            committer.noise(&self.scope, masks.position, &self.set, &noise).unwrap();
        let opened = |q: u32| self.opened.contains(&q);
        (masks.opening(share, &self.scope, &self.set, opened), committed)
    }

    pub(crate) fn edges(
        &self,
        p: u32,
        opening: &Verified<Opening>,
        noise: &[i128],
    ) -> Result<EdgeStatement, EdgesError> {
        let committer = &self.committers[p as usize];
        self.masks(p, |masks| self.answer(committer, masks, noise).0.edges(opening))
    }

    /// What the checker finds in these contributions.
    pub(crate) fn check(&self, signed: &[(Member, Verified<Contribution>)]) -> Contributions {
        self.checker.contributions(&self.scope, signed).unwrap()
    }

    pub(crate) fn sign<T: Message>(&self, p: u32, message: &T) -> Verified<T> {
        let key = &self.signing[p as usize];
        Signed::new(message, key).open(&key.verifying_key()).unwrap()
    }

    /// The member at p, with so many owners.
    pub(crate) fn member(controller: u32, owners: usize) -> Member {
        let owners = owners as u32;
        Member { controller, counted: owners, listed: owners }
    }

    /// Contributions of all, of which none is at fault.
    pub(crate) fn bounded(&self, contributions: &[Contribution]) -> Vec<BoundedContribution> {
        let found = self.check(&self.signed(contributions));
        assert!(found.faulty.is_empty() && found.misplaced.is_empty(), "{:?}", found.faulty);
        found.bounded
    }

    pub(crate) fn signed(
        &self,
        contributions: &[Contribution],
    ) -> Vec<(Member, Verified<Contribution>)> {
        let signed = (0..).zip(contributions).map(|(p, contribution)| {
            (Self::member(p, contribution.owners.len()), self.sign(p, contribution))
        });
        signed.collect()
    }

    /// The openings of S, checked together with its contributions.
    pub(crate) fn open(
        &self,
        bounded: &[BoundedContribution],
        openings: &[Opening],
    ) -> Result<Vec<OpenedContribution>, RefusedOpenings> {
        let of = |p: u32| bounded.iter().find(|one| one.controller() == p).unwrap().clone();
        let pairs = self.opened.iter().zip(openings);
        let pairs: Vec<_> = pairs.map(|(p, opening)| (of(*p), self.sign(*p, opening))).collect();
        self.checker.openings(&self.set, &pairs).map_err(|error| match error {
            OpeningsError::Refused { faulty, misplaced } => RefusedOpenings { faulty, misplaced },
            OpeningsError::Round(error) => panic!("{error}"),
        })
    }

    pub(crate) fn failed<'a>(&self, opened: &'a [OpenedContribution]) -> FailedWindow<'a> {
        self.checker.failed(&self.opened, opened).unwrap()
    }
}

/// A window in which everybody follows the protocol, as messages that a test can change.
pub(crate) struct Window {
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) openings: Vec<Opening>,
    noise: Vec<i128>,
}

impl Window {
    pub(crate) fn new(world: &World, owners: &[Owners<'_>], noise: &[i128]) -> Self {
        let contributions: Vec<Contribution> =
            (0..).zip(owners).map(|(p, owners)| world.contribution(p, owners)).collect();
        let (openings, noise) = (Vec::new(), noise.to_vec());
        let mut window = Self { contributions, openings, noise };
        window.open(world);
        window
    }

    /// Makes the openings, for contributions as they are now.
    pub(crate) fn open(&mut self, world: &World) {
        let opening = |p: &u32| {
            let digest = world.sign(*p, &self.contributions[*p as usize]).digest();
            world.opening(*p, &digest, &self.noise)
        };
        self.openings = world.opened.iter().map(opening).collect();
    }

    pub(crate) fn opened(&self, world: &World) -> Vec<OpenedContribution> {
        world.open(&world.bounded(&self.contributions), &self.openings).unwrap()
    }

    /// Everybody's honest statements.
    pub(crate) fn edges(&self, world: &World) -> Vec<EdgeStatement> {
        let pairs = world.opened.iter().zip(&self.openings);
        let edges = |(p, opening): (&u32, &Opening)| {
            world.edges(*p, &world.sign(*p, opening), &self.noise).unwrap()
        };
        pairs.map(edges).collect()
    }
}
