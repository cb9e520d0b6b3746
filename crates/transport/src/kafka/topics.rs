//! The topics of a store in the cluster: their names, creation, and required settings.

use super::client::Clients;
use super::options::Options;
use crate::error::cluster::ClusterError;
use crate::names::{Group, Offset, Partition, Space, Topic};
use rdkafka::admin::{AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::Consumer;
use rdkafka::error::{IsError, KafkaError, RDKafkaErrorCode as Code};
use rdkafka::metadata::MetadataTopic;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum `max.message.bytes` of every topic: librdkafka collects up to about a million
/// bytes.
const MIN_MESSAGE_BYTES: usize = 1 << 20;
/// `max.message.bytes` of record topics: our largest record with its framing.
const RECORD_BYTES: &str = "16842752";
/// `max.message.bytes` of state topics: the default size of a batch.
const STATE_BYTES: &str = "68157440";
/// Compaction skips the segment that is being written. So it is small, though larger than
/// any value, and closed every hour.
const COMPACTED: [(&str, &str); 5] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "134217728"),
    ("segment.ms", "3600000"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("delete.retention.ms", "86400000"),
];
/// Brokers say when they took each record. That is not so of all topics; the rest is: records stay until
/// the store deletes them.
const STAMPED: [(&str, &str); 4] = [
    ("message.timestamp.type", "LogAppendTime"),
    ("cleanup.policy", "delete"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
];
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The names of a store in its cluster.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
}

/// Properties of a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopicInfo {
    pub(super) partitions: u32,
    /// Maximum size of a record with framing.
    pub(super) max_bytes: usize,
}

/// The purpose of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Records,
    /// Records with the brokers' time.
    Stamped,
    /// The last value of each key.
    State,
}

/// Looks up topics of the cluster, with a cache.
pub(super) struct Topics {
    clients: Arc<Clients>,
    min_copies: u16,
    known: Mutex<HashMap<String, TopicInfo>>,
}

impl Names {
    pub(super) fn new(options: &Options) -> Self {
        Self { prefix: options.prefix.clone() }
    }

    pub(super) fn topic(&self, topic: &Topic) -> Result<String, ClusterError> {
        let name = format!("{}{topic}", self.prefix);
        if ["state.", "store."].iter().any(|own| topic.as_str().starts_with(own)) {
            return Err(ClusterError::Reserved { topic: name });
        }
        Ok(name)
    }

    /// The topic with this name in the cluster.
    pub(super) fn topic_of(&self, name: &str) -> Option<Topic> {
        Topic::new(name.strip_prefix(&self.prefix)?).ok()
    }

    /// A consumer group's name in the cluster.
    pub(super) fn group(&self, group: &Group) -> String {
        format!("{}{group}", self.prefix)
    }

    /// The transactional id of a process of a group.
    pub(super) fn instance(&self, group: &Group, instance: &str) -> String {
        format!("{}{group}.{instance}", self.prefix)
    }

    pub(super) fn space(&self, space: &Space) -> String {
        format!("{}state.{space}", self.prefix)
    }

    /// The state space whose topic this is.
    pub(super) fn space_of(&self, name: &str) -> Option<Space> {
        Space::new(name.strip_prefix(&self.prefix)?.strip_prefix("state.")?).ok()
    }

    pub(super) fn positions(&self) -> String {
        format!("{}store.positions", self.prefix)
    }
}

impl Topics {
    pub(super) fn new(clients: Arc<Clients>, min_copies: u16) -> Self {
        Self { clients, min_copies, known: Mutex::default() }
    }

    /// The topics of the store's state spaces, by the cluster's list.
    pub(super) fn spaces(&self, names: &Names) -> Result<Vec<(String, Space)>, ClusterError> {
        let patience = self.clients.patience;
        let all = self.clients.consumer.fetch_metadata(None, patience);
        let all = all.map_err(|e| self.clients.refused("list", "topics", e))?;
        let all = all.topics().iter().map(|topic| topic.name().to_owned());
        Ok(all.filter_map(|name| names.space_of(&name).map(|space| (name, space))).collect())
    }

