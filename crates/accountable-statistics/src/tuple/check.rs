//! Checking tuples, one by one and in batches.

use super::proof::{range, statement};
use super::{Binding, Ciphertexts, Terms, Tuple};
use crate::error::TupleError;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sigma::{Claim, check_all};

/// Tuples per batch. More cost memory and save no time.
const TOGETHER: usize = 256;

/// Checks tuples under some terms. It holds tables: make one and keep it.
pub struct Checker {
    terms: Terms,
    range: range::RangeChecker,
}

/// A tuple whose proofs are valid under known terms for a known binding. Nothing else counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedTuple {
    tuple: Tuple,
    binding: Binding,
    terms: Digest,
}

impl Checker {
    /// A checker under some terms.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { range: range::RangeChecker::new(&terms), terms }
    }

    /// The terms that it checks under.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Checks a tuple.
    ///
    /// # Errors
    /// [`TupleError`].
    pub fn check(&self, binding: Binding, tuple: Tuple) -> Result<CheckedTuple, TupleError> {
        self.check_batch(vec![(binding, tuple)]).pop().unwrap_or(Err(TupleError::Statement))
    }

    /// Checks tuples together, for little more than the cost of their own elements. Each gets its
    /// own verdict, in order. Weights depend on all that is checked, so that no two errors can be
    /// made to cancel.
    ///
    /// A tuple decoded for another interval is rejected.
    pub fn check_batch(
        &self,
        tuples: Vec<(Binding, Tuple)>,
    ) -> Vec<Result<CheckedTuple, TupleError>> {
        let refusals: Vec<Option<TupleError>> =
            tuples.chunks(TOGETHER).flat_map(|chunk| self.refusals(chunk)).collect();
        let verdict = |((binding, tuple), refusal): ((Binding, Tuple), Option<TupleError>)| {
            let terms = *self.terms.digest();
            refusal.map_or(Ok(CheckedTuple { tuple, binding, terms }), Err)
        };
        tuples.into_iter().zip(refusals).map(verdict).collect()
    }

    /// One verdict for each.
    fn refusals(&self, tuples: &[(Binding, Tuple)]) -> Vec<Option<TupleError>> {
        let mut refusals = vec![None; tuples.len()];
        self.check_statements(tuples, &mut refusals);
        self.check_ranges(tuples, &mut refusals);
        refusals
    }

    fn check_statements(&self, tuples: &[(Binding, Tuple)], refusals: &mut [Option<TupleError>]) {
        let claim = |(binding, tuple): &(Binding, Tuple)| {
            let statement = statement::statement(&self.terms, binding, &tuple.ciphertexts);
            Claim::new(statement, tuple.proof.clone())
        };
        let claims: Vec<Claim> = tuples.iter().map(claim).collect();
        if let Err(culprits) = check_all(&claims) {
            let culprits = culprits.0.into_iter();
            culprits.for_each(|at| refuse(refusals, at, TupleError::Statement));
        }
        for (at, (_, tuple)) in tuples.iter().enumerate() {
            if tuple.ciphertexts.square.is_some() != self.terms.interval().square() {
                refuse(refusals, at, TupleError::Statement);
            }
        }
    }

    /// Of tuples that are not rejected yet.
    fn check_ranges(&self, tuples: &[(Binding, Tuple)], refusals: &mut [Option<TupleError>]) {
        let (mut claims, mut places) = (Vec::with_capacity(tuples.len()), Vec::new());
        for (at, (binding, tuple)) in tuples.iter().enumerate() {
            if refusals.get(at).is_some_and(Option::is_some) {
                continue;
            }
            let bound = range::bound(&self.terms, binding, &tuple.ciphertexts, &tuple.proof);
            match self.range.claim(&tuple.ciphertexts, &tuple.range, bound) {
                Some(claim) => {
                    claims.push(vec![claim]);
                    places.push(at);
                }
                None => refuse(refusals, at, TupleError::Range),
            }
        }
        for at in range::culprits(&claims) {
            places.get(at).into_iter().for_each(|at| refuse(refusals, *at, TupleError::Range));
        }
    }
}

fn refuse(refusals: &mut [Option<TupleError>], at: usize, why: TupleError) {
    if let Some(refusal) = refusals.get_mut(at) {
        *refusal = Some(why);
    }
}

impl CheckedTuple {
    /// What it is bound to.
    #[must_use]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The tuple.
    #[must_use]
    pub fn tuple(&self) -> &Tuple {
        &self.tuple
    }

    /// The digest of the terms that it was checked under.
    #[must_use]
    pub fn terms(&self) -> &Digest {
        &self.terms
    }

    pub(crate) fn ciphertexts(&self) -> &Ciphertexts {
        &self.tuple.ciphertexts
    }
}
