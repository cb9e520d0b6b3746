//! The masks of `Neighbours`. They cancel over every set whose members have enough of
//! their picks, and no other member answers. The graph is cut as often as the bound
//! predicts.

#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test")]

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::mask::cuts::{self, Cuts};
use alpheus_encrypted_stream::mask::neighbours::{pick, roster_digest};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{
    MaskError, Masker, MemberSet, OwnKey, PairKeys, Storage, Terms, WindowMembers,
};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::{MaskStrategy, needed_picks};
use alpheus_time::{Span, Timestamp, Window};
use proptest::prelude::*;

const PLAN: PlanId = PlanId([5; 32]);
const SIZE: Span = Span::seconds(10);

fn secret(what: &str, trial: u64, controller: u32) -> Secret<32> {
    let parts: [&[u8]; 2] = [&trial.to_be_bytes(), &controller.to_be_bytes()];
    Secret::from_bytes(*labelled_hash(what, &parts).as_bytes())
}

/// The picks of all controllers.
fn graph(trial: u64, controllers: u32, picks: u32) -> Vec<Vec<u32>> {
    let ids: Vec<ControllerId> =
        (0..controllers).map(|p| ControllerId(*secret("id", trial, p).expose())).collect();
    let roster = roster_digest(&ids, picks);
    (0..controllers)
        .map(|p| pick(&secret("own", trial, p), &roster, p, controllers, picks))
        .collect()
}

/// A roster's maskers, each with keys for its picks.
struct Roster {
    keys: Vec<AgreementKey>,
    public: Vec<AgreementPublic>,
    picks: Vec<Vec<u32>>,
    maskers: Vec<Masker>,
    needed: u32,
}

impl Roster {
    fn new(trial: u64, controllers: u32, picks: u32, storage: Storage) -> Roster {
        let keys: Vec<AgreementKey> =
            (0..controllers).map(|p| AgreementKey::from_seed(&secret("key", trial, p))).collect();
        let public: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        let graph = graph(trial, controllers, picks);
        let masks = MaskStrategy::Neighbours { picks, cut_off: 0 };
        let terms = Terms { plan: PLAN, controllers, window: SIZE, masks, may_be_alone: true };
        let masker = |p: u32| {
            let (at, own) = (p as usize, OwnKey::new(&secret("own", trial, p), &PLAN));
            let pairs =
                PairKeys::agree_with_picks(&keys[at], &public, p, &graph[at], storage).unwrap();
            Masker::with(terms, pairs, own).unwrap()
        };
        let maskers = (0..controllers).map(masker).collect();
        Roster { keys, public, picks: graph, maskers, needed: needed_picks(picks) }
    }

    fn pickers(&self, members: &RosterSet, of: u32) -> Vec<u32> {
        members.iter().filter(|member| self.picks[*member as usize].contains(&of)).collect()
    }

    fn held(&self, controller: u32, set: &RosterSet) -> u32 {
        let picks = self.picks[controller as usize].iter();
        u32::try_from(picks.filter(|pick| set.contains(**pick)).count()).unwrap()
    }

    /// The largest subset in which all members have enough of their picks.
    fn peel(&self, mut set: RosterSet) -> RosterSet {
        loop {
            let short = |p: &u32| self.held(*p, &set) < self.needed;
            let Some(short) = set.iter().find(short) else { return set };
            set.remove(short);
        }
    }

    /// T and o of one controller.
    fn answer(
        &mut self,
        p: u32,
        members: &RosterSet,
        opened: &RosterSet,
    ) -> (Result<Vec<u64>, MaskError>, Result<Vec<u64>, MaskError>) {
        let (pickers, at) = (self.pickers(members, p), p as usize);
        let window = Window { start: Timestamp(0), end: Timestamp(SIZE.0) };
        let membership = digest("M", members);
        let round = WindowMembers { window, members, membership, pickers: &pickers };
        self.maskers[at].extend_keys(&self.keys[at], &self.public, &pickers).unwrap();
        let token = self.maskers[at].token(&round, tau(p));
        (token, self.maskers[at].opening(&round, opened, &digest("S", opened), 2))
    }
}

fn digest(what: &str, set: &RosterSet) -> Digest {
    labelled_hash(what, &[&postcard::to_allocvec(set).unwrap()])
}

fn tau(p: u32) -> Vec<u64> {
    vec![u64::from(p) + 1, u64::from(p) << 40]
}

