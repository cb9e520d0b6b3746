//! What Kafka refuses, whose word it was, and which setting or access list mends it.

use crate::error::Source;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Why the cluster did not do what was asked. Names of topics and settings, never
/// a value of a property, a key or a record.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A line of the file of properties is none.
    #[error("line {number} of the properties is not name=value")]
    Line {
        /// Which, from 1.
        number: usize,
    },
    /// A property that librdkafka does not know, with a value it does not take, or that
    /// the store sets itself.
    #[error("the property {name} cannot be set so")]
    Property {
        /// Its name.
        name: String,
    },
    /// A prefix that no topic's name could have.
    #[error(
        "a prefix is at most {limit} characters of a-z A-Z 0-9 . _ -, ends in a dot, and no part of it is `state` or `store`"
    )]
    Prefix {
        /// The most characters.
        limit: usize,
    },
    /// A topic's name that the store uses for itself.
    #[error("{topic}: names that begin with `state.` or `store.` are the store's own")]
    Reserved {
        /// The topic.
        topic: String,
    },
    /// Nobody answers.
    #[error("no broker of {brokers} answered in time")]
    Unreachable {
        /// The brokers that were named.
        brokers: String,
        /// What librdkafka heard last.
        source: Option<Source>,
    },
    /// The broker does not believe who we are, or TLS fails.
    #[error("{brokers}: the broker and we do not authenticate each other")]
    Authentication {
        /// The brokers that were named.
        brokers: String,
        /// What librdkafka heard.
        source: Source,
    },
    /// An access list of the broker does not let us.
    #[error("the broker's access list does not let us {action} {on}")]
    Forbidden {
        /// What was tried, as a verb.
        action: &'static str,
        /// The topic, or the transactional id.
        on: String,
    },
    /// Somebody opened the store after us, or a transaction took too long and the
    /// broker ended it.
    #[error("{id}: another process has opened this store since, or a transaction took too long")]
    Fenced {
        /// The transactional id.
        id: String,
    },
    /// A topic is set so that promises cannot be kept.
    #[error("topic {topic} has {setting}={have}, which must be {want}")]
    TopicSetting {
        /// Its name in Kafka.
        topic: String,
        /// The setting.
        setting: &'static str,
        /// What it is.
        have: String,
        /// What it must be.
        want: String,
    },
    /// A record or state value beyond what the topic takes.
    #[error("topic {topic} takes records of {limit} bytes (max.message.bytes), not {bytes}")]
    TooLarge {
        /// Its name in Kafka.
        topic: String,
        /// About how many bytes it is.
        bytes: usize,
        /// The most the topic takes.
        limit: usize,
    },
    /// Anything else.
    #[error("the cluster did not {action} {on}")]
    Broker {
        /// What was tried, as a verb.
        action: &'static str,
        /// The topic, or the transactional id.
        on: String,
        /// What librdkafka says.
        source: Source,
    },
    /// A transaction failed: whether it was committed is known when the store is
    /// opened again.
    #[error("a transaction of {id} failed")]
    Transaction {
        /// The transactional id.
        id: String,
        /// What librdkafka says.
        source: Source,
    },
}

impl Refused {
    /// What would mend it.
    #[must_use]
    pub const fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Line { .. } => "write name=value, and # before remarks",
            Self::Property { .. } => {
                "see librdkafka's CONFIGURATION.md; what the store's promises rest on it sets itself"
            }
            Self::Prefix { .. } => "choose another prefix",
            Self::Reserved { .. } => "choose another name or prefix",
            Self::Unreachable { .. } => {
                "check the addresses, and whether security.protocol is the door's"
            }
            Self::Authentication { .. } => {
                "check security.protocol, sasl.* and ssl.* in the file of properties"
            }
            Self::Forbidden { .. } => {
                "on all topics with the store's prefix allow Create, Describe, DescribeConfigs, Read, Write and Delete; on transactional ids with it Describe and Write; on groups with it Read"
            }
            Self::Fenced { .. } => {
                "let one process have the store; if nobody else had, raise the patience"
            }
            Self::TopicSetting { .. } => {
                "change the topic's setting, or let the store make the topic"
            }
            Self::TooLarge { .. } => "raise the topic's max.message.bytes",
            Self::Transaction { .. } => {
                "mend what the cause names, then start again: nothing acknowledged is lost"
            }
            Self::Broker { .. } => return None,
        })
    }

    /// What librdkafka said about `on`, told apart where it matters.
    pub(super) fn of(action: &'static str, on: &str, error: KafkaError) -> Self {
        let on = on.to_owned();
        match code(&error) {
            Some(code) if is_forbidden(code) => Self::Forbidden { action, on },
            Some(code) if is_fenced(code) => Self::Fenced { id: on },
            _ => Self::Broker { action, on, source: Source::new(error) },
        }
    }
}

/// The code of an error, of transactions too.
pub(super) fn code(error: &KafkaError) -> Option<Code> {
    match error {
        KafkaError::Transaction(error) => Some(error.code()),
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

pub(super) const fn is_forbidden(code: Code) -> bool {
    matches!(
        code,
        Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::PolicyViolation
    )
}

pub(super) const fn is_fenced(code: Code) -> bool {
    matches!(
        code,
        Code::Fenced
            | Code::ProducerFenced
            | Code::InvalidProducerEpoch
            | Code::TransactionCoordinatorFenced
    )
}

/// Nobody answered, for whichever reason.
pub(super) const fn is_silence(code: Code) -> bool {
    matches!(
        code,
        Code::OperationTimedOut
            | Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::RequestTimedOut
            | Code::TimedOutQueue
            | Code::MessageTimedOut
    )
}
