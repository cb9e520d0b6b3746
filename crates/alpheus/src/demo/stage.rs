//! The demo's output: numbered steps, pauses, live windows with small bars.

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_stream_runtime::results::{OK, Row};
use serde_json::Value;
use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

/// Pause between two windows, for readability.
const BEAT: Duration = Duration::from_millis(700);
/// Pause between two steps without a terminal.
const PAUSE: Duration = Duration::from_millis(1500);
/// Heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Where the demo plays.
pub(super) struct Stage {
    hurried: bool,
    step: u32,
}

impl Stage {
    /// A stage; a hurried one makes no pauses.
    pub(super) fn new(hurried: bool) -> Stage {
        Stage { hurried, step: 0 }
    }

    /// Prints one line.
    pub(super) fn say(&self, line: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).blame(Category::Io)
    }

    /// Prints a text, indented.
    pub(super) fn quote(&self, text: &str) -> Result<(), Failure> {
        text.lines().try_for_each(|line| self.say(format!("    {line}").trim_end()))
    }

    /// Begins a step once the reader is ready.
    pub(super) fn step(&mut self, title: &str, explanation: &str) -> Result<(), Failure> {
        if self.step > 0 {
            self.pause()?;
        }
        self.step += 1;
        self.say(&format!("\n[{}] {title}", self.step))?;
        self.say(explanation)?;
        self.say("")
    }

    fn pause(&self) -> Result<(), Failure> {
        if self.hurried {
            return Ok(());
        }
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            std::thread::sleep(PAUSE);
            return Ok(());
        }
        self.say("\n(press Enter)")?;
        io::stdin().lock().read_line(&mut String::new()).map(|_| ()).blame(Category::Io)
    }

    /// One window of the demo's query as a line.
    pub(super) fn window(&self, row: &Row) -> Result<(), Failure> {
        if !self.hurried {
            std::thread::sleep(BEAT);
        }
        self.say(&in_words(row))
    }
}

/// A window on one line: its statistics, or why there are none.
fn in_words(row: &Row) -> String {
    let window = format!("    window {:>3} s", row.window_start / 1000 % 1000);
    let number = |name: &str| output(row, name).and_then(Value::as_f64);
    match (number("avg_heart_rate"), number("var_heart_rate")) {
        (Some(mean), Some(variance)) => {
            let deviation = variance.sqrt();
            let bins: Vec<u64> = output(row, "histogram_heart_rate")
                .and_then(Value::as_array)
                .map(|bins| bins.iter().filter_map(Value::as_u64).collect())
                .unwrap_or_default();
            format!(
                "{window}  {:<6} {mean:6.1} ± {deviation:4.1} bpm  {}  of {} people, {} left out",
                row.status,
                chart(&bins),
                row.population,
                row.excluded,
            )
        }
        _ if row.status == OK => format!("{window}  {OK}: nobody has data"),
        _ => format!("{window}  did not open: {}", row.status),
    }
}

/// An output of a row.
pub(super) fn output<'a>(row: &'a Row, name: &str) -> Option<&'a Value> {
    row.outputs.iter().find(|(alias, _)| alias == name).map(|(_, value)| value)
}

/// One bar for each bin; an empty bin is a space.
fn chart(bins: &[u64]) -> String {
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let bar = |bin: &u64| match bin {
        0 => ' ',
        bin => usize::try_from((bin * 8).div_ceil(most) - 1)
            .ok()
            .and_then(|height| BARS.get(height).copied())
            .unwrap_or('█'),
    };
    bins.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_a_result_says_why() {
        let mut row = Row {
            query: "q".to_owned(),
            window_start: 20_000,
            window_end: 30_000,
            group: Vec::new(),
            outputs: vec![("avg_heart_rate".to_owned(), Value::Null)],
            population: 0,
            silent: 0,
            excluded: 0,
            status: "too few owners".to_owned(),
            noise: None,
            mostly_noise: None,
            windows: None,
            streams_without_report: None,
            plan: None,
            verified: None,
            bounded: false,
            without: None,
            sealed: None,
        };
        let said = in_words(&row);
        assert_eq!(said, "    window  20 s  did not open: too few owners");
        row.status = OK.to_owned();
        assert!(in_words(&row).ends_with("ok: nobody has data"));
        row.outputs = vec![
            ("avg_heart_rate".to_owned(), 90.5.into()),
            ("var_heart_rate".to_owned(), 4.0.into()),
        ];
        assert!(in_words(&row).contains(" 90.5 ±  2.0 bpm"), "{}", in_words(&row));
    }

    #[test]
    fn bars_grow_with_their_bins() {
        assert_eq!(chart(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(chart(&[]), "");
    }
}