    /// Checks that no existing state can be lost.
    pub(super) fn check_all(&self, names: &Names) -> Result<(), ClusterError> {
        for (name, _) in self.spaces(names)? {
            self.check(&name, Kind::State)?;
        }
        Ok(())
    }

    /// The topic with this name, if it exists.
    pub(super) fn find(&self, name: &str) -> Result<Option<TopicInfo>, ClusterError> {
        if let Some(known) = self.cache().get(name) {
            return Ok(Some(*known));
        }
        let Some((partitions, _)) = self.partitions(name)? else { return Ok(None) };
        let settings = self.settings(name)?;
        let max_bytes = number(name, &settings, "max.message.bytes")?;
        if max_bytes < MIN_MESSAGE_BYTES {
            return Err(wrong(name, &settings, "max.message.bytes", "1048576 or more"));
        }
        let known = TopicInfo { partitions, max_bytes };
        self.cache().insert(name.to_owned(), known);
        Ok(Some(known))
    }

    /// Creates a topic unless it exists, and checks its settings.
    pub(super) fn ensure(
        &self,
        name: &str,
        partitions: u32,
        kind: Kind,
    ) -> Result<TopicInfo, ClusterError> {
        if self.partitions(name)?.is_none() {
            self.create(name, partitions, kind)?;
        }
        let until = Instant::now() + self.clients.patience;
        loop {
            if let Some(known) = self.find(name)? {
                self.check(name, kind)?;
                return Ok(known);
            }
            self.wait(name, until)?;
        }
    }

    /// Checks that a state topic keeps the last value of each key, that a record topic keeps
    /// all records, and that both have enough copies.
    pub(super) fn check(&self, name: &str, kind: Kind) -> Result<(), ClusterError> {
        let settings = self.settings(name)?;
        let wanted = match kind {
            Kind::Records => &STAMPED[1..],
            Kind::Stamped => &STAMPED[..],
            Kind::State => &COMPACTED[..1],
        };
        for &(setting, want) in wanted {
            if value(&settings, setting) != want {
                return Err(wrong(name, &settings, setting, want));
            }
        }
        let min = usize::from(self.min_copies);
        let copies = self.partitions(name)?.map_or(0, |(_, copies)| copies);
        if copies < min {
            let (topic, have) = (name.to_owned(), copies.to_string());
            let want = format!("{min} or more");
            return Err(ClusterError::TopicSetting { topic, setting: "replicas", have, want });
        }
        if number(name, &settings, "min.insync.replicas")? < min {
            let want = format!("{min} or more");
            return Err(wrong(name, &settings, "min.insync.replicas", &want));
        }
        Ok(())
    }

    fn wait(&self, name: &str, until: Instant) -> Result<(), ClusterError> {
        if Instant::now() > until {
            let source = KafkaError::MetadataFetch(Code::OperationTimedOut);
            return Err(self.clients.refused("find a leader of", name, source));
        }
        std::thread::sleep(RETRY_PAUSE);
        Ok(())
    }

