//! The address and configuration of the cluster.

use crate::error::cluster::ClusterError;
use crate::local::DEFAULT_MAX_STAGED;
use std::fmt;
use std::time::Duration;

/// Properties that the store's guarantees depend on, under all their names. Only the store
/// sets them.
const RESERVED: [&str; 21] = [
    "acks",
    "allow.auto.create.topics",
    "bootstrap.servers",
    "client.rack",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    // A group's members have names of their own, and its protocol is the one that fences them.
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "isolation.level",
    "message.max.bytes",
    "message.timeout.ms",
    "metadata.broker.list",
    "request.required.acks",
    "test.mock.num.brokers",
    "transaction.timeout.ms",
    "transactional.id",
];

/// Maximum length of the prefix, which leaves room for names.
const MAX_PREFIX: usize = 100;

/// How a store uses a Kafka cluster.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Some brokers of the cluster as `host:port`, separated by commas.
    pub brokers: String,
    /// The prefix of all names of the store, ending in a dot. Each store has its own prefix.
    pub prefix: String,
    /// Further properties of librdkafka, such as those of TLS and SASL; see
    /// [`Options::read_properties`].
    pub properties: Vec<(String, String)>,
    /// Maximum size of accepted batches that wait for a commit, and of a single batch. The
    /// default is 64 MiB. Including librdkafka's copies, memory use is up to three times
    /// that.
    pub max_staged: usize,
    /// Minimum number of brokers with a copy of a record before it counts as durable. The
    /// default is 1. Topics with fewer replicas, or a smaller `min.insync.replicas`, are
    /// refused.
    pub min_copies: u16,
    /// How long a call waits for brokers that do not answer, and how long a transaction may
    /// take. The default is 60 seconds, the maximum 15 minutes, which is a broker's limit.
    pub patience: Duration,
}

/// Omits the values of properties, which may be secrets.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.properties.iter().map(|(name, _)| name).collect();
        f.debug_struct("Options")
            .field("brokers", &self.brokers)
            .field("prefix", &self.prefix)
            .field("properties", &names)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The store with this prefix, in the cluster of `brokers`.
    #[must_use]
    pub fn new(brokers: &str, prefix: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            prefix: prefix.to_owned(),
            properties: Vec::new(),
            max_staged: DEFAULT_MAX_STAGED,
            min_copies: 1,
            patience: Duration::from_secs(60),
        }
    }

    /// Reads properties from the text of a file: `name=value` on each line, and `#` for
    /// comments, as for Kafka's own clients. The names are librdkafka's.
    ///
    /// # Errors
    /// [`ClusterError::Line`] if a line is invalid.
    pub fn read_properties(&mut self, text: &str) -> Result<(), ClusterError> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = line.split_once('=').ok_or(ClusterError::Line { number })?;
            self.properties.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(())
    }

    /// Rejects options that would break a guarantee.
    pub(super) fn check(&self) -> Result<(), ClusterError> {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_own = |part: &str| matches!(part, "state" | "store");
        let is_clear = self.prefix.ends_with('.') && !self.prefix.split('.').any(is_own);
        if self.prefix.len() > MAX_PREFIX || !self.prefix.bytes().all(good) || !is_clear {
            return Err(ClusterError::Prefix { limit: MAX_PREFIX });
        }
        match self.properties.iter().find(|(name, _)| RESERVED.contains(&name.as_str())) {
            Some((name, _)) => Err(ClusterError::Property { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The transactional id, which ensures a single writer.
    pub(super) fn writer_id(&self) -> String {
        format!("{}store", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_and_their_values_not_shown() {
        let mut options = Options::new("localhost:9092", "a.");
        let text = "# login\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n";
        options.read_properties(text).unwrap();
        assert_eq!(options.properties[1], ("sasl.password".into(), "a=b".into()));
        assert!(options.check().is_ok());
        assert!(!format!("{options:?}").contains("a=b"), "{options:?}");
        let refused = options.read_properties("x=1\nsasl.password");
        assert!(matches!(refused, Err(ClusterError::Line { number: 2 })));
    }

    #[test]
    fn properties_that_guarantees_depend_on_cannot_be_set() {
        let mut options = Options::new("localhost:9092", "a.");
        options.read_properties("isolation.level=read_uncommitted").unwrap();
        let refused = options.check();
        assert!(
            matches!(refused, Err(ClusterError::Property { name }) if name == "isolation.level")
        );
        options.properties = vec![("metadata.broker.list".into(), "elsewhere:9092".into())];
        assert!(options.check().is_err(), "another name of a reserved property");
        for name in ["group.instance.id", "group.protocol"] {
            options.properties = vec![(name.into(), "consumer".into())];
            assert!(options.check().is_err(), "{name}: workers of one name fence each other");
        }
        for prefix in
            ["a b.", "ä.", "", "a", "a.state.", "store.", &format!("{}.", "x".repeat(100))]
        {
            let refused = Options::new("localhost:9092", prefix).check();
            assert!(matches!(refused, Err(ClusterError::Prefix { .. })), "{prefix}");
        }
    }
}
