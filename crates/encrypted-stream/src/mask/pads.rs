//! The masks that a controller adds to its token, and the opening that removes them.
//!
//! `T_p = τ_p + Σ_{q∈N(p)∩M} ±pad_pq(mask, M) + b_p`, `b_p = pad_p(mask, M)`,
//! `o_p = b_p + Σ_{q∈N(p)∩(M∖S)} ±pad_pq(mask, M) + Σ_{q∈N(p)∩S} ±pad_pq(open, M, S)`,
//! with + towards later positions and − towards earlier ones. Over S, masks and
//! opening pads cancel in pairs, so `Σ_S (T_p − o_p) = Σ_S τ_p`.

use crate::mask::generation::RoundKeys;
use crate::mask::pairs::{OwnKey, PairKeyError, PairKeys};
use crate::mask::set::RosterSet;
use crate::mask::strategy::{self, Strategy};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::prf::PadDigest;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::{Span, Window};
use zeroize::Zeroizing;

/// Why a token cannot be masked, or a mask cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MaskError {
    /// A set is over a roster of a different size.
    #[error("the set is over {found} controllers, but the plan has {expected}")]
    OtherRoster {
        /// N.
        expected: u32,
        /// Size of the roster that the set is over.
        found: u32,
    },
    /// The window's length differs from the plan's.
    #[error("the window is not one of the plan's")]
    OtherWindow,
    /// This controller is not in the membership.
    #[error("this controller is not in the membership to mask for")]
    NotAMember,
    /// This controller is not in the set to open.
    #[error("this controller's token is not in the set to open")]
    NotOpened,
    /// The set to open includes a controller that is not in the membership.
    #[error("the set to open includes a controller that is not in the membership")]
    NotASubset,
    /// Too few of this controller's picks are present. The other members may
    /// belong to the service.
    #[error(
        "{held} of this controller's picks are in the {set}; {needed} are needed to hide its token"
    )]
    TooFewPicks {
        /// The set with too few picks.
        set: MemberSet,
        /// This controller's picks in the set.
        held: u32,
        /// The minimum.
        needed: u32,
    },
    /// The mask needs a key agreement first.
    #[error("this controller has agreed on no keys with the controller at position {position}")]
    NoKey {
        /// The other controller's position.
        position: u32,
    },
    /// No other controller shares a mask with this one.
    #[error(
        "no member of the {set} shares a mask with this controller in this window, so nothing would hide its token"
    )]
    Isolated {
        /// The set without neighbours.
        set: MemberSet,
    },
}

/// The two sets in which a controller needs other members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberSet {
    /// M, the membership.
    Membership,
    /// S, the opening set.
    OpeningSet,
}

impl std::fmt::Display for MemberSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MemberSet::Membership => "membership",
            MemberSet::OpeningSet => "set to open",
        })
    }
}

/// The plan needs no masks because it names one controller, or the keys are not its roster's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the pair keys do not fit the plan, or the plan needs no masks")]
pub struct MaskSetupError;

/// The masks of one controller in one plan.
///
/// It keeps no record of its answers. The ledger must ensure that each window has one
/// membership and one opening set. A caller that opens two sets for one window
/// breaks the protocol.
pub struct Masker {
    terms: Terms,
    pairs: PairKeys,
    own: OwnKey,
    strategy: Box<dyn Strategy>,
    /// The state of the last window, which its opening needs again.
    last: Option<PadState>,
}

/// What the window and its members alone determine.
struct PadState {
    window: Window,
    members: RosterSet,
    membership: Digest,
    /// The members of M that picked this controller.
    pickers: Vec<u32>,
    /// N(p) ∩ M.
    neighbours: Vec<u32>,
    /// This controller's own picks among them.
    picks: Vec<u32>,
    /// The digest that the masks are bound to.
    mask_digest: Digest,
}

/// A window of a plan, and the membership M that its pads are bound to.
#[derive(Clone, Copy, Debug)]
pub struct WindowMembers<'a> {
    /// The window.
    pub window: Window,
    /// M.
    pub members: &'a RosterSet,
    /// H(M): digest of the signed membership.
    pub membership: Digest,
    /// Under [`Neighbours`](crate::mask::neighbours): the members that picked this
    /// controller, ascending, as stated in M's tree. Otherwise empty.
    pub pickers: &'a [u32],
}

/// The parts of a plan that masks depend on.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The plan's id.
    pub plan: PlanId,
    /// Number of controllers in the roster.
    pub controllers: u32,
    /// Length of the windows, which are back to back.
    pub window: Span,
    /// Who masks with whom.
    pub masks: MaskStrategy,
    /// Whether a self-mask alone may hide a token. Only where a population of one
    /// may be released and no controller is assumed to collude.
    pub may_be_alone: bool,
}

