//! Heartbeats: whether the parts of a process still move, whatever they last reported.
//!
//! The disk's heart writes a few bytes into the state folder and flushes them, over and over. A flush that
//! does not return, or a disk that has no room, shows in the report on health within seconds, also while
//! nothing else is written.

use super::health::{Finding, Health};
use super::metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A part that has not moved for so long hangs.
pub const HANGS: Duration = Duration::from_secs(8);
/// How long the disk's heart rests between two beats.
const REST: Duration = Duration::from_secs(1);
/// With less room than this the report on health says so: a store sets as much aside for its journal.
const LITTLE_ROOM: u64 = 256 << 20;
/// The file that is written.
pub const FILE: &str = "heartbeat";

/// When a part moved last. Clones share it.
#[derive(Clone, Debug)]
pub struct Heart(Arc<Mutex<Instant>>);

impl Heart {
    /// Moves for the first time, and is watched from now on as `part`, which must move more often than
    /// every [`HANGS`].
    #[must_use]
    pub fn watched(health: &Health, part: &'static str) -> Heart {
        let heart = Heart(Arc::new(Mutex::new(Instant::now())));
        let own = heart.clone();
        health.watch(part, move || own.finding(Instant::now()));
        heart
    }

    /// Moves.
    pub fn beat(&self) {
        *self.last() = Instant::now();
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finding(&self, now: Instant) -> Finding {
        let ago = now.saturating_duration_since(*self.last());
        if ago <= HANGS {
            return Finding::Fine;
        }
        Finding::Broken(format!("has not moved for {} s", ago.as_secs()))
    }
}

/// What is known about a disk.
#[derive(Debug)]
struct Disk {
    folder: PathBuf,
    beats: Mutex<Beats>,
}

#[derive(Debug, Default)]
struct Beats {
    /// Since when a flush is under way.
    begun: Option<Instant>,
    /// How long the last one took.
    took: Duration,
    /// Why the last one failed.
    failed: Option<io::ErrorKind>,
    /// How much may still be written. Also this question may hang, so only the disk's thread asks it.
    free: Option<u64>,
}

impl Disk {
    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes and flushes once.
    fn beat(&self, flush: impl FnOnce(&Path) -> io::Result<()>) {
        let begun = Instant::now();
        self.beats().begun = Some(begun);
        let flushed = flush(&self.folder.join(FILE));
        let (took, failed) = (begun.elapsed(), flushed.err().map(|error| error.kind()));
        let free = free_bytes(&self.folder);
        *self.beats() = Beats { begun: None, took, failed, free };
    }

    /// Whether the disk answers.
    fn moves(&self, now: Instant) -> Finding {
        let beats = self.beats();
        let under_way = beats.begun.map(|begun| now.saturating_duration_since(begun));
        match (under_way, beats.failed) {
            (Some(ago), _) if ago > HANGS => Finding::Broken(format!(
                "a flush of the disk has not returned for {} s",
                ago.as_secs()
            )),
            (_, Some(kind)) if !is_full(kind) => Finding::Broken(format!("the disk fails: {kind}")),
            _ => Finding::Fine,
        }
    }

    /// Whether there is room.
    fn room(&self) -> Finding {
        let beats = self.beats();
        if beats.failed.is_some_and(is_full) {
            return Finding::Broken("the disk is full: make room".into());
        }
        match beats.free {
            Some(free) if free < LITTLE_ROOM => {
                Finding::Noteworthy(format!("the disk has room for {} MiB", free >> 20))
            }
            _ => Finding::Fine,
        }
    }
}

fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// How much a user without privileges may still write in a folder.
#[must_use]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let known = rustix::fs::statvfs(folder).ok()?;
    Some(known.f_bavail.saturating_mul(known.f_frsize))
}

fn flush(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut open = options.write(true).create(true).truncate(false).mode(0o600).open(file)?;
    open.write_all(b"alpheus\n")?;
    open.sync_data()
}

