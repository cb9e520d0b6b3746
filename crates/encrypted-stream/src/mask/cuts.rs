//! How many picks `Neighbours` needs, and how many honest members drops may cut
//! off: a union bound over every way to cut the graph (after Bell, Bonawitz,
//! Gascón, Lepoint, Raykova: *Secure Single-Server Aggregation with
//! (Poly)Logarithmic Overhead*, CCS 2020, section 3). The derivation stands in
//! `docs/protocol.md`, "Neighbours".
//!
//! Of N controllers t collude, n = N − t do not. Each picks m of the N − 1 others
//! and answers only if ⌈(1 − ρ)m⌉ of its picks are in S. A set A of those that
//! answer opens by itself if none of its picks is an honest member outside A.
//! Two sums bound the chance that any A does so that leaves out more than r:
//!
//! - *alone*, A of at most n/4: each needs ⌈(1 − ρ)m⌉ picks among A and the t;
//! - *cut off*, A larger, B of more than r left out, X dropped: nobody in A picks
//!   into B, and each has at most ⌊ρm⌋ picks in X.

use crate::mask::lnsum::{LnSum, ln_choose};
use alpheus_policy::plan::needed_picks;
use alpheus_policy::quorum::majority;

/// Rosters that a controller gives its picks for, in its life: each is another
/// draw for a service that hopes for a bad one.
pub const ROSTERS: u32 = 8192;

/// Most controllers of such a plan. Up to here the logarithms below are exact to
/// far less than [`MARGIN`].
pub const MOST_CONTROLLERS: u32 = 1 << 20;

/// What sums of logarithms may be off by, rounded up without mercy.
const MARGIN: f64 = 0.01;

/// A larger A than n divided by this is not *alone*, but the rest is *cut off*.
const SMALL: u32 = 4;

/// m and r of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cuts {
    /// m: others that each controller picks.
    pub picks: u32,
    /// r: honest members of an opening set that may be cut off unnoticed.
    pub cut_off: u32,
}

/// ⌊(N + t)/2⌋ + 1 + r: two sets of this many, each less r and t, have an honest
/// controller in common.
#[must_use]
pub fn quorum(controllers: u32, tolerated: u32, cut_off: u32) -> u32 {
    majority(controllers, tolerated.saturating_add(cut_off.saturating_mul(2)))
}

/// More picks are not tried: what is looked for grows with the logarithm of N, and nobody
/// may keep a controller reckoning.
const MOST_PICKS: u32 = 2048;

/// The fewest picks, and for these the least r, that keep the bound for this
/// roster; none where the graph would not be sparse.
///
/// r is at most a sixteenth of the honest controllers, which costs hardly any
/// picks: what it takes from populations and noise is worth more.
#[must_use]
pub fn least(controllers: u32, tolerated: u32, delta_exponent: u8) -> Option<Cuts> {
    // Where colluders alone are as many picks as suffice, no number of them helps.
    let hopeless = u64::from(tolerated) * 5 >= u64::from(controllers.saturating_sub(1)) * 4;
    if hopeless || controllers > MOST_CONTROLLERS {
        return None;
    }
    let most = (controllers - tolerated) / 16;
    let sparse = controllers.saturating_sub(1) / 2;
    let keeps =
        |picks, cut_off| keeps(controllers, tolerated, Cuts { picks, cut_off }, delta_exponent);
    let picks = (1..sparse.min(MOST_PICKS)).find(|picks| keeps(*picks, most))?;
    // F falls with r: the least that keeps the bound.
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(picks, middle) { high = middle } else { low = middle + 1 }
    }
    Some(Cuts { picks, cut_off: low })
}

