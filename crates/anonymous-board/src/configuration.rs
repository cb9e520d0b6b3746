//! What the writers, servers and readers of a board agree on. The operator who sets the board up
//! signs it; everybody pins it.

use crate::coalition::parity::{Grid, MAX_SERVERS, MIN_SERVERS};
use crate::dpf::{Shape, ShapeError, Side};
use crate::row::Format;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An epoch's number, counted from the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// One of a board's servers. Each has its own operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Party {
    /// A database.
    Database(Side),
    /// The auditor.
    Auditor,
    /// One of the equal servers of mode 2, by its index.
    Server(u8),
}

impl From<Side> for Party {
    fn from(side: Side) -> Self {
        Self::Database(side)
    }
}

impl Party {
    /// The three servers of mode 1.
    pub const ALL: [Self; 3] =
        [Self::Database(Side::First), Self::Database(Side::Second), Self::Auditor];

    /// Its index among the board's servers. Ledger keys use it too.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Database(side) => side.index(),
            Self::Auditor => 2,
            Self::Server(index) => index as usize,
        }
    }

    /// The name that goes into hashes.
    pub(crate) fn name(self) -> Vec<u8> {
        match self {
            Self::Database(side) => side.name().to_vec(),
            Self::Auditor => b"auditor".to_vec(),
            Self::Server(index) => vec![index],
        }
    }
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Database(Side::First) => f.write_str("first database"),
            Self::Database(Side::Second) => f.write_str("second database"),
            Self::Auditor => f.write_str("auditor"),
            Self::Server(index) => write!(f, "server {}", u16::from(*index) + 1),
        }
    }
}

/// When epochs begin, and how long each phase may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// When epoch 0 begins.
    pub start: Timestamp,
    /// How long an epoch accepts writes.
    pub length: Span,
    /// How long writers may complain about the agreed set.
    pub complaints: Span,
    /// How long publication may take after the end of the epoch and the time for complaints. Then
    /// the epoch is burnt: it ends without a table.
    pub patience: Span,
}

impl Schedule {
    /// The epoch that accepts writes at a time. `None` before the first.
    #[must_use]
    pub fn epoch_at(&self, now: Timestamp) -> Option<Epoch> {
        let since = now.0.checked_sub(self.start.0)?;
        since.checked_div(self.length.0).map(Epoch)
    }

    /// When an epoch begins.
    #[must_use]
    pub fn start_of(&self, epoch: Epoch) -> Timestamp {
        self.start.plus(Span(epoch.0.saturating_mul(self.length.0)))
    }

    /// When an epoch stops accepting writes.
    #[must_use]
    pub fn end(&self, epoch: Epoch) -> Timestamp {
        self.start_of(Epoch(epoch.0.saturating_add(1)))
    }

    /// When an unpublished epoch is burnt.
    #[must_use]
    pub fn burn_time(&self, epoch: Epoch) -> Timestamp {
        self.end(epoch).plus(self.complaints).plus(self.patience)
    }
}

/// A board's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Identifies the board.
    pub board: [u8; 32],
    /// How rows encode messages.
    pub format: Format,
    /// Rows in an epoch's table.
    pub rows: u32,
    /// The most writes that an epoch accepts. It closes early when it has that many.
    pub writers: u32,
    /// An epoch with fewer accepted writes reveals nothing.
    pub min_writes: u32,
    /// When epochs begin and end.
    pub schedule: Schedule,
    /// The servers' keys.
    pub servers: Servers,
    /// Who may write: the digest of the [admission](crate::admission) rule, which all parties
    /// compare.
    pub admission: Digest,
}

/// The servers of a board, by their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Servers {
    /// Mode 1: two databases and an auditor, in the order of [`Party::ALL`]. Secure while no two of
    /// them collude.
    Audited([VerifyingKey; 3]),
    /// Mode 2: three to six equal servers. Secure while one of them follows the protocol.
    Coalition(Vec<VerifyingKey>),
}

impl Servers {
    /// The keys, in server order.
    #[must_use]
    pub fn keys(&self) -> &[VerifyingKey] {
        match self {
            Self::Audited(keys) => keys,
            Self::Coalition(keys) => keys,
        }
    }

