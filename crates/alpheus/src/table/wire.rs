//! The bodies of an owner's requests and a server's answers, in postcard.

use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Manifest, Request};
use serde::{Deserialize, Serialize};

/// `POST /v1/tables`: a table is to be stored here from now on.
pub const TABLES: &str = "/v1/tables";
/// `POST /v1/blocks`: a block is to be kept.
pub const BLOCKS: &str = "/v1/blocks";
/// `POST /v1/fetch`: a block is wanted as it was stored.
pub const FETCH: &str = "/v1/fetch";
/// `POST /v1/sum`: a sum is wanted.
pub const SUM: &str = "/v1/sum";
/// `POST /v1/drop`: a block was written anew and is not needed.
pub const DROP: &str = "/v1/drop";
/// `POST /v1/segments`: it is wanted which segments there are blocks of.
pub const SEGMENTS: &str = "/v1/segments";

/// The largest body.
pub const LARGEST: usize = 64 << 20;

/// The largest block that a table may have: with what is committed with it, it fits a
/// body and a batch of the owner's store.
pub const LARGEST_BLOCK: usize = 48 << 20;

/// A new table; the same again changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewTable {
    /// What it is like.
    pub manifest: Manifest,
}

/// A block; the same again changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewBlock {
    /// Its table.
    pub table: DataSet,
    /// Its exact bytes.
    pub bytes: Vec<u8>,
}

/// A block is named.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Named {
    /// Its table.
    pub table: DataSet,
    /// Where it stands.
    pub address: Address,
}

/// A table is named.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OfTable {
    /// It.
    pub table: DataSet,
}

/// A sum is asked.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ask {
    /// Of this table.
    pub table: DataSet,
    /// What is summed.
    pub request: Request,
}

/// A sum is answered.
#[derive(Debug, Serialize, Deserialize)]
pub struct Summed {
    /// How long it took the server, as it says.
    pub microseconds: u64,
    /// ν and σ.
    pub answer: Vec<u8>,
}
