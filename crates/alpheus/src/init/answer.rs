//! The first answer, as people read it.

use super::Args;
use alpheus_discover::encoding::Encoding;
use alpheus_discover::write::{Files, files};
use alpheus_discover::{Part, Understanding};
use alpheus_input::tables::print_tables;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::local_time::iso_time;
use alpheus_node::settings::Format;
use alpheus_policy::show::Table;
use alpheus_stream_runtime::embedded::Controllers;
use alpheus_streams::replay;
use csv::StringRecord;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Rows of the answer that are shown.
const SHOWN_ROWS: usize = 8;
/// Digits of a number that are shown, unless it is whole.
const DIGITS: usize = 6;

/// A part of the file that the answer covers, in a folder that is removed.
struct InPart {
    folder: TempDir,
    source: PathBuf,
    input: PathBuf,
    says: String,
}

impl InPart {
    fn write(
        part: &Part,
        (bytes, found): (&[u8], &Understanding),
        name: &str,
    ) -> Result<InPart, Failure> {
        let folder = tempfile::tempdir().blame(Category::Io)?;
        let (source, input) = (folder.path().join("source.yaml"), folder.path().join("part.csv"));
        let cut = part.cut(bytes, found);
        let mut plain = found.clone();
        plain.form.encoding = Encoding::Utf8;
        for (path, text) in [(&source, &files(&plain, name, None).source), (&input, &cut.text)] {
            write_new(path, text.as_bytes(), Readers::Owner)?;
        }
        let (tally, (first, last)) = (&found.tally, part.days());
        let owners = match cut.owners {
            some if some < tally.owners => format!(" of {some} of {} owners", tally.owners),
            _ => String::new(),
        };
        let says = format!(
            "To come soon, the answer covers {first} to {last} only: {} of {} rows{owners}. The command in README.md answers for all rows; all counts and sums above are of all rows.",
            cut.rows, tally.rows
        );
        Ok(InPart { folder, source, input, says })
    }
}

/// Runs the first query over the file, or over a part if all of it would take long, and shows the
/// first rows of its answer.
pub(super) fn show(
    args: &Args,
    written: &Files,
    (bytes, found): (&[u8], &Understanding),
    folder: &Path,
    globals: &Globals,
) -> Result<(), Failure> {
    let output = folder.join("answer.csv");
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let part = written.part.as_ref().map(|part| InPart::write(part, (bytes, found), &name));
    let part = part.transpose()?;
    let replayed = replay::Args {
        schema: folder.join("schema.yaml"),
        source: part.as_ref().map_or_else(|| folder.join("source.yaml"), |own| own.source.clone()),
        input: part.as_ref().map_or_else(|| args.file.clone(), |own| own.input.clone()),
        policies: Some(folder.join("policies.yaml")),
        query: vec![folder.join("query.sql")],
        controllers: replay::ControllerCount(Controllers::Count(1)),
        masks: None,
        membership: None,
        tick: None,
        state: None,
        max_refused: replay::MaxRefused::default(),
        output: output.clone(),
    };
    replay::run(&replayed, globals)?;
    let mut reader = csv::Reader::from_path(&output).blame_io(&output)?;
    let columns = Columns::of(reader.headers().blame_io(&output)?);
    let records = reader.records().filter_map(Result::ok);
    let rows: Vec<Vec<String>> = records.map(|record| columns.row(&record)).collect();
    let all = rows.len();
    let title = format!("First answer, in windows of {}", written.window);
    let rows = rows.into_iter().take(SHOWN_ROWS).collect();
    let table = Table { title, columns: columns.names(), rows };
    let mut text = Vec::new();
    print_tables(&[table], Format::Table, &mut text).blame_io(&output)?;
    let mut out = std::io::stdout().lock();
    let _ = printed(
        out.write_all(&text)
            .and_then(|()| writeln!(out, "{all} rows with all columns, in {}", output.display()))
            .and_then(|()| match &part {
                Some(part) => writeln!(out, "{}", part.says),
                None => Ok(()),
            }),
    )?;
    part.map_or(Ok(()), |part| part.folder.close().blame(Category::Io))
}

