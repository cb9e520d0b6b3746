//! Which list of controllers has signed a window, by epochs.

use super::receipts::RefusedRowError;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use std::collections::HashMap;

/// Windows that are remembered.
const HELD: usize = 16_384;

/// A window of a query: the values of its group, and when it begins.
type GroupWindow = (Vec<(String, String)>, Timestamp);

/// Which list has signed each window of one query, as far as this reader has seen. A service could make
/// several lists for a window, of different controllers, also from several terms of one statement, and
/// publish the row that it likes.
#[derive(Default)]
pub struct SeenLists(HashMap<GroupWindow, PlanId>);

impl SeenLists {
    /// Takes the plan of a row of the query that holds.
    ///
    /// # Errors
    /// [`RefusedRowError::SecondList`] if another list has signed the window.
    pub fn take(&mut self, announced: &AnnouncedPlan) -> Result<(), RefusedRowError> {
        let plan = announced.plan();
        match plan.epoch {
            Some(_) => self.take_plan((plan.group.clone(), plan.from), announced.id()),
            None => Ok(()),
        }
    }

    fn take_plan(&mut self, window: GroupWindow, plan: PlanId) -> Result<(), RefusedRowError> {
        if self.0.len() >= HELD {
            self.0.clear();
        }
        let first = *self.0.entry(window).or_insert(plan);
        if first == plan { Ok(()) } else { Err(RefusedRowError::SecondList) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_signs_a_window_and_may_be_read_again() {
        let (mut seen, plan) = (SeenLists::default(), |id: u8| PlanId([id; 32]));
        let window = |region: &str, start: u64| {
            (vec![("region".to_owned(), region.to_owned())], Timestamp(start))
        };
        assert_eq!(seen.take_plan(window("North", 10), plan(2)), Ok(()));
        assert_eq!(seen.take_plan(window("North", 10), plan(2)), Ok(()));
        let second = seen.take_plan(window("North", 10), plan(3));
        assert_eq!(second, Err(RefusedRowError::SecondList));
        // Another window, and another group's.
        assert_eq!(seen.take_plan(window("North", 20), plan(3)), Ok(()));
        assert_eq!(seen.take_plan(window("South", 10), plan(4)), Ok(()));
        assert_eq!(seen.take_plan(window("North", 10), plan(2)), Ok(()));
    }
}
