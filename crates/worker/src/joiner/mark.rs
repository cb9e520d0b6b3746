//! How far a joiner has come: what its successor reads, and what it does not take again.

use super::WindowId;
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Error, NewRecord, Offset, Partition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the encoding. Parts have another.
const VERSION: u8 = 2;
/// The key of marks in a partition of parts.
pub const KEY: &[u8] = b"mark";

/// How far everything was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// Instructions.
    pub instructions: Offset,
    /// Parts.
    pub parts: Offset,
    /// Answers, by partition.
    pub tokens: Vec<Offset>,
    /// Sums, by partition: where those that are not written yet will be.
    pub sums: Vec<Offset>,
}

/// What a successor needs: everything from these offsets on, without the windows that are over. It lies in
/// the joiner's partition of parts, where the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    version: u8,
    instructions: u64,
    parts: u64,
    tokens: Vec<u64>,
    sums: Vec<u64>,
    /// Windows that are over, and of which something will be read again, by start.
    over: BTreeMap<PlanId, Vec<u64>>,
}

impl Mark {
    /// A mark.
    #[must_use]
    pub fn new(from: &Positions, over: impl Iterator<Item = WindowId>) -> Mark {
        let offsets = |all: &[Offset]| all.iter().map(|at| at.0).collect();
        let mut by_plan: BTreeMap<PlanId, Vec<u64>> = BTreeMap::new();
        over.for_each(|(plan, start)| by_plan.entry(plan).or_default().push(start.0));
        Mark {
            version: VERSION,
            instructions: from.instructions.0,
            parts: from.parts.0,
            tokens: offsets(&from.tokens),
            sums: offsets(&from.sums),
            over: by_plan,
        }
    }

    /// Where a successor begins to read. Partitions that are not named are read from their starts.
    #[must_use]
    pub fn positions(&self) -> Positions {
        let offsets = |all: &[u64]| all.iter().copied().map(Offset).collect();
        Positions {
            instructions: Offset(self.instructions),
            parts: Offset(self.parts),
            tokens: offsets(&self.tokens),
            sums: offsets(&self.sums),
        }
    }

    /// Windows that are over.
    pub fn over(&self) -> impl Iterator<Item = WindowId> {
        let starts = |(plan, starts): (&PlanId, &Vec<u64>)| {
            let plan = *plan;
            starts.clone().into_iter().map(move |start| (plan, Timestamp(start)))
        };
        self.over.iter().flat_map(starts)
    }

    /// Adds it to its partition.
    ///
    /// # Errors
    /// None in practice: it is shorter than a record may be.
    pub fn note(&self, batch: &mut Batch, parts: &Partition) -> Result<(), Error> {
        // All of it can be serialised.
        let value = postcard::to_allocvec(self).unwrap_or_default();
        batch.append(parts, &NewRecord { key: KEY, value: &value, ..Default::default() })
    }

    /// Reads a record; none if it is no mark.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Mark> {
        let (mark, rest): (Mark, _) = postcard::take_from_bytes(bytes).ok()?;
        (mark.version == VERSION && rest.is_empty()).then_some(mark)
    }
}
