//! Checks proofs, one by one or in batches, with one multiplication of public scalars.

use super::{Equation, JointContext, Proof, Statement, challenge};
use crate::group::{Element, PublicScalar, vartime_sum_vanishes};
use crate::hash::wide_hash;
use crate::labels;
use curve25519_dalek::scalar::Scalar;
use std::collections::HashMap;

/// A statement and a claimed proof of it.
pub struct Claim {
    statement: Statement,
    proof: Proof,
    challenge: PublicScalar,
}

/// The positions of the claims in a batch that do not hold, ascending.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} of the proofs in the batch do not hold", .0.len())]
pub struct InvalidProofsError(pub Vec<usize>);

impl Claim {
    /// Combines a statement and a proof. The proof must have been
    /// [decoded](Proof::from_bytes) for a statement of the same shape. A proof of another
    /// shape never holds.
    #[must_use]
    pub fn new(statement: Statement, proof: Proof) -> Self {
        let challenge = challenge(statement.prefix(), &proof.commitments);
        Self { statement, proof, challenge }
    }

    /// Like [`Claim::new`], for a proof that was made [together](super::prove_together) with
    /// others and shares their challenge. `None` if the context is inconsistent.
    #[must_use]
    pub fn joint(statement: Statement, proof: Proof, context: &JointContext) -> Option<Self> {
        let challenge = context.challenge(statement.prefix(), &proof.commitments)?;
        Some(Self { statement, proof, challenge })
    }

    /// Whether the proof holds. The time depends on the values, which are public.
    #[must_use]
    pub fn holds(&self) -> bool {
        sum_vanishes(&[self], weights)
    }

    fn has_matching_shape(&self) -> bool {
        self.proof.commitments.len() == self.statement.equations.len()
            && self.proof.responses.len() == usize::from(self.statement.secrets)
    }
}

/// Checks many claims, for little more than the cost of the elements that they do not share.
///
/// Every equation of every claim gets a weight of 128 bits. It depends on all
/// challenges and all responses, so that nobody can make two errors cancel. If the sum
/// fails, halves are checked separately, down to single claims. k invalid claims among n
/// cost about 2k·log n checks of shrinking size.
///
/// # Errors
/// [`InvalidProofsError`] with exactly those claims for which [`Claim::holds`] is false.
pub fn check_all(claims: &[Claim]) -> Result<(), InvalidProofsError> {
    let numbered: Vec<(usize, &Claim)> = claims.iter().enumerate().collect();
    let mut culprits = Vec::new();
    bisect(&numbered, &mut culprits);
    if culprits.is_empty() { Ok(()) } else { Err(InvalidProofsError(culprits)) }
}

fn bisect(claims: &[(usize, &Claim)], culprits: &mut Vec<usize>) {
    let unnumbered: Vec<&Claim> = claims.iter().map(|(_, claim)| *claim).collect();
    if sum_vanishes(&unnumbered, weights) {
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
/// over all equations of all claims is the identity. Elements that occur several
/// times (bases, keys, contexts) are multiplied once.
fn sum_vanishes(claims: &[&Claim], weights: impl Fn(&[&Claim]) -> Vec<Scalar>) -> bool {
    if !claims.iter().all(|claim| claim.has_matching_shape()) {
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

/// A sum of multiples in which each element occurs once.
#[derive(Default)]
struct Sum {
    terms: Vec<(PublicScalar, Element)>,
    positions: HashMap<[u8; 32], usize>,
}

impl Sum {
    fn add(&mut self, element: &Element, scalar: Scalar) {
        let next = self.terms.len();
        let position = *self.positions.entry(*element.as_bytes()).or_insert(next);
        if position == next {
            self.terms.push((PublicScalar(scalar), *element));
        } else {
            self.terms[position].0.0 += scalar;
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

/// One weight of 128 bits per equation, from every response and every challenge. A challenge
/// in turn depends on its statement and commitments.
fn weights(claims: &[&Claim]) -> Vec<Scalar> {
    let mut bound = Vec::new();
    for claim in claims {
        bound.extend_from_slice(&claim.challenge.to_bytes());
        claim.proof.responses.iter().for_each(|r| bound.extend_from_slice(&r.to_bytes()));
    }
    let seed = wide_hash(labels::PROOF_BATCH, &[&bound]);
    let equations: usize = claims.iter().map(|claim| claim.statement.equations.len()).sum();
    let block = |j: usize| wide_hash(labels::PROOF_WEIGHTS, &[&seed, &(j as u64).to_be_bytes()]);
    let bytes: Vec<u8> = (0..equations.div_ceil(4)).flat_map(block).collect();
    let (words, _) = bytes.as_chunks::<16>();
    words.iter().take(equations).map(|word| Scalar::from(u128::from_le_bytes(*word))).collect()
}

#[cfg(test)]
mod tests;
