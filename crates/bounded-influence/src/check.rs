//! The checks of a bounded window: commitments before the opening set is fixed, openings, and the
//! row. Anybody can make them, from signed messages and public terms.

mod fault;

pub use fault::{FaultError, FaultyError, OpeningsError, RoundError, RowError};

use crate::commit::{noise_statement, owner_statement, owners_statement};
use crate::form::Form;
use crate::messages::{CommittedCells, Contribution, MaskedShare, Opening, Scope};
use crate::terms::Terms;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Verified;
use alpheus_range_proof::{Claim, Commitment, EncodedProof, RangeChecker, culprits};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// What the contributions to a window are.
#[derive(Clone, Debug, Default)]
pub struct Contributions {
    /// Those that are in bounds.
    pub bounded: Vec<BoundedContribution>,
    /// Those that are not.
    pub faulty: Vec<FaultyError>,
    /// Members in whose place there is a message of another window, membership or sender. It says
    /// nothing of them: anybody can send it again.
    pub misplaced: Vec<u32>,
}

/// Why a message does not count.
enum Refusal {
    Misplaced,
    FaultyError(FaultError),
}

impl From<FaultError> for Refusal {
    fn from(fault: FaultError) -> Self {
        Self::FaultyError(fault)
    }
}

/// A member of M, as the plan and the membership state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its position in the roster.
    pub controller: u32,
    /// Owners with data, as M counts them.
    pub counted: u32,
    /// Owners that the plan lists at it.
    pub listed: u32,
}

/// A contribution whose commitments are all in bounds. Only [`Checker::contributions`] makes one.
#[derive(Clone, Debug)]
pub struct BoundedContribution {
    pub(crate) scope: Scope,
    pub(crate) controller: u32,
    pub(crate) digest: Digest,
    pub(crate) share: MaskedShare,
    /// Σ V, for each cell.
    pub(crate) total: Vec<Commitment>,
    pub(crate) owners: u32,
}

/// A member's bounded contribution and its opening. Only [`Checker::openings`] makes one.
#[derive(Clone, Debug)]
pub struct OpenedContribution {
    pub(crate) scope: Scope,
    pub(crate) controller: u32,
    pub(crate) opening_set: Digest,
    /// Z − o.
    pub(crate) share: MaskedShare,
    /// Σ V − V_η, for each cell.
    pub(crate) total: Vec<Commitment>,
    pub(crate) owners: u32,
}

/// A row that the commitments of its members open to. Only [`Checker::row`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedRow {
    values: Vec<i128>,
    owners: u64,
    members: Vec<u32>,
}

/// What a checker needs under the terms of a plan.
pub struct Checker {
    terms: Terms,
    owners: RangeChecker,
    noise: RangeChecker,
    sealed: bool,
}

/// A window whose row does not hold. Only [`Checker::failed`] makes one.
pub struct FailedWindow<'a> {
    /// The members of S, in roster order.
    pub(crate) opened: &'a [OpenedContribution],
    pub(crate) sealed: bool,
    /// Edges that both ends leave out.
    pub(crate) left_out: BTreeSet<(u32, u32)>,
}

