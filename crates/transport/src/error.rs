//! Errors of storage: invalid requests, damaged files, and failures of the machine. They
//! contain names and locations, never keys or values.

#[cfg(feature = "kafka")]
pub(crate) mod cluster;

use crate::names::{Bounds, NameError, Offset, Partition, Space, Topic};
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that stores cannot use.
    #[error(transparent)]
    InvalidName(#[from] NameError),
    /// The topic does not exist. Call `ensure_topic` first.
    #[error("there is no topic {topic}")]
    UnknownTopic {
        /// The requested name.
        topic: Topic,
    },
    /// The topic has fewer partitions.
    #[error("there is no partition {partition}; the topic has {partitions}")]
    UnknownPartition {
        /// The requested partition.
        partition: Partition,
        /// The number of partitions.
        partitions: u32,
    },
    /// The state space does not exist. Call `ensure_space` first.
    #[error("there is no state space {space}")]
    UnknownSpace {
        /// The requested name.
        space: Space,
    },
    /// A topic keeps its number of partitions. Another number would break the order of each
    /// key's records.
    #[error("topic {topic} has {have} partitions, not {want}")]
    TopicDiffers {
        /// The topic.
        topic: Topic,
        /// The number of partitions it has.
        have: u32,
        /// The requested number of partitions.
        want: u32,
    },
    /// A record above the limit.
    #[error("a record for {partition} is larger than {limit} bytes")]
    RecordTooLarge {
        /// The partition of the record.
        partition: Partition,
        /// Maximum size of a framed record.
        limit: usize,
    },
    /// A state key above the limit.
    #[error("a key of state space {space} is longer than {limit} bytes")]
    StateKeyTooLong {
        /// The space.
        space: Space,
        /// Maximum length of a key.
        limit: usize,
    },
    /// A batch above the limit on unsynced bytes.
    #[error("a batch of {bytes} bytes is larger than the limit of {limit}")]
    BatchTooLarge {
        /// Its size.
        bytes: usize,
        /// Maximum size of a batch.
        limit: usize,
    },
    /// A read or truncation outside the partition.
    #[error("{partition} holds offsets from {} to before {}, not {offset}", bounds.start, bounds.end)]
    OffsetOutOfRange {
        /// The partition.
        partition: Partition,
        /// The requested offset.
        offset: Offset,
        /// The bounds of the partition.
        bounds: Bounds,
    },
    /// Stored records are damaged.
    #[error("the records of {partition} at offset {offset} are damaged")]
    CorruptRecords {
        /// The partition.
        partition: Partition,
        /// The first damaged record.
        offset: Offset,
        /// Where reading can continue, if anything follows.
        resume_at: Option<Offset>,
    },
    /// Another process, or another handle of this process, has the store open.
    #[error("{path}: another process has this store open")]
    Locked {
        /// The store's directory.
        path: PathBuf,
    },
    /// The store was written by another version.
    #[error(
        "{path}: the store has format {found}, but this version supports format {supported}: use the version that created it"
    )]
    Version {
        /// The store's directory.
        path: PathBuf,
        /// The format in its marker.
        found: u32,
        /// The supported format.
        supported: u32,
    },
    /// The directory has other contents.
    #[error("{path}: the directory is not empty and not a store")]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The store's files are damaged, beyond what a crash can cause.
    #[error("{path}: the store is damaged ({what})")]
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// The check that failed.
        what: &'static str,
        /// The error of the engine.
        source: Option<Source>,
    },
    /// No space left.
    #[error("{path}: the disk is full")]
    DiskFull {
        /// The store's directory.
        path: PathBuf,
    },
    /// The operating system reported an error.
    #[error("{path}: cannot {action}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The action, as a verb.
        action: &'static str,
        /// The cause.
        source: Source,
    },
    /// An earlier write failed, so the state of the disk is unknown until the store is opened
    /// again.
    #[error("{path}: the store was closed after a failed write")]
    Failed {
        /// The store's directory.
        path: PathBuf,
    },
    /// A Kafka cluster reported an error or could not be reached.
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Kafka(#[from] cluster::ClusterError),
    /// A process that was silent for too long: its group does not count it any more.
    #[error("the group gave this process's partitions to others; is the machine overloaded?")]
    NotInGroup,
    /// The store is not on this machine, so this process cannot copy it at one moment.
    #[error("a store in a cluster cannot be copied from here")]
    NoExport,
    /// This handle belongs to a store that has crashed (simulation only).
    #[error("the simulated machine has crashed")]
    Crashed,
}

/// A cause that all waiters of a flush can share.
#[derive(Clone, Debug)]
pub struct Source(Arc<dyn StdError + Send + Sync>);

impl Source {
    pub(crate) fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Source {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl Error {
    /// How the operator of the store can fix it, if possible.
    #[must_use]
    pub const fn help(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("stop the other process, or use another directory"),
            Self::Version { .. } => Some("use the version that wrote it, or another directory"),
            Self::NotAStore { .. } => Some("use an empty directory or one that does not exist"),
            Self::Corrupt { .. } => Some("restore the directory from a backup, or use another one"),
            Self::DiskFull { .. } => {
                Some("free some space, then restart; no acknowledged data is lost")
            }
            Self::Failed { .. } => Some("fix the cause of the first error, then restart"),
            #[cfg(feature = "kafka")]
            Self::Kafka(error) => error.help(),
            Self::NoExport => Some("copy the cluster's topics by the cluster's own means"),
            Self::TopicDiffers { .. } => {
                Some("use the number of partitions that the topic was created with")
            }
            _ => None,
        }
    }

    /// Converts an error of the operating system. A full disk has its own variant.
    pub(crate) fn io(path: &Path, action: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, action, source: Source::new(error) },
        }
    }
}
