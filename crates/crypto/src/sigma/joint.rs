//! Joint proofs of several statements that share secrets. They have one challenge. Each proof can
//! be checked by a different verifier, who knows only a digest of each of the others.
//!
//! All statements have the same shape. The first secrets and equations of each are its own. The
//! rest is the same in all statements and proven once.

use super::{
    Opening, Proof, ProvingError, SecretScalar, Statement, absorb, encodings, nonces, scaled,
};
use crate::group::{Element, IdentityError, Multiple, PublicScalar};
use crate::labels;
use sha2::{Digest as _, Sha512};

/// SHA-512 of a statement's transcript and its commitments. The verifiers of the other statements
/// know only this of it.
pub type PartDigest = [u8; 64];

/// A statement to prove together with others.
pub struct JointStatement<'a> {
    /// The statement.
    pub statement: &'a Statement,
    /// Its witness. Its own secrets come first.
    pub witness: Vec<&'a SecretScalar>,
    /// The openings of elements that the prover knows.
    pub openings: Vec<Opening>,
}

/// How many secrets and equations are a statement's own, rather than shared.
#[derive(Clone, Copy)]
pub struct OwnCounts {
    /// Number of secrets.
    pub secrets: usize,
    /// Number of equations.
    pub equations: usize,
}

/// The position of a statement among those proven together, and the digests of the others. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointContext {
    /// The number of statements before it.
    pub position: usize,
    /// The others, in order.
    pub others: Vec<PartDigest>,
}

/// The common challenge: SHA-512 over the statements' digests, modulo the group order.
fn challenge(parts: &[PartDigest]) -> PublicScalar {
    let parts: Vec<&[u8]> = parts.iter().map(<[u8; 64]>::as_slice).collect();
    PublicScalar::from_hash(labels::PROOF_JOINT, &parts)
}

fn part_digest(mut transcript: Sha512, commitments: &[Element]) -> PartDigest {
    absorb(&mut transcript, &encodings(commitments));
    transcript.finalize().into()
}

impl JointContext {
    /// The challenge, for a verifier of this statement. `None` if `position` exceeds the number of
    /// others.
    pub(super) fn challenge(&self, own: Sha512, commitments: &[Element]) -> Option<PublicScalar> {
        let (before, after) = self.others.split_at_checked(self.position)?;
        let own = [part_digest(own, commitments)];
        Some(challenge(&[before, &own, after].concat()))
    }
}

/// Proves statements of one shape together. The time does not depend on the witnesses, which
/// differ only in each statement's own secrets.
///
/// # Errors
/// [`ProvingError`].
///
/// # Privacy
/// A verifier of one proof learns that its statement holds. A verifier of several also learns that
/// they were made together. A part digest hashes values that nobody else can guess.
pub fn prove_together(
    joined: &[JointStatement<'_>],
    own: OwnCounts,
    rng: &mut impl rand_core::CryptoRng,
) -> Result<Vec<(Proof, JointContext)>, ProvingError> {
    let fits = |one: &JointStatement<'_>| one.witness.len() == usize::from(one.statement.secrets);
    let secrets = joined.first().map_or(0, |first| first.witness.len());
    if !joined.iter().all(|one| fits(one) && one.witness.len() == secrets) || secrets < own.secrets
    {
        return Err(ProvingError::WitnessLength);
    }
    let nonces = Nonces::new(joined, own, secrets, rng);
    let commitments =
        commitments(joined, own, &nonces).map_err(|IdentityError| ProvingError::Identity)?;
    let parts = joined.iter().zip(&commitments);
    let parts: Vec<PartDigest> =
        parts.map(|(one, commitments)| part_digest(one.statement.prefix(), commitments)).collect();
    let challenge = challenge(&parts);
    let proofs =
        joined.iter().zip(commitments).enumerate().map(|(position, (one, commitments))| {
            let secrets = one.witness.iter().zip(nonces.of(position));
            let response = |(secret, nonce): (&&SecretScalar, &SecretScalar)| {
                SecretScalar::response(nonce.duplicate(), &challenge, secret)
            };
            let proof = Proof { commitments, responses: secrets.map(response).collect() };
            let mut others = parts.clone();
            others.remove(position);
            (proof, JointContext { position, others })
        });
    Ok(proofs.collect())
}

/// The nonces of each statement's own secrets, then those of the shared secrets. A secret has one
/// nonce, and therefore one response in all proofs.
struct Nonces {
    all: Vec<SecretScalar>,
    own: usize,
    shared: usize,
}

impl Nonces {
    fn new(
        joined: &[JointStatement<'_>],
        own: OwnCounts,
        secrets: usize,
        rng: &mut impl rand_core::CryptoRng,
    ) -> Self {
        let owned = joined.iter().flat_map(|one| one.witness.iter().take(own.secrets));
        let shared =
            joined.first().into_iter().flat_map(|one| one.witness.iter().skip(own.secrets));
        let witness: Vec<&SecretScalar> = owned.chain(shared).copied().collect();
        let mut statements = Sha512::new();
        joined.iter().for_each(|one| statements.update(one.statement.prefix().finalize()));
        let all = nonces(&witness, &statements, rng);
        Self { all, own: own.secrets, shared: secrets - own.secrets }
    }

    fn of(&self, position: usize) -> impl Iterator<Item = &SecretScalar> {
        let shared = self.all.len() - self.shared;
        self.all.iter().skip(position * self.own).take(self.own).chain(self.all.iter().skip(shared))
    }
}

/// The commitments of all statements. Shared ones are computed once, for the first statement.
fn commitments(
    joined: &[JointStatement<'_>],
    own: OwnCounts,
    nonces: &Nonces,
) -> Result<Vec<Vec<Element>>, IdentityError> {
    let mut sums = Vec::new();
    for (position, one) in joined.iter().enumerate() {
        let nonces: Vec<SecretScalar> = nonces.of(position).map(SecretScalar::duplicate).collect();
        let equations = if position == 0 { one.statement.equations.len() } else { own.equations };
        for equation in one.statement.equations.iter().take(equations) {
            sums.push((one.statement, scaled(equation, &nonces, &one.openings)));
        }
    }
    let multiples = sums.iter().map(|(statement, sum)| {
        sum.iter().map(|(at, by)| (by, statement.at(*at))).collect::<Vec<Multiple<'_>>>()
    });
    let multiples: Vec<Vec<Multiple<'_>>> = multiples.collect();
    let made = Element::combine_all(&multiples.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let equations = joined.first().map_or(0, |first| first.statement.equations.len());
    let (first, others) = made.split_at(equations.min(made.len()));
    let shared = first.get(own.equations..).ok_or(IdentityError)?;
    let others = others.chunks(own.equations.max(1)).map(|owned| [owned, shared].concat());
    Ok(std::iter::once(first.to_vec()).chain(others).collect())
}

#[cfg(test)]
mod tests;
