//! A controller's commitments to the values of its owners, and to its noise, and the proofs that
//! both are in range.
//!
//! Blindings and the randomness of proofs derive from a secret of the controller, from what is
//! stated, and from the values. So the same request gets the same bytes, and no two statements
//! share a nonce.

use crate::form::Form;
use crate::messages::{CommittedCells, Scope};
use crate::share::Share;
use crate::terms::{Cell, Terms};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_range_proof::{Commitment, Opening, RangeProver};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use zeroize::Zeroizing;

/// One owner's values in one window, one for each cell. Wiped when dropped, and never printed.
pub struct OwnerValues {
    owner: Digest,
    values: Zeroizing<Vec<i128>>,
}

/// The owners of a window whose values are in bounds: those that their controller counts in M, and
/// commits to. Only [`Committer::admit`] makes one.
pub struct AdmittedOwners {
    owners: Vec<OwnerValues>,
    left_out: Vec<Digest>,
    terms: Digest,
}

/// A controller's noise for one opening set, one value for each cell, within the plan's range. Wiped
/// when dropped.
pub struct Noise {
    values: Zeroizing<Vec<i128>>,
    terms: Digest,
}

/// Why values cannot be committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Not one value for each cell.
    #[error(
        "an owner, or the noise, has a number of values that differs from the plan's number of cells"
    )]
    Cells,
    /// Owners or noise were checked under other terms.
    #[error("the values were checked under other terms; check them under those of this plan")]
    Terms,
    /// An owner appears twice.
    #[error("an owner appears twice in one window; pass each owner once")]
    Twice {
        /// The owner.
        owner: Digest,
    },
    /// A commitment is the identity: a chance of 2^-252, or a broken secret.
    #[error("a commitment is the identity; check the controller's secret")]
    Identity,
}

/// What a controller needs to commit under the terms of a plan.
pub struct Committer {
    terms: Terms,
    secret: Secret<32>,
    owners: RangeProver,
    noise: RangeProver,
}

/// Values that are being committed to.
struct Draft {
    values: Zeroizing<Vec<i128>>,
    blindings: Vec<SecretScalar>,
    commitments: Vec<Element>,
}

impl OwnerValues {
    /// The values of an owner, which is named for its controller alone.
    #[must_use]
    pub fn new(owner: Digest, values: Vec<i128>) -> Self {
        Self { owner, values: Zeroizing::new(values) }
    }
}

impl AdmittedOwners {
    /// How many there are. A controller states this number before M is made.
    #[must_use]
    pub fn counted(&self) -> u32 {
        u32::try_from(self.owners.len()).unwrap_or(u32::MAX)
    }

    /// Owners that are out of bounds, in the order in which they were passed. Their controller leaves
    /// them out of the window, and their devices need a look.
    #[must_use]
    pub fn left_out(&self) -> &[Digest] {
        &self.left_out
    }
}

impl Noise {
    /// Noise that was drawn for one opening set. A draw out of the plan's range becomes the end of the
    /// range, so that no draw keeps a controller from opening. The chance of that is a part of
    /// the plan's δ.
    ///
    /// # Errors
    /// [`CommitError::Cells`].
    pub fn new(terms: &Terms, values: &[i128]) -> Result<Self, CommitError> {
        let cells = terms.cells();
        if values.len() != cells.len() {
            return Err(CommitError::Cells);
        }
        let within = |(cell, value): (&Cell, &i128)| {
            let most = i128::from(cell.noise);
            (*value).clamp(-most, most)
        };
        let values = Zeroizing::new(cells.iter().zip(values).map(within).collect());
        Ok(Self { values, terms: terms.digest() })
    }
}

impl Committer {
    /// The secret is of the epoch, and kept for nothing else.
    #[must_use]
    pub fn new(terms: Terms, secret: Secret<32>) -> Self {
        let (owners, noise) = (terms.owner_range(), terms.noise_range());
        Self { owners: RangeProver::new(owners), noise: RangeProver::new(noise), terms, secret }
    }

    /// The terms.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Of the owners with data, those that are in bounds. A controller does this before it states how
    /// many owners it has: M counts them, and with fewer commitments than M counts it would be at
    /// fault.
    ///
    /// # Errors
    /// [`CommitError::Cells`] or [`CommitError::Twice`].
    pub fn admit(&self, owners: Vec<OwnerValues>) -> Result<AdmittedOwners, CommitError> {
        check_once(&owners)?;
        let terms = self.terms.digest();
        let mut admitted = AdmittedOwners { owners: Vec::new(), left_out: Vec::new(), terms };
        for owner in owners {
            if self.is_in_bounds(&owner)? {
                admitted.owners.push(owner);
            } else {
                admitted.left_out.push(owner.owner);
            }
        }
        Ok(admitted)
    }

