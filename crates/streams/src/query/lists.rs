//! Which controllers have signed a window: a reader takes one row of each.

use super::receipts::RefusedRowError;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Timestamp, Window};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Windows that a program which reads on and on remembers.
const HELD: usize = 65_536;

/// A window of a query: when it begins, and the values of its group.
type GroupWindow = (Timestamp, Vec<(String, String)>);

/// The rows of one query's windows, as far as this reader has seen them. A service could have a window
/// signed by several sets of controllers, of one statement's plans or lists, and publish the row that it
/// likes. It could also show one row twice.
pub struct RowHistory {
    rows: BTreeMap<GroupWindow, SeenRow>,
    most: usize,
    /// When the latest window begins that is forgotten. No other row of that time or before is
    /// taken.
    forgotten: Option<Timestamp>,
}

/// A row that was taken.
struct SeenRow {
    plan: PlanId,
    at: ReadAt,
}

/// Where a row was read: in the answer to a request, somewhere between two offsets of the service.
#[derive(Clone, Copy)]
pub struct ReadAt {
    /// No two requests have the same.
    request: u64,
    from: u64,
    until: u64,
}

impl ReadAt {
    /// A row of a list that is read once.
    #[must_use]
    pub fn only(place: u64) -> Self {
        Self { request: place, from: place, until: place.saturating_add(1) }
    }
}

/// Numbers a reader's requests.
#[derive(Default)]
pub(super) struct Requests(AtomicU64);

impl Requests {
    /// What one has asked for, and where its answer says to continue.
    pub(super) fn read(&self, from: u64, until: u64) -> ReadAt {
        ReadAt { request: self.0.fetch_add(1, Ordering::Relaxed), from, until }
    }
}

impl Default for RowHistory {
    fn default() -> Self {
        Self::of(HELD)
    }
}

impl RowHistory {
    /// One that forgets no window: for a reader that has all rows in memory anyway.
    #[must_use]
    pub fn unbounded() -> Self {
        Self::of(usize::MAX)
    }

    fn of(most: usize) -> Self {
        Self { rows: BTreeMap::new(), most, forgotten: None }
    }

    /// Takes a row of the query that holds. The same row may be read again, from where it was before.
    ///
    /// # Errors
    /// [`RefusedRowError::SecondList`] if others have signed the window,
    /// [`RefusedRowError::SecondRow`] if the service has it in two places, and
    /// [`RefusedRowError::Forgotten`] if nobody can say any more.
    pub fn take(
        &mut self,
        announced: &AnnouncedPlan,
        window: Window,
        at: ReadAt,
    ) -> Result<(), RefusedRowError> {
        let group = announced.plan().group.clone();
        self.take_row((window.start, group), announced.id(), at)
    }

    fn take_row(
        &mut self,
        window: GroupWindow,
        plan: PlanId,
        at: ReadAt,
    ) -> Result<(), RefusedRowError> {
        // A reader that continues where it is reads the same rows for ever.
        if at.from >= at.until {
            return Err(RefusedRowError::Malformed);
        }
        if let Some(seen) = self.rows.get_mut(&window) {
            return seen.again(plan, at);
        }
        if self.forgotten.is_some_and(|forgotten| window.0 <= forgotten) {
            return Err(RefusedRowError::Forgotten);
        }
        self.rows.insert(window, SeenRow { plan, at });
        while self.rows.len() > self.most {
            let Some(((start, _), _)) = self.rows.pop_first() else { break };
            self.forgotten = self.forgotten.max(Some(start));
        }
        Ok(())
    }
}

