//! Which share of a recording narrower bounds would refuse. Margins of noise do not count that.

use alpheus_input::rows::{Cell, RecordedStream, Recording};
use alpheus_policy::decimal::parse_exact;
use alpheus_policy::planner::{Bounds, PlanningError, RuleError};
use alpheus_policy::schema::{AttributeKind, Schema};

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
    let at = usize::from(bounds.attribute);
    let AttributeKind::Number { scale, .. } = schema.attributes.get(at)?.kind else { return None };
    let [min, max] = &bounds.after;
    let (least, most) = (parse_exact(min, scale).ok()?, parse_exact(max, scale).ok()?);
    let (mut all, mut below, mut above) = (0u64, 0u64, 0u64);
    for event in recording.streams.iter().flat_map(RecordedStream::events) {
        if let Some(Cell::Number(number)) = event.cells.get(at) {
            all += 1;
            below += u64::from(*number < least);
            above += u64::from(*number > most);
        }
    }
    let outside = match (below, above) {
        (0, 0) => return Some(format!("no reading of `{}` in the file is outside", bounds.name)),
        (0, _) => format!("above {max}"),
        (_, 0) => format!("below {min}"),
        _ => format!("below {min} or above {max}"),
    };
    Some(format!(
        "{} of the readings of `{}` in the file are {outside}, and would be refused",
        share(below + above, all),
        bounds.name
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
