//! Windows of which the service shows nothing.
//!
//! A window with a receipt has a row, so one without was withheld, or the service has lost it. Windows in
//! which none of a query's devices was online have neither. Nobody can tell them from windows that the
//! service withholds whole, so they are named and hold nothing against it. The first rows may be deleted
//! because of their age, and the last ones may still come: see [`gaps`].

use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_policy::plan::Plan;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// After its grace period a window has a row in much less than this, in milliseconds.
const PATIENCE: u64 = 600_000;

/// What is shown of a plan, or by epochs of all plans of one statement.
pub(super) struct Run {
    announced: Arc<AnnouncedPlan>,
    /// Starts of windows in milliseconds.
    rows: BTreeSet<u64>,
    receipts: BTreeSet<u64>,
    /// Of rows that are perhaps of this plan.
    possible: BTreeSet<u64>,
}

impl Run {
    pub(super) fn of(announced: &Arc<AnnouncedPlan>) -> Self {
        let (rows, receipts, possible) = Default::default();
        Self { announced: Arc::clone(announced), rows, receipts, possible }
    }

    pub(super) fn plan(&self) -> &Plan {
        self.announced.plan()
    }

    /// Receipts of an earlier statement of the same name have none.
    pub(super) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    pub(super) fn row(&mut self, start: u64) {
        self.rows.insert(start);
    }

    pub(super) fn receipt(&mut self, start: u64) {
        self.receipts.insert(start);
    }

    pub(super) fn may_have(&mut self, start: u64) {
        self.possible.insert(start);
    }
}

/// What there is of windows without a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Nothing.
    Nothing,
    /// A receipt.
    Receipt,
    /// A receipt, and all rows are later: they may be kept for a shorter time.
    OldReceipt,
}

/// Windows one after the other without a row.
#[derive(Debug, PartialEq, Eq)]
pub struct Gap {
    start: u64,
    end: u64,
    length: u64,
    group: Vec<(String, String)>,
    rest: Rest,
}

impl Gap {
    /// How many windows it has.
    fn windows(&self) -> u64 {
        (self.end - self.start) / self.length
    }

    /// How many of its windows had results.
    #[must_use]
    pub fn withheld(&self) -> u64 {
        if self.rest == Rest::Receipt { self.windows() } else { 0 }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} – {}", self.start, self.end)?;
        for (name, value) in &self.group {
            write!(f, ", {name} {value}")?;
        }
        let of = match self.windows() {
            1 => "this window".to_owned(),
            many => format!("these {many} windows"),
        };
        match self.rest {
            Rest::Receipt => {
                write!(f, ": withheld: there is a receipt of {of}, and the service shows no row")
            }
            Rest::OldReceipt => write!(
                f,
                ": there is a receipt of {of}, and no row: it was deleted because of its age, or is withheld"
            ),
            Rest::Nothing => write!(
                f,
                ": neither row nor receipt of {of}: no device was online, or the service withholds it"
            ),
        }
    }
}

/// The windows of a plan that have no row. `read` is when the service was asked, in milliseconds.
/// Windows after the last that is shown count if the query is running and they ended long ago. Those
/// before the first do not: a plan's first windows have no rows until devices send.
pub(super) fn gaps(run: &Run, read: Option<u64>, running: bool) -> Vec<Gap> {
    let plan = run.plan();
    let length = (plan.window.0 / 1000).max(1);
    let late = plan.grace.0 / 1000 + PATIENCE.max(2 * length);
    let due = read.filter(|_| running).map(|read| read.saturating_sub(late));
    let missing = missing(length, (&run.rows, &run.receipts, &run.possible), due);
    let gap = |(start, end, rest)| Gap { start, end, length, group: plan.group.clone(), rest };
    missing.into_iter().map(gap).collect()
}

