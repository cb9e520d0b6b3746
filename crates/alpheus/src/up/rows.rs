//! Results as they arrive, printed by a thread of its own.

use super::inputs::Inputs;
use super::stage::Stage;
use alpheus_node::failure::Failure;
use alpheus_node::local_time::local_time;
use alpheus_streams::runtime::results::cell;
use alpheus_time::Timestamp;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a request waits at the service for a row, in seconds.
const WAIT: u64 = 20;
/// Pause after a request without an answer.
const PAUSE: Duration = Duration::from_secs(1);
/// Columns that are shown apart, or only matter to programs.
const OTHERS: [&str; 6] =
    ["window_start", "window_end", "population", "status", "silent", "excluded"];

/// How far the results have come.
pub(super) struct Results(Arc<AtomicU64>);

impl Results {
    /// The end of the last window with a row.
    pub(super) fn reached(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed).saturating_mul(1000))
    }
}

/// Prints rows until the process ends.
pub(super) fn follow(stage: &Stage, inputs: &Inputs) -> Result<Results, Failure> {
    let (client, opener) = stage.consumer()?;
    let (name, reached) = (inputs.create.name.to_string(), Arc::new(AtomicU64::new(0)));
    let shared = reached.clone();
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
                // Nobody may be reading any more.
                let _ = writeln!(out, "{}", in_words(row)).and_then(|()| out.flush());
                shared.fetch_max(number(row, "window_end"), Ordering::Relaxed);
            }
        }
    });
    Ok(Results(reached))
}

fn number(row: &Map<String, Value>, name: &str) -> u64 {
    row.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// A row on one line.
fn in_words(row: &Map<String, Value>) -> String {
    let status = row.get("status").and_then(Value::as_str).unwrap_or_default();
    let people = number(row, "population");
    let mut line = format!("{}  {status:<8} {people:>4} owners", time(number(row, "window_start")));
    for (name, value) in row {
        if !OTHERS.contains(&name.as_str()) && !value.is_null() {
            line = format!("{line}  {name} {}", cell(value.clone()));
        }
    }
    line
}

/// A time in the zone of this machine.
fn time(unix_ms: u64) -> String {
    local_time(unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_with_its_columns() {
        let row = serde_json::json!({
            "window_start": 0, "window_end": 10_000, "avg": 1.5, "population": 3,
            "silent": 0, "excluded": 0, "status": "ok", "noise": null,
        });
        let line = in_words(row.as_object().unwrap());
        assert!(line.ends_with("ok          3 owners  avg 1.5"), "{line}");
    }
}
