//! What a device sends of its events.

use crate::document::{ContentError, DocumentError, Fields, Node};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

/// The default of an anchor period is the first multiple of the tick from here on.
const HOUR: Span = Span(3_600_000_000);

/// What a device sends of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frames {
    /// A frame for each event, and one at each tick.
    Events,
    /// One frame for each tick, with the sum of its events. The service sees neither their
    /// times within the tick nor their number.
    Ticks {
        /// At its multiples a session's sum and number of events start again. A multiple of
        /// the tick.
        anchor: Span,
    },
}

impl Frames {
    /// What a resolved schema has that was written without frames.
    pub(super) const fn unwritten() -> Frames {
        Frames::Events
    }

    /// Whether each event has a frame of its own.
    #[must_use]
    pub const fn is_events(&self) -> bool {
        matches!(self, Frames::Events)
    }

    /// The anchor period of a schema with one frame a tick.
    #[must_use]
    pub const fn anchor(&self) -> Option<Span> {
        match self {
            Frames::Events => None,
            Frames::Ticks { anchor } => Some(*anchor),
        }
    }
}

/// Reads `frames` and `anchor` of a schema with this tick.
pub(super) fn read(fields: &Fields<'_>, tick: Span) -> Result<Frames, DocumentError> {
    let ticks =
        fields.read_or("frames", true, |node| node.word(&["events", "ticks"], &[false, true]))?;
    if !ticks {
        fields.refuse("anchor", "`frames: events`; remove it or use `frames: ticks`")?;
        return Ok(Frames::Events);
    }
    let least = Span(HOUR.0.div_ceil(tick.0.max(1)).saturating_mul(tick.0));
    let anchor = fields.read_or("anchor", least, |node| anchor(node, tick))?;
    Ok(Frames::Ticks { anchor })
}

/// At most a day, since a session ends with its day.
fn anchor(node: &Node, tick: Span) -> Result<Span, DocumentError> {
    let anchor = node.duration()?;
    if !(tick.0..=Span::DAY.0).contains(&anchor.0) {
        let range = format!("between the tick, {tick}, and 1d");
        return Err(node.error(ContentError::OutOfRange { range }));
    }
    if !anchor.0.is_multiple_of(tick.0) {
        let nearest = Span(anchor.0.next_multiple_of(tick.0));
        return Err(node.error(ContentError::NotMultipleOfTick { window: anchor, tick, nearest }));
    }
    Ok(anchor)
}
