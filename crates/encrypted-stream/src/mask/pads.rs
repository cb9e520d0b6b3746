//! What a controller adds to its token, and what it takes off again.
//!
//! `T_p = τ_p + Σ_{q∈N(p)∩M} ±pad_pq(mask, M) + b_p`,
//! `o_p = b_p + Σ_{q∈N(p)∩(M∖S)} ±pad_pq(mask, M) + Σ_{q∈N(p)∩S} ±pad_pq(open, M, S)`,
//! with + towards later positions and − towards earlier ones. Over S, masks and
//! openings cancel in pairs, and `Σ_S (T_p − o_p) = Σ_S τ_p`.

use crate::mask::pairs::{OwnKey, PairKeys};
use crate::mask::set::RosterSet;
use crate::mask::strategy::{self, Strategy};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::prf::{PadDigest, Prf};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_policy::time::{Span, Window};
use zeroize::{Zeroize, Zeroizing};

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
    /// This controller is not in the membership.
    #[error("this controller is not in the membership that it should mask for")]
    NotAMember,
    /// This controller is not among those that open.
    #[error("this controller's token is not in the set to open")]
    NotOpened,
    /// The set to open holds a controller that is not in the membership.
    #[error("the set to open holds a controller that is not in the membership")]
    NotASubset,
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
    plan: PlanId,
    size: Span,
    pairs: PairKeys,
    own: OwnKey,
    strategy: Box<dyn Strategy>,
    /// Whether the self-mask alone may hide a token.
    may_be_alone: bool,
    neighbours: Vec<u32>,
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
}

impl Masker {
    /// For a controller that has agreed on keys with the plan's roster.
    ///
    /// # Errors
    /// [`NoMasks`] if the plan has a single controller, or another number of
    /// controllers than the keys.
    pub fn new(plan: &Plan, pairs: PairKeys, own: OwnKey) -> Result<Masker, NoMasks> {
        if plan.masks != MaskStrategy::Single && plan.roster.len() != pairs.roster() as usize {
            return Err(NoMasks);
        }
        let strategy = strategy::of_plan(plan.id(), plan.masks).ok_or(NoMasks)?;
        let may_be_alone = plan.population.min <= 1 && plan.alpha.numerator == 0;
        Ok(Masker {
            plan: plan.id(),
            size: plan.window,
            pairs,
            own,
            strategy,
            may_be_alone,
            neighbours: Vec::new(),
        })
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
        self.find_neighbours(round)?;
        let digest = self.digest(round, b"mask", None);
        self.own.0.add_pad(&self.digest(round, b"self", None), &mut token);
        for neighbour in &self.neighbours {
            self.add(*neighbour, &digest, &mut token);
        }
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
        self.find_neighbours(round)?;
        if !opened.is_subset_of(round.members) {
            return Err(MaskRefusal::NotASubset);
        }
        if !opened.contains(self.pairs.position()) {
            return Err(MaskRefusal::NotOpened);
        }
        self.check_company(opened, Among::OpeningSet)?;
        let mask = self.digest(round, b"mask", None);
        let open = self.digest(round, b"open", Some(opening));
        let mut words = vec![0; outputs];
        self.own.0.add_pad(&self.digest(round, b"self", None), &mut words);
        for neighbour in &self.neighbours {
            let digest = if opened.contains(*neighbour) { &open } else { &mask };
            self.add(*neighbour, digest, &mut words);
        }
        Ok(words)
    }

    /// Checks M and finds N(p) ∩ M.
    fn find_neighbours(&mut self, round: &Round<'_>) -> Result<(), MaskRefusal> {
        self.check_roster(round.members)?;
        if !round.members.contains(self.pairs.position()) {
            return Err(MaskRefusal::NotAMember);
        }
        let number = round.window.start.0.checked_div(self.size.0).unwrap_or(0);
        self.strategy.neighbours(&self.pairs, number, &mut self.neighbours);
        self.neighbours.retain(|neighbour| round.members.contains(*neighbour));
        self.check_company(round.members, Among::Membership)
    }

    fn check_roster(&self, set: &RosterSet) -> Result<(), MaskRefusal> {
        let (expected, found) = (self.pairs.roster(), set.roster());
        if expected == found { Ok(()) } else { Err(MaskRefusal::OtherRoster { expected, found }) }
    }

    /// An unmasked token is never sent: some neighbour must be in the set.
    fn check_company(&self, among: &RosterSet, set: Among) -> Result<(), MaskRefusal> {
        let alone = !self.neighbours.iter().any(|neighbour| among.contains(*neighbour));
        if alone && !self.may_be_alone { Err(MaskRefusal::Isolated { set }) } else { Ok(()) }
    }

    /// What a pad is bound to.
    fn digest(&self, round: &Round<'_>, purpose: &[u8], opening: Option<&Digest>) -> PadDigest {
        let (start, end) = (round.window.start.0.to_be_bytes(), round.window.end.0.to_be_bytes());
        let bound: [&[u8]; 6] = [
            purpose,
            &self.plan.0,
            &start,
            &end,
            round.membership.as_bytes(),
            opening.map_or(&[], |digest| digest.as_bytes().as_slice()),
        ];
        PadDigest::new(&labelled(labels::MASK_PAD, &bound))
    }

    /// Adds the pad shared with `neighbour`, with the sign that cancels.
    #[inline]
    fn add(&self, neighbour: u32, digest: &PadDigest, words: &mut [u64]) {
        let later = self.pairs.position() < neighbour;
        self.pairs.with_mask_key(neighbour, |key: &Prf| {
            if later { key.add_pad(digest, words) } else { key.subtract_pad(digest, words) }
        });
    }
}

impl Drop for Masker {
    fn drop(&mut self) {
        self.neighbours.zeroize();
    }
}