impl Checker {
    /// Computes the bases of proofs. Anyone reads the rows.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        let (owners, noise) = (terms.owner_range(), terms.noise_range());
        let (owners, noise) = (RangeChecker::new(owners), RangeChecker::new(noise));
        Self { owners, noise, terms, sealed: false }
    }

    /// The same for a plan whose rows one consumer alone reads.
    #[must_use]
    pub fn sealed(terms: Terms) -> Self {
        Self { sealed: true, ..Self::new(terms) }
    }

    /// The terms.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Checks contributions in one batch, before S is fixed. An invalid one names its sender, and costs
    /// nobody else anything. Members ascend.
    ///
    /// # Errors
    /// [`RoundError`], if this is no window of the terms.
    pub fn contributions(
        &self,
        scope: &Scope,
        signed: &[(Member, impl Borrow<Verified<Contribution>>)],
    ) -> Result<Contributions, RoundError> {
        self.check_round(scope, signed.iter().map(|(member, _)| member.controller))?;
        let beyond = signed.iter().find(|(member, _)| member.counted > member.listed);
        if let Some((Member { controller, .. }, _)) = beyond {
            return Err(RoundError::Counted { controller: *controller });
        }
        let (mut found, mut claims) = (Contributions::default(), Vec::new());
        for (member, contribution) in signed {
            let controller = member.controller;
            match self.contribution(scope, member, contribution.borrow()) {
                Ok((checked, of_one)) => {
                    claims.push(of_one);
                    found.bounded.push(checked);
                }
                Err(Refusal::Misplaced) => found.misplaced.push(controller),
                Err(Refusal::FaultyError(fault)) => {
                    found.faulty.push(FaultyError { controller, fault })
                }
            }
        }
        let bad = culprits(&claims).into_iter().filter_map(|at| found.bounded.get(at));
        let bad: Vec<u32> = bad.map(|bounded| bounded.controller).collect();
        found.bounded.retain(|bounded| !bad.contains(&bounded.controller));
        let named = |controller| FaultyError { controller, fault: FaultError::Range };
        found.faulty.extend(bad.into_iter().map(named));
        found.faulty.sort_unstable_by_key(|faulty| faulty.controller);
        Ok(found)
    }

    /// One message of each member, of a window of these terms.
    fn check_round(
        &self,
        scope: &Scope,
        members: impl Iterator<Item = u32>,
    ) -> Result<(), RoundError> {
        if scope.terms != self.terms.digest() {
            return Err(RoundError::Terms);
        }
        let ascending = members.is_sorted_by(|a, b| a < b);
        if ascending { Ok(()) } else { Err(RoundError::Members) }
    }

    /// Everything but the proofs, which are returned as claims.
    fn contribution(
        &self,
        scope: &Scope,
        member: &Member,
        message: &Verified<Contribution>,
    ) -> Result<(BoundedContribution, Vec<Claim>), Refusal> {
        if message.scope != *scope || message.controller != member.controller {
            return Err(Refusal::Misplaced);
        }
        if !message.share.is_for(self.terms.cells().len()) {
            return Err(FaultError::Cells.into());
        }
        if u32::try_from(message.owners.len()) != Ok(member.counted) {
            return Err(FaultError::Owners.into());
        }
        check_order(&message.owners)?;
        let all: Vec<&[Element]> =
            message.owners.iter().map(|one| one.commitments.as_slice()).collect();
        let statement = owners_statement(scope, member.controller, &all);
        let mut total = vec![Commitment::default(); self.terms.cells().len()];
        let mut claims = Vec::with_capacity(message.owners.len());
        for (at, owner) in (0_u32..).zip(&message.owners) {
            let cells = self.cells(owner).ok_or(FaultError::Cells)?;
            let bound = owner_statement(&statement, at);
            let claim = claim(&self.owners, self.terms.owner_forms(), &cells, owner, bound);
            claims.push(claim.ok_or(FaultError::Range)?);
            add_cells(&mut total, &cells);
        }
        let bounded = BoundedContribution {
            scope: *scope,
            controller: member.controller,
            digest: message.digest(),
            share: message.share.clone(),
            total,
            owners: member.counted,
        };
        Ok((bounded, claims))
    }

    /// One owner's commitments, if there is one for each cell.
    fn cells(&self, owner: &CommittedCells) -> Option<Vec<Commitment>> {
        let fits = owner.commitments.len() == self.terms.cells().len();
        fits.then(|| owner.commitments.iter().map(Commitment::of).collect())
    }

    /// Checks the openings of members of S. An invalid one fails the window, and names its sender.
    /// Members ascend.
    ///
    /// # Errors
    /// [`OpeningsError`], with all that do not hold.
    pub fn openings(
        &self,
        opening_set: &Digest,
        signed: &[(BoundedContribution, impl Borrow<Verified<Opening>>)],
    ) -> Result<Vec<OpenedContribution>, OpeningsError> {
        let scopes: Vec<&Scope> = signed.iter().map(|(bounded, _)| &bounded.scope).collect();
        let scope = *scopes.first().ok_or(RoundError::Members)?;
        self.check_round(scope, signed.iter().map(|(bounded, _)| bounded.controller))?;
        if scopes.iter().any(|other| *other != scope) {
            return Err(RoundError::Members.into());
        }
        let (mut opened, mut claims) = (Vec::new(), Vec::new());
        let (mut faulty, mut misplaced) = (Vec::new(), Vec::new());
        for (bounded, opening) in signed {
            let controller = bounded.controller;
            match self.opening(bounded, opening_set, opening.borrow()) {
                Ok((checked, claim)) => {
                    claims.push(Vec::from_iter(claim));
                    opened.push(checked);
                }
                Err(Refusal::Misplaced) => misplaced.push(controller),
                Err(Refusal::FaultyError(fault)) => faulty.push(FaultyError { controller, fault }),
            }
        }
        let bad = culprits(&claims).into_iter().filter_map(|at| opened.get(at));
        let named = |bad: &OpenedContribution| FaultyError {
            controller: bad.controller,
            fault: FaultError::Noise,
        };
        faulty.extend(bad.map(named));
        let all = faulty.is_empty() && misplaced.is_empty();
        if all { Ok(opened) } else { Err(OpeningsError::Refused { faulty, misplaced }) }
    }

    fn opening(
        &self,
        bounded: &BoundedContribution,
        opening_set: &Digest,
        message: &Verified<Opening>,
    ) -> Result<(OpenedContribution, Option<Claim>), Refusal> {
        let stated = (message.scope, message.controller, message.opening_set, message.contribution);
        if stated != (bounded.scope, bounded.controller, *opening_set, bounded.digest) {
            return Err(Refusal::Misplaced);
        }
        if !message.share.is_for(self.terms.cells().len()) {
            return Err(FaultError::Cells.into());
        }
        let mut total = bounded.total.clone();
        let claim = match (&message.noise, self.terms.has_noise()) {
            (None, false) => None,
            (Some(noise), true) => {
                let (scope, controller) = (&bounded.scope, bounded.controller);
                let cells = self.cells(noise).ok_or(FaultError::Cells)?;
                total.iter_mut().zip(&cells).for_each(|(sum, cell)| *sum = *sum - *cell);
                let bound = noise_statement(scope, controller, opening_set, &noise.commitments);
                let claim = claim(&self.noise, self.terms.noise_forms(), &cells, noise, bound);
                Some(claim.ok_or(FaultError::Noise)?)
            }
            _ => return Err(FaultError::Noise.into()),
        };
        let mut share = bounded.share.clone();
        share.subtract(&message.share);
        let BoundedContribution { scope, controller, owners, .. } = *bounded;
        let opening_set = *opening_set;
        Ok((OpenedContribution { scope, controller, opening_set, share, total, owners }, claim))
    }

    /// Checks that the members' commitments open to the sum of their shares, cell by cell, for
    /// values and blindings. `consumer_pad` is the sum of the pads that the consumer removes.
    ///
    /// # Errors
    /// [`RowError`].
    pub fn row(
        &self,
        members: &[u32],
        opened: &[OpenedContribution],
        consumer_pad: Option<&MaskedShare>,
    ) -> Result<BoundedRow, RowError> {
        self.check_opened(members, opened)?;
        let cells = self.terms.cells().len();
        if consumer_pad.map(|pad| pad.is_for(cells)) != self.sealed.then_some(true) {
            return Err(RowError::Pad);
        }
        let (mut share, mut total) = (MaskedShare::zero(cells), vec![Commitment::default(); cells]);
        for one in opened {
            share.add(&one.share);
            add_cells(&mut total, &one.total);
        }
        consumer_pad.iter().for_each(|pad| share.subtract(pad));
        let values = opened_cells(&total, &share)?;
        let owners = opened.iter().map(|one| u64::from(one.owners)).sum();
        Ok(BoundedRow { values, owners, members: members.to_vec() })
    }

    /// A window whose row does not hold, for [`Blame`](crate::blame::Blame): as
    /// [`row`](Self::row) found, or as the consumer of a sealed plan says.
    ///
    /// # Errors
    /// [`RoundError`], if the shares are not one of each member of S.
    pub fn failed<'a>(
        &self,
        members: &[u32],
        opened: &'a [OpenedContribution],
    ) -> Result<FailedWindow<'a>, RoundError> {
        self.check_opened(members, opened)?;
        Ok(FailedWindow { opened, sealed: self.sealed, left_out: BTreeSet::new() })
    }

    /// One opened share of each member of S, of one window of these terms.
    fn check_opened(
        &self,
        members: &[u32],
        opened: &[OpenedContribution],
    ) -> Result<(), RoundError> {
        let first = opened.first().ok_or(RoundError::Members)?;
        self.check_round(&first.scope, members.iter().copied())?;
        let same = |one: &OpenedContribution| {
            (one.scope, one.opening_set) == (first.scope, first.opening_set)
        };
        let found = opened.iter().map(|one| one.controller);
        let all = found.eq(members.iter().copied()) && opened.iter().all(same);
        if all { Ok(()) } else { Err(RoundError::Members) }
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bases of proofs say nothing.
        f.debug_struct("Checker").field("terms", &self.terms.digest()).finish_non_exhaustive()
    }
}

