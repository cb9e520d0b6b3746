//! A recorded file as samples: when, whose, how much; and the aggregates that they are of.

use crate::failure::{Blame, Category, Failure};
use crate::replay::inputs::{read_text, unpacked};
use crate::replay::rows::{self, Cell, Recording};
use crate::replay::source::{Source, SourceError, said};
use crate::stats::plan::Plan;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_policy::schema::{Attribute, AttributeKind, Capacity, Schema};
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

/// A schema of the plan's one attribute, for the readers of recordings.
fn schema(name: String, plan: &Plan) -> Schema {
    let (min, max) = (plan.interval.lowest(), plan.interval.highest());
    let attribute = Attribute {
        name: plan.attribute.clone(),
        kind: AttributeKind::Number { scale: plan.decimals, min, max },
        unit: String::new(),
        optional: true,
        aggregations: Vec::new(),
    };
    Schema {
        name,
        version: 1,
        tick: plan.every,
        capacity: Capacity { population: 0, events: 0 },
        shared_count: false,
        metadata: Vec::new(),
        attributes: vec![attribute],
        options: Vec::new(),
    }
}

/// The part of a recording that is replayed: from a time on, until before another.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first moment.
    pub from: Time,
    /// The moment after the last.
    pub until: Time,
}

/// Reads a recorded file. Rows that are refused are told, and stop nothing.
///
/// # Errors
/// If a file cannot be read, or has no sample.
pub fn read((input, source): (&Path, &Path), plan: &Plan, span: Span) -> Result<Samples, Failure> {
    let text = read_text(source)?;
    let written: Result<Source, SourceError> =
        serde_saphyr::from_str(&text).map_err(|error| SourceError::Syntax(said(&error)));
    let schema = schema(written.blame_input(source)?.schema, plan);
    let source = Source::parse(&text, &schema).blame_input(source)?;
    let file = File::open(input).blame_io(input)?;
    let recording = rows::read(unpacked(input, file), &source, &schema, plan.every);
    let recording = recording.blame_input(input)?;
    for (fault, count, places) in recording.refused.kinds() {
        let line = places.first().map_or(0, |refused| refused.line);
        eprintln!("{count} readings refused, the first in line {line}: {fault}");
    }
    let samples = collect(&recording, plan, span);
    if samples.all.is_empty() {
        return Err(Failure::new(Category::Input, NoSamples).at(input.display().to_string()));
    }
    Ok(samples)
}

fn collect(recording: &Recording, plan: &Plan, span: Span) -> Samples {
    let mut all = Vec::new();
    for (client, stream) in recording.streams.iter().enumerate() {
        for event in stream.events() {
            let time = Time(event.time.0);
            let within = span.from <= time && time < span.until;
            if let (true, Some(Cell::Number(value))) = (within, event.cells.first()) {
                all.push(Sample { time, client, value: *value });
            }
        }
    }
    all.sort_by_key(|sample| sample.time);
    let mut starts: Vec<Time> =
        all.iter().map(|sample| Time(sample.time.0 / plan.every.0 * plan.every.0)).collect();
    starts.dedup();
    let clients = recording.streams.len();
    Samples { clients, all, starts, refused: recording.refused.total() }
}
