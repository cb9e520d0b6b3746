//! Receipts of bounded windows: what the members committed to, from which anyone who trusts the
//! deployment's authority checks that the row is what the commitments open to.

use alpheus_bounded_influence::check::{
    BoundedRow, Checker, FaultyError, Member, OpenedContribution, OpeningsError, RoundError,
    RowError,
};
use alpheus_crypto::signed_message::{SignatureBatch, Signed, Verified};
use alpheus_policy::ids::PlanId;
use alpheus_time::Window;
use serde::{Deserialize, Serialize};

use super::exclusions::{self, ExcludingPresence, SignedExclusions};
use super::verify::{check_population, members_of, opened_of};
use super::{ReceiptError, SharePart};
use crate::announced_plan::AnnouncedPlan;
use crate::bounded_terms::scope_of;
use crate::counts::narrow;
use crate::decode::rows_of;
use crate::membership::FixedMembership;
use crate::messages::{BoundedOpening, Contribution, Membership, OpeningSet};

/// Members whose messages are opened and checked together. More would be no faster, and a receipt of many
/// would be in memory twice.
const TOGETHER: usize = 64;

/// What members said, opened: one of each for each of them.
type SignedShares = (Vec<Verified<Contribution>>, Vec<Verified<BoundedOpening>>);

/// What the members of a bounded window said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedReceipt {
    /// M.
    pub membership: Signed<Membership>,
    /// S.
    pub opening_set: Signed<OpeningSet>,
    /// One for each member of S, in roster order.
    pub shares: Vec<BoundedShare>,
    /// One for each member of M that left out streams of its summons, in roster order.
    pub exclusions: Vec<ExcludingPresence>,
}

/// What one member of S said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedShare {
    /// Its masked share, with commitments to its owners' values and their proofs.
    pub contribution: Signed<Contribution>,
    /// What opens it, with commitments to its noise and their proof.
    pub opening: Signed<BoundedOpening>,
}

/// What does not hold of a bounded row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// The plan is not bounded, or the checker is for another one.
    #[error("the plan was not asked for with `integrity = 'bounded'`, or has other bounds")]
    NotBounded,
    /// The plan is bounded, and the receipt is none of a bounded window.
    #[error("the receipt has no proofs, and the plan was asked for with `integrity = 'bounded'`")]
    NoProofs,
    /// Its members do not fit each other.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// A member's proofs do not hold.
    #[error(transparent)]
    Fault(#[from] FaultyError),
    /// A member's message is of another round.
    #[error(
        "the message of the controller at position {0} is for another window, membership or set"
    )]
    Misplaced(u32),
    /// The commitments do not open to the row.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The row has numbers that the plan's words do not hold.
    #[error("the row does not fit the plan's words")]
    Words,
}

/// A bounded row that its members' commitments open to. Only [`BoundedReceipt::verify`] makes one.
///
/// Each owner has moved it by no more than its bounds, and each controller by no more than those of
/// the owners that the plan lists at it, and the range of its noise. Within these, a controller can say
/// of its owners what it likes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedWindow {
    plan: PlanId,
    window: Window,
    words: Vec<u64>,
    row: BoundedRow,
    population: u32,
    left_out: u32,
    exclusions: Vec<SignedExclusions>,
}

impl BoundedReceipt {
    /// Checks that the commitments of the members of a window of this plan are in bounds and open to a
    /// row, and returns it: signatures, S ⊆ M ⊆ roster, quorum and population, all proofs, and who left
    /// out streams. The checker is that of the plan's [terms](crate::bounded_terms::terms_of).
    ///
    /// # Errors
    /// [`ReceiptError`] with the first rule that does not hold.
    pub fn verify(
        &self,
        announced: &AnnouncedPlan,
        checker: &Checker,
        window: Window,
    ) -> Result<BoundedWindow, ReceiptError> {
        let plan = announced.plan();
        if !plan.integrity.is_bounded() {
            return Err(BoundsError::NotBounded.into());
        }
        let fixed = members_of(&self.membership, announced, window)?;
        let set = opened_of(Some(&self.opening_set), announced, &fixed, window)?.0;
        check_population(announced, &fixed, &set)?;
        if self.shares.len() != set.count() {
            let (found, expected) = (self.shares.len(), set.count());
            return Err(ReceiptError::Shares { found, expected });
        }
        let members: Vec<u32> = set.iter().collect();
        let mut opened = Vec::with_capacity(members.len());
        let all = members.chunks(TOGETHER).zip(self.shares.chunks(TOGETHER));
        for (members, shares) in all {
            let (contributions, openings) = signed_by((members, shares), announced)?;
            let given = (contributions, openings);
            opened.extend(self.opened(announced, checker, (&fixed, members), given)?);
        }
        let row = checker.row(&members, &opened, None).map_err(BoundsError::from)?;
        let words = rows_of(&plan.select, plan.release.outputs(), row.values());
        let words = words.ok_or(BoundsError::Words)?;
        let exclusions = exclusions::check(&self.exclusions, announced, &fixed)?;
        let population = narrow(usize::try_from(fixed.population(&set)).unwrap_or(usize::MAX));
        let left_out = fixed.size().saturating_sub(narrow(members.len()));
        let plan = announced.id();
        Ok(BoundedWindow { plan, window, words, row, population, left_out, exclusions })
    }