/// Watches the disk of a folder from a thread of its own, as the parts `disk` (whether flushes return) and
/// `space` (whether there is room), and exports `alpheus_disk_free_bytes` and `alpheus_disk_flush_seconds`.
pub fn watch_disk(health: &Health, metrics: &Metrics, folder: &Path) {
    let beats = Beats { free: free_bytes(folder), ..Beats::default() };
    let disk = Arc::new(Disk { folder: folder.to_owned(), beats: Mutex::new(beats) });
    let (moves, room) = (Arc::clone(&disk), Arc::clone(&disk));
    health.watch("disk", move || moves.moves(Instant::now()));
    health.watch("space", move || room.room());
    metrics.with(|registry| registry.register_collector(Box::new(DiskMetrics(Arc::clone(&disk)))));
    let weak = Arc::downgrade(&disk);
    let thread = std::thread::Builder::new().name("disk".into());
    if let Err(error) = thread.spawn(move || run(&weak)) {
        tracing::error!(%error, "a disk that hangs will not be noticed");
    }
}

/// Beats until nobody looks any more.
fn run(disk: &Weak<Disk>) {
    while let Some(disk) = disk.upgrade() {
        disk.beat(flush);
        drop(disk);
        std::thread::sleep(REST);
    }
}

#[derive(Debug)]
struct DiskMetrics(Arc<Disk>);

impl Collector for DiskMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let beats = self.0.beats();
        let took = beats.begun.map_or(beats.took, |begun| begun.elapsed().max(beats.took));
        let free = beats.free;
        drop(beats);
        let took = ConstGauge::new(took.as_secs_f64());
        let help = "How long the last flush of the state folder took, or takes";
        let kind = took.metric_type();
        took.encode(encoder.encode_descriptor("disk_flush_seconds", help, None, kind)?)?;
        let Some(free) = free else { return Ok(()) };
        let free = ConstGauge::new(i64::try_from(free).unwrap_or(i64::MAX));
        let help = "Bytes that may still be written in the state folder";
        let kind = free.metric_type();
        free.encode(encoder.encode_descriptor("disk_free_bytes", help, None, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn disk(folder: &Path) -> Arc<Disk> {
        Arc::new(Disk { folder: folder.to_owned(), beats: Mutex::default() })
    }

    #[test]
    fn a_part_that_does_not_move_is_broken() {
        let health = Health::new();
        let heart = Heart::watched(&health, "engine");
        assert!(health.report().ready);
        let then = *heart.last();
        assert_eq!(heart.finding(then + HANGS), Finding::Fine);
        assert!(HANGS + REST < Duration::from_secs(10), "what was promised");
        let late = heart.finding(then + HANGS + Duration::from_secs(1));
        assert_eq!(late, Finding::Broken("has not moved for 9 s".into()));
    }

    #[test]
    fn a_flush_that_does_not_return_is_seen_while_it_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(folder.path());
        disk.beat(flush);
        assert_eq!(disk.moves(Instant::now()), Finding::Fine);
        let (own, (go_on, wait)) = (Arc::clone(&disk), channel::<()>());
        let (say, begun) = channel();
        let hung = std::thread::spawn(move || {
            own.beat(|_| {
                say.send(()).unwrap();
                let _ = wait.recv();
                Ok(())
            });
        });
        begun.recv().unwrap();
        let since = disk.beats().begun.unwrap();
        assert_eq!(disk.moves(since + HANGS), Finding::Fine);
        let hangs = disk.moves(since + HANGS + Duration::from_secs(1));
        assert!(matches!(hangs, Finding::Broken(why) if why.contains("for 9 s")));
        go_on.send(()).unwrap();
        hung.join().unwrap();
        assert_eq!(disk.moves(since + HANGS * 9), Finding::Fine);
    }

    /// A disk that hangs would keep the caller, and with it the answer that the process lives.
    #[test]
    fn a_report_says_what_the_disks_thread_saw_and_asks_the_disk_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(folder.path());
        disk.beat(flush);
        assert!(disk.beats().free.is_some());
        disk.beats().free = Some(3 << 20);
        assert_eq!(disk.room(), Finding::Noteworthy("the disk has room for 3 MiB".into()));
    }

    #[test]
    fn a_full_disk_is_not_one_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(folder.path());
        disk.beat(|_| Err(io::ErrorKind::StorageFull.into()));
        assert!(matches!(disk.room(), Finding::Broken(why) if why.contains("full")));
        assert_eq!(disk.moves(Instant::now()), Finding::Fine);
        disk.beat(|_| Err(io::ErrorKind::ReadOnlyFilesystem.into()));
        assert!(matches!(disk.moves(Instant::now()), Finding::Broken(_)));
        disk.beat(flush);
        assert_eq!(disk.moves(Instant::now()), Finding::Fine);
        assert!(!matches!(disk.room(), Finding::Broken(_)));
    }
}
