//! Results as they arrive, printed by a thread of its own, and held against the recording.

use super::inputs::Inputs;
use super::stage::Stage;
use alpheus_node::failure::Failure;
use alpheus_node::local_time::local_time;
use alpheus_stream_runtime::results::{cell, has_opened};
use alpheus_streams::replay::windows::WindowOfGroup;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a request waits at the service for a row, in seconds.
const WAIT: u64 = 20;
/// Pause after a request without an answer.
const PAUSE: Duration = Duration::from_secs(1);
/// Columns that are shown apart, or only matter to programs.
const OTHERS: [&str; 8] = [
    "window_start",
    "window_end",
    "population",
    "status",
    "silent",
    "excluded",
    "noise",
    "mostly_noise",
];

/// The results that have come. Clones share them.
#[derive(Clone)]
pub(super) struct Results(Arc<Mutex<Inner>>);

struct Inner {
    /// Owners with data of each window and group, whose result has not come.
    awaited: HashMap<WindowOfGroup, u32>,
    /// Number of groups of each window without a result, by the window's start in milliseconds.
    lacking: BTreeMap<u64, usize>,
    /// Whether populations are those of one window.
    are_windows: bool,
    /// Whether the output can still be written.
    is_read: bool,
    counts: Counts,
}

/// What has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Windows with a result.
    pub(super) opened: u64,
    /// Windows without one, by reason.
    pub(super) closed: BTreeMap<String, u64>,
    /// Windows that lack owners who have data, and how often an owner is lacking.
    pub(super) short: (u64, u64),
}

