//! What writers, servers and readers of a board agree on, signed by whoever set
//! the board up and pinned by each.

use crate::coalition::parity::{FEWEST_SERVERS, Grid, MOST_SERVERS};
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

/// One of a board's servers, each run by another operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Party {
    /// A database.
    Database(Side),
    /// The auditor.
    Auditor,
    /// In mode 2 one of the equal servers, by its place among them.
    Server(u8),
}

impl From<Side> for Party {
    fn from(side: Side) -> Self {
        Self::Database(side)
    }
}

impl Party {
    /// The three of mode 1.
    pub const ALL: [Self; 3] =
        [Self::Database(Side::First), Self::Database(Side::Second), Self::Auditor];

    /// Its place among the board's servers, also in ledgers.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Database(side) => side.index(),
            Self::Auditor => 2,
            Self::Server(place) => place as usize,
        }
    }

    /// Its name where it is hashed.
    pub(crate) fn name(self) -> Vec<u8> {
        match self {
            Self::Database(side) => side.name().to_vec(),
            Self::Auditor => b"auditor".to_vec(),
            Self::Server(place) => vec![place],
        }
    }
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database(Side::First) => f.write_str("first database"),
            Self::Database(Side::Second) => f.write_str("second database"),
            Self::Auditor => f.write_str("auditor"),
            Self::Server(place) => write!(f, "server {}", u16::from(*place) + 1),
        }
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
    /// The servers' keys.
    pub servers: Servers,
    /// Who may write, as the [admission](crate::admission) has it: a digest that all
    /// parties compare.
    pub admission: Digest,
}

/// Who keeps a board, by their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Servers {
    /// Mode 1: two databases and an auditor, in the order of [`Party::ALL`]. Secure while no
    /// two of them work together.
    Audited([VerifyingKey; 3]),
    /// Mode 2: three to six equal servers. Secure while one of them keeps to the protocol.
    Coalition(Vec<VerifyingKey>),
}

impl Servers {
    /// The keys, in the servers' order.
    #[must_use]
    pub fn keys(&self) -> &[VerifyingKey] {
        match self {
            Self::Audited(keys) => keys,
            Self::Coalition(keys) => keys,
        }
    }

    /// Who they are, in their order.
    #[must_use]
    pub fn parties(&self) -> Vec<Party> {
        match self {
            Self::Audited(_) => Party::ALL.to_vec(),
            Self::Coalition(keys) => (0..).take(keys.len()).map(Party::Server).collect(),
        }
    }
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
    /// One key for two servers: two of them would be one.
    #[error("two of the board's servers have one key; each needs an operator of its own")]
    SameServer,
    /// A coalition of too few or too many.
    #[error("a board without an auditor has 3 to 6 servers")]
    Servers,
}

/// The most writes of one epoch: their list still is a message of some megabytes.
pub const MOST_WRITERS: u32 = 1_000_000;
const CENTURY: u64 = 100 * 366 * 86_400 * 1_000_000;

/// A configuration whose signature and content have been checked. Cheap to clone.
#[derive(Clone)]
pub struct Pinned(Arc<Checked>);

struct Checked {
    configuration: Verified<Configuration>,
    shape: Shape,
    parties: Vec<Party>,
    /// Of mode 2.
    grid: Option<Grid>,
}

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
        let keys = opened.servers.keys();
        if keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key)) {
            return Err(BadConfiguration::SameServer);
        }
        let (parties, grid) = (opened.servers.parties(), grid(&opened.servers, shape)?);
        Ok(Self(Arc::new(Checked { configuration: opened, shape, parties, grid })))
    }

    /// The digest of all of it: what every message names the board by.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.configuration.digest()
    }

    /// The table's shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// A server's key; none if the board has no such server.
    #[must_use]
    pub fn key(&self, party: Party) -> Option<&VerifyingKey> {
        let known = self.0.parties.contains(&party);
        self.servers.keys().get(party.index()).filter(|_| known)
    }

    /// The servers, in their order.
    #[must_use]
    pub fn parties(&self) -> &[Party] {
        &self.0.parties
    }

    /// Those servers that take writes and hold shares of the table: all but the auditor.
    #[must_use]
    pub fn databases(&self) -> &[Party] {
        let auditors = usize::from(self.0.grid.is_none());
        &self.0.parties[..self.0.parties.len() - auditors]
    }

    /// How keys are made for the equal servers of mode 2; none in mode 1.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        self.0.grid.as_ref()
    }
}

fn grid(servers: &Servers, shape: Shape) -> Result<Option<Grid>, BadConfiguration> {
    let Servers::Coalition(keys) = servers else { return Ok(None) };
    let servers = u8::try_from(keys.len()).map_err(|_| BadConfiguration::Servers)?;
    if !(FEWEST_SERVERS..=MOST_SERVERS).contains(&servers) {
        return Err(BadConfiguration::Servers);
    }
    Grid::new(shape, servers).map(Some).map_err(|_| BadConfiguration::Servers)
}

impl std::ops::Deref for Pinned {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