/// Ranges of windows without a row, and what there is of each window of them. Windows that end before
/// it is `due` must have one.
fn missing(
    length: u64,
    (rows, receipts, possible): (&BTreeSet<u64>, &BTreeSet<u64>, &BTreeSet<u64>),
    due: Option<u64>,
) -> Vec<(u64, u64, Rest)> {
    let start = rows.first().copied().unwrap_or(u64::MAX);
    let old = receipts.range(..start).filter(|at| !possible.contains(*at));
    // A service may say any time.
    let after = |at: u64| at.saturating_add(length);
    let mut found: Vec<_> = old.map(|at| (*at, after(*at), Rest::OldReceipt)).collect();
    let Some(first) = rows.first().copied() else { return found };
    let known: BTreeSet<u64> = rows.union(receipts).copied().filter(|at| *at >= first).collect();
    let last = known.last().copied().unwrap_or(first);
    let (mut next, mut until) = (first, after(last));
    if let Some(due) = due.filter(|due| *due > until) {
        until += (due - until) / length * length;
    }
    let shown = |start: &u64| rows.contains(start) || possible.contains(start);
    let stops: BTreeSet<u64> = known.iter().chain(possible).copied().chain([until]).collect();
    for stop in stops.range(next..=until) {
        if *stop > next {
            found.push((next, *stop, Rest::Nothing));
        }
        if receipts.contains(stop) && !shown(stop) && *stop < until {
            found.push((*stop, after(*stop), Rest::Receipt));
        }
        next = after(*stop);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 10;

    fn set(starts: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        starts.into_iter().collect()
    }

    fn found(
        rows: &[u64],
        receipts: &[u64],
        possible: &[u64],
        due: Option<u64>,
    ) -> Vec<(u64, u64, Rest)> {
        let of = |starts: &[u64]| set(starts.iter().copied());
        missing(LENGTH, (&of(rows), &of(receipts), &of(possible)), due)
    }

    #[test]
    fn windows_between_others_that_have_no_row_are_found() {
        let at = |window: u64| 100_000_000 + window * LENGTH;
        let all = [at(0), at(1), at(2), at(3)];
        assert_eq!(found(&all, &[at(1)], &[], None), []);
        assert_eq!(found(&[], &[], &[], None), []);
        let some = [at(0), at(3), at(7)];
        assert_eq!(
            found(&some, &[], &[], None),
            [(at(1), at(3), Rest::Nothing), (at(4), at(7), Rest::Nothing)]
        );
        // A row that may be of this plan counts.
        assert_eq!(
            found(&some, &[], &[at(1), at(2), at(5)], None),
            [(at(4), at(5), Rest::Nothing), (at(6), at(7), Rest::Nothing)]
        );
    }

    #[test]
    fn a_receipt_without_a_row_shows_that_the_window_opened() {
        let at = |window: u64| 100_000_000 + window * LENGTH;
        let receipts = [at(1), at(4)];
        let expected = [
            (at(1), at(2), Rest::Receipt),
            (at(3), at(4), Rest::Nothing),
            (at(4), at(5), Rest::Receipt),
        ];
        assert_eq!(found(&[at(0), at(2)], &receipts, &[], None), expected);
        // The first row is later: others may have been deleted because of their age.
        let old = |window| (at(window), at(window + 1), Rest::OldReceipt);
        assert_eq!(found(&[at(2)], &receipts, &[], None), [old(1), expected[1], expected[2]]);
        assert_eq!(found(&[], &receipts, &[], None), [old(1), old(4)]);
    }

    #[test]
    fn the_last_windows_count_once_they_are_late() {
        let at = |window: u64| 100_000_000 + window * LENGTH;
        let rows = [at(2), at(3)];
        assert_eq!(found(&rows, &[], &[], None), []);
        assert_eq!(found(&rows, &[], &[], Some(at(4) + 5)), []);
        assert_eq!(found(&rows, &[], &[], Some(at(4) + 25)), [(at(4), at(6), Rest::Nothing)]);
        assert_eq!(found(&rows, &[], &[at(4)], Some(at(4) + 25)), [(at(5), at(6), Rest::Nothing)]);
    }

    /// Rows that do not hold have any time that the service likes.
    #[test]
    fn a_row_of_the_end_of_time_is_no_reason_to_give_up() {
        let last = u64::MAX - 3;
        let expected = [(30, last, Rest::Nothing)];
        assert_eq!(found(&[20, last], &[], &[], Some(u64::MAX)), expected);
        assert_eq!(found(&[u64::MAX], &[10, u64::MAX], &[], None), [(10, 20, Rest::OldReceipt)]);
    }

    #[test]
    fn a_gap_says_which_windows_it_has() {
        let gap = |end, rest| Gap {
            start: 20,
            end,
            length: LENGTH,
            group: vec![("region".to_owned(), "North".to_owned())],
            rest,
        };
        let text = gap(50, Rest::Nothing).to_string();
        assert_eq!(
            text,
            "20 – 50, region North: neither row nor receipt of these 3 windows: no device was online, or the service withholds it"
        );
        assert!(
            gap(30, Rest::Receipt)
                .to_string()
                .ends_with("there is a receipt of this window, and the service shows no row")
        );
    }
}
