//! Numbers that rise and fall slowly, as a pressure does.

use crate::form::Form;
use crate::scan::{SAMPLE, ScannedRow, scan};
use std::collections::BTreeMap;

/// Fewest different numbers: a round of visits has fewer.
const MIN_DISTINCT: u64 = 13;
const MIN_CHANGES: u64 = 10;
const MIN_TURNS: u64 = 10;
/// At so many numbers rounds turn back, of one part of the visited or of another.
const ENDS: usize = 4;
/// Steps that are small go over at most such a part of the range.
const PART: i64 = 8;

/// What happens from row to row.
#[derive(Default)]
struct Steps {
    before: Option<i64>,
    stays: u64,
    /// How often there is each step.
    changes: BTreeMap<i64, u64>,
    /// Whether the last change was a rise, and how often each number was the one at which a rise ended
    /// or a fall.
    rises: Option<bool>,
    turns: BTreeMap<i64, u64>,
}

impl Steps {
    fn add(&mut self, number: i64) {
        let Some(before) = self.before.replace(number) else { return };
        let step = number.saturating_sub(before);
        if step == 0 {
            self.stays += 1;
            return;
        }
        *self.changes.entry(step).or_default() += 1;
        if self.rises.replace(step > 0).is_some_and(|rises| rises != (step > 0)) {
            *self.turns.entry(before).or_default() += 1;
        }
    }

    /// Whether nearly all steps are small, and many of them go up and many down.
    fn are_small(&self, small: i64) -> bool {
        let of = |is: &dyn Fn(i64) -> bool| {
            self.changes.iter().filter(|(step, _)| is(**step)).map(|(_, count)| count).sum::<u64>()
        };
        let (rises, falls) =
            (of(&|step| (1..=small).contains(&step)), of(&|step| (-small..0).contains(&step)));
        let all = of(&|_| true);
        all >= MIN_CHANGES && (rises + falls) * 10 >= all * 9 && rises.min(falls) * 4 >= all
    }

    /// Whether they turn at many numbers, and stay at some: a round of visits turns at its ends.
    fn turn_anywhere(&self) -> bool {
        let mut turns: Vec<u64> = self.turns.values().copied().collect();
        turns.sort_unstable_by(|one, other| other.cmp(one));
        let (all, most): (u64, u64) = (turns.iter().sum(), turns.iter().take(ENDS).sum());
        let changes: u64 = self.changes.values().sum();
        all >= MIN_TURNS && most * 4 <= all * 3 && self.stays * 10 >= changes
    }
}

/// Whether the numbers of a column rise and fall in small steps from row to row: people take turns in
/// any order, or in one, or up and back.
pub(crate) fn moves_slowly((text, form): (&str, &Form), at: usize, distinct: u64) -> bool {
    if distinct < MIN_DISTINCT {
        return false;
    }
    let (mut steps, mut rows) = (Steps::default(), 0);
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    scan(text, form, |_, scanned| {
        if let ScannedRow::Row(row) = scanned
            && let Some(number) = row.get(at).and_then(|cell| cell.parse::<i64>().ok())
        {
            (least, most) = (least.min(number), most.max(number));
            steps.add(number);
        }
        rows += 1;
        rows < SAMPLE
    });
    let small = (most.saturating_sub(least) / PART).max(1);
    steps.are_small(small) && steps.turn_anywhere()
}
