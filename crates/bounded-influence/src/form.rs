//! Linear forms of an owner's cells, which its range proof shows to be small and not negative.

use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_range_proof::Commitment;

/// Σ factor · cell + constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// One for each cell.
    factors: Vec<i128>,
    constant: i128,
    /// constant · G.
    shift: Commitment,
}

impl Form {
    /// The form of these cells and factors. Other cells do not count.
    pub(crate) fn new(cells: usize, parts: &[(usize, i128)], constant: i128) -> Self {
        let factor = |at| parts.iter().filter(|part| part.0 == at).map(|part| part.1).sum();
        let shift = Commitment::of(&Element::base()).vartime_times(constant);
        Self { factors: (0..cells).map(factor).collect(), constant, shift }
    }

    /// Its value, if it fits. The time does not depend on values for which it does. Values that are
    /// out of bounds can overflow, and then open no commitment: nothing can be proven of them.
    pub(crate) fn value(&self, values: &[i128]) -> Option<u64> {
        let terms = self.factors.iter().zip(values);
        let sum = terms.fold(self.constant, |sum, (factor, value)| {
            sum.wrapping_add(factor.wrapping_mul(*value))
        });
        u64::try_from(sum).ok()
    }

    /// The blinding of its commitment.
    pub(crate) fn blinding(&self, blindings: &[SecretScalar]) -> SecretScalar {
        let terms = self.factors.iter().zip(blindings).filter(|(factor, _)| **factor != 0);
        terms.fold(SecretScalar::from_small(0), |sum, (factor, blinding)| {
            sum.plus(&SecretScalar::from_integer(*factor).times(blinding))
        })
    }

    /// Its commitment, of commitments to the cells.
    pub(crate) fn commitment(&self, cells: &[Commitment]) -> Commitment {
        let terms = self.factors.iter().zip(cells).filter(|(factor, _)| **factor != 0);
        terms.fold(self.shift, |sum, (factor, cell)| match factor {
            1 => sum + *cell,
            -1 => sum - *cell,
            factor => sum + cell.vartime_times(*factor),
        })
    }

    /// Factors, then the constant.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.factors.iter().chain([&self.constant]);
        numbers.flat_map(|number| number.to_be_bytes()).collect()
    }
}
