//! The cost of one controller of very many under `Neighbours`: once for a roster,
//! compared with the clique, and in each window.

use crate::measure::Effort;
use crate::report::{Figure, Goal};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Party, Role, Subject};
use alpheus_encrypted_stream::mask::cuts::{self, Cuts};
use alpheus_encrypted_stream::mask::neighbours::pick;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Storage, Terms, WindowMembers};
use alpheus_encrypted_stream::membership::FixedMembership;
use alpheus_encrypted_stream::messages::Membership;
use alpheus_policy::ids::PlanId;
use alpheus_policy::membership::{DEFAULT_COLLUDERS, tolerated};
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_time::{Span, Timestamp, Window};
use std::hint::black_box;

/// The controller that is measured, and its group of figures.
const OWN: u32 = 500;
const GROUP: &str = "neighbours";
const MANY: u32 = 10_000;
const MAX: u32 = 1_000_000;
const DELTA_EXPONENT: u8 = 9;
const HALF: Fraction = Fraction { numerator: 1, denominator: 2 };
const WINDOW: Window = Window { start: Timestamp(0), end: Timestamp(10_000_000) };

/// Set-up of 10,000 controllers, compared with the clique at α = ½ and ⅓, in key agreements
/// and in processor time; one controller's window among 10,000 and among a million.
pub(crate) fn figures(effort: Effort, mut say: impl FnMut(&str)) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (alpha, name, goal) in [(HALF, "1/2", 25.0), (Fraction::THIRD, "1/3", 60.0)] {
        say(&format!("neighbours: set-up of {MANY} controllers, alpha = {name}"));
        if let Some(roster) = Roster::new(MANY, alpha) {
            figures.extend(set_up(effort, &roster, name, goal));
        }
    }
    figures.push(certificate(effort));
    for controllers in [MANY, MAX] {
        say(&format!("neighbours: a window among {controllers} controllers"));
        let Some(roster) = Roster::new(controllers, Fraction::THIRD) else { continue };
        figures.extend([3, 169].map(|words| window(effort, &roster, words)));
        figures.push(hearing(effort, controllers, roster.discounted()));
        let bound = || {
            black_box(cuts::keeps(controllers, roster.tolerated, roster.cuts, DELTA_EXPONENT));
        };
        let name = format!("checking m and r of a plan, {controllers} controllers");
        figures.push(Figure::alone(GROUP, name, "ns", effort.time(bound)));
    }
    figures
}

/// A graph as it is drawn, seen by one controller.
struct Roster {
    controllers: u32,
    tolerated: u32,
    cuts: Cuts,
    picks: Vec<u32>,
    pickers: Vec<u32>,
    /// Neighbours of each controller, on average.
    degree: f64,
}

impl Roster {
    fn new(controllers: u32, alpha: Fraction) -> Option<Roster> {
        let tolerated = tolerated(controllers, alpha, DEFAULT_COLLUDERS);
        let cuts = cuts::least(controllers, tolerated, DELTA_EXPONENT)?;
        let digest = labelled_hash("bench", &[]);
        let picks_of = |p: u32| pick(&secret(p), &digest, p, controllers, cuts.picks);
        let own = picks_of(OWN);
        let picked = |p: &u32| *p != OWN && picks_of(*p).binary_search(&OWN).is_ok();
        let pickers = (0..controllers).filter(picked).collect();
        // Each picks m and is picked by m on average; whom it picks and is picked by is one.
        let (others, picks) = (f64::from(controllers - 1), f64::from(cuts.picks));
        let degree = 2.0 * picks - picks * picks / others;
        Some(Roster { controllers, tolerated, cuts, picks: own, pickers, degree })
    }

    fn discounted(&self) -> u32 {
        self.tolerated + self.cuts.cut_off
    }
}

fn secret(controller: u32) -> Secret<32> {
    Secret::from_bytes(labelled_hash("bench", &[&controller.to_be_bytes()]).0)
}