impl FailedWindow<'_> {
    /// The same, where both ends of these edges had each other's differing statements with M, and so
    /// leave them out. A statement that has one is none of this round: otherwise a liar could cover
    /// itself with the same struck edge in each window, and would never lose another. The lower position
    /// is first.
    #[must_use]
    pub fn without(mut self, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        self.left_out.extend(edges);
        self
    }
}

impl BoundedContribution {
    /// Whose contribution it is.
    #[must_use]
    pub fn controller(&self) -> u32 {
        self.controller
    }
}

impl BoundedRow {
    /// One integer for each cell.
    #[must_use]
    pub fn values(&self) -> &[i128] {
        &self.values
    }

    /// Owners whose values the row adds up.
    #[must_use]
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The members of S.
    #[must_use]
    pub fn members(&self) -> &[u32] {
        &self.members
    }
}

/// Something that a value and a blinding are committed to in.
pub(crate) trait ValueCommitment: PartialEq {
    type Scalar;

    /// The commitment to a value.
    fn to(value: &Self::Scalar, blinding: &Self::Scalar) -> Self;

    /// Whether this is the commitment to a value.
    fn opens_to(&self, value: &Self::Scalar, blinding: &Self::Scalar) -> bool
    where
        Self: Sized,
    {
        *self == Self::to(value, blinding)
    }
}

