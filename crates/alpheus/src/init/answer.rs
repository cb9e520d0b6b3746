//! The first answer, as people read it.

use super::Args;
use super::progress::Passes;
use alpheus_discover::clock::Region;
use alpheus_discover::encoding::Encoding;
use alpheus_discover::times::Zone;
use alpheus_discover::write::{Files, files};
use alpheus_discover::{Part, Understanding};
use alpheus_input::tables::print_tables;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::local_time::local_time;
use alpheus_node::settings::Format;
use alpheus_policy::show::Table;
use alpheus_stream_runtime::embedded_deployment::Controllers;
use alpheus_stream_runtime::results::has_opened;
use alpheus_streams::replay::{self, counted};
use csv::StringRecord;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Rows of the answer that are shown.
const SHOWN_ROWS: usize = 8;
/// Digits of a number that are shown, unless it is whole.
const DIGITS: usize = 6;

/// Why windows of days do not begin at midnight.
const UTC_DAYS: &str = "Windows of days begin at midnight in UTC, at another hour of the file's zone. For days as the file's clocks show them, leave the zone out (no `--zone`, no `zone` in source.yaml): times are then read as if they were in UTC.";

/// A part of the file that the answer covers, in a folder that is removed.
struct InPart {
    folder: TempDir,
    source: PathBuf,
    input: PathBuf,
    caption: String,
    covers: String,
    /// All rows take about so many times as long.
    times: u64,
}

impl InPart {
    fn write(
        part: &Part,
        (bytes, found): (&[u8], &Understanding),
        name: &str,
    ) -> Result<InPart, Failure> {
        let folder = tempfile::tempdir().blame(Category::Io)?;
        let (source, input) = (folder.path().join("source.yaml"), folder.path().join("part.csv"));
        // Of a file with a column for each owner, the long form.
        let bytes = found.wide.as_ref().map_or(bytes, |wide| wide.long().as_bytes());
        let cut = part.cut(bytes, found, &mut Passes::start("MB searched for the first answer"));
        let mut plain = found.clone();
        (plain.form.encoding, plain.wide) = (Encoding::Utf8, None);
        // The part has lines of its own, and no totals.
        plain.form.totals.clear();
        for (path, text) in [(&source, &files(&plain, name, None).source), (&input, &cut.text)] {
            write_new(path, text.as_bytes(), Readers::Owner)?;
        }
        let (tally, (first, last)) = (&found.tally, part.days());
        let (of, each) = match cut.owners < cut.of {
            true => (
                format!(
                    "{} of the {} owners who have data from {first} to {last}",
                    cut.owners, cut.of
                ),
                ", with all that each has there",
            ),
            false => (format!("{first} to {last} only"), ""),
        };
        let covers = format!(
            "To be quick, this answer covers only a part of the file: {of}{each}, which is {} of {} rows. The counts and sums of columns above cover all rows.",
            cut.rows, tally.rows
        );
        let caption = format!(", of a part of the file: {of}");
        Ok(InPart { folder, source, input, caption, covers, times: part.times() })
    }

    /// What the answer covers, and how long one for the whole file would take.
    fn says(&self, took: Duration) -> String {
        let all = took.saturating_mul(u32::try_from(self.times).unwrap_or(u32::MAX));
        format!(
            "{} Results for the whole file differ. The command in README.md computes them, which would take about {} on this machine.",
            self.covers,
            about(all)
        )
    }
}

/// A length of time, roughly.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => counted(seconds.max(1), "second"),
        seconds @ 60..7200 => counted(seconds.div_ceil(60), "minute"),
        seconds => counted(seconds.div_ceil(3600), "hour"),
    }
}

/// The first query, over rows of this input as this source file reads them.
fn replayed(folder: &Path, (source, input): (PathBuf, PathBuf), output: PathBuf) -> replay::Args {
    replay::Args {
        schema: folder.join("schema.yaml"),
        source,
        input,
        policies: Some(folder.join("policies.yaml")),
        query: vec![folder.join("query.sql")],
        controllers: replay::ControllerCount(Controllers::Count(1)),
        masks: None,
        membership: None,
        tick: None,
        state: None,
        max_refused: replay::MaxRefused::default(),
        output,
    }
}

