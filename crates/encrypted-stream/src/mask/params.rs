//! How sparse the mask graphs of a plan may be (Zeph §3.4).
//!
//! Each pair of controllers shares a mask in a round with probability `2^-b`. The
//! graph on the honest controllers must stay connected, or the service can open a
//! part of the population by itself. This file bounds the probability that it is
//! not connected, and selects the sparsest graph that keeps the bound.

use crate::mask::cuts::{self, Cuts};
use crate::mask::log_sum::LnSum;
use crate::mask::quorum::Roster;
use alpheus_policy::plan::{MaskStrategy, Plan};

/// The largest `b` in use. An epoch then has 6 million rounds, beyond any population
/// whose controllers can all agree on keys.
pub const MAX_BITS: u8 = 20;

/// Rosters smaller than this use the clique unless the query names a sparse graph,
/// because there is little to save.
pub const SPARSE_FROM: u32 = 100;

/// Rounds in an epoch: `⌊128/b⌋·2^b`, one for each value of each `b`-bit segment of a
/// 128-bit PRF output. `bits` is clamped to 1..=[`MAX_BITS`].
#[must_use]
pub fn rounds(bits: u8) -> u64 {
    let bits = bits.clamp(1, MAX_BITS);
    u64::from(segments(bits)) << bits
}

/// Segments in a 128-bit PRF output.
pub(crate) fn segments(bits: u8) -> u8 {
    128 / bits.clamp(1, MAX_BITS)
}

/// `ln F(b)`: the natural logarithm of a bound on the probability that the graph on
/// `honest` controllers is not connected in some round of an epoch.
///
/// `F(b) = W·Σ_{j=1}^{⌊n/2⌋} C(n,j)(1−p)^{j(n−j)}`, `p = 2^-b`. A graph is not
/// connected exactly if some set of at most half its nodes has no edge to the rest.
/// A set of `j` nodes has `j(n−j)` possible edges to the rest. The result is negative
/// infinity for fewer than two controllers.
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

/// The largest `b` whose failure bound is at most `10^-delta_exponent` for this many
/// honest controllers; `None` if even `b = 1` is too sparse.
///
/// The bound grows with `b`, so the search ends at the first `b` that is too sparse.
/// A relative margin of 10⁻⁶ covers rounding, so that machines with different
/// logarithm functions agree.
#[must_use]
pub fn largest_b(honest: u32, delta_exponent: u8) -> Option<u8> {
    if honest <= 1 {
        return None;
    }
    let ln_delta = -f64::from(delta_exponent) * std::f64::consts::LN_10 - 1e-6;
    (1..=MAX_BITS).take_while(|bits| ln_failure_bound(*bits, honest) <= ln_delta).last()
}

/// The mask graph that a query asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaskPreference {
    /// Every pair in every window.
    Clique,
    /// A sparse graph, drawn again for each window.
    Dream,
    /// Sparse graphs, drawn one epoch at a time.
    Epoch,
    /// A sparse graph of which each controller draws a part.
    Neighbours,
}

/// Why a plan's masks are unsafe: no strategy would be safe, or the chosen one is weaker
/// than the bounds allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnsafeMasksError {
    /// The controllers that may collude leave no honest one in the smallest
    /// admissible opening.
    #[error(
        "if {tolerated} of {controllers} controllers may collude, an opening may have no honest one; lower alpha or add controllers"
    )]
    NoHonestFloor {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
    },
    /// The plan has several controllers but no masks, or a single one with masks.
    #[error("the mask strategy is for {}, but the plan names {controllers} controllers", if *.controllers == 1 { "several controllers" } else { "a single one" })]
    WrongNumber {
        /// N.
        controllers: u32,
    },
    /// The graphs are sparser than the bound allows.
    #[error("mask graphs with b = {bits} are too sparse for {honest} honest controllers: {}", match .allowed { Some(b) => format!("at most b = {b} is allowed"), None => "use the clique".into() })]
    TooSparse {
        /// The plan's b.
        bits: u8,
        /// n.
        honest: u32,
        /// The largest allowed b, if any.
        allowed: Option<u8>,
    },
    /// Each controller picks too few others, or more may be cut off than stated.
    #[error("m = {} picks with r = {} are too few if {tolerated} of {controllers} controllers may collude: {}", .stated.picks, .stated.cut_off, match .least { Some(Cuts { picks, cut_off }) => format!("m = {picks} with r = {cut_off} is enough"), None => "use the clique".into() })]
    TooFewPicks {
        /// N.
        controllers: u32,
        /// t.
        tolerated: u32,
        /// The plan's m and r.
        stated: Cuts,
        /// The least m that suffices, with its least r, if any does. A larger m may not suffice: of
        /// 4 or 5 picks one may be missing, of 6 two.
        least: Option<Cuts>,
    },
}