/// Whether picks and r keep the chance that anything opens alone, over all rosters
/// of a controller's life, below 10^-`delta_exponent`, and S can be reached.
#[must_use]
pub fn keeps(controllers: u32, tolerated: u32, cuts: Cuts, delta_exponent: u8) -> bool {
    let Cuts { picks, cut_off } = cuts;
    let sane = (1..controllers).contains(&picks)
        && controllers <= MOST_CONTROLLERS
        && quorum(controllers, tolerated, cut_off) <= controllers;
    let half = -f64::from(delta_exponent) * std::f64::consts::LN_10
        - f64::from(ROSTERS).ln()
        - std::f64::consts::LN_2
        - MARGIN;
    sane && ln_alone(controllers, tolerated, picks) <= half
        && ln_cut_off(controllers, tolerated, cuts) <= half
}

/// `ln Σ_{a ≤ n/4} C(n, a)·P[≥ ⌈(1 − ρ)m⌉ of m picks among t + a − 1 of N − 1]^a`:
/// that a small set has enough picks in itself and the colluders. From 64 on it is
/// summed in boxes, each from above.
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
/// that a large rest has no pick among b others, for any x that an opening set may
/// lack. Summed in boxes, each from above.
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

/// All terms of [`ln_cut_off`] with b and x in these ranges, from above: choices
/// at their most, the chance of one controller at its greatest (which falls with
/// b and x), and as few controllers as need it.
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

/// Where C(·, k) is greatest in a range whose middle is `middle`.
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
    // The terms rise to the mode and fall from there: begin at the largest.
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
    fn parameters_are_near_the_designs() {
        let third = least(10_000, 3_333, 9).unwrap();
        let half = least(10_000, 5_000, 9).unwrap();
        assert_eq!((third.picks, half.picks), (78, 183));
        assert_eq!((third.cut_off, half.cut_off), (85, 50));
    }

    #[test]
    fn a_bound_that_is_kept_is_kept_by_more() {
        for (controllers, tolerated) in [(120, 40), (501, 167), (2_000, 0), (10_000, 3_333)] {
            let Cuts { picks, cut_off } = least(controllers, tolerated, 9).unwrap();
            let kept = |picks, cut_off| keeps(controllers, tolerated, Cuts { picks, cut_off }, 9);
            assert!(kept(picks, cut_off + 1) && kept(picks + 5, cut_off), "N = {controllers}");
            assert!(!kept(picks - 1, (controllers - tolerated) / 16), "N = {controllers}");
            assert!(cut_off == 0 || !kept(picks, cut_off - 1), "N = {controllers}");
        }
    }

    #[test]
    fn nothing_is_promised_of_what_cannot_be() {
        assert_eq!(least(1, 0, 9), None);
        assert_eq!(least(20, 6, 9), None, "the clique is as sparse");
        assert_eq!(least(1_000, 1_000, 9), None);
        assert_eq!(least(MOST_CONTROLLERS + 1, 0, 9), None);
        assert!(!keeps(100, 33, Cuts { picks: 0, cut_off: 3 }, 9));
        assert!(!keeps(100, 33, Cuts { picks: 100, cut_off: 3 }, 9));
        assert!(!keeps(100, 33, Cuts { picks: 99, cut_off: 34 }, 9), "no set is large enough");
        assert!(keeps(100, 33, Cuts { picks: 99, cut_off: 0 }, 9), "everybody picks everybody");
    }

    /// n = 4 of N = 5, t = 1, m = 2: both picks are needed. Alone is a = 1: both among
    /// one colluder, which cannot be. Cut off, r = 0: b = 1, x = 0, a = 3: none of
    /// three picks it, C(3,2)/C(4,2) each; b = 2, x = 0: (1/6)² of two. S is of 4.
    #[test]
    fn the_sums_count_every_cut_of_a_small_graph() {
        assert_eq!(ln_alone(5, 1, 2), f64::NEG_INFINITY);
        let one = 0.5_f64;
        let two = 1.0 / 6.0;
        // x may be 1: what is dropped of four, nobody may have picked.
        let by_hand = 4.0 * one.powi(3) + 6.0 * two * two + 4.0 * 3.0 * two * two;
        let sum = ln_cut_off(5, 1, Cuts { picks: 2, cut_off: 0 }).exp();
        assert!((sum - by_hand).abs() < 1e-12, "{sum} {by_hand}");
    }
}
