//! A stream of a recording as a device's events, read as a replay reads it.

use super::AHEAD;
use super::lines::Line;
use crate::replay::report_refused;
use alpheus_input::files::unpacked;
use alpheus_input::rows::{RecordedStream, read};
use alpheus_input::source::Source;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::note;
use alpheus_policy::schema::Schema;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

/// Reads the recording, and passes on the events of one stream, in order. Rows that are refused
/// are reported.
///
/// # Errors
/// A [`Failure`] if a file cannot be read, or it is not clear which stream is meant.
pub(super) fn lines(
    input: &Path,
    source: &Path,
    key: Option<&str>,
    schema: &Schema,
) -> Result<Receiver<Result<Line, Failure>>, Failure> {
    let source = Source::parse(&read_text(source)?, schema).blame_input(source)?;
    let file: Box<dyn Read + Send> = match input == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => unpacked(input, File::open(input).blame_io(input)?),
    };
    let recording = read(file, &source, schema, schema.tick).blame_input(input)?;
    // If standard error is closed, nobody can be notified.
    let _ = report_refused(&mut note::lines(), &recording.refused);
    let stream = one(recording.streams, key)
        .map_err(|(what, help)| Failure::new(Category::Input, what).with_help(help))
        .map_err(|failure| failure.at(input.display().to_string()).with_id(ErrorId::NotFound))?;
    let (sender, receiver) = sync_channel(AHEAD);
    let name = input.display().to_string();
    std::thread::spawn(move || {
        for event in stream.events() {
            let line = Line {
                place: format!("{name}:{}", event.line),
                time: Some(event.time),
                cells: event.cells.to_vec(),
                record: None,
            };
            if sender.send(Ok(line)).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// The stream of this key, or the only one. The error says why it is not clear, and a remedy.
fn one(
    streams: Vec<RecordedStream>,
    key: Option<&str>,
) -> Result<RecordedStream, (String, &'static str)> {
    let all = streams.into_iter().filter(|stream| !stream.is_empty()).collect::<Vec<_>>();
    let many = all.len();
    let mut fitting: Vec<_> =
        all.into_iter().filter(|stream| key.is_none_or(|key| stream.key == key)).collect();
    match (fitting.pop(), fitting.is_empty(), key) {
        (Some(stream), true, _) => Ok(stream),
        (_, _, None) if many > 0 => Err((
            format!("the recording has {many} streams, and a device sends one"),
            "name the stream with --key, as the column that source.yaml names has it",
        )),
        (_, _, Some(_)) if many > 0 => Err((
            format!("none of the recording's {many} streams has the key of --key"),
            "write the key as the column that source.yaml names has it",
        )),
        _ => Err((
            "no row of the recording can be used".to_owned(),
            "fix the rows, or the source file and schema that describe them",
        )),
    }
}
