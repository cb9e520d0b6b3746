//! Which share of a recording narrower bounds would refuse. Margins of noise do not count that.

use alpheus_input::rows::{Cell, RecordedStream, Recording};
use alpheus_policy::decimal::parse_exact;
use alpheus_policy::planner::{Bounds, PlanningError, RuleError};
use alpheus_policy::schema::{AttributeKind, Schema};

/// How many readings of an attribute a recording has, and how many of them lie beyond bounds.
pub struct Outside {
    all: u64,
    below: u64,
    above: u64,
}

impl Outside {
    /// Those of the attribute at a position, which is a number, and of bounds as schemas have them.
    #[must_use]
    pub fn of(
        at: usize,
        [min, max]: &[String; 2],
        schema: &Schema,
        recording: &Recording,
    ) -> Option<Outside> {
        let AttributeKind::Number { scale, .. } = schema.attributes.get(at)?.kind else {
            return None;
        };
        let (least, most) = (parse_exact(min, scale).ok()?, parse_exact(max, scale).ok()?);
        let mut found = Outside { all: 0, below: 0, above: 0 };
        for event in recording.streams.iter().flat_map(RecordedStream::events) {
            if let Some(Cell::Number(number)) = event.cells.get(at) {
                found.all += 1;
                found.below += u64::from(*number < least);
                found.above += u64::from(*number > most);
            }
        }
        Some(found)
    }

    /// Their share of all readings; none if all are within.
    #[must_use]
    pub fn share(&self) -> Option<String> {
        let outside = self.below + self.above;
        (outside > 0).then(|| share(outside, self.all))
    }
}

/// Whether a refusal offers narrower bounds.
#[must_use]
pub fn are_offered(refusal: &PlanningError) -> bool {
    offered(refusal).next().is_some()
}

/// For all bounds that a refusal offers, the share of readings that lie outside.
#[must_use]
pub fn beyond(refusal: &PlanningError, schema: &Schema, recording: &Recording) -> Vec<String> {
    offered(refusal).filter_map(|bounds| beyond_one(bounds, schema, recording)).collect()
}

fn offered(refusal: &PlanningError) -> impl Iterator<Item = &Bounds> {
    refusal.violations.iter().filter_map(|violation| match &violation.rule {
        RuleError::OutOfReach { remedy, .. } => {
            remedy.bounds.as_ref().or(remedy.both.as_ref().map(|(_, bounds)| bounds))
        }
        _ => None,
    })
}

fn beyond_one(bounds: &Bounds, schema: &Schema, recording: &Recording) -> Option<String> {
    let ([min, max], name) = (&bounds.after, &bounds.name);
    let found = Outside::of(bounds.attribute.into(), &bounds.after, schema, recording)?;
    let Some(share) = found.share() else {
        return Some(format!("no reading of `{name}` in the file is outside"));
    };
    let outside = match (found.below, found.above) {
        (0, _) => format!("above {max}"),
        (_, 0) => format!("below {min}"),
        _ => format!("below {min} or above {max}"),
    };
    Some(format!(
        "{share} of the readings of `{name}` in the file are {outside}, and would be refused"
    ))
}

/// As a percentage with one decimal, never rounded to none or to all.
#[must_use]
pub fn share(part: u64, all: u64) -> String {
    let rounded = (part.saturating_mul(1000) + all / 2) / all.max(1);
    let tenths = match part {
        0 => 0,
        part if part >= all => 1000,
        _ => rounded.clamp(1, 999),
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}
