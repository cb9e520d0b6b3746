//! The input of samples: lines of a file, each contributed at most once, or lines of standard input,
//! each a sample of the moment it is read.

use crate::client_ledger::{ClientLedger, Mark};
use crate::plan::Plan;
use alpheus_accountable_statistics::definition::Definition;
use alpheus_crypto::ledger::Change;
use alpheus_node::clock::Clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_policy::decimal::parse_scaled;
use alpheus_time::Timestamp;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Lines that are read ahead.
const AHEAD: usize = 64;

/// Where samples come from.
pub struct Input {
    lines: mpsc::Receiver<io::Result<Line>>,
    /// The file's identity, and the number of contributed lines; none for standard input.
    file: Option<(Mark, u64)>,
    decimals: u8,
    bounds: (i64, i64),
    ended: bool,
    /// Lines that were not a sample, or came while no aggregate accepted one.
    pub dropped: u64,
}

/// A line as it was read.
struct Line {
    at: Timestamp,
    text: String,
    /// Whether it ends in a newline: the last line of a file that is being written may not.
    whole: bool,
}

/// One sample.
pub struct Sample {
    /// In steps.
    pub value: i64,
    /// The changes that are durable with it.
    pub beside: Vec<Change>,
}

/// The file replaced another one whose lines were contributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "lines of another file of this name were contributed already; rename the new file, or delete the state to contribute all of it"
)]
pub(crate) struct OtherFileError;

impl Input {
    /// Begins to read; skips the lines of a file that were contributed already.
    ///
    /// # Errors
    /// If the file cannot be read, or replaced another one of its name.
    pub fn open(
        path: Option<&Path>,
        ledger: &ClientLedger,
        plan: &Plan,
        clock: &Clock,
    ) -> Result<Self, Failure> {
        let ((sender, lines), clock) = (mpsc::channel(AHEAD), clock.clone());
        let file = match path {
            None => {
                std::thread::spawn(move || read(std::io::stdin().lock(), 0, &clock, &sender));
                None
            }
            Some(path) => {
                let open = File::open(path).blame_io(path)?;
                // The canonical path identifies the file under any spelling.
                let mark = Mark::of(&path.canonicalize().blame_io(path)?, &open).blame_io(path)?;
                let given = ledger.lines(&mark).ok_or(OtherFileError).blame_input(path)?;
                std::thread::spawn(move || read(BufReader::new(open), given, &clock, &sender));
                Some((mark, given))
            }
        };
        let bounds = (plan.interval.lowest(), plan.interval.highest());
        Ok(Self { lines, file, decimals: plan.decimals, bounds, ended: false, dropped: 0 })
    }

    /// Whether the input has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Whether each line is a sample of the moment it is read.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.file.is_none()
    }

    /// The next sample, if an aggregate accepts one now. Lines of standard input that come while none
    /// does are dropped.
    ///
    /// # Errors
    /// If the input cannot be read any further.
    pub fn next(&mut self, taken: Option<&Definition>) -> Result<Option<Sample>, Failure> {
        while taken.is_some() || self.file.is_none() {
            let Line { at, text, whole } = match self.lines.try_recv() {
                Ok(line) => line.blame(Category::Io)?,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return Ok(None);
                }
            };
            // An incomplete line may be contributed after a restart, once it is complete.
            if self.file.is_some() && !whole {
                note!("the last line has no newline yet and is not contributed");
                self.dropped += 1;
                continue;
            }
            let beside = self.file.as_mut().map(|(mark, given)| {
                *given += 1;
                ClientLedger::record_lines(mark, *given)
            });
            let live = self.file.is_none();
            let takes = taken.is_some_and(|of| !live || (of.start <= at && at < of.end));
            match self.value(text.trim()) {
                Some(value) if takes => {
                    return Ok(Some(Sample { value, beside: beside.unwrap_or_default() }));
                }
                _ => self.dropped += 1,
            }
        }
        // No aggregate accepts a sample now; if none is left, the input has ended.
        self.ended |= self.lines.is_closed() && self.lines.is_empty();
        Ok(None)
    }

    fn value(&self, text: &str) -> Option<i64> {
        let value = parse_scaled(text, self.decimals).ok();
        value.filter(|value| (self.bounds.0..=self.bounds.1).contains(value))
    }
}

