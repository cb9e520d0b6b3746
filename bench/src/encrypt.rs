//! Encoding and encrypting one event, from its values to its frame.

use crate::BenchError;
use crate::floors;
use crate::measure::Effort;
use crate::report::{Figure, Goal};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{Producer, Session, Start};
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{AttributeKind, Schema};
use alpheus_time::Timestamp;
use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use std::hint::black_box;

/// The number of different events, used in turn to defeat branch prediction.
const EVENTS: usize = 64;

/// Each listed encoding and the three applications.
pub(crate) fn figures(
    effort: Effort,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (name, yaml) in single_encodings().into_iter().chain(applications()) {
        say(&format!("encode and encrypt: {name}"));
        figures.push(figure(effort, &name, &yaml)?);
    }
    Ok(figures)
}

fn applications() -> [(String, String); 3] {
    [
        ("car maintenance", include_str!("../../examples/car-maintenance/schema.yaml")),
        ("fitness", include_str!("../../examples/fitness/schema.yaml")),
        ("web analytics", include_str!("../../examples/web-analytics/schema.yaml")),
    ]
    .map(|(name, yaml)| (name.to_owned(), format!("frames: events\n{yaml}")))
}

fn single_encodings() -> [(String, String); 5] {
    [
        ("sum", "sum"),
        ("mean", "mean"),
        ("variance", "var"),
        ("linear regression", "regression: { x: y }"),
        ("histogram of 10", "histogram: { lo: 0, width: 100, bins: 10 }"),
    ]
    .map(|(name, aggregation)| (name.to_owned(), schema_of(aggregation)))
}

/// One attribute with one aggregation, and a second where it explains the first.
fn schema_of(aggregation: &str) -> String {
    let attribute =
        |name| format!("  - name: {name}\n    type: integer\n    min: 0\n    max: 1000\n");
    let explaining =
        if aggregation.starts_with("regression") { attribute("y") } else { String::new() };
    format!(
        "name: Bench\nversion: 1\nframes: events\ntick: 10s\n\
         capacity: {{ population: 10000, eventsPerSecond: 2, window: 1hr }}\n\
         streamAttributes:\n{}    aggregations:\n      - {aggregation}\n{explaining}",
        attribute("x"),
    )
}

fn figure(effort: Effort, name: &str, yaml: &str) -> Result<Figure, BenchError> {
    let schema = Schema::from_yaml(yaml).map_err(|_| BenchError::Schema)?;
    let layout = Layout::of(&schema).map_err(|_| BenchError::Schema)?;
    let encoder = Encoder::new(&schema, &layout).map_err(|_| BenchError::Schema)?;
    let mut rng = ChaCha12Rng::from_seed([3; 32]);
    let events: Vec<Vec<Value<'static>>> = (0..EVENTS).map(|_| event(&schema, &mut rng)).collect();
    let addends: Vec<Vec<(u16, u64)>> =
        events.iter().map(|event| encoded(&encoder, event)).collect();
    let mut session = session(&schema, &layout, &mut rng)?;
    let mut floor = floors::encrypt::Stream::new(usize::from(layout.words));
    let (mut t, mut floor_t, mut turn, mut bytes) = (session.last().0, 0, 0, 0);
    let compared = effort.compare(
        || {
            floor_t += 1;
            black_box(floor.event(floor_t, black_box(&addends[turn_of(floor_t)])));
        },
        || {
            t += 1;
            turn = turn_of(t);
            let event = black_box(&events[turn]);
            let done = session.event(
                Timestamp(t),
                |vector| encoder.encode(event, &mut rng, |word, addend| vector.add(word, addend)),
                &mut |frame| bytes += black_box(frame).len(),
            );
            debug_assert!(done.is_ok());
        },
    );
    let name = format!("{name} ({} words)", layout.words - 1);
    Ok(Figure::compared("encode and encrypt", name, "ns", compared)
        .with_goal(Goal::RatioAtMost(1.5)))
}

fn turn_of(t: u64) -> usize {
    usize::try_from(t).unwrap_or(0) % EVENTS
}

/// Values within the attributes' bounds, the numbers in their lower part, where
/// histograms have bins.
fn event(schema: &Schema, rng: &mut ChaCha12Rng) -> Vec<Value<'static>> {
    let value = |kind: &AttributeKind| match *kind {
        AttributeKind::Number { min, max, .. } => {
            let range = max.abs_diff(min).clamp(1, 1000);
            Value::Number(min.saturating_add_unsigned(rng.next_u64() % range))
        }
        AttributeKind::Boolean => Value::Boolean(rng.next_u32() & 1 == 1),
        AttributeKind::Text { .. } => Value::Text(b"text"),
    };
    schema.attributes.iter().map(|attribute| &attribute.kind).map(value).collect()
}

fn encoded(encoder: &Encoder, event: &[Value<'_>]) -> Vec<(u16, u64)> {
    let (mut addends, mut rng) = (Vec::new(), ChaCha12Rng::from_seed([4; 32]));
    let done = encoder.encode(event, &mut rng, |word, addend| addends.push((word, addend)));
    debug_assert!(done.is_ok());
    addends
}

fn session(schema: &Schema, layout: &Layout, rng: &mut ChaCha12Rng) -> Result<Session, BenchError> {
    let master = MasterSecret::new(Secret::from_bytes([1; 32]));
    Producer::for_schema(&master, StreamId([2; 16]), schema, layout)
        .map_err(|_| BenchError::Schema)?
        .open(Start::First, Timestamp(1_700_000_000_000_000), rng, &mut |_| ())
        .map_err(|_| BenchError::Schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_encoding_encrypts() {
        let effort = Effort { sample: Duration::from_micros(50), repeats: 1 };
        let figures = figures(effort, |_| ()).unwrap();
        assert_eq!(figures.len(), 8);
        // No event was rejected and so skipped: an event takes some time.
        assert!(figures.iter().all(|figure| figure.ours > 5.0));
    }
}
