//! A recorded file as samples with time, client and value, and the aggregates they belong to.

use crate::plan::Plan;
use alpheus_input::files::unpacked;
use alpheus_input::rows::{self, Cell, Recording};
use alpheus_input::source::{Source, SourceError, parser_message};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::note;
use alpheus_policy::schema::{Attribute, AttributeKind, Capacity, Frames, Schema};
use alpheus_time::{Span, Timestamp};
use std::fs::File;
use std::path::Path;

/// One sample.
#[derive(Clone, Copy)]
pub struct Sample {
    /// The time.
    pub time: Timestamp,
    /// The client's number.
    pub client: usize,
    /// The value in steps.
    pub value: i64,
}

/// All samples in order of time.
pub struct Samples {
    /// The number of clients.
    pub clients: usize,
    /// The samples.
    pub all: Vec<Sample>,
    /// The starts of aggregates.
    pub starts: Vec<Timestamp>,
    /// The number of rejected rows.
    pub refused: u64,
}

/// The file has no samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file has no sample for the plan in that time; check --from, --until and the rejected rows"
)]
pub struct NoSamplesError;

/// A schema of one attribute, for the readers of recordings.
fn schema(schema: String, name: String, kind: AttributeKind, every: Span) -> Schema {
    let attribute =
        Attribute { name, kind, unit: String::new(), optional: true, aggregations: Vec::new() };
    Schema {
        name: schema,
        version: 1,
        tick: every,
        capacity: Capacity { population: 0, events: 0, micro_rate: 0 },
        shared_count: false,
        frames: Frames::Events,
        metadata: Vec::new(),
        attributes: vec![attribute],
        options: Vec::new(),
    }
}

/// The part of a recording to replay.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The first moment.
    pub from: Timestamp,
    /// The moment after the last.
    pub until: Timestamp,
}

/// Reads a recorded file. Rejected rows are reported, and do not stop the replay.
///
/// # Errors
/// If a file cannot be read, or has no sample.
pub fn read((input, source): (&Path, &Path), plan: &Plan, part: Part) -> Result<Samples, Failure> {
    let (min, max) = (plan.interval.lowest(), plan.interval.highest());
    let kind = AttributeKind::Number { scale: plan.decimals, min, max };
    let attribute = plan.attribute.clone();
    let recording = recorded((input, source), plan.every, |_| (attribute, kind))?;
    let value = |cells: &[Cell]| match cells.first() {
        Some(Cell::Number(value)) => Some(*value),
        _ => None,
    };
    found(collect(&recording, plan.every, part, value), input)
}

/// Reads the times at which each client's stream has data, for counts.
///
/// # Errors
/// As [`read`].
pub fn presences(
    (input, source): (&Path, &Path),
    every: Span,
    part: Part,
) -> Result<Samples, Failure> {
    let recording = recorded((input, source), every, |source| {
        let named = source.wide.as_ref().map(|wide| wide.attribute.clone());
        let named = named.or_else(|| source.attributes.keys().next().cloned());
        (named.unwrap_or_default(), AttributeKind::Text { max_bytes: u16::MAX })
    })?;
    found(collect(&recording, every, part, |_| Some(0)), input)
}

fn found(samples: Samples, input: &Path) -> Result<Samples, Failure> {
    if samples.all.is_empty() {
        return Err(Failure::new(Category::Input, NoSamplesError).at(input.display().to_string()));
    }
    Ok(samples)
}

/// Reads a recording of one attribute, which its source may name.
fn recorded(
    (input, source): (&Path, &Path),
    every: Span,
    attribute: impl FnOnce(&Source) -> (String, AttributeKind),
) -> Result<Recording, Failure> {
    let text = read_text(source)?;
    let written: Result<Source, SourceError> =
        serde_saphyr::from_str(&text).map_err(|error| SourceError::Syntax(parser_message(&error)));
    let written = written.blame_input(source)?;
    let (name, kind) = attribute(&written);
    let schema = schema(written.schema, name, kind, every);
    let source = Source::parse(&text, &schema).blame_input(source)?;
    let file = File::open(input).blame_io(input)?;
    let recording = rows::read(unpacked(input, file), &source, &schema, every);
    let recording = recording.blame_input(input)?;
    for (fault, count, places) in recording.refused.kinds() {
        let line = places.first().map_or(0, |refused| refused.line);
        note!("{count} readings rejected, the first in line {line}: {fault}");
    }
    Ok(recording)
}

fn collect(
    recording: &Recording,
    every: Span,
    part: Part,
    value: impl Fn(&[Cell]) -> Option<i64>,
) -> Samples {
    let mut all = Vec::new();
    for (client, stream) in recording.streams.iter().enumerate() {
        for event in stream.events() {
            let time = Timestamp(event.time.0);
            let within = part.from <= time && time < part.until;
            if let (true, Some(value)) = (within, value(event.cells)) {
                all.push(Sample { time, client, value });
            }
        }
    }
    all.sort_by_key(|sample| sample.time);
    let mut starts: Vec<Timestamp> =
        all.iter().map(|sample| Timestamp(sample.time.0 / every.0 * every.0)).collect();
    starts.dedup();
    let clients = recording.streams.len();
    Samples { clients, all, starts, refused: recording.refused.total() }
}
