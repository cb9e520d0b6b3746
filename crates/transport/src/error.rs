//! How storage fails: what was asked wrongly, what is wrong with the files,
//! what the machine refused. Names and places only, never keys or values.

use crate::names::{Bounds, Offset, Partition, Space, Topic};
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a store did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that no store could keep.
    #[error("the name of a {kind} is 1 to 249 characters of a-z A-Z 0-9 . _ -")]
    InvalidName {
        /// `Topic`, `Space` or `Group`.
        kind: &'static str,
    },
    /// No such topic: `ensure_topic` comes first.
    #[error("there is no topic {topic}")]
    UnknownTopic {
        /// The name asked for.
        topic: Topic,
    },
    /// The topic has fewer partitions.
    #[error("there is no partition {partition}: the topic has {partitions}")]
    UnknownPartition {
        /// The partition asked for.
        partition: Partition,
        /// How many there are.
        partitions: u32,
    },
    /// No such state space: `ensure_space` comes first.
    #[error("there is no state space {space}")]
    UnknownSpace {
        /// The name asked for.
        space: Space,
    },
    /// A topic keeps the number of partitions it was made with, because
    /// another number would break the order of each key's records.
    #[error("topic {topic} has {have} partitions, not {want}")]
    TopicDiffers {
        /// The topic.
        topic: Topic,
        /// Partitions it has.
        have: u32,
        /// Partitions that were asked for.
        want: u32,
    },
    /// A record beyond the limit.
    #[error("a record for {partition} is larger than {limit} bytes")]
    RecordTooLarge {
        /// Where it was to go.
        partition: Partition,
        /// The most bytes of a framed record.
        limit: usize,
    },
    /// A state key beyond the limit.
    #[error("a key of state space {space} is longer than {limit} bytes")]
    StateKeyTooLong {
        /// The space.
        space: Space,
        /// The most bytes of a key.
        limit: usize,
    },
    /// A batch beyond the bound on unsynced bytes.
    #[error("a batch of {bytes} bytes is larger than the bound of {limit}")]
    BatchTooLarge {
        /// Its size.
        bytes: usize,
        /// The most bytes of a batch.
        limit: usize,
    },
    /// A read or truncation outside what the partition holds.
    #[error("{partition} holds offsets from {} to before {}, not {offset}", bounds.start, bounds.end)]
    OffsetOutOfRange {
        /// The partition.
        partition: Partition,
        /// The offset asked for.
        offset: Offset,
        /// What it holds.
        bounds: Bounds,
    },
    /// Stored records cannot be read back.
    #[error("the records of {partition} at offset {offset} are damaged")]
    CorruptRecords {
        /// The partition.
        partition: Partition,
        /// The first damaged record.
        offset: Offset,
        /// Where reading can go on, if anything follows.
        resume_at: Option<Offset>,
    },
    /// Another process, or another handle of this one, has the store open.
    #[error("{path}: another process has this store open")]
    Locked {
        /// The store's directory.
        path: PathBuf,
    },
    /// The store was written by another version.
    #[error(
        "{path}: the store has format {found}, and this version reads format {supported}: use the version that made it"
    )]
    Version {
        /// The store's directory.
        path: PathBuf,
        /// What its marker says.
        found: u32,
        /// What we read.
        supported: u32,
    },
    /// The directory holds something else.
    #[error("{path}: not empty, and not a store of ours")]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The store's files are damaged beyond what a crash can explain.
    #[error("{path}: the store is damaged ({what})")]
    Corrupt {
        /// The file or directory.
        path: PathBuf,
        /// Which check failed.
        what: &'static str,
        /// What the engine said.
        source: Option<Source>,
    },
    /// No space left.
    #[error("{path}: the disk is full")]
    DiskFull {
        /// The store's directory.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{path}: cannot {action}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb.
        action: &'static str,
        /// Why not.
        source: Source,
    },
    /// An earlier write failed, so what is on disk is unknown until the store
    /// is opened again.
    #[error("{path}: closed after a failed write")]
    Failed {
        /// The store's directory.
        path: PathBuf,
    },
    /// A Kafka cluster refused, or was not reached.
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Kafka(#[from] crate::kafka::Refused),
    /// This handle belongs to a store that has crashed (simulation only).
    #[error("the simulated machine has crashed")]
    Crashed,
}

/// A cause that can be shared by all who waited for the same flush.
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
    /// What would mend it, where someone who operates the store can.
    #[must_use]
    pub const fn help(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("stop the other process, or use another directory"),
            Self::Version { .. } => Some("use the version that wrote it, or another directory"),
            Self::NotAStore { .. } => Some("use an empty directory or one that does not exist"),
            Self::Corrupt { .. } => Some("restore the directory from a backup, or use another one"),
            Self::DiskFull { .. } => {
                Some("free some space, then start again: nothing acknowledged is lost")
            }
            Self::Failed { .. } => Some("mend what the first error named, then start again"),
            #[cfg(feature = "kafka")]
            Self::Kafka(refused) => refused.help(),
            Self::TopicDiffers { .. } => Some("use the number of partitions that it was made with"),
            _ => None,
        }
    }

    /// An error of the operating system, told apart where it matters.
    pub(crate) fn io(path: &Path, action: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, action, source: Source::new(error) },
        }
    }
}