/// If no window opened and none of any length would: why.
fn explained(failure: Failure, written: &Files) -> Failure {
    match &written.lonely {
        Some(lonely) if failure.category() == Category::Check => failure.with_help(lonely),
        _ => failure,
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
    let (source, input) = match &part {
        Some(part) => (part.source.clone(), part.input.clone()),
        None => (folder.join("source.yaml"), args.file.clone()),
    };
    let replayed = replayed(folder, (source, input), output.clone());
    let start = Instant::now();
    replay::run(&replayed, globals).map_err(|failure| explained(failure, written))?;
    let took = start.elapsed();
    let mut reader = csv::Reader::from_path(&output).blame_io(&output)?;
    let columns = Columns::of(reader.headers().blame_io(&output)?, Clocks::of(found));
    let mut records: Vec<StringRecord> = reader.records().filter_map(Result::ok).collect();
    let all = records.len();
    let caption = part.as_ref().map_or("", |part| &part.caption);
    let opened = columns.keep_opened(&mut records);
    let (window, zone) = (&written.window, &columns.clocks.says);
    let cut = cut_off(&mut records);
    let mut rows: Vec<Vec<String>> = records.iter().map(|record| columns.row(record)).collect();
    let title = format!("First answer, in windows of {window}, {zone}{caption}{opened}{cut}");
    if part.is_some() {
        columns.mark_part(&mut rows);
    }
    let table = Table { title, columns: columns.names(), rows };
    let mut text = Vec::new();
    print_tables(&[table], Format::Table, &mut text).blame_io(&output)?;
    let all = counted(all as u64, "row");
    let rows = format!(
        "{all} with all columns, and times in milliseconds since 1970, in {}",
        output.display()
    );
    let days = columns.clocks.shifts_days(window).then(|| UTC_DAYS.to_owned());
    let part_says = part.as_ref().map(|part| part.says(took));
    let mut below = [Some(rows), written.not_asked.clone(), days, part_says].into_iter().flatten();
    let mut out = std::io::stdout().lock();
    let _ = printed(
        out.write_all(&text).and_then(|()| below.try_for_each(|line| writeln!(out, "{line}"))),
    )?;
    part.map_or(Ok(()), |part| part.folder.close().blame(Category::Io))
}

/// Keeps the first rows, and says so if others are not shown.
fn cut_off(records: &mut Vec<StringRecord>) -> String {
    let many = records.len() > SHOWN_ROWS;
    records.truncate(SHOWN_ROWS);
    if many { format!("; the first {SHOWN_ROWS} are shown") } else { String::new() }
}

/// The clocks whose times are shown.
struct Clocks {
    /// None: those of this machine.
    zone: Option<Region>,
    says: String,
}

impl Clocks {
    /// Those of the file, so that times are the ones that people know from it.
    fn of(found: &Understanding) -> Clocks {
        let of = |zone, says: &str| Clocks { zone, says: says.to_owned() };
        match &found.time.zone {
            Zone::Fixed(region, _) => {
                of(Some(region.clone()), &format!("times in {}", found.zone_text()))
            }
            Zone::Unstated => of(Some(Region::default()), "times as in the file"),
            Zone::InValue => of(None, "times in the zone of this machine"),
        }
    }

    /// Whether windows of this length begin at another hour than midnight of these clocks.
    fn shifts_days(&self, window: &str) -> bool {
        let of_days = window.ends_with("DAY") || window.ends_with("DAYS");
        of_days && self.zone.as_ref().is_some_and(|zone| *zone != Region::default())
    }

    fn show(&self, unix_ms: u64) -> String {
        let of_file = self.zone.as_ref().and_then(|zone| zone.local_text(unix_ms));
        of_file.unwrap_or_else(|| local_time(unix_ms))
    }
}

/// The columns that are shown: of each attribute its mean, or its count, with the time, the owners
/// and the status of each window.
struct Columns {
    header: StringRecord,
    shown: Vec<usize>,
    clocks: Clocks,
}

impl Columns {
    fn of(header: &StringRecord, clocks: Clocks) -> Columns {
        let has = |name: String| header.iter().any(|other| other == name);
        let is_shown = |name: &str| match name.split_once('_') {
            Some(("avg", _)) => true,
            Some(("count", of)) => !has(format!("avg_{of}")),
            _ => matches!(name, "window_start" | "population" | "status"),
        };
        let shown = header.iter().enumerate().filter(|(_, name)| is_shown(name));
        Columns { shown: shown.map(|(at, _)| at).collect(), header: header.clone(), clocks }
    }

    fn names(&self) -> Vec<String> {
        let name = |at: &usize| match self.header.get(*at) {
            Some("population") => "owners".to_owned(),
            name => name.unwrap_or_default().to_owned(),
        };
        self.shown.iter().map(name).collect()
    }

    /// Keeps the records of windows with a result, if there are any; says so if others are left out.
    fn keep_opened(&self, records: &mut Vec<StringRecord>) -> String {
        let opened = |record: &StringRecord| has_opened(self.cell(record, "status"));
        let (all, open) = (records.len(), records.iter().filter(|own| opened(own)).count());
        if open == 0 || open == all {
            return String::new();
        }
        records.retain(opened);
        format!("; {open} of {all} have a result")
    }

    /// Says in each row's status that it covers a part.
    fn mark_part(&self, rows: &mut [Vec<String>]) {
        let status = self.names().iter().position(|name| name == "status");
        for own in rows.iter_mut().filter_map(|row| row.get_mut(status?)) {
            own.push_str(", of a part");
        }
    }

    fn cell<'r>(&self, record: &'r StringRecord, name: &str) -> &'r str {
        let at = self.header.iter().position(|other| other == name);
        at.and_then(|at| record.get(at)).unwrap_or_default()
    }

    fn row(&self, record: &StringRecord) -> Vec<String> {
        let noise: Value = serde_json::from_str(self.cell(record, "noise")).unwrap_or_default();
        let cell = |at: &usize| {
            let name = self.header.get(*at).unwrap_or_default();
            let cell = shown((name, record.get(*at).unwrap_or_default()), &self.clocks);
            match noise.get(name).and_then(|own| own.get("margin_95")).and_then(Value::as_f64) {
                Some(margin) if !cell.is_empty() => format!("{cell} ±{}", digits(margin, 2)),
                _ => cell,
            }
        };
        let mut row: Vec<String> = self.shown.iter().map(cell).collect();
        let mostly: Vec<String> =
            serde_json::from_str(self.cell(record, "mostly_noise")).unwrap_or_default();
        let status = self.names().iter().position(|name| name == "status");
        if let Some(own) = status.and_then(|at| row.get_mut(at)).filter(|_| !mostly.is_empty()) {
            own.push_str(", mostly noise");
        }
        row
    }
}

