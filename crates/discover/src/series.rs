//! How often times repeat: in a file without a named owner, they tell series apart.

use crate::form::Form;
use crate::hash::{Hashes, Set};
use crate::plural::verb;
use crate::profile::Profile;
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::times::{TimePlan, join};
use crate::words::worded;

/// The columns that may be the owner's, in a sentence.
pub(crate) fn offered(columns: &[usize], name: impl Fn(usize) -> String) -> String {
    let names: Vec<String> = columns.iter().map(|at| name(*at)).collect();
    match &names[..] {
        [] => String::new(),
        [only] => format!(" It may be {only}."),
        several => format!(" It may be one of {}.", several.join(", ")),
    }
}

/// How often times repeat, in the file and within each value of a column.
pub(crate) struct Series {
    pub(crate) rows: u64,
    pub(crate) repeats: u64,
    pub(crate) within: Vec<(usize, u64)>,
    /// Rows whose time is before that of the row above.
    backs: u64,
    /// For each column: rows with another value than the row above, and those of the backward rows
    /// with the same.
    changes: Vec<(u64, u64)>,
}

impl Series {
    pub(crate) fn read(
        text: &str,
        form: &Form,
        time: &TimePlan,
        owner: Option<usize>,
        columns: &[usize],
    ) -> Series {
        let mut series = Series {
            rows: 0,
            repeats: 0,
            within: columns.iter().map(|at| (*at, 0)).collect(),
            backs: 0,
            changes: vec![(0, 0); columns.len()],
        };
        let mut last = i64::MIN;
        let mut above = vec![None; columns.len()];
        let hashes = Hashes::default();
        let mut known: Set<(u64, i64)> = Set::default();
        let mut own: Vec<Set<(u64, i64)>> = vec![Set::default(); columns.len()];
        let mut joined = String::new();
        scan(text, form, |_, scanned| {
            let ScannedRow::Row(row) = scanned else { return true };
            if !join(row, &time.columns, form, &mut joined) {
                return true;
            }
            let Some(at) = time.clock.micros(&joined) else { return true };
            let cell = |column: usize| row.get(column).map_or("", AsRef::as_ref);
            let whose = owner.map_or("", cell);
            series.rows += 1;
            series.repeats += u64::from(!known.insert((hashes.of(whose), at)));
            let back = at < std::mem::replace(&mut last, at);
            series.backs += u64::from(back);
            let changes = series.changes.iter_mut().zip(&mut above);
            let within = series.within.iter_mut().zip(&mut own);
            for (((column, repeats), own), ((changes, same), above)) in within.zip(changes) {
                let hash = hashes.of((whose, cell(*column)));
                *repeats += u64::from(!own.insert((hash, at)));
                let changed = above.replace(hash).is_some_and(|above| above != hash);
                *changes += u64::from(changed);
                *same += u64::from(back && !changed);
            }
            series.rows < SAMPLE
        });
        series
    }

    pub(crate) fn question(&self, tried: &[usize], name: impl Fn(usize) -> String) -> String {
        let offered = offered(tried, name);
        format!(
            "{} of {} rows {} the time of another row, so the file seems to hold several series, but no column clearly names the owner of a row.{offered} Name it with `--owner COLUMN`, or use `--owner none` if all rows belong to one owner.",
            self.repeats,
            self.rows,
            verb(self.repeats, "has", "have")
        )
    }

    /// The first column that changes wherever times go back, and hardly elsewhere; with what to
    /// ask. In files with the latest row first, times go back at each row.
    pub(crate) fn in_blocks(&self, profile: &Profile) -> Option<(usize, String)> {
        if self.backs < 2 || self.backs * 3 > self.rows {
            return None;
        }
        let mut found = self.within.iter().zip(&self.changes);
        let fits = |(changes, same): &(u64, u64)| *same == 0 && *changes <= 2 * self.backs;
        let at = found.find(|(_, changes)| fits(changes)).map(|((at, _), _)| *at)?;
        let (name, backs) = (&profile.columns[at].name, self.backs);
        let word = worded(name);
        let asked = format!(
            "Times go back {backs} times, and only where `{name}` changes, so the rows of each of its values seem to be a separate series. Use `--owner {word}` if it names the owner of a row, or `--owner none` if all rows belong to one owner."
        );
        Some((at, asked))
    }
}
