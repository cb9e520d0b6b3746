//! Writes a group of batches as one transaction.

use super::client::{Clients, Deliveries};
use super::group::Offsets;
use super::store::{Change, KafkaState};
use super::topics::Names;
use crate::error::cluster::{ClusterError, code, is_fenced, is_forbidden, is_not_in_group};
use crate::error::{Error, Source};
use crate::names::{Group, Offset, Partition};
use crate::queue::Writer;
use crate::receipt::OffsetRange;
use crate::record::{Chunk, Record};
use bytes::Bytes;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Header with a record's own time: microseconds since 1970 as eight bytes, big-endian.
/// Kafka's timestamp is the time of sending: brokers reject records from the future by it,
/// and some overwrite it.
pub(super) const TIME_HEADER: &str = "alpheus.time";
/// The number of records whose offset is not needed.
const NO_NUMBER: usize = 0;
/// Maximum time to abort a failed transaction.
const MAX_ABORT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(1);

/// Writes transactions.
pub(super) struct Transactions {
    pub(super) clients: Arc<Clients>,
    pub(super) names: Names,
    /// The transactional id.
    pub(super) id: String,
    /// Of a group's process: positions are the group's offsets, and count while it is a member.
    pub(super) offsets: Option<Offsets>,
    /// Whether a transaction may be decided but not published yet.
    pub(super) deciding: AtomicBool,
}

/// The last value of each key, by the topic of its state space.
type States = BTreeMap<(String, Bytes), Option<Bytes>>;

impl Writer for Transactions {
    type ReadState = KafkaState;
    type Change = Change;
    type Plan = ();

    fn plan(&self, _: &KafkaState, _: &[Change]) {}

    fn write(&self, group: &[Change], (): ()) -> Result<(), Error> {
        if group.iter().all(Change::is_empty) {
            return Ok(());
        }
        let until = Instant::now() + self.clients.patience;
        let deliveries = Deliveries { begun: Some(Instant::now()), ..Deliveries::default() };
        *self.clients.deliveries() = deliveries;
        let begun = self.clients.producer.begin_transaction();
        let written = begun.and_then(|()| self.send_all(group, until)).and_then(|()| {
            self.acknowledged(until)?;
            if let Some(offsets) = &self.offsets {
                offsets.send(&self.clients.producer, &self.names, group, until)?;
            }
            self.deciding.store(true, Ordering::SeqCst);
            self.commit(until)
        });
        written.map_err(|error| self.abort(error))?;
        self.report_offsets(group);
        Ok(())
    }

    fn publish(&self, shared: &mut KafkaState, group: Vec<Change>) -> u64 {
        let records = shared.take(group);
        self.deciding.store(false, Ordering::SeqCst);
        records
    }

    fn abandoned(&self) -> Error {
        let source = Source::new(KafkaError::Canceled);
        ClusterError::Transaction { id: self.id.clone(), source }.into()
    }
}

impl Transactions {
    fn send_all(&self, group: &[Change], until: Instant) -> Result<(), KafkaError> {
        let mut number = NO_NUMBER;
        let mut states = States::new();
        for change in group {
            for (partition, chunks) in &change.appends {
                number += 1;
                // This was checked when the change was accepted.
                let unknown = |_| KafkaError::MessageProduction(Code::UnknownTopic);
                let topic = self.names.topic(&partition.topic).map_err(unknown)?;
                let index = i32::try_from(partition.index).unwrap_or(i32::MAX);
                for record in chunks.iter().flat_map(Chunk::records) {
                    self.send_record(&topic, index, &record, number, until)?;
                }
            }
            for (space, key, value) in &change.states {
                states.insert((self.names.space(space), key.clone()), value.clone());
            }
            let own = change.positions.iter().filter(|_| self.offsets.is_none());
            for (group, partition, next) in own {
                let value = Bytes::from(next.to_string());
                let key = position_key(group, partition).into();
                states.insert((self.names.positions(), key), Some(value));
            }
        }
        states.iter().try_for_each(|((topic, key), value)| {
            let record = BaseRecord::with_opaque_to(topic, NO_NUMBER).partition(0).key(&key[..]);
            self.send(
                match value {
                    Some(value) => record.payload(&value[..]),
                    None => record,
                },
                until,
            )
        })
    }

    fn send_record(
        &self,
        topic: &str,
        partition: i32,
        record: &Record,
        number: usize,
        until: Instant,
    ) -> Result<(), KafkaError> {
        let mut sent = BaseRecord::with_opaque_to(topic, number)
            .partition(partition)
            .payload(&record.value[..]);
        if !record.key.is_empty() {
            sent = sent.key(&record.key[..]);
        }
        let header = |headers: OwnedHeaders, key: &str, value: &[u8]| {
            headers.insert(Header { key, value: Some(value) })
        };
        let mut headers = OwnedHeaders::new_with_capacity(4);
        for (name, value) in record.headers() {
            headers = header(headers, name, value);
        }
        headers = header(headers, TIME_HEADER, &record.timestamp.to_be_bytes());
        self.send(sent.headers(headers), until)
    }

