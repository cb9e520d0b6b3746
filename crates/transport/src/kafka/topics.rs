//! The topics of a store in the cluster: their names, how they are made, and what
//! they must be set to.

use super::client::Clients;
use super::options::Options;
use super::refused::Refused;
use crate::names::{Offset, Partition, Space, Topic};
use rdkafka::admin::{AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::Consumer;
use rdkafka::error::{IsError, KafkaError, RDKafkaErrorCode as Code};
use rdkafka::metadata::MetadataTopic;
use rdkafka::{Offset as At, TopicPartitionList};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What every topic must take: librdkafka gathers records up to about a million bytes.
const LEAST_BYTES: usize = 1 << 20;
/// What topics of ours take: our largest record with its framing.
const RECORD_BYTES: &str = "16842752";
/// What topics of state take: as much as a batch has by default.
const STATE_BYTES: &str = "68157440";
/// Compaction passes over the segment that is being written: so it is small, though
/// larger than a value may be, and closed every hour.
const COMPACTED: [(&str, &str); 5] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "134217728"),
    ("segment.ms", "3600000"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("delete.retention.ms", "86400000"),
];
/// Nothing goes before we let go of it.
const KEPT: [(&str, &str); 3] =
    [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];
const AGAIN: Duration = Duration::from_millis(10);

/// The names of a store in its cluster.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
}

/// What is known of a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) partitions: u32,
    /// The largest record, with framing.
    pub(super) max_bytes: usize,
}

/// What a topic is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Records,
    /// The last value of each key.
    State,
}

/// Topics of the cluster that were looked up.
pub(super) struct Topics {
    clients: Arc<Clients>,
    least_copies: u16,
    known: Mutex<HashMap<String, Known>>,
}

impl Names {
    pub(super) fn new(options: &Options) -> Self {
        Self { prefix: options.prefix.clone() }
    }

    pub(super) fn topic(&self, topic: &Topic) -> Result<String, Refused> {
        let name = format!("{}{topic}", self.prefix);
        if ["state.", "store."].iter().any(|own| topic.as_str().starts_with(own)) {
            return Err(Refused::Reserved { topic: name });
        }
        Ok(name)
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
    pub(super) fn new(clients: Arc<Clients>, least_copies: u16) -> Self {
        Self { clients, least_copies, known: Mutex::default() }
    }

    /// The topics of the store's state spaces, by the cluster's list.
    pub(super) fn spaces(&self, names: &Names) -> Result<Vec<(String, Space)>, Refused> {
        let patience = self.clients.patience;
        let all = self.clients.consumer.fetch_metadata(None, patience);
        let all = all.map_err(|e| self.clients.refused("list", "topics", e))?;
        let all = all.topics().iter().map(|topic| topic.name().to_owned());
        Ok(all.filter_map(|name| names.space_of(&name).map(|space| (name, space))).collect())
    }

    /// Sees that all state that is there is kept.
    pub(super) fn check_all(&self, names: &Names) -> Result<(), Refused> {
        for (name, _) in self.spaces(names)? {
            self.check(&name, Kind::State)?;
        }
        Ok(())
    }

    /// What there is by this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<Known>, Refused> {
        if let Some(known) = self.remembered().get(name) {
            return Ok(Some(*known));
        }
        let Some((partitions, _)) = self.partitions(name)? else { return Ok(None) };
        let settings = self.settings(name)?;
        let max_bytes = number(name, &settings, "max.message.bytes")?;
        if max_bytes < LEAST_BYTES {
            return Err(wrong(name, &settings, "max.message.bytes", "1048576 or more"));
        }
        let known = Known { partitions, max_bytes };
        self.remembered().insert(name.to_owned(), known);
        Ok(Some(known))
    }

