//! What can go wrong, whose fault it is, and how to mend it.

use crate::label::Kind;

/// The answer is not what an honest server would have said. Whatever is wrong with it,
/// this is all that is said, so that answers cannot be shaped to learn the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's answer is wrong and was rejected: nothing of it was decrypted; ask again, and mistrust this server"
)]
pub struct Rejected;

/// Bytes are no block of this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Another length.
    #[error("a block of this table has {expected} bytes, this has {found}: send it whole")]
    Length {
        /// What a block of the table has.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// Another format.
    #[error("the block has format {0}, this program reads 1: use the same version on both sides")]
    Format(u8),
    /// Another table's.
    #[error("the block belongs to another table: send it to that one")]
    DataSet,
}

/// The server cannot do what is asked: the client's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// Columns or products are out of range, too many, or not in order.
    #[error(
        "the manifest must have 1 to 256 columns and at most 256 products of them, in order, each once"
    )]
    Manifest,
    /// No such tags.
    #[error("the table has no tags for {0:?}: register the pair when the table is created")]
    Kind(Kind),
    /// Runs are empty, overlap, or are out of order.
    #[error("the runs of a request must not be empty, and follow each other without overlap")]
    Runs,
    /// Too much at once.
    #[error("{asked} blocks are asked of at most {most}: ask for parts")]
    Blocks {
        /// What a request may take.
        most: u64,
        /// What was asked.
        asked: u64,
    },
    /// A polynomial of weights is too long.
    #[error("a polynomial of weights has at most {most} coefficients")]
    Weights {
        /// How many it may have.
        most: usize,
    },
    /// Weights are given for other blocks than those that are asked.
    #[cfg(feature = "pairing")]
    #[error("{given} weights are given for blocks up to {to}: give one for each block")]
    Each {
        /// How many there are.
        given: u64,
        /// One more than the last block.
        to: u64,
    },
    /// A block does not go with those before it, or with the function.
    #[cfg(feature = "pairing")]
    #[error(
        "block {0} is of another data set or shape: add the blocks of one, of the function's shape"
    )]
    Mixed(u64),
    /// A stored block is not canonical, so the server does not add it up.
    #[error(
        "block {0} is damaged here: restore its file from the server's backup; the owner has no copy"
    )]
    Damaged(u64),
}

/// A query that could fail to decrypt, or whose sum could leave the exact range. It is
/// refused when it is planned, by a worst-case bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The noise of the sum could reach Q/2.
    #[error(
        "the sum could not be decrypted for certain: weights add up to {weights}, parameter set {set} bears {most} for this kind; {nearest}"
    )]
    Noise {
        /// Σ|w|.
        weights: String,
        /// What the set bears.
        most: String,
        /// The set.
        set: &'static str,
        /// The nearest that is allowed.
        nearest: Nearest,
    },
    /// The sum could reach t/2.
    #[error(
        "the sum could leave the exact range: items up to {bound} with weights that add up to {weights}, parameter set {set} bears weights of {most}; {nearest}"
    )]
    Range {
        /// The greatest item.
        bound: String,
        /// Σ|w|.
        weights: String,
        /// What the set bears.
        most: String,
        /// The set.
        set: &'static str,
        /// The nearest that is allowed.
        nearest: Nearest,
    },
    /// Tags of this kind do not exist.
    #[error(
        "the pair is not registered in the schema: products can be asked of registered pairs only; create the table anew with it"
    )]
    NotRegistered,
    /// Rows that are not there.
    #[error("rows {from} to {to} are asked of a table of {rows}: ask within")]
    Rows {
        /// The first row.
        from: u64,
        /// One more than the last.
        to: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// More blocks than a server adds up for one request.
    #[error("{asked} blocks are asked of at most {most}: split the range")]
    Blocks {
        /// What was asked.
        asked: u64,
        /// What a request may take.
        most: u64,
    },
    /// A polynomial of weights is too long for a request.
    #[error("a polynomial of weights has at most {most} coefficients: use a lower degree")]
    Coefficients {
        /// How many it may have.
        most: usize,
    },
    /// Weights are given for another number of blocks or slots.
    #[error("{given} weights are given, {wanted} are needed")]
    Weights {
        /// How many there are.
        given: u64,
        /// How many there must be.
        wanted: u64,
    },
}

/// The nearest query that would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// Fewer blocks, of the same kind and weights.
    Blocks(u64),
    /// None with this set: use another.
    OtherSet,
    /// None of such items: declare narrower ones.
    Narrower,
}

impl std::fmt::Display for Nearest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blocks(blocks) => {
                write!(f, "the nearest that is allowed takes {blocks} blocks: split the range")
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