/// The columns that are shown: of each attribute its mean, or its count, with the time, the owners
/// and the status of each window.
struct Columns {
    header: StringRecord,
    shown: Vec<usize>,
}

impl Columns {
    fn of(header: &StringRecord) -> Columns {
        let has = |name: String| header.iter().any(|other| other == name);
        let is_shown = |name: &str| match name.split_once('_') {
            Some(("avg", _)) => true,
            Some(("count", of)) => !has(format!("avg_{of}")),
            _ => matches!(name, "window_start" | "population" | "status"),
        };
        let shown = header.iter().enumerate().filter(|(_, name)| is_shown(name));
        Columns { shown: shown.map(|(at, _)| at).collect(), header: header.clone() }
    }

    fn names(&self) -> Vec<String> {
        let name = |at: &usize| match self.header.get(*at) {
            Some("population") => "owners".to_owned(),
            name => name.unwrap_or_default().to_owned(),
        };
        self.shown.iter().map(name).collect()
    }

    fn cell<'r>(&self, record: &'r StringRecord, name: &str) -> &'r str {
        let at = self.header.iter().position(|other| other == name);
        at.and_then(|at| record.get(at)).unwrap_or_default()
    }

    fn row(&self, record: &StringRecord) -> Vec<String> {
        let noise: Value = serde_json::from_str(self.cell(record, "noise")).unwrap_or_default();
        let cell = |at: &usize| {
            let name = self.header.get(*at).unwrap_or_default();
            let cell = shown(name, record.get(*at).unwrap_or_default());
            match noise.get(name).and_then(|own| own.get("margin_95")).and_then(Value::as_f64) {
                Some(margin) if !cell.is_empty() => format!("{cell} ±{}", digits(margin, 2)),
                _ => cell,
            }
        };
        self.shown.iter().map(cell).collect()
    }
}

/// A cell for people: times as text, and numbers without the digits that nobody reads.
fn shown(column: &str, cell: &str) -> String {
    let is_time = matches!(column, "window_start" | "window_end");
    if let Some(unix_ms) = cell.parse().ok().filter(|_| is_time) {
        return iso_time(unix_ms);
    }
    match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') && number.is_finite() => digits(number, DIGITS),
        _ => cell.to_owned(),
    }
}

/// A number with so many digits, or all that stand before the point.
fn digits(number: f64, digits: usize) -> String {
    let (mut places, mut size) = (digits.saturating_sub(1), number.abs());
    while size >= 10.0 && places > 0 {
        (size, places) = (size / 10.0, places - 1);
    }
    while size > 0.0 && size < 1.0 && places < 12 {
        (size, places) = (size * 10.0, places + 1);
    }
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_texts_and_numbers_with_few_digits() {
        assert_eq!(shown("window_start", "1700000000000"), "2023-11-14T22:13:20Z");
        assert_eq!(shown("sum_of_time", "1700000000000"), "1700000000000");
        for (cell, text) in [
            ("4957.921428571429", "4957.92"),
            ("0.5180282738095238", "0.518028"),
            ("0.50", "0.5"),
            ("1234567.5", "1234568"),
            ("-0.00001234", "-0.00001234"),
            ("ok", "ok"),
            ("", ""),
        ] {
            assert_eq!(shown("avg_x", cell), text);
        }
    }

    #[test]
    fn each_attribute_has_a_column_and_each_row_its_status() {
        let header = "window_start,window_end,count_a,sum_a,avg_a,count_b,population,silent,excluded,status,noise,mostly_noise";
        let columns = Columns::of(&header.split(',').collect());
        let names = ["window_start", "avg_a", "count_b", "owners", "status"];
        assert_eq!(columns.names(), names);
        let noise = r#"{"avg_a":{"deviation":0.12,"margin_95":0.2567}}"#;
        let cells = ["0", "9", "3", "6.0", "2.0", "7", "12", "0", "0", "ok", noise, "[]"];
        let row = columns.row(&cells.iter().copied().collect());
        assert_eq!(row, ["1970-01-01T00:00:00Z", "2 ±0.26", "7", "12", "ok"]);
    }
}