impl ValueCommitment for Commitment {
    type Scalar = PublicScalar;

    fn to(value: &PublicScalar, blinding: &PublicScalar) -> Self {
        let (g, h) = (Element::base(), Element::second_base());
        let [value, blinding] = [value, blinding].map(SecretScalar::from_public);
        let sum = Element::combine(&[(&value, &g), (&blinding, &h)], &[], &[]);
        sum.map_or_else(|_| Commitment::default(), |sum| Commitment::of(&sum))
    }
}

/// Adds commitments cell by cell.
pub(crate) fn add_cells<C: AddAssign + Copy>(total: &mut [C], cells: &[C]) {
    total.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += *cell);
}

/// The cells in which a commitment is not to its value with its blinding. Each is compared alone, so values cannot
/// move between cells.
pub(crate) fn unopened<'a, C: ValueCommitment>(
    total: &'a [C],
    values: &'a [C::Scalar],
    blindings: &'a [C::Scalar],
) -> impl Iterator<Item = usize> {
    let cells = total.iter().zip(values.iter().zip(blindings)).enumerate();
    let wrong = cells.filter(|(_, (total, (value, blinding)))| !total.opens_to(value, blinding));
    wrong.map(|(cell, _)| cell)
}

fn opened_cells(total: &[Commitment], share: &MaskedShare) -> Result<Vec<i128>, RowError> {
    if let Some(cell) = unopened(total, &share.values, &share.blindings).next() {
        return Err(RowError::Cell { cell });
    }
    let integers = share.values.iter().map(PublicScalar::to_integer).enumerate();
    integers.map(|(cell, integer)| integer.ok_or(RowError::Cell { cell })).collect()
}

/// Ascending and different, as their sender has sorted them.
fn check_order(owners: &[CommittedCells]) -> Result<(), FaultError> {
    let first = |one: &CommittedCells| one.commitments.first().map(|first| *first.as_bytes());
    let ascending = owners.iter().is_sorted_by(|a, b| first(a) < first(b));
    if ascending { Ok(()) } else { Err(FaultError::Order) }
}

fn claim(
    checking: &RangeChecker,
    forms: &[Form],
    cells: &[Commitment],
    committed: &CommittedCells,
    bound: Digest,
) -> Option<Claim> {
    let proof = EncodedProof::from_bytes(&committed.proof, &checking.shape()).ok()?;
    let commitments: Vec<Commitment> = forms.iter().map(|form| form.commitment(cells)).collect();
    checking.claim(&commitments, &proof, bound)
}
