//! Samples as they come: lines of a file, each given once whatever happens, or of standard
//! input, each of the moment in which it is read.

use super::book::Book;
use crate::failure::{Blame, Failure};
use crate::stats::plan::Plan;
use alpheus_crypto::ledger::Change;
use alpheus_policy::decimal::parse_scaled;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Lines that are read ahead.
const AHEAD: usize = 64;

/// Where samples come from.
pub struct Input {
    lines: mpsc::Receiver<String>,
    /// Its path, and how many of its lines were given; none for standard input.
    file: Option<(String, u64)>,
    decimals: u8,
    bounds: (i64, i64),
    ended: bool,
    /// Lines that were no sample, or came when nothing took one.
    pub dropped: u64,
}

/// One sample.
pub struct Sample {
    /// In steps.
    pub value: i64,
    /// What is durable with it.
    pub beside: Vec<Change>,
}

impl Input {
    /// Begins to read: a file after the lines that were given already.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: Option<&Path>, book: &Book, plan: &Plan) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel(AHEAD);
        let file = match path {
            None => {
                std::thread::spawn(move || read(std::io::stdin().lock(), 0, &sender));
                None
            }
            Some(path) => {
                let open = File::open(path).blame_io(path)?;
                let name = path.display().to_string();
                let given = book.lines(&name);
                std::thread::spawn(move || read(BufReader::new(open), given, &sender));
                Some((name, given))
            }
        };
        let bounds = (plan.interval.lowest(), plan.interval.highest());
        Ok(Self { lines, file, decimals: plan.decimals, bounds, ended: false, dropped: 0 })
    }

    /// Whether nothing will come any more.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The next sample, if an aggregate takes one now. What comes by standard input while none
    /// does is dropped.
    pub fn next(&mut self, taken: bool) -> Option<Sample> {
        while taken || self.file.is_none() {
            let line = match self.lines.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return None;
                }
            };
            let beside = self.file.as_mut().map(|(name, given)| {
                *given += 1;
                Book::given(name, *given)
            });
            match self.value(line.trim()) {
                Some(value) if taken => {
                    return Some(Sample { value, beside: beside.into_iter().collect() });
                }
                _ => self.dropped += 1,
            }
        }
        None
    }

    fn value(&self, text: &str) -> Option<i64> {
        let value = parse_scaled(text, self.decimals).ok();
        value.filter(|value| (self.bounds.0..=self.bounds.1).contains(value))
    }
}

/// Reads lines until nobody takes them any more.
fn read(from: impl BufRead, given: u64, to: &mpsc::Sender<String>) {
    let mut skipped = 0;
    for line in from.lines().map_while(Result::ok) {
        if skipped < given {
            skipped += 1;
        } else if to.blocking_send(line).is_err() {
            return;
        }
    }
}
