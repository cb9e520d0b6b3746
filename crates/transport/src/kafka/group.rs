//! A process of a consumer group: its partitions, and the group's offsets in its transactions.
//!
//! The group's protocol says which partitions are whose. Records are read through the store. So the
//! consumer here has its partitions paused, and reads nothing.

use super::client::{Clients, base};
use super::options::Options;
use super::store::{self, Change};
use super::topics::Names;
use crate::error::Error;
use crate::error::cluster::ClusterError;
use crate::membership::{BrokerTime, GroupStore, Membership, Ownership};
use crate::names::{Group, Offset, Partition, Topic};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::Producer;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After so long without a sign of a process, its partitions are others'.
const SESSION_MS: &str = "10000";
/// A process that does not ask for changes for so long loses its partitions.
const MAX_POLL_MS: &str = "600000";
/// Maximum number of events to serve at a time.
const MAX_EVENTS: usize = 16;

/// Joins a group: the store of these options, in which positions are the group's offsets, and the
/// process's part in the group. `instance` names the process among those of the group; a process of the
/// same name that is still there cannot write any more.
///
/// The store has no state spaces.
///
/// # Errors
/// [`Error::Kafka`] with the cause and the fix.
pub fn join(options: &Options, group: &Group, instance: &str) -> Result<GroupStore, Error> {
    options.check()?;
    let names = Names::new(options);
    let consumer = Arc::new(consumer(options, &names.group(group))?);
    let offsets = Offsets(Arc::clone(&consumer));
    let store = store::open_as(options, names.instance(group, instance), Some(offsets))?;
    let clients = Arc::clone(store.clients());
    Ok((Arc::new(store), Box::new(Member { consumer, names, clients })))
}

