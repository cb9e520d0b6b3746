//! The sum over the streams of one partition, on its way to the window's sum.

use alpheus_encrypted_stream::job::{SetDigest, Tally};
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the encoding.
const VERSION: u8 = 1;

/// The sum over the streams of S that are in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The plan.
    pub plan: PlanId,
    /// Start of the window.
    pub start: Timestamp,
    /// The partition.
    pub lane: u32,
    /// The streams in it.
    pub streams: Tally,
    /// Their rows, summed.
    pub rows: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct EncodedPart<'a> {
    version: u8,
    plan: PlanId,
    start: Timestamp,
    lane: u32,
    count: u64,
    digest: [u64; 4],
    /// Little-endian.
    #[serde(borrow)]
    rows: &'a [u8],
}

impl Part {
    /// The key of a window's parts, by which their partition is found.
    #[must_use]
    pub fn key(plan: &PlanId, start: Timestamp) -> Vec<u8> {
        [&plan.0[..], &start.0.to_be_bytes()].concat()
    }

    /// The part as a record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Part { plan, start, lane, streams, rows } = self;
        let rows: Vec<u8> = rows.iter().flat_map(|word| word.to_le_bytes()).collect();
        let encoded = EncodedPart {
            version: VERSION,
            plan: *plan,
            start: *start,
            lane: *lane,
            count: streams.count,
            digest: streams.digest.0,
            rows: &rows,
        };
        // All of it can be serialised.
        postcard::to_allocvec(&encoded).unwrap_or_default()
    }

    /// Reads a record; none if it is no part.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Part> {
        let (encoded, rest): (EncodedPart<'_>, _) = postcard::take_from_bytes(bytes).ok()?;
        let (words, left) = encoded.rows.as_chunks::<8>();
        if encoded.version != VERSION || !rest.is_empty() || !left.is_empty() {
            return None;
        }
        Some(Part {
            plan: encoded.plan,
            start: encoded.start,
            lane: encoded.lane,
            streams: Tally { count: encoded.count, digest: SetDigest(encoded.digest) },
            rows: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        })
    }
}

/// Adds words to words, modulo 2^64.
pub(crate) fn add(sum: &mut [u64], words: &[u64]) {
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum = sum.wrapping_add(*word);
    }
}

/// Adds sets' tallies.
pub(crate) fn join(a: Tally, b: Tally) -> Tally {
    let mut digest = a.digest;
    add(&mut digest.0, &b.digest.0);
    Tally { count: a.count.wrapping_add(b.count), digest }
}
