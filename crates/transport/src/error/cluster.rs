//! Errors of a Kafka cluster, with the setting or access list that fixes them.

use super::Source;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// An error of the cluster or its configuration. It contains names of topics and settings,
/// never the value of a property, a key or a record.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An invalid line in the properties file.
    #[error("line {number} of the properties is not name=value")]
    Line {
        /// The line number, from 1.
        number: usize,
    },
    /// A property that is unknown to librdkafka, that has an invalid value, or that only the
    /// store may set.
    #[error("the property {name} is unknown, has an invalid value, or is set by the store itself")]
    Property {
        /// Its name.
        name: String,
    },
    /// An invalid prefix.
    #[error(
        "a prefix must be at most {limit} characters of a-z A-Z 0-9 . _ -, end in a dot, and have no part `state` or `store`"
    )]
    Prefix {
        /// Maximum length.
        limit: usize,
    },
    /// A topic name that is reserved for the store.
    #[error("{topic}: names that start with `state.` or `store.` are reserved for the store")]
    Reserved {
        /// The topic.
        topic: String,
    },
    /// No broker answers.
    #[error("no broker of {brokers} answered in time")]
    Unreachable {
        /// The configured brokers.
        brokers: String,
        /// The last error of librdkafka.
        source: Option<Source>,
    },
    /// Authentication by password or TLS failed.
    #[error("{brokers}: authentication failed")]
    Authentication {
        /// The configured brokers.
        brokers: String,
        /// The error of librdkafka.
        source: Source,
    },
    /// The broker's access list forbids the action.
    #[error("the broker's access list does not allow this client to {action} {on}")]
    Forbidden {
        /// The action, as a verb.
        action: &'static str,
        /// The topic, or the transactional id.
        on: String,
    },
    /// Another process opened the store later, or a transaction took too long and the broker
    /// ended it.
    #[error("{id}: another process has opened this store, or a transaction took too long")]
    Fenced {
        /// The transactional id.
        id: String,
    },
    /// A topic's setting would break a guarantee.
    #[error("topic {topic} has {setting}={have}, but it must be {want}")]
    TopicSetting {
        /// Its name in Kafka.
        topic: String,
        /// The setting.
        setting: &'static str,
        /// Its value.
        have: String,
        /// The required value.
        want: String,
    },
    /// A record or state value above the topic's limit.
    #[error(
        "topic {topic} accepts records of at most {limit} bytes (max.message.bytes), not {bytes}"
    )]
    TooLarge {
        /// Its name in Kafka.
        topic: String,
        /// Its approximate size.
        bytes: usize,
        /// The topic's limit.
        limit: usize,
    },
    /// Any other error.
    #[error("the cluster failed to {action} {on}")]
    Broker {
        /// The action, as a verb.
        action: &'static str,
        /// The topic, or the transactional id.
        on: String,
        /// The error of librdkafka.
        source: Source,
    },
    /// A transaction failed. Whether it was committed is known once the store is opened again.
    #[error("a transaction of {id} failed")]
    Transaction {
        /// The transactional id.
        id: String,
        /// The error of librdkafka.
        source: Source,
    },
}

impl ClusterError {
    /// How to fix it.
    #[must_use]
    pub const fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Line { .. } => "write name=value, and start comments with #",
            Self::Property { .. } => {
                "see librdkafka's CONFIGURATION.md; properties that the store's guarantees depend on cannot be set"
            }
            Self::Prefix { .. } => "choose another prefix",
            Self::Reserved { .. } => "choose another name or prefix",
            Self::Unreachable { .. } => {
                "check the addresses, and that security.protocol matches the broker's port"
            }
            Self::Authentication { .. } => {
                "check security.protocol, sasl.* and ssl.* in the properties file"
            }
            Self::Forbidden { .. } => {
                "with the store's prefix, allow Create, Describe, DescribeConfigs, Read, Write and Delete on topics, Describe and Write on transactional ids, and Read on groups"
            }
            Self::Fenced { .. } => {
                "run only one process per store; if there was no other, raise the patience"
            }
            Self::TopicSetting { .. } => {
                "change the topic's setting, or let the store create the topic"
            }
            Self::TooLarge { .. } => "raise the topic's max.message.bytes",
            Self::Transaction { .. } => "fix the cause, then restart; no acknowledged data is lost",
            Self::Broker { .. } => return None,
        })
    }

    /// Converts an error of librdkafka about `on`. Some errors have their own variant.
    pub(crate) fn of(action: &'static str, on: &str, error: KafkaError) -> Self {
        let on = on.to_owned();
        match code(&error) {
            Some(code) if is_forbidden(code) => Self::Forbidden { action, on },
            Some(code) if is_fenced(code) => Self::Fenced { id: on },
            _ => Self::Broker { action, on, source: Source::new(error) },
        }
    }
}

/// The code of an error, including errors of transactions.
pub(crate) fn code(error: &KafkaError) -> Option<Code> {
    match error {
        KafkaError::Transaction(error) => Some(error.code()),
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

pub(crate) const fn is_forbidden(code: Code) -> bool {
    matches!(
        code,
        Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::PolicyViolation
    )
}

pub(crate) const fn is_fenced(code: Code) -> bool {
    matches!(
        code,
        Code::Fenced
            | Code::ProducerFenced
            | Code::InvalidProducerEpoch
            | Code::TransactionCoordinatorFenced
    )
}

/// Whether a consumer group does not know the process.
pub(crate) const fn is_not_in_group(code: Code) -> bool {
    matches!(code, Code::UnknownMemberId | Code::IllegalGeneration)
}

/// Whether nobody answered, for any reason.
pub(crate) const fn is_silence(code: Code) -> bool {
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