fn consumer(options: &Options, group: &str) -> Result<GroupConsumer, ClusterError> {
    let mut config = base(options);
    if config.get("session.timeout.ms").is_none() {
        config.set("session.timeout.ms", SESSION_MS);
    }
    for (name, value) in [
        ("group.id", group),
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("max.poll.interval.ms", MAX_POLL_MS),
        // Offsets of an undecided transaction are waited for.
        ("isolation.level", "read_committed"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("auto.offset.reset", "latest"),
    ] {
        config.set(name, value);
    }
    config.create_with_context(Context::default()).map_err(|error| match error {
        // The message may contain a value, which may be a secret.
        KafkaError::ClientConfig(_, _, name, _) => ClusterError::Property { name },
        error => ClusterError::of("set up", "librdkafka", error),
    })
}

type GroupConsumer = BaseConsumer<Context>;

/// The group's protocol, as it goes on.
#[derive(Debug, Default)]
struct Context {
    /// Whether partitions come or go, in order.
    changes: Mutex<Vec<(bool, TopicPartitionList)>>,
    /// Whether the process leaves the group, and nobody takes changes any more.
    closing: AtomicBool,
}

impl Context {
    fn changes(&self) -> MutexGuard<'_, Vec<(bool, TopicPartitionList)>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Context {}

impl ConsumerContext for Context {
    /// The group waits until the change is carried out, which [`Membership::changes`] does.
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let come = what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if self.closing.load(Ordering::SeqCst) {
            follow(consumer, come, partitions);
        } else {
            self.changes().push((come, partitions.clone()));
        }
    }
}

/// What a process that is leaving does with a change: the group, and the end of the consumer, wait until
/// each one is carried out, also that partitions come. They go again as it closes.
fn follow(consumer: &BaseConsumer<Context>, come: bool, list: &TopicPartitionList) {
    let _ = match come {
        true => consumer.incremental_assign(list),
        false => consumer.incremental_unassign(list),
    };
}

/// The group's offsets.
pub(super) struct Offsets(Arc<GroupConsumer>);

impl Offsets {
    /// Puts a transaction's positions into it. This fails if the process is not in the group any more.
    pub(super) fn send(
        &self,
        producer: &impl Producer<super::client::Context>,
        names: &Names,
        group: &[Change],
        until: Instant,
    ) -> KafkaResult<()> {
        let mut list = TopicPartitionList::new();
        for (_, partition, next) in group.iter().flat_map(|change| &change.positions) {
            let Ok(topic) = names.topic(&partition.topic) else { continue };
            let at = KafkaOffset::Offset(i64::try_from(next.0).unwrap_or(i64::MAX));
            let index = i32::try_from(partition.index).unwrap_or(i32::MAX);
            match list.find_partition(&topic, index) {
                // The last position counts.
                Some(mut known) => known.set_offset(at)?,
                None => list.add_partition_offset(&topic, index, at)?,
            }
        }
        if list.count() == 0 {
            return Ok(());
        }
        let member = self.0.group_metadata().ok_or(KafkaError::Canceled)?;
        // Once the group has given its partitions away, the metadata may name no member. Brokers do not
        // fence such. What says so is set with the metadata, so it is asked afterwards.
        if self.0.assignment_lost() {
            return Err(KafkaError::Canceled);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match producer.send_offsets_to_transaction(&list, &member, left) {
                Err(KafkaError::Transaction(error)) if error.is_retriable() && !left.is_zero() => {}
                sent => return sent,
            }
        }
    }

    /// The group's offset in a partition, once no transaction is undecided that changes it.
    pub(super) fn committed(
        &self,
        topic: &str,
        partition: i32,
        patience: Duration,
    ) -> KafkaResult<Option<Offset>> {
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let found = self.0.committed_offsets(list, patience)?;
        let found = found.find_partition(topic, partition);
        Ok(found.and_then(|found| match found.offset() {
            KafkaOffset::Offset(at) => u64::try_from(at).ok().map(Offset),
            _ => None,
        }))
    }
}

struct Member {
    consumer: Arc<GroupConsumer>,
    names: Names,
    clients: Arc<Clients>,
}

impl Member {
    /// Serves waiting events of the group.
    fn listen(&self) {
        for _ in 0..MAX_EVENTS {
            // Errors are temporary here, or commits show them.
            if self.consumer.poll(Duration::ZERO).is_none() {
                return;
            }
        }
    }

    fn partitions(&self, list: &TopicPartitionList) -> Vec<Partition> {
        let place = |topic: &str, index: i32| {
            let topic = self.names.topic_of(topic)?;
            Some(topic.partition(u32::try_from(index).ok()?))
        };
        let elements = list.elements();
        elements.iter().filter_map(|element| place(element.topic(), element.partition())).collect()
    }

    /// Takes partitions without reading them.
    fn take(&self, list: &TopicPartitionList) -> KafkaResult<()> {
        let mut paused = TopicPartitionList::new();
        for element in list.elements() {
            paused.add_partition_offset(element.topic(), element.partition(), KafkaOffset::End)?;
        }
        self.consumer.incremental_assign(&paused)?;
        self.consumer.pause(&paused)
    }
}

impl Membership for Member {
    fn subscribe(&self, topics: &[Topic]) -> Result<(), Error> {
        let names: Result<Vec<_>, _> = topics.iter().map(|topic| self.names.topic(topic)).collect();
        let names = names?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let refused = |error| ClusterError::of("subscribe to", &names.join(", "), error);
        Ok(self.consumer.subscribe(&names).map_err(refused)?)
    }

    fn changes(&self, each: &mut dyn FnMut(Ownership)) -> Result<(), Error> {
        self.listen();
        let refused = |error| ClusterError::of("take part in", "the consumer group", error);
        let changes = std::mem::take(&mut *self.consumer.context().changes());
        for (come, list) in changes {
            let partitions = self.partitions(&list);
            if come {
                self.take(&list).map_err(refused)?;
                each(Ownership::Gained(partitions));
            } else if self.consumer.assignment_lost() {
                each(Ownership::Lost(partitions));
                self.consumer.incremental_unassign(&list).map_err(refused)?;
            } else {
                each(Ownership::Leaving(partitions));
                self.consumer.incremental_unassign(&list).map_err(refused)?;
            }
        }
        Ok(())
    }

    fn time(&self) -> Option<BrokerTime> {
        self.clients.time()
    }
}

impl Drop for Member {
    /// Others get the partitions at once.
    fn drop(&mut self) {
        self.consumer.context().closing.store(true, Ordering::SeqCst);
        let changes = std::mem::take(&mut *self.consumer.context().changes());
        for (come, list) in &changes {
            follow(&self.consumer, *come, list);
        }
    }
}
