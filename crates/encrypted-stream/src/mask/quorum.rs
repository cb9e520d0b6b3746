//! Quorums, the honest floor, and populations as a controller counts them when
//! some of the others may lie.

use crate::mask::params::UnsafeMasksError;
use alpheus_policy::plan::Plan;
use alpheus_policy::quorum::{majority, min_controllers_for};

/// The numbers that determine a plan's quorums.
#[derive(Clone, Copy, Debug)]
pub struct Roster<'a> {
    owners: &'a [u32],
    tolerated: u32,
    minimum_population: u32,
}

impl<'a> Roster<'a> {
    /// Takes the number of owners at each controller, how many of the controllers may
    /// collude (see [`alpheus_policy::membership::tolerated`]), and the plan's minimum
    /// population.
    #[must_use]
    pub fn new(owners: &'a [u32], tolerated: u32, minimum_population: u32) -> Roster<'a> {
        Roster { owners, tolerated, minimum_population }
    }

    /// The roster of a plan; `owners` comes from [`Roster::owners_per_controller`].
    #[must_use]
    pub fn of(plan: &Plan, owners: &'a [u32]) -> Roster<'a> {
        Roster::new(owners, plan.tolerated(), plan.population.min)
    }

    /// The number of distinct owners at each controller of the plan, in roster order.
    #[must_use]
    pub fn owners_per_controller(plan: &Plan) -> Vec<u32> {
        plan.owners_per_controller()
    }

    /// N: the number of controllers.
    #[must_use]
    pub fn controllers(&self) -> u32 {
        narrow(self.owners.len())
    }

    /// t: the number of controllers that may collude with the service.
    #[must_use]
    pub fn tolerated(&self) -> u32 {
        self.tolerated
    }

    /// The size of the plan's smallest admissible opening. It is a majority with the
    /// colluders counted against it, and at least one honest member can count the
    /// minimum population in it. Never more than N.
    #[must_use]
    pub fn min_opening(&self) -> u32 {
        majority(self.controllers(), self.tolerated)
            .max(self.fewest_for_minimum())
            .min(self.controllers())
    }

    /// n: the honest controllers in the smallest admissible opening. Every bound uses
    /// it, since the service may drop honest members first.
    ///
    /// # Errors
    /// [`UnsafeMasksError::NoHonestFloor`] if there is none.
    pub fn honest_floor(&self) -> Result<u32, UnsafeMasksError> {
        let (controllers, tolerated) = (self.controllers(), self.tolerated);
        match self.min_opening().checked_sub(tolerated) {
            Some(honest) if honest >= 1 => Ok(honest),
            _ => Err(UnsafeMasksError::NoHonestFloor { controllers, tolerated }),
        }
    }

    /// Whether the best placed member counts the minimum population among all owners
    /// after it leaves out the t largest others and `cut_off` more.
    pub(crate) fn suffices_without(&self, cut_off: u32) -> bool {
        let mut owners = self.owners.to_vec();
        owners.sort_unstable_by(|a, b| b.cmp(a));
        let others = owners.get(1..).unwrap_or(&[]);
        let own = owners.first().copied().unwrap_or(0);
        let discounted = self.tolerated.saturating_add(cut_off);
        let counted = counted_population(own, others, discounted, self.controllers(), false);
        counted >= u64::from(self.minimum_population)
    }

    /// The fewest controllers whose opening reaches the minimum population as counted by
    /// the best placed member, the one with most owners. It counts its own owners, then
    /// the others' from the largest, less the t largest.
    fn fewest_for_minimum(&self) -> u32 {
        min_controllers_for(self.owners, self.tolerated, self.minimum_population)
    }
}

/// The population as controller p counts it: its own owners with data, plus the
/// others', less the `tolerated` largest counts, since a colluding host can invent
/// owners.
///
/// `others` are the counts that the other members state. With two controllers of
/// which one may collude, only p's own owners count, unless they `trust` the other
/// controller.
#[must_use]
pub fn counted_population(
    own: u32,
    others: &[u32],
    tolerated: u32,
    controllers: u32,
    trust: bool,
) -> u64 {
    let sum = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
    let pair = controllers == 2 && tolerated > 0;
    if pair && !trust {
        return u64::from(own);
    }
    if tolerated == 0 || pair {
        return u64::from(own) + sum(others);
    }
    let believed = others.len().saturating_sub(tolerated as usize);
    if believed == 0 {
        return u64::from(own);
    }
    let mut counts = others.to_vec();
    let (smallest, edge, _) = counts.select_nth_unstable(believed - 1);
    u64::from(own) + sum(smallest) + u64::from(*edge)
}

/// Converts a count. Rosters have fewer than 2^32 controllers because positions are `u32`.
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::membership::tolerated;
    use alpheus_policy::plan::Fraction;
    use alpheus_policy::quorum::min_opening;
    use proptest::prelude::*;

    #[test]
    fn an_opening_is_a_majority_and_drops_no_more_than_may_fail() {
        // (N, t, |M|) → least |S| at d = 1/5, by hand.
        let table = [
            ((1, 0, 1), 1),
            ((2, 0, 2), 2),
            ((3, 1, 3), 3),
            ((4, 0, 4), 3),
            ((4, 1, 4), 3),
            ((30, 10, 30), 24),
            ((30, 10, 22), 21),
            ((100, 33, 80), 67),
        ];
        for ((n, t, m), least) in table {
            assert_eq!(min_opening(n, t, m, Fraction::FIFTH), least, "N = {n}, t = {t}, |M| = {m}");
        }
        assert_eq!(min_opening(207, 0, 207, Fraction::ZERO), 206);
        assert_eq!(min_opening(3, 0, 3, Fraction::ZERO), 3, "below four nobody may be missing");
    }

    #[test]
    fn a_minimum_population_of_ten_needs_fourteen_controllers_of_one_owner() {
        // The majority does not bind here; only the population counts.
        let owners = [1; 14];
        let roster = Roster::new(&owners, tolerated(14, Fraction::THIRD, 1), 10);
        assert_eq!(roster.tolerated(), 4);
        assert_eq!(roster.fewest_for_minimum(), 14);
        assert_eq!(counted_population(1, &[1; 13], 4, 14, false), 10);
        assert_eq!(counted_population(1, &[1; 12], 4, 14, false), 9);
    }

    #[test]
    fn invented_owners_at_colluders_do_not_count() {
        assert_eq!(counted_population(1, &[1_000_000, 1, 1, 2], 1, 5, false), 5);
        assert_eq!(counted_population(3, &[900, 800], 2, 3, false), 3);
        assert_eq!(counted_population(3, &[900, 800], 7, 9, false), 3);
        assert_eq!(counted_population(1, &[5, 6], 0, 3, false), 12, "alpha = 0 leaves nobody out");
        assert_eq!(
            counted_population(u32::MAX, &[u32::MAX; 3], 0, 4, false),
            4 * u64::from(u32::MAX)
        );
    }

    #[test]
    fn of_two_controllers_each_counts_its_own_unless_it_trusts() {
        assert_eq!(counted_population(7, &[5], 1, 2, false), 7);
        assert_eq!(counted_population(7, &[5], 1, 2, true), 12);
        assert_eq!(counted_population(7, &[5], 0, 2, false), 12);
    }

    #[test]
    fn the_min_opening_covers_majority_and_population() {
        let owners = [1; 207];
        assert_eq!(Roster::new(&owners, 0, 200).honest_floor(), Ok(200));
        assert_eq!(Roster::new(&owners, 0, 1).honest_floor(), Ok(104));
        // A host of many owners reaches the minimum by itself; others do not.
        assert_eq!(Roster::new(&[50, 1, 1, 1, 1], 1, 20).min_opening(), 4);
        // Never more than there are, even where the minimum is out of reach.
        assert_eq!(Roster::new(&[1, 1, 1], 0, 100).min_opening(), 3);
    }

    proptest! {
        /// The floor guarantees that no member would answer an opening smaller than
        /// `min_opening`.
        #[test]
        fn no_member_counts_enough_in_a_smaller_opening(
            owners in proptest::collection::vec(0_u32..6, 3..12),
            picks in any::<u16>(),
            minimum in 1_u32..20,
        ) {
            let tolerated = tolerated(narrow(owners.len()), Fraction::THIRD, 1);
            let roster = Roster::new(&owners, tolerated, minimum);
            let opened: Vec<usize> = (0..owners.len()).filter(|p| picks >> p & 1 == 1).collect();
            prop_assume!(narrow(opened.len()) < roster.fewest_for_minimum());
            for p in &opened {
                let others: Vec<u32> = opened.iter().filter(|q| *q != p).map(|q| owners[*q]).collect();
                let n = narrow(owners.len());
                prop_assert!(counted_population(owners[*p], &others, roster.tolerated(), n, false) < u64::from(minimum));
            }
        }

        /// Two admissible openings of one window share an honest controller.
        #[test]
        fn two_openings_share_an_honest_controller(
            n in 1_u32..400,
            alpha in 0_u32..8,
            colluders in 0_u32..12,
            m in 1_u32..400,
        ) {
            let t = tolerated(n, Fraction { numerator: alpha, denominator: 7 }, colluders);
            let least = min_opening(n, t, m.min(n), Fraction::FIFTH);
            prop_assert!(2 * least > n + t);
        }
    }
}
