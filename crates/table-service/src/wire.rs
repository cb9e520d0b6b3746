//! Bodies of an owner's requests and of the server's responses, in postcard.

use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Manifest, Request};
use serde::{Deserialize, Serialize};

/// `POST /v1/tables`: registers a table.
pub const TABLES: &str = "/v1/tables";
/// `POST /v1/blocks`: stores a block.
pub const BLOCKS: &str = "/v1/blocks";
/// `POST /v1/fetch`: returns a block as it was stored.
pub const FETCH: &str = "/v1/fetch";
/// `POST /v1/sum`: returns a sum.
pub const SUM: &str = "/v1/sum";
/// `POST /v1/drop`: deletes a block.
pub const DROP: &str = "/v1/drop";
/// `POST /v1/segments`: lists the segments that have blocks.
pub const SEGMENTS: &str = "/v1/segments";

/// The largest body of a request.
pub const MAX_BODY: usize = 64 << 20;

/// The largest block of a table. With the rest of its commit it fits into a body, and into a
/// batch of the owner's store.
pub const MAX_BLOCK: usize = 48 << 20;

/// A new table. A repetition changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewTable {
    /// Its manifest.
    pub manifest: Manifest,
}

/// A new block. A repetition changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewBlock {
    /// Its table.
    pub table: DataSet,
    /// Its exact bytes.
    pub bytes: Vec<u8>,
}

/// Names a block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BlockRequest {
    /// Its table.
    pub table: DataSet,
    /// Its address.
    pub address: Address,
}

/// Names a table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TableRequest {
    /// The table.
    pub table: DataSet,
}

/// Requests a sum.
#[derive(Debug, Serialize, Deserialize)]
pub struct SumRequest {
    /// The table.
    pub table: DataSet,
    /// The blocks and columns to add up.
    pub request: Request,
}

/// A sum.
#[derive(Debug, Serialize, Deserialize)]
pub struct SumResponse {
    /// The server's time, as it reports.
    pub microseconds: u64,
    /// ν and σ.
    pub answer: Vec<u8>,
}
