//! Windows that end by the clock, and their rows.

use super::deployment::Deployment;
use super::devices::Devices;
use crate::program::Lines;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_stream_runtime::results::OK;
use alpheus_time::{Span, Timestamp};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Timeout for a row after its window.
const PATIENCE: Duration = Duration::from_secs(300);
/// The maximum number of windows before the first that counts.
const PATIENT: u32 = 12;
/// Events of a device in a window.
const EVENTS: u64 = 2;

/// One after the other.
pub(super) struct Windows<'a> {
    deployment: &'a Deployment,
    devices: Devices,
    rows: Lines,
    start: Timestamp,
    length: Span,
}

impl<'a> Windows<'a> {
    /// From the next full window on.
    pub(super) fn begin(deployment: &'a Deployment, window: u32) -> Result<Self, Failure> {
        let (program, length) = (&deployment.program, Span::seconds(u64::from(window)));
        let reach = deployment.reach();
        let follow = ["--results", "Fleet", "--follow", "--format", "json"];
        let rows = program.lines(&[&reach[..], &follow].concat())?;
        let start = Timestamp((clock::now().0 / length.0 + 1) * length.0);
        let devices = Devices::open(program, &deployment.url, deployment.owners(), start)?;
        Ok(Windows { deployment, devices, rows, start, length })
    }

    /// Windows that do not count, until enough in a row were whole. At the first, all
    /// controllers are still checking the plan and setting up its masks.
    pub(super) fn warm_up(&mut self, whole: u32) -> Result<(), Failure> {
        let (mut in_a_row, mut left) = (0, PATIENT);
        while in_a_row < whole {
            match self.one() {
                Ok(_) => in_a_row += 1,
                Err(error) if left == 0 => return Err(error),
                Err(error) => {
                    note!("warming up: {error}");
                    in_a_row = 0;
                }
            }
            left = left.saturating_sub(1);
        }
        Ok(())
    }

    /// The delay from the last border, durable at the service, to the row.
    pub(super) fn one(&mut self) -> Result<Duration, Failure> {
        let end = self.start.plus(self.length);
        for number in 0..EVENTS {
            let at = Timestamp(self.start.0 + 1 + number * self.length.0 / EVENTS);
            wait_for(at);
            self.devices.event(at)?;
            self.devices.send()?;
        }
        wait_for(end);
        self.devices.border(end)?;
        self.devices.send()?;
        let taken = Instant::now();
        self.start = end;
        let read = self.row(end)?;
        Ok(read.saturating_duration_since(taken))
    }

    /// The time at which the row of the window that ends then arrived. The row must be whole.
    fn row(&self, end: Timestamp) -> Result<Instant, Failure> {
        let last = Instant::now() + PATIENCE;
        loop {
            let left = last.saturating_duration_since(Instant::now());
            let (at, row) = self.rows.lines.recv_timeout(left).blame(Category::Check)?;
            let row: Value = serde_json::from_str(&row).blame(Category::Check)?;
            if row["window_end"] != end.0 / 1000 {
                continue;
            }
            let all = self.deployment.owners();
            if row["status"] == OK && row["population"] == all as u64 {
                return Ok(at);
            }
            let what = format!("{}, over {} of {all} owners", row["status"], row["population"]);
            return Err(what).blame(Category::Check);
        }
    }
}

/// Waits until this time.
fn wait_for(at: Timestamp) {
    loop {
        let left = clock::until(at);
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left);
    }
}