    /// Commits to the values of all admitted owners, and proves that they are in bounds. Returns the
    /// sum of values and blindings as well.
    ///
    /// # Privacy
    /// Commitments and proofs reveal nothing of the values, not even which belong to one owner in two
    /// windows. Their number is that of the owners.
    ///
    /// # Errors
    /// [`CommitError::Terms`], or [`CommitError::Identity`].
    pub fn owners(
        &self,
        scope: &Scope,
        controller: u32,
        admitted: &AdmittedOwners,
    ) -> Result<(Vec<CommittedCells>, Share), CommitError> {
        let (cells, owners) = (self.terms.cells(), &admitted.owners);
        self.check_terms(&admitted.terms)?;
        let scoped = scope.digest();
        let whose = |owner: &OwnerValues| {
            [&b"owner"[..], scoped.as_bytes(), owner.owner.as_bytes()].concat()
        };
        let drafts =
            owners.iter().map(|owner| self.draft(&whose(owner), controller, &owner.values));
        let mut drafts: Vec<Draft> = drafts.collect::<Result<_, _>>()?;
        drafts.sort_by_key(|draft| draft.commitments.first().map(|first| *first.as_bytes()));
        let all: Vec<&[Element]> =
            drafts.iter().map(|draft| draft.commitments.as_slice()).collect();
        let statement = owners_statement(scope, controller, &all);
        let (mut committed, mut sum) = (Vec::new(), Share::zero(cells.len()));
        for (at, draft) in (0_u32..).zip(drafts) {
            let bound = owner_statement(&statement, at);
            let forms = self.terms.owner_forms();
            committed.push(self.proven(&self.owners, forms, &draft, &bound)?);
            draft.add_to(&mut sum);
        }
        Ok((committed, sum))
    }

    /// Commits to noise for one opening, and proves that it is in range. Returns the noise as a
    /// share as well. None if the terms have no noise.
    ///
    /// # Errors
    /// [`CommitError::Terms`], or [`CommitError::Identity`].
    pub fn noise(
        &self,
        scope: &Scope,
        controller: u32,
        opening_set: &Digest,
        noise: &Noise,
    ) -> Result<(Option<CommittedCells>, Share), CommitError> {
        let cells = self.terms.cells();
        self.check_terms(&noise.terms)?;
        if !self.terms.has_noise() {
            return Ok((None, Share::zero(cells.len())));
        }
        let whose = [&b"noise"[..], scope.digest().as_bytes(), opening_set.as_bytes()].concat();
        let draft = self.draft(&whose, controller, &noise.values)?;
        let bound = noise_statement(scope, controller, opening_set, &draft.commitments);
        let committed = self.proven(&self.noise, self.terms.noise_forms(), &draft, &bound)?;
        let mut share = Share::zero(cells.len());
        draft.add_to(&mut share);
        Ok((Some(committed), share))
    }

    fn check_terms(&self, terms: &Digest) -> Result<(), CommitError> {
        if *terms == self.terms.digest() { Ok(()) } else { Err(CommitError::Terms) }
    }

    /// Cells and relations, and also what no proof says: that squares are those of some events. A device
    /// that states others would make a variance below zero in the row of all.
    fn is_in_bounds(&self, owner: &OwnerValues) -> Result<bool, CommitError> {
        let (cells, values) = (self.terms.cells(), &owner.values);
        if values.len() != cells.len() {
            return Err(CommitError::Cells);
        }
        let fits = |(cell, value): (&Cell, &i128)| (cell.lowest..=cell.highest).contains(value);
        let bits = self.terms.owner_range().shape.bits();
        let provable =
            |form: &Form| form.value(values).is_some_and(|value| u128::from(value) >> bits == 0);
        Ok(cells.iter().zip(values.iter()).all(fits)
            && self.terms.owner_forms().iter().all(provable)
            && self.terms.has_spread(values))
    }

