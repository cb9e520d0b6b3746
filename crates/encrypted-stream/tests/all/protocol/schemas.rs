//! Schemas of worlds.

use alpheus_policy::schema::{Aggregation, Attribute, AttributeKind, Capacity, Frames, Schema};

use crate::protocol::noise::noisy_schema;
use crate::protocol::world::{Setup, WINDOW};

/// What a setup asks for, but for the frames.
pub fn schema_of(setup: &Setup) -> Schema {
    let mut schema = if setup.noise.is_some() { noisy_schema() } else { schema() };
    if setup.squares {
        let attribute = &mut schema.attributes[0];
        attribute.kind = AttributeKind::Number { scale: 0, min: 0, max: 1_000 };
        attribute.aggregations.push(Aggregation::Variance);
    }
    schema
}

pub fn schema() -> Schema {
    let attribute = Attribute {
        name: "x".into(),
        kind: AttributeKind::Number { scale: 0, min: 0, max: i64::MAX >> 8 },
        unit: String::new(),
        optional: false,
        aggregations: vec![Aggregation::Sum, Aggregation::Count],
    };
    Schema {
        name: "Test".into(),
        version: 1,
        tick: WINDOW,
        capacity: Capacity { population: 1000, events: 100, micro_rate: 0 },
        shared_count: true,
        frames: Frames::Events,
        metadata: vec![],
        attributes: vec![attribute],
        options: vec![],
    }
}
