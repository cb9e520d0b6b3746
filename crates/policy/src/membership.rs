//! Who may collude in the list of a membership epoch, and into how many cohorts a list is
//! cut. `encrypted-stream/docs/next.md` has the derivation.
//!
//! The service chooses whom it calls. So a share of the list alone, α, bounds nothing: the
//! owner's policy also thinks of a number of colluders in the whole deployment.

use crate::fraction::Fraction;

/// How many colluding controllers of the whole deployment a policy thinks of, unless it
/// states another number.
pub const DEFAULT_COLLUDERS: u32 = 8;

/// The most members of a list that is not cut into cohorts, unless a plan states another
/// number.
pub const DEFAULT_COHORT: u32 = 4096;

/// The longest prefix of a lot that names a cohort.
pub const MAX_COHORT_BITS: u8 = 32;

/// A controller's cohort may hold more colluders than stated here with a probability of δ
/// times 2^−20: there are at most about a million cohorts in a plan's life.
const COHORTS_BITS: i32 = 20;

/// t: how many of `listed` controllers may collude with the service.
///
/// Never all of them: with `listed - 1` colluders a controller counts only its own owners.
#[must_use]
pub fn tolerated(listed: u32, alpha: Fraction, colluders: u32) -> u32 {
    if alpha.numerator == 0 || listed <= 1 {
        return 0;
    }
    let share = u32::try_from(alpha.floor_of(listed as usize)).unwrap_or(u32::MAX);
    share.max(colluders).max(1).min(listed - 1)
}

/// How many of `colluders` a cohort of `bits` bits may hold: the least x such that more have
/// lots with these first bits with a probability of at most 10^−`delta_exponent` · 2^−20.
///
/// The authority draws lots at random. The result depends on no list, so a service cannot
/// move it.
#[must_use]
pub fn cohort_colluders(colluders: u32, bits: u8, delta_exponent: u8) -> u32 {
    if bits == 0 || colluders == 0 {
        return colluders;
    }
    let bound = 10f64.powi(-i32::from(delta_exponent)) * 2f64.powi(-COHORTS_BITS);
    let mut tail = 0.0;
    for (x, ln_mass) in binomial(colluders, 2f64.powi(-i32::from(bits))).into_iter().rev() {
        tail += ln_mass.exp();
        if tail > bound {
            return x;
        }
    }
    0
}

/// The number of first bits of a lot that name a cohort, such that a cohort of `listed`
/// members has more than `cohort` only if its size is eight standard deviations off.
#[must_use]
pub fn cohort_bits(listed: u32, cohort: u32) -> u8 {
    if listed <= cohort {
        return 0;
    }
    let fits = |bits: &u8| {
        let expected = f64::from(listed) * 2f64.powi(-i32::from(*bits));
        expected + 8.0 * expected.sqrt() <= f64::from(cohort)
    };
    (1..MAX_COHORT_BITS).find(fits).unwrap_or(MAX_COHORT_BITS)
}

/// `ln P[Bin(n, p) = x]` for all x that are not vanishingly unlikely, ascending.
fn binomial(n: u32, p: f64) -> Vec<(u32, f64)> {
    const VANISHING: f64 = -700.0;
    let odds = p.ln() - (-p).ln_1p();
    let mut ln_mass = f64::from(n) * (-p).ln_1p();
    let mut masses = Vec::new();
    for x in 0..=n {
        if ln_mass > VANISHING {
            masses.push((x, ln_mass));
        } else if f64::from(x) > f64::from(n) * p {
            break;
        }
        ln_mass += (f64::from(n - x) / f64::from(x + 1)).ln() + odds;
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::min_opening;

    const HALF: Fraction = Fraction { numerator: 1, denominator: 2 };

    /// Listed, α, c, dropout; then t, the quorum if all answer, and the owners that a
    /// controller counts with this many owners each.
    #[test]
    fn small_lists_open_as_they_should() {
        let zero = Fraction::ZERO;
        let cases = [
            ((3, Fraction::THIRD, 1, Fraction::FIFTH, 1), (1, 3, 2)),
            ((36, Fraction::THIRD, DEFAULT_COLLUDERS, Fraction::FIFTH, 1), (12, 29, 24)),
            ((40, zero, DEFAULT_COLLUDERS, zero, 1), (0, 39, 40)),
            ((3, Fraction::THIRD, 1, Fraction::FIFTH, 10_000), (1, 3, 20_000)),
            ((1, Fraction::THIRD, DEFAULT_COLLUDERS, Fraction::FIFTH, 1_000), (0, 1, 1_000)),
        ];
        for ((listed, alpha, colluders, dropout, owners), (t, quorum, counted)) in cases {
            let tolerated = tolerated(listed, alpha, colluders);
            let opening = min_opening(listed, tolerated, listed, dropout);
            assert_eq!(
                (tolerated, opening, (listed - tolerated) * owners),
                (t, quorum, counted),
                "{listed} controllers"
            );
        }
    }

    #[test]
    fn colluders_of_the_deployment_bound_a_list_that_the_service_made_small() {
        assert_eq!(tolerated(100, Fraction::THIRD, 8), 33);
        assert_eq!(tolerated(20, Fraction::THIRD, 8), 8);
        assert_eq!(tolerated(9, Fraction::THIRD, 8), 8);
        assert_eq!(tolerated(8, Fraction::THIRD, 8), 7, "each counts only its own owners");
        assert_eq!(tolerated(2, HALF, 0), 1);
        assert_eq!(tolerated(0, HALF, 8), 0);
    }

    #[test]
    fn cohorts_hold_few_of_the_colluders_whatever_is_listed() {
        assert_eq!(cohort_colluders(33_333, 5, 9), 1304);
        assert_eq!(cohort_colluders(1000, 5, 9), 84);
        assert_eq!(cohort_colluders(8, 0, 9), 8);
        assert_eq!(cohort_colluders(8, 1, 9), 8, "all eight may be in one half");
        assert_eq!(cohort_colluders(0, 5, 9), 0);
        for bits in 0..20 {
            assert!(cohort_colluders(5000, bits + 1, 9) <= cohort_colluders(5000, bits, 9));
        }
    }

    #[test]
    fn a_list_is_cut_until_cohorts_are_small_enough() {
        let bits = |listed| cohort_bits(listed, DEFAULT_COHORT);
        assert_eq!([bits(0), bits(4096), bits(4097), bits(6000)], [0, 0, 1, 1]);
        assert_eq!([bits(7000), bits(7500), bits(100_000), bits(10_000_000)], [1, 2, 5, 12]);
        assert_eq!(cohort_bits(u32::MAX, 1), MAX_COHORT_BITS);
        assert_eq!(cohort_bits(2, 0), MAX_COHORT_BITS);
    }
}
