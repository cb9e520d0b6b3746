//! Samples as they come: lines of a file, each given once whatever happens, or of standard
//! input, each of the moment in which it is read.

use super::book::Book;
use crate::failure::{Blame, Category, Failure};
use crate::stats::plan::Plan;
use alpheus_crypto::ledger::Change;
use alpheus_policy::decimal::parse_scaled;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Lines that are read ahead.
const AHEAD: usize = 64;

/// Where samples come from.
pub struct Input {
    lines: mpsc::Receiver<io::Result<String>>,
    /// Where it is, and how many of its lines were given; none for standard input.
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
                // However it is called here, its lines are given once.
                let name = path.canonicalize().blame_io(path)?.display().to_string();
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
    ///
    /// # Errors
    /// If the input cannot be read any further.
    pub fn next(&mut self, taken: bool) -> Result<Option<Sample>, Failure> {
        while taken || self.file.is_none() {
            let line = match self.lines.try_recv() {
                Ok(line) => line.blame(Category::Io)?,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return Ok(None);
                }
            };
            let beside = self.file.as_mut().map(|(name, given)| {
                *given += 1;
                Book::given(name, *given)
            });
            match self.value(line.trim()) {
                Some(value) if taken => {
                    return Ok(Some(Sample { value, beside: beside.into_iter().collect() }));
                }
                _ => self.dropped += 1,
            }
        }
        // Nothing takes a sample now; if none is left, none need be waited for.
        self.ended |= self.lines.is_closed() && self.lines.is_empty();
        Ok(None)
    }

    fn value(&self, text: &str) -> Option<i64> {
        let value = parse_scaled(text, self.decimals).ok();
        value.filter(|value| (self.bounds.0..=self.bounds.1).contains(value))
    }
}

/// Reads lines until nobody takes them any more, or they cannot be read. A line that is no text is
/// a line still, and no sample.
fn read(from: impl BufRead, given: u64, to: &mpsc::Sender<io::Result<String>>) {
    let mut skipped = 0;
    for line in from.split(b'\n') {
        let failed = line.is_err();
        if !failed && skipped < given {
            skipped += 1;
            continue;
        }
        let line = line.map(|line| String::from_utf8_lossy(&line).into_owned());
        if to.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::testing::Place;
    use alpheus_transport::simulated::Machine;
    use std::fs;

    /// What comes of a file, with places for so many samples.
    fn all(path: &Path, mut places: usize) -> (Vec<i64>, u64) {
        let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
        let store = Machine::new().open().unwrap();
        let book = Book::open(store, &folder.path().join("fence")).unwrap();
        let mut input = Input::open(Some(path), &book, &place.plan).unwrap();
        let mut values = Vec::new();
        while !input.ended() {
            if let Some(sample) = input.next(places > 0).unwrap() {
                values.push(sample.value);
                places -= 1;
            }
            std::thread::yield_now();
        }
        (values, input.dropped)
    }

    #[test]
    fn a_line_that_is_no_text_is_dropped_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("speeds");
        fs::write(&path, b"61\n\xff7\n101\n58\r\n59").unwrap();
        assert_eq!(all(&path, usize::MAX), (vec![61, 58, 59], 2));
    }

    #[test]
    fn a_file_that_is_given_has_ended_though_nothing_takes_a_sample_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("speeds");
        fs::write(&path, "61\n58\n").unwrap();
        assert_eq!(all(&path, 2), (vec![61, 58], 0));
        fs::write(&path, "").unwrap();
        assert_eq!(all(&path, 0), (vec![], 0));
    }

    struct Broken;

    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no disk"))
        }
    }

    #[test]
    fn what_cannot_be_read_further_is_an_error() {
        let (sender, mut lines) = mpsc::channel(AHEAD);
        read(BufReader::new(Broken), 3, &sender);
        assert!(lines.try_recv().unwrap().is_err());
    }
}
