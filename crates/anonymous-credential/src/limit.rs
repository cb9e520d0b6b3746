//! How often a credential may be presented in one context, and how an index below that limit is
//! written as a sum of public bases with secret bits.

use alpheus_crypto::group::SecretScalar;
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeGreater};

/// L, from 1 to 2^16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Limit(u32);

/// A limit out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a limit; use a number from 1 to 65536")]
pub struct LimitError(pub u32);

impl Limit {
    /// One presentation in each context, as an access pass has.
    pub const ONE: Self = Self(1);

    /// L as a number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The number of bases of an index: ⌈log₂ L⌉, so none for L = 1.
    #[must_use]
    pub fn bits(self) -> usize {
        usize::try_from(u32::BITS - (self.0 - 1).leading_zeros()).unwrap_or(0)
    }

    /// B_j: powers of two, except for the last, which brings the sum of all to L − 1. So the
    /// sums of subsets are exactly the numbers below L.
    #[must_use]
    pub fn bases(self) -> Vec<u32> {
        let bits = self.bits();
        let base = |j: usize| if j + 1 == bits { self.0 - (1 << j) } else { 1 << j };
        (0..bits).map(base).collect()
    }

    /// b_j with Σ B_j·b_j = index, in a time that does not depend on the index.
    pub(crate) fn decompose(self, index: u32) -> Vec<SecretScalar> {
        let bases = self.bases();
        let mut rest = index;
        let mut bits = Vec::with_capacity(bases.len());
        if let Some((last, _)) = bases.split_last() {
            // Below 2^(bits−1) the powers of two suffice.
            let top = 1_u32 << (bases.len() - 1);
            let takes = rest.ct_gt(&(top - 1));
            rest = u32::conditional_select(&rest, &rest.wrapping_sub(*last), takes);
            bits.extend((0..bases.len() - 1).map(|j| SecretScalar::from_small((rest >> j) & 1)));
            bits.push(bit(takes));
        }
        bits
    }
}

fn bit(choice: Choice) -> SecretScalar {
    SecretScalar::from_small(u32::from(choice.unwrap_u8()))
}

impl TryFrom<u32> for Limit {
    type Error = LimitError;

    fn try_from(limit: u32) -> Result<Self, LimitError> {
        if (1..=1 << 16).contains(&limit) { Ok(Self(limit)) } else { Err(LimitError(limit)) }
    }
}

impl From<Limit> for u32 {
    fn from(limit: Limit) -> Self {
        limit.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(bit: &SecretScalar) -> bool {
        bit.expose().expose()[0] == 1
    }

    #[test]
    fn indices_below_the_limit_and_no_others_are_sums_of_bases() {
        for limit in (1..=70).chain([127, 128, 129, 1000]) {
            let limit = Limit::try_from(limit).unwrap();
            let bases = limit.bases();
            assert_eq!(bases.len(), limit.bits());
            assert_eq!(bases.iter().sum::<u32>(), limit.get() - 1);
            for index in 0..limit.get() {
                let bits = limit.decompose(index);
                let sum: u32 =
                    bits.iter().zip(&bases).filter(|(b, _)| is_one(b)).map(|(_, b)| b).sum();
                assert_eq!(sum, index, "limit {}", limit.get());
            }
        }
    }

    #[test]
    fn a_limit_is_from_1_to_65536() {
        assert_eq!(Limit::try_from(0), Err(LimitError(0)));
        assert_eq!(Limit::try_from(65_537), Err(LimitError(65_537)));
        assert_eq!((Limit::ONE.bits(), Limit::ONE.bases()), (0, vec![]));
        assert_eq!(Limit::try_from(1 << 16).map(Limit::bits), Ok(16));
    }
}