impl Terms {
    /// The terms of a plan.
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
    /// Makes the masker of a controller that has agreed on keys with the plan's roster.
    ///
    /// # Errors
    /// [`MaskSetupError`] if the plan has a single controller, if its number of
    /// controllers differs from that of the keys, or if the keys are for the wrong
    /// kind of mask graph.
    pub fn new(plan: &Plan, pairs: PairKeys, own: OwnKey) -> Result<Masker, MaskSetupError> {
        Masker::with(Terms::of(plan), pairs, own)
    }

    /// As [`Masker::new`], from the plan's terms.
    ///
    /// # Errors
    /// As [`Masker::new`].
    pub fn with(terms: Terms, pairs: PairKeys, own: OwnKey) -> Result<Masker, MaskSetupError> {
        let strategy = strategy::of_plan(terms.plan, terms.masks).ok_or(MaskSetupError)?;
        let sparse = matches!(terms.masks, MaskStrategy::Neighbours { .. });
        if terms.controllers != pairs.roster() || sparse != pairs.is_sparse() {
            return Err(MaskSetupError);
        }
        Ok(Masker { terms, pairs, own, strategy, last: None })
    }

    /// Agrees on keys with those of `others` that have none yet, under a sparse graph.
    ///
    /// # Errors
    /// As [`PairKeys::extend`].
    pub fn extend_keys(
        &mut self,
        key: &AgreementKey,
        roster: &[AgreementPublic],
        others: &[u32],
    ) -> Result<(), PairKeyError> {
        self.pairs.extend(key, roster, others)
    }

    /// The positions that this controller picks; empty if it has keys with everyone.
    #[must_use]
    pub fn picks(&self) -> Vec<u32> {
        self.pairs.picks().collect()
    }

    /// Returns T: `token`, the key sum τ of the window, under the masks of these members.
    ///
    /// # Privacy
    /// The words are hidden from anyone who lacks this controller's secret. After
    /// an opening they are hidden from anyone who lacks the keys of one honest
    /// neighbour. On an error, τ is wiped.
    ///
    /// # Errors
    /// [`MaskError`], which names the violated rule.
    pub fn token(
        &mut self,
        within: &WindowMembers<'_>,
        token: Vec<u64>,
    ) -> Result<Vec<u64>, MaskError> {
        self.token_with(None, within, token)
    }

    /// The keys for life, from which those of a window are [renewed](PairKeys::renewed).
    #[must_use]
    pub fn pairs(&self) -> &PairKeys {
        &self.pairs
    }

    /// As [`Masker::token`], with pads of other keys. The mask graph stays the same.
    ///
    /// # Errors
    /// As [`Masker::token`].
    pub fn token_with(
        &mut self,
        keys: Option<&RoundKeys>,
        within: &WindowMembers<'_>,
        token: Vec<u64>,
    ) -> Result<Vec<u64>, MaskError> {
        let mut token = Zeroizing::new(token);
        let state = self.prepare(within)?;
        let mask = PadDigest::new(&state.mask_digest);
        let (pairs, own) = self.keys(keys);
        own.0.add_pad(&mask, &mut token);
        pairs.add_pads(&state.neighbours, &mask, &mut token);
        self.last = Some(state);
        Ok(std::mem::take(&mut token))
    }

    /// Returns o, which opens the sum of these tokens over `opened`, and over no
    /// other set. `opening` is the digest of the signed set, and `outputs` the
    /// number of words in a token.
    ///
    /// # Errors
    /// [`MaskError`], which names the violated rule.
    pub fn opening(
        &mut self,
        within: &WindowMembers<'_>,
        opened: &RosterSet,
        opening: &Digest,
        outputs: usize,
    ) -> Result<Vec<u64>, MaskError> {
        self.opening_with(None, within, (opened, opening), outputs)
    }

    /// As [`Masker::opening`], with the keys that the token was masked with.
    ///
    /// # Errors
    /// As [`Masker::opening`].
    pub fn opening_with(
        &mut self,
        keys: Option<&RoundKeys>,
        within: &WindowMembers<'_>,
        (opened, opening): (&RosterSet, &Digest),
        outputs: usize,
    ) -> Result<Vec<u64>, MaskError> {
        self.check_roster(opened)?;
        let state = self.prepare(within)?;
        if !opened.is_subset_of(within.members) {
            return Err(MaskError::NotASubset);
        }
        if !opened.contains(self.pairs.position()) {
            return Err(MaskError::NotOpened);
        }
        let (mut included, mut dropped) = (Vec::with_capacity(state.neighbours.len()), vec![]);
        for neighbour in &state.neighbours {
            let part = if opened.contains(*neighbour) { &mut included } else { &mut dropped };
            part.push(*neighbour);
        }
        let picks = state.picks.iter().filter(|pick| opened.contains(**pick)).count();
        self.check_company(&included, picks, MemberSet::OpeningSet)?;
        let mut words = vec![0; outputs];
        let mask = PadDigest::new(&state.mask_digest);
        let (pairs, own) = self.keys(keys);
        own.0.add_pad(&mask, &mut words);
        pairs.add_pads(&dropped, &mask, &mut words);
        let open =
            labelled_hash(labels::MASK_OPEN, &[state.mask_digest.as_bytes(), opening.as_bytes()]);
        pairs.add_pads(&included, &PadDigest::new(&open), &mut words);
        self.last = Some(state);
        Ok(words)
    }