    fn draft(&self, whose: &[u8], controller: u32, values: &[i128]) -> Result<Draft, CommitError> {
        let bytes = bytes_of(values);
        let blinding = |cell: u32| {
            let (controller, cell) = (controller.to_be_bytes(), cell.to_be_bytes());
            let parts: [&[u8]; 5] = [self.secret.expose(), whose, &controller, &cell, &bytes];
            SecretScalar::from_hash(labels::BOUNDED_BLINDING, &parts)
        };
        let blindings: Vec<SecretScalar> = (0..).zip(values).map(|(at, _)| blinding(at)).collect();
        let share = Share {
            values: values.iter().map(|value| SecretScalar::from_integer(*value)).collect(),
            blindings,
        };
        let commitments = share.commitments().map_err(|_| CommitError::Identity)?;
        Ok(Draft {
            values: Zeroizing::new(values.to_vec()),
            blindings: share.blindings,
            commitments,
        })
    }

    fn proven(
        &self,
        proving: &RangeProver,
        forms: &[Form],
        draft: &Draft,
        bound: &Digest,
    ) -> Result<CommittedCells, CommitError> {
        let cells: Vec<Commitment> = draft.commitments.iter().map(Commitment::of).collect();
        let commitments: Vec<Commitment> =
            forms.iter().map(|form| form.commitment(&cells)).collect();
        let opening = |form: &Form| {
            let value = form.value(&draft.values)?;
            Some(Opening::new(value, &form.blinding(&draft.blindings)))
        };
        // A vector that grows leaves what it held behind.
        let mut openings: Vec<Opening> = Vec::with_capacity(forms.len());
        for form in forms {
            openings.push(opening(form).ok_or(CommitError::Identity)?);
        }
        let mut rng = self.generator(draft, bound);
        let proof = proving.prove(openings, &commitments, bound, &mut rng);
        let proof = proof.ok_or(CommitError::Identity)?;
        Ok(CommittedCells {
            commitments: draft.commitments.clone(),
            proof: proof.as_bytes().to_vec(),
        })
    }

    /// The randomness of one proof: from secret, statement and witness.
    fn generator(&self, draft: &Draft, bound: &Digest) -> ChaCha20Rng {
        let mut witness = bytes_of(&draft.values);
        draft.blindings.iter().for_each(|by| witness.extend_from_slice(by.expose().expose()));
        let parts: [&[u8]; 2] = [bound.as_bytes(), &witness];
        let seed = derive::<32>(self.secret.expose(), labels::BOUNDED_NONCE, &parts);
        ChaCha20Rng::from_seed(*seed.expose())
    }
}

impl Draft {
    fn add_to(self, sum: &mut Share) {
        let values = self.values.iter().map(|value| SecretScalar::from_integer(*value)).collect();
        sum.add(&Share { values, blindings: self.blindings });
    }
}

fn bytes_of(values: &[i128]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(48 * values.len()));
    values.iter().for_each(|value| bytes.extend_from_slice(&value.to_be_bytes()));
    bytes
}

fn check_once(owners: &[OwnerValues]) -> Result<(), CommitError> {
    let mut seen: Vec<Digest> = owners.iter().map(|owner| owner.owner).collect();
    seen.sort_unstable();
    let twice = seen.windows(2).find(|pair| pair.first() == pair.last());
    let owner = twice.and_then(|pair| pair.first());
    owner.map_or(Ok(()), |owner| Err(CommitError::Twice { owner: *owner }))
}

/// What all proofs of a controller's owners are bound to.
pub(crate) fn owners_statement(scope: &Scope, controller: u32, owners: &[&[Element]]) -> Digest {
    let elements = owners.iter().flat_map(|of_one| of_one.iter());
    let elements: Vec<u8> = elements.flat_map(|element| *element.as_bytes()).collect();
    let (scope, controller) = (scope.digest(), controller.to_be_bytes());
    let parts: [&[u8]; 3] = [scope.as_bytes(), &controller, &elements];
    labelled_hash(labels::BOUNDED_OWNERS, &parts)
}

/// What one owner's proof is bound to: its place among those of its controller.
pub(crate) fn owner_statement(statement: &Digest, at: u32) -> Digest {
    labelled_hash(labels::BOUNDED_OWNER, &[statement.as_bytes(), &at.to_be_bytes()])
}

/// What the proof of a controller's noise is bound to.
pub(crate) fn noise_statement(
    scope: &Scope,
    controller: u32,
    opening_set: &Digest,
    commitments: &[Element],
) -> Digest {
    let elements: Vec<u8> = commitments.iter().flat_map(|element| *element.as_bytes()).collect();
    let (scope, controller) = (scope.digest(), controller.to_be_bytes());
    let parts: [&[u8]; 4] = [scope.as_bytes(), &controller, opening_set.as_bytes(), &elements];
    labelled_hash(labels::BOUNDED_NOISE, &parts)
}