/// One controller's key agreements, compared with those of the clique.
fn set_up(effort: Effort, roster: &Roster, alpha: &str, goal: f64) -> [Figure; 3] {
    let key = AgreementKey::from_seed(&secret(OWN));
    let publics: Vec<AgreementPublic> =
        (0..roster.controllers).map(|p| AgreementKey::from_seed(&secret(p)).public()).collect();
    let all = || {
        let _ = black_box(PairKeys::agree(&key, &publics, OWN, Storage::Compact));
    };
    let few = || {
        let picks = &roster.picks;
        let pairs = PairKeys::agree_with_picks(&key, &publics, OWN, picks, Storage::Compact);
        let _ =
            black_box(pairs.and_then(|mut pairs| {
                pairs.extend(&key, &publics, &roster.pickers).map(|()| pairs)
            }));
    };
    let goal = Goal::AtLeast(goal);
    let of = format!("one controller of {}, alpha = {alpha}", roster.controllers);
    let clique = f64::from(roster.controllers - 1);
    let name = |what| format!("set-up, {what}, {of}");
    let time = effort.compare(all, few);
    let fewer = Figure::alone(
        GROUP,
        name("the clique's agreements over ours"),
        "x",
        clique / roster.degree,
    );
    let less = Figure::alone(GROUP, name("the clique's time over ours"), "x", 1.0 / time.ratio);
    [
        fewer.with_goal(goal),
        Figure::compared(GROUP, name("beside the clique"), "ns", time),
        less.with_goal(goal),
    ]
}

/// The work of every controller's host for each member of the roster, with any
/// strategy, when it receives a plan.
fn certificate(effort: Effort) -> Figure {
    let authority = SigningKey::from_seed(&secret(1));
    let key = SigningKey::from_seed(&secret(2)).verifying_key();
    let agreement = AgreementKey::from_seed(&secret(3)).public();
    let party = Party::signing(Role::Controller, "controller", key);
    let party = Party { agreement: Some(agreement), ..party };
    let (signed, verifying) =
        (party.certify(Subject([0; 16]), &authority), authority.verifying_key());
    let time = effort.time(|| {
        let _ = black_box(signed.open(&verifying));
    });
    let name = "checking one certificate of a roster, once a host and plan, any strategy";
    Figure::alone(GROUP, name.to_owned(), "ns", time)
}

/// Token and opening of one controller, with everybody online.
fn window(effort: Effort, roster: &Roster, words: usize) -> Figure {
    let controllers = roster.controllers;
    let key = AgreementKey::from_seed(&secret(OWN));
    // Keys of its neighbours only; the rest of the roster is never used.
    let mut publics = vec![AgreementPublic([9; 32]); controllers as usize];
    for p in roster.picks.iter().chain(&roster.pickers).chain([&OWN]) {
        publics[*p as usize] = AgreementKey::from_seed(&secret(*p)).public();
    }
    let (picks, plan) = (&roster.picks, PlanId([7; 32]));
    let Cuts { picks: many, cut_off } = roster.cuts;
    let terms = Terms {
        plan,
        controllers,
        window: Span(WINDOW.end.0),
        masks: MaskStrategy::Neighbours { picks: many, cut_off },
        may_be_alone: false,
    };
    let masker = PairKeys::agree_with_picks(&key, &publics, OWN, picks, Storage::Expanded).ok();
    let own = OwnKey::new(&secret(OWN), &plan);
    let mut masker = masker.and_then(|pairs| Masker::with(terms, pairs, own).ok());
    let met = masker.as_mut().map(|masker| masker.extend_keys(&key, &publics, &roster.pickers));
    let full = RosterSet::full(controllers);
    let (membership, opening) = (labelled_hash("M", &[]), labelled_hash("S", &[]));
    let pickers = &roster.pickers[..];
    let time = effort.time(|| {
        let round = WindowMembers { window: WINDOW, members: &full, membership, pickers };
        let Some(masker) = &mut masker else { return };
        let token = masker.token(&round, vec![0; words]);
        let _ = black_box((token, masker.opening(&round, &full, &opening, words)));
    });
    black_box(met);
    let name = format!("one window, {controllers} controllers, {words} words");
    Figure::alone(GROUP, name, "ns", time)
}

/// The part of a window that grows with the roster: M's signature and counts.
fn hearing(effort: Effort, controllers: u32, discounted: u32) -> Figure {
    let key = SigningKey::from_seed(&secret(1));
    let membership = Membership {
        plan: PlanId([7; 32]),
        window: WINDOW,
        members: RosterSet::full(controllers),
        owners: vec![1; controllers as usize],
        root: Digest([0; 32]),
        mask_keys: Vec::new(),
    };
    let (signed, service) = (Signed::new(&membership, &key), key.verifying_key());
    let time = effort.time(|| {
        let opened =
            signed.open(&service).ok().and_then(|opened| FixedMembership::new(&opened).ok());
        black_box(
            opened.map(|fixed| fixed.population_for(fixed.members(), OWN, discounted, false)),
        );
    });
    let name = format!("hearing M and counting its owners, once a host, {controllers} controllers");
    Figure::alone(GROUP, name, "ns", time)
}
