//! Hosts of controllers that were silent before an outage, and are not waited for after it.

use super::outages::SILENT;
use super::outboxes::Outboxes;
use super::registry::Registry;
use alpheus_stream_runtime::service::{Service, ServiceError};
use alpheus_stream_runtime::storage::Topics;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Store};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const KEY: &[u8] = b"silent-hosts";
/// How often silent hosts are looked for. Each change is a write to the disk.
const INTERVAL: Span = Span::seconds(10);
/// Hosts that could not be heard for longer than this, because the service was frozen, get the
/// time to call again.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// The silent hosts, as they are stored.
pub struct SilentHosts {
    stored: BTreeSet<String>,
    looked: Option<Timestamp>,
    awake: Awake,
}

/// For how long the service has worked without a pause. While it was frozen, it heard nobody.
struct Awake {
    since: Instant,
    last: Instant,
}

impl Awake {
    /// How long it is awake, which it is now.
    fn turn(&mut self, now: Instant) -> Duration {
        if now.saturating_duration_since(self.last) > LONGEST_TURN {
            self.since = now;
        }
        self.last = now;
        now.saturating_duration_since(self.since)
    }
}

impl SilentHosts {
    /// Those of the last run.
    ///
    /// # Errors
    /// [`ServiceError`] if they cannot be read.
    pub fn load(store: &dyn Store, topics: &Topics) -> Result<SilentHosts, ServiceError> {
        let stored = match store.get(&topics.service, KEY)? {
            Some(bytes) => postcard::from_bytes(&bytes)
                .map_err(|_| ServiceError::Damaged { what: "list of silent hosts" })?,
            None => BTreeSet::new(),
        };
        let now = Instant::now();
        let awake = Awake { since: now, last: now };
        Ok(SilentHosts { stored, looked: None, awake })
    }

    /// Whether a host was silent.
    #[must_use]
    pub fn contains(&self, host: &str) -> bool {
        self.stored.contains(host)
    }

    /// Stores which hosts are silent, if that has changed.
    ///
    /// # Errors
    /// The store's error.
    pub fn turn(
        &mut self,
        now: Timestamp,
        service: &Service,
        registry: &Registry,
        outboxes: &Outboxes,
    ) -> Result<(), ServiceError> {
        let is_early = self.looked.is_some_and(|looked| now < looked.plus(INTERVAL));
        if self.awake.turn(Instant::now()) < SILENT || is_early {
            return Ok(());
        }
        self.looked = Some(now);
        let rosters = service.rosters();
        let hosts = rosters.iter().filter_map(|controller| registry.host_of(controller));
        let silent = hosts.filter(|host| !outboxes.was_heard(host, SILENT)).map(str::to_owned);
        let silent: BTreeSet<String> = silent.collect();
        if silent != self.stored {
            let mut batch = Batch::new();
            let value = postcard::to_allocvec(&silent).unwrap_or_default();
            batch.put(&service.topics().service, KEY, value)?;
            service.store().commit(batch)?;
            self.stored = silent;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_the_service_was_frozen_makes_no_host_silent() {
        let start = Instant::now();
        let mut awake = Awake { since: start, last: start };
        assert_eq!(awake.turn(start + LONGEST_TURN), LONGEST_TURN);
        let thawed = start + SILENT + 2 * LONGEST_TURN;
        assert_eq!(awake.turn(thawed), Duration::ZERO, "it was frozen for a minute");
        let turns = (1..8).map(|turn| awake.turn(thawed + turn * LONGEST_TURN));
        assert_eq!(turns.last(), Some(7 * LONGEST_TURN));
        assert!(7 * LONGEST_TURN >= SILENT);
    }
}
