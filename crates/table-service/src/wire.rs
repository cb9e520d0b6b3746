//! Bodies of an owner's requests and of the server's responses, in postcard.

use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Manifest, Request};
use alpheus_verifiable_table::saved::StateName;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// `POST /v1/tables`: registers a table.
pub const TABLES: &str = "/v1/tables";
/// `POST /v1/blocks`: stores a block.
pub const BLOCKS: &str = "/v1/blocks";
/// `POST /v1/fetch`: returns blocks as they were stored.
pub const FETCH: &str = "/v1/fetch";
/// `POST /v1/sums`: returns sums.
pub const SUMS: &str = "/v1/sums";
/// `POST /v1/drop`: deletes a block.
pub const DROP: &str = "/v1/drop";
/// `POST /v1/segments`: lists the segments that have blocks.
pub const SEGMENTS: &str = "/v1/segments";
/// `POST /v1/states`: lists the saved states of a table.
pub const STATES: &str = "/v1/states";
/// `POST /v1/states/save`: stores a saved state.
pub const SAVE_STATE: &str = "/v1/states/save";
/// `POST /v1/states/fetch`: returns a saved state as it was stored.
pub const FETCH_STATE: &str = "/v1/states/fetch";
/// `POST /v1/states/drop`: deletes a saved state.
pub const DROP_STATE: &str = "/v1/states/drop";

/// The largest body of a request or a response.
pub const MAX_BODY: usize = 64 << 20;

/// The largest block, and the largest saved state, of a table. With the rest of its commit it
/// fits into a body, and into a batch of the owner's store.
pub const MAX_OBJECT: usize = 48 << 20;

/// A new table. A repetition changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewTable {
    /// Its manifest.
    pub manifest: Manifest,
}

/// A request about a table that exists.
pub trait AboutTable: DeserializeOwned + Send + 'static {
    /// The table.
    fn table(&self) -> DataSet;
}

macro_rules! about_table {
    ($($request:ty),+) => {$(
        impl AboutTable for $request {
            fn table(&self) -> DataSet {
                self.table
            }
        }
    )+};
}

about_table!(NewObject, BlockRequest, FetchRequest, TableRequest, StateRequest, SumsRequest);

/// A new block or saved state. A repetition changes nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewObject {
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

/// Names blocks to fetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchRequest {
    /// Their table.
    pub table: DataSet,
    /// Their addresses.
    pub addresses: Vec<Address>,
}

/// Names a table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TableRequest {
    /// The table.
    pub table: DataSet,
}

/// Names a saved state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StateRequest {
    /// Its table.
    pub table: DataSet,
    /// Its name.
    pub name: StateName,
}

/// Requests sums.
#[derive(Debug, Serialize, Deserialize)]
pub struct SumsRequest {
    /// The table.
    pub table: DataSet,
    /// The blocks and columns to add up, for each sum.
    #[serde(deserialize_with = "bounded")]
    pub requests: Vec<Request>,
}

/// The most parts of all requests in one body: a request has at most so many blocks, and for each a run
/// and a weight. Bodies have a limit of their own, but a part of one byte takes up to ninety in memory.
const MAX_PARTS: usize = 3 << 20;

fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Request>, D::Error> {
    struct Bounded;

    impl<'de> Visitor<'de> for Bounded {
        type Value = Vec<Request>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "requests with at most {MAX_PARTS} runs and weights together")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<Request>, A::Error> {
            let (mut requests, mut parts) = (Vec::new(), 0_usize);
            while let Some(next) = from.next_element::<Request>()? {
                parts = parts.saturating_add(next.parts());
                if parts > MAX_PARTS {
                    return Err(Error::invalid_length(requests.len(), &self));
                }
                requests.push(next);
            }
            Ok(requests)
        }
    }

    from.deserialize_seq(Bounded)
}

/// A sum.
#[derive(Debug, Serialize, Deserialize)]
pub struct SumResponse {
    /// The server's time, as it reports.
    pub microseconds: u64,
    /// ν and σ.
    pub answer: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_verifiable_table::label::{Column, Kind, Segment};
    use alpheus_verifiable_table::messages::{MAX_REQUEST_BLOCKS, Run, Weights};

    /// What fills memory is what is decoded, not the body that a limit counts.
    #[test]
    fn more_weights_and_requests_than_any_owner_sends_are_not_read() {
        let request = |weights: u64| {
            let run = Run { segment: Segment([2; 16]), epoch: 0, from: 0, to: 1 };
            let weights = Weights::Each(0, vec![0; usize::try_from(weights).unwrap()]);
            Request { kind: Kind::Column(Column(0)), runs: vec![run], weights }
        };
        let read = |requests: Vec<Request>| {
            let sent = SumsRequest { table: DataSet([1; 16]), requests };
            let body = postcard::to_allocvec(&sent).unwrap();
            assert!(body.len() < MAX_BODY, "the limit on bodies would not stop it");
            let read = postcard::from_bytes::<SumsRequest>(&body);
            read.map(|read| read.requests == sent.requests)
        };
        assert_eq!(read(vec![request(MAX_REQUEST_BLOCKS)]), Ok(true));
        assert_eq!(read(vec![request(1), request(1)]), Ok(true));
        assert!(read(vec![request(MAX_REQUEST_BLOCKS + 1)]).is_err(), "one list");
        assert!(read(vec![request(MAX_REQUEST_BLOCKS); 3]).is_err(), "all together");
        assert!(read(vec![request(0); MAX_PARTS / 2 + 1]).is_err(), "requests without weights");
    }
}
