//! Lines of input as cells of the schema: JSON objects, or CSV with a header.

use super::outbox::Record;
use alpheus_input::cells::parse_cell;
use alpheus_input::convert::{ConvertError, cells_of_line};
use alpheus_input::files::{decompressed, unpacked};
use alpheus_input::rows::Cell;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::schema::{Attribute, Schema};
use alpheus_time::Timestamp;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LineFormat {
    /// One JSON object per line
    Json,
    /// CSV with a header
    Csv,
}

/// One event's values.
pub struct Line {
    /// File and line, for error messages.
    pub place: String,
    /// The event's time, if the line has one.
    pub time: Option<Timestamp>,
    /// In the order of the schema's attributes.
    pub cells: Vec<Cell>,
    /// The record that holds it until a border after it is durable, if one does. Then it is sent
    /// again where a session is lost.
    pub record: Option<Record>,
}

/// Reads lines one by one.
pub struct Lines {
    source: Source,
    name: String,
    number: u64,
    time: Option<String>,
    attributes: Vec<Attribute>,
}

enum Source {
    Json(Box<dyn BufRead + Send>),
    Csv { reader: Box<csv::Reader<Box<dyn Read + Send>>>, header: Vec<String> },
}

impl Lines {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(
        path: &Path,
        format: Option<LineFormat>,
        time: Option<&str>,
        schema: &Schema,
    ) -> Result<Lines, Failure> {
        let name = path.to_string_lossy();
        let name = name.trim_end_matches(".gz");
        // Parquet is read as the CSV that it is converted to.
        let is_csv = name.ends_with(".csv") || name.ends_with(".parquet");
        let format = format.unwrap_or(if is_csv { LineFormat::Csv } else { LineFormat::Json });
        let input: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            let file = File::open(path).blame_io(path)?;
            match format {
                LineFormat::Json => decompressed(path, file),
                LineFormat::Csv => unpacked(path, file),
            }
        };
        let source = match format {
            LineFormat::Json => Source::Json(Box::new(BufReader::new(input))),
            LineFormat::Csv => {
                let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
                let header = reader.headers().blame_input(path)?;
                let header = header.iter().map(|name| name.trim().to_owned()).collect();
                Source::Csv { reader: Box::new(reader), header }
            }
        };
        Ok(Lines {
            source,
            name: path.display().to_string(),
            number: 0,
            time: time.map(str::to_owned),
            attributes: schema.attributes.clone(),
        })
    }

    /// The next line; none at the end. An invalid line is a [`Category::Input`] failure;
    /// later lines can still be read.
    #[expect(clippy::should_implement_trait, reason = "a reader, not a collection")]
    pub fn next(&mut self) -> Option<Result<Line, Failure>> {
        let fields = match self.fields()? {
            Ok(fields) => fields,
            Err(failure) => return Some(Err(failure)),
        };
        Some(self.line(&fields).map_err(|what| self.refused(what)))
    }

    fn refused(&self, what: String) -> Failure {
        Failure::new(Category::Input, what).at(format!("{}:{}", self.name, self.number))
    }

    /// The next line's fields as text.
    fn fields(&mut self) -> Option<Result<HashMap<String, String>, Failure>> {
        self.number += 1;
        match &mut self.source {
            Source::Json(input) => {
                let mut text = String::new();
                match input.read_line(&mut text) {
                    Ok(0) => None,
                    Ok(_) if text.trim().is_empty() => self.fields(),
                    Ok(_) => {
                        Some(json_fields(&text, self.number).map_err(|what| self.refused(what)))
                    }
                    Err(error) => Some(Err(Failure::new(Category::Io, error))),
                }
            }
            Source::Csv { reader, header } => {
                let mut record = csv::StringRecord::new();
                let read = reader.read_record(&mut record);
                // The header is a line, too.
                self.number = record.position().map_or(self.number, csv::Position::line);
                match read {
                    Ok(false) => None,
                    Ok(true) => {
                        let cells = record.iter().map(|cell| cell.trim().to_owned());
                        Some(Ok(header.iter().cloned().zip(cells).collect()))
                    }
                    Err(error) if error.is_io_error() => {
                        Some(Err(Failure::new(Category::Io, "cannot read the input")))
                    }
                    Err(_) => Some(Err(self.refused("not a line of CSV".to_owned()))),
                }
            }
        }
    }

    fn line(&self, fields: &HashMap<String, String>) -> Result<Line, String> {
        let cell = |attribute: &Attribute| {
            let text = fields.get(&attribute.name).map_or("", String::as_str);
            parse_cell(text, attribute).map_err(|fault| format!("{}: {fault}", attribute.name))
        };
        let cells = self.attributes.iter().map(cell).collect::<Result<_, _>>()?;
        let time = match &self.time {
            Some(column) => Some(time_of(fields.get(column), column)?),
            None => None,
        };
        Ok(Line { place: format!("{}:{}", self.name, self.number), time, cells, record: None })
    }
}

