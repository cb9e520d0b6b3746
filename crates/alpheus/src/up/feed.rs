//! The events of the recording as files of the devices, and the clock that all processes follow. It
//! waits for the devices and for results, so that nothing comes too late for its window.

use super::inputs::{DeviceStream, Inputs};
use super::rows::Results;
use super::stage::{Stage, TIME_COLUMN};
use alpheus_input::cells::Cell;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::local_time::local_time;
use alpheus_node::note;
use alpheus_node::service::shutdown::Shutdown;
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::schema::{Attribute, AttributeKind, Schema};
use alpheus_time::{Span, Timestamp};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the clock moves.
const STEP: Duration = Duration::from_millis(20);
/// How often it is looked whether all processes run.
const LOOK: Duration = Duration::from_secs(1);
/// How long the clock waits at the end of a window for devices and results: then it continues, and
/// the service closes the window without them.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long results are waited for after the end of the recording.
const LAST_PATIENCE: Duration = Duration::from_secs(90);
/// Windows that may be on their way.
const UNDER_WAY: u64 = 4;

/// Why the clock stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The recording has ended.
    Played,
    /// Somebody has stopped it.
    Stopped,
    /// Nobody reads the results any more.
    Unread,
}

/// The clock of a recording.
pub(super) struct Feed {
    /// Starts of the windows in which somebody who takes part has data.
    windows: Vec<u64>,
    window: Span,
    /// How long after its end a window waits.
    grace: Span,
    tick: Span,
    speed: u32,
    /// The window whose end comes next, and since when the clock waits there.
    next: usize,
    waiting: Option<Instant>,
}

impl Feed {
    pub(super) fn new(inputs: &Inputs, speed: u32) -> Self {
        Self {
            windows: inputs.windows().into_iter().collect(),
            window: inputs.create.window,
            grace: inputs.create.grace.unwrap_or(Span(0)),
            tick: inputs.schema.tick,
            speed,
            next: 0,
            waiting: None,
        }
    }

    /// Moves the clock until every window of the recording has a result, or none has come for long;
    /// with `stay`, until it is time to stop.
    pub(super) fn play(
        mut self,
        stage: &mut Stage,
        (results, stay): (&Results, bool),
        stop: &Shutdown,
    ) -> Result<End, Failure> {
        let (mut now, mut moved) = (stage.clock.time(), Instant::now());
        let (mut looked, mut ended) = (Instant::now(), None::<Instant>);
        while !stop.is_stopping() {
            let passed = moved.elapsed().saturating_mul(self.speed);
            moved = Instant::now();
            let wanted = now.plus(Span(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX)));
            now = self.held(wanted, stage, results);
            stage.clock.set(now)?;
            if ended.is_none() && self.next == self.windows.len() {
                ended = Some(Instant::now());
                let then = if stay { "; Ctrl-C ends everything" } else { "" };
                note!("the recording has ended{then}");
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                stage.check()?;
            }
            let lacks = || results.first_lacking().is_some();
            if !stay && ended.is_some_and(|since| !lacks() || since.elapsed() > LAST_PATIENCE) {
                return Ok(End::Played);
            }
            if !results.is_read() {
                return Ok(End::Unread);
            }
            std::thread::sleep(STEP);
        }
        Ok(End::Stopped)
    }

    /// Where the clock may go: not beyond the end of a window whose devices have not sent all.
    fn held(&mut self, wanted: Timestamp, stage: &mut Stage, results: &Results) -> Timestamp {
        while let Some(start) = self.windows.get(self.next) {
            let end = Timestamp(start.saturating_add(self.window.0));
            // The next border closes the window.
            let here = Timestamp(end.plus(self.tick).0.saturating_sub(1));
            if wanted < here {
                break;
            }
            let since = *self.waiting.get_or_insert_with(Instant::now);
            let is_free = stage.devices_reached() >= end && self.has_results_before(here, results);
            if !is_free && since.elapsed() < PATIENCE {
                return here;
            }
            if !is_free {
                let at = local_time(start / 1000);
                note!(
                    "the window of {at} has waited too long; it continues without the missing data"
                );
            }
            (self.next, self.waiting) = (self.next + 1, None);
        }
        wanted
    }

    /// Whether all windows have results but for those that may be on their way.
    fn has_results_before(&self, now: Timestamp, results: &Results) -> bool {
        let span = self.window.0.saturating_mul(UNDER_WAY + 1).saturating_add(self.grace.0);
        results.first_lacking().is_none_or(|start| start.saturating_add(span) > now.0)
    }
}

/// Writes the events of a stream as a file of JSON lines.
pub(super) fn write(schema: &Schema, stream: &DeviceStream, path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path).blame_io(path)?);
    for event in stream.recorded.events() {
        file.write_all(line(schema, event.time, event.cells).as_bytes()).blame_io(path)?;
    }
    file.flush().blame_io(path)
}

/// An event as a line of JSON.
fn line(schema: &Schema, time: Timestamp, cells: &[Cell]) -> String {
    let mut line = format!("{{\"{TIME_COLUMN}\":{}", time.0 / 1000);
    for (attribute, cell) in schema.attributes.iter().zip(cells) {
        if let Some(value) = value(attribute, cell) {
            // Writing to a string cannot fail.
            let _ = write!(line, ",{}:{value}", Value::from(attribute.name.as_str()));
        }
    }
    line + "}\n"
}

fn value(attribute: &Attribute, cell: &Cell) -> Option<String> {
    match (cell, &attribute.kind) {
        (Cell::Number(number), AttributeKind::Number { scale, .. }) => {
            Some(format_scaled(*number, *scale))
        }
        (Cell::Number(number), _) => Some(number.to_string()),
        (Cell::Boolean(truth), _) => Some(truth.to_string()),
        (Cell::Text(text), _) => Some(Value::from(&**text).to_string()),
        (Cell::Absent, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "
name: Meters
version: 1
tick: 1s
streamAttributes:
  - { name: power, type: decimal, scale: 1, min: -10, max: 10, aggregations: [sum] }
  - { name: on, type: boolean, optional: true, aggregations: [count] }
streamPolicyOptions:
  - { name: all, option: public }
";

    #[test]
    fn an_event_is_a_line_that_a_device_reads_back() {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let cells = [Cell::Number(-15), Cell::Absent];
        let said = line(&schema, Timestamp(1_500_000), &cells);
        assert_eq!(said, "{\"alpheus_unix_ms\":1500,\"power\":-1.5}\n");
        let cells = [Cell::Number(30), Cell::Boolean(true)];
        assert!(line(&schema, Timestamp(0), &cells).ends_with("\"power\":3.0,\"on\":true}\n"));
    }
}
