//! Known answers from an independent script: `vectors/masks`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::known_answers::{array, bytes, cases, words};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::leaf;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::mask::cuts::{self, Cuts};
use alpheus_encrypted_stream::mask::generation::{Generation, KeySource, RoundKeys, pair_key};
use alpheus_encrypted_stream::mask::neighbours::{are_picks, pick, roster_digest};
use alpheus_encrypted_stream::mask::quorum::counted_population;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{
    Masker, OwnKey, PairKeys, Storage, Terms, WindowMembers, of_plan, params,
};
use alpheus_encrypted_stream::messages::member_leaf;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::membership::tolerated;
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_policy::quorum::min_opening;
use alpheus_time::{Span, Timestamp, Window};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Parameters {
    honest: u32,
    delta_exponent: u8,
    bits: Option<u8>,
    rounds: Option<u64>,
}

#[test]
fn parameters_match_the_script() {
    for case in cases::<Parameters>("masks/v1/parameters.json") {
        assert_eq!(params::largest_b(case.honest, case.delta_exponent), case.bits);
        assert_eq!(case.bits.map(params::rounds), case.rounds);
    }
}

#[derive(Deserialize)]
struct Quorum {
    controllers: u32,
    alpha: (u32, u32),
    colluders: u32,
    tolerated: u32,
    members: u32,
    dropout: (u32, u32),
    least: u32,
}

#[test]
fn quorums_match_the_script() {
    let fraction = |(numerator, denominator)| Fraction { numerator, denominator };
    for case in cases::<Quorum>("masks/v1/quorum.json") {
        let tolerated = tolerated(case.controllers, fraction(case.alpha), case.colluders);
        assert_eq!(tolerated, case.tolerated);
        let dropout = fraction(case.dropout);
        let least = min_opening(case.controllers, case.tolerated, case.members, dropout);
        assert_eq!(least, case.least);
    }
}

#[derive(Deserialize)]
struct Population {
    own: u32,
    others: Vec<u32>,
    tolerated: u32,
    controllers: u32,
    trust: bool,
    counted: u64,
}

#[test]
fn populations_match_the_script() {
    for case in cases::<Population>("masks/v1/population.json") {
        let Population { own, others, tolerated, controllers, trust, counted } = case;
        assert_eq!(counted_population(own, &others, tolerated, controllers, trust), counted);
    }
}

#[derive(Deserialize)]
struct Set {
    roster: Option<u32>,
    members: Option<Vec<u32>>,
    bytes: String,
}

#[test]
fn roster_sets_have_one_encoding() {
    for case in cases::<Set>("masks/v1/roster_set.json") {
        let set = RosterSet::of(case.roster.unwrap(), case.members.unwrap());
        assert_eq!(postcard::to_allocvec(&set).unwrap(), bytes(&case.bytes));
        assert_eq!(postcard::from_bytes::<RosterSet>(&bytes(&case.bytes)).unwrap(), set);
    }
    for name in ["roster_set_bad_beyond_roster.json", "roster_set_bad_length.json"] {
        for case in cases::<Set>(&format!("masks/v1/{name}")) {
            assert!(postcard::from_bytes::<RosterSet>(&bytes(&case.bytes)).is_err(), "{name}");
        }
    }
}

#[derive(Deserialize)]
struct Masks {
    strategy: String,
    bits: u8,
    plan: String,
    window_size: u64,
    window: u64,
    members: Vec<u32>,
    opened: Vec<u32>,
    membership: String,
    opening: String,
    agreed: Vec<Vec<String>>,
    own: Vec<String>,
    tau: Vec<Vec<String>>,
    neighbours: Vec<Vec<u32>>,
    tokens: BTreeMap<u32, Vec<String>>,
    openings: BTreeMap<u32, Vec<String>>,
}

impl Masks {
    fn plan(&self) -> PlanId {
        PlanId(array(&self.plan))
    }

    fn masks(&self) -> MaskStrategy {
        match self.strategy.as_str() {
            "clique" => MaskStrategy::Clique,
            "dream" => MaskStrategy::Dream { bits: self.bits },
            "epoch" => MaskStrategy::Epoch { bits: self.bits },
            other => panic!("unknown strategy {other}"),
        }
    }

    fn pairs(&self, p: u32, storage: Storage) -> PairKeys {
        let agreed = self.agreed[p as usize].iter().map(|it| Secret::from_bytes(array(it)));
        PairKeys::from_secrets(p, &agreed.collect::<Vec<_>>(), storage)
    }