    /// All proofs of some members.
    fn opened(
        &self,
        announced: &AnnouncedPlan,
        checker: &Checker,
        (fixed, members): (&FixedMembership, &[u32]),
        (contributions, openings): SignedShares,
    ) -> Result<Vec<OpenedContribution>, BoundsError> {
        let window = fixed.membership().window;
        let scope = scope_of(&announced.id(), checker.terms(), window, fixed.digest());
        let member = |controller: &u32| Member {
            controller: *controller,
            counted: fixed.owners_at(*controller),
            listed: announced.owners(*controller),
        };
        let given: Vec<_> = members.iter().map(member).zip(contributions).collect();
        let found = checker.contributions(&scope, &given)?;
        found.faulty.first().map_or(Ok(()), |faulty| Err(*faulty))?;
        let misplaced = found.misplaced.first();
        misplaced.map_or(Ok(()), |member| Err(BoundsError::Misplaced(*member)))?;
        let shares: Vec<_> = found.bounded.into_iter().zip(openings).collect();
        let opened = checker.openings(&self.opening_set.digest(), &shares);
        opened.map_err(|error| match error {
            OpeningsError::Round(error) => BoundsError::Round(error),
            OpeningsError::Refused { faulty, misplaced } => match faulty.first() {
                Some(faulty) => BoundsError::Fault(*faulty),
                None => BoundsError::Misplaced(misplaced.first().copied().unwrap_or(u32::MAX)),
            },
        })
    }
}

/// What members said, if each of them signed its own.
fn signed_by(
    (members, shares): (&[u32], &[BoundedShare]),
    announced: &AnnouncedPlan,
) -> Result<SignedShares, ReceiptError> {
    let mut batch = SignatureBatch::default();
    let keys = announced.verifying();
    let key = |member: &u32| keys.get(usize::try_from(*member).ok()?);
    for (member, share) in members.iter().zip(shares) {
        if let Some(key) = key(member) {
            batch.add(&share.contribution, key);
            batch.add(&share.opening, key);
        }
    }
    let checked = batch.check();
    let (mut contributions, mut openings) = (Vec::new(), Vec::new());
    for (member, share) in members.iter().zip(shares) {
        let (controller, key) = (*member, key(member));
        let forged = |part| ReceiptError::Signature { controller, part };
        let contribution = key.and_then(|k| share.contribution.open_with(k, &checked).ok());
        contributions.push(contribution.ok_or(forged(SharePart::Token))?);
        let opening = key.and_then(|k| share.opening.open_with(k, &checked).ok());
        openings.push(opening.ok_or(forged(SharePart::Opening))?);
    }
    Ok((contributions, openings))
}

impl BoundedWindow {
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

    /// One word for each row of the release. The last is the check word, which is zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// One integer for each cell.
    #[must_use]
    pub fn cells(&self) -> &[i128] {
        self.row.values()
    }

    /// Owners with data, each of which is committed to.
    #[must_use]
    pub fn population(&self) -> u32 {
        self.population
    }

    /// Members of the window without which it opened.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// How many controllers have signed.
    #[must_use]
    pub fn signers(&self) -> u32 {
        narrow(self.row.members().len())
    }

    /// Streams that controllers left out, as they have signed it.
    #[must_use]
    pub fn exclusions(&self) -> &[SignedExclusions] {
        &self.exclusions
    }

    /// Checks that a row states at least as many streams as left out as controllers have signed.
    ///
    /// # Errors
    /// [`ReceiptError::FewerExcluded`].
    pub fn check_excluded(&self, stated: u64) -> Result<(), ReceiptError> {
        exclusions::check_stated(&self.exclusions, stated)
    }

    /// Checks that a row that the service has published is this one: its words and population.
    ///
    /// # Errors
    /// [`ReceiptError::OtherRow`].
    pub fn check(&self, words: &[u64], population: u32) -> Result<(), ReceiptError> {
        let same = self.words == words && self.population == population;
        if same { Ok(()) } else { Err(ReceiptError::OtherRow) }
    }
}

/// What a bounded row is, in the words that people read.
impl std::fmt::Display for BoundedWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "signed by {} controllers, each of which could have changed it by its owners' bounds",
            self.signers()
        )?;
        match self.left_out {
            0 => {}
            1 => f.write_str("; 1 other member of the window is not in it")?,
            many => write!(f, "; {many} other members of the window are not in it")?,
        }
        f.write_str(&exclusions::in_words(&self.exclusions))
    }
}
