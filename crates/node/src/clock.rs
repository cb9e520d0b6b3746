//! The clock of a process: the machine's, or one that the processes of a replay read from a file.
//!
//! Time is read here and nowhere else.

use crate::failure::{Blame, Category, Failure};
use alpheus_time::Timestamp;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a process of a replay looks at its clock while it waits.
const REPLAY_LOOK: Duration = Duration::from_millis(20);

/// Bytes of a replay's clock: microseconds since 1970, and the same with all bits inverted, so
/// that a reader notices a time that is half written.
const LENGTH: usize = 16;

static REPLAYED: OnceLock<Clock> = OnceLock::new();

/// The time now.
#[must_use]
pub fn now() -> Timestamp {
    REPLAYED.get().map_or_else(machine, Clock::now)
}

/// Time since this process first asked, by a clock that nobody sets: it does not jump. It stands
/// still while the machine sleeps.
#[must_use]
pub fn steady() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    match REPLAYED.get() {
        Some(clock) => Duration::from_micros(clock.now().0),
        None => FIRST.get_or_init(Instant::now).elapsed(),
    }
}

/// How long to wait before looking at the clock again for `then`; zero if it is past.
#[must_use]
pub fn until(then: Timestamp) -> Duration {
    let left = Duration::from_micros(then.0.saturating_sub(now().0));
    if REPLAYED.get().is_some() { left.min(REPLAY_LOOK) } else { left }
}

/// From now on the time of this process is the one in a replay's file.
///
/// # Errors
/// The file cannot be read.
pub fn follow(replay: &Path) -> Result<(), Failure> {
    let clock = Clock::replayed(replay)?;
    // A second call in one process keeps the first clock: time has one source.
    let _ = REPLAYED.set(clock);
    Ok(())
}

fn machine() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Where the time comes from. Clones share one source.
#[derive(Clone)]
pub enum Clock {
    /// What [`now`] says.
    Process,
    /// A file, and the latest time that was read from it.
    Replayed(Arc<(File, AtomicU64)>),
}

impl Clock {
    /// The clock in a replay's file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn replayed(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).blame_io(path)?;
        Ok(Self::Replayed(Arc::new((file, AtomicU64::new(0)))))
    }

    /// The time now, which never goes back in a replay.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Process => now(),
            Self::Replayed(replayed) => {
                let (file, latest) = replayed.as_ref();
                let now = read(file).unwrap_or(0);
                Timestamp(latest.fetch_max(now, Ordering::SeqCst).max(now))
            }
        }
    }
}

fn read(file: &File) -> Option<u64> {
    let mut bytes = [0; LENGTH];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (time, inverted) = bytes.split_first_chunk::<8>()?;
    let time = u64::from_be_bytes(*time);
    (inverted == (!time).to_be_bytes()).then_some(time)
}

/// Moves the clock of a replay forward, never back.
pub struct ClockWriter(File, u64);

impl ClockWriter {
    /// Creates the file of a clock.
    ///
    /// # Errors
    /// The file exists already, or cannot be written.
    pub fn create(path: &Path, now: Timestamp) -> Result<Self, Failure> {
        let file = File::create_new(path).blame_io(path)?;
        let mut hand = Self(file, 0);
        hand.set(now)?;
        Ok(hand)
    }

    /// Creates the file, or continues with the one that is there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.blame_io(path)?;
        let time = read(&file).unwrap_or(0);
        Ok(Self(file, time))
    }

    /// Moves the clock to `now`, if that is later than its time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&mut self, now: Timestamp) -> Result<(), Failure> {
        if now.0 > self.1 {
            self.1 = now.0;
            let bytes = [now.0.to_be_bytes(), (!now.0).to_be_bytes()].concat();
            self.0.write_all_at(&bytes, 0).blame(Category::Io)?;
        }
        Ok(())
    }

    /// The time that the clock shows.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        Timestamp(self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_replay_goes_forward_and_never_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let mut hand = ClockWriter::create(&path, Timestamp(7)).unwrap();
        let clock = Clock::replayed(&path).unwrap();
        assert_eq!(clock.now(), Timestamp(7));
        hand.set(Timestamp(9)).unwrap();
        hand.set(Timestamp(8)).unwrap();
        assert_eq!((clock.now(), hand.time()), (Timestamp(9), Timestamp(9)));
        drop(hand);
        assert_eq!(ClockWriter::open(&path).unwrap().time(), Timestamp(9));
        assert_eq!(ClockWriter::open(&folder.path().join("new")).unwrap().time(), Timestamp(0));
        // A time that is half written is not read.
        std::fs::write(&path, [1; LENGTH]).unwrap();
        assert_eq!(clock.now(), Timestamp(9));
        assert!(Clock::replayed(&folder.path().join("none")).is_err());
    }
}
