//! Where a replay's results go, and its summary at the end.

use super::inputs::{Inputs, read_queries};
use crate::statement;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_input::refusals::Refusals;
use alpheus_input::rows::RecordedStream;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::STANDARD_OUTPUT;
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_stream_runtime::counters::Counters;
use alpheus_stream_runtime::results::{self, Row};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where each query's results go, in the order of the queries: the named file or standard output,
/// or one file per query in the named directory.
///
/// # Errors
/// A [`Failure`] if a name implies no format, or two are the same.
pub(super) fn paths(
    output: &Path,
    queries: &[String],
    format: Option<Format>,
) -> Result<Vec<PathBuf>, Failure> {
    let ending = match format {
        Some(Format::Csv) => "csv",
        _ => "json",
    };
    let wrong = |what: String, help: &'static str| {
        Err(Failure::new(Category::Usage, what).at("--output").with_help(help))
    };
    let many = queries.len();
    if let [_] = queries {
        return match output.extension().and_then(|ending| ending.to_str()) {
            Some("csv" | "json") => Ok(vec![output.to_owned()]),
            _ if is_standard(output) => Ok(vec![output.to_owned()]),
            _ => wrong(
                "the name does not end in .csv or .json".to_owned(),
                "the extension selects the format; with several --query, name a directory; `-` is standard output",
            ),
        };
    }
    if is_standard(output)
        || matches!(output.extension().and_then(|ending| ending.to_str()), Some("csv" | "json"))
    {
        let kind = if is_standard(output) { "standard output" } else { "a file name" };
        return wrong(
            format!("{many} queries need a directory, but this is {kind}"),
            "name a directory; --format selects csv or json",
        );
    }
    if output.is_file() {
        return wrong(
            format!("{many} queries need a directory, but this is a file"),
            "name a directory; each query's results go to a file named after the query's file",
        );
    }
    let name = |query: &String| output.join(query).with_extension(ending);
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

/// The names of queries' files without their endings; of those that are given as text, the queries'
/// own names.
///
/// # Errors
/// Such a text is no query.
pub(super) fn names(queries: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let name = |argument: &PathBuf| match statement::is_file(argument) {
        true => Ok(argument.file_stem().unwrap_or_default().to_string_lossy().into_owned()),
        false => {
            let read = read_queries(std::slice::from_ref(argument))?;
            Ok(read.into_iter().map(|query| query.create.name.text).collect())
        }
    };
    queries.iter().map(name).collect()
}

fn is_standard(output: &Path) -> bool {
    output == Path::new(STANDARD_OUTPUT)
}

/// Checks that the results can be written, before the replay runs.
///
/// # Errors
/// A [`Failure`] that names the file or folder.
pub(super) fn check(paths: &[PathBuf], several: bool) -> Result<(), Failure> {
    for path in paths.iter().filter(|path| !is_standard(path)) {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if several && !folder.exists() {
            std::fs::create_dir(folder).blame_io(folder)?;
        }
        if path.exists() {
            if std::fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() > 0) {
                note!("{} already exists and will be replaced", path.display());
            }
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
pub(super) fn write(
    paths: &[PathBuf],
    inputs: &Inputs,
    rows: Vec<Row>,
    format: Option<Format>,
) -> Result<(), Failure> {
    let mut by_query: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_query.entry(row.query.clone()).or_default().push(row);
    }
    for (query, path) in inputs.queries.iter().zip(paths) {
        let mut rows = by_query.remove(&query.create.name.text).unwrap_or_default();
        results::sort(&mut rows);
        match is_standard(path) {
            true => drop(printed(print_rows(&rows, format))?),
            false => write_rows(path, &rows).blame_io(path)?,
        }
    }
    Ok(())
}

fn print_rows(rows: &[Row], format: Option<Format>) -> std::io::Result<()> {
    let out = std::io::stdout().lock();
    match format {
        Some(Format::Json) => results::write_json(rows, out),
        _ => results::write_csv(rows, out),
    }
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
        "{} read, {} of {}, {} ({} bytes) encrypted",
        counted(recording.rows, "row"),
        counted(events as u64, "event"),
        counted(recording.streams.len() as u64, "stream"),
        counted(counters.frames, "frame"),
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
        writeln!(out, "{} without a time left out", counted(recording.untimed, "row"))?;
    }
    report_refused(out, &recording.refused)?;
    report_refused(out, refused)?;
    for (reason, count) in counters.refused_frames.iter().chain(&counters.refused_messages) {
        writeln!(out, "dead letters {count}: {reason}")?;
    }
    for (reason, count) in &counters.exclusions {
        writeln!(out, "streams left out of windows {count}: {reason}{}", of_others(*reason))?;
    }
    for (reason, count) in &counters.failed {
        writeln!(out, "windows that did not open {count}: {reason}")?;
    }
    writeln!(
        out,
        "{} opened, {} did not",
        counted(counters.opened, "window"),
        counters.failed.values().sum::<u64>()
    )
}

/// That results are of the others, where those who are left out differ from them.
fn of_others(reason: ExclusionError) -> &'static str {
    match reason {
        ExclusionError::TooManyEvents => {
            "; results, and the margins of noise, are those of the others alone"
        }
        _ => "",
    }
}

/// A count with its noun, as in `1 window` and `2 windows`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Prints which rows were refused, with the lines of the first few.
///
/// # Errors
/// The writer's error.
pub(crate) fn report_refused(out: &mut impl Write, refused: &Refusals) -> std::io::Result<()> {
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
        let queries = names(&queries).unwrap();
        let shown = |paths: Vec<PathBuf>| paths.iter().map(|p| p.display().to_string()).collect();
        paths(Path::new(output), &queries, format).map(shown).map_err(|error| error.to_string())
    }

    #[test]
    fn one_query_has_a_file_and_several_have_a_directory() {
        let two = ["a/stats.sql", "a/daily.sql"];
        assert_eq!(named("out.csv", &two[..1], None).unwrap(), ["out.csv"]);
        assert_eq!(named("-", &two[..1], None).unwrap(), ["-"]);
        assert!(named("-", &two, None).unwrap_err().contains("this is standard output"));
        let text = "CREATE STREAM Day AS SELECT COUNT(x) WINDOW TUMBLING (SIZE 1 DAY) FROM S";
        assert_eq!(named("out", &["a.sql", text], None).unwrap(), ["out/a.json", "out/Day.json"]);
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
