//! Proofs of several statements by one challenge, about secrets that they share: each is checked
//! by another verifier, who knows of the others nothing but a digest.
//!
//! Statements have the same shape. The first secrets and equations of each are its own; what
//! follows is the same in all, and proven once.

use super::{
    NotProven, Opening, Proof, SecretScalar, Statement, absorb, encodings, nonces, scaled,
};
use crate::group::{Element, Multiple, PublicScalar, Vanished};
use crate::labels;
use sha2::{Digest as _, Sha512};

/// SHA-512 of one statement's transcript and its commitments: what the others' verifiers know of
/// it.
pub type Part = [u8; 64];

/// One of several statements that are proven together.
pub struct Joined<'a> {
    /// The statement.
    pub statement: &'a Statement,
    /// Its witness: first the secrets that are its own.
    pub witness: Vec<&'a SecretScalar>,
    /// What the prover knows elements of it to be.
    pub openings: Vec<Opening>,
}

/// How many of each statement's secrets and equations are its own.
#[derive(Clone, Copy)]
pub struct Own {
    /// Secrets.
    pub secrets: usize,
    /// Equations.
    pub equations: usize,
}

/// The place of a statement among those that are proven together, and what is known of the
/// others: public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// How many come before it.
    pub place: usize,
    /// The others, in order.
    pub others: Vec<Part>,
}

/// One challenge for all: SHA-512 over their parts, modulo the group order.
fn challenge(parts: &[Part]) -> PublicScalar {
    let parts: Vec<&[u8]> = parts.iter().map(<[u8; 64]>::as_slice).collect();
    PublicScalar::hashed(labels::PROOF_TOGETHER, &parts)
}

fn part(mut transcript: Sha512, commitments: &[Element]) -> Part {
    absorb(&mut transcript, &encodings(commitments));
    transcript.finalize().into()
}

impl Beside {
    /// The challenge, for who has this statement and its commitments. None if there are not as
    /// many others as come before it.
    pub(super) fn challenge(&self, own: Sha512, commitments: &[Element]) -> Option<PublicScalar> {
        let (before, after) = self.others.split_at_checked(self.place)?;
        let own = [part(own, commitments)];
        Some(challenge(&[before, &own, after].concat()))
    }
}

/// Proves statements of one shape together, in a time that depends on no witness. Their witnesses
/// are alike but for the secrets that are each one's own.
///
/// # Errors
/// [`NotProven`].
///
/// # Privacy
/// Whoever sees one of the proofs learns that its statement holds; whoever sees several, that
/// they were made together. A part is a hash of what nobody else can guess.
pub fn prove_together(
    joined: &[Joined<'_>],
    own: Own,
    rng: &mut impl rand_core::CryptoRng,
) -> Result<Vec<(Proof, Beside)>, NotProven> {
    let fits = |one: &Joined<'_>| one.witness.len() == usize::from(one.statement.secrets);
    let same = joined.first().map_or(0, |first| first.witness.len());
    if !joined.iter().all(|one| fits(one) && one.witness.len() == same) || same < own.secrets {
        return Err(NotProven::WitnessLength);
    }
    let nonces = Nonces::new(joined, own, same, rng);
    let commitments = commitments(joined, own, &nonces).map_err(|Vanished| NotProven::Vanished)?;
    let parts = joined.iter().zip(&commitments);
    let parts: Vec<Part> =
        parts.map(|(one, commitments)| part(one.statement.prefix(), commitments)).collect();
    let challenge = challenge(&parts);
    let proofs = joined.iter().zip(commitments).enumerate().map(|(place, (one, commitments))| {
        let secrets = one.witness.iter().zip(nonces.of(place));
        let response = |(secret, nonce): (&&SecretScalar, &SecretScalar)| {
            SecretScalar::response(nonce.duplicate(), &challenge, secret)
        };
        let proof = Proof { commitments, responses: secrets.map(response).collect() };
        let mut others = parts.clone();
        others.remove(place);
        (proof, Beside { place, others })
    });
    Ok(proofs.collect())
}

/// Of each statement's own secrets, then of those that all share: one secret has one nonce, and
/// one response.
struct Nonces {
    all: Vec<SecretScalar>,
    own: usize,
    shared: usize,
}

impl Nonces {
    fn new(
        joined: &[Joined<'_>],
        own: Own,
        same: usize,
        rng: &mut impl rand_core::CryptoRng,
    ) -> Self {
        let owned = joined.iter().flat_map(|one| one.witness.iter().take(own.secrets));
        let shared =
            joined.first().into_iter().flat_map(|one| one.witness.iter().skip(own.secrets));
        let witness: Vec<&SecretScalar> = owned.chain(shared).copied().collect();
        let mut statements = Sha512::new();
        joined.iter().for_each(|one| statements.update(one.statement.prefix().finalize()));
        let all = nonces(&witness, &statements, rng);
        Self { all, own: own.secrets, shared: same - own.secrets }
    }

    fn of(&self, place: usize) -> impl Iterator<Item = &SecretScalar> {
        let shared = self.all.len() - self.shared;
        self.all.iter().skip(place * self.own).take(self.own).chain(self.all.iter().skip(shared))
    }
}

/// All of the first statement's, and each one's own.
fn commitments(
    joined: &[Joined<'_>],
    own: Own,
    nonces: &Nonces,
) -> Result<Vec<Vec<Element>>, Vanished> {
    let mut sums = Vec::new();
    for (place, one) in joined.iter().enumerate() {
        let nonces: Vec<SecretScalar> = nonces.of(place).map(SecretScalar::duplicate).collect();
        let equations = if place == 0 { one.statement.equations.len() } else { own.equations };
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
    let shared = first.get(own.equations..).ok_or(Vanished)?;
    let others = others.chunks(own.equations.max(1)).map(|owned| [owned, shared].concat());
    Ok(std::iter::once(first.to_vec()).chain(others).collect())
}

#[cfg(test)]
mod tests;