    fn send(
        &self,
        mut record: BaseRecord<'_, [u8], [u8], usize>,
        until: Instant,
    ) -> Result<(), KafkaError> {
        loop {
            match self.clients.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((error, again)) => {
                    if code(&error) != Some(Code::QueueFull) || Instant::now() > until {
                        return Err(error);
                    }
                    record = again;
                    self.clients.producer.poll(POLL);
                }
            }
        }
    }

    /// Waits until the brokers have reported on every record. `flush` would return a tenth of a
    /// second late.
    fn acknowledged(&self, until: Instant) -> Result<(), KafkaError> {
        while self.clients.producer.in_flight_count() > 0 {
            if Instant::now() > until {
                return Err(KafkaError::Flush(Code::OperationTimedOut));
            }
            self.clients.producer.poll(POLL);
        }
        match &self.clients.deliveries().failed {
            // If the record was not even sent, committing returns the cause.
            Some((_, error)) if !is_purged(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn commit(&self, until: Instant) -> Result<(), KafkaError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.clients.producer.commit_transaction(left.max(POLL)) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && !left.is_zero() => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        match &self.clients.deliveries().failed {
            Some((_, error)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Aborts a failed transaction as far as possible, and returns the cause.
    fn abort(&self, error: KafkaError) -> Error {
        self.deciding.store(false, Ordering::SeqCst);
        let failed = self.clients.deliveries().failed.take().filter(|(_, e)| !is_purged(e));
        // A fenced producer cannot abort. After a timeout, the next process to open the store
        // does. Aborting waits for delivery reports, which we must serve.
        let producer = &self.clients.producer;
        producer.purge(PurgeConfig::default().queue().inflight());
        let until = Instant::now() + MAX_ABORT;
        while producer.in_flight_count() > 0 && Instant::now() < until {
            producer.poll(POLL);
        }
        let _ = producer.abort_transaction(MAX_ABORT);
        let (on, error) = failed.unwrap_or_else(|| (self.id.clone(), error));
        let fatal = self.clients.producer.client().fatal_error();
        let error = fatal.map_or(error, |(code, _)| KafkaError::Global(code));
        match code(&error) {
            None if error == KafkaError::Canceled => return Error::NotInGroup,
            Some(code) if is_not_in_group(code) => return Error::NotInGroup,
            Some(code) if is_fenced(code) => ClusterError::Fenced { id: self.id.clone() },
            Some(code) if is_forbidden(code) => ClusterError::of("write to", &on, error),
            _ => ClusterError::Transaction { id: self.id.clone(), source: Source::new(error) },
        }
        .into()
    }

    fn report_offsets(&self, group: &[Change]) {
        let deliveries = self.clients.deliveries();
        let mut number = NO_NUMBER;
        for change in group {
            let place = |(partition, _): &(Partition, Vec<Chunk>)| {
                number += 1;
                let &(first, last) = deliveries.places.get(&number)?;
                let offset = |at: i64| u64::try_from(at).ok();
                let (first, end) = (Offset(offset(first)?), Offset(offset(last)?.checked_add(1)?));
                Some(OffsetRange { partition: partition.clone(), first, end })
            };
            change.placement.set(change.appends.iter().filter_map(place).collect());
        }
    }
}

/// Whether a record was dropped because its transaction had already failed.
fn is_purged(error: &KafkaError) -> bool {
    matches!(code(error), Some(Code::PurgeQueue | Code::PurgeInflight))
}

/// The key of a position. Names have no slash.
pub(super) fn position_key(group: &Group, partition: &Partition) -> String {
    format!("{group}/{partition}")
}

/// Parses the result of [`position_key`].
pub(super) fn position_of(key: &[u8]) -> Option<(Group, Partition)> {
    let mut parts = std::str::from_utf8(key).ok()?.splitn(3, '/');
    let group = Group::new(parts.next()?).ok()?;
    let topic = crate::Topic::new(parts.next()?).ok()?;
    Some((group, topic.partition(parts.next()?.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_positions_are_read_back() {
        let place = (Group::new("g.1").unwrap(), crate::Topic::new("t-2").unwrap().partition(7));
        let key = position_key(&place.0, &place.1);
        assert_eq!(key, "g.1/t-2/7");
        assert_eq!(position_of(key.as_bytes()), Some(place));
        for bad in ["", "g", "g/t", "g/t/", "g/t/x", "g/t/1/2", "g//1", "/t/1", "g/t/-1"] {
            assert_eq!(position_of(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(position_of(b"g/t\xff/1"), None);
    }
}
