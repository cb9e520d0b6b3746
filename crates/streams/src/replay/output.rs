//! Where a replay's results go, and its summary at the end.

use super::inputs::Inputs;
use crate::runtime::counters::Counters;
use crate::runtime::results::{self, Row};
use alpheus_input::refusals::Refusals;
use alpheus_input::rows::RecordedStream;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::settings::Format;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file of each query's results, in the order of the queries: the named file, or
/// one file per query in the named directory.
///
/// # Errors
/// A [`Failure`] if a name implies no format, or two are the same.
pub(super) fn paths(
    output: &Path,
    queries: &[PathBuf],
    format: Option<Format>,
) -> Result<Vec<PathBuf>, Failure> {
    let ending = match format {
        Some(Format::Csv) => "csv",
        _ => "json",
    };
    let wrong = |what: String, help: &'static str| {
        Err(Failure::new(Category::Usage, what).at("--output").with_help(help))
    };
    if let [_] = queries {
        return match output.extension().and_then(|ending| ending.to_str()) {
            Some("csv" | "json") => Ok(vec![output.to_owned()]),
            _ => wrong(
                "the name does not end in .csv or .json".to_owned(),
                "the extension selects the format; with several --query, name a directory",
            ),
        };
    }
    if matches!(output.extension().and_then(|ending| ending.to_str()), Some("csv" | "json")) {
        return wrong(
            format!("{} queries need a directory, and this is a file name", queries.len()),
            "name a directory; --format selects csv or json",
        );
    }
    if output.is_file() {
        return wrong(
            format!("{} queries need a directory, and this is a file", queries.len()),
            "name a directory; each query's results go to a file named after the query's file",
        );
    }
    let name =
        |query: &PathBuf| output.join(query.file_stem().unwrap_or_default()).with_extension(ending);
    let paths: Vec<PathBuf> = queries.iter().map(name).collect();
    let mut known = HashSet::new();
    match paths.iter().find(|path| !known.insert(path.as_path())) {
        Some(path) => wrong(
            format!("two queries would be written to {}", path.display()),
            "give the query files different names",
        ),
        None => Ok(paths),
    }
}

/// Checks that the results can be written, before the replay runs.
///
/// # Errors
/// A [`Failure`] that names the file or folder.
pub(super) fn check(paths: &[PathBuf], several: bool) -> Result<(), Failure> {
    for path in paths {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if several && !folder.exists() {
            std::fs::create_dir(folder).blame_io(folder)?;
        }
        if path.exists() {
            File::options().append(true).open(path).blame_io(path)?;
        } else {
            tempfile::NamedTempFile::new_in(folder).blame_io(path)?;
        }
    }
    Ok(())
}

/// Writes each query's rows to its file.
///
/// # Errors
/// A [`Failure`] that names the file.
pub(super) fn write(paths: &[PathBuf], inputs: &Inputs, rows: Vec<Row>) -> Result<(), Failure> {
    let mut by_query: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_query.entry(row.query.clone()).or_default().push(row);
    }
    for (query, path) in inputs.queries.iter().zip(paths) {
        let mut rows = by_query.remove(&query.create.name.text).unwrap_or_default();
        results::sort(&mut rows);
        write_rows(path, &rows).blame_io(path)?;
    }
    Ok(())
}

fn write_rows(path: &Path, rows: &[Row]) -> std::io::Result<()> {
    let output = BufWriter::new(File::create(path)?);
    let csv = path.extension().is_some_and(|ending| ending == "csv");
    if csv { results::write_csv(rows, output) } else { results::write_json(rows, output) }
}

/// Prints what was read, refused and released.
///
/// # Errors
/// The writer's error.
pub(super) fn report(
    out: &mut impl Write,
    inputs: &Inputs,
    counters: &Counters,
    refused: &Refusals,
) -> std::io::Result<()> {
    let recording = &inputs.recording;
    let events: usize = recording.streams.iter().map(RecordedStream::len).sum();
    writeln!(
        out,
        "{} rows read, {events} events of {} streams, {} frames ({} bytes) encrypted",
        recording.rows,
        recording.streams.len(),
        counters.frames,
        counters.bytes
    )?;
    if recording.duplicates > 0 {
        let rows = if recording.duplicates == 1 { "row equals" } else { "rows equal" };
        writeln!(
            out,
            "{} {rows} an earlier one in every cell; all are kept",
            recording.duplicates
        )?;
    }
    if recording.untimed > 0 {
        writeln!(out, "{} rows without a time left out", recording.untimed)?;
    }
    report_refused(out, &recording.refused)?;
    report_refused(out, refused)?;
    for (reason, count) in counters.refused_frames.iter().chain(&counters.refused_messages) {
        writeln!(out, "dead letters {count}: {reason}")?;
    }
    for (reason, count) in &counters.exclusions {
        writeln!(out, "streams left out of windows {count}: {reason}")?;
    }
    for (reason, count) in &counters.failed {
        writeln!(out, "windows that did not open {count}: {reason}")?;
    }
    writeln!(
        out,
        "{} windows opened, {} did not",
        counters.opened,
        counters.failed.values().sum::<u64>()
    )
}

/// Prints which rows were refused, with the lines of the first few.
///
/// # Errors
/// The writer's error.
pub(super) fn report_refused(out: &mut impl Write, refused: &Refusals) -> std::io::Result<()> {
    for (fault, count, first) in refused.kinds() {
        let rows = if count == 1 { "row" } else { "rows" };
        writeln!(out, "refused {count} {rows}: {fault}")?;
        for place in first {
            let column = place.column.as_deref().map(|name| format!(", column {name}"));
            writeln!(out, "    line {}{}", place.line, column.unwrap_or_default())?;
        }
        match count - first.len() as u64 {
            0 => {}
            more => writeln!(out, "    … and {more} more")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(
        output: &str,
        queries: &[&str],
        format: Option<Format>,
    ) -> Result<Vec<String>, String> {
        let queries: Vec<PathBuf> = queries.iter().map(PathBuf::from).collect();
        let shown = |paths: Vec<PathBuf>| paths.iter().map(|p| p.display().to_string()).collect();
        paths(Path::new(output), &queries, format).map(shown).map_err(|error| error.to_string())
    }

    #[test]
    fn one_query_has_a_file_and_several_have_a_directory() {
        let two = ["a/stats.sql", "a/daily.sql"];
        assert_eq!(named("out.csv", &two[..1], None).unwrap(), ["out.csv"]);
        assert_eq!(named("out", &two, None).unwrap(), ["out/stats.json", "out/daily.json"]);
        assert_eq!(
            named("out", &two, Some(Format::Csv)).unwrap(),
            ["out/stats.csv", "out/daily.csv"]
        );
    }

    #[test]
    fn a_name_without_a_format_is_refused() {
        assert!(named("out.txt", &["q.sql"], None).unwrap_err().contains(".csv or .json"));
        let same = named("out", &["a/q.sql", "b/q.sql"], None).unwrap_err();
        assert!(same.contains("out/q.json") && same.contains("different names"), "{same}");
        assert!(named("out.csv", &["a.sql", "b.sql"], None).unwrap_err().contains("directory"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = named(&file.path().display().to_string(), &["a.sql", "b.sql"], None);
        assert!(error.unwrap_err().contains("need a directory"));
    }
}
