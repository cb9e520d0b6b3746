//! Progress of long work, on standard error: one line that is updated on a terminal, a line
//! from time to time elsewhere, nothing for short work.

use crate::note;
use std::io::{IsTerminal, LineWriter, Stderr, Write};
use std::time::{Duration, Instant};

/// Shorter work prints nothing.
const QUIET: Duration = Duration::from_secs(1);
/// How often the line is updated on a terminal, and how often one is added elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// Letters of a bar.
const BAR: u64 = 20;

/// Counts steps of one piece of work.
#[derive(Debug)]
pub struct Progress<W: Write = LineWriter<Stderr>> {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    start: Instant,
    shown: Option<Instant>,
    moves: bool,
    out: W,
}

impl Progress {
    /// Starts counting `what` ("rows"), of which there are `total` if that is known.
    #[must_use]
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        let (out, moves) = (note::lines(), std::io::stderr().is_terminal());
        Self { what, total, done: 0, start: Instant::now(), shown: None, moves, out }
    }
}

impl<W: Write> Progress<W> {
    /// Adds completed steps.
    pub fn advance(&mut self, steps: u64) {
        self.done += steps;
        self.show_at(Instant::now());
    }

    /// States how many steps there are, once that is known.
    pub fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    fn show_at(&mut self, now: Instant) {
        let every = if self.moves { ON_TERMINAL } else { ELSEWHERE };
        let due = match self.shown {
            None => {
                now.duration_since(self.start) >= QUIET.max(if self.moves { QUIET } else { every })
            }
            Some(shown) => now.duration_since(shown) >= every,
        };
        if due {
            self.shown = Some(now);
            let line = self.line(now);
            // Progress is optional output.
            let _ = if self.moves {
                write!(self.out, "\r\x1b[K{line}").and_then(|()| self.out.flush())
            } else {
                writeln!(self.out, "{line}")
            };
        }
    }

    fn line(&self, now: Instant) -> String {
        let seconds = now.duration_since(self.start).as_secs_f64().max(0.001);
        let (what, done) = (self.what, self.done);
        let share = match self.total {
            Some(total) if total > 0 => {
                format!(" of {total} ({} %)", 100 * done.min(total) / total)
            }
            _ => String::new(),
        };
        // A rate for display: precision beyond 2^53 is useless.
        #[expect(clippy::cast_precision_loss, reason = "shown without decimals")]
        let rate = done as f64 / seconds;
        let left = match self.total {
            Some(total) if total > done && done > 0 => {
                #[expect(clippy::cast_precision_loss, reason = "shown in whole seconds")]
                let left = (total - done) as f64 / rate;
                format!(", {left:.0} s left")
            }
            _ => String::new(),
        };
        format!("{}{done}{share} {what}, {rate:.0}/s{left}", self.bar())
    }

    /// On a terminal, how much is done as a bar.
    fn bar(&self) -> String {
        let Some(total) = self.total.filter(|total| self.moves && *total > 0) else {
            return String::new();
        };
        let full = usize::try_from(self.done.min(total) * BAR / total).unwrap_or(0);
        let rest = usize::try_from(BAR).unwrap_or(0).saturating_sub(full);
        format!("[{}{}] ", "#".repeat(full), ".".repeat(rest))
    }
}

impl<W: Write> Drop for Progress<W> {
    /// Leaves no half line behind.
    fn drop(&mut self) {
        if self.moves && self.shown.is_some() {
            let _ = self.out.write_all(b"\r\x1b[K").and_then(|()| self.out.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(moves: bool) -> String {
        let start = Instant::now();
        let out = Vec::new();
        let mut progress =
            Progress { what: "rows", total: Some(400), done: 0, start, shown: None, moves, out };
        for second in 0..25u64 {
            progress.done = second * 10;
            progress.show_at(start + Duration::from_secs(second));
        }
        let out = std::mem::take(&mut progress.out);
        progress.shown = None;
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_added_or_one_line_is_updated() {
        assert_eq!(
            lines(false),
            "100 of 400 (25 %) rows, 10/s, 30 s left\n200 of 400 (50 %) rows, 10/s, 20 s left\n"
        );
        let moving = lines(true);
        assert!(
            moving.starts_with(
                "\r\x1b[K[....................] 10 of 400 (2 %) rows, 10/s, 39 s left\r"
            ),
            "{moving:?}"
        );
        assert!(moving.contains("[##########..........] 200 of 400"), "{moving:?}");
        assert_eq!(moving.matches('\r').count(), 24);
    }
}
