//! State in a Kafka cluster instead of a directory: `kafka.…` in the file,
//! `ALPHEUS_KAFKA__…` in the environment, flags.

use super::{Flags, ServiceError, path_flag};
use alpheus_transport::Store;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the cluster is. With any of these, the store is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct KafkaSettings {
    /// Some of its brokers, `host:port`, with commas between.
    pub brokers: Option<String>,
    /// What the names of this process's topics begin with, a dot at its end: no two
    /// processes share one.
    pub prefix: Option<String>,
    /// A file of librdkafka's properties, such as those of TLS and SASL.
    pub properties: Option<PathBuf>,
    /// On how many brokers a record must be before it counts as durable.
    pub least_copies: Option<u16>,
    /// How many seconds to wait for brokers that do not answer.
    pub patience_seconds: Option<u64>,
}

/// The same as flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KafkaArgs {
    /// Keep the state in this Kafka cluster: some of its brokers
    #[arg(long, value_name = "HOST:PORT,...")]
    kafka_brokers: Option<String>,
    /// What the names of this process's topics begin with, a dot at its end; no other process has it
    #[arg(long, value_name = "NAME")]
    kafka_prefix: Option<String>,
    /// Properties of librdkafka, for TLS and SASL
    #[arg(long, value_name = "FILE")]
    kafka_properties: Option<PathBuf>,
}

impl KafkaArgs {
    /// What they say, by the settings' keys.
    #[must_use]
    pub fn flags(&self) -> Flags {
        vec![
            ("kafka.brokers", self.kafka_brokers.clone()),
            ("kafka.prefix", self.kafka_prefix.clone()),
            ("kafka.properties", path_flag(self.kafka_properties.as_ref())),
        ]
    }
}

impl KafkaSettings {
    /// Opens the store.
    ///
    /// # Errors
    /// A setting is missing, the file cannot be read, or the cluster refuses.
    #[cfg(feature = "kafka")]
    pub fn open(&self) -> Result<Arc<dyn Store>, ServiceError> {
        use alpheus_transport::kafka;

        let needed =
            |value: &Option<String>, name| value.clone().ok_or(ServiceError::Missing(name));
        let brokers = needed(&self.brokers, "kafka.brokers")?;
        let prefix = needed(&self.prefix, "kafka.prefix")?;
        let mut options = kafka::Options::new(&brokers, &prefix);
        if let Some(path) = &self.properties {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ServiceError::Properties { path: path.clone(), source })?;
            options.read_properties(&text).map_err(alpheus_transport::Error::from)?;
        }
        options.least_copies = self.least_copies.unwrap_or(options.least_copies);
        if let Some(seconds) = self.patience_seconds {
            options.patience = std::time::Duration::from_secs(seconds);
        }
        Ok(kafka::open(&options)?)
    }

    /// Says that this program cannot.
    ///
    /// # Errors
    /// [`ServiceError::NoKafka`].
    #[cfg(not(feature = "kafka"))]
    pub fn open(&self) -> Result<Arc<dyn Store>, ServiceError> {
        Err(ServiceError::NoKafka)
    }
}
