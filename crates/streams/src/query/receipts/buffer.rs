//! Receipts that wait for their rows. A receipt of many controllers has megabytes, and a service that shows one
//! row without a receipt has its reader look through all later ones.

use alpheus_policy::ids::PlanId;
use std::collections::{BTreeMap, HashMap};

/// Bytes of receipts that are held. Beyond it, those that came first are dropped, and read again if their
/// rows come after all. A page has less.
const MAX_BYTES: usize = 64 << 20;
/// What each takes beside its bytes, about.
const BESIDE: usize = 512;

/// A row: its plan, and the start of its window in milliseconds.
type Row = (PlanId, u64);

/// What is held, by rows.
pub(super) struct ReceiptBuffer<T> {
    all: HashMap<Row, (u64, usize, T)>,
    /// Rows in the order in which theirs came.
    order: BTreeMap<u64, Row>,
    bytes: usize,
    came: u64,
}

impl<T> Default for ReceiptBuffer<T> {
    fn default() -> Self {
        Self { all: HashMap::new(), order: BTreeMap::new(), bytes: 0, came: 0 }
    }
}

impl<T> ReceiptBuffer<T> {
    /// Takes what a row has, of so many bytes. The last one stays, however large it is.
    pub(super) fn insert(&mut self, row: Row, own: T, bytes: usize) {
        self.remove(&row);
        let bytes = bytes.saturating_add(BESIDE);
        self.all.insert(row, (self.came, bytes, own));
        self.order.insert(self.came, row);
        (self.came, self.bytes) = (self.came + 1, self.bytes.saturating_add(bytes));
        while self.bytes > MAX_BYTES && self.order.len() > 1 {
            let Some((_, first)) = self.order.pop_first() else { return };
            self.remove(&first);
        }
    }

    /// What a row has.
    pub(super) fn remove(&mut self, row: &Row) -> Option<T> {
        let (came, bytes, own) = self.all.remove(row)?;
        self.order.remove(&came);
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: u64) -> Row {
        (PlanId([1; 32]), start)
    }

    #[test]
    fn those_that_came_first_go_once_all_are_too_large() {
        let (mut held, quarter) = (ReceiptBuffer::default(), MAX_BYTES / 4 - BESIDE);
        (0..4).for_each(|start| held.insert(row(start), start, quarter));
        assert_eq!((held.bytes, held.all.len()), (MAX_BYTES, 4));
        // One that was taken, or came again, counts no more.
        assert_eq!(held.remove(&row(1)), Some(1));
        held.insert(row(2), 20, quarter);
        assert_eq!((held.bytes, held.all.len()), (MAX_BYTES / 4 * 3, 3));
        held.insert(row(4), 4, quarter);
        held.insert(row(5), 5, quarter);
        let left: Vec<_> = (0..6).filter_map(|start| held.remove(&row(start))).collect();
        assert_eq!(left, [20, 3, 4, 5]);
        assert_eq!((held.bytes, held.order.len()), (0, 0));
    }

    #[test]
    fn the_last_one_stays_however_large_it_is() {
        let mut held = ReceiptBuffer::default();
        held.insert(row(0), 0, 1);
        held.insert(row(1), 1, 2 * MAX_BYTES);
        assert_eq!((held.remove(&row(0)), held.remove(&row(1))), (None, Some(1)));
    }

    /// Small ones are many: what each takes beside its bytes counts too.
    #[test]
    fn many_without_bytes_are_bounded_as_well() {
        let mut held = ReceiptBuffer::default();
        (0..200_000).for_each(|start| held.insert(row(start), (), 0));
        assert_eq!(held.all.len(), MAX_BYTES / BESIDE);
    }
}
