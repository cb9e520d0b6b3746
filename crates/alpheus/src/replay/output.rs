//! Where a replay's results go, and what it says of itself at the end.

use super::inputs::Inputs;
use super::refused::Refusals;
use super::rows::RecordedStream;
use crate::commands::Format;
use crate::failure::{Blame, Category, Failure};
use crate::runtime::results::{self, Row};
use crate::runtime::watch::Counters;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file of each query's results, in the order of the queries: the one that
/// was named, or one a query in the directory that was.
///
/// # Errors
/// A [`Failure`] if a name does not say what to write, or two are the same.
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
                "its ending says what is written; with several --query name a directory",
            ),
        };
    }
    if matches!(output.extension().and_then(|ending| ending.to_str()), Some("csv" | "json")) {
        return wrong(
            format!("{} queries need a directory, and this is the name of a file", queries.len()),
            "name a directory; --format csv or json says what is written there",
        );
    }
    if output.is_file() {
        return wrong(
            format!("{} queries need a directory, and this is a file", queries.len()),
            "name a directory; each query's results go to a file there that is called after its own",
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

/// Makes sure that the results can be written, before there are any.
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

/// Says what was read, refused and released.
///
/// # Errors
/// What the writer says.
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

/// Says which rows were refused and where the first few stand.
///
/// # Errors
/// What the writer says.
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
    fn a_name_that_does_not_say_what_to_write_is_refused() {
        assert!(named("out.txt", &["q.sql"], None).unwrap_err().contains(".csv or .json"));
        let same = named("out", &["a/q.sql", "b/q.sql"], None).unwrap_err();
        assert!(same.contains("out/q.json") && same.contains("different names"), "{same}");
        assert!(named("out.csv", &["a.sql", "b.sql"], None).unwrap_err().contains("directory"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = named(&file.path().display().to_string(), &["a.sql", "b.sql"], None);
        assert!(error.unwrap_err().contains("need a directory"));
    }
}
