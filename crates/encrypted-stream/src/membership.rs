//! A membership M in the form that counting asks for: read once, for all
//! controllers of a host.

use std::sync::{Arc, Mutex, PoisonError};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Verified;

use crate::announced::narrow;
use crate::mask::quorum::counted_population;
use crate::mask::set::RosterSet;
use crate::messages::Membership;

/// A membership with each controller's count of owners at its position.
#[derive(Debug)]
pub struct Fixed {
    digest: Digest,
    /// None once it comes from a ledger, which only took it from the service.
    signer: Option<VerifyingKey>,
    membership: Membership,
    /// Owners with data by roster position; 0 for who is not in M.
    owners: Vec<u32>,
    /// The set that was counted last: all controllers of a host count the same.
    tally: Mutex<Option<Arc<Tally>>>,
}

/// What counting a set of members comes down to for each of them.
#[derive(Debug)]
struct Tally {
    set: RosterSet,
    tolerated: u32,
    /// Owners with data in the set.
    total: u64,
    /// The `tolerated` largest counts and the next one, where there is one.
    largest: u64,
    next: Option<u32>,
}

impl Tally {
    fn new(fixed: &Fixed, set: &RosterSet, tolerated: u32) -> Self {
        let mut counts: Vec<u32> = set.iter().map(|at| fixed.owners_at(at)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
        let most = counts.get(..tolerated as usize).unwrap_or(&counts);
        Self {
            set: set.clone(),
            tolerated,
            total: sum(&counts),
            largest: sum(most),
            next: counts.get(tolerated as usize).copied(),
        }
    }

    /// Less the largest `tolerated` of the others, as a member of the set with
    /// this many owners counts it.
    fn counted_by(&self, own: u32) -> u64 {
        // All others may be colluders.
        let Some(next) = self.next else { return u64::from(own) };
        // Who is itself among the largest leaves the next one out instead.
        let others = if own >= next {
            self.largest + u64::from(next) - u64::from(own)
        } else {
            self.largest
        };
        self.total - others
    }
}

/// Sets and counts of a membership do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the membership states another number of counts than it has members")]
pub struct Misfit;

impl Fixed {
    /// Reads a membership whose signature holds.
    ///
    /// # Errors
    /// [`Misfit`] unless there is one count for each member.
    pub fn new(membership: &Verified<Membership>) -> Result<Self, Misfit> {
        let signer = Some(*membership.signer());
        Self::read(membership.digest(), signer, (**membership).clone())
    }

    /// One that a ledger kept.
    pub(crate) fn from_ledger(digest: Digest, membership: Membership) -> Result<Self, Misfit> {
        Self::read(digest, None, membership)
    }

    fn read(
        digest: Digest,
        signer: Option<VerifyingKey>,
        membership: Membership,
    ) -> Result<Self, Misfit> {
        if membership.members.count() != membership.owners.len() {
            return Err(Misfit);
        }
        let mut owners = vec![0; membership.members.roster() as usize];
        for (position, count) in membership.members.iter().zip(&membership.owners) {
            if let Some(slot) = owners.get_mut(position as usize) {
                *slot = *count;
            }
        }
        Ok(Self { digest, signer, membership, owners, tally: Mutex::new(None) })
    }

    /// H(M).
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether this key signed it, or a ledger vouches for it.
    #[must_use]
    pub fn is_by(&self, key: &VerifyingKey) -> bool {
        self.signer.is_none_or(|signer| signer == *key)
    }

    /// M.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Its members.
    #[must_use]
    pub fn members(&self) -> &RosterSet {
        &self.membership.members
    }

    /// |M|.
    #[must_use]
    pub fn size(&self) -> u32 {
        narrow(self.membership.owners.len())
    }

    /// Owners with data at a controller, as M states.
    #[must_use]
    pub fn owners_at(&self, position: u32) -> u32 {
        self.owners.get(position as usize).copied().unwrap_or(0)
    }

    /// A member's place among the leaves of the tree.
    #[must_use]
    pub fn rank(&self, position: u32) -> Option<u64> {
        let members = &self.membership.members;
        members.contains(position).then(|| members.before(position) as u64)
    }

    /// Owners with data in a set, as M states.
    #[must_use]
    pub fn population(&self, set: &RosterSet) -> u64 {
        let known = self.last_tally().filter(|tally| tally.set == *set);
        known.map_or_else(
            || set.iter().map(|position| u64::from(self.owners_at(position))).sum(),
            |tally| tally.total,
        )
    }