fn time_of(text: Option<&String>, column: &str) -> Result<Timestamp, String> {
    let millis = text.and_then(|text| text.parse::<u64>().ok());
    let micros = millis.and_then(|millis| millis.checked_mul(1000));
    let at = micros.map(Timestamp).filter(|at| *at < Timestamp::LIMIT);
    at.ok_or_else(|| {
        format!(
            "{column}: not a time in Unix milliseconds; times of other forms are read with --source"
        )
    })
}

/// The fields of a JSON object, each as the text that was written.
fn json_fields(text: &str, line: u64) -> Result<HashMap<String, String>, String> {
    cells_of_line(text, line).map_err(|error| match error {
        ConvertError::NotRows => {
            "not a JSON object on one line; a list of objects, or one over several lines, is read with --source".to_owned()
        }
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_input::rows::read;
    use alpheus_input::source::Source as Described;
    use alpheus_time::Span;

    const SCHEMA: &str = "
name: Meters
version: 1
tick: 1s
streamAttributes:
  - { name: power, type: decimal, scale: 1, min: -10, max: 100, aggregations: [sum] }
  - { name: on, type: boolean, optional: true, aggregations: [count] }
streamPolicyOptions:
  - { name: all, option: public }
";
    const SOURCE: &str = "
schema: Meters
time: { column: meta.at, unit: ms }
stream: meta.device
attributes: { power: power, on: on }
";

    fn lines(name: &str, text: &str) -> (Vec<Line>, Vec<String>) {
        let (folder, schema) = (tempfile::tempdir().unwrap(), Schema::from_yaml(SCHEMA).unwrap());
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut lines = Lines::open(&path, None, Some("meta.at"), &schema).unwrap();
        let (mut good, mut refused) = (Vec::new(), Vec::new());
        while let Some(line) = lines.next() {
            match line {
                Ok(line) => good.push(line),
                Err(failure) => refused.push(failure.to_string()),
            }
        }
        (good, refused)
    }

    /// Numbers in quotes, nested objects, null and a byte order mark.
    #[test]
    fn lines_of_json_are_read_as_a_replay_reads_them() {
        let text = "\u{feff}{\"power\":\"12.3\",\"on\":true,\"meta\":{\"at\":1500,\"device\":\"a\"}}\n\n\
                    {\"meta\":{\"device\":\"a\",\"at\":\"2500\"},\"power\":-1e0,\"on\":null}\n\
                    {\"meta\":{\"device\":\"a\",\"at\":3500},\"power\":\"5\",\"on\":\"no\"}\n";
        let (own, refused) = lines("lines.json", text);
        assert_eq!(refused, Vec::<String>::new());
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let source = Described::parse(SOURCE, &schema).unwrap();
        let converted = alpheus_input::convert::to_text(text.as_bytes().to_vec()).unwrap();
        let replayed = read(converted.as_slice(), &source, &schema, Span::seconds(1)).unwrap();
        let events: Vec<_> = replayed.streams[0].events().collect();
        assert_eq!((own.len(), events.len()), (3, 3));
        for (line, event) in own.iter().zip(events) {
            // Only a replay moves events that stand on a border.
            assert_eq!(line.time, Some(event.time));
            assert!(line.cells == event.cells, "{}", line.place);
        }
    }

    #[test]
    fn what_is_no_line_is_refused_with_its_place() {
        let (good, refused) = lines("lines.json", "[\n{\"power\":1,\"power\":2}\n{\"power\":1}\n");
        assert!(good.is_empty());
        let says =
            ["lines.json:1: not a JSON object on one line; a list", "two members", "meta.at"];
        assert!(refused.iter().zip(says).all(|(said, part)| said.contains(part)), "{refused:?}");
        let (good, refused) = lines("lines.csv", "power,meta.at\n5,1500\nmuch,2500\n6,x\n");
        assert!(good[0].place.ends_with("lines.csv:2"), "{}", good[0].place);
        assert!(refused[0].contains("lines.csv:3: power"), "{refused:?}");
        let untimed = "lines.csv:4: meta.at: not a time in Unix milliseconds; times of other forms";
        assert!(refused[1].contains(untimed), "{refused:?}");
    }
}
