//! Hosts of controllers that were silent before an outage, and are not waited for after it.

use super::outages::SILENT;
use super::outboxes::Outboxes;
use super::registry::Registry;
use crate::runtime::service::{Service, ServiceError};
use crate::runtime::storage::Topics;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Store};
use std::collections::BTreeSet;
use std::time::Instant;

const KEY: &[u8] = b"silent-hosts";
/// How often silent hosts are looked for. Each change is a write to the disk.
const INTERVAL: Span = Span::seconds(10);

/// The silent hosts, as they are stored.
pub struct SilentHosts {
    stored: BTreeSet<String>,
    looked: Option<Timestamp>,
    began: Instant,
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
        Ok(SilentHosts { stored, looked: None, began: Instant::now() })
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
        if is_early || self.began.elapsed() < SILENT {
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
