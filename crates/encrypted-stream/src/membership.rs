//! A membership M in a form that is fast to count, read once for all controllers of a host.

use std::sync::{Arc, Mutex, PoisonError};

use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Signed, Verified};

use crate::counts::narrow;
use crate::mask::quorum::counted_population;
use crate::mask::set::RosterSet;
use crate::messages::{MaskKey, Membership};

/// A membership with each controller's count of owners at its position.
#[derive(Debug)]
pub struct FixedMembership {
    digest: Digest,
    /// `None` if it comes from a ledger, which only stores the service's memberships.
    signer: Option<VerifyingKey>,
    membership: Membership,
    /// Owners with data by roster position; 0 for a controller that is not in M.
    owners: Vec<u32>,
    /// The last set counted: all controllers of a host count the same one.
    tally: Mutex<Option<Arc<Tally>>>,
}

/// The counts of a set that each member needs.
#[derive(Debug)]
struct Tally {
    set: RosterSet,
    tolerated: u32,
    /// Owners with data in the set.
    total: u64,
    /// Sum of the `tolerated` largest counts, and the next count if there is one.
    largest: u64,
    next: Option<u32>,
}

impl Tally {
    fn new(fixed: &FixedMembership, set: &RosterSet, tolerated: u32) -> Self {
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

    /// The total less the `tolerated` largest counts of the others, for a member of the set
    /// with this many owners.
    fn counted_by(&self, own: u32) -> u64 {
        // All others may collude.
        let Some(next) = self.next else { return u64::from(own) };
        // A member that is itself among the largest leaves the next one out instead.
        let others = if own >= next {
            self.largest + u64::from(next) - u64::from(own)
        } else {
            self.largest
        };
        self.total - others
    }
}

/// The members and counts of a membership do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the membership has a different number of counts or keys than members")]
pub struct MembershipError;

impl FixedMembership {
    /// Reads a membership whose signature is valid.
    ///
    /// # Errors
    /// [`MembershipError`] unless there is one count for each member, and one key or no keys at all.
    pub fn new(membership: &Verified<Membership>) -> Result<Self, MembershipError> {
        let signer = Some(*membership.signer());
        Self::read(membership.digest(), signer, (**membership).clone())
    }

    /// A membership from a ledger.
    pub(crate) fn from_ledger(
        digest: Digest,
        membership: Membership,
    ) -> Result<Self, MembershipError> {
        Self::read(digest, None, membership)
    }

    fn read(
        digest: Digest,
        signer: Option<VerifyingKey>,
        membership: Membership,
    ) -> Result<Self, MembershipError> {
        let keys = membership.mask_keys.len();
        if membership.members.count() != membership.owners.len()
            || (keys != 0 && keys != membership.owners.len())
        {
            return Err(MembershipError);
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

    /// Whether this key signed it, or it comes from a ledger.
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

    /// A member's index among the leaves of the tree.
    #[must_use]
    pub fn rank(&self, position: u32) -> Option<u64> {
        let members = &self.membership.members;
        members.contains(position).then(|| members.before(position) as u64)
    }

    /// In a verified plan: a member's key for this window's pads. Its signature is not checked.
    #[must_use]
    pub fn mask_key(&self, position: u32) -> Option<&Signed<MaskKey>> {
        let rank = usize::try_from(self.rank(position)?).ok()?;
        self.membership.mask_keys.get(rank)
    }

    /// Owners with data in a set, as stated in M.
    #[must_use]
    pub fn population(&self, set: &RosterSet) -> u64 {
        let known = self.last_tally().filter(|tally| tally.set == *set);
        known.map_or_else(
            || set.iter().map(|position| u64::from(self.owners_at(position))).sum(),
            |tally| tally.total,
        )
    }

    /// Owners with data in a set, as its member at `position` counts them: without those of
    /// the `tolerated` largest other members, which may be invented.
    #[must_use]
    pub fn population_for(
        &self,
        set: &RosterSet,
        position: u32,
        tolerated: u32,
        trust: bool,
    ) -> u64 {
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

    /// The smallest count that any member of the set arrives at without trusting anybody.
    /// It shows whether asking the set is worthwhile.
    #[must_use]
    pub fn min_population(&self, set: &RosterSet, tolerated: u32) -> u64 {
        let mut counts: Vec<u32> = set.iter().map(|at| self.owners_at(at)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        if tolerated == 0 {
            return total;
        }
        if set.roster() == 2 {
            return counts.last().copied().map_or(0, u64::from);
        }
        // A member that is itself among the t largest leaves the next one out instead, so
        // it counts no more than they do. Everybody else counts the total less the top t.
        let top = |many: usize| counts.iter().take(many).copied().map(u64::from).sum::<u64>();
        let others = counts.len().saturating_sub(1);
        total.saturating_sub(top((tolerated as usize).min(others)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::PlanId;
    use alpheus_time::{Timestamp, Window};
    use proptest::prelude::*;

    fn fixed(owners: &[u32]) -> FixedMembership {
        let membership = Membership {
            plan: PlanId([0; 32]),
            window: Window { start: Timestamp(0), end: Timestamp(1) },
            members: RosterSet::full(narrow(owners.len())),
            owners: owners.to_vec(),
            root: Digest([0; 32]),
            mask_keys: Vec::new(),
        };
        FixedMembership::from_ledger(Digest([0; 32]), membership).unwrap()
    }

    #[test]
    fn counts_must_be_one_for_each_member() {
        let mut membership = fixed(&[1, 2]).membership().clone();
        membership.owners.pop();
        assert_eq!(
            FixedMembership::from_ledger(Digest([0; 32]), membership).err(),
            Some(MembershipError)
        );
    }

    #[test]
    fn owners_are_indexed_by_roster_position() {
        let mut membership = fixed(&[7, 8, 9]).membership().clone();
        membership.members.remove(1);
        membership.owners.remove(1);
        let fixed = FixedMembership::from_ledger(Digest([0; 32]), membership).unwrap();
        assert_eq!((0..4).map(|p| fixed.owners_at(p)).collect::<Vec<_>>(), [7, 0, 9, 0]);
        assert_eq!(
            (0..4).map(|p| fixed.rank(p)).collect::<Vec<_>>(),
            [Some(0), None, Some(1), None]
        );
    }

    proptest! {
        /// A shared tally gives each member its own count.
        #[test]
        fn a_shared_tally_matches_each_members_own_count(
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
                prop_assert_eq!(fixed.population_for(&set, member, tolerated, false), alone);
                let stated: u64 = set.iter().map(|at| u64::from(fixed.owners_at(at))).sum();
                prop_assert_eq!(fixed.population(&set), stated);
            }
        }

        #[test]
        fn the_minimum_count_is_that_of_some_member(
            owners in proptest::collection::vec(0_u32..9, 2..12),
            tolerated in 0_u32..6,
        ) {
            let fixed = fixed(&owners);
            let set = RosterSet::full(narrow(owners.len()));
            let least = set.iter().map(|p| fixed.population_for(&set, p, tolerated, false)).min();
            prop_assert_eq!(least, Some(fixed.min_population(&set, tolerated)));
        }
    }
}
