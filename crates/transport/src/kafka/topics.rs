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
const OUR_BYTES: &str = "16842752";
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
    pub(super) fn new(clients: Arc<Clients>) -> Self {
        Self { clients, known: Mutex::default() }
    }

    /// The names of all topics there are.
    pub(super) fn list(&self) -> Result<Vec<String>, Refused> {
        let patience = self.clients.patience;
        let all = self.clients.consumer.fetch_metadata(None, patience);
        let all = all.map_err(|e| self.clients.refused("list", "topics", e))?;
        Ok(all.topics().iter().map(|topic| topic.name().to_owned()).collect())
    }

    /// What there is by this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<Known>, Refused> {
        if let Some(known) = self.remembered().get(name) {
            return Ok(Some(*known));
        }
        let Some(partitions) = self.partitions(name)? else { return Ok(None) };
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
    pub(super) fn ensure(
        &self,
        name: &str,
        partitions: u32,
        kind: Kind,
    ) -> Result<(Known, bool), Refused> {
        let is_new = self.partitions(name)?.is_none() && self.create(name, partitions, kind)?;
        let until = Instant::now() + self.clients.patience;
        loop {
            if let Some(known) = self.find(name)? {
                if !is_new {
                    self.check(name, kind)?;
                }
                return Ok((known, is_new));
            }
            if Instant::now() > until {
                let source = KafkaError::MetadataFetch(Code::OperationTimedOut);
                return Err(self.clients.refused("make", name, source));
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Sees that a topic of state is compacted, and one of records is not.
    pub(super) fn check(&self, name: &str, kind: Kind) -> Result<(), Refused> {
        let settings = self.settings(name)?;
        let policy = value(&settings, "cleanup.policy");
        match kind {
            Kind::State if policy != "compact" => {
                Err(wrong(name, &settings, "cleanup.policy", "compact"))
            }
            Kind::Records if policy.contains("compact") => {
                Err(wrong(name, &settings, "cleanup.policy", "delete"))
            }
            _ => Ok(()),
        }
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

    /// How many partitions the topic has, once each has a leader.
    fn partitions(&self, name: &str) -> Result<Option<u32>, Refused> {
        let refused = |error| self.clients.refused("describe", name, error);
        let patience = self.clients.patience;
        let found = self.clients.consumer.fetch_metadata(Some(name), patience).map_err(refused)?;
        let Some(topic) = found.topics().iter().find(|topic| topic.name() == name) else {
            return Ok(None);
        };
        match topic.error().map(Code::from) {
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(None),
            Some(code) => Err(refused(KafkaError::MetadataFetch(code))),
            None => Ok(led(topic)),
        }
    }

    /// Whether it was us who made it.
    fn create(&self, name: &str, partitions: u32, kind: Kind) -> Result<bool, Refused> {
        let count = i32::try_from(partitions).unwrap_or(i32::MAX);
        // By the broker's defaults replicated. Kept until we let go of it; what a replay
        // writes has the times of long ago, or of tomorrow.
        let topic = NewTopic::new(name, count, TopicReplication::Fixed(-1))
            .set("max.message.bytes", OUR_BYTES)
            .set("message.timestamp.before.max.ms", "9223372036854775807")
            .set("message.timestamp.after.max.ms", "9223372036854775807");
        let topic = match kind {
            Kind::Records => topic.set("cleanup.policy", "delete").set("retention.ms", "-1"),
            Kind::State => topic.set("cleanup.policy", "compact"),
        };
        let made = self.clients.admin.create_topics([&topic], &self.options());
        let made = pollster::block_on(made);
        let made = made.map_err(|e| self.clients.refused("make", name, e))?;
        match made.into_iter().next() {
            None | Some(Ok(_)) => Ok(true),
            Some(Err((_, Code::TopicAlreadyExists))) => Ok(false),
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

fn led(topic: &MetadataTopic) -> Option<u32> {
    let partitions = topic.partitions();
    let is_led = |p: &rdkafka::metadata::MetadataPartition| {
        p.leader() >= 0 && !p.error().is_some_and(|error| error.is_error())
    };
    let count = u32::try_from(partitions.len()).ok();
    count.filter(|&count| count > 0 && partitions.iter().all(is_led))
}

fn value(settings: &ConfigResource, name: &str) -> String {
    settings.get(name).and_then(|entry| entry.value.clone()).unwrap_or_default()
}

fn number(topic: &str, settings: &ConfigResource, name: &'static str) -> Result<usize, Refused> {
    value(settings, name).parse().map_err(|_| wrong(topic, settings, name, "a number"))
}

fn wrong(
    topic: &str,
    settings: &ConfigResource,
    setting: &'static str,
    want: &'static str,
) -> Refused {
    Refused::TopicSetting { topic: topic.to_owned(), setting, have: value(settings, setting), want }
}
