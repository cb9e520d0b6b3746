//! Streams that were online when the service went away. After an outage the first of them to
//! come back would end the windows of all others, so event time waits for them.

use super::Transformer;
use alpheus_time::Timestamp;

/// Streams that are waited for.
#[derive(Debug)]
pub(super) struct AbsentStreams {
    /// Their indexes in the transformer.
    streams: Vec<u32>,
    /// A stream that has reached this time is back.
    until: Timestamp,
    /// The least that any of them has reached.
    least: Timestamp,
}

impl Default for AbsentStreams {
    fn default() -> Self {
        AbsentStreams { streams: Vec::new(), until: Timestamp(0), least: Timestamp(0) }
    }
}

impl AbsentStreams {
    /// The watermark, if it would be `reached` without them.
    pub(super) fn hold_back(&self, reached: Timestamp) -> Timestamp {
        if self.streams.is_empty() { reached } else { reached.min(self.least) }
    }
}

impl Transformer {
    /// Waits for the streams of plans that are online and have reached `since`. The
    /// [watermark](Transformer::watermark) does not pass what any of them has reached, until
    /// it has reached `until`, or has closed its session. An earlier wait ends. Returns how
    /// many are waited for.
    pub fn wait_for_streams(&mut self, since: Timestamp, until: Timestamp) -> usize {
        let reached = |stream: &u32| self.stream(*stream).ok().and_then(|stream| stream.reached());
        let all = 0..u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        let streams = all.filter(|stream| reached(stream).is_some_and(|at| at >= since)).collect();
        self.absent = AbsentStreams { streams, until, least: Timestamp(0) };
        self.absent_streams()
    }

    /// How many streams are still waited for. Call it after frames were taken: until then the
    /// watermark waits for streams that have come back.
    pub fn absent_streams(&mut self) -> usize {
        let mut absent = std::mem::take(&mut self.absent);
        let mut least = absent.until;
        absent.streams.retain(|stream| {
            let reached = self.stream(*stream).ok().and_then(|stream| stream.reached());
            let Some(reached) = reached.filter(|reached| *reached < absent.until) else {
                return false;
            };
            least = least.min(reached);
            true
        });
        absent.least = least;
        self.absent = absent;
        self.absent.streams.len()
    }

    /// Waits for nobody any more.
    pub fn stop_waiting(&mut self) {
        self.absent = AbsentStreams::default();
    }

    /// The latest time of any frame that was taken.
    #[must_use]
    pub fn last_entry(&self) -> Option<Timestamp> {
        self.watermarks.latest()
    }
}
