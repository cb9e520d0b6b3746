//! Owners' logs keep what they must, and otherwise lines up to an age and a size.

use super::log_clock::LogClock;
use super::{Guard, GuardError};
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::ledger::{LogLine, Record, StampedRecord, log_prefix};
use alpheus_node::service::health::{Health, Note};
use alpheus_node::service::metrics::Metrics;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use std::convert::Infallible;
use std::ops::Bound;
use std::time::Duration;

/// Time between two looks at the logs.
const BETWEEN: Duration = Duration::from_secs(3600);
/// Where the time is stored that was believed last.
const BELIEVED: &[u8] = b"log-clock";
/// Lines that are read at once: one may name thousands of streams.
const AT_ONCE: usize = 64;

/// How much of the logs is kept, and what that left.
pub struct LogKeeper {
    /// How long lines are kept, and how many bytes of all controllers' together.
    limits: Option<(Span, u64)>,
    /// When to look next, by the steady clock.
    next: Duration,
    clock: LogClock,
    /// Says that the clock is not believed.
    note: Option<Note>,
    doubtful: Gauge,
    bytes: Gauge,
    deleted: Counter,
    /// Streams whose owners are to confirm.
    unconfirmed: Gauge,
}

impl LogKeeper {
    /// Keeps lines for this long, and so many bytes of them at most.
    #[must_use]
    pub fn new(limits: (Span, u64)) -> LogKeeper {
        LogKeeper { limits: Some(limits), ..LogKeeper::endless() }
    }

    /// Keeps everything.
    pub(super) fn endless() -> LogKeeper {
        let (bytes, deleted, unconfirmed, doubtful) = Default::default();
        let (next, clock) = (Duration::ZERO, LogClock::default());
        let (limits, note) = (None, None);
        LogKeeper { limits, next, clock, note, doubtful, bytes, deleted, unconfirmed }
    }

    /// Exports the size of the logs, the number of deleted lines, and how many streams wait for their owners;
    /// and says in the health report when lines are kept since the clock is not believed.
    pub fn register(&mut self, metrics: &Metrics, health: &Health) {
        self.note = Some(health.note("clock"));
        metrics.with(|registry| {
            let help = "Bytes of the owners' logs";
            registry.register("controller_log_bytes", help, self.bytes.clone());
            let help = "Lines of the owners' logs deleted for their age or the logs' size";
            registry.register("controller_log_lines_deleted", help, self.deleted.clone());
            let help = "1 while no line is deleted for its age because the clock has jumped ahead";
            registry.register("controller_clock_doubtful", help, self.doubtful.clone());
            let help = "Streams left out until their owners confirm, after a restore";
            registry.register("controller_streams_to_confirm", help, self.unconfirmed.clone());
        });
    }

    /// Says whether the clock is believed, if that has changed.
    fn say(&self, was: Option<Span>) {
        let ahead = self.clock.ahead();
        self.doubtful.set(i64::from(ahead.is_some()));
        match (was, ahead) {
            (None, Some(ahead)) => {
                let hours = ahead.0 / Span::seconds(3600).0;
                let text = format!(
                    "this machine's clock is {hours} hours ahead of the time that passed: no line of the owners' logs is deleted because of its age until the clock has stayed ahead for a day; correct the clock if it is wrong"
                );
                tracing::warn!("{text}");
                self.note.iter().for_each(|note| note.set(text.clone()));
            }
            (Some(_), None) => {
                tracing::warn!(
                    "this machine's clock is trusted again, and old lines are deleted by it"
                );
                self.note.iter().for_each(Note::clear);
            }
            _ => {}
        }
    }
}