    /// Makes a topic unless it is there, and sees that it keeps what it must.
    pub(super) fn ensure(&self, name: &str, partitions: u32, kind: Kind) -> Result<Known, Refused> {
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

    /// Sees that a topic of state keeps the last value of each key, one of records all,
    /// and both as many copies as were asked for.
    pub(super) fn check(&self, name: &str, kind: Kind) -> Result<(), Refused> {
        let settings = self.settings(name)?;
        let wanted = match kind {
            Kind::Records => &KEPT[..],
            Kind::State => &COMPACTED[..1],
        };
        for &(setting, want) in wanted {
            if value(&settings, setting) != want {
                return Err(wrong(name, &settings, setting, want));
            }
        }
        let least = usize::from(self.least_copies);
        let copies = self.partitions(name)?.map_or(0, |(_, copies)| copies);
        if copies < least {
            let (topic, have) = (name.to_owned(), copies.to_string());
            let want = format!("{least} or more");
            return Err(Refused::TopicSetting { topic, setting: "replicas", have, want });
        }
        if number(name, &settings, "min.insync.replicas")? < least {
            let want = format!("{least} or more");
            return Err(wrong(name, &settings, "min.insync.replicas", &want));
        }
        Ok(())
    }

    fn wait(&self, name: &str, until: Instant) -> Result<(), Refused> {
        if Instant::now() > until {
            let source = KafkaError::MetadataFetch(Code::OperationTimedOut);
            return Err(self.clients.refused("find a leader of", name, source));
        }
        std::thread::sleep(AGAIN);
        Ok(())
    }

    /// Drops the records before an offset.
    pub(super) fn delete_before(
        &self,
        name: &str,
        partition: &Partition,
        before: Offset,
    ) -> Result<(), Refused> {
        let refused = |error| self.clients.refused("delete records of", name, error);
        let mut list = TopicPartitionList::new();
        let at = At::Offset(i64::try_from(before.0).unwrap_or(i64::MAX));
        let index = i32::try_from(partition.index).unwrap_or(i32::MAX);
        list.add_partition_offset(name, index, at).map_err(refused)?;
        let deleted = self.clients.admin.delete_records(&list, &self.options());
        let deleted = pollster::block_on(deleted).map_err(refused)?;
        deleted.elements().iter().try_for_each(|element| element.error()).map_err(refused)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> AdminOptions {
        let patience = Some(self.clients.patience);
        AdminOptions::new().request_timeout(patience).operation_timeout(patience)
    }

    /// How many partitions the topic has, and copies of each; waits until each has a leader.
    fn partitions(&self, name: &str) -> Result<Option<(u32, usize)>, Refused> {
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
                    if let Some(count) = led(topic) {
                        return Ok(Some(count));
                    }
                }
            }
            self.wait(name, until)?;
        }
    }

    fn create(&self, name: &str, partitions: u32, kind: Kind) -> Result<(), Refused> {
        let count = i32::try_from(partitions).unwrap_or(i32::MAX);
        let (bytes, settings) = match kind {
            Kind::Records => (RECORD_BYTES, &KEPT[..]),
            Kind::State => (STATE_BYTES, &COMPACTED[..]),
        };
        // Replicated by the brokers' default.
        let mut topic = NewTopic::new(name, count, TopicReplication::Fixed(-1));
        topic = topic.set("max.message.bytes", bytes);
        for (setting, value) in settings {
            topic = topic.set(setting, value);
        }
        let copies = self.least_copies.to_string();
        if self.least_copies > 1 {
            topic = topic.set("min.insync.replicas", &copies);
        }
        let made = self.clients.admin.create_topics([&topic], &self.options());
        let made = pollster::block_on(made);
        let made = made.map_err(|e| self.clients.refused("make", name, e))?;
        match made.into_iter().next() {
            None | Some(Ok(_) | Err((_, Code::TopicAlreadyExists))) => Ok(()),
            Some(Err((_, code))) => {
                Err(self.clients.refused("make", name, KafkaError::AdminOp(code)))
            }
        }
    }

    fn settings(&self, name: &str) -> Result<ConfigResource, Refused> {
        let refused = |error| self.clients.refused("describe the settings of", name, error);
        let topic = [ResourceSpecifier::Topic(name)];
        let described = self.clients.admin.describe_configs(&topic, &self.options());
        let described = pollster::block_on(described).map_err(refused)?;
        let first = described.into_iter().next();
        let first = first.ok_or_else(|| refused(KafkaError::NoMessageReceived))?;
        first.map_err(|code| refused(KafkaError::AdminOp(code)))
    }
}

fn led(topic: &MetadataTopic) -> Option<(u32, usize)> {
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

fn number(topic: &str, settings: &ConfigResource, name: &'static str) -> Result<usize, Refused> {
    value(settings, name).parse().map_err(|_| wrong(topic, settings, name, "a number"))
}

fn wrong(topic: &str, settings: &ConfigResource, setting: &'static str, want: &str) -> Refused {
    let (topic, have) = (topic.to_owned(), value(settings, setting));
    Refused::TopicSetting { topic, setting, have, want: want.to_owned() }
}