    fn masker(&self, p: u32, storage: Storage, may_be_alone: bool) -> Masker {
        let own = Secret::from_bytes(array(&self.own[p as usize]));
        let terms = Terms {
            plan: self.plan(),
            controllers: u32::try_from(self.own.len()).unwrap(),
            window: Span(self.window_size),
            masks: self.masks(),
            may_be_alone,
        };
        Masker::with(terms, self.pairs(p, storage), OwnKey::new(&own, &self.plan())).unwrap()
    }

    fn round<'a>(&self, members: &'a RosterSet) -> WindowMembers<'a> {
        let start = Timestamp(self.window * self.window_size);
        let window = Window { start, end: start.plus(Span(self.window_size)) };
        WindowMembers { window, members, membership: Digest(array(&self.membership)), pickers: &[] }
    }
}

#[test]
fn masks_match_the_script() {
    for case in cases::<Masks>("masks/v1/masks.json") {
        let controllers = u32::try_from(case.own.len()).unwrap();
        for (p, expected) in (0..).zip(&case.neighbours) {
            let mut found = Vec::new();
            let mut strategy = of_plan(case.plan(), case.masks()).unwrap();
            strategy.neighbours(&case.pairs(p, Storage::Compact), case.window, &mut found);
            assert_eq!(&found, expected, "{} of {p}", case.strategy);
        }
        let members = RosterSet::of(controllers, case.members.iter().copied());
        let opened = RosterSet::of(controllers, case.opened.iter().copied());
        for storage in [Storage::Compact, Storage::Expanded] {
            for (p, expected) in &case.tokens {
                let tau = words(&case.tau[*p as usize]);
                let mut masker = case.masker(*p, storage, true);
                let token = masker.token(&case.round(&members), tau).unwrap();
                assert_eq!(token, words(expected), "token of {p}");
            }
            for (p, expected) in &case.openings {
                let mut masker = case.masker(*p, storage, true);
                let (round, digest) = (case.round(&members), Digest(array(&case.opening)));
                let opening = masker.opening(&round, &opened, &digest, expected.len()).unwrap();
                assert_eq!(opening, words(expected), "opening of {p}");
            }
        }
    }
}

#[derive(Deserialize)]
struct Generations {
    plan: String,
    window_size: u64,
    window: u64,
    membership: String,
    agreed: String,
    numbers: Vec<usize>,
    sources: Vec<String>,
    own: Vec<String>,
    noise: Vec<String>,
    publics: Vec<String>,
    noise_keys: Vec<String>,
    tokens: Vec<Vec<String>>,
}

impl Generations {
    fn of(&self, p: usize) -> Generation {
        let mut source = KeySource::new(Secret::from_bytes(array(&self.sources[p])));
        let mut all: Vec<_> = (0..=self.numbers[p]).map(|_| source.advance()).collect();
        all.pop().unwrap()
    }

    /// The token of one of the two, with the key that the other publishes.
    fn token(&self, p: usize, other: AgreementPublic) -> Vec<u64> {
        let (plan, generation) = (PlanId(array(&self.plan)), self.of(p));
        let agreed = generation.agreement(&plan).agree(&other).unwrap();
        let own = Secret::from_bytes(array(&self.own[p]));
        let life = [Secret::from_bytes(array(&self.agreed))];
        let life = PairKeys::from_secrets(u32::try_from(p).unwrap(), &life, Storage::Compact);
        let pairs = life.renewed(|_, key| Ok::<_, ()>(pair_key(key, &agreed))).unwrap().unwrap();
        let keys = RoundKeys::new(pairs, generation.own_key(&own, &plan));
        let window = Span(self.window_size);
        let (controllers, masks, may_be_alone) = (2, MaskStrategy::Clique, false);
        let terms = Terms { plan, controllers, window, masks, may_be_alone };
        let mut masker = Masker::with(terms, life, OwnKey::new(&own, &plan)).unwrap();
        let start = Timestamp(self.window * self.window_size);
        let window = Window { start, end: start.plus(window) };
        let (members, membership) = (RosterSet::full(2), Digest(array(&self.membership)));
        let round = WindowMembers { window, members: &members, membership, pickers: &[] };
        masker.token_with(Some(&keys), &round, vec![0; self.tokens[p].len()]).unwrap()
    }
}

#[test]
fn keys_of_generations_match_the_script() {
    for case in cases::<Generations>("masks/v1/generations.json") {
        let plan = PlanId(array(&case.plan));
        for p in [0, 1] {
            let public = case.of(p).agreement(&plan).public();
            assert_eq!(public.0, array(&case.publics[p]));
            let life = Secret::from_bytes(array(&case.noise[p]));
            assert_eq!(*case.of(p).noise(&life, &plan).expose(), array(&case.noise_keys[p]));
            let other = AgreementPublic(array(&case.publics[1 - p]));
            assert_eq!(case.token(p, other), words(&case.tokens[p]));
        }
    }
}

