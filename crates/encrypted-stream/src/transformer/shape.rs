//! What the transformer needs to know about a schema.

use crate::frame::BORDER_HEAD;
use crate::tick::frame::{MAC_LEN, TICK_HEAD};
use crate::tick::opening::OPENING_LEN;
use alpheus_policy::ids::SchemaId;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{Frames, Schema};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

/// What the transformer needs to know about a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The schema's id.
    pub schema: SchemaId,
    /// Words of an event, the check word included.
    pub words: u16,
    /// Distance between borders.
    pub tick: Span,
    /// Maximum number of events of one stream in one window. A stream above it is excluded,
    /// because digits are sized for this number.
    pub events: u64,
    /// How far event time may run ahead of the clock.
    pub skew: Span,
    /// What devices send.
    pub frames: Frames,
}

impl Shape {
    /// The shape of a schema, with the clock skew that the deployment allows.
    #[must_use]
    pub fn of(schema: &Schema, layout: &Layout, skew: Span) -> Shape {
        Shape {
            schema: schema.id(),
            words: layout.words,
            tick: schema.tick,
            events: schema.capacity.events,
            skew,
            frames: schema.frames,
        }
    }

    /// Bytes of the longest frame that a stream of the schema has.
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        let words = 8 * usize::from(self.words);
        if self.frames.is_events() {
            BORDER_HEAD + words
        } else {
            OPENING_LEN.max(TICK_HEAD + words + MAC_LEN)
        }
    }
}
