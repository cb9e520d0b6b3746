//! How sparse the mask graphs of a plan may be (Zeph §3.4).
//!
//! Each pair of controllers shares a mask in a round with probability `2^-b`.
//! The graph on the honest controllers must stay connected, or the service can
//! open a part of the population by itself. This file bounds the chance that it
//! does not, and takes the sparsest graph that keeps the bound.

use crate::mask::cuts::{self, Cuts};
use crate::mask::lnsum::LnSum;
use crate::mask::quorum::{Roster, narrow};
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan};

/// Greatest `b` ever used: an epoch then has 6 million rounds, which is beyond
/// any population whose controllers can know each other.
pub const MAX_BITS: u8 = 20;

/// Rosters larger than this use `Neighbours` unless asked otherwise: agreeing on
/// keys with every other is what costs most there.
pub const NEIGHBOURS_ABOVE: u32 = 500;

/// Rosters smaller than this use the clique unless a sparse graph is asked for:
/// there is little to save.
pub const SPARSE_FROM: u32 = 100;

/// Rounds in an epoch: `⌊128/b⌋·2^b`, one for each value of each `b`-bit
/// segment of a 128-bit PRF output. `bits` from 1 to [`MAX_BITS`]; beyond that
/// range the nearest end is taken.
#[must_use]
pub fn rounds(bits: u8) -> u64 {
    let bits = bits.clamp(1, MAX_BITS);
    u64::from(segments(bits)) << bits
}

/// Segments in a 128-bit PRF output.
pub(crate) fn segments(bits: u8) -> u8 {
    128 / bits.clamp(1, MAX_BITS)
}

/// `ln F(b)`: the natural logarithm of a bound on the chance that in any round
/// of an epoch the graph on `honest` controllers is not connected.
///
/// `F(b) = W·Σ_{j=1}^{⌊n/2⌋} C(n,j)(1−p)^{j(n−j)}`, `p = 2^-b`: a graph is not
/// connected exactly if some set of at most half of it has no edge to the rest,
/// and such a set of `j` has `j(n−j)` chances. Negative infinity for fewer than
/// two.
#[must_use]
pub fn ln_failure_bound(bits: u8, honest: u32) -> f64 {
    let n = f64::from(honest);
    let ln_absent = (-(-f64::from(bits)).exp2()).ln_1p();
    let (mut ln_choose, mut sum) = (0.0, LnSum::default());
    for j in 1..=honest / 2 {
        let j = f64::from(j);
        ln_choose += ((n - j + 1.0) / j).ln();
        sum.add(ln_choose + j * (n - j) * ln_absent);
    }
    let ln_rounds = f64::from(segments(bits)).ln() + f64::from(bits) * std::f64::consts::LN_2;
    ln_rounds + sum.ln()
}

/// The largest `b` before the failure bound exceeds `10^-delta_exponent`, for
/// this many honest controllers; none if even `b = 1` is too sparse.
///
/// The search ends at the first `b` that is too sparse: the bound grows with
/// `b`. It leaves a relative margin of 10⁻⁶ for rounding, so that machines with
/// different logarithms agree.
#[must_use]
pub fn largest_b(honest: u32, delta_exponent: u8) -> Option<u8> {
    if honest <= 1 {
        return None;
    }
    let ln_delta = -f64::from(delta_exponent) * std::f64::consts::LN_10 - 1e-6;
    (1..=MAX_BITS).take_while(|bits| ln_failure_bound(*bits, honest) <= ln_delta).last()
}

/// What a planner asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Every pair, every window.
    Clique,
    /// A sparse graph drawn anew each window.
    Dream,
    /// Sparse graphs drawn an epoch at a time.
    Epoch,
    /// A sparse graph that each controller draws its part of.
    Neighbours,
}

/// A plan that no choice of masks makes safe, or one with a weaker choice than
/// its bounds allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnsafeMasks {
    /// The controllers that may collude leave no honest one in the smallest
    /// admissible opening.
    #[error(
        "with {controllers} controllers of which {tolerated} may collude, an opening may hold no honest one: lower alpha or add controllers"
    )]
    NoHonestFloor {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
    },
    /// A plan of several controllers without masks, or masks for a single one.
    #[error("the mask strategy is for {}, and the plan names {controllers} controllers", if *.controllers == 1 { "several controllers" } else { "a single one" })]
    WrongNumber {
        /// N.
        controllers: u32,
    },
    /// The graphs are sparser than the bound allows.
    #[error("mask graphs with b = {bits} are too sparse for {honest} honest controllers: {}", match .allowed { Some(b) => format!("at most b = {b} is allowed"), None => "use the clique".into() })]
    TooSparse {
        /// b of the plan.
        bits: u8,
        /// n.
        honest: u32,
        /// The largest b allowed, if any.
        allowed: Option<u8>,
    },
    /// Each controller picks too few others, or more may be cut off than is said.
    #[error("picks of m = {} with r = {} are too few for {controllers} controllers of which {tolerated} may collude: {}", .stated.picks, .stated.cut_off, match .least { Some(Cuts { picks, cut_off }) => format!("m = {picks} with r = {cut_off} is enough"), None => "use the clique".into() })]
    TooFewPicks {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
        /// m and r of the plan.
        stated: Cuts,
        /// The least m, and the least r for it, if any will do. A larger m need not: of 4 or 5
        /// picks one may be missing, of 6 two.
        least: Option<Cuts>,
    },
}