/// A cell for people: times as text, and numbers without the digits that nobody reads.
fn shown((column, cell): (&str, &str), clocks: &Clocks) -> String {
    let is_time = matches!(column, "window_start" | "window_end");
    if let Some(unix_ms) = cell.parse().ok().filter(|_| is_time) {
        return clocks.show(unix_ms);
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

    fn clocks(seconds: i32) -> Clocks {
        Clocks { zone: Some(Region::Fixed(seconds)), says: String::new() }
    }

    #[test]
    fn times_are_shown_as_texts_and_numbers_with_few_digits() {
        let clocks = clocks(3600);
        let shown = |column, cell| shown((column, cell), &clocks);
        assert_eq!(shown("window_start", "1700000000000"), "2023-11-14 23:13:20");
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
    fn windows_with_a_result_are_shown_first_and_a_part_says_so() {
        let header = ["window_start", "count_a", "status", "mostly_noise"];
        let columns = Columns::of(&header.into_iter().collect(), clocks(0));
        let record = |status, mostly| StringRecord::from(vec!["0", "1", status, mostly]);
        let below = "population below the minimum 10";
        let mut records =
            vec![record(below, ""), record("ok", "[]"), record("ok", r#"["count_a"]"#)];
        assert_eq!(columns.keep_opened(&mut records), "; 2 of 3 have a result");
        let mut rows: Vec<_> = records.iter().map(|record| columns.row(record)).collect();
        columns.mark_part(&mut rows);
        let row = |status| ["1970-01-01 00:00:00", "1", status].map(str::to_owned).to_vec();
        assert_eq!(rows, [row("ok, of a part"), row("ok, mostly noise, of a part")]);
        let mut none = vec![record(below, "")];
        assert_eq!((columns.keep_opened(&mut none).as_str(), none.len()), ("", 1));
    }

    #[test]
    fn each_attribute_has_a_column_and_each_row_its_status() {
        let header = "window_start,window_end,count_a,sum_a,avg_a,count_b,population,silent,excluded,status,noise,mostly_noise";
        let columns = Columns::of(&header.split(',').collect(), clocks(0));
        let names = ["window_start", "avg_a", "count_b", "owners", "status"];
        assert_eq!(columns.names(), names);
        let noise = r#"{"avg_a":{"deviation":0.12,"margin_95":0.2567}}"#;
        let cells = ["0", "9", "3", "6.0", "2.0", "7", "12", "0", "0", "ok", noise, "[]"];
        let row = columns.row(&cells.iter().copied().collect());
        assert_eq!(row, ["1970-01-01 00:00:00", "2 ±0.26", "7", "12", "ok"]);
        let cells = ["0", "9", "3", "6.0", "0.2", "7", "12", "0", "0", "ok", noise, r#"["avg_a"]"#];
        let row = columns.row(&cells.iter().copied().collect());
        assert_eq!(row[4], "ok, mostly noise");
    }
}
