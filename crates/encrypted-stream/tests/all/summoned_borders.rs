//! The borders of a summoned stream of events.

use alpheus_encrypted_stream::messages::{Segment, Segments, SummonedStream};

/// Its segments.
pub(crate) fn segments(stream: &SummonedStream) -> &Vec<Segment> {
    match &stream.segments {
        Segments::OfEvents(segments) => segments,
        Segments::OfTicks { .. } => unreachable!("a stream of ticks"),
    }
}

/// Its segments, to change them.
pub(crate) fn segments_mut(stream: &mut SummonedStream) -> &mut Vec<Segment> {
    match &mut stream.segments {
        Segments::OfEvents(segments) => segments,
        Segments::OfTicks { .. } => unreachable!("a stream of ticks"),
    }
}
