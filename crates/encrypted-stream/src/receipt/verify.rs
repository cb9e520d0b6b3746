//! The checks of a receipt. They use nothing but the plan, whose certificates
//! [`AnnouncedPlan`] has checked, and the receipt.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::{
    CheckedSignatures, Message, SignatureBatch, Signed, Verified,
};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;

use super::exclusions::{self, SignedExclusions};
use super::{Receipt, ReceiptError, Share, SharePart};
use crate::announced_plan::AnnouncedPlan;
use crate::consumer::SealedSum;
use crate::counts::narrow;
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::{Membership, OpeningSet};
use crate::sums::add;

/// Members whose signatures are checked together.
const TOGETHER: usize = 4096;

/// A row as the members of its window have signed it. Only [`Receipt::verify`] makes one.
///
/// It says what these controllers say of their owners. Any of them could have changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRow {
    plan: PlanId,
    window: Window,
    membership: Digest,
    set: RosterSet,
    words: Vec<u64>,
    population: u32,
    exclusions: Vec<SignedExclusions>,
}

impl Receipt {
    /// Checks that the members of a window of this plan have signed a row, and returns it:
    /// signatures, S ⊆ M ⊆ roster, quorum and population, that the shares add up, and who left out
    /// streams.
    ///
    /// # Errors
    /// [`ReceiptError`] with the first rule that does not hold.
    pub fn verify(
        &self,
        announced: &AnnouncedPlan,
        window: Window,
    ) -> Result<VerifiedRow, ReceiptError> {
        self.verify_in_batches(announced, window, TOGETHER)
    }

    /// The same, with another number of members whose signatures are checked together: at least one.
    ///
    /// # Errors
    /// Those of [`Receipt::verify`].
    #[doc(hidden)]
    pub fn verify_in_batches(
        &self,
        announced: &AnnouncedPlan,
        window: Window,
        together: usize,
    ) -> Result<VerifiedRow, ReceiptError> {
        let (plan, each) = (announced.plan(), together.max(1));
        // Rows of a bounded plan are proven too, which this receipt does not show.
        if !plan.integrity.is_verified() || plan.integrity.is_bounded() {
            return Err(ReceiptError::NotVerified);
        }
        if self.listing.as_ref() != announced.listing() {
            return Err(ReceiptError::OtherList);
        }
        let fixed = members_of(&self.membership, announced, window)?;
        let (set, bound_to) = opened_of(self.opening_set.as_ref(), announced, &fixed, window)?;
        check_population(announced, &fixed, &set)?;
        if self.shares.len() != set.count() {
            let (found, expected) = (self.shares.len(), set.count());
            return Err(ReceiptError::Shares { found, expected });
        }
        let binding = Binding { announced, membership: fixed.digest(), bound_to, window };
        let mut words = vec![0; plan.release.outputs()];
        let positions: Vec<u32> = set.iter().collect();
        for (positions, shares) in positions.chunks(each).zip(self.shares.chunks(each)) {
            binding.add_up(positions, shares, &mut words)?;
        }
        if plan.sealed_to.is_none() && words.last() != Some(&0) {
            return Err(ReceiptError::CheckWord);
        }
        let exclusions = exclusions::check(&self.exclusions, announced, &fixed)?;
        let population = narrow(usize::try_from(fixed.population(&set)).unwrap_or(usize::MAX));
        let (plan, membership) = (announced.id(), fixed.digest());
        Ok(VerifiedRow { plan, window, membership, set, words, population, exclusions })
    }
}

/// M, if it is the service's for this window of the plan.
pub(super) fn members_of(
    signed: &Signed<Membership>,
    announced: &AnnouncedPlan,
    window: Window,
) -> Result<FixedMembership, ReceiptError> {
    let membership = signed.open(announced.service()).map_err(|_| ReceiptError::Membership)?;
    if membership.plan != announced.id() {
        return Err(ReceiptError::OtherPlan);
    }
    if membership.window != window {
        return Err(ReceiptError::OtherWindow(membership.window));
    }
    let fixed = FixedMembership::new(&membership).map_err(|_| ReceiptError::Roster)?;
    if fixed.members().roster() != announced.controllers() {
        return Err(ReceiptError::Roster);
    }
    let invented = |at: &u32| fixed.owners_at(*at) > announced.owners(*at);
    let found = fixed.members().iter().find(invented);
    found.map_or(Ok(()), |controller| Err(ReceiptError::OwnersInvented { controller }))?;
    Ok(fixed)
}

/// S and its digest, if it is the service's for this M. A single controller is an S of itself, which
/// has no digest.
pub(super) fn opened_of(
    signed: Option<&Signed<OpeningSet>>,
    announced: &AnnouncedPlan,
    fixed: &FixedMembership,
    window: Window,
) -> Result<(RosterSet, Option<Digest>), ReceiptError> {
    let (set, digest) = match (signed, announced.is_single()) {
        (None, true) => (fixed.members().clone(), None),
        (Some(signed), false) => {
            let opened = signed.open(announced.service());
            let opened = opened.map_err(|_| ReceiptError::OpeningSet)?;
            let stated = (opened.plan, opened.window, opened.membership);
            if stated != (announced.id(), window, fixed.digest()) {
                return Err(ReceiptError::OtherSet);
            }
            (opened.set.clone(), Some(opened.digest()))
        }
        _ => return Err(ReceiptError::OpeningSet),
    };
    // So both are over one roster, and M's is the plan's.
    if !set.is_subset_of(fixed.members()) {
        return Err(ReceiptError::NotASubset);
    }
    let (held, needed) = (narrow(set.count()), announced.min_opening(fixed.size()));
    if held < needed {
        return Err(ReceiptError::BelowQuorum { held, needed });
    }
    Ok((set, digest))
}

