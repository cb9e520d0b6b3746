//! What writers, servers and readers of a board agree on, signed by whoever set
//! the board up and pinned by each.

use crate::dpf::{BadShape, Shape, Side};
use crate::row::Format;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Rejected, Signed, Verified};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time(pub u64);

/// The number of an epoch, counted from the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// One of a board's three servers, each run by another operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Party {
    /// A database.
    Database(Side),
    /// The auditor.
    Auditor,
}

impl Party {
    /// All three.
    pub const ALL: [Self; 3] =
        [Self::Database(Side::First), Self::Database(Side::Second), Self::Auditor];

    /// Its place among the three, as ledgers have it.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Database(Side::First) => 0,
            Self::Database(Side::Second) => 1,
            Self::Auditor => 2,
        }
    }

    /// Its place among the three.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Database(side) => side.index(),
            Self::Auditor => 2,
        }
    }
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Database(Side::First) => "first database",
            Self::Database(Side::Second) => "second database",
            Self::Auditor => "auditor",
        })
    }
}

/// When epochs begin, and how long their parts may take. Lengths in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// When epoch 0 begins.
    pub start: Time,
    /// How long an epoch takes writes.
    pub length: u64,
    /// How long writers may complain that they are not in the agreed set.
    pub complaints: u64,
    /// How long after its end an epoch may take to be published; then it is burnt.
    pub patience: u64,
}

impl Schedule {
    /// The epoch that takes writes at a time; none before the first.
    #[must_use]
    pub fn at(&self, now: Time) -> Option<Epoch> {
        let since = now.0.checked_sub(self.start.0)?;
        since.checked_div(self.length).map(Epoch)
    }

    /// When an epoch takes no more writes.
    #[must_use]
    pub fn end(&self, epoch: Epoch) -> Time {
        let after = epoch.0.saturating_add(1).saturating_mul(self.length);
        Time(self.start.0.saturating_add(after))
    }

    /// When an epoch that is not published is burnt.
    #[must_use]
    pub fn burns(&self, epoch: Epoch) -> Time {
        let wait = self.complaints.saturating_add(self.patience);
        Time(self.end(epoch).0.saturating_add(wait))
    }
}

/// A board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Names the board.
    pub board: [u8; 32],
    /// How rows hold messages.
    pub format: Format,
    /// Rows of an epoch's table.
    pub rows: u32,
    /// Writes that an epoch takes; with the last of them it closes before its time.
    pub writers: u32,
    /// Below so many accepted writes nothing is revealed.
    pub fewest: u32,
    /// Epochs.
    pub schedule: Schedule,
    /// The servers' keys, in the order of [`Party::ALL`].
    pub servers: [VerifyingKey; 3],
    /// Who may write, as the [admission](crate::admission) has it: a digest that all
    /// parties compare.
    pub admission: Digest,
}

impl Message for Configuration {
    const LABEL: &'static str = labels::BOARD_CONFIGURATION;
}

/// A configuration that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfiguration {
    /// Not signed by the pinned key.
    #[error("the board's configuration is not signed by the pinned key: {0}")]
    Signature(Rejected),
    /// Rows or messages beyond what there is.
    #[error(
        "the board's table has no such shape: {0}, and messages of at most 160 bytes with recovery, 4096 without"
    )]
    Shape(#[from] BadShape),
    /// Epochs or complaints without time, or longer than a hundred years with all that follows.
    #[error(
        "the board's schedule makes no sense: epochs and the time for complaints have lengths above zero and all lengths are below a century"
    )]
    Schedule,
    /// Nobody may write, or nothing would ever be revealed.
    #[error(
        "the board's set sizes make no sense: at least 2 writes are needed, at most `writers` are taken, and those at most a million"
    )]
    Sets,
    /// One key for two servers: two of the three would be one.
    #[error("two of the board's servers have one key; three operators are needed")]
    SameServer,
}

/// The most writes of one epoch: their list still is a message of some megabytes.
pub const MOST_WRITERS: u32 = 1_000_000;
const CENTURY: u64 = 100 * 366 * 86_400 * 1_000_000;

/// A configuration whose signature and content have been checked. Cheap to clone.
#[derive(Clone)]
pub struct Pinned(Arc<(Verified<Configuration>, Shape)>);

impl Pinned {
    /// Opens a configuration with the key that is pinned.
    ///
    /// # Errors
    /// [`BadConfiguration`].
    pub fn open(
        signed: &Signed<Configuration>,
        key: &VerifyingKey,
    ) -> Result<Self, BadConfiguration> {
        let opened = signed.open(key).map_err(BadConfiguration::Signature)?;
        let shape = opened.format.shape(opened.rows)?;
        let Schedule { start, length, complaints, patience } = opened.schedule;
        if length == 0
            || complaints == 0
            || [start.0, length, complaints, patience].iter().any(|l| *l > CENTURY)
        {
            return Err(BadConfiguration::Schedule);
        }
        if opened.fewest < 2 || opened.fewest > opened.writers || opened.writers > MOST_WRITERS {
            return Err(BadConfiguration::Sets);
        }
        let [first, second, auditor] = &opened.servers;
        if first == second || first == auditor || second == auditor {
            return Err(BadConfiguration::SameServer);
        }
        Ok(Self(Arc::new((opened, shape))))
    }

    /// The digest of all of it: what every message names the board by.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.0.digest()
    }

    /// The table's shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.0.1
    }

    /// A server's key.
    #[must_use]
    pub fn key(&self, party: Party) -> &VerifyingKey {
        &self.servers[party.index()]
    }
}

impl std::ops::Deref for Pinned {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.0
    }
}
