//! The mask equations, and the absence of pad reuse.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test"
)]

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::mask::params;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{
    MaskError, Masker, MemberSet, OwnKey, PairKeys, Storage, WindowMembers, of_plan,
};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use alpheus_policy::plan::Integrity;
use alpheus_policy::plan::{
    Fraction, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};
use proptest::prelude::*;
use std::collections::HashSet;

/// A plan of `n` controllers with one owner and stream each.
fn plan(n: u32, masks: MaskStrategy, minimum: u32, alpha: Fraction) -> Plan {
    let id = |p: u32| labelled_hash("position", &[&p.to_be_bytes()]).0;
    let stream = |p: u32| PlannedStream {
        stream: StreamId([p as u8; 16]),
        owner: OwnerId(id(p)),
        controller: p,
    };
    Plan {
        nonce: [1; 16],
        name: String::new(),
        consumer: String::new(),
        sealed_to: None,
        schema: SchemaId([2; 32]),
        group: vec![],
        window: Span::seconds(10),
        grace: Span::seconds(5),
        from: Timestamp(0),
        release: Release { rows: vec![] },
        select: ReleasePlan { cells: vec![], items: vec![] },
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![],
        population: PopulationBounds { min: minimum, max: 1000 },
        alpha,
        colluders: 1,
        dropout: Fraction::FIFTH,
        delta_exponent: 9,
        masks,
        epoch: None,
        roster: (0..n).map(|p| ControllerId(id(p))).collect(),
        streams: (0..n).map(stream).collect(),
    }
}

fn window(number: u64) -> Window {
    let start = Timestamp(number * 10_000_000);
    Window { start, end: start.plus(Span::seconds(10)) }
}

/// A roster's maskers. Both ends of each pair compute the agreement separately.
struct Controllers(Vec<Masker>);

fn key(controller: u32) -> AgreementKey {
    let mut seed = [7; 32];
    // Not the first byte, since X25519 ignores three of its bits.
    seed[8..12].copy_from_slice(&controller.to_le_bytes());
    AgreementKey::from_seed(&Secret::from_bytes(seed))
}

impl Controllers {
    fn of(plan: &Plan, storage: Storage) -> Controllers {
        let keys: Vec<AgreementKey> = (0_u32..).zip(&plan.roster).map(|(p, _)| key(p)).collect();
        let roster: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        let masker = |(p, key): (u32, &AgreementKey)| {
            let pairs = PairKeys::agree(key, &roster, p, storage).unwrap();
            let own = OwnKey::new(&Secret::from_bytes([p as u8; 32]), &plan.id());
            Masker::new(plan, pairs, own).unwrap()
        };
        Controllers((0..).zip(&keys).map(masker).collect())
    }

    fn token(
        &mut self,
        p: u32,
        round: &WindowMembers<'_>,
        words: usize,
    ) -> Result<Vec<u64>, MaskError> {
        self.0[p as usize].token(round, tau(p, words))
    }

    fn opening(
        &mut self,
        p: u32,
        round: &WindowMembers<'_>,
        opened: &RosterSet,
        words: usize,
    ) -> Result<Vec<u64>, MaskError> {
        self.0[p as usize].opening(round, opened, &digest("S", opened), words)
    }
}

fn tau(p: u32, words: usize) -> Vec<u64> {
    (0..words as u64).map(|i| (u64::from(p) << 32) + i * i + 1).collect()
}

fn digest(what: &str, set: &RosterSet) -> Digest {
    labelled_hash(what, &[&postcard::to_allocvec(set).unwrap()])
}

fn round(number: u64, members: &RosterSet) -> WindowMembers<'_> {
    WindowMembers {
        window: window(number),
        members,
        membership: digest("M", members),
        pickers: &[],
    }
}

fn subtract(from: &mut [u64], words: &[u64]) {
    from.iter_mut().zip(words).for_each(|(from, word)| *from = from.wrapping_sub(*word));
}

fn add(to: &mut [u64], words: &[u64]) {
    to.iter_mut().zip(words).for_each(|(to, word)| *to = to.wrapping_add(*word));
}

fn sum_of_taus(set: &RosterSet, words: usize) -> Vec<u64> {
    let mut sum = vec![0; words];
    set.iter().for_each(|p| add(&mut sum, &tau(p, words)));
    sum
}

