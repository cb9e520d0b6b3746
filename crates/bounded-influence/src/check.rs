//! The checks of a bounded window: commitments before the opening set is fixed, openings, and the
//! row. Anybody can make them, from signed messages and public terms.

use crate::commit::{noise_statement, owner_statement, owners_statement};
use crate::form::Form;
use crate::messages::{Committed, Contribution, MaskedShare, Opening, Scope};
use crate::terms::Terms;
use alpheus_crypto::group::{Element, PublicScalar, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Verified;
use alpheus_range_proof::{Checking, Claim, Commitment, Encoded, culprits};

/// What one controller did wrong. Nobody who keeps to the protocol does any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum FaultError {
    /// The number of scalars or commitments is not that of the plan.
    #[error("its message has another number of scalars or commitments than the plan has cells")]
    Cells,
    /// More or fewer owners than the membership counts, or more than are listed.
    #[error("it commits to another number of owners than the membership counts or the plan lists")]
    Owners,
    /// Owners' commitments are not ascending, so that one may be there twice.
    #[error("its owners' commitments are not in ascending order, or one is there twice")]
    Order,
    /// A range proof does not hold: an owner may be out of bounds.
    #[error("a range proof of its owners does not hold")]
    Range,
    /// The range proof of its noise does not hold, or is missing.
    #[error("the range proof of its noise is missing or does not hold")]
    Noise,
}

/// A message that does not hold, and who signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller at position {controller} is at fault: {fault}")]
pub struct FaultyError {
    /// Its position in the roster.
    pub controller: u32,
    /// What is wrong.
    pub fault: FaultError,
}

/// What the contributions to a window are.
#[derive(Clone, Debug, Default)]
pub struct Contributions {
    /// Those that are in bounds.
    pub bounded: Vec<Bounded>,
    /// Those that are not.
    pub faulty: Vec<FaultyError>,
    /// Members in whose place there is a message of another window, membership or sender. It says
    /// nothing of them: anybody can send it again.
    pub misplaced: Vec<u32>,
}

/// Why the openings of a window do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{} openings do not hold, and {} belong to another round; leave their senders out of later windows, or ask them again", faulty.len(), misplaced.len())]
pub struct OpeningsError {
    /// Those that do not hold.
    pub faulty: Vec<FaultyError>,
    /// Members in whose place there is a message of another round or sender.
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
pub struct Bounded {
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
pub struct Opened {
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

/// Why there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Not one opened share of each member of S, of one window.
    #[error("the shares are not one of each member of the opening set, for one window")]
    Members,
    /// The commitments do not open to the row.
    #[error(
        "the commitments do not open to the row in cell {cell}; ask the members for their edges to find who is at fault"
    )]
    Cell {
        /// The cell.
        cell: usize,
    },
}

/// What a checker needs under the terms of a plan.
pub struct Checker {
    terms: Terms,
    owners: Checking,
    noise: Checking,
}

