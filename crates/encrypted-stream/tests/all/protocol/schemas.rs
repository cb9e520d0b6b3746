//! What devices of these tests measure.

use alpheus_policy::schema::{Aggregation, Attribute, AttributeKind, Capacity, Frames, Schema};

use crate::protocol::world::WINDOW;

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

/// The schema of a bounded plan of so many cells: the same, and with three one of smaller values, with their
/// squares.
pub fn schema_of(cells: usize) -> Schema {
    let mut schema = schema();
    if cells == 3 {
        schema.attributes[0].kind = AttributeKind::Number { scale: 0, min: 0, max: 1_000 };
        schema.attributes[0].aggregations = vec![Aggregation::Variance];
    }
    schema
}
