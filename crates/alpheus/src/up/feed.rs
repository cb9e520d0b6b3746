//! The events of the recording, each handed to its device at its time, and the clock that all
//! processes follow.

use super::inputs::{DeviceStream, Inputs};
use super::rows::Results;
use super::stage::{Stage, TIME_COLUMN};
use alpheus_input::cells::Cell;
use alpheus_node::failure::Failure;
use alpheus_node::service::shutdown::Shutdown;
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::schema::{Attribute, AttributeKind, Schema};
use alpheus_time::{Span, Timestamp};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

/// How often the clock moves.
const STEP: Duration = Duration::from_millis(20);
/// How often it is looked whether all processes run.
const LOOK: Duration = Duration::from_secs(1);

/// An event of a device: its time, the device, and where in its recording it is.
type Due = (Timestamp, usize, usize);

/// What is played, and to whom.
pub(super) struct Feed<'a> {
    schema: &'a Schema,
    streams: &'a [DeviceStream],
    devices: Vec<Option<ChildStdin>>,
    /// In order of time.
    due: Vec<Due>,
    /// Events of each device that are left.
    left: Vec<usize>,
    window: Span,
    speed: u32,
}

impl<'a> Feed<'a> {
    pub(super) fn new(inputs: &'a Inputs, devices: Vec<ChildStdin>, speed: u32) -> Self {
        let times = |(device, stream): (usize, &DeviceStream)| {
            let events = stream.recorded.events().enumerate();
            events.map(|(index, event)| (event.time, device, index)).collect::<Vec<Due>>()
        };
        let mut due: Vec<Due> = inputs.streams.iter().enumerate().flat_map(times).collect();
        due.sort_unstable();
        Self {
            schema: &inputs.schema,
            streams: &inputs.streams,
            devices: devices.into_iter().map(Some).collect(),
            due,
            left: inputs.streams.iter().map(|stream| stream.recorded.len()).collect(),
            window: inputs.create.window,
            speed,
        }
    }

    /// Moves the clock and hands out events until it is time to stop; with `once`, until the
    /// last window of the recording has a result.
    pub(super) fn play(
        mut self,
        stage: &mut Stage,
        (results, once): (&Results, bool),
        stop: &Shutdown,
    ) -> Result<(), Failure> {
        let (begin, started, mut looked) = (stage.clock.time(), Instant::now(), Instant::now());
        let last = self.due.last().map_or(begin, |(time, ..)| *time).floor(self.window);
        let (mut next, mut said) = (0, false);
        while !stop.is_stopping() {
            let passed = started.elapsed().saturating_mul(self.speed);
            let now = begin.plus(Span(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX)));
            stage.clock.set(now)?;
            while let Some(due) = self.due.get(next).copied().filter(|due| due.0 <= now) {
                self.hand(due);
                next += 1;
            }
            let ended = next == self.due.len();
            if ended && !said {
                said = true;
                eprintln!("the recording has ended");
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                stage.check(!ended)?;
            }
            // The window of the last event may be shorter than its device was online.
            if once && ended && results.reached() >= last {
                return Ok(());
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    /// A device that has ended is noticed by the stage.
    fn hand(&mut self, (time, device, index): Due) {
        let (Some(stream), Some(input), Some(left)) =
            (self.streams.get(device), self.devices.get_mut(device), self.left.get_mut(device))
        else {
            return;
        };
        if let Some(pipe) = input {
            let line = line(self.schema, time, stream.recorded.event(index).cells);
            let _ = pipe.write_all(line.as_bytes());
        }
        *left = left.saturating_sub(1);
        if *left == 0 {
            // A device without more events closes its session.
            drop(input.take());
        }
    }
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
