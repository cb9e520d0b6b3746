//! Errors of the roles: what is wrong, who is at fault, how to fix it.

use crate::label::Kind;

/// An answer that no honest server would give. It carries no further detail, so that a
/// server cannot shape answers to learn the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's answer is wrong and was rejected; nothing was decrypted: ask again, and distrust this server"
)]
pub struct VerifyError;

/// Bytes that are not a block of this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The length is wrong.
    #[error(
        "a block of this table has {expected} bytes, but this one has {actual}: send all of it"
    )]
    Length {
        /// The length of a block of this table.
        expected: usize,
        /// The length of these bytes.
        actual: usize,
    },
    /// The format is unknown.
    #[error(
        "the block has format {0}, but this program reads format 2: use the same version on both sides"
    )]
    Format(u8),
    /// The block belongs to another table.
    #[error("the block belongs to another table: send it there")]
    DataSet,
}

/// Bytes that are not a saved state of this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedStateError {
    /// It is too short.
    #[error("the saved state is cut off: send all of it")]
    Length,
    /// The format is unknown.
    #[error(
        "the saved state has format {0}, but this program reads format 1: use the same version on both sides"
    )]
    Format(u8),
    /// The state belongs to another table.
    #[error("the saved state belongs to another table: send it there")]
    DataSet,
}

/// A request that the server cannot serve. The client is at fault, except for
/// [`RequestError::Damaged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Columns or products are out of range, too many, or out of order.
    #[error(
        "the manifest must have 1 to 256 columns and at most 256 products of them, in order, each once"
    )]
    Manifest,
    /// The table has no such tags.
    #[error("the table has no tags for {0:?}: register the pair when the table is created")]
    Kind(Kind),
    /// Runs are empty, overlap, or are out of order.
    #[error("the runs of a request must be non-empty, in order and without overlap")]
    Runs,
    /// Too many blocks.
    #[error("the request needs {count} blocks, but at most {max} are allowed: split it")]
    Blocks {
        /// The limit for one request.
        max: u64,
        /// The blocks of this request.
        count: u64,
    },
    /// A polynomial of weights is too long.
    #[error("a polynomial of weights has at most {max} coefficients")]
    Weights {
        /// The limit.
        max: usize,
    },
    /// A stored block is not canonical, so the server does not add it up.
    #[error(
        "block {0} is damaged here: restore its file from the server's backup; the owner has no copy"
    )]
    Damaged(u64),
}

/// A query that could fail to decrypt, or whose sum could leave the exact range. A
/// worst-case bound rejects it when it is planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The noise of the sum could reach Q/2.
    #[error(
        "the sum might fail to decrypt: its weights total {weights}, parameter set {set} allows {max} for this kind; {nearest}"
    )]
    Noise {
        /// Σ|w|.
        weights: String,
        /// The largest Σ|w| that the set allows.
        max: String,
        /// The set.
        set: &'static str,
        /// The nearest query that is allowed.
        nearest: NearestQuery,
    },
    /// The sum could reach t/2.
    #[error(
        "the sum might leave the exact range: items up to {bound} with weights that total {weights}, parameter set {set} allows a total of {max}; {nearest}"
    )]
    Range {
        /// The largest magnitude of an item.
        bound: String,
        /// Σ|w|.
        weights: String,
        /// The largest Σ|w| that the set allows.
        max: String,
        /// The set.
        set: &'static str,
        /// The nearest query that is allowed.
        nearest: NearestQuery,
    },
    /// The table has no tags of this kind.
    #[error(
        "the pair is not registered in the schema, so its products cannot be summed: create a new table with it"
    )]
    NotRegistered,
    /// The rows do not exist.
    #[error(
        "rows {from} to {to} are not all in the table, which has {rows} rows: choose a range within the table"
    )]
    Rows {
        /// The first row.
        from: u64,
        /// One past the last row.
        to: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// More blocks than a server adds up for one request.
    #[error("the query needs {count} blocks, but at most {max} are allowed: split the range")]
    Blocks {
        /// The blocks of this query.
        count: u64,
        /// The limit for one request.
        max: u64,
    },
    /// A polynomial of weights is too long for a request.
    #[error("a polynomial of weights has at most {max} coefficients: use a lower degree")]
    Coefficients {
        /// The limit.
        max: usize,
    },
    /// The number of weights is wrong.
    #[error("there are {count} weights, but {expected} are needed: give one for each")]
    Weights {
        /// How many there are.
        count: u64,
        /// How many there must be.
        expected: u64,
    },
}

/// The nearest query that would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestQuery {
    /// Fewer blocks, of the same kind and weights.
    Blocks(u64),
    /// None with this set: use another.
    OtherSet,
    /// None for such items: declare narrower ones.
    Narrower,
}

impl std::fmt::Display for NearestQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blocks(blocks) => {
                write!(f, "the nearest query that is allowed takes {blocks} blocks: split the range")
            }
            Self::OtherSet => {
                f.write_str("no range is short enough: create the table with a larger set")
            }
            Self::Narrower => f.write_str(
                "no range is short enough: declare narrower bounds or fewer decimal places, or a set with a larger range (X128)",
            ),
        }
    }
}
