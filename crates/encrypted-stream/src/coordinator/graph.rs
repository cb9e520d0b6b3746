//! Who picked whom, in a plan with `Neighbours`. The service needs this to leave members
//! out of a set that would refuse it, and to tell each member who picked it.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Tree;
use alpheus_policy::plan::{MaskStrategy, Plan};

use crate::counts::narrow;
use crate::mask::neighbours::are_picks;
use crate::mask::set::RosterSet;
use crate::messages::member_leaf;

/// For each member the members that picked it, ascending; `None` if the plan has no picks.
pub(super) type Pickers = Option<BTreeMap<u32, Vec<u32>>>;

/// The picks received so far.
pub(super) struct Graph {
    masks: MaskStrategy,
    picks: Vec<Option<Vec<u32>>>,
}

impl Graph {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { masks: plan.masks, picks: vec![None; plan.roster.len()] }
    }

    /// Takes a controller's picks. Returns false if they do not fit the plan. The first
    /// picks stay: others would change the tree of a fixed M after a restart.
    pub(super) fn take(&mut self, controller: u32, picks: Vec<u32>) -> bool {
        let MaskStrategy::Neighbours { picks: wanted, .. } = self.masks else { return false };
        if !are_picks(&picks, wanted, controller, narrow(self.picks.len())) {
            return false;
        }
        let slot = self.picks.get_mut(controller as usize);
        slot.is_some_and(|slot| *slot.get_or_insert_with(|| picks.clone()) == picks)
    }

    /// Whether the controller must send its picks before it can take part.
    pub(super) fn lacks(&self, controller: u32) -> bool {
        self.masks.needed_picks().is_some() && self.of_controller(controller).is_none()
    }

    fn of_controller(&self, controller: u32) -> Option<&[u32]> {
        self.picks.get(controller as usize)?.as_deref()
    }

    /// The largest part of a set in which each member has enough of its own picks. A member
    /// with too few would refuse, which may leave the next one with too few.
    pub(super) fn peel(&self, mut set: RosterSet) -> RosterSet {
        let Some(needed) = self.masks.needed_picks() else { return set };
        let short = |set: &RosterSet, controller: u32| {
            let picks = self.of_controller(controller).unwrap_or(&[]);
            narrow(picks.iter().filter(|pick| set.contains(**pick)).count()) < needed
        };
        loop {
            let out: Vec<u32> = set.iter().filter(|member| short(&set, *member)).collect();
            if out.is_empty() {
                return set;
            }
            out.into_iter().for_each(|member| set.remove(member));
        }
    }

    /// The members that picked each of these members.
    pub(super) fn pickers(&self, members: &RosterSet) -> Pickers {
        self.masks.needed_picks()?;
        let mut pickers: BTreeMap<u32, Vec<u32>> =
            members.iter().map(|member| (member, Vec::new())).collect();
        for member in members.iter() {
            for pick in self.of_controller(member).unwrap_or(&[]) {
                if let Some(of_pick) = pickers.get_mut(pick) {
                    of_pick.push(member);
                }
            }
        }
        Some(pickers)
    }
}

/// M's tree over its members' presences, in roster order.
pub(super) fn tree(pickers: &Pickers, presences: impl Iterator<Item = (u32, Digest)>) -> Tree {
    let leaf = |(member, presence): (u32, Digest)| {
        member_leaf(&presence, pickers.as_ref().map(|pickers| pickers_of(pickers, member)))
    };
    Tree::new(presences.map(leaf).collect())
}

/// The members that picked a member.
pub(super) fn pickers_of(pickers: &BTreeMap<u32, Vec<u32>>, member: u32) -> &[u32] {
    pickers.get(&member).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(picks: &[&[u32]]) -> Graph {
        let masks = MaskStrategy::Neighbours { picks: 2, cut_off: 0 };
        let mut graph = Graph { masks, picks: vec![None; picks.len()] };
        for (controller, picks) in (0..).zip(picks) {
            assert!(graph.take(controller, picks.to_vec()));
        }
        graph
    }

    #[test]
    fn peeling_continues_until_every_member_has_enough_picks() {
        let graph = graph(&[&[1, 2], &[0, 2], &[0, 1], &[0, 4], &[3, 5], &[1, 3]]);
        let peeled = |out: &[u32]| {
            let set = RosterSet::of(6, (0..6).filter(|at| !out.contains(at)));
            graph.peel(set).iter().collect::<Vec<_>>()
        };
        assert_eq!(peeled(&[]), [0, 1, 2, 3, 4, 5]);
        // Without 5, 4 falls short, and then 3.
        assert_eq!(peeled(&[5]), [0, 1, 2]);
        assert_eq!(peeled(&[1]), [0_u32; 0]);
    }

    #[test]
    fn pickers_are_the_members_that_picked_a_member() {
        let graph = graph(&[&[1, 2], &[0, 2], &[0, 1], &[0, 4], &[3, 5], &[1, 3]]);
        let pickers = graph.pickers(&RosterSet::of(6, [0, 1, 3, 4])).unwrap();
        assert_eq!(pickers_of(&pickers, 0), [1, 3]);
        assert_eq!((pickers_of(&pickers, 1), pickers_of(&pickers, 3)), (&[0][..], &[4][..]));
        assert_eq!(pickers_of(&pickers, 2), [0_u32; 0]);
    }

    #[test]
    fn invalid_picks_are_refused() {
        let mut graph = graph(&[&[1, 2], &[0, 2], &[0, 1]]);
        for bad in [&[1][..], &[1, 3], &[0, 1], &[2, 1], &[1, 1]] {
            assert!(!graph.take(0, bad.to_vec()), "{bad:?}");
        }
        assert!(!graph.take(3, vec![0, 1]) && !graph.lacks(0));
        assert!(graph.take(0, vec![1, 2]), "the same again");
        let mut larger = Graph { masks: graph.masks, picks: vec![None; 4] };
        assert!(larger.take(0, vec![1, 2]) && !larger.take(0, vec![1, 3]), "the first picks stay");
        graph.masks = MaskStrategy::Clique;
        assert!(!graph.take(0, vec![1, 2]) && graph.pickers(&RosterSet::full(3)).is_none());
        assert_eq!(graph.peel(RosterSet::of(3, [1])).count(), 1);
    }
}