    /// Deletes the records before an offset.
    pub(super) fn delete_before(
        &self,
        name: &str,
        partition: &Partition,
        before: Offset,
    ) -> Result<(), ClusterError> {
        let refused = |error| self.clients.refused("delete records of", name, error);
        let mut list = TopicPartitionList::new();
        let at = KafkaOffset::Offset(i64::try_from(before.0).unwrap_or(i64::MAX));
        let index = i32::try_from(partition.index).unwrap_or(i32::MAX);
        list.add_partition_offset(name, index, at).map_err(refused)?;
        let deleted = self.clients.admin.delete_records(&list, &self.options());
        let deleted = pollster::block_on(deleted).map_err(refused)?;
        deleted.elements().iter().try_for_each(|element| element.error()).map_err(refused)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<String, TopicInfo>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> AdminOptions {
        let patience = Some(self.clients.patience);
        AdminOptions::new().request_timeout(patience).operation_timeout(patience)
    }

    /// The numbers of partitions and of copies of each. Waits until each has a leader.
    fn partitions(&self, name: &str) -> Result<Option<(u32, usize)>, ClusterError> {
        let refused = |error| self.clients.refused("describe", name, error);
        let until = Instant::now() + self.clients.patience;
        loop {
            let patience = self.clients.patience;
            let found = self.clients.consumer.fetch_metadata(Some(name), patience);
            let found = found.map_err(refused)?;
            let topic = found.topics().iter().find(|topic| topic.name() == name);
            match topic.map(|topic| (topic, topic.error().map(Code::from))) {
                None | Some((_, Some(Code::UnknownTopicOrPartition | Code::UnknownTopic))) => {
                    return Ok(None);
                }
                Some((_, Some(Code::LeaderNotAvailable))) => {}
                Some((_, Some(code))) => return Err(refused(KafkaError::MetadataFetch(code))),
                Some((topic, None)) => {
                    if let Some(count) = counts_if_led(topic) {
                        return Ok(Some(count));
                    }
                }
            }
            self.wait(name, until)?;
        }
    }

    fn create(&self, name: &str, partitions: u32, kind: Kind) -> Result<(), ClusterError> {
        let count = i32::try_from(partitions).unwrap_or(i32::MAX);
        let (bytes, settings) = match kind {
            Kind::Records => (RECORD_BYTES, &STAMPED[1..]),
            Kind::Stamped => (RECORD_BYTES, &STAMPED[..]),
            Kind::State => (STATE_BYTES, &COMPACTED[..]),
        };
        // The brokers' default replication.
        let mut topic = NewTopic::new(name, count, TopicReplication::Fixed(-1));
        topic = topic.set("max.message.bytes", bytes);
        for (setting, value) in settings {
            topic = topic.set(setting, value);
        }
        let copies = self.min_copies.to_string();
        if self.min_copies > 1 {
            topic = topic.set("min.insync.replicas", &copies);
        }
        let created = self.clients.admin.create_topics([&topic], &self.options());
        let created = pollster::block_on(created);
        let created = created.map_err(|e| self.clients.refused("create", name, e))?;
        match created.into_iter().next() {
            None | Some(Ok(_) | Err((_, Code::TopicAlreadyExists))) => Ok(()),
            Some(Err((_, code))) => {
                Err(self.clients.refused("create", name, KafkaError::AdminOp(code)))
            }
        }
    }

    fn settings(&self, name: &str) -> Result<ConfigResource, ClusterError> {
        let refused = |error| self.clients.refused("describe the settings of", name, error);
        let topic = [ResourceSpecifier::Topic(name)];
        let described = self.clients.admin.describe_configs(&topic, &self.options());
        let described = pollster::block_on(described).map_err(refused)?;
        let first = described.into_iter().next();
        let first = first.ok_or_else(|| refused(KafkaError::NoMessageReceived))?;
        first.map_err(|code| refused(KafkaError::AdminOp(code)))
    }
}

fn counts_if_led(topic: &MetadataTopic) -> Option<(u32, usize)> {
    let partitions = topic.partitions();
    let is_led = |p: &rdkafka::metadata::MetadataPartition| {
        p.leader() >= 0 && !p.error().is_some_and(|error| error.is_error())
    };
    let count = u32::try_from(partitions.len()).ok();
    let copies = partitions.iter().map(|partition| partition.replicas().len()).min()?;
    count.filter(|_| partitions.iter().all(is_led)).map(|count| (count, copies))
}

fn value(settings: &ConfigResource, name: &str) -> String {
    settings.get(name).and_then(|entry| entry.value.clone()).unwrap_or_default()
}

fn number(
    topic: &str,
    settings: &ConfigResource,
    name: &'static str,
) -> Result<usize, ClusterError> {
    value(settings, name).parse().map_err(|_| wrong(topic, settings, name, "a number"))
}

fn wrong(
    topic: &str,
    settings: &ConfigResource,
    setting: &'static str,
    want: &str,
) -> ClusterError {
    let (topic, have) = (topic.to_owned(), value(settings, setting));
    ClusterError::TopicSetting { topic, setting, have, want: want.to_owned() }
}