    /// The servers, in order.
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

/// Why a configuration is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// Not signed by the pinned key.
    #[error("the board's configuration is not signed by the pinned key: {0}")]
    Signature(SignedMessageError),
    /// Rows or messages beyond the limits.
    #[error(
        "the board's table has an invalid shape: {0}; messages have at most 160 bytes with recovery, 4096 without"
    )]
    Shape(#[from] ShapeError),
    /// An epoch or the time for complaints has length zero, or a length exceeds a century.
    #[error(
        "the board's schedule is invalid: epochs and the time for complaints must be longer than zero, and no length may exceed a century"
    )]
    Schedule,
    /// The bounds on writes contradict each other, or allow a set of one.
    #[error(
        "the board's set sizes are invalid: the minimum is at least 2 and at most `writers`, and `writers` is at most a million"
    )]
    Sets,
    /// Two servers share a key: they would be one server.
    #[error("two of the board's servers have the same key; each server needs its own operator")]
    SameServer,
    /// Too few or too many equal servers.
    #[error("a board without an auditor has 3 to 6 servers")]
    Servers,
}

/// The most writes in one epoch: a list of them is still a message of some megabytes.
pub const MAX_WRITERS: u32 = 1_000_000;
const CENTURY: Span = Span(100 * 366 * Span::DAY.0);

/// A configuration whose signature and content have been checked. Clones are cheap.
#[derive(Clone)]
pub struct Board(Arc<CheckedConfiguration>);

struct CheckedConfiguration {
    configuration: Verified<Configuration>,
    shape: Shape,
    parties: Vec<Party>,
    /// Mode 2 only.
    grid: Option<Grid>,
}

impl Board {
    /// Opens a configuration with the pinned key.
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub fn open(
        signed: &Signed<Configuration>,
        key: &VerifyingKey,
    ) -> Result<Self, ConfigurationError> {
        let opened = signed.open(key).map_err(ConfigurationError::Signature)?;
        let shape = opened.format.shape(opened.rows)?;
        let Schedule { start, length, complaints, patience } = opened.schedule;
        if length.0 == 0
            || complaints.0 == 0
            || [Span(start.0), length, complaints, patience].iter().any(|span| *span > CENTURY)
        {
            return Err(ConfigurationError::Schedule);
        }
        if opened.min_writes < 2
            || opened.min_writes > opened.writers
            || opened.writers > MAX_WRITERS
        {
            return Err(ConfigurationError::Sets);
        }
        let keys = opened.servers.keys();
        if keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key)) {
            return Err(ConfigurationError::SameServer);
        }
        let (parties, grid) = (opened.servers.parties(), grid(&opened.servers, shape)?);
        Ok(Self(Arc::new(CheckedConfiguration { configuration: opened, shape, parties, grid })))
    }

    /// The digest of the configuration. All messages identify the board by it.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        self.0.configuration.digest()
    }

    /// The table's shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// A server's key. `None` if the board has no such server.
    #[must_use]
    pub fn key(&self, party: Party) -> Option<&VerifyingKey> {
        let known = self.0.parties.contains(&party);
        self.servers.keys().get(party.index()).filter(|_| known)
    }

    /// All servers, in order.
    #[must_use]
    pub fn parties(&self) -> &[Party] {
        &self.0.parties
    }

    /// The servers that accept writes and hold shares of the table: all but the auditor.
    #[must_use]
    pub fn databases(&self) -> &[Party] {
        let auditors = usize::from(self.0.grid.is_none());
        &self.0.parties[..self.0.parties.len() - auditors]
    }

    /// How writers make keys in mode 2. `None` in mode 1.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        self.0.grid.as_ref()
    }
}

fn grid(servers: &Servers, shape: Shape) -> Result<Option<Grid>, ConfigurationError> {
    let Servers::Coalition(keys) = servers else { return Ok(None) };
    let servers = u8::try_from(keys.len()).map_err(|_| ConfigurationError::Servers)?;
    if !(MIN_SERVERS..=MAX_SERVERS).contains(&servers) {
        return Err(ConfigurationError::Servers);
    }
    Grid::new(shape, servers).map(Some).map_err(|_| ConfigurationError::Servers)
}

impl std::ops::Deref for Board {
    type Target = Configuration;

    fn deref(&self) -> &Configuration {
        &self.0.configuration
    }
}