fn add(to: &mut [u64], words: &[u64]) {
    to.iter_mut().zip(words).for_each(|(to, word)| *to = to.wrapping_add(*word));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The masks cancel over every set that meets the threshold. A member below it gets an
    /// error with its numbers.
    #[test]
    fn masks_cancel_over_every_set_in_which_all_have_enough_picks(
        controllers in 4_u32..36,
        share in 20_u32..100,
        drops in proptest::collection::vec(any::<bool>(), 72),
        seldom in proptest::collection::vec(0_u8..8, 72),
        expanded in any::<bool>(),
    ) {
        let picks = (controllers * share / 100).clamp(1, controllers - 1);
        let storage = if expanded { Storage::Expanded } else { Storage::Compact };
        let mut roster = Roster::new(u64::from(share), controllers, picks, storage);
        let lost = |p: u32| drops[p as usize] && seldom[p as usize] == 0;
        let members = RosterSet::of(controllers, (0..controllers).filter(|p| !lost(*p)));
        let opened = RosterSet::of(controllers, members.iter().filter(|p| !lost(p + 36)));
        let (full, peeled) = (members.clone(), roster.peel(opened.clone()));
        let mut sum = vec![0; 2];
        let mut expected = vec![0; 2];
        for p in members.iter() {
            let (held, needed) = (roster.held(p, &members), roster.needed);
            let (token, opening) = roster.answer(p, &members, &peeled);
            if held < needed {
                let set = MemberSet::Membership;
                prop_assert_eq!(token, Err(MaskError::TooFewPicks { set, held, needed }));
                continue;
            }
            let token = token.unwrap();
            prop_assert!(token.iter().zip(tau(p)).all(|(token, tau)| *token != tau));
            if peeled.contains(p) {
                add(&mut sum, &token);
                let taken: Vec<u64> = opening.unwrap().iter().map(|w| w.wrapping_neg()).collect();
                add(&mut sum, &taken);
                add(&mut expected, &tau(p));
            }
            let (_, refused) = roster.answer(p, &full, &opened);
            let held = roster.held(p, &opened);
            if opened.contains(p) && held < needed {
                let set = MemberSet::OpeningSet;
                prop_assert_eq!(refused, Err(MaskError::TooFewPicks { set, held, needed }));
            }
        }
        prop_assert_eq!(sum, expected);
    }
}

#[test]
fn a_neighbour_without_an_agreed_key_is_rejected() {
    let mut roster = Roster::new(1, 12, 5, Storage::Compact);
    let full = RosterSet::full(12);
    let stranger = (1..12).find(|p| !roster.picks[0].contains(p)).unwrap();
    let window = Window { start: Timestamp(0), end: Timestamp(SIZE.0) };
    let round = WindowMembers {
        window,
        members: &full,
        membership: digest("M", &full),
        pickers: &[stranger],
    };
    let refused = roster.maskers[0].token(&round, tau(0));
    assert_eq!(refused, Err(MaskError::NoKey { position: stranger }));
}

/// The number of cuts of a roster's graph that allow a part to open by itself. It tries
/// every subset of the honest controllers, which come first: small parts with enough
/// picks among themselves and the colluders, and larger ones that leave out more than r.
fn cuts_of(graph: &[Vec<u32>], honest: u32, cuts: Cuts) -> (u32, u32) {
    let all = u32::try_from(graph.len()).unwrap();
    let bits = |picks: &Vec<u32>| picks.iter().fold(0_u32, |bits, pick| bits | 1 << pick);
    let picks: Vec<u32> = graph.iter().take(honest as usize).map(bits).collect();
    let (everybody, ours) = ((1_u32 << all) - 1, (1_u32 << honest) - 1);
    let (needed, colluders) = (needed_picks(cuts.picks), everybody & !ours);
    let most = all - cuts::quorum(all, all - honest, cuts.cut_off);
    let within = |a: u32, good: &dyn Fn(u32) -> bool| {
        (0..honest).filter(|p| a >> p & 1 == 1).all(|p| good(picks[p as usize]))
    };
    let (mut alone, mut cut) = (0, 0);
    for a in 1..=ours {
        if a.count_ones() <= honest / 4 {
            let enough = |own: u32| (own & (a | colluders)).count_ones() >= needed;
            alone += u32::from(within(a, &enough));
            continue;
        }
        let rest = ours & !a;
        // Each subset of the rest is left out once, and the others are dropped.
        let mut b = rest;
        while b != 0 {
            let dropped = rest & !b;
            if b.count_ones() > cuts.cut_off && dropped.count_ones() <= most {
                let apart =
                    |own: u32| own & b == 0 && (own & dropped).count_ones() <= cuts.picks - needed;
                cut += u32::from(within(a, &apart));
            }
            b = (b - 1) & rest;
        }
    }
    (alone, cut)
}

/// The bound is the expected number of such cuts. Less would be unsafe.
#[test]
fn graphs_are_cut_as_often_as_the_bound_predicts() {
    const TRIALS: u64 = 3_000;
    for (controllers, tolerated, picks, cut_off) in [(11, 3, 3, 0), (12, 3, 5, 1), (11, 1, 4, 0)] {
        let cuts = Cuts { picks, cut_off };
        let counts: Vec<(f64, f64)> = (0..TRIALS)
            .map(|trial| cuts_of(&graph(trial, controllers, picks), controllers - tolerated, cuts))
            .map(|(alone, cut)| (f64::from(alone), f64::from(cut)))
            .collect();
        let checks = |of: &dyn Fn(&(f64, f64)) -> f64, bound: f64| {
            let mean = counts.iter().map(of).sum::<f64>() / TRIALS as f64;
            let square = counts.iter().map(|count| of(count).powi(2)).sum::<f64>() / TRIALS as f64;
            let error = ((square - mean * mean) / TRIALS as f64).sqrt();
            assert!((mean - bound).abs() <= 4.5 * error + 1e-9, "{mean} ± {error} of {bound}");
            mean
        };
        let alone = checks(&|c| c.0, cuts::ln_alone(controllers, tolerated, picks).exp());
        let cut = checks(&|c| c.1, cuts::ln_cut_off(controllers, tolerated, cuts).exp());
        assert!(alone + cut > 0.01, "too rare to measure: {alone} {cut}");
    }
}