impl SeenRow {
    /// The window has a row again. It is the same one if it can be at the same offset: rows of other
    /// queries lie between, so a reader knows no more of it than where the answers began and ended.
    fn again(&mut self, plan: PlanId, at: ReadAt) -> Result<(), RefusedRowError> {
        if self.plan != plan {
            return Err(RefusedRowError::SecondList);
        }
        let (from, until) = (self.at.from.max(at.from), self.at.until.min(at.until));
        if self.at.request == at.request || from >= until {
            return Err(RefusedRowError::SecondRow);
        }
        self.at = ReadAt { request: at.request, from, until };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::noted_queries::NotedQuery;
    use crate::query::receipts::open_plan;
    use alpheus_crypto::sign::VerifyingKey;
    use alpheus_encrypted_stream::certificate::Deployment;
    use alpheus_policy::plan::{Epoch, Plan};
    use data_encoding::HEXLOWER;

    fn window(region: &str, start: u64) -> GroupWindow {
        (Timestamp(start), vec![("region".to_owned(), region.to_owned())])
    }

    fn plan(id: u8) -> PlanId {
        PlanId([id; 32])
    }

    #[test]
    fn one_list_signs_a_window_and_may_be_read_again() {
        let (mut seen, requests) = (RowHistory::default(), Requests::default());
        let mut take = |of, id| seen.take_row(of, plan(id), requests.read(0, 9));
        assert_eq!(take(window("North", 10), 2), Ok(()));
        assert_eq!(take(window("North", 10), 2), Ok(()));
        assert_eq!(take(window("North", 10), 3), Err(RefusedRowError::SecondList));
        // Another window, and another group's.
        assert_eq!(take(window("North", 20), 3), Ok(()));
        assert_eq!(take(window("South", 10), 4), Ok(()));
        assert_eq!(take(window("North", 10), 2), Ok(()));
    }

    /// A plan of the known answers, whose service announced each to other members.
    fn announced(case: &serde_json::Value) -> std::sync::Arc<AnnouncedPlan> {
        let text = |name: &str| case[name].as_str().unwrap().to_owned();
        let bytes = |name: &str| HEXLOWER.decode(text(name).as_bytes()).unwrap();
        let authority = VerifyingKey::from_bytes(bytes("authority").try_into().unwrap()).unwrap();
        let service = postcard::from_bytes(&bytes("service")).unwrap();
        let deployment = Deployment::new(authority, &service).unwrap();
        open_plan(&text("announcement"), &deployment).unwrap()
    }

    /// Of one statement and window, by several sets of controllers.
    fn receipts() -> Vec<serde_json::Value> {
        let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/receipts/v2/receipts.json");
        serde_json::from_str(&std::fs::read_to_string(known).unwrap()).unwrap()
    }

    /// Fixed members: the service announces one statement to several sets of controllers, and each signs its row.
    #[test]
    fn two_plans_do_not_both_have_a_row_of_one_window() {
        let cases = receipts();
        let (four, two) = (announced(&cases[0]), announced(&cases[2]));
        let of = |plan: &AnnouncedPlan| (plan.plan().name.clone(), plan.plan().group.clone());
        assert_eq!(of(&four), of(&two));
        assert!(four.id() != two.id() && four.plan().epoch.is_none());
        let start = Timestamp(cases[0]["start"].as_u64().unwrap());
        let (first, next) = (four.plan().window_at(start), start.plus(four.plan().window));
        let mut seen = RowHistory::unbounded();
        assert_eq!(seen.take(&four, first, ReadAt::only(1)), Ok(()));
        let second = seen.take(&two, first, ReadAt::only(2));
        assert_eq!(second, Err(RefusedRowError::SecondList));
        let next = two.plan().window_at(next);
        assert_eq!(seen.take(&two, next, ReadAt::only(3)), Ok(()));
    }

    /// The service has begun one of them, and goes on with rows of the other. Of both it knows that the
    /// statement is the consumer's.
    #[test]
    fn a_plan_that_was_not_named_is_refused() {
        let cases = receipts();
        let (four, two) = (announced(&cases[0]), announced(&cases[2]));
        let noted = |plans| NotedQuery { sql: String::new(), plans };
        let begun = noted(Some(vec![four.id()]));
        assert_eq!(begun.check_begun(four.plan()), Ok(()));
        assert_eq!(begun.check_begun(two.plan()), Err(RefusedRowError::OtherBegun));
        // The answer was lost.
        let unknown = noted(None);
        assert!(
            unknown.check_begun(four.plan()).is_ok() && unknown.check_begun(two.plan()).is_ok()
        );
        // With epochs, a window's plan follows from the terms that the answer named.
        let terms = four.plan().terms();
        let epoch = Epoch { terms: terms.id(), list: [7; 32], windows: 1 };
        let listed = Plan { epoch: Some(epoch), ..four.plan().clone() };
        assert_ne!(listed.id(), terms.id());
        assert_eq!(noted(Some(vec![terms.id()])).check_begun(&listed), Ok(()));
        assert_eq!(begun.check_begun(&listed), Err(RefusedRowError::OtherBegun));
    }

    #[test]
    fn a_row_is_in_one_place() {
        let (mut seen, requests) = (RowHistory::default(), Requests::default());
        let mut take = |at| seen.take_row(window("North", 10), plan(2), at);
        let second = Err(RefusedRowError::SecondRow);
        let page = requests.read(4, 9);
        assert_eq!(take(page), Ok(()));
        assert_eq!(take(page), second, "twice in one answer");
        assert_eq!(take(requests.read(9, 12)), second, "again where the reader goes on");
        // From the beginning, in other pages: it is one of the rows from 4 to 6, so not of the next.
        assert_eq!(take(requests.read(0, 7)), Ok(()));
        assert_eq!(take(requests.read(7, 20)), second);
        // The service lets nobody go on.
        assert_eq!(take(requests.read(5, 5)), Err(RefusedRowError::Malformed));
        assert_eq!(take(requests.read(5, 6)), Ok(()));
    }

    /// The service has two rows of one window, and shows many others between them.
    #[test]
    fn what_is_forgotten_is_not_taken_again() {
        let (mut seen, requests) = (RowHistory::of(3), Requests::default());
        let mut take =
            |start, id| seen.take_row(window("North", start), plan(id), requests.read(0, 9));
        for start in [10, 20, 30, 40] {
            assert_eq!(take(start, 2), Ok(()));
        }
        assert_eq!(take(10, 3), Err(RefusedRowError::Forgotten));
        assert_eq!(take(5, 2), Err(RefusedRowError::Forgotten));
        assert_eq!(take(20, 3), Err(RefusedRowError::SecondList));
        assert_eq!(take(20, 2), Ok(()));
    }

    #[test]
    fn a_reader_that_has_all_rows_forgets_none() {
        let mut seen = RowHistory::unbounded();
        for place in 0..HELD as u64 + 9 {
            let taken = seen.take_row(window("North", place), plan(2), ReadAt::only(place));
            assert_eq!(taken, Ok(()));
        }
        let second = seen.take_row(window("North", 0), plan(3), ReadAt::only(u64::MAX - 1));
        assert_eq!(second, Err(RefusedRowError::SecondList));
    }
}
