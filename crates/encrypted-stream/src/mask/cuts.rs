//! How many picks `Neighbours` needs, and how many honest members drops may cut
//! off. It is a union bound over every way to cut the graph (after Bell, Bonawitz,
//! Gascón, Lepoint, Raykova: *Secure Single-Server Aggregation with
//! (Poly)Logarithmic Overhead*, CCS 2020, section 3). `docs/protocol.md`,
//! "Neighbours", has the derivation.
//!
//! Of N controllers t collude and n = N − t do not. Each picks m of the N − 1 others
//! and answers only if ⌈(1 − ρ)m⌉ of its picks are in S. A set A of answering
//! controllers opens by itself if none of its picks is an honest member outside A.
//! Two sums bound the probability that some such A leaves out more than r:
//!
//! - *alone*: A has at most n/4 members, and each needs ⌈(1 − ρ)m⌉ picks among A and
//!   the t colluders.
//! - *cut off*: A is larger, B of more than r members is left out, and X is dropped.
//!   Nobody in A picks a member of B, and each has at most ⌊ρm⌋ picks in X.

use crate::mask::log_sum::{LnSum, ln_choose};
use alpheus_policy::plan::needed_picks;
use alpheus_policy::quorum::majority;

/// The number of rosters that a controller makes picks for in its lifetime. Each is
/// another draw for a service that hopes for a bad graph.
pub const ROSTERS: u32 = 8192;

/// The largest number of controllers in such a plan. Up to here the error of the
/// logarithms below is far less than [`MARGIN`].
pub const MAX_CONTROLLERS: u32 = 1 << 20;

/// A generous bound on the error of the sums of logarithms.
const MARGIN: f64 = 0.01;

/// If A exceeds n divided by this, it is not *alone*; the rest is *cut off*.
const SMALL: u32 = 4;

/// A plan's m and r.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cuts {
    /// m: the number of others that each controller picks.
    pub picks: u32,
    /// r: the number of honest members of an opening set that may be cut off unnoticed.
    pub cut_off: u32,
}

/// ⌊(N + t)/2⌋ + 1 + r: two sets of this size, each less r and t members, share an
/// honest controller.
#[must_use]
pub fn quorum(controllers: u32, tolerated: u32, cut_off: u32) -> u32 {
    majority(controllers, tolerated.saturating_add(cut_off.saturating_mul(2)))
}

/// Upper limit of the search. The result grows with the logarithm of N, and nobody
/// may keep a controller computing for long.
const MAX_PICKS: u32 = 2048;

/// The fewest picks, and for these the least r, that keep the bound for this
/// roster; `None` if the graph would not be sparse.
///
/// r is at most a sixteenth of the honest controllers. This limit costs hardly any
/// picks, and a larger r would cost more in populations and noise.
#[must_use]
pub fn least(controllers: u32, tolerated: u32, delta_exponent: u8) -> Option<Cuts> {
    // If the colluders alone can be enough picks, no number of picks helps.
    let hopeless = u64::from(tolerated) * 5 >= u64::from(controllers.saturating_sub(1)) * 4;
    if hopeless || controllers > MAX_CONTROLLERS {
        return None;
    }
    let most = (controllers - tolerated) / 16;
    let sparse = controllers.saturating_sub(1) / 2;
    let keeps =
        |picks, cut_off| keeps(controllers, tolerated, Cuts { picks, cut_off }, delta_exponent);
    let picks = (1..sparse.min(MAX_PICKS)).find(|picks| keeps(*picks, most))?;
    // F falls with r, so bisect for the least r that keeps the bound.
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(picks, middle) { high = middle } else { low = middle + 1 }
    }
    Some(Cuts { picks, cut_off: low })
}

