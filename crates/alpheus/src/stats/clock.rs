//! The clock of a process: the machine's, or in a replay one that all processes read
//! from a file, which the replay moves on.

use crate::failure::{Blame, Category, Failure};
use crate::pass::clock as wall;
use alpheus_anonymous_credential::schedule::Time;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the time comes from. Clones are one.
#[derive(Clone)]
pub enum Clock {
    /// The machine.
    Wall,
    /// A file, and the last time that was read.
    Replayed(Arc<(File, AtomicU64)>),
}

/// Moves a replay's clock on, never back.
pub struct Hand(File, u64);

/// Bytes of the file: microseconds since 1970, and all their bits turned round, so
/// that a time that is half written is none.
const LENGTH: usize = 16;

impl Clock {
    /// The machine's, or that of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self::Wall) };
        let file = File::open(path).blame_io(path)?;
        Ok(Self::Replayed(Arc::new((file, AtomicU64::new(0)))))
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn now(&self) -> Time {
        match self {
            Self::Wall => wall::now(),
            Self::Replayed(replayed) => {
                let (file, last) = replayed.as_ref();
                let now = read(file).unwrap_or(0);
                Time(last.fetch_max(now, Ordering::SeqCst).max(now))
            }
        }
    }
}

fn read(file: &File) -> Option<u64> {
    let mut bytes = [0; LENGTH];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (time, turned) = bytes.split_first_chunk::<8>()?;
    let time = u64::from_be_bytes(*time);
    (turned == (!time).to_be_bytes()).then_some(time)
}

impl Hand {
    /// Makes a clock's file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, now: Time) -> Result<Self, Failure> {
        let file = File::create_new(path).blame_io(path)?;
        let mut hand = Self(file, 0);
        hand.set(now)?;
        Ok(hand)
    }

    /// Moves it on, if that time is later.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set(&mut self, now: Time) -> Result<(), Failure> {
        if now.0 > self.1 {
            self.1 = now.0;
            let bytes = [now.0.to_be_bytes(), (!now.0).to_be_bytes()].concat();
            self.0.write_all_at(&bytes, 0).blame(Category::Io)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replays_clock_goes_on_and_never_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let mut hand = Hand::create(&path, Time(7)).unwrap();
        let clock = Clock::of(Some(&path)).unwrap();
        assert_eq!(clock.now(), Time(7));
        hand.set(Time(9)).unwrap();
        hand.set(Time(8)).unwrap();
        assert_eq!(clock.now(), Time(9));
        // What is half written is no time.
        std::fs::write(&path, [1; LENGTH]).unwrap();
        assert_eq!(clock.now(), Time(9));
        assert!(Clock::of(Some(&folder.path().join("none"))).is_err());
    }
}
