//! A clock for the processes of a test, which never leaves them behind: on a loaded machine time
//! slows down, so that no test bets on how fast the machine is.
//!
//! Time in which a thread of theirs could run but got no processor does not count. An answer to a
//! probe alone says too little: the scheduler favours who asks for little over who computes.

use super::{Process, get_over};
use alpheus_node::clock::{self, ClockWriter};
use alpheus_test_support::skip;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What sets a process's clock: `apt-get install faketime` brings it.
pub(crate) fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.map_while(Result::ok);
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found = libraries.into_iter().find(|library| library.exists());
    if found.is_none() {
        skip::skip("there is no faketime on this machine");
    }
    found
}

/// Puts a command under the clock that a file sets.
pub(crate) fn set_clock(command: &mut Command, library: &Path, file: &Path) {
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// Puts a command under a clock that is off by so much.
pub(crate) fn shift_clock(command: &mut Command, off: &str) {
    command.env("LD_PRELOAD", faketime().unwrap()).env("FAKETIME", off);
}

/// How far the clock moves at once. Processes look at it more often.
const STEP: Duration = Duration::from_millis(50);

/// How far it moves at once while it leaps.
const LEAP: Duration = Duration::from_secs(20);

/// How long an answer is waited for before a process is looked at again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Moves on at most as fast as the machine's clock, and only once every process that it watches
/// has answered since its last step, by the time in which none of their threads was kept waiting.
/// Threads of the test that follow it have to have seen its last step, too.
pub(crate) struct PacedClock {
    shared: Arc<ClockState>,
    thread: Option<JoinHandle<()>>,
}

struct ClockState {
    /// What the clock shows.
    time: AtomicU64,
    hand: Mutex<ClockWriter>,
    watched: Mutex<Vec<(u32, SocketAddr)>>,
    /// What threads of the test have seen of the time.
    followers: Mutex<Vec<Weak<AtomicU64>>>,
    /// Until then it leaps.
    goal: AtomicU64,
    /// Sets the clocks of machines, which move with it.
    machines: Option<PathBuf>,
    stopped: AtomicBool,
}

/// A thread of the test that follows the clock, which waits for it while this is there.
pub(crate) struct Follower(Arc<AtomicU64>);

impl Follower {
    /// All is done that is due by this time.
    pub(crate) fn is_at(&self, time: Timestamp) {
        self.0.store(time.0, Ordering::SeqCst);
    }
}

/// The clock stands still while this is there.
pub(crate) struct ClockGuard<'a>(
    #[expect(dead_code, reason = "a guard")] MutexGuard<'a, ClockWriter>,
);

impl PacedClock {
    /// A clock in a new file, which shows the machine's time first.
    pub(crate) fn start(file: &Path) -> Self {
        Self::start_with(file, None)
    }

    /// The same, which also moves the clocks of machines that are set by a file.
    pub(crate) fn start_with_machines(file: &Path, machines: PathBuf) -> Self {
        Self::start_with(file, Some(machines))
    }

    fn start_with(file: &Path, machines: Option<PathBuf>) -> Self {
        let hand = ClockWriter::create(file, clock::now()).unwrap();
        let shared = Arc::new(ClockState {
            time: AtomicU64::new(hand.time().0),
            hand: Mutex::new(hand),
            watched: Mutex::default(),
            followers: Mutex::default(),
            goal: AtomicU64::new(0),
            machines,
            stopped: AtomicBool::new(false),
        });
        let moved = Arc::clone(&shared);
        Self { shared, thread: Some(std::thread::spawn(move || moved.run())) }
    }

    /// From now on the clock waits for this process, which serves its health here.
    pub(crate) fn watch(&self, process: &Process, health: SocketAddr) {
        self.shared.watched().push((process.id(), health));
    }

    /// From now on the clock waits for this thread. It has to look at the time all the time.
    pub(crate) fn follow(&self) -> Follower {
        let seen = Arc::new(AtomicU64::new(self.now().0));
        self.shared.followers().push(Arc::downgrade(&seen));
        Follower(seen)
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.shared.time.load(Ordering::SeqCst))
    }

    /// How much time has passed since then.
    pub(crate) fn since(&self, then: Timestamp) -> Duration {
        Duration::from_micros(self.now().0 - then.0)
    }

    /// Holds the clock where it is.
    pub(crate) fn hold(&self) -> ClockGuard<'_> {
        ClockGuard(self.shared.hand())
    }

    /// Leaps until this time, and then moves on with the machine's clock. Before each leap every process
    /// has answered, and was seen at rest.
    pub(crate) fn leap_to(&self, time: Timestamp) {
        self.shared.goal.store(time.0, Ordering::SeqCst);
        while self.now() < time {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Moves the clock forward at once, whatever processes do.
    pub(crate) fn skip(&self, time: Duration) {
        self.shared.forward(time);
    }
}

impl Drop for PacedClock {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say that the test has not seen.
            let _ = thread.join();
        }
    }
}