/// Whether picks and r keep the bound: over all rosters of a controller's lifetime, the
/// probability that a part opens alone is below 10^-`delta_exponent`. The quorum must
/// also be reachable.
#[must_use]
pub fn keeps(controllers: u32, tolerated: u32, cuts: Cuts, delta_exponent: u8) -> bool {
    let Cuts { picks, cut_off } = cuts;
    let sane = (1..controllers).contains(&picks)
        && controllers <= MAX_CONTROLLERS
        && quorum(controllers, tolerated, cut_off) <= controllers;
    let half = -f64::from(delta_exponent) * std::f64::consts::LN_10
        - f64::from(ROSTERS).ln()
        - std::f64::consts::LN_2
        - MARGIN;
    sane && ln_alone(controllers, tolerated, picks) <= half
        && ln_cut_off(controllers, tolerated, cuts) <= half
}

/// `ln Σ_{a ≤ n/4} C(n, a)·P[≥ ⌈(1 − ρ)m⌉ of m picks among t + a − 1 of N − 1]^a`:
/// bounds the probability that a small set has enough picks among itself and the
/// colluders. From a = 64 on, boxes of terms are bounded from above.
#[must_use]
pub fn ln_alone(controllers: u32, tolerated: u32, picks: u32) -> f64 {
    let (honest, others) = (controllers - tolerated, controllers - 1);
    let (mut sum, mut first) = (LnSum::default(), 1);
    while first <= honest / SMALL {
        let last = (first + first / 64).min(honest / SMALL);
        let inside = tolerated + last - 1;
        let enough = ln_drawn(inside, others - inside, picks, needed_picks(picks)..=picks)
            - ln_choose(others, picks);
        let each = ln_choose(honest, last) + f64::from(first) * enough;
        sum.add(each + f64::from(last - first + 1).ln());
        first = last + 1;
    }
    sum.ln()
}

/// `ln Σ_{b > r} Σ_x C(n, b)·C(n − b, x)·P[no pick in B, ≤ ⌊ρm⌋ in X]^(n − b − x)`:
/// bounds the probability that a large rest has no pick among b others, for any x that
/// an opening set may lack. Boxes of terms are bounded from above.
#[must_use]
pub fn ln_cut_off(controllers: u32, tolerated: u32, cuts: Cuts) -> f64 {
    let honest = controllers - tolerated;
    let most_dropped = controllers.saturating_sub(quorum(controllers, tolerated, cuts.cut_off));
    let (mut sum, mut first) = (LnSum::default(), cuts.cut_off + 1);
    let wide = (honest / 1024).max(1);
    while first + honest / SMALL < honest {
        let last = (first + (first - cuts.cut_off - 1) / 4).min(honest - honest / SMALL - 1);
        let mut dropped = 0;
        while dropped <= most_dropped && first + dropped + honest / SMALL < honest {
            let until = (dropped + wide - 1).min(most_dropped);
            sum.add(ln_box(controllers, honest, cuts.picks, (first, last), (dropped, until)));
            dropped = until + 1;
        }
        first = last + 1;
    }
    sum.ln()
}

/// Bounds from above all terms of [`ln_cut_off`] with b and x in these ranges. It takes the
/// maximum number of choices, the maximum probability for one controller (which falls
/// with b and x), and the minimum number of controllers.
fn ln_box(controllers: u32, honest: u32, picks: u32, b: (u32, u32), x: (u32, u32)) -> f64 {
    let others = controllers - 1;
    let fewest = honest.saturating_sub(b.1 + x.1).max(honest / SMALL + 1);
    let rest = others - b.0 - x.0;
    let one =
        ln_drawn(x.0, rest, picks, 0..=picks - needed_picks(picks)) - ln_choose(others, picks);
    let left = honest - b.0;
    let choices = ln_choose(honest, nearest(b, honest / 2)) + ln_choose(left, nearest(x, left / 2));
    let terms = f64::from(b.1 - b.0 + 1) * f64::from(x.1 - x.0 + 1);
    choices + f64::from(fewest) * one + terms.ln()
}

/// The k in a range for which C(·, k) is greatest, given the unrestricted maximum.
fn nearest(range: (u32, u32), middle: u32) -> u32 {
    middle.clamp(range.0, range.1)
}