    /// N(p) ∩ M without some, for shares that are no words: those with whom this controller has pads in
    /// this window. `opened` is S, once it is fixed.
    ///
    /// # Errors
    /// [`MaskError`], by the rules of [`Masker::token`] and [`Masker::opening`].
    pub fn neighbours(
        &mut self,
        within: &WindowMembers<'_>,
        without: &[u32],
        opened: Option<&RosterSet>,
    ) -> Result<Vec<u32>, MaskError> {
        let state = self.prepare(within)?;
        let stays = |other: &&u32| !without.contains(other);
        let left: Vec<u32> = state.neighbours.iter().filter(stays).copied().collect();
        let picks = |of: Option<&RosterSet>| {
            let counts = |pick: &&u32| of.is_none_or(|of| of.contains(**pick));
            state.picks.iter().filter(stays).filter(counts).count()
        };
        self.check_company(&left, picks(None), MemberSet::Membership)?;
        if let Some(opened) = opened {
            self.check_roster(opened)?;
            if !opened.is_subset_of(within.members) {
                return Err(MaskError::NotASubset);
            }
            if !opened.contains(self.pairs.position()) {
                return Err(MaskError::NotOpened);
            }
            let inside: Vec<u32> = left.iter().copied().filter(|q| opened.contains(*q)).collect();
            self.check_company(&inside, picks(Some(opened)), MemberSet::OpeningSet)?;
        }
        self.last = Some(state);
        Ok(left)
    }

    fn keys<'a>(&'a self, keys: Option<&'a RoundKeys>) -> (&'a PairKeys, &'a OwnKey) {
        keys.map_or((&self.pairs, &self.own), |keys| (&keys.pairs, &keys.own))
    }

    /// Checks M and derives the pads' state, or reuses it if M is unchanged.
    fn prepare(&mut self, within: &WindowMembers<'_>) -> Result<PadState, MaskError> {
        if let Some(last) = self.last.take_if(|last| last.is_of(within)) {
            return Ok(last);
        }
        self.check_roster(within.members)?;
        if !within.members.contains(self.pairs.position()) {
            return Err(MaskError::NotAMember);
        }
        let start = within.window.start;
        let number = start.0.checked_div(self.terms.window.0).ok_or(MaskError::OtherWindow)?;
        if within.window.end != start.plus(self.terms.window) {
            return Err(MaskError::OtherWindow);
        }
        let mut neighbours = Vec::new();
        self.strategy.neighbours(&self.pairs, number, &mut neighbours);
        neighbours.retain(|neighbour| within.members.contains(*neighbour));
        let picks = match self.terms.masks.needed_picks() {
            Some(_) => neighbours.clone(),
            None => Vec::new(),
        };
        if !within.pickers.is_empty() {
            neighbours.extend(within.pickers.iter().filter(|p| within.members.contains(**p)));
            neighbours.sort_unstable();
            neighbours.dedup();
        }
        self.check_company(&neighbours, picks.len(), MemberSet::Membership)?;
        if let Some(stranger) = neighbours.iter().find(|q| !self.pairs.has_key(**q)) {
            return Err(MaskError::NoKey { position: *stranger });
        }
        Ok(PadState {
            pickers: within.pickers.to_vec(),
            picks,
            window: within.window,
            members: within.members.clone(),
            membership: within.membership,
            neighbours,
            // The plan fixes the window's end.
            mask_digest: labelled_hash(
                labels::MASK,
                &[&self.terms.plan.0, &start.0.to_be_bytes(), within.membership.as_bytes()],
            ),
        })
    }

    fn check_roster(&self, set: &RosterSet) -> Result<(), MaskError> {
        let (expected, found) = (self.pairs.roster(), set.roster());
        if expected == found { Ok(()) } else { Err(MaskError::OtherRoster { expected, found }) }
    }

    /// Checks that a token is never sent unmasked. Some neighbour must be in the set,
    /// and under `Neighbours` as many picks as the bound on the graph requires.
    fn check_company(
        &self,
        neighbours: &[u32],
        picks: usize,
        set: MemberSet,
    ) -> Result<(), MaskError> {
        if let Some(needed) = self.terms.masks.needed_picks() {
            let held = u32::try_from(picks).unwrap_or(u32::MAX);
            let enough = held >= needed.max(1);
            return if enough { Ok(()) } else { Err(MaskError::TooFewPicks { set, held, needed }) };
        }
        let alone = neighbours.is_empty() && !self.terms.may_be_alone;
        if alone { Err(MaskError::Isolated { set }) } else { Ok(()) }
    }
}

impl PadState {
    fn is_of(&self, within: &WindowMembers<'_>) -> bool {
        self.window == within.window
            && self.membership == within.membership
            && self.members == *within.members
            && self.pickers == within.pickers
    }
}
