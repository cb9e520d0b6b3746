//! The transformer's state as bytes, to resume from beside a log position.

use super::plan::Plans;
use super::stream::Stream;
use super::{Shape, Transformer, Watermarks};
use serde::{Deserialize, Serialize};

/// The bytes are no snapshot of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no snapshot of a transformer; read the log from its start instead")]
pub struct BadSnapshot;

/// Version of the format. Others are refused.
const VERSION: u8 = 1;

#[derive(Deserialize)]
struct Content {
    version: u8,
    shape: Shape,
    streams: Vec<Stream>,
    plans: Plans,
    watermarks: Watermarks,
}

#[derive(Serialize)]
struct ContentRef<'a> {
    version: u8,
    shape: &'a Shape,
    streams: &'a [Stream],
    plans: &'a Plans,
    watermarks: &'a Watermarks,
}

impl Transformer {
    /// All state. With the position of the log up to which frames were taken,
    /// [`Transformer::restore`] goes on as if nothing had happened: taking a
    /// frame depends on nothing else.
    ///
    /// # Errors
    ///
    /// None in practice: the state holds nothing that does not serialise.
    pub fn snapshot(&self) -> Result<Vec<u8>, BadSnapshot> {
        let content = ContentRef {
            version: VERSION,
            shape: &self.shape,
            streams: &self.streams,
            plans: &self.plans,
            watermarks: &self.watermarks,
        };
        postcard::to_allocvec(&content).map_err(|_| BadSnapshot)
    }

    /// The transformer that a snapshot was made of.
    ///
    /// # Errors
    ///
    /// If the bytes are no snapshot. Snapshots are the service's own: they are
    /// checked for form, not for sense.
    pub fn restore(bytes: &[u8]) -> Result<Transformer, BadSnapshot> {
        let (content, rest): (Content, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| BadSnapshot)?;
        if content.version != VERSION || !rest.is_empty() {
            return Err(BadSnapshot);
        }
        let index = content.streams.iter().zip(0u32..).map(|(s, i)| (s.id, i)).collect();
        Ok(Transformer {
            shape: content.shape,
            index,
            streams: content.streams,
            plans: content.plans,
            watermarks: content.watermarks,
        })
    }

    /// Bytes that the sums and everything about streams take, by their sizes: what
    /// a metric shows. The allocator's own overhead comes on top.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.streams.iter().map(Stream::heap).sum::<usize>()
            + self.streams.capacity() * size_of::<Stream>()
            + self.index.capacity() * (size_of::<alpheus_policy::ids::StreamId>() + 5)
            + self.plans.heap()
    }
}