fn strategies() -> impl proptest::strategy::Strategy<Value = MaskStrategy> {
    prop_oneof![
        Just(MaskStrategy::Clique),
        (1_u8..4).prop_map(|bits| MaskStrategy::Dream { bits }),
        (1_u8..4).prop_map(|bits| MaskStrategy::Epoch { bits }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Σ_S (T_p − o_p) = Σ_S τ_p for any graph, M, S, window and length.
    #[test]
    fn openings_remove_exactly_the_masks(
        masks in strategies(),
        n in 2_u32..14,
        (in_m, in_s) in (any::<u16>(), any::<u16>()),
        number in any::<u32>(),
        words in 1_usize..9,
    ) {
        let members = RosterSet::of(n, (0..n).filter(|p| in_m >> p & 1 == 1));
        let opened = RosterSet::of(n, members.iter().filter(|p| in_s >> p & 1 == 1));
        let mut controllers = Controllers::of(&plan(n, masks, 1, Fraction::ZERO), Storage::Compact);
        let round = round(u64::from(number), &members);
        let mut sum = vec![0; words];
        for p in members.iter() {
            let token = controllers.token(p, &round, words).unwrap();
            prop_assert!(token.iter().zip(tau(p, words)).all(|(token, tau)| *token != tau));
            if opened.contains(p) {
                add(&mut sum, &token);
                subtract(&mut sum, &controllers.opening(p, &round, &opened, words).unwrap());
            }
        }
        prop_assert_eq!(sum, sum_of_taus(&opened, words));
    }
}

/// Openings of different sets, or tokens for different memberships, never add up to a
/// sum of key sums.
#[test]
fn openings_for_different_sets_never_add_up() {
    let n = 6;
    let mut controllers =
        Controllers::of(&plan(n, MaskStrategy::Clique, 1, Fraction::ZERO), Storage::Expanded);
    let full = RosterSet::full(n);
    let smaller = RosterSet::of(n, 0..5);
    let (round, other_round) = (round(9, &full), round(9, &smaller));
    let sets = [&full, &smaller];
    let tokens: Vec<Vec<u64>> = (0..n).map(|p| controllers.token(p, &round, 2).unwrap()).collect();
    // Each way to ask each controller for the opening of one of two sets.
    for choice in 0_u32..1 << 5 {
        for opened in sets {
            let mut sum = vec![0; 2];
            for p in opened.iter() {
                let shown = if p == 5 { &full } else { sets[(choice >> p & 1) as usize] };
                add(&mut sum, &tokens[p as usize]);
                subtract(&mut sum, &controllers.opening(p, &round, shown, 2).unwrap());
            }
            let consistent =
                opened.iter().all(|p| p == 5 || sets[(choice >> p & 1) as usize] == opened);
            assert_eq!(sum == sum_of_taus(opened, 2), consistent, "choice {choice:b}");
        }
    }
    // A token for one membership with the openings for another.
    let mut sum = controllers.token(0, &other_round, 2).unwrap();
    subtract(&mut sum, &controllers.opening(0, &round, &smaller, 2).unwrap());
    for p in 1..5 {
        add(&mut sum, &tokens[p as usize]);
        subtract(&mut sum, &controllers.opening(p, &round, &smaller, 2).unwrap());
    }
    assert_ne!(sum, sum_of_taus(&smaller, 2));
}

/// A token that arrived too late for S stays hidden by its self-mask.
#[test]
fn a_late_token_stays_hidden_by_the_self_mask() {
    let n = 4;
    let mut controllers =
        Controllers::of(&plan(n, MaskStrategy::Clique, 1, Fraction::ZERO), Storage::Compact);
    let (full, opened) = (RosterSet::full(n), RosterSet::of(n, 0..3));
    let round = round(3, &full);
    // The others' openings reveal the pads that they share with the late controller.
    let mut sum = vec![0; 2];
    for p in 0..4 {
        add(&mut sum, &controllers.token(p, &round, 2).unwrap());
    }
    for p in 0..3 {
        subtract(&mut sum, &controllers.opening(p, &round, &opened, 2).unwrap());
    }
    subtract(&mut sum, &sum_of_taus(&full, 2));
    assert!(sum.iter().all(|word| *word != 0), "the late controller's self-mask remains");
}

/// No pad of a pair is used twice, across windows, plans, memberships, opening sets,
/// words or purposes. With one neighbour and `τ = 0`, tokens and openings are sums of a
/// pad and a self-mask. All must differ.
#[test]
fn no_pad_is_reused() {
    let n = 2;
    let (full, words) = (RosterSet::full(n), 4);
    let mut seen = HashSet::new();
    let mut total = 0;
    for name in ["one", "two"] {
        let mut plan = plan(n, MaskStrategy::Clique, 1, Fraction::ZERO);
        plan.name = name.into();
        let mut controllers = Controllers::of(&plan, Storage::Expanded);
        for number in 0..20 {
            for membership in ["M", "M'"] {
                let round =
                    WindowMembers { membership: digest(membership, &full), ..round(number, &full) };
                for masker in &mut controllers.0 {
                    let token = masker.token(&round, vec![0; words]).unwrap();
                    let openings = ["S", "S'"]
                        .map(|s| masker.opening(&round, &full, &digest(s, &full), words).unwrap());
                    for shown in openings.iter().chain([&token]) {
                        // The difference of two answers cancels the self-mask.
                        let mut difference = token.clone();
                        subtract(&mut difference, shown);
                        for word in shown.iter().chain(difference.iter().filter(|word| **word != 0))
                        {
                            total += 1;
                            assert!(*word != 0 && seen.insert(*word));
                        }
                    }
                }
            }
        }
    }
    // Both ends add the same pads with opposite signs, so nothing coincides.
    assert_eq!(total, 2 * 20 * 2 * 2 * (3 + 2) * words);
}

#[test]
fn a_repeated_request_gets_the_same_bytes_in_either_storage() {
    let plan = plan(40, MaskStrategy::Epoch { bits: 2 }, 1, Fraction::ZERO);
    let (full, opened) = (RosterSet::full(40), RosterSet::of(40, 0..35));
    let mut answers = Vec::new();
    for storage in [Storage::Compact, Storage::Expanded, Storage::Compact] {
        let mut controllers = Controllers::of(&plan, storage);
        for number in [1_000_000, 3, 1_000_000] {
            let round = round(number, &full);
            answers.push((
                controllers.token(7, &round, 3).unwrap(),
                controllers.opening(7, &round, &opened, 3).unwrap(),
            ));
        }
    }
    assert_eq!(answers[0], answers[2]);
    assert_eq!(answers[0..3], answers[3..6]);
    assert_eq!(answers[0..3], answers[6..9]);
}

#[test]
fn inconsistent_sets_are_rejected_with_a_specific_error() {
    let n = 5;
    let mut controllers =
        Controllers::of(&plan(n, MaskStrategy::Clique, 2, Fraction::THIRD), Storage::Compact);
    let (full, without_0) = (RosterSet::full(n), RosterSet::of(n, 1..n));
    let (all, others) = (round(1, &full), round(1, &without_0));
    assert_eq!(controllers.token(0, &others, 1), Err(MaskError::NotAMember));
    assert_eq!(controllers.opening(0, &others, &without_0, 1), Err(MaskError::NotAMember));
    assert_eq!(controllers.opening(0, &all, &without_0, 1), Err(MaskError::NotOpened));
    assert_eq!(controllers.opening(1, &others, &full, 1), Err(MaskError::NotASubset));
    let foreign = RosterSet::full(n + 1);
    let refused = Err(MaskError::OtherRoster { expected: n, found: n + 1 });
    assert_eq!(controllers.token(0, &round(1, &foreign), 1), refused);
    assert_eq!(controllers.opening(0, &all, &foreign, 1), refused);
}

/// The service drops all neighbours of a victim, at either step.
#[test]
fn a_controller_without_neighbours_refuses() {
    let n = 3;
    let alone = RosterSet::of(n, [1]);
    let full = RosterSet::full(n);
    for (minimum, alpha, may) in
        [(1, Fraction::ZERO, true), (2, Fraction::ZERO, false), (1, Fraction::THIRD, false)]
    {
        let mut controllers =
            Controllers::of(&plan(n, MaskStrategy::Clique, minimum, alpha), Storage::Compact);
        let token = controllers.token(1, &round(4, &alone), 1);
        let opening = controllers.opening(1, &round(4, &full), &alone, 1);
        if may {
            assert_ne!(token.unwrap(), tau(1, 1), "the self-mask hides it");
            assert!(opening.is_ok());
        } else {
            assert_eq!(token, Err(MaskError::Isolated { set: MemberSet::Membership }));
            assert_eq!(opening, Err(MaskError::Isolated { set: MemberSet::OpeningSet }));
        }
    }
}

/// In a sparse graph, a controller can have no edge in a round.
#[test]
fn a_controller_without_an_edge_refuses() {
    let n = 3;
    let plan = plan(n, MaskStrategy::Epoch { bits: 3 }, 2, Fraction::ZERO);
    let mut controllers = Controllers::of(&plan, Storage::Compact);
    let full = RosterSet::full(n);
    let refused =
        (0..300).filter(|number| controllers.token(0, &round(*number, &full), 1).is_err()).count();
    // About (7/8)² of 300 rounds.
    assert!((200..260).contains(&refused), "{refused}");
}

#[test]
fn a_single_controller_has_no_masks() {
    let plan = plan(1, MaskStrategy::Single, 1, Fraction::ZERO);
    let own = OwnKey::new(&Secret::from_bytes([0; 32]), &plan.id());
    assert!(Masker::new(&plan, PairKeys::from_secrets(0, &[], Storage::Compact), own).is_err());
}

/// Counts the rounds in which the honest controllers are not connected. The colluders,
/// last in the roster, do not connect the honest ones.
fn disconnected(masks: MaskStrategy, honest: u32, colluders: u32, rounds: u64) -> u64 {
    let n = honest + colluders;
    let secrets = |p: u32| -> Vec<Secret<32>> {
        let agreed =
            |q: u32| *labelled_hash("agreed", &[&[p.min(q) as u8, p.max(q) as u8]]).as_bytes();
        (0..n).filter(|q| *q != p).map(|q| Secret::from_bytes(agreed(q))).collect()
    };
    let pairs: Vec<PairKeys> =
        (0..honest).map(|p| PairKeys::from_secrets(p, &secrets(p), Storage::Compact)).collect();
    let mut graphs: Vec<_> =
        pairs.iter().map(|_| of_plan(PlanId([1; 32]), masks).unwrap()).collect();
    let mut list = Vec::new();
    let mut apart = |number: u64| {
        let mut edges = vec![0_u64; honest as usize];
        for (p, (graph, pairs)) in graphs.iter_mut().zip(&pairs).enumerate() {
            graph.neighbours(pairs, number, &mut list);
            edges[p] = list.iter().filter(|q| **q < honest).fold(0, |edges, q| edges | 1 << q);
        }
        let (mut reached, mut before) = (1_u64, 0);
        while reached != before {
            before = reached;
            reached = (0..honest)
                .filter(|p| before >> p & 1 == 1)
                .fold(before, |set, p| set | edges[p as usize]);
        }
        reached.count_ones() < honest
    };
    (0..rounds).filter(|number| apart(*number)).count() as u64
}

/// The bound holds and is tight: graphs are disconnected nearly as often as the sum over
/// all cuts predicts.
#[test]
fn graphs_are_disconnected_about_as_often_as_the_bound_predicts() {
    for (honest, bits) in [(8, 1), (16, 2)] {
        let rounds = 16 * params::rounds(bits);
        let bound = params::ln_failure_bound(bits, honest).exp() * 16.0;
        for masks in [MaskStrategy::Epoch { bits }, MaskStrategy::Dream { bits }] {
            let seen = disconnected(masks, honest, 4, rounds) as f64;
            assert!(seen < 1.25 * bound && seen > 0.7 * bound, "{masks:?}: {seen} of {bound}");
        }
    }
}

#[test]
fn plans_are_checked_against_the_bound() {
    let checked = |masks, n| params::check(&plan(n, masks, 1, Fraction::ZERO));
    assert_eq!(checked(MaskStrategy::Single, 1), Ok(()));
    assert!(checked(MaskStrategy::Clique, 1).is_err());
    assert!(checked(MaskStrategy::Single, 2).is_err());
    assert_eq!(checked(MaskStrategy::Clique, 2), Ok(()));
    assert_eq!(checked(MaskStrategy::Epoch { bits: 1 }, 207), Ok(()));
    let refused = params::UnsafeMasksError::TooSparse { bits: 2, honest: 104, allowed: Some(1) };
    assert_eq!(checked(MaskStrategy::Epoch { bits: 2 }, 207), Err(refused));
    assert!(checked(MaskStrategy::Dream { bits: 1 }, 20).is_err());
    assert!(checked(MaskStrategy::Epoch { bits: 0 }, 207).is_err());
}