/// A plan's δ is at most 10^-this. A query can make failures of masks rarer, but not
/// more frequent.
pub const MIN_DELTA_EXPONENT: u8 = 9;

/// Chooses the mask strategy of a plan with this roster.
///
/// Without a preference, one controller has no masks, fewer than [`SPARSE_FROM`] use
/// `Clique`, and all others use `Epoch`. `Neighbours` is used only if the query asks for
/// it: it leaves out the r largest members beside the colluders, r grows with the roster,
/// and nothing here tells how many owners will have data in a window. So its windows may
/// all fail where those of the other strategies open. A preference for a sparse graph
/// becomes `Clique` where none keeps the bound, and one for `Neighbours` also where the
/// owners without the discounted members are fewer than the minimum population.
/// `Dream` uses the `b` of `Epoch`, so δ bounds the same number of rounds, ⌊128/b⌋·2^b,
/// for both.
///
/// # Errors
/// [`UnsafeMasksError::NoHonestFloor`] if colluders alone could make up an opening.
pub fn choose(
    preference: Option<MaskPreference>,
    roster: &Roster<'_>,
    delta_exponent: u8,
) -> Result<MaskStrategy, UnsafeMasksError> {
    if roster.controllers() == 1 {
        return Ok(MaskStrategy::Single);
    }
    let honest = roster.honest_floor()?;
    let small = preference.is_none() && roster.controllers() < SPARSE_FROM;
    if small || preference == Some(MaskPreference::Clique) {
        return Ok(MaskStrategy::Clique);
    }
    let exponent = delta_exponent.max(MIN_DELTA_EXPONENT);
    if preference == Some(MaskPreference::Neighbours) {
        let least = cuts::least(roster.controllers(), roster.tolerated(), exponent);
        let fits = least.filter(|Cuts { cut_off, .. }| roster.suffices_without(*cut_off));
        return Ok(match fits {
            Some(Cuts { picks, cut_off }) => MaskStrategy::Neighbours { picks, cut_off },
            None => MaskStrategy::Clique,
        });
    }
    Ok(match (largest_b(honest, exponent), preference) {
        (None, _) => MaskStrategy::Clique,
        (Some(bits), Some(MaskPreference::Dream)) => MaskStrategy::Dream { bits },
        (Some(bits), _) => MaskStrategy::Epoch { bits },
    })
}