/// δ of a plan is at most 10^-this: whoever asks for the plan may want masks to
/// fail less often, not more.
pub const LEAST_DELTA_EXPONENT: u8 = 9;

/// The mask strategy of a plan with this roster.
///
/// Without a wish: none for one controller, `Clique` below [`SPARSE_FROM`],
/// `Neighbours` above [`NEIGHBOURS_ABOVE`] if its owners make up the minimum population
/// without the members that it discounts and those that may drop out, else `Epoch`.
/// Whoever wishes for `Neighbours` gets it also where nobody may be missing. A wish for
/// a sparse graph becomes `Clique` where none keeps the bound. `Dream` takes the `b` of
/// `Epoch`, so that δ bounds the same number of rounds, ⌊128/b⌋·2^b, for both.
///
/// # Errors
/// [`UnsafeMasks::NoHonestFloor`] if colluders alone could make up an opening.
pub fn choose(
    wanted: Option<Wanted>,
    roster: &Roster<'_>,
    dropout: Fraction,
    delta_exponent: u8,
) -> Result<MaskStrategy, UnsafeMasks> {
    if roster.controllers() == 1 {
        return Ok(MaskStrategy::Single);
    }
    let honest = roster.honest_floor()?;
    let small = wanted.is_none() && roster.controllers() < SPARSE_FROM;
    if small || wanted == Some(Wanted::Clique) {
        return Ok(MaskStrategy::Clique);
    }
    let exponent = delta_exponent.max(LEAST_DELTA_EXPONENT);
    let many = wanted.is_none() && roster.controllers() > NEIGHBOURS_ABOVE;
    if many || wanted == Some(Wanted::Neighbours) {
        let dropped = dropout.min(Fraction::TENTH).floor_of(roster.controllers() as usize);
        let missing = if many { narrow(dropped) } else { 0 };
        match cuts::least(roster.controllers(), roster.tolerated(), exponent) {
            Some(Cuts { picks, cut_off })
                if roster.suffices_without(cut_off.saturating_add(missing)) =>
            {
                return Ok(MaskStrategy::Neighbours { picks, cut_off });
            }
            _ if wanted.is_some() => return Ok(MaskStrategy::Clique),
            _ => {}
        }
    }
    Ok(match (largest_b(honest, exponent), wanted) {
        (None, _) => MaskStrategy::Clique,
        (Some(bits), Some(Wanted::Dream)) => MaskStrategy::Dream { bits },
        (Some(bits), _) => MaskStrategy::Epoch { bits },
    })
}