/// `ln Σ_i C(inside, i)·C(outside, m − i)` over the counts of picks inside.
fn ln_drawn(inside: u32, outside: u32, picks: u32, counts: std::ops::RangeInclusive<u32>) -> f64 {
    let low = (*counts.start()).max(picks.saturating_sub(outside));
    let high = (*counts.end()).min(inside).min(picks);
    if low > high {
        return f64::NEG_INFINITY;
    }
    let number = f64::from;
    // The terms rise to the mode and fall after it, so start at the largest.
    let mode = u64::from(picks + 1) * u64::from(inside + 1) / (u64::from(inside + outside) + 2);
    let start = u32::try_from(mode).unwrap_or(high).clamp(low, high);
    let up = |i: u32| {
        let (i, spare) = (number(i), number(outside + i + 1 - picks));
        (number(inside) - i) * (number(picks) - i) / ((i + 1.0) * spare)
    };
    let (mut sum, mut term) = (1.0, 1.0);
    for i in start..high {
        term *= up(i);
        sum += term;
    }
    term = 1.0;
    for i in (low..start).rev() {
        term /= up(i);
        sum += term;
    }
    ln_choose(inside, start) + ln_choose(outside, picks - start) + f64::ln(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_match_the_design() {
        let third = least(10_000, 3_333, 9).unwrap();
        let half = least(10_000, 5_000, 9).unwrap();
        assert_eq!((third.picks, half.picks), (78, 183));
        assert_eq!((third.cut_off, half.cut_off), (85, 50));
    }

    #[test]
    fn more_picks_or_a_larger_r_still_keep_the_bound() {
        for (controllers, tolerated) in [(120, 40), (501, 167), (2_000, 0), (10_000, 3_333)] {
            let Cuts { picks, cut_off } = least(controllers, tolerated, 9).unwrap();
            let kept = |picks, cut_off| keeps(controllers, tolerated, Cuts { picks, cut_off }, 9);
            assert!(kept(picks, cut_off + 1) && kept(picks + 5, cut_off), "N = {controllers}");
            assert!(!kept(picks - 1, (controllers - tolerated) / 16), "N = {controllers}");
            assert!(cut_off == 0 || !kept(picks, cut_off - 1), "N = {controllers}");
        }
    }

    #[test]
    fn impossible_parameters_never_keep_the_bound() {
        assert_eq!(least(1, 0, 9), None);
        assert_eq!(least(20, 6, 9), None, "the clique is as sparse");
        assert_eq!(least(1_000, 1_000, 9), None);
        assert_eq!(least(MAX_CONTROLLERS + 1, 0, 9), None);
        assert!(!keeps(100, 33, Cuts { picks: 0, cut_off: 3 }, 9));
        assert!(!keeps(100, 33, Cuts { picks: 100, cut_off: 3 }, 9));
        assert!(!keeps(100, 33, Cuts { picks: 99, cut_off: 34 }, 9), "no set is large enough");
        assert!(keeps(100, 33, Cuts { picks: 99, cut_off: 0 }, 9), "everybody picks everybody");
    }

    /// n = 4 of N = 5, t = 1, m = 2, so both picks are needed. Alone, a = 1: both picks
    /// among one colluder, which is impossible. Cut off with r = 0: for b = 1, x = 0, a = 3,
    /// none of three picks it, with C(3,2)/C(4,2) each; for b = 2, x = 0, (1/6)² for two.
    /// S has 4 members.
    #[test]
    fn the_sums_count_every_cut_of_a_small_graph() {
        assert_eq!(ln_alone(5, 1, 2), f64::NEG_INFINITY);
        let one = 0.5_f64;
        let two = 1.0 / 6.0;
        // x may be 1: nobody may have picked the dropped one of four.
        let by_hand = 4.0 * one.powi(3) + 6.0 * two * two + 4.0 * 3.0 * two * two;
        let sum = ln_cut_off(5, 1, Cuts { picks: 2, cut_off: 0 }).exp();
        assert!((sum - by_hand).abs() < 1e-12, "{sum} {by_hand}");
    }
}