impl Results {
    fn of(inputs: &Inputs) -> Self {
        let mut awaited = HashMap::new();
        let mut lacking: BTreeMap<u64, usize> = BTreeMap::new();
        for own in &inputs.audiences {
            for (start, many) in own.present() {
                awaited.insert((start / 1000, own.group().to_vec()), many);
                *lacking.entry(start / 1000).or_default() += 1;
            }
        }
        let are_windows = inputs.create.cumulating.is_none();
        let counts = Counts::default();
        Self(Arc::new(Mutex::new(Inner { awaited, lacking, are_windows, is_read: true, counts })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The start of the first window without all its results.
    pub(super) fn first_lacking(&self) -> Option<u64> {
        self.inner().lacking.keys().next().map(|start| start.saturating_mul(1000))
    }

    /// How many windows have no result.
    pub(super) fn lacking(&self) -> usize {
        self.inner().lacking.len()
    }

    /// Whether somebody reads what is printed, as far as is known.
    pub(super) fn is_read(&self) -> bool {
        self.inner().is_read
    }

    /// What has come so far.
    pub(super) fn counts(&self) -> Counts {
        self.inner().counts.clone()
    }
}

impl Inner {
    /// Counts a row; returns how many owners it lacks.
    fn note(&mut self, row: &Map<String, Value>) -> u32 {
        let start = number(row, "window_start");
        let status = row.get("status").and_then(Value::as_str).unwrap_or_default();
        if has_opened(status) {
            self.counts.opened += 1;
        } else {
            *self.counts.closed.entry(status.to_owned()).or_default() += 1;
        }
        let is_of = |(at, group): &&WindowOfGroup| {
            let is = |(name, value): &(String, String)| {
                row.get(name).and_then(Value::as_str) == Some(value)
            };
            *at == start && group.iter().all(is)
        };
        let Some(place) = self.awaited.keys().find(is_of).cloned() else { return 0 };
        let expected = self.awaited.remove(&place).unwrap_or(0);
        if let Some(left) = self.lacking.get_mut(&start) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.lacking.remove(&start);
            }
        }
        let there = u32::try_from(number(row, "population")).unwrap_or(u32::MAX);
        let lacks = match has_opened(status) && self.are_windows {
            true => expected.saturating_sub(there),
            false => 0,
        };
        if lacks > 0 {
            self.counts.short.0 += 1;
            self.counts.short.1 += u64::from(lacks);
        }
        lacks
    }
}

/// Prints rows until the process ends.
pub(super) fn follow(stage: &Stage, inputs: &Inputs) -> Result<Results, Failure> {
    let (client, opener) = stage.consumer()?;
    let (name, results) = (inputs.create.name.text.clone(), Results::of(inputs));
    let shared = results.clone();
    std::thread::spawn(move || {
        let mut after = 0;
        loop {
            let Ok(page) = client.block_on(opener.rows(client.http(), &name, after, WAIT)) else {
                // The service ends, or is restarted.
                std::thread::sleep(PAUSE);
                continue;
            };
            after = page.next;
            for row in &page.rows {
                let mut out = std::io::stdout().lock();
                // It is printed before it counts, so that it is seen before the end.
                let mut inner = shared.inner();
                let lacks = inner.note(row);
                let written = writeln!(out, "{}", in_words(row, lacks)).and_then(|()| out.flush());
                inner.is_read &= written.is_ok();
            }
        }
    });
    Ok(results)
}

fn number(row: &Map<String, Value>, name: &str) -> u64 {
    row.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// A row on one line. It may lack owners who have data.
fn in_words(row: &Map<String, Value>, lacks: u32) -> String {
    let status = row.get("status").and_then(Value::as_str).unwrap_or_default();
    let people = number(row, "population");
    let owners = if people == 1 { "owner " } else { "owners" };
    let start = time(number(row, "window_start"));
    // A window that did not open does not say how many there are.
    let mut line = match has_opened(status) {
        true => format!("{start}  {status:<8} {people:>4} {owners}"),
        false => format!("{start}  {status}"),
    };
    for (name, value) in row {
        if !OTHERS.contains(&name.as_str()) && !value.is_null() {
            line = format!("{line}  {name} {}{}", cell(value.clone()), margin(row, name));
        }
    }
    match lacks {
        0 => line,
        1 => format!("{line}  (one owner with data is missing)"),
        many => format!("{line}  ({many} owners with data are missing)"),
    }
}

/// How far a column is from the truth in 95 of 100 windows, if it has noise and that is known.
fn margin(row: &Map<String, Value>, name: &str) -> String {
    let own = row.get("noise").and_then(|noise| noise.get(name)?.get("margin_95")?.as_f64());
    // To three digits.
    let short = |margin: f64| format!("{margin:.2e}").parse().unwrap_or(margin);
    own.map_or_else(String::new, |margin| format!(" ± {}", short(margin)))
}

/// A time in the zone of this machine.
fn time(unix_ms: u64) -> String {
    local_time(unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: u64, population: u32, status: &str) -> Map<String, Value> {
        let row = serde_json::json!({
            "window_start": start, "window_end": start + 10_000, "avg": 1.5,
            "population": population, "silent": 0, "excluded": 0, "status": status, "noise": null,
        });
        row.as_object().unwrap().clone()
    }

    #[test]
    fn a_row_is_one_line_with_its_columns() {
        let line = in_words(&row(0, 3, "ok"), 0);
        assert!(line.ends_with("ok          3 owners  avg 1.5"), "{line}");
        let mut noisy = row(0, 3, "ok: less exact than asked");
        noisy.insert("noise".to_owned(), serde_json::json!({ "avg": { "margin_95": 14.9896 } }));
        noisy.insert("mostly_noise".to_owned(), serde_json::json!(["avg"]));
        let line = in_words(&noisy, 0);
        assert!(line.ends_with("ok: less exact than asked    3 owners  avg 1.5 ± 15"), "{line}");
        let line = in_words(&row(0, 1, "ok"), 0);
        assert!(line.ends_with("ok          1 owner   avg 1.5"), "{line}");
        let closed = "population below the minimum 10";
        let line = in_words(&row(0, 0, closed), 0);
        assert!(line.ends_with("population below the minimum 10  avg 1.5"), "{line}");
        let line = in_words(&row(0, 3, "ok"), 2);
        assert!(line.ends_with("(2 owners with data are missing)"), "{line}");
    }

    #[test]
    fn missing_owners_and_windows_are_counted() {
        let awaited = [(0, 3), (10_000, 4), (20_000, 1)];
        let awaited = awaited.map(|(at, many)| ((at, Vec::new()), many)).into();
        let lacking = [(0, 1), (10_000, 1), (20_000, 1)].into();
        let counts = Counts::default();
        let mut inner = Inner { awaited, lacking, are_windows: true, is_read: true, counts };
        assert_eq!(inner.note(&row(0, 3, "ok")), 0);
        assert_eq!(inner.note(&row(10_000, 2, "ok")), 2);
        assert_eq!(inner.note(&row(20_000, 0, "too few owners")), 0, "it says why itself");
        assert_eq!(inner.note(&row(30_000, 0, "too few owners")), 0);
        assert!(inner.lacking.is_empty() && inner.awaited.is_empty());
        let closed = [("too few owners".to_owned(), 2)].into();
        assert_eq!(inner.counts, Counts { opened: 2, closed, short: (1, 2) });
    }
}
