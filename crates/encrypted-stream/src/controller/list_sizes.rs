//! How many controllers the last lists had, so that the owners' log tells of a small one.
//!
//! They are counted by schema and group, not by plan: a service can ask the same again under
//! another name, and would have no earlier list then.

use alpheus_policy::plan::Plan;

use crate::ledger::GroupLists;

/// Number of lists before one that its size is compared with.
const LISTS: usize = 24;
/// Groups that are remembered. A list names a stream here, and so a group that its metadata fit.
const GROUPS: usize = 64;

/// The sizes of the last lists, the group of the latest one last.
#[derive(Default)]
pub(super) struct ListSizes(Vec<GroupLists>);

impl ListSizes {
    /// Takes what the ledger has.
    pub(super) fn of(lists: Vec<GroupLists>) -> Self {
        Self(lists)
    }

    /// For the ledger.
    pub(super) fn records(&self) -> Vec<GroupLists> {
        self.0.clone()
    }

    /// Notes a list of so many controllers. Returns the most that the group's last ones had before.
    pub(super) fn note(&mut self, plan: &Plan, controllers: u32) -> u32 {
        let mut group = plan.group.clone();
        // The service chooses how it writes it.
        group.sort_unstable();
        group.dedup();
        let known = self.0.iter().position(|own| (own.schema, &own.group) == (plan.schema, &group));
        let mut lists = match known {
            Some(place) => self.0.remove(place),
            None => GroupLists { schema: plan.schema, group, sizes: Vec::new() },
        };
        let most = lists.sizes.iter().copied().max().unwrap_or(0);
        lists.sizes.push(controllers);
        let excess = lists.sizes.len().saturating_sub(LISTS);
        lists.sizes.drain(..excess);
        self.0.push(lists);
        let excess = self.0.len().saturating_sub(GROUPS);
        self.0.drain(..excess);
        most
    }
}
