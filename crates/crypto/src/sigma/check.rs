//! Checking proofs, alone and together, in one multiplication of public scalars.

use super::{Beside, Equation, Proof, Statement, challenge};
use crate::group::{Element, PublicScalar, vartime_sum_vanishes};
use crate::hash::wide;
use crate::labels;
use curve25519_dalek::scalar::Scalar;
use std::collections::HashMap;

/// A statement and the proof that somebody gave of it.
pub struct Claim {
    statement: Statement,
    proof: Proof,
    challenge: PublicScalar,
}

/// Which claims of a batch do not hold, by position, ascending.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of the proofs do not hold", .0.len())]
pub struct Culprits(pub Vec<usize>);

impl Claim {
    /// Puts a statement and a proof together. The proof must be
    /// [decoded](Proof::from_bytes) for a statement of this shape; one of
    /// another never holds.
    #[must_use]
    pub fn new(statement: Statement, proof: Proof) -> Self {
        let challenge = challenge(statement.prefix(), &proof.commitments);
        Self { statement, proof, challenge }
    }

    /// The same of a proof that was made [together](super::prove_together) with others: its
    /// challenge is theirs, too.
    #[must_use]
    pub fn beside(statement: Statement, proof: Proof, beside: &Beside) -> Option<Self> {
        let challenge = beside.challenge(statement.prefix(), &proof.commitments)?;
        Some(Self { statement, proof, challenge })
    }

    /// Whether the proof holds. Takes variable time, of public values.
    #[must_use]
    pub fn holds(&self) -> bool {
        together(&[self], weights)
    }

    fn has_the_shape(&self) -> bool {
        self.proof.commitments.len() == self.statement.equations.len()
            && self.proof.responses.len() == usize::from(self.statement.secrets)
    }
}

/// Checks many claims for little more than the cost of their own elements.
///
/// Every equation of every claim gets a weight of 128 bits that depends on all
/// challenges and all responses, so that no two errors can be made to cancel.
/// If the sum fails, halves are checked on their own until single claims are
/// left: k culprits among n cost some 2k·log n checks of shrinking size.
///
/// # Errors
/// [`Culprits`], exactly those that [`Claim::holds`] refuses.
pub fn check_all(claims: &[Claim]) -> Result<(), Culprits> {
    let numbered: Vec<(usize, &Claim)> = claims.iter().enumerate().collect();
    let mut culprits = Vec::new();
    bisect(&numbered, &mut culprits);
    if culprits.is_empty() { Ok(()) } else { Err(Culprits(culprits)) }
}

fn bisect(claims: &[(usize, &Claim)], culprits: &mut Vec<usize>) {
    let bare: Vec<&Claim> = claims.iter().map(|(_, claim)| *claim).collect();
    if together(&bare, weights) {
        return;
    }
    if let [(position, _)] = claims {
        culprits.push(*position);
        return;
    }
    let (left, right) = claims.split_at(claims.len() / 2);
    bisect(left, culprits);
    bisect(right, culprits);
}

/// Whether Σ w·(commitment + challenge·image − Σ coefficient·response·element)
/// over all equations of all claims is the identity. Elements that occur again
/// and again (bases, keys, contexts) are multiplied once.
fn together(claims: &[&Claim], weights: impl Fn(&[&Claim]) -> Vec<Scalar>) -> bool {
    if !claims.iter().all(|claim| claim.has_the_shape()) {
        return false;
    }
    let mut sum = Sum::default();
    let mut weights = weights(claims).into_iter();
    for claim in claims {
        for (equation, commitment) in claim.statement.equations.iter().zip(&claim.proof.commitments)
        {
            let Some(weight) = weights.next() else { return false };
            sum.add(commitment, weight);
            sum.add_equation(claim, equation, weight);
        }
    }
    vartime_sum_vanishes(&sum.terms)
}

/// A sum of multiples, each element once.
#[derive(Default)]
struct Sum {
    terms: Vec<(PublicScalar, Element)>,
    places: HashMap<[u8; 32], usize>,
}

impl Sum {
    fn add(&mut self, element: &Element, scalar: Scalar) {
        let next = self.terms.len();
        let place = *self.places.entry(*element.as_bytes()).or_insert(next);
        if place == next {
            self.terms.push((PublicScalar(scalar), *element));
        } else {
            self.terms[place].0.0 += scalar;
        }
    }

    fn add_equation(&mut self, claim: &Claim, equation: &Equation, weight: Scalar) {
        self.add(claim.statement.at(equation.image), weight * claim.challenge.0);
        for (coefficient, secret, element) in &equation.terms {
            let response = claim.proof.responses[usize::from(secret.0)].0;
            let scaled = match coefficient {
                1 => -weight * response,
                -1 => weight * response,
                other => -weight * response * PublicScalar::of(*other).0,
            };
            self.add(claim.statement.at(*element), scaled);
        }
    }
}

/// One weight of 128 bits for each equation, from every challenge (and through
/// it every statement and commitment) and every response.
fn weights(claims: &[&Claim]) -> Vec<Scalar> {
    let mut bound = Vec::new();
    for claim in claims {
        bound.extend_from_slice(&claim.challenge.to_bytes());
        claim.proof.responses.iter().for_each(|r| bound.extend_from_slice(&r.to_bytes()));
    }
    let seed = wide(labels::PROOF_BATCH, &[&bound]);
    let equations: usize = claims.iter().map(|claim| claim.statement.equations.len()).sum();
    let block = |j: usize| wide(labels::PROOF_WEIGHTS, &[&seed, &(j as u64).to_be_bytes()]);
    let bytes: Vec<u8> = (0..equations.div_ceil(4)).flat_map(block).collect();
    let (words, _) = bytes.as_chunks::<16>();
    words.iter().take(equations).map(|word| Scalar::from(u128::from_le_bytes(*word))).collect()
}

#[cfg(test)]
mod tests;
