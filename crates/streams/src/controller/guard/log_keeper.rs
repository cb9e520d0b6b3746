//! Owners' logs keep what they must, and otherwise lines up to an age and a size.

use super::{Guard, GuardError};
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::ledger::{LogLine, Record, StampedRecord, log_prefix};
use alpheus_node::service::metrics::Metrics;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_time::{Span, Timestamp};
use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use std::convert::Infallible;
use std::ops::Bound;

/// Time between two looks at the logs.
const BETWEEN: Span = Span::seconds(3600);
/// Lines that are read at once: one may name thousands of streams.
const AT_ONCE: usize = 64;

/// How much of the logs is kept, and what that left.
pub struct LogKeeper {
    /// How long lines are kept, and how many bytes of all controllers' together.
    limits: Option<(Span, u64)>,
    next: Timestamp,
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
        let (bytes, deleted, unconfirmed) = Default::default();
        LogKeeper { limits: None, next: Timestamp(0), bytes, deleted, unconfirmed }
    }

    /// Exports the size of the logs, the number of deleted lines, and how many streams wait for their owners.
    pub fn register(&self, metrics: &Metrics) {
        metrics.with(|registry| {
            let help = "Bytes of the owners' logs";
            registry.register("controller_log_bytes", help, self.bytes.clone());
            let help = "Lines of the owners' logs deleted for their age or the logs' size";
            registry.register("controller_log_lines_deleted", help, self.deleted.clone());
            let help = "Streams left out until their owners confirm, after a restore";
            registry.register("controller_streams_to_confirm", help, self.unconfirmed.clone());
        });
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
    /// time.
    ///
    /// # Errors
    /// [`GuardError`] if the store fails.
    pub fn tend_logs(&mut self, now: Timestamp) -> Result<(), GuardError> {
        let Some((keep, most)) = self.log_keeper.limits.filter(|_| self.log_keeper.next <= now)
        else {
            return Ok(());
        };
        self.log_keeper.next = now.plus(BETWEEN);
        let own: Vec<ControllerId> = self.certificates.keys().copied().collect();
        let oldest = Timestamp(now.0.saturating_sub(keep.0));
        let (each, mut left) = (most / own.len().max(1) as u64, 0);
        for controller in own {
            left += self.tend_log(&controller, oldest, each, now)?;
        }
        self.log_keeper.bytes.set(i64::try_from(left).unwrap_or(i64::MAX));
        Ok(())
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