impl ClockState {
    fn run(&self) {
        let mut queued = QueueTimes::default();
        while !self.stopped.load(Ordering::Relaxed) {
            let begun = Instant::now();
            std::thread::sleep(STEP);
            let watched = self.watched().clone();
            watched.iter().for_each(|(id, health)| self.wait_for(*id, *health));
            self.wait_for_followers();
            let leap = self.left().min(LEAP);
            if !leap.is_zero() {
                watched.iter().for_each(|(id, _)| self.wait_for_rest(*id));
            }
            let kept_waiting = queued.since_last(watched.iter().map(|(id, _)| *id));
            self.forward(begun.elapsed().saturating_sub(kept_waiting).min(STEP).max(leap));
        }
    }

    /// How far it is to leap still.
    fn left(&self) -> Duration {
        let (goal, time) = (self.goal.load(Ordering::SeqCst), self.time.load(Ordering::SeqCst));
        Duration::from_micros(goal.saturating_sub(time))
    }

    fn forward(&self, time: Duration) {
        let mut hand = self.hand();
        let next = hand.time().0 + u64::try_from(time.as_micros()).unwrap();
        hand.set(Timestamp(next)).unwrap();
        if let Some(file) = &self.machines {
            set_machines(file, next);
        }
        self.time.store(next, Ordering::SeqCst);
    }

    /// Waits for an answer of a process, unless it is frozen or has ended.
    fn wait_for(&self, id: u32, health: SocketAddr) {
        while runs(id) && !answers(health) && !self.stopped.load(Ordering::Relaxed) {
            std::thread::sleep(STEP);
        }
    }

    /// Waits until all threads of a process were asleep at once: it has done what was due.
    fn wait_for_rest(&self, id: u32) {
        while runs(id) && !rests(id) && !self.stopped.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all threads that follow have seen the time.
    fn wait_for_followers(&self) {
        let is_behind = |follower: &Weak<AtomicU64>| {
            let time = self.time.load(Ordering::SeqCst);
            follower.upgrade().is_some_and(|seen| seen.load(Ordering::SeqCst) < time)
        };
        let are_behind = || {
            let mut followers = self.followers();
            followers.retain(|follower| follower.strong_count() > 0);
            followers.iter().any(is_behind)
        };
        while are_behind() && !self.stopped.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn followers(&self) -> MutexGuard<'_, Vec<Weak<AtomicU64>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand(&self) -> MutexGuard<'_, ClockWriter> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, Vec<(u32, SocketAddr)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has machines show this time: how far they are off. The file is replaced as a whole, since processes
/// read it all the time.
fn set_machines(file: &Path, time: u64) {
    let now = clock::now().0;
    let (sign, off) = if time < now { ('-', now - time) } else { ('+', time - now) };
    let next = file.with_extension("next");
    fs::write(&next, format!("{sign}{}.{:06}", off / 1_000_000, off % 1_000_000)).unwrap();
    fs::rename(&next, file).unwrap();
}

/// How long each thread has waited for a processor so far, by its id.
#[derive(Default)]
struct QueueTimes(BTreeMap<u32, Duration>);

impl QueueTimes {
    /// The longest that a thread of these processes waited since this was asked last; none where
    /// the kernel does not count it.
    fn since_last(&mut self, processes: impl Iterator<Item = u32>) -> Duration {
        let now: BTreeMap<u32, Duration> = processes.flat_map(waits_of).collect();
        let before = std::mem::replace(&mut self.0, now);
        let grown = |(thread, total): (&u32, &Duration)| {
            total.saturating_sub(before.get(thread).copied().unwrap_or_default())
        };
        self.0.iter().map(grown).max().unwrap_or_default()
    }
}

/// The threads of a process, and how long each has waited.
fn waits_of(process: u32) -> Vec<(u32, Duration)> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let waited = |thread: fs::DirEntry| {
        // Nanoseconds on a processor, nanoseconds in the queue for one, how many times.
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let queued = stat.split(' ').nth(1)?.parse().ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, Duration::from_nanos(queued)))
    };
    threads.filter_map(waited).collect()
}

/// Whether a process is there and not frozen.
fn runs(id: u32) -> bool {
    state_of(Path::new(&format!("/proc/{id}"))).is_some_and(|state| !"TtZX".contains(state))
}

/// Whether no thread of a process runs, waits for a processor, or waits for a disk.
fn rests(id: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| state_of(&thread.path()));
    states.all(|state| state == 'S')
}

/// The letter for what a process or a thread does.
fn state_of(folder: &Path) -> Option<char> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

fn answers(health: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect_timeout(&health, PATIENCE) else { return false };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    get_over(stream, "/healthz").is_some()
}
