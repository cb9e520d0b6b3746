//! A group of batches as one transaction.

use super::client::Clients;
use super::refused::{Refused, code, is_fenced, is_forbidden};
use super::store::{Change, Shared};
use super::topics::Names;
use crate::error::{Error, Source};
use crate::names::{Group, Offset, Partition};
use crate::queue::Writer;
use crate::receipt::Appended;
use crate::record::{Chunk, Record};
use bytes::Bytes;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Microseconds since 1970, eight bytes, big-endian: where milliseconds say less.
pub(super) const TIME_HEADER: &str = "alpheus.time";
/// What goes along with records whose place nobody asks for.
const NOBODY: usize = 0;
const TURN: Duration = Duration::from_millis(1);

/// Writes transactions.
pub(super) struct Transactions {
    pub(super) clients: Arc<Clients>,
    pub(super) names: Names,
    /// The transactional id.
    pub(super) id: String,
}

/// The last value of each key of each state space, by the space's topic.
type States = BTreeMap<(String, Bytes), Option<Bytes>>;

impl Writer for Transactions {
    type Shared = Shared;
    type Change = Change;
    type Plan = ();

    fn plan(&self, _: &Shared, _: &[Change]) {}

    fn write(&self, group: &[Change], (): ()) -> Result<(), Error> {
        if group.iter().all(Change::is_empty) {
            return Ok(());
        }
        let until = Instant::now() + self.clients.patience;
        *self.clients.deliveries() = super::client::Deliveries::default();
        let begun = self.clients.producer.begin_transaction();
        let written = begun.and_then(|()| self.send_all(group, until)).and_then(|()| {
            self.acknowledged(until)?;
            self.commit(until)
        });
        written.map_err(|error| self.given_up(error))?;
        self.tell_places(group);
        Ok(())
    }

    fn publish(&self, shared: &mut Shared, group: Vec<Change>) -> u64 {
        group.into_iter().map(|change| shared.take(change)).sum()
    }

    fn abandoned(&self) -> Error {
        let source = Source::new(KafkaError::Canceled);
        Refused::Transaction { id: self.id.clone(), source }.into()
    }
}

impl Transactions {
    fn send_all(&self, group: &[Change], until: Instant) -> Result<(), KafkaError> {
        let mut number = NOBODY;
        let mut states = States::new();
        for change in group {
            for (partition, chunks) in &change.appends {
                number += 1;
                // Checked when the change was accepted.
                let Ok(topic) = self.names.topic(&partition.topic) else { continue };
                let index = i32::try_from(partition.index).unwrap_or(i32::MAX);
                for record in chunks.iter().flat_map(Chunk::records) {
                    self.send_record(&topic, index, &record, number, until)?;
                }
            }
            for (space, key, value) in &change.states {
                states.insert((self.names.space(space), key.clone()), value.clone());
            }
            for (group, partition, next) in &change.positions {
                let value = Bytes::from(next.to_string());
                let key = position_key(group, partition).into();
                states.insert((self.names.positions(), key), Some(value));
            }
        }
        states.iter().try_for_each(|((topic, key), value)| {
            let record = BaseRecord::with_opaque_to(topic, NOBODY).partition(0).key(&key[..]);
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
        let milliseconds = i64::try_from(record.timestamp / 1_000).unwrap_or(i64::MAX);
        let mut sent = BaseRecord::with_opaque_to(topic, number)
            .partition(partition)
            .payload(&record.value[..])
            .timestamp(milliseconds);
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
        // To librdkafka, zero is now.
        if !record.timestamp.is_multiple_of(1_000) || milliseconds == 0 {
            headers = header(headers, TIME_HEADER, &record.timestamp.to_be_bytes());
        }
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
                    self.clients.producer.poll(TURN);
                }
            }
        }
    }

    /// Waits until the brokers have told of every record. Not `flush`, which
    /// returns a tenth of a second late.
    fn acknowledged(&self, until: Instant) -> Result<(), KafkaError> {
        while self.clients.producer.in_flight_count() > 0 {
            if Instant::now() > until {
                return Err(KafkaError::Flush(Code::OperationTimedOut));
            }
            self.clients.producer.poll(TURN);
        }
        match &self.clients.deliveries().failed {
            // Why it was not even tried is what committing says.
            Some((_, error)) if !is_purged(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn commit(&self, until: Instant) -> Result<(), KafkaError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.clients.producer.commit_transaction(left.max(TURN)) {
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

    /// Ends a transaction that failed, as far as that is possible, and says why it did.
    fn given_up(&self, error: KafkaError) -> Error {
        // A fenced producer cannot, and after silence the next to open the store does.
        let _ = self.clients.producer.abort_transaction(Duration::from_secs(1));
        let failed = self.clients.deliveries().failed.take().filter(|(_, e)| !is_purged(e));
        let (on, error) = failed.unwrap_or_else(|| (self.id.clone(), error));
        let fatal = self.clients.producer.client().fatal_error();
        let error = fatal.map_or(error, |(code, _)| KafkaError::Global(code));
        match code(&error) {
            Some(code) if is_fenced(code) => Refused::Fenced { id: self.id.clone() },
            Some(code) if is_forbidden(code) => Refused::of("write to", &on, error),
            _ => Refused::Transaction { id: self.id.clone(), source: Source::new(error) },
        }
        .into()
    }

    fn tell_places(&self, group: &[Change]) {
        let deliveries = self.clients.deliveries();
        let mut number = NOBODY;
        for change in group {
            let place = |(partition, _): &(Partition, Vec<Chunk>)| {
                number += 1;
                let &(first, last) = deliveries.places.get(&number)?;
                let offset = |at: i64| u64::try_from(at).ok();
                let (first, end) = (Offset(offset(first)?), Offset(offset(last)?.checked_add(1)?));
                Some(Appended { partition: partition.clone(), first, end })
            };
            change.placed.set(change.appends.iter().filter_map(place).collect());
        }
    }
}

/// A record that was given up because its transaction had failed already.
fn is_purged(error: &KafkaError) -> bool {
    matches!(code(error), Some(Code::PurgeQueue | Code::PurgeInflight))
}

/// Names have no slash.
pub(super) fn position_key(group: &Group, partition: &Partition) -> String {
    format!("{group}/{partition}")
}

/// What [`position_key`] made.
pub(super) fn position_of(key: &[u8]) -> Option<(Group, Partition)> {
    let mut parts = std::str::from_utf8(key).ok()?.splitn(3, '/');
    let group = Group::new(parts.next()?).ok()?;
    let topic = crate::Topic::new(parts.next()?).ok()?;
    Some((group, topic.partition(parts.next()?.parse().ok()?)))
}