/// The population that every member of S must have counted, as far as others can tell: of two
/// controllers, each may trust the other.
pub(super) fn check_population(
    announced: &AnnouncedPlan,
    fixed: &FixedMembership,
    set: &RosterSet,
) -> Result<(), ReceiptError> {
    let bounds = announced.plan().population;
    let stated = fixed.population(set);
    let counted = match set.roster() {
        2 => stated,
        _ => fixed.min_population(set, announced.discounted()),
    };
    let fits = counted >= u64::from(bounds.min) && stated <= u64::from(bounds.max);
    if fits { Ok(()) } else { Err(ReceiptError::Population { stated, counted }) }
}

/// What every share of a window must be bound to.
struct Binding<'a> {
    announced: &'a AnnouncedPlan,
    /// H(M).
    membership: Digest,
    /// H(S). None with a single controller.
    bound_to: Option<Digest>,
    window: Window,
}

impl Binding<'_> {
    /// Adds the shares of these members to `words`. Their signatures are checked in one batch.
    fn add_up(
        &self,
        positions: &[u32],
        shares: &[Share],
        words: &mut [u64],
    ) -> Result<(), ReceiptError> {
        let mut batch = SignatureBatch::default();
        for (position, share) in positions.iter().zip(shares) {
            if let Some(key) = self.announced.verifying().get(*position as usize) {
                batch.add(&share.token, key);
                share.opening.iter().for_each(|opening| batch.add(opening, key));
            }
        }
        let checked = batch.check();
        for (position, share) in positions.iter().zip(shares) {
            self.add_one(*position, share, &checked, words)?;
        }
        Ok(())
    }

    fn add_one(
        &self,
        controller: u32,
        share: &Share,
        checked: &CheckedSignatures,
        words: &mut [u64],
    ) -> Result<(), ReceiptError> {
        let other = |part| ReceiptError::OtherShare { controller, part };
        let token = self.open(controller, SharePart::Token, &share.token, checked)?;
        let stated = (token.plan, token.window, token.controller, token.membership);
        if stated != (self.announced.id(), self.window, controller, self.membership) {
            return Err(other(SharePart::Token));
        }
        check_length(controller, SharePart::Token, &token.words, words.len())?;
        add(words, &token.words);
        match (&share.opening, self.bound_to) {
            (None, None) => Ok(()),
            (Some(signed), Some(set)) => {
                let part = SharePart::Opening;
                let opening = self.open(controller, part, signed, checked)?;
                let stated = (opening.plan, opening.window, opening.controller);
                let bound = (opening.opening_set, opening.token) == (set, Some(token.digest()));
                if stated != (self.announced.id(), self.window, controller) || !bound {
                    return Err(other(part));
                }
                check_length(controller, part, &opening.words, words.len())?;
                words.iter_mut().zip(&opening.words).for_each(|(w, o)| *w = w.wrapping_sub(*o));
                Ok(())
            }
            _ => Err(other(SharePart::Opening)),
        }
    }

    fn open<T: Message>(
        &self,
        controller: u32,
        part: SharePart,
        signed: &Signed<T>,
        checked: &CheckedSignatures,
    ) -> Result<Verified<T>, ReceiptError> {
        let forged = ReceiptError::Signature { controller, part };
        let key = self.announced.verifying().get(controller as usize);
        let opened = key.map(|key| signed.open_with(key, checked));
        opened.ok_or(forged.clone())?.map_err(|_| forged)
    }
}

fn check_length(
    controller: u32,
    part: SharePart,
    own: &[u64],
    outputs: usize,
) -> Result<(), ReceiptError> {
    let fits = own.len() == outputs;
    if fits { Ok(()) } else { Err(ReceiptError::Length { controller, part }) }
}

impl VerifiedRow {
    /// The plan.
    #[must_use]
    pub fn plan(&self) -> PlanId {
        self.plan
    }

    /// The window.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// One word for each row of the release. The last is the check word, which is zero. If the
    /// plan is sealed to a consumer, these are under its pads.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Owners with data, as the members have stated them.
    #[must_use]
    pub fn population(&self) -> u32 {
        self.population
    }

    /// Streams that controllers left out, as they have signed it. The service can keep back whole
    /// presences, and then nobody has signed what they leave out.
    #[must_use]
    pub fn exclusions(&self) -> &[SignedExclusions] {
        &self.exclusions
    }

    /// How many controllers have signed.
    #[must_use]
    pub fn signers(&self) -> u32 {
        narrow(self.set.count())
    }

    /// The sum as it is sealed to the plan's consumer.
    #[must_use]
    pub fn sealed(&self) -> SealedSum {
        let (plan, window, membership) = (self.plan, self.window, self.membership);
        SealedSum { plan, window, membership, set: self.set.clone(), words: self.words.clone() }
    }

    /// Checks that a row that the service has published is this one: its words and population.
    ///
    /// # Errors
    /// [`ReceiptError::OtherRow`].
    pub fn check(&self, words: &[u64], population: u32) -> Result<(), ReceiptError> {
        let same = self.words == words && self.population == population;
        if same { Ok(()) } else { Err(ReceiptError::OtherRow) }
    }

    /// Checks that a row states at least as many streams as left out as controllers have signed.
    ///
    /// # Errors
    /// [`ReceiptError::FewerExcluded`].
    pub fn check_excluded(&self, stated: u64) -> Result<(), ReceiptError> {
        exclusions::check_stated(&self.exclusions, stated)
    }
}

/// What a verified row is, in the words that people read.
impl std::fmt::Display for VerifiedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.signers() {
            1 => write!(f, "signed by 1 controller, which could have changed it"),
            n => write!(f, "signed by {n} controllers, any of which could have changed it"),
        }?;
        f.write_str(&exclusions::in_words(&self.exclusions))
    }
}
