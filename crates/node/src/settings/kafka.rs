//! State in a Kafka cluster instead of a directory: `kafka.…` in the file,
//! `ALPHEUS_KAFKA__…` in the environment, flags.

use super::{Flags, path_flag};
use serde::Deserialize;
use std::path::PathBuf;

/// Where the cluster is. With any of these, the store is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct KafkaSettings {
    /// Some of its brokers, `host:port`, separated by commas.
    pub brokers: Option<String>,
    /// Prefix of this process's topic names, ending in a dot; unique for each process.
    pub prefix: Option<String>,
    /// A file of librdkafka's properties, such as those of TLS and SASL.
    pub properties: Option<PathBuf>,
    /// How many brokers must have a record before it counts as durable.
    pub min_copies: Option<u16>,
    /// How long to wait for brokers that do not answer.
    pub timeout_seconds: Option<u64>,
}

/// The same as flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KafkaArgs {
    /// Brokers of a Kafka cluster; a service keeps its state there, not in a folder
    #[arg(long, value_name = "HOST:PORT,...")]
    kafka_brokers: Option<String>,
    /// Prefix of topic names, ending in a dot; unique for each service, and the same for its workers
    #[arg(long, value_name = "NAME")]
    kafka_prefix: Option<String>,
    /// File with properties of librdkafka, for TLS and SASL
    #[arg(long, value_name = "FILE")]
    kafka_properties: Option<PathBuf>,
}

impl KafkaArgs {
    /// The flags by their settings keys.
    #[must_use]
    pub fn flags(&self) -> Flags {
        vec![
            ("kafka.brokers", self.kafka_brokers.clone()),
            ("kafka.prefix", self.kafka_prefix.clone()),
            ("kafka.properties", path_flag(self.kafka_properties.as_ref())),
        ]
    }
}