    /// Owners with data in a set as its member at `position` counts them: less
    /// those of the `tolerated` largest others, which may be invented.
    #[must_use]
    pub fn counted(&self, set: &RosterSet, position: u32, tolerated: u32, trust: bool) -> u64 {
        let own = self.owners_at(position);
        if set.roster() == 2 || tolerated == 0 || !set.contains(position) {
            let others: Vec<u32> =
                set.iter().filter(|at| *at != position).map(|at| self.owners_at(at)).collect();
            return counted_population(own, &others, tolerated, set.roster(), trust);
        }
        self.tally(set, tolerated).counted_by(own)
    }

    fn tally(&self, set: &RosterSet, tolerated: u32) -> Arc<Tally> {
        let known = self.last_tally();
        let same = |tally: &Arc<Tally>| tally.tolerated == tolerated && tally.set == *set;
        known.filter(same).unwrap_or_else(|| {
            let tally = Arc::new(Tally::new(self, set, tolerated));
            *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&tally));
            tally
        })
    }

    fn last_tally(&self) -> Option<Arc<Tally>> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The least count that any member of the set arrives at, trusting nobody:
    /// whether the set is worth asking.
    #[must_use]
    pub fn least_counted(&self, set: &RosterSet, tolerated: u32) -> u64 {
        let mut counts: Vec<u32> = set.iter().map(|at| self.owners_at(at)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        if tolerated == 0 {
            return total;
        }
        if set.roster() == 2 {
            return counts.last().copied().map_or(0, u64::from);
        }
        // Who is itself among the t largest leaves the next one out instead and
        // so counts no more than they: everybody else counts total less top t.
        let top = |many: usize| counts.iter().take(many).copied().map(u64::from).sum::<u64>();
        let others = counts.len().saturating_sub(1);
        total.saturating_sub(top((tolerated as usize).min(others)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::PlanId;
    use alpheus_policy::time::{Timestamp, Window};
    use proptest::prelude::*;

    fn fixed(owners: &[u32]) -> Fixed {
        let membership = Membership {
            plan: PlanId([0; 32]),
            window: Window { start: Timestamp(0), end: Timestamp(1) },
            members: RosterSet::full(narrow(owners.len())),
            owners: owners.to_vec(),
            root: Digest([0; 32]),
        };
        Fixed::from_ledger(Digest([0; 32]), membership).unwrap()
    }

    #[test]
    fn counts_must_be_one_for_each_member() {
        let mut membership = fixed(&[1, 2]).membership().clone();
        membership.owners.pop();
        assert_eq!(Fixed::from_ledger(Digest([0; 32]), membership).err(), Some(Misfit));
    }

    #[test]
    fn owners_stand_at_roster_positions() {
        let mut membership = fixed(&[7, 8, 9]).membership().clone();
        membership.members.remove(1);
        membership.owners.remove(1);
        let fixed = Fixed::from_ledger(Digest([0; 32]), membership).unwrap();
        assert_eq!((0..4).map(|p| fixed.owners_at(p)).collect::<Vec<_>>(), [7, 0, 9, 0]);
        assert_eq!(
            (0..4).map(|p| fixed.rank(p)).collect::<Vec<_>>(),
            [Some(0), None, Some(1), None]
        );
    }

    proptest! {
        /// Counted once for all is counted by each.
        #[test]
        fn a_tally_counts_what_each_member_counts(
            owners in proptest::collection::vec(0_u32..9, 3..12),
            picks in any::<u16>(),
            tolerated in 0_u32..14,
        ) {
            let fixed = fixed(&owners);
            let all = narrow(owners.len());
            let set = RosterSet::of(all, (0..all).filter(|at| picks >> at & 1 == 1));
            for member in set.iter() {
                let others: Vec<u32> =
                    set.iter().filter(|at| *at != member).map(|at| fixed.owners_at(at)).collect();
                let own = fixed.owners_at(member);
                let alone = counted_population(own, &others, tolerated, all, false);
                prop_assert_eq!(fixed.counted(&set, member, tolerated, false), alone);
                let stated: u64 = set.iter().map(|at| u64::from(fixed.owners_at(at))).sum();
                prop_assert_eq!(fixed.population(&set), stated);
            }
        }

        #[test]
        fn the_least_count_is_that_of_some_member(
            owners in proptest::collection::vec(0_u32..9, 2..12),
            tolerated in 0_u32..6,
        ) {
            let fixed = fixed(&owners);
            let set = RosterSet::full(narrow(owners.len()));
            let least = set.iter().map(|p| fixed.counted(&set, p, tolerated, false)).min();
            prop_assert_eq!(least, Some(fixed.least_counted(&set, tolerated)));
        }
    }
}
