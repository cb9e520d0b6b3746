//! The transformer's state as bytes, stored with a log position to resume from.

use super::absent_streams::AbsentStreams;
use super::plan::Plans;
use super::stream::Stream;
use super::{Shape, Transformer, Watermarks};
use serde::{Deserialize, Serialize};

/// The bytes are not a snapshot of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a transformer's snapshot; read the log from its start instead")]
pub struct SnapshotError;

/// Version of the format. Others are refused.
const VERSION: u8 = 6;

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
    /// Appends the whole state to `into`. Stored with the log position up to which frames were taken,
    /// it lets [`Transformer::restore`] continue as if nothing had happened, because taking a frame
    /// depends on nothing else.
    ///
    /// # Errors
    ///
    /// None in practice: all of the state can be serialised.
    pub fn snapshot<W: Extend<u8>>(&self, into: W) -> Result<W, SnapshotError> {
        let content = ContentRef {
            version: VERSION,
            shape: &self.shape,
            streams: &self.streams,
            plans: &self.plans,
            watermarks: &self.watermarks,
        };
        postcard::to_extend(&content, into).map_err(|_| SnapshotError)
    }

    /// Restores a transformer from its snapshot.
    ///
    /// # Errors
    ///
    /// If the bytes are not a snapshot. Snapshots are the service's own, so only their form
    /// is checked.
    pub fn restore(bytes: &[u8]) -> Result<Transformer, SnapshotError> {
        let (content, rest): (Content, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| SnapshotError)?;
        if content.version != VERSION || !rest.is_empty() {
            return Err(SnapshotError);
        }
        let index = content.streams.iter().zip(0u32..).map(|(s, i)| (s.id, i)).collect();
        Ok(Transformer {
            shape: content.shape,
            index,
            streams: content.streams,
            plans: content.plans,
            watermarks: content.watermarks,
            absent: AbsentStreams::default(),
            blocks: None,
        })
    }

    /// Memory used by sums and streams in bytes, for a metric. The allocator's overhead is
    /// not included.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.streams.iter().map(Stream::heap).sum::<usize>()
            + self.streams.capacity() * size_of::<Stream>()
            + self.index.capacity() * (size_of::<alpheus_policy::ids::StreamId>() + 5)
            + self.plans.heap()
    }
}