impl Guard {
    /// Counts the streams that are left out until their owners confirm, for monitoring.
    pub fn count_unconfirmed(&mut self) {
        let is_unconfirmed = |stream: &StreamId, at: ControllerId| {
            let holds = self.host.controller(&at).and_then(|own| own.holds_on(stream));
            holds.is_some_and(|holds| holds.unconfirmed)
        };
        let all = self.streams.iter();
        let count = all.filter(|(stream, known)| is_unconfirmed(stream, known.controller)).count();
        self.log_keeper.unconfirmed.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Deletes old lines of the owners' logs, and the oldest if the logs are too large, if it is
    /// time. `now` is the machine's clock, and `steady` one that nobody sets.
    ///
    /// # Errors
    /// [`GuardError`] if the store fails.
    pub fn tend_logs(&mut self, now: Timestamp, steady: Duration) -> Result<(), GuardError> {
        let Some((keep, most)) = self.log_keeper.limits.filter(|_| self.log_keeper.next <= steady)
        else {
            return Ok(());
        };
        self.log_keeper.next = steady + BETWEEN;
        let own: Vec<ControllerId> = self.certificates.keys().copied().collect();
        let believed = self.believed(&own, now, steady)?;
        let oldest = Timestamp(believed.0.saturating_sub(keep.0));
        let (each, mut left) = (most / own.len().max(1) as u64, 0);
        for controller in own {
            left += self.tend_log(&controller, oldest, each, now)?;
        }
        self.log_keeper.bytes.set(i64::try_from(left).unwrap_or(i64::MAX));
        Ok(())
    }

    /// The time by which lines are old, which it stores for the next start.
    fn believed(
        &mut self,
        controllers: &[ControllerId],
        now: Timestamp,
        steady: Duration,
    ) -> Result<Timestamp, GuardError> {
        if !self.log_keeper.clock.is_set() {
            let stored = self.store.get(&self.spaces.host, BELIEVED)?;
            let stored = stored.and_then(|bytes| bytes.as_ref().try_into().ok());
            let before = match stored.map(u64::from_be_bytes) {
                Some(micros) => Some(Timestamp(micros)),
                None => self.last_line(controllers)?,
            };
            before.into_iter().for_each(|before| self.log_keeper.clock.begin(before, steady));
        }
        let was = self.log_keeper.clock.ahead();
        let believed = self.log_keeper.clock.read(now, steady);
        self.log_keeper.say(was);
        let mut batch = Batch::new();
        batch.put(&self.spaces.host, BELIEVED.to_vec(), believed.0.to_be_bytes().to_vec())?;
        self.store.commit(batch)?;
        Ok(believed)
    }

    /// The time of the latest line: what a clock showed once.
    fn last_line(&self, controllers: &[ControllerId]) -> Result<Option<Timestamp>, GuardError> {
        let mut last = None;
        for controller in controllers {
            let prefix = log_prefix(*controller);
            self.each_page(controller, |page| {
                last = last.max(page.last().and_then(|(key, _)| time_of(key, &prefix)));
            })?;
        }
        Ok(last)
    }

    /// Deletes what is older, and the oldest of what is too much. Returns the bytes that are left.
    fn tend_log(
        &mut self,
        controller: &ControllerId,
        oldest: Timestamp,
        most: u64,
        now: Timestamp,
    ) -> Result<u64, GuardError> {
        let mut bytes = 0;
        self.each_page(controller, |page| bytes += page.iter().map(size).sum::<u64>())?;
        let (mut last, prefix) = (None, log_prefix(*controller));
        loop {
            let page = self.page(controller, last.as_ref())?;
            let Some((key, _)) = page.last() else { break };
            last = Some(key.clone());
            let (mut lines, before) = (Vec::new(), bytes);
            for entry in &page {
                let aged = time_of(&entry.0, &prefix).is_some_and(|at| at < oldest);
                if !aged && bytes <= most {
                    break;
                }
                bytes -= size(entry).min(bytes);
                lines.extend(line_of(&entry.1));
            }
            if lines.is_empty() {
                break;
            }
            if self.forget_lines(controller, lines, now)? == 0 {
                // All of these are still needed.
                bytes = before;
            }
        }
        Ok(bytes)
    }

    fn forget_lines(
        &mut self,
        controller: &ControllerId,
        lines: Vec<LogLine>,
        now: Timestamp,
    ) -> Result<u64, GuardError> {
        let mut gone = 0;
        let forget = |own: &mut Controller| {
            let (step, lines) = own.forget_lines(now, lines);
            gone = lines;
            Ok::<_, Infallible>(step)
        };
        match self.host.with(controller, forget).ok_or(GuardError::OtherController)? {
            Ok(committed) => committed?,
            Err(never) => match never {},
        }
        self.log_keeper.deleted.inc_by(gone);
        Ok(gone)
    }

    fn each_page(
        &self,
        controller: &ControllerId,
        mut see: impl FnMut(&[(Bytes, Bytes)]),
    ) -> Result<(), GuardError> {
        let mut last = None;
        loop {
            let page = self.page(controller, last.as_ref())?;
            let Some((key, _)) = page.last() else { return Ok(()) };
            last = Some(key.clone());
            see(&page);
        }
    }

    /// Lines after a key, oldest first.
    fn page(
        &self,
        controller: &ControllerId,
        after: Option<&Bytes>,
    ) -> Result<Vec<(Bytes, Bytes)>, GuardError> {
        let prefix = log_prefix(*controller);
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_ref()));
        Ok(self.store.scan(&self.spaces.ledger, &prefix, from, AT_ONCE)?)
    }
}

fn size((key, value): &(Bytes, Bytes)) -> u64 {
    (key.len() + value.len()) as u64
}

/// Keys of lines begin with their time.
fn time_of(key: &[u8], prefix: &[u8]) -> Option<Timestamp> {
    let at = key.strip_prefix(prefix)?.first_chunk::<8>()?;
    Some(Timestamp(u64::from_be_bytes(*at)))
}

fn line_of(value: &[u8]) -> Option<LogLine> {
    match StampedRecord::read(value).ok()?.record {
        Record::Log(line) => Some(line),
        _ => None,
    }
}
