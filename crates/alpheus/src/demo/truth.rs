//! The answers that the plaintext gives, computed without any of the code that
//! encrypts, sums or decodes.

use super::stage::output;
use alpheus_input::rows::{Cell, Recording};
use alpheus_stream_runtime::results::{OK, Row};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Bins of the demo's histogram, and their width.
const BINS: usize = 10;
const WIDTH: i64 = 20;

/// A window's result, computed in the clear.
#[derive(Default)]
pub(super) struct Truth {
    population: u32,
    count: i64,
    sum: i64,
    squares: i64,
    bins: [u64; BINS],
}

impl Truth {
    /// Sums the whole numbers of one attribute over a window of these streams.
    pub(super) fn of(
        recording: &Recording,
        streams: &BTreeSet<usize>,
        attribute: usize,
        (from, to): (u64, u64),
    ) -> Truth {
        let mut truth = Truth::default();
        for stream in streams.iter().filter_map(|index| recording.streams.get(*index)) {
            let within =
                stream.events().filter(|event| (from..to).contains(&(event.time.0 / 1000)));
            let before = truth.count_events(within.map(|event| event.cells.get(attribute)));
            truth.population += u32::from(before > 0);
        }
        truth
    }

    /// Owners with data.
    pub(super) fn population(&self) -> u32 {
        self.population
    }

    /// Adds events and returns their number.
    fn count_events<'a>(&mut self, cells: impl Iterator<Item = Option<&'a Cell>>) -> usize {
        let mut events = 0;
        for cell in cells {
            events += 1;
            let Some(Cell::Number(value)) = cell else { continue };
            self.count += 1;
            self.sum += value;
            self.squares += value * value;
            let bin = usize::try_from(value / WIDTH).unwrap_or(0).min(BINS - 1);
            if let Some(bin) = self.bins.get_mut(bin) {
                *bin += 1;
            }
        }
        events
    }

    /// Columns of a row that differ; none if the row is right.
    pub(super) fn differences(&self, row: &Row) -> Vec<String> {
        let wanted = [
            ("count_heart_rate", json!(self.count)),
            ("avg_heart_rate", ratio(self.sum, self.count)),
            ("var_heart_rate", {
                let spread = self.count * self.squares - self.sum * self.sum;
                ratio(spread, self.count * self.count)
            }),
            ("histogram_heart_rate", json!(self.bins)),
        ];
        let mut different: Vec<String> = wanted
            .into_iter()
            .filter(|(name, value)| output(row, name) != Some(value))
            .map(|(name, _)| name.to_owned())
            .collect();
        if row.status != OK {
            different.push("status".to_owned());
        }
        if row.population != self.population {
            different.push("population".to_owned());
        }
        different
    }
}

/// Rounded once: both numbers are small enough for a float to hold exactly.
#[expect(clippy::cast_precision_loss, reason = "both are far below 2^53")]
fn ratio(numerator: i64, denominator: i64) -> Value {
    if denominator == 0 { Value::Null } else { json!(numerator as f64 / denominator as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            query: "q".to_owned(),
            window_start: 0,
            window_end: 10_000,
            group: Vec::new(),
            outputs: vec![
                ("count_heart_rate".to_owned(), json!(2)),
                ("avg_heart_rate".to_owned(), json!(90.5)),
                ("var_heart_rate".to_owned(), json!(0.25)),
                ("histogram_heart_rate".to_owned(), json!([0, 0, 0, 0, 2, 0, 0, 0, 0, 0])),
            ],
            population: 1,
            silent: 0,
            excluded: 0,
            status: OK.to_owned(),
            noise: None,
            mostly_noise: None,
            windows: None,
            streams_without_report: None,
            plan: None,
            verified: None,
            bounded: false,
            without: None,
            sealed: None,
        }
    }

    #[test]
    fn every_wrong_column_is_reported() {
        let mut truth = Truth { population: 1, ..Truth::default() };
        let cells = [Cell::Number(90), Cell::Number(91), Cell::Absent];
        assert_eq!(truth.count_events(cells.iter().map(Some)), 3);
        assert!(truth.differences(&row()).is_empty());
        let mut wrong = row();
        wrong.outputs[1].1 = json!(90.50000001);
        wrong.population = 2;
        assert_eq!(truth.differences(&wrong), ["avg_heart_rate", "population"]);
        let mut closed = row();
        closed.status = "refused".to_owned();
        assert_eq!(truth.differences(&closed), ["status"]);
    }
}