/// Reads lines until the receiver is gone or reading fails. A line that is not text still counts as
/// a line, but is not a sample.
fn read(mut from: impl BufRead, given: u64, clock: &Clock, to: &mpsc::Sender<io::Result<Line>>) {
    let mut skipped = 0;
    loop {
        let mut bytes = Vec::new();
        let line = match from.read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) if skipped < given => {
                skipped += 1;
                continue;
            }
            Ok(_) => {
                let (whole, at) = (bytes.ends_with(b"\n"), clock.now());
                Ok(Line { at, text: String::from_utf8_lossy(&bytes).into_owned(), whole })
            }
            Err(error) => Err(error),
        };
        let failed = line.is_err();
        if to.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_deployment::TestDeployment;
    use alpheus_crypto::ledger::Ledger;
    use alpheus_transport::simulation::Machine;
    use std::fs;
    use std::path::PathBuf;

    struct Reading {
        place: TestDeployment,
        folder: tempfile::TempDir,
        ledger: ClientLedger,
        clock: Clock,
    }

    impl Reading {
        fn new() -> Self {
            let (place, folder) = (TestDeployment::new(), tempfile::tempdir().unwrap());
            let store = Machine::new().open().unwrap();
            let ledger = ClientLedger::open(store, &folder.path().join("fence")).unwrap();
            Self { place, folder, ledger, clock: Clock::Process }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("speeds")
        }

        fn open(&self, path: &Path) -> Result<Input, Failure> {
            Input::open(Some(path), &self.ledger, &self.place.plan, &self.clock)
        }

        /// The samples of a file while an aggregate accepts so many, and the dropped lines.
        fn all(&mut self, path: &Path, mut places: usize) -> (Vec<i64>, u64) {
            let (mut input, taken) = (self.open(path).unwrap(), self.place.definition(0));
            let mut values = Vec::new();
            while !input.ended() {
                let next = input.next((places > 0).then_some(&taken)).unwrap();
                if let Some(Sample { value, beside }) = next {
                    self.ledger.commit(&beside).unwrap();
                    values.push(value);
                    places -= 1;
                }
                std::thread::yield_now();
            }
            (values, input.dropped)
        }
    }

    #[test]
    fn a_line_that_is_not_text_is_dropped() {
        let mut reading = Reading::new();
        let path = reading.path();
        fs::write(&path, b"61\n\xff7\n101\n58\r\n59\n").unwrap();
        assert_eq!(reading.all(&path, usize::MAX), (vec![61, 58, 59], 2));
    }

    #[test]
    fn a_contributed_file_has_ended_even_without_an_open_aggregate() {
        let mut reading = Reading::new();
        let path = reading.path();
        fs::write(&path, "61\n58\n").unwrap();
        assert_eq!(reading.all(&path, 2), (vec![61, 58], 0));
        assert_eq!(reading.all(&path, 0), (vec![], 0));
    }

    /// A part of a number is another number.
    #[test]
    fn an_incomplete_line_is_contributed_once_complete() {
        let mut reading = Reading::new();
        let path = reading.path();
        fs::write(&path, "61\n5").unwrap();
        assert_eq!(reading.all(&path, 9), (vec![61], 1));
        fs::write(&path, "61\n57\n").unwrap();
        assert_eq!(reading.all(&path, 9), (vec![57], 0));
    }

    #[test]
    fn renamed_and_replaced_files_are_detected() {
        let mut reading = Reading::new();
        let (path, other) = (reading.path(), reading.folder.path().join("other"));
        fs::write(&path, "61\n").unwrap();
        assert_eq!(reading.all(&path, 9).0, [61]);
        fs::rename(&path, &other).unwrap();
        fs::write(&other, "61\n58\n").unwrap();
        assert_eq!(reading.all(&other, 9).0, [58]);
        fs::write(&path, "60\n").unwrap();
        let refused = reading.open(&path).err().unwrap().to_string();
        assert!(refused.contains("lines of another file of this name"), "{refused}");
    }

    /// A line of standard input is a sample of the moment it was read, even if it is handled later.
    #[test]
    fn a_line_that_was_read_before_the_aggregate_is_dropped() {
        let reading = Reading::new();
        let taken = reading.place.definition(0);
        let (sender, lines) = mpsc::channel(AHEAD);
        for at in [taken.start.0 - 1, taken.start.0, taken.end.0 - 1, taken.end.0] {
            let line = Line { at: Timestamp(at), text: "61".to_owned(), whole: true };
            sender.blocking_send(Ok(line)).unwrap();
        }
        drop(sender);
        let mut input = Input { lines, ..of_nothing() };
        let mut given = 0;
        while let Some(Sample { beside, .. }) = input.next(Some(&taken)).unwrap() {
            assert!(beside.is_empty());
            given += 1;
        }
        assert_eq!((given, input.dropped, input.ended()), (2, 2, true));
    }

    fn of_nothing() -> Input {
        let lines = mpsc::channel(1).1;
        Input { lines, file: None, decimals: 0, bounds: (0, 100), ended: false, dropped: 0 }
    }

    struct BrokenFile;

    impl io::Read for BrokenFile {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no disk"))
        }
    }

    #[test]
    fn a_read_error_is_reported() {
        let (sender, mut lines) = mpsc::channel(AHEAD);
        read(BufReader::new(BrokenFile), 3, &Clock::Process, &sender);
        assert!(lines.try_recv().unwrap().is_err());
    }
}
