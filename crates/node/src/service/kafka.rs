//! Opens a store in a Kafka cluster, or joins a group of processes there, where the program was built
//! for it.

use super::ServiceError;
use crate::settings::kafka::KafkaSettings;
use alpheus_transport::{Group, GroupStore, Store};
use std::sync::Arc;

/// Opens the store.
///
/// # Errors
/// A setting is missing, the file cannot be read, or the cluster refuses.
#[cfg(feature = "kafka")]
pub(super) fn open(settings: &KafkaSettings) -> Result<Arc<dyn Store>, ServiceError> {
    Ok(alpheus_transport::kafka::open(&options(settings)?)?)
}

/// Joins a group of processes, as the instance with this name.
///
/// # Errors
/// A setting is missing, the file cannot be read, or the cluster refuses.
#[cfg(feature = "kafka")]
pub fn join(
    settings: &KafkaSettings,
    group: &Group,
    instance: &str,
) -> Result<GroupStore, ServiceError> {
    Ok(alpheus_transport::kafka::join(&options(settings)?, group, instance)?)
}

#[cfg(feature = "kafka")]
fn options(settings: &KafkaSettings) -> Result<alpheus_transport::kafka::Options, ServiceError> {
    use crate::settings::Settings;
    use alpheus_transport::kafka;

    let brokers = Settings::needed(&settings.brokers, "kafka.brokers")?;
    let prefix = Settings::needed(&settings.prefix, "kafka.prefix")?;
    let mut options = kafka::Options::new(&brokers, &prefix);
    if let Some(path) = &settings.properties {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ServiceError::Properties { path: path.clone(), source })?;
        options.read_properties(&text).map_err(alpheus_transport::Error::from)?;
    }
    options.min_copies = settings.min_copies.unwrap_or(options.min_copies);
    if let Some(seconds) = settings.timeout_seconds {
        options.patience = std::time::Duration::from_secs(seconds);
    }
    Ok(options)
}

/// Says that this program cannot.
///
/// # Errors
/// [`ServiceError::NoKafka`].
#[cfg(not(feature = "kafka"))]
pub(super) fn open(_: &KafkaSettings) -> Result<Arc<dyn Store>, ServiceError> {
    Err(ServiceError::NoKafka)
}

/// Says that this program cannot.
///
/// # Errors
/// [`ServiceError::NoKafka`].
#[cfg(not(feature = "kafka"))]
pub fn join(_: &KafkaSettings, _: &Group, _: &str) -> Result<GroupStore, ServiceError> {
    Err(ServiceError::NoKafka)
}
