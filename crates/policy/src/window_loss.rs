//! The probability that a window is lost because controllers fail between its two messages.

use crate::plan::{MaskStrategy, Plan};

/// With more controllers than this, failure counts are summed in steps.
const MAX_EXACT_COUNTS: u32 = 20_000;
/// Maximum number of exclusion rounds. By then hardly any, or nearly all, are excluded.
const MAX_ROUNDS: u32 = 200;

/// The controllers of a window and how likely they fail.
#[derive(Clone, Copy, Debug)]
pub struct WindowRisk {
    /// Number of controllers in the plan (N).
    pub controllers: u32,
    /// Number of members of the window (|M|).
    pub members: u32,
    /// How many members may be missing from an opening set.
    pub spare: u32,
    /// The probability that a controller fails, independent of the others.
    pub rate: f64,
}

impl WindowRisk {
    /// The probability that a window of the plan is lost.
    ///
    /// Under `Neighbours`, a controller without enough of its m picks is lost as well, so
    /// others may lack picks, too. With x failed, each is lost with the smallest probability y
    /// that satisfies y = P[more than ⌊ρm⌋ of m picks among the N − |M| + x + y·(|M| − x)
    /// that are absent], treated as independent.
    #[must_use]
    pub fn chance_of_loss(self, plan: &Plan) -> f64 {
        match (plan.masks, plan.masks.needed_picks()) {
            (MaskStrategy::Neighbours { picks, .. }, Some(needed)) => {
                self.with_picks(picks, picks - needed)
            }
            _ => chance_of_loss(self.members, self.spare, self.rate),
        }
    }

    fn with_picks(self, picks: u32, max_missing: u32) -> f64 {
        let absent = self.controllers.saturating_sub(self.members);
        let step = (self.members / MAX_EXACT_COUNTS).max(1);
        let (mut lost, mut within) = (0.0, 0.0);
        let weights = Weights::of(self.members, self.rate);
        for failed in (0..=self.spare.min(self.members)).step_by(step as usize) {
            let weight = weights.at(failed) * f64::from(step);
            within += weight;
            if weight < 1e-30 {
                continue;
            }
            let excluded = excluded_share(self.controllers, absent + failed, (picks, max_missing));
            lost += weight * chance_of_loss(self.members - failed, self.spare - failed, excluded);
        }
        // More failures than `spare` lose the window in any case. Their tail is exact.
        let beyond = chance_of_loss(self.members, self.spare, self.rate);
        let scale = if within > 0.0 { (1.0 - beyond) / within } else { 1.0 };
        (beyond + lost * scale).clamp(0.0, 1.0)
    }
}

/// The probability that a present controller lacks more than `max_missing` of its picks, if
/// `missing` are absent and every controller that lacks too many is excluded, repeatedly.
fn excluded_share(controllers: u32, missing: u32, (picks, max_missing): (u32, u32)) -> f64 {
    let there = f64::from(controllers.saturating_sub(missing));
    let mut chance = 0.0;
    for _ in 0..MAX_ROUNDS {
        let gone = f64::from(missing) + chance * there;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between zero and N"
        )]
        let gone = gone.round() as u32;
        let next = more_drawn(controllers - 1, gone, picks, max_missing);
        if next - chance < 1e-9 {
            return next;
        }
        chance = next;
    }
    chance
}