/// Checks that a plan's mask strategy keeps the bounds. Every controller does this
/// before it takes part. A denser graph than necessary is always allowed.
///
/// # Errors
/// [`UnsafeMasksError`], which names the allowed number.
pub fn check(plan: &Plan) -> Result<(), UnsafeMasksError> {
    let owners = Roster::owners_per_controller(plan);
    let roster = Roster::of(plan, &owners);
    let (controllers, single) = (roster.controllers(), plan.masks == MaskStrategy::Single);
    if single != (controllers == 1) {
        return Err(UnsafeMasksError::WrongNumber { controllers });
    }
    if single {
        return Ok(());
    }
    let honest = roster.honest_floor()?;
    match plan.masks {
        MaskStrategy::Dream { bits } | MaskStrategy::Epoch { bits } => {
            let allowed = largest_b(honest, plan.delta_exponent.max(MIN_DELTA_EXPONENT));
            let dense_enough = bits >= 1 && allowed.is_some_and(|most| bits <= most);
            if dense_enough {
                Ok(())
            } else {
                Err(UnsafeMasksError::TooSparse { bits, honest, allowed })
            }
        }
        MaskStrategy::Neighbours { picks, cut_off } => {
            let exponent = plan.delta_exponent.max(MIN_DELTA_EXPONENT);
            let (stated, tolerated) = (Cuts { picks, cut_off }, roster.tolerated());
            if cuts::keeps(controllers, tolerated, stated, exponent) {
                return Ok(());
            }
            let least = cuts::least(controllers, tolerated, exponent);
            Err(UnsafeMasksError::TooFewPicks { controllers, tolerated, stated, least })
        }
        MaskStrategy::Single | MaskStrategy::Clique => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::membership::tolerated;
    use alpheus_policy::plan::Fraction;

    #[test]
    fn b_matches_the_design() {
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
    fn the_bound_grows_with_b_so_the_search_may_stop() {
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
        preference: Option<MaskPreference>,
        controllers: usize,
        minimum: u32,
        alpha: Fraction,
    ) -> MaskStrategy {
        let owners = vec![1; controllers];
        let tolerated = tolerated(u32::try_from(controllers).unwrap(), alpha, 1);
        choose(preference, &Roster::new(&owners, tolerated, minimum), 9).unwrap()
    }

    #[test]
    fn the_clique_is_the_fallback_where_no_sparse_graph_is_safe() {
        let half = Fraction { numerator: 1, denominator: 2 };
        assert_eq!(chosen(Some(MaskPreference::Epoch), 1, 1, half), MaskStrategy::Single);
        assert_eq!(chosen(Some(MaskPreference::Epoch), 2, 2, half), MaskStrategy::Clique);
        assert_eq!(chosen(Some(MaskPreference::Epoch), 40, 10, half), MaskStrategy::Clique);
        assert_eq!(chosen(None, 99, 99, Fraction::ZERO), MaskStrategy::Clique);
        assert_eq!(
            chosen(Some(MaskPreference::Epoch), 99, 99, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 1 }
        );
        assert_eq!(
            chosen(None, 500, 10, Fraction::THIRD),
            chosen(Some(MaskPreference::Epoch), 500, 10, Fraction::THIRD)
        );
        assert_eq!(
            chosen(Some(MaskPreference::Clique), 1000, 10, Fraction::THIRD),
            MaskStrategy::Clique
        );
    }

    #[test]
    fn a_minimum_population_makes_the_graph_sparser() {
        assert_eq!(
            chosen(Some(MaskPreference::Epoch), 207, 200, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 2 }
        );
        assert_eq!(
            chosen(Some(MaskPreference::Epoch), 207, 1, Fraction::ZERO),
            MaskStrategy::Epoch { bits: 1 }
        );
        assert_eq!(
            chosen(Some(MaskPreference::Dream), 207, 200, Fraction::ZERO),
            MaskStrategy::Dream { bits: 2 }
        );
    }

    #[test]
    fn controllers_pick_neighbours_where_the_query_asks_and_their_owners_suffice() {
        let preferred = |controllers, minimum| {
            chosen(Some(MaskPreference::Neighbours), controllers, minimum, Fraction::THIRD)
        };
        let neighbours = preferred(1000, 10);
        assert!(matches!(neighbours, MaskStrategy::Neighbours { picks: 50..80, cut_off: 5..15 }));
        assert_eq!(preferred(1000, 650), neighbours);
        // 667 less the r that are cut off are below 660.
        assert_eq!(preferred(1000, 660), MaskStrategy::Clique);
        assert_eq!(preferred(20, 5), MaskStrategy::Clique);
    }

    /// Of 1,350 people some forty have data in an hour. `Neighbours` would leave out more than
    /// that, and open nothing.
    #[test]
    fn by_default_no_member_is_left_out_beside_the_colluders() {
        for controllers in [100, 501, 1_350, 10_000] {
            let by_default = chosen(None, controllers, 1, Fraction::ZERO);
            assert!(matches!(by_default, MaskStrategy::Epoch { .. }), "{controllers}");
        }
    }

    #[test]
    fn colluders_alone_never_make_up_an_opening() {
        let refused = choose(None, &Roster::new(&[1, 1, 1], 3, 1), 9);
        assert_eq!(refused, Err(UnsafeMasksError::NoHonestFloor { controllers: 3, tolerated: 3 }));
    }
}
