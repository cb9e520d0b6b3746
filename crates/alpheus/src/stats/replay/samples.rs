//! A recorded file as samples: when, whose, how much; and the aggregates that they are of.

use crate::failure::{Blame, Category, Failure};
use crate::replay::inputs::{read_text, unpacked};
use crate::replay::rows::{self, Cell, Recording};
use crate::replay::source::{Source, SourceError, said};
use crate::stats::plan::Plan;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_policy::schema::{Attribute, AttributeKind, Capacity, Schema};
use alpheus_policy::time::Span;
use std::fs::File;
use std::path::Path;

/// One sample.
#[derive(Clone, Copy)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// Whose, by number.
    pub client: usize,
    /// In steps.
    pub value: i64,
}

/// All of them, in order of time.
pub struct Samples {
    /// How many clients there are.
    pub clients: usize,
    /// The samples.
    pub all: Vec<Sample>,
    /// Where aggregates begin.
    pub starts: Vec<Time>,
    /// Rows that were refused.
    pub refused: u64,
}

/// A file that no statistics can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file has no sample that the plan takes in that time; see --from, --until and the rows that were refused"
)]
pub struct NoSamples;

/// A schema of one attribute, for the readers of recordings.
fn schema(schema: String, name: String, kind: AttributeKind, every: Span) -> Schema {
    let attribute =
        Attribute { name, kind, unit: String::new(), optional: true, aggregations: Vec::new() };
    Schema {
        name: schema,
        version: 1,
        tick: every,
        capacity: Capacity { population: 0, events: 0 },
        shared_count: false,
        metadata: Vec::new(),
        attributes: vec![attribute],
        options: Vec::new(),
    }
}

/// The part of a recording that is replayed: from a time on, until before another.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The first moment.
    pub from: Time,
    /// The moment after the last.
    pub until: Time,
}

/// Reads a recorded file. Rows that are refused are told, and stop nothing.
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

/// Reads when whose stream has anything at all, for counts of who was there.
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
        return Err(Failure::new(Category::Input, NoSamples).at(input.display().to_string()));
    }
    Ok(samples)
}

/// A recording of one attribute, which may be named by its source.
fn recorded(
    (input, source): (&Path, &Path),
    every: Span,
    attribute: impl FnOnce(&Source) -> (String, AttributeKind),
) -> Result<Recording, Failure> {
    let text = read_text(source)?;
    let written: Result<Source, SourceError> =
        serde_saphyr::from_str(&text).map_err(|error| SourceError::Syntax(said(&error)));
    let written = written.blame_input(source)?;
    let (name, kind) = attribute(&written);
    let schema = schema(written.schema, name, kind, every);
    let source = Source::parse(&text, &schema).blame_input(source)?;
    let file = File::open(input).blame_io(input)?;
    let recording = rows::read(unpacked(input, file), &source, &schema, every);
    let recording = recording.blame_input(input)?;
    for (fault, count, places) in recording.refused.kinds() {
        let line = places.first().map_or(0, |refused| refused.line);
        eprintln!("{count} readings refused, the first in line {line}: {fault}");
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
            let time = Time(event.time.0);
            let within = part.from <= time && time < part.until;
            if let (true, Some(value)) = (within, value(event.cells)) {
                all.push(Sample { time, client, value });
            }
        }
    }
    all.sort_by_key(|sample| sample.time);
    let mut starts: Vec<Time> =
        all.iter().map(|sample| Time(sample.time.0 / every.0 * every.0)).collect();
    starts.dedup();
    let clients = recording.streams.len();
    Samples { clients, all, starts, refused: recording.refused.total() }
}
