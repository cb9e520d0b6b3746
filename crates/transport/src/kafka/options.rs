//! Where the cluster is, and how it is spoken to.

use super::refused::Refused;
use crate::local::DEFAULT_MAX_STAGED;
use std::fmt;
use std::time::Duration;

/// Properties that the store's promises rest on, by all their names: nobody else sets them.
const OURS: [&str; 18] = [
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
    "isolation.level",
    "message.max.bytes",
    "message.timeout.ms",
    "metadata.broker.list",
    "request.required.acks",
    "test.mock.num.brokers",
    "transaction.timeout.ms",
    "transactional.id",
];

/// The longest prefix, so that names of some length have room after it.
const MAX_PREFIX: usize = 100;

/// How a store uses a Kafka cluster.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Some brokers of the cluster, `host:port`, with commas between.
    pub brokers: String,
    /// What all names of the store begin with, a dot at its end: one store, one prefix.
    pub prefix: String,
    /// Further properties of librdkafka, such as those of TLS and SASL; see
    /// [`Options::read_properties`].
    pub properties: Vec<(String, String)>,
    /// The most bytes of accepted batches that wait for a commit, so also of one
    /// batch; default 64 MiB. With what librdkafka copies, three times that is held.
    pub max_staged: usize,
    /// On how many brokers a record must be before it counts as durable; default 1. Topics
    /// with fewer replicas, or a smaller `min.insync.replicas`, are refused.
    pub least_copies: u16,
    /// How long a call waits for brokers that do not answer, and a transaction may
    /// take; default 60 seconds, at most 15 minutes, which is a broker's own limit.
    pub patience: Duration,
}

/// Values of properties may be secrets.
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
    /// The store whose names begin with `prefix`, in the cluster of `brokers`.
    #[must_use]
    pub fn new(brokers: &str, prefix: &str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            prefix: prefix.to_owned(),
            properties: Vec::new(),
            max_staged: DEFAULT_MAX_STAGED,
            least_copies: 1,
            patience: Duration::from_secs(60),
        }
    }

    /// Takes properties from the text of a file: `name=value` in each line, `#` before
    /// remarks, as Kafka's own clients have them; the names are librdkafka's.
    ///
    /// # Errors
    /// [`Refused::Line`] for what is none.
    pub fn read_properties(&mut self, text: &str) -> Result<(), Refused> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = line.split_once('=').ok_or(Refused::Line { number })?;
            self.properties.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(())
    }

    /// Refuses what would undo a promise.
    pub(super) fn check(&self) -> Result<(), Refused> {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_own = |part: &str| matches!(part, "state" | "store");
        let is_clear = self.prefix.ends_with('.') && !self.prefix.split('.').any(is_own);
        if self.prefix.len() > MAX_PREFIX || !self.prefix.bytes().all(good) || !is_clear {
            return Err(Refused::Prefix { limit: MAX_PREFIX });
        }
        match self.properties.iter().find(|(name, _)| OURS.contains(&name.as_str())) {
            Some((name, _)) => Err(Refused::Property { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The transactional id, by which a store has one writer.
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
        let text = "# door\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n";
        options.read_properties(text).unwrap();
        assert_eq!(options.properties[1], ("sasl.password".into(), "a=b".into()));
        assert!(options.check().is_ok());
        assert!(!format!("{options:?}").contains("a=b"), "{options:?}");
        let refused = options.read_properties("x=1\nsasl.password");
        assert!(matches!(refused, Err(Refused::Line { number: 2 })));
    }

    #[test]
    fn what_the_promises_rest_on_is_not_for_others_to_set() {
        let mut options = Options::new("localhost:9092", "a.");
        options.read_properties("isolation.level=read_uncommitted").unwrap();
        let refused = options.check();
        assert!(matches!(refused, Err(Refused::Property { name }) if name == "isolation.level"));
        options.properties = vec![("metadata.broker.list".into(), "elsewhere:9092".into())];
        assert!(options.check().is_err(), "another name of what is ours");
        for prefix in
            ["a b.", "ä.", "", "a", "a.state.", "store.", &format!("{}.", "x".repeat(100))]
        {
            let refused = Options::new("localhost:9092", prefix).check();
            assert!(matches!(refused, Err(Refused::Prefix { .. })), "{prefix}");
        }
    }
}
