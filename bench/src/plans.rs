//! What plans under measurement have in common.

use alpheus_policy::ids::SchemaId;
use alpheus_policy::plan::{Fraction, Integrity, MaskStrategy, Plan, PopulationBounds, Release};
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp};

/// A plan of ten-second windows over at most so many owners. It has no streams and releases nothing
/// until its caller says so.
pub(crate) fn blank(owners: u32) -> Plan {
    Plan {
        nonce: [0; 16],
        name: String::new(),
        consumer: String::new(),
        sealed_to: None,
        schema: SchemaId([0; 32]),
        group: vec![],
        window: Span::seconds(10),
        grace: Span::seconds(5),
        from: Timestamp(0),
        release: Release { rows: vec![] },
        select: ReleasePlan::default(),
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![],
        population: PopulationBounds { min: 1, max: owners },
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::FIFTH,
        delta_exponent: 9,
        masks: MaskStrategy::Single,
        epoch: None,
        roster: vec![],
        streams: vec![],
    }
}
