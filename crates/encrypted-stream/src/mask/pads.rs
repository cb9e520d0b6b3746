//! What a controller adds to its token, and what it takes off again.
//!
//! `T_p = τ_p + Σ_{q∈N(p)∩M} ±pad_pq(mask, M) + b_p`, `b_p = pad_p(mask, M)`,
//! `o_p = b_p + Σ_{q∈N(p)∩(M∖S)} ±pad_pq(mask, M) + Σ_{q∈N(p)∩S} ±pad_pq(open, M, S)`,
//! with + towards later positions and − towards earlier ones. Over S, masks and
//! openings cancel in pairs, and `Σ_S (T_p − o_p) = Σ_S τ_p`.

use crate::mask::pairs::{NoPairKeys, OwnKey, PairKeys};
use crate::mask::set::RosterSet;
use crate::mask::strategy::{self, Strategy};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::prf::PadDigest;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_policy::time::{Span, Window};
use zeroize::Zeroizing;

/// Why a token is not masked, or a mask is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MaskRefusal {
    /// A set is over a roster of another size.
    #[error("the set is over {found} controllers, and the plan has {expected}")]
    OtherRoster {
        /// N.
        expected: u32,
        /// Size of the roster that the set is over.
        found: u32,
    },
    /// The window has another size than the plan's.
    #[error("the window is not one of the plan's")]
    OtherWindow,
    /// This controller is not in the membership.
    #[error("this controller is not in the membership that it should mask for")]
    NotAMember,
    /// This controller is not among those that open.
    #[error("this controller's token is not in the set to open")]
    NotOpened,
    /// The set to open holds a controller that is not in the membership.
    #[error("the set to open holds a controller that is not in the membership")]
    NotASubset,
    /// Too few of those that this controller picked are there: others may be
    /// the service's.
    #[error(
        "{held} of this controller's picks are in the {set}, {needed} are needed to hide its token"
    )]
    TooFewPicks {
        /// In which set they are too few.
        set: Among,
        /// Its picks in the set.
        held: u32,
        /// The least.
        needed: u32,
    },
    /// A mask is asked for that needs a key agreement first.
    #[error("this controller has agreed on no keys with the controller at position {position}")]
    NoKey {
        /// Of whom.
        position: u32,
    },
    /// No other controller shares a mask with this one.
    #[error(
        "no member of the {set} shares a mask with this controller in this round, so nothing would hide its token"
    )]
    Isolated {
        /// In which set there is none.
        set: Among,
    },
}

/// The two sets in which a controller needs company.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    /// M.
    Membership,
    /// S.
    OpeningSet,
}

impl std::fmt::Display for Among {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Among::Membership => "membership",
            Among::OpeningSet => "set to open",
        })
    }
}

/// A plan that has no masks: it names one controller, or other keys than these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the plan and the pair keys do not belong together, or the plan needs no masks")]
pub struct NoMasks;

/// The masks of one controller in one plan.
///
/// It remembers nothing about what it has answered: that each window has one
/// membership and one opening set is the ledger's to enforce, and a caller that
/// opens two sets for one window breaks the protocol.
pub struct Masker {
    terms: Terms,
    pairs: PairKeys,
    own: OwnKey,
    strategy: Box<dyn Strategy>,
    /// What the last round needed, which its opening needs again.
    last: Option<Prepared>,
}

/// What follows from a round alone.
struct Prepared {
    window: Window,
    members: RosterSet,
    membership: Digest,
    /// Those that picked this controller, of M.
    pickers: Vec<u32>,
    /// N(p) ∩ M.
    neighbours: Vec<u32>,
    /// Its own picks among them.
    picks: Vec<u32>,
    /// What the masks are bound to.
    bound: Digest,
}

/// A window of a plan, and the membership M that its pads are bound to.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// The window.
    pub window: Window,
    /// M.
    pub members: &'a RosterSet,
    /// H(M): digest of the signed membership.
    pub membership: Digest,
    /// Of [`Neighbours`](crate::mask::neighbours): the members that picked this
    /// controller, ascending, as M's tree says. Else nobody.
    pub pickers: &'a [u32],
}