impl Checker {
    /// Computes the bases of proofs.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        let (owners, noise) = (terms.owner_range(), terms.noise_range());
        Self { owners: Checking::new(owners), noise: Checking::new(noise), terms }
    }

    /// The terms.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Checks contributions in one batch, before S is fixed. What does not hold names its sender, and
    /// costs nobody else anything.
    #[must_use]
    pub fn contributions(
        &self,
        scope: &Scope,
        signed: &[(Member, Verified<Contribution>)],
    ) -> Contributions {
        let mut found = Contributions::default();
        let (mut claims, mut whose) = (Vec::new(), Vec::new());
        for (member, contribution) in signed {
            let controller = member.controller;
            match self.contribution(scope, member, contribution) {
                Ok((checked, of_one)) => {
                    whose.extend(of_one.iter().map(|_| controller));
                    claims.extend(of_one);
                    found.bounded.push(checked);
                }
                Err(Refusal::Misplaced) => found.misplaced.push(controller),
                Err(Refusal::FaultyError(fault)) => {
                    found.faulty.push(FaultyError { controller, fault })
                }
            }
        }
        for controller in names(&claims, &whose) {
            found.bounded.retain(|checked| checked.controller != controller);
            found.faulty.push(FaultyError { controller, fault: FaultError::Range });
        }
        found
    }

    /// Everything but the proofs, which are returned as claims.
    fn contribution(
        &self,
        scope: &Scope,
        member: &Member,
        message: &Verified<Contribution>,
    ) -> Result<(Bounded, Vec<Claim>), Refusal> {
        if message.scope != *scope || message.controller != member.controller {
            return Err(Refusal::Misplaced);
        }
        if scope.terms != self.terms.digest() || !message.share.is_for(self.terms.cells().len()) {
            return Err(FaultError::Cells.into());
        }
        let found = u32::try_from(message.owners.len()).ok();
        if found != Some(member.counted) || member.counted > member.listed {
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
            total.iter_mut().zip(&cells).for_each(|(sum, cell)| *sum += *cell);
        }
        let bounded = Bounded {
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
    fn cells(&self, owner: &Committed) -> Option<Vec<Commitment>> {
        let fits = owner.commitments.len() == self.terms.cells().len();
        fits.then(|| owner.commitments.iter().map(Commitment::of).collect())
    }

    /// Checks the openings of members of S. What does not hold fails the window, and names its
    /// sender.
    ///
    /// # Errors
    /// [`OpeningsError`], with all that do not hold.
    pub fn openings(
        &self,
        opening_set: &Digest,
        signed: &[(Bounded, Verified<Opening>)],
    ) -> Result<Vec<Opened>, OpeningsError> {
        let (mut opened, mut error) = (Vec::new(), OpeningsError::default());
        let (mut claims, mut whose) = (Vec::new(), Vec::new());
        for (bounded, opening) in signed {
            let controller = bounded.controller;
            match self.opening(bounded, opening_set, opening) {
                Ok((checked, claim)) => {
                    whose.extend(claim.iter().map(|_| controller));
                    claims.extend(claim);
                    opened.push(checked);
                }
                Err(Refusal::Misplaced) => error.misplaced.push(controller),
                Err(Refusal::FaultyError(fault)) => {
                    error.faulty.push(FaultyError { controller, fault })
                }
            }
        }
        for controller in names(&claims, &whose) {
            error.faulty.push(FaultyError { controller, fault: FaultError::Noise });
        }
        if error == OpeningsError::default() { Ok(opened) } else { Err(error) }
    }

    fn opening(
        &self,
        bounded: &Bounded,
        opening_set: &Digest,
        message: &Verified<Opening>,
    ) -> Result<(Opened, Option<Claim>), Refusal> {
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
        let Bounded { scope, controller, owners, .. } = *bounded;
        let opening_set = *opening_set;
        Ok((Opened { scope, controller, opening_set, share, total, owners }, claim))
    }

    /// Checks that the members' commitments open to the sum of their shares, cell by cell, for
    /// values and blindings. `consumer_pad` is the sum of the pads that the consumer removes.
    ///
    /// # Errors
    /// [`RowError`].
    pub fn row(
        &self,
        members: &[u32],
        opened: &[Opened],
        consumer_pad: Option<&MaskedShare>,
    ) -> Result<BoundedRow, RowError> {
        let found: Vec<u32> = opened.iter().map(|one| one.controller).collect();
        let round = opened.first().map(|one| (one.scope, one.opening_set));
        let same = |one: &Opened| Some((one.scope, one.opening_set)) == round;
        if found != members || !members.is_sorted_by(|a, b| a < b) || !opened.iter().all(same) {
            return Err(RowError::Members);
        }
        let cells = self.terms.cells().len();
        let (mut share, mut total) = (MaskedShare::zero(cells), vec![Commitment::default(); cells]);
        for one in opened {
            share.add(&one.share);
            total.iter_mut().zip(&one.total).for_each(|(sum, cell)| *sum += *cell);
        }
        consumer_pad.iter().for_each(|pad| share.subtract(pad));
        let values = opened_cells(&total, &share)?;
        let owners = opened.iter().map(|one| u64::from(one.owners)).sum();
        Ok(BoundedRow { values, owners, members: found })
    }
}

impl Bounded {
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
pub(crate) trait Committing: PartialEq {
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

impl Committing for Commitment {
    type Scalar = PublicScalar;

    fn to(value: &PublicScalar, blinding: &PublicScalar) -> Self {
        let (g, h) = (Element::base(), Element::second_base());
        let [value, blinding] = [value, blinding].map(SecretScalar::from_public);
        let sum = Element::combine(&[(&value, &g), (&blinding, &h)], &[], &[]);
        sum.map_or_else(|_| Commitment::default(), |sum| Commitment::of(&sum))
    }
}

fn opened_cells(total: &[Commitment], share: &MaskedShare) -> Result<Vec<i128>, RowError> {
    let scalars = share.values.iter().zip(&share.blindings);
    let cells = total.iter().zip(scalars).enumerate();
    let cells = cells.map(|(cell, (total, (value, blinding)))| {
        let integer = total.opens_to(value, blinding).then(|| value.to_integer());
        integer.flatten().ok_or(RowError::Cell { cell })
    });
    cells.collect()
}

/// Ascending and different, as their sender has sorted them.
fn check_order(owners: &[Committed]) -> Result<(), FaultError> {
    let first = |one: &Committed| one.commitments.first().map(|first| *first.as_bytes());
    let ascending = owners.iter().is_sorted_by(|a, b| first(a) < first(b));
    if ascending { Ok(()) } else { Err(FaultError::Order) }
}

fn claim(
    checking: &Checking,
    forms: &[Form],
    cells: &[Commitment],
    committed: &Committed,
    bound: Digest,
) -> Option<Claim> {
    let proof = Encoded::from_bytes(&committed.proof, &checking.shape()).ok()?;
    let commitments: Vec<Commitment> = forms.iter().map(|form| form.commitment(cells)).collect();
    checking.claim(&commitments, &proof, bound)
}

/// The senders of claims that do not hold, each once.
fn names(claims: &[Claim], whose: &[u32]) -> Vec<u32> {
    let mut names: Vec<u32> =
        culprits(claims).iter().filter_map(|at| whose.get(*at)).copied().collect();
    names.dedup();
    names
}
