//! A small made-up recording with its files, and what must be true of every row
//! of its results, whatever was killed while it was replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(crate) const SCHEMA: &str = "\
name: Meters
version: 1
tick: 10s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: -1000, max: 1000, aggregations: [sum, count] }
streamPolicyOptions:
  - { name: open, option: aggregate, clients: [1], window: 10s, alpha: 0, dropout: 0 }
";
pub(crate) const SOURCE: &str = "\
schema: Meters
time: { column: time }
stream: meter
attributes: { reading: reading }
";
pub(crate) const POLICIES: &str = "\
schema: Meters
service: statistics.example
default: { reading: { option: open, clients: 1 } }
";
pub(crate) const QUERY: &str = "\
CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading)
WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters
";

/// Start of the first window.
pub(crate) const BASE: u64 = 1_700_000_000;
/// Seconds of a window.
pub(crate) const WINDOW: u64 = 10;

/// What the plaintext says of a window: of each stream that was online its
/// readings' number and sum.
pub(crate) type Truth = BTreeMap<u64, Vec<(u64, i64)>>;

/// The recording.
pub(crate) struct Recording {
    /// Seconds, stream, value.
    pub(crate) rows: Vec<(u64, u64, i64)>,
}

impl Recording {
    /// Streams that start, fall silent and end at different times.
    pub(crate) fn made(streams: u64, windows: u64) -> Self {
        let mut rows = Vec::new();
        for stream in 0..streams {
            let (first, last) = (stream * 3, windows - 1 - stream * 2);
            for window in first..=last {
                let silent = (window * 7 + stream).is_multiple_of(11);
                if silent && window != first && window != last {
                    continue;
                }
                for k in 0..1 + (window + stream) % 3 {
                    let value = (window * 31 + stream * 17 + k * 5) % 2001;
                    let time = BASE + window * WINDOW + k * 3;
                    rows.push((time, stream, i64::try_from(value).unwrap() - 1000));
                }
            }
        }
        rows.sort_unstable();
        Self { rows }
    }

    pub(crate) fn csv(&self) -> String {
        let line = |(time, stream, value): &(u64, u64, i64)| format!("{time},m{stream},{value}\n");
        std::iter::once("time,meter,reading\n".to_owned())
            .chain(self.rows.iter().map(line))
            .collect()
    }

    /// Writes the files that a replay takes.
    pub(crate) fn write(&self, folder: &Path) {
        let csv = self.csv();
        let files = [
            ("schema.yaml", SCHEMA),
            ("source.yaml", SOURCE),
            ("policies.yaml", POLICIES),
            ("sum.sql", QUERY),
            ("data.csv", &csv),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }

    /// What the plaintext says, by the start of the window.
    pub(crate) fn truth(&self) -> Truth {
        let mut streams: BTreeMap<u64, BTreeMap<u64, (u64, i64)>> = BTreeMap::new();
        for (time, stream, value) in &self.rows {
            let start = time - time % WINDOW;
            let (count, sum) = streams.entry(*stream).or_default().entry(start).or_default();
            (*count, *sum) = (*count + 1, *sum + value);
        }
        let mut truth = Truth::new();
        for windows in streams.values() {
            let (first, last) = (windows.keys().next().unwrap(), windows.keys().last().unwrap());
            for start in (*first..=*last).step_by(usize::try_from(WINDOW).unwrap()) {
                let known = windows.get(&start).copied().unwrap_or_default();
                truth.entry(start).or_default().push(known);
            }
        }
        truth
    }
}

/// One row of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Result {
    pub(crate) start: u64,
    pub(crate) sum: Option<i64>,
    pub(crate) count: Option<u64>,
    pub(crate) population: u64,
    pub(crate) silent: u64,
    pub(crate) excluded: u64,
    pub(crate) status: String,
}

/// Rows as they are written to a JSON file.
pub(crate) fn read(path: &PathBuf) -> Vec<Result> {
    let rows: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    rows.iter().map(from_json).collect()
}

pub(crate) fn from_json(row: &serde_json::Value) -> Result {
    let number = |name: &str| row[name].as_u64().unwrap();
    Result {
        start: number("window_start") / 1000,
        sum: row["sum_reading"].as_str().map(|text| text.parse().unwrap()),
        count: row["count_reading"].as_u64(),
        population: number("population"),
        silent: number("silent"),
        excluded: number("excluded"),
        status: row["status"].as_str().unwrap().to_owned(),
    }
}

/// Each window has one row, and that is the plaintext's answer over all streams
/// that were online but for those that it says were excluded. Returns the
/// windows that excluded any, or did not open.
pub(crate) fn check(rows: &[Result], truth: &Truth, about: &str) -> BTreeSet<u64> {
    let starts: Vec<u64> = rows.iter().map(|row| row.start).collect();
    let wanted: Vec<u64> = truth.keys().copied().collect();
    assert_eq!(starts, wanted, "{about}: each window has exactly one row");
    let cut = rows.iter().filter(|row| is_cut(row, &truth[&row.start], about));
    cut.map(|row| row.start).collect()
}

fn is_cut(row: &Result, streams: &[(u64, i64)], about: &str) -> bool {
    let (count, sum) = total(streams.iter());
    if row.status != "ok" {
        let said = row.population + row.silent + row.excluded;
        let nothing = row.sum.is_none() && row.count.is_none() && said == 0;
        assert!(nothing, "{about}: a window that did not open gives nothing: {row:?}");
        return count > 0;
    }
    let counted = row.population + row.silent + row.excluded;
    assert_eq!(counted, streams.len() as u64, "{about}: everybody is counted once: {row:?}");
    if row.excluded == 0 {
        let right = row.sum == Some(sum) && row.count == Some(count);
        assert!(right, "{about}: not the truth ({count}, {sum}): {row:?}");
    }
    let some = subsets(streams, streams.len() as u64 - row.excluded);
    let holds = some.iter().any(|(count, sum)| row.sum == Some(*sum) && row.count == Some(*count));
    assert!(holds, "{about}: the sum of nobody's streams: {row:?} of {streams:?}");
    row.excluded > 0
}

fn total<'a>(streams: impl Iterator<Item = &'a (u64, i64)>) -> (u64, i64) {
    streams.fold((0, 0), |(count, sum), (n, x)| (count + n, sum + x))
}

/// Number and sum over every choice of this many streams.
fn subsets(streams: &[(u64, i64)], many: u64) -> Vec<(u64, i64)> {
    let chosen = |mask: &u32| u64::from(mask.count_ones()) == many;
    let of = |mask: u32| {
        let within = streams.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1);
        total(within.map(|(_, stream)| stream))
    };
    (0..1_u32 << streams.len()).filter(chosen).map(of).collect()
}

/// A small generator, so that a seed draws the same faults everywhere.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