/// What masks depend on of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The plan's id.
    pub plan: PlanId,
    /// Controllers in its roster.
    pub controllers: u32,
    /// Distance and size of its windows.
    pub window: Span,
    /// Who masks with whom.
    pub masks: MaskStrategy,
    /// Whether a self-mask alone may hide a token: only where a population of
    /// one may be released and no controller is thought to collude.
    pub may_be_alone: bool,
}

impl Terms {
    /// Of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Terms {
        Terms {
            plan: plan.id(),
            controllers: u32::try_from(plan.roster.len()).unwrap_or(u32::MAX),
            window: plan.window,
            masks: plan.masks,
            may_be_alone: plan.population.min <= 1 && plan.alpha.numerator == 0,
        }
    }
}

impl Masker {
    /// For a controller that has agreed on keys with the plan's roster.
    ///
    /// # Errors
    /// [`NoMasks`] if the plan has a single controller, another number of
    /// controllers than the keys, or needs keys with others than these are for.
    pub fn new(plan: &Plan, pairs: PairKeys, own: OwnKey) -> Result<Masker, NoMasks> {
        Masker::with(Terms::of(plan), pairs, own)
    }

    /// The same from what masks depend on of the plan.
    ///
    /// # Errors
    /// As [`Masker::new`].
    pub fn with(terms: Terms, pairs: PairKeys, own: OwnKey) -> Result<Masker, NoMasks> {
        let strategy = strategy::of_plan(terms.plan, terms.masks).ok_or(NoMasks)?;
        let sparse = matches!(terms.masks, MaskStrategy::Neighbours { .. });
        if terms.controllers != pairs.roster() || sparse != pairs.is_sparse() {
            return Err(NoMasks);
        }
        Ok(Masker { terms, pairs, own, strategy, last: None })
    }

    /// Agrees on keys with those of `others` that are strangers, where a controller
    /// does not know all.
    ///
    /// # Errors
    /// As [`PairKeys::meet`].
    pub fn meet(
        &mut self,
        key: &AgreementKey,
        roster: &[AgreementPublic],
        others: &[u32],
    ) -> Result<(), NoPairKeys> {
        self.pairs.meet(key, roster, others)
    }

    /// Whom this controller picks; nobody where it knows all.
    #[must_use]
    pub fn picks(&self) -> Vec<u32> {
        self.pairs.picks().collect()
    }

    /// T: `token`, the key sum τ of the window, under this round's masks.
    ///
    /// # Privacy
    /// The words are hidden from anyone who lacks this controller's secret, and
    /// after an opening from anyone who lacks the keys of one honest neighbour.
    /// If it is refused, τ is wiped.
    ///
    /// # Errors
    /// [`MaskRefusal`], by the rule that stands against it.
    pub fn token(&mut self, round: &Round<'_>, token: Vec<u64>) -> Result<Vec<u64>, MaskRefusal> {
        let mut token = Zeroizing::new(token);
        let prepared = self.prepare(round)?;
        let mask = PadDigest::new(&prepared.bound);
        self.own.0.add_pad(&mask, &mut token);
        self.pairs.add_pads(&prepared.neighbours, &mask, &mut token);
        self.last = Some(prepared);
        Ok(std::mem::take(&mut token))
    }

