//! Bodies of an owner's requests and of the server's responses, in postcard.

use alpheus_verifiable_table::label::{Address, DataSet};
use alpheus_verifiable_table::messages::{Manifest, Request};
use alpheus_verifiable_table::saved_state::StateName;
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
/// `POST /v1/tables/drop`: forgets a table without blocks and saved states.
pub const DROP_TABLE: &str = "/v1/tables/drop";

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
    #[serde(deserialize_with = "few")]
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

/// The most sums or blocks in one response: the shortest answer, and the shortest block, have more than
/// 50,000 bytes, and a response has at most [`MAX_OBJECT`]. Decoded, an empty list of one byte takes 24.
pub const MAX_ANSWERS: usize = 1024;

/// The most parts of all requests in one body: a request has at most so many blocks, and for each a run
/// and a weight. Bodies have a limit of their own, but a weight of one byte takes sixteen in memory.
const MAX_PARTS: usize = 3 << 20;

/// Reads at most [`MAX_ANSWERS`] elements.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    weighed(from, (|_| 0, MAX_PARTS))
}

fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Request>, D::Error> {
    weighed(from, (Request::parts, MAX_PARTS))
}

/// Reads at most [`MAX_ANSWERS`] elements, which together have at most so many parts.
fn weighed<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    limit: (fn(&T) -> usize, usize),
) -> Result<Vec<T>, D::Error> {
    struct ListVisitor<T>(fn(&T) -> usize, usize);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_ANSWERS} elements with {} runs and weights together", self.1)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let (mut list, mut parts) = (Vec::new(), 0_usize);
            while let Some(next) = from.next_element::<T>()? {
                parts = parts.saturating_add(self.0(&next));
                if parts > self.1 || list.len() >= MAX_ANSWERS {
                    return Err(Error::invalid_length(list.len(), &self));
                }
                list.push(next);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(ListVisitor(limit.0, limit.1))
}

/// The answers to as many questions, of which a response has at most [`MAX_ANSWERS`].
#[derive(Debug, Deserialize)]
#[serde(transparent, bound = "T: Deserialize<'de>")]
pub struct Answers<T>(#[serde(deserialize_with = "few")] pub Vec<T>);

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
    use alpheus_verifiable_table::messages::{Answer, MAX_REQUEST_BLOCKS, Run, Weights};
    use alpheus_verifiable_table::parameters::Set;

    /// Decoded values fill memory, not the body that a limit counts.
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
        assert_eq!(read(vec![request(0); MAX_ANSWERS]), Ok(true));
        assert!(read(vec![request(0); MAX_ANSWERS + 1]).is_err(), "requests without weights");
    }

    /// No response to so many would fit, nor would any that is longer be the answer to a request.
    #[test]
    fn longer_lists_than_fit_into_a_response_are_not_read() {
        let shortest = |set: Set| Answer::length(set.ring(), Kind::Column(Column(0)));
        let block = |set: Set| {
            let (data_set, products) = (DataSet([1; 16]), Vec::new());
            Manifest { data_set, set, columns: 1, products }.block_length()
        };
        for set in Set::ALL {
            assert!(shortest(set).min(block(set)) * MAX_ANSWERS > MAX_OBJECT, "{set}");
        }
        let address = Address { segment: Segment([2; 16]), epoch: 0, index: 0 };
        let fetch = |count| {
            let addresses = vec![address; count];
            let body = postcard::to_allocvec(&FetchRequest { table: DataSet([1; 16]), addresses });
            postcard::from_bytes::<FetchRequest>(&body.unwrap()).is_ok()
        };
        assert!(fetch(MAX_ANSWERS) && !fetch(MAX_ANSWERS + 1));
        let blocks = |count| {
            let body = postcard::to_allocvec(&vec![Vec::<u8>::new(); count]).unwrap();
            postcard::from_bytes::<Answers<Vec<u8>>>(&body).map(|Answers(blocks)| blocks.len())
        };
        assert_eq!(blocks(MAX_ANSWERS), Ok(MAX_ANSWERS));
        assert!(blocks(MAX_ANSWERS + 1).is_err());
    }

    /// Whether bytes are read as a message: then they mean the same when written and read again.
    fn reads<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
        let Ok(read) = postcard::from_bytes::<T>(bytes) else { return false };
        let written = postcard::to_allocvec(&read).unwrap();
        let again: T = postcard::from_bytes(&written).unwrap();
        assert_eq!(postcard::to_allocvec(&again).unwrap(), written);
        true
    }

    /// Messages with a few bytes changed, cut, or replaced by a length that no list has: no panic, no
    /// memory beyond the limits. The fuzzer's crate knows protocols only, and these are none.
    #[test]
    fn damaged_messages_are_refused_or_read_alike() {
        let (table, segment) = (DataSet([1; 16]), Segment([2; 16]));
        let run = Run { segment, epoch: 3, from: 4, to: 500 };
        let kind = Kind::Column(Column(0));
        let each = Weights::Each(4, vec![-7, 1 << 90, 0]);
        let requests = [each, Weights::Ones, Weights::Powers(9), Weights::Polynomial(vec![1, -2])]
            .map(|weights| Request { kind, runs: vec![run; 2], weights });
        let addresses = vec![Address { segment, epoch: 1, index: 300 }; 3];
        let sums = [3, 4].map(|microseconds| SumResponse { microseconds, answer: vec![5; 20] });
        let seeds = [
            postcard::to_allocvec(&SumsRequest { table, requests: requests.into() }).unwrap(),
            postcard::to_allocvec(&FetchRequest { table, addresses }).unwrap(),
            postcard::to_allocvec(&NewObject { table, bytes: vec![6; 40] }).unwrap(),
            postcard::to_allocvec(&Vec::from(sums)).unwrap(),
        ];
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut read = 0;
        for round in 0..20_000 {
            let mut bytes = seeds[round % seeds.len()].clone();
            for _ in 0..=draw(3) {
                let at = draw(bytes.len());
                match draw(4) {
                    0 => bytes[at] ^= 1 << draw(8),
                    1 => bytes.truncate(at.max(1)),
                    2 => drop(bytes.splice(at..at, [0xff; 9])),
                    _ => bytes[at] = 0xff,
                }
            }
            read += usize::from(reads::<SumsRequest>(&bytes));
            read += usize::from(reads::<FetchRequest>(&bytes));
            read += usize::from(reads::<NewObject>(&bytes));
            read += usize::from(reads::<StateRequest>(&bytes));
            if let Ok(Answers(sums)) = postcard::from_bytes::<Answers<SumResponse>>(&bytes) {
                assert!(sums.len() <= MAX_ANSWERS);
                read += 1;
            }
        }
        assert!((1000..60_000).contains(&read), "{read} were read");
    }
}
