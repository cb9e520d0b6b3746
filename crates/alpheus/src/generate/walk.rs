//! One generated stream: its state from event to event.

use super::profile::{Behaviour, Profile};
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::schema::{AttributeKind, Schema};
use rand_core::Rng;

/// A stream being generated.
pub(super) struct Stream {
    name: String,
    metadata: Vec<String>,
    state: Vec<f64>,
    /// Offset of its events within the interval, so that streams do not send in lockstep.
    pub phase_ms: u64,
}

impl Stream {
    /// Draws a stream's metadata and first values.
    pub(super) fn new(
        number: u32,
        schema: &Schema,
        profile: &Profile,
        rng: &mut impl Rng,
    ) -> Stream {
        let metadata =
            schema.metadata.iter().map(|attribute| match profile.metadata.get(&attribute.name) {
                Some(values) => {
                    values[place(below(rng, values.len() as u64), values.len())].clone()
                }
                None => attribute.symbols.first().cloned().unwrap_or_default(),
            });
        let metadata = metadata.collect();
        let start = |name: &String, rng: &mut _| match &profile.attributes[name] {
            Behaviour::Walk { start: [low, high], .. } => between(rng, *low, *high),
            _ => 0.0,
        };
        Stream {
            name: format!("stream-{number:05}"),
            metadata,
            state: schema.attributes.iter().map(|attribute| start(&attribute.name, rng)).collect(),
            phase_ms: below(rng, profile.interval_ms.min(1000)),
        }
    }

    /// The next event as a row of cells.
    pub(super) fn row(
        &mut self,
        time_ms: u64,
        schema: &Schema,
        profile: &Profile,
        rng: &mut impl Rng,
    ) -> Vec<String> {
        let mut row = vec![self.name.clone(), time_ms.to_string()];
        row.extend(self.metadata.iter().cloned());
        for (attribute, state) in schema.attributes.iter().zip(&mut self.state) {
            row.push(cell(&profile.attributes[&attribute.name], &attribute.kind, state, rng));
        }
        row
    }
}

fn cell(
    behaviour: &Behaviour,
    kind: &AttributeKind,
    state: &mut f64,
    rng: &mut impl Rng,
) -> String {
    let value = match behaviour {
        Behaviour::Walk { start: [low, high], step } => {
            // Drifting back to the middle keeps a long walk plausible.
            let pull = ((low + high) / 2.0 - *state) * 0.01;
            *state += between(rng, -step, *step) + pull;
            *state
        }
        Behaviour::Uniform([low, high]) => between(rng, *low, *high),
        Behaviour::Skewed(most) => skewed(rng, *most),
        Behaviour::Chance(chance) => return (between(rng, 0.0, 1.0) < *chance).to_string(),
        Behaviour::Choice(texts) => {
            let last = u32::try_from(texts.len() - 1).unwrap_or(u32::MAX);
            return texts[place(rounded(skewed(rng, last)).unsigned_abs(), texts.len())].clone();
        }
    };
    let AttributeKind::Number { scale, min, max } = *kind else { return String::new() };
    let scaled = rounded(value * 10f64.powi(scale.into()));
    *state = if matches!(behaviour, Behaviour::Walk { .. }) { value } else { *state };
    format_scaled(scaled.clamp(min, max), scale)
}

/// An index into a list that is not empty.
fn place(number: u64, length: usize) -> usize {
    usize::try_from(number).unwrap_or(0).min(length - 1)
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, and bounds are clamped after")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

fn below(rng: &mut impl Rng, limit: u64) -> u64 {
    rng.next_u64() % limit.max(1)
}

fn between(rng: &mut impl Rng, low: f64, high: f64) -> f64 {
    let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    low + unit * (high - low)
}

fn skewed(rng: &mut impl Rng, most: u32) -> f64 {
    let unit = between(rng, 0.0, 1.0);
    (unit * unit * (f64::from(most) + 1.0)).floor().min(f64::from(most))
}