/// How many controllers may be absent, at any step of a round, before so many others lack
/// picks that fewer than `min` are left.
pub(crate) fn max_absent(controllers: u32, min: u32, (picks, max_missing): (u32, u32)) -> u32 {
    let suffices = |absent: u32| {
        let left = f64::from(controllers - absent);
        left * (1.0 - excluded_share(controllers, absent, (picks, max_missing))) >= f64::from(min)
    };
    let (mut low, mut high) = (0, controllers);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if suffices(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// P[count = x] of a binomial distribution, computed with logarithms.
struct Weights {
    ln: Vec<f64>,
}

impl Weights {
    fn of(many: u32, rate: f64) -> Weights {
        let mut ln = Vec::with_capacity(many as usize + 1);
        let (sure, never) = (rate >= 1.0, rate.is_nan() || rate <= 0.0);
        let ratio = (rate / (1.0 - rate)).ln();
        let mut next = f64::from(many) * (-rate).ln_1p();
        for x in 0..=many {
            ln.push(match (sure, never) {
                (true, _) => {
                    if x == many {
                        0.0
                    } else {
                        f64::NEG_INFINITY
                    }
                }
                (_, true) => {
                    if x == 0 {
                        0.0
                    } else {
                        f64::NEG_INFINITY
                    }
                }
                _ => next,
            });
            next += (f64::from(many - x) / (f64::from(x) + 1.0)).ln() + ratio;
        }
        Weights { ln }
    }

    fn at(&self, count: u32) -> f64 {
        self.ln.get(count as usize).copied().map_or(0.0, f64::exp)
    }
}

/// P[more than `most` of `drawn` out of `all` are among `marked`]: the upper tail of a
/// hypergeometric distribution.
fn more_drawn(all: u32, marked: u32, drawn: u32, most: u32) -> f64 {
    let (marked, drawn) = (marked.min(all), drawn.min(all));
    let rest = all - marked;
    let first = drawn.saturating_sub(rest);
    if first > most {
        return 1.0;
    }
    let ln_choose = |n: u32, k: u32| -> f64 {
        (0..k).map(|j| (f64::from(n - j) / f64::from(k - j)).ln()).sum()
    };
    let ways = ln_choose(marked, first) + ln_choose(rest, drawn - first) - ln_choose(all, drawn);
    let (mut chance, mut within) = (ways.exp(), 0.0);
    for i in first..=most.min(marked).min(drawn) {
        within += chance;
        let (i, spare) = (f64::from(i), f64::from(rest) + f64::from(i) + 1.0 - f64::from(drawn));
        chance *= (f64::from(marked) - i) * (f64::from(drawn) - i) / ((i + 1.0) * spare);
    }
    (1.0 - within).max(0.0)
}

/// P[more than `spare` of `controllers` fail] in a window, each independently with
/// probability `rate`: the upper tail of a binomial distribution.
///
/// Real failures are correlated (a host, a network), so this covers independent failures
/// only. A controller that fails before the heartbeat is not a member of the window, and
/// does not count against `spare`.
#[must_use]
pub fn chance_of_loss(controllers: u32, spare: u32, rate: f64) -> f64 {
    if spare >= controllers || rate.is_nan() || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return 1.0;
    }
    let (mut within, mut beyond) = (0.0, 0.0);
    let (mut ln_chance, ratio) =
        (f64::from(controllers) * (-rate).ln_1p(), (rate / (1.0 - rate)).ln());
    for failures in 0..=controllers {
        if failures <= spare {
            within += ln_chance.exp();
        } else {
            beyond += ln_chance.exp();
        }
        let (left, next) = (f64::from(controllers - failures), f64::from(failures) + 1.0);
        ln_chance += (left / next).ln() + ratio;
        // Past the mode, the remaining terms are below the precision of a float.
        if failures > spare && next > f64::from(controllers) * rate && ln_chance < -745.0 {
            break;
        }
    }
    // The smaller tail is more exact.
    if beyond < 0.5 { beyond } else { 1.0 - within }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-12, "{one} {other}");
    }

    /// Checked by simulation in an independent script: for N = 10,000 with m = 78, 10 % may be
    /// absent but not 11 %. The same holds for N = 1,000 with m = 68.
    #[test]
    fn absence_beyond_a_tenth_loses_all_controllers() {
        for (controllers, picks) in [(10_000, 78), (5_000, 75), (1_000, 68)] {
            let least = controllers * 2 / 3 + 1 + controllers / 100;
            let most = max_absent(controllers, least, (picks, picks / 5));
            let share = f64::from(most) / f64::from(controllers);
            assert!((0.095..0.112).contains(&share), "{controllers}: {share}");
        }
    }

    #[test]
    fn the_chance_of_loss_is_a_binomial_tail() {
        close(chance_of_loss(2, 0, 0.5), 0.75);
        close(chance_of_loss(3, 1, 0.1), 3.0 * 0.01 * 0.9 + 0.001);
        close(chance_of_loss(4, 4, 0.9), 0.0);
        close(chance_of_loss(10, 3, 0.0), 0.0);
        close(chance_of_loss(10, 3, 1.0), 1.0);
        assert!(chance_of_loss(10_000, 2_000, 0.1) < 1e-100);
        assert!(chance_of_loss(10_000, 2_000, 0.3) > 0.999_999);
    }

    #[test]
    fn the_hypergeometric_tail_matches_hand_counts() {
        // Of 5, 2 marked, 3 drawn: C(2,2)·C(3,1) of 10 hold both.
        close(more_drawn(5, 2, 3, 1), 0.3);
        close(more_drawn(5, 2, 3, 0), 0.9);
        close(more_drawn(5, 0, 3, 0), 0.0);
        close(more_drawn(5, 5, 3, 2), 1.0);
        // All are drawn, so all that are marked.
        close(more_drawn(5, 2, 5, 2), 0.0);
        close(more_drawn(5, 3, 5, 2), 1.0);
        close(more_drawn(5, 3, 4, 2), 0.4);
    }

    #[test]
    fn a_controller_without_enough_picks_is_lost_as_well() {
        let window = |rate| WindowRisk { controllers: 4, members: 4, spare: 1, rate };
        // With no failure, nothing is lost. With one, two of three lack a pick (2 of 3 picks,
        // none may be missing), and then the third does, so all are lost.
        let f = 0.1_f64;
        let one = 4.0 * f * (1.0 - f).powi(3);
        let beyond = chance_of_loss(4, 1, f);
        close(window(f).with_picks(2, 0), beyond + one);
        close(window(0.0).with_picks(2, 0), 0.0);
        close(window(1.0).with_picks(2, 0), 1.0);
    }

    #[test]
    fn summing_in_steps_changes_little() {
        let fine = WindowRisk { controllers: 20_000, members: 20_000, spare: 2_000, rate: 0.098 };
        let coarse = WindowRisk { controllers: 80_000, members: 80_000, spare: 8_000, rate: 0.098 };
        for window in [fine, coarse] {
            let chance = window.with_picks(80, 16);
            let bare = chance_of_loss(window.members, window.spare, window.rate);
            assert!(chance > bare && chance < 1.0, "{chance} {bare}");
        }
    }
}