#[derive(Deserialize)]
struct Bad {
    error: String,
    controller: u32,
    members: Vec<u32>,
    opened: Vec<u32>,
    roster: u32,
}

#[test]
fn invalid_openings_are_rejected_with_a_specific_error() {
    let clique = cases::<Masks>("masks/v1/masks.json").remove(0);
    for name in [
        "not_a_member",
        "not_opened",
        "not_a_subset",
        "alone_in_membership",
        "alone_in_opening",
        "other_roster",
    ] {
        for case in cases::<Bad>(&format!("masks/v1/opening_bad_{name}.json")) {
            let members = RosterSet::of(case.roster, case.members);
            let opened = RosterSet::of(case.roster, case.opened);
            let mut masker = clique.masker(case.controller, Storage::Compact, false);
            let digest = Digest(array(&clique.opening));
            let refused = masker.opening(&clique.round(&members), &opened, &digest, 3).unwrap_err();
            let variant = format!("{refused:?}");
            assert_eq!(variant.split(' ').next().unwrap(), case.error, "{name}");
        }
    }
}

#[derive(Deserialize)]
struct CutCase {
    controllers: u32,
    tolerated: u32,
    picks: u32,
    cut_off: u32,
    ln_alone: Option<f64>,
    ln_cut_off: Option<f64>,
}

#[test]
fn cut_sums_are_close_to_the_exact_ones_and_never_below() {
    for case in cases::<CutCase>("masks/v1/cuts.json") {
        let CutCase { controllers, tolerated, picks, cut_off, .. } = case;
        let alone = cuts::ln_alone(controllers, tolerated, picks);
        let cut = cuts::ln_cut_off(controllers, tolerated, Cuts { picks, cut_off });
        // Boxes of cut sizes are bounded from above, so never below the exact sum.
        for (found, exact, slack) in [(alone, case.ln_alone, 1e-6), (cut, case.ln_cut_off, 0.05)] {
            let exact = exact.unwrap_or(f64::NEG_INFINITY);
            let close = found == exact || (found > exact - 1e-6 && found < exact + slack);
            assert!(close, "N = {controllers}: {found} for {exact}");
        }
    }
}

#[derive(Deserialize)]
struct Least {
    controllers: u32,
    tolerated: u32,
    picks: u32,
    cut_off: u32,
}

#[test]
fn the_fewest_picks_match_the_exact_sums() {
    for case in cases::<Least>("masks/v1/cuts_least.json") {
        let least = cuts::least(case.controllers, case.tolerated, 9).unwrap();
        assert_eq!(least.picks, case.picks, "N = {}", case.controllers);
        let above = case.cut_off..=case.cut_off + 1 + case.cut_off / 32;
        assert!(above.contains(&least.cut_off), "N = {}: {least:?}", case.controllers);
    }
}

#[derive(Deserialize)]
struct PicksCase {
    controllers: u32,
    controller: u32,
    wanted: u32,
    secret: Option<String>,
    ids: Option<Vec<String>>,
    roster: Option<String>,
    picks: Vec<u32>,
}

#[test]
fn picks_match_the_script() {
    for case in cases::<PicksCase>("masks/v1/picks.json") {
        let PicksCase { controllers, controller, wanted, .. } = case;
        let roster = Digest(array(&case.roster.unwrap()));
        if let Some(ids) = case.ids {
            let ids: Vec<ControllerId> = ids.iter().map(|id| ControllerId(array(id))).collect();
            assert_eq!(roster_digest(&ids, wanted), roster);
        }
        let secret = Secret::from_bytes(array(&case.secret.unwrap()));
        assert_eq!(pick(&secret, &roster, controller, controllers, wanted), case.picks);
        assert!(are_picks(&case.picks, wanted, controller, controllers));
    }
    for case in cases::<PicksCase>("masks/v1/picks_bad.json") {
        let PicksCase { controllers, controller, wanted, picks, .. } = case;
        assert!(!are_picks(&picks, wanted, controller, controllers), "{picks:?}");
    }
}

#[derive(Deserialize)]
struct Leaf {
    presence: String,
    pickers: Option<Vec<u32>>,
    inner: String,
}

#[test]
fn a_members_leaf_commits_to_its_pickers() {
    for case in cases::<Leaf>("masks/v1/leaves.json") {
        let found = member_leaf(&Digest(array(&case.presence)), case.pickers.as_deref());
        assert_eq!(found, leaf(&bytes(&case.inner)));
    }
}