/// Whether a plan's mask strategy keeps the bounds: every controller asks this
/// before it takes part. A denser graph than needed is always allowed.
///
/// # Errors
/// [`UnsafeMasks`], which names the number that would be allowed.
pub fn check(plan: &Plan) -> Result<(), UnsafeMasks> {
    let owners = Roster::owners_per_controller(plan);
    let roster = Roster::of(plan, &owners);
    let (controllers, single) = (roster.controllers(), plan.masks == MaskStrategy::Single);
    if single != (controllers == 1) {
        return Err(UnsafeMasks::WrongNumber { controllers });
    }
    if single {
        return Ok(());
    }
    let honest = roster.honest_floor()?;
    match plan.masks {
        MaskStrategy::Dream { bits } | MaskStrategy::Epoch { bits } => {
            let allowed = largest_b(honest, plan.delta_exponent.max(LEAST_DELTA_EXPONENT));
            let dense_enough = bits >= 1 && allowed.is_some_and(|most| bits <= most);
            if dense_enough {
                Ok(())
            } else {
                Err(UnsafeMasks::TooSparse { bits, honest, allowed })
            }
        }
        MaskStrategy::Neighbours { picks, cut_off } => {
            let exponent = plan.delta_exponent.max(LEAST_DELTA_EXPONENT);
            let (stated, tolerated) = (Cuts { picks, cut_off }, roster.tolerated());
            if cuts::keeps(controllers, tolerated, stated, exponent) {
                return Ok(());
            }
            let least = cuts::least(controllers, tolerated, exponent);
            Err(UnsafeMasks::TooFewPicks { controllers, tolerated, stated, least })
        }
        MaskStrategy::Single | MaskStrategy::Clique => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_is_as_the_design_computed_it() {
        assert_eq!(largest_b(5_000, 9), Some(7));
        assert_eq!(rounds(7), 2304);
        assert_eq!(9_999 / (1 << 7), 78, "expected degree");
        let table = [(100, 1), (200, 2), (500, 3), (1000, 4), (2000, 5), (5000, 6), (100_000, 10)];
        for (controllers, bits) in table {
            assert_eq!(largest_b(controllers / 2, 7), Some(bits), "N = {controllers}");
        }
    }

    #[test]
    fn the_bound_counts_every_cut_of_a_small_graph() {
        // n = 4, b = 1: 256·(4·2^-3 + 6·2^-4), by hand.
        let by_hand = 256.0 * (4.0 / 8.0 + 6.0 / 16.0);
        assert!((ln_failure_bound(1, 4).exp() - by_hand).abs() < 1e-9);
        assert_eq!(ln_failure_bound(3, 1), f64::NEG_INFINITY);
        assert!(ln_failure_bound(10, 1_000_000).is_finite());
    }

    #[test]
    fn the_bound_grows_with_b_so_that_the_search_may_stop() {
        for honest in [2, 3, 10, 50, 500, 5000] {
            let bounds: Vec<f64> = (1..=MAX_BITS).map(|b| ln_failure_bound(b, honest)).collect();
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "n = {honest}");
        }
    }

    #[test]
    fn too_few_honest_controllers_leave_only_the_clique() {
        for honest in 0..38 {
            assert_eq!(largest_b(honest, 7), None, "n = {honest}");
        }
        assert_eq!(largest_b(38, 7), Some(1));
    }

    fn chosen(
        wanted: Option<Wanted>,
        controllers: usize,
        minimum: u32,
        alpha: Fraction,
    ) -> MaskStrategy {
        let owners = vec![1; controllers];
        choose(wanted, &Roster::new(&owners, alpha, minimum), Fraction::FIFTH, 9).unwrap()
    }

    #[test]
    fn the_clique_stands_in_where_a_bound_asks_for_it() {
        let half = Fraction { numerator: 1, denominator: 2 };
        assert_eq!(chosen(Some(Wanted::Epoch), 1, 1, half), MaskStrategy::Single);
        assert_eq!(chosen(Some(Wanted::Epoch), 2, 2, half), MaskStrategy::Clique);
        assert_eq!(chosen(Some(Wanted::Epoch), 40, 10, half), MaskStrategy::Clique);
        assert_eq!(chosen(None, 99, 99, Fraction::ZERO), MaskStrategy::Clique);
        assert_eq!(
            chosen(Some(Wanted::Epoch), 99, 99, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 1 }
        );
        assert_eq!(
            chosen(None, 500, 10, Fraction::THIRD),
            chosen(Some(Wanted::Epoch), 500, 10, Fraction::THIRD)
        );
        assert_eq!(chosen(Some(Wanted::Clique), 1000, 10, Fraction::THIRD), MaskStrategy::Clique);
    }

    #[test]
    fn a_minimum_population_makes_the_graph_sparser() {
        assert_eq!(
            chosen(Some(Wanted::Epoch), 207, 200, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 2 }
        );
        assert_eq!(
            chosen(Some(Wanted::Epoch), 207, 1, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 1 }
        );
        assert_eq!(
            chosen(Some(Wanted::Dream), 207, 200, Fraction::ZERO),
            MaskStrategy::Dream { bits: 2 }
        );
    }

    #[test]
    fn many_controllers_pick_neighbours_where_their_owners_suffice() {
        let neighbours = chosen(Some(Wanted::Neighbours), 1000, 10, Fraction::THIRD);
        assert!(matches!(neighbours, MaskStrategy::Neighbours { picks: 50..80, cut_off: 5..15 }));
        assert_eq!(chosen(None, 1000, 10, Fraction::THIRD), neighbours);
        assert_eq!(chosen(None, 1000, 550, Fraction::THIRD), neighbours);
        // 667 less the r that are cut off and the 100 that may drop out is below 560: the
        // epoch graph loses nobody. Whoever asks may do without those that drop out.
        let epoch = chosen(None, 1000, 560, Fraction::THIRD);
        assert!(matches!(epoch, MaskStrategy::Epoch { .. }), "{epoch}");
        assert_eq!(chosen(Some(Wanted::Neighbours), 1000, 650, Fraction::THIRD), neighbours);
        let wished = chosen(Some(Wanted::Neighbours), 1000, 660, Fraction::THIRD);
        assert_eq!(wished, MaskStrategy::Clique);
        assert_eq!(chosen(Some(Wanted::Neighbours), 20, 5, Fraction::THIRD), MaskStrategy::Clique);
    }

    #[test]
    fn colluders_alone_never_make_up_an_opening() {
        let all = Fraction { numerator: 1, denominator: 1 };
        let refused = choose(None, &Roster::new(&[1, 1, 1], all, 1), Fraction::FIFTH, 9);
        assert_eq!(refused, Err(UnsafeMasks::NoHonestFloor { controllers: 3, tolerated: 3 }));
    }
}
