//! Times of day that pass midnight, though one date stands for all rows.

use crate::windows::SECOND;

/// Half a day: a clock that jumps by more has passed midnight, unless rows are in no order.
const HALF_DAY: i64 = 43_200 * SECOND;

/// How the times of each owner go on from row to row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nights {
    /// Steps to a later and to an earlier time.
    forth: u64,
    back: u64,
    /// Those of more than half a day.
    far_forth: u64,
    far_back: u64,
}

impl Nights {
    /// Adds the time of a row, and that of the owner's row before.
    pub(crate) fn add(&mut self, before: Option<i64>, micros: i64) {
        let step = micros - before.unwrap_or(micros);
        self.forth += u64::from(step > 0);
        self.back += u64::from(step < 0);
        self.far_forth += u64::from(step > HALF_DAY);
        self.far_back += u64::from(step < -HALF_DAY);
    }

    /// How often midnight seems to pass. Where the newest row comes first, the clock jumps ahead.
    pub(crate) fn passed(&self) -> u64 {
        self.far_back + if self.back > self.forth { self.far_forth } else { 0 }
    }
}