    /// o: what opens the token of the same round when those of `opened` are
    /// summed, and of no other set. `opening` is the digest of the signed set,
    /// `outputs` the number of words of a token.
    ///
    /// # Errors
    /// [`MaskRefusal`], by the rule that stands against it.
    pub fn opening(
        &mut self,
        round: &Round<'_>,
        opened: &RosterSet,
        opening: &Digest,
        outputs: usize,
    ) -> Result<Vec<u64>, MaskRefusal> {
        self.check_roster(opened)?;
        let prepared = self.prepare(round)?;
        if !opened.is_subset_of(round.members) {
            return Err(MaskRefusal::NotASubset);
        }
        if !opened.contains(self.pairs.position()) {
            return Err(MaskRefusal::NotOpened);
        }
        let (mut opening_too, mut dropped) =
            (Vec::with_capacity(prepared.neighbours.len()), vec![]);
        for neighbour in &prepared.neighbours {
            let part = if opened.contains(*neighbour) { &mut opening_too } else { &mut dropped };
            part.push(*neighbour);
        }
        let picks = prepared.picks.iter().filter(|pick| opened.contains(**pick)).count();
        self.check_company(&opening_too, picks, Among::OpeningSet)?;
        let mut words = vec![0; outputs];
        let mask = PadDigest::new(&prepared.bound);
        self.own.0.add_pad(&mask, &mut words);
        self.pairs.add_pads(&dropped, &mask, &mut words);
        let open = labelled(labels::MASK_OPEN, &[prepared.bound.as_bytes(), opening.as_bytes()]);
        self.pairs.add_pads(&opening_too, &PadDigest::new(&open), &mut words);
        self.last = Some(prepared);
        Ok(words)
    }

    /// Checks M and finds what follows from it, or takes what was found before.
    fn prepare(&mut self, round: &Round<'_>) -> Result<Prepared, MaskRefusal> {
        if let Some(last) = self.last.take_if(|last| last.is_of(round)) {
            return Ok(last);
        }
        self.check_roster(round.members)?;
        if !round.members.contains(self.pairs.position()) {
            return Err(MaskRefusal::NotAMember);
        }
        let start = round.window.start;
        let number = start.0.checked_div(self.terms.window.0).ok_or(MaskRefusal::OtherWindow)?;
        if round.window.end != start.plus(self.terms.window) {
            return Err(MaskRefusal::OtherWindow);
        }
        let mut neighbours = Vec::new();
        self.strategy.neighbours(&self.pairs, number, &mut neighbours);
        neighbours.retain(|neighbour| round.members.contains(*neighbour));
        let picks = match self.terms.masks.needed_picks() {
            Some(_) => neighbours.clone(),
            None => Vec::new(),
        };
        neighbours.extend(round.pickers.iter().filter(|p| round.members.contains(**p)));
        neighbours.sort_unstable();
        neighbours.dedup();
        self.check_company(&neighbours, picks.len(), Among::Membership)?;
        if let Some(stranger) = neighbours.iter().find(|q| !self.pairs.knows(**q)) {
            return Err(MaskRefusal::NoKey { position: *stranger });
        }
        Ok(Prepared {
            pickers: round.pickers.to_vec(),
            picks,
            window: round.window,
            members: round.members.clone(),
            membership: round.membership,
            neighbours,
            // The plan fixes the window's end.
            bound: labelled(
                labels::MASK,
                &[&self.terms.plan.0, &start.0.to_be_bytes(), round.membership.as_bytes()],
            ),
        })
    }

    fn check_roster(&self, set: &RosterSet) -> Result<(), MaskRefusal> {
        let (expected, found) = (self.pairs.roster(), set.roster());
        if expected == found { Ok(()) } else { Err(MaskRefusal::OtherRoster { expected, found }) }
    }

    /// An unmasked token is never sent: some neighbour must be in the set, and of
    /// those that a controller picks as many as the bound on the graph asks for.
    fn check_company(
        &self,
        neighbours: &[u32],
        picks: usize,
        set: Among,
    ) -> Result<(), MaskRefusal> {
        if let Some(needed) = self.terms.masks.needed_picks() {
            let held = u32::try_from(picks).unwrap_or(u32::MAX);
            let enough = held >= needed.max(1);
            return if enough {
                Ok(())
            } else {
                Err(MaskRefusal::TooFewPicks { set, held, needed })
            };
        }
        let alone = neighbours.is_empty() && !self.terms.may_be_alone;
        if alone { Err(MaskRefusal::Isolated { set }) } else { Ok(()) }
    }
}

impl Prepared {
    fn is_of(&self, round: &Round<'_>) -> bool {
        self.window == round.window
            && self.membership == round.membership
            && self.members == *round.members
            && self.pickers == round.pickers
    }
}
