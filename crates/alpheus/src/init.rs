//! `alpheus init`: from an unknown file of readings to schema, source, policies and a first answer.

use alpheus_discover::clock::{Region, Unit};
use alpheus_discover::write::{Files, Understood, files};
use alpheus_discover::{Hints, Outlying, Understanding, understand};
use alpheus_input::files::read_rows;
use alpheus_input::tables::{print_json, print_tables};
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::{Readers, make_private_folder, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::local_time::iso_time;
use alpheus_node::settings::Format;
use alpheus_policy::show::Table;
use alpheus_streams::replay;
use alpheus_streams::runtime::embedded::Controllers;
use clap::Parser;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus init readings.csv
  alpheus init readings.csv --yes --output readings
  alpheus init export.csv --owner customer --day-first --zone Europe/Berlin --output export
  alpheus init events.jsonl --measure level --leave-out note --outliers leave-out --output events
  alpheus init logger.txt --time Date --time Clock --time-format '%d.%m.%Y %H:%M' --output logger

It looks at the file, says what it understood, and asks what it cannot know and what matters.
It writes schema.yaml, source.yaml, policies.yaml, query.sql, README.md and understood.json, then
runs the query and shows the answer. --yes asks nothing: all files hold the best guess,
understood.json lists what is unsure, and where that matters the query is not run and the exit
code is 6. Nothing is sent anywhere.";

/// Rows of the answer that are shown.
const SHOWN_ROWS: usize = 8;
/// Columns of the answer that are shown.
const SHOWN_COLUMNS: usize = 8;

/// Arguments of `alpheus init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file: delimited text of any kind, JSON lines, or Parquet; or compressed as .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Ask nothing: write the best guess, and say what is unsure
    #[arg(long)]
    pub yes: bool,
    /// The folder to write to; it must not exist, or be empty. By default NAME-alpheus, where NAME
    /// is the file's name up to its first dot
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What you know about the file.
    #[command(flatten)]
    pub known: FileFacts,
}

/// What a person knows about a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FileFacts {
    /// The column that says whose a reading is; `none` if all are one owner's
    #[arg(long, value_name = "COLUMN")]
    pub owner: Option<String>,
    /// A column of the time; several are joined with spaces
    #[arg(long, value_name = "COLUMN")]
    pub time: Vec<String>,
    /// The format of the time, as in strftime; or s, ms, us or ns for numbers since 1970, or
    /// spreadsheet-days
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// The zone of times that do not say theirs, such as UTC, +02:00 or Europe/Berlin
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub zone: Option<String>,
    /// The decimal separator
    #[arg(long, value_name = ". or ,")]
    pub decimal: Option<char>,
    /// The day stands before the month
    #[arg(long, conflicts_with = "month_first")]
    pub day_first: bool,
    /// The month stands before the day
    #[arg(long)]
    pub month_first: bool,
    /// A column whose numbers are measured, whatever its name says; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub measure: Vec<String>,
    /// A column that is not used; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub leave_out: Vec<String>,
    /// How to treat outliers: widen the bounds to include them, or treat them as missing
    #[arg(long, value_enum)]
    pub outliers: Option<Outliers>,
}

/// How to treat values far from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Outliers {
    /// Widen the bounds to include them
    Keep,
    /// Treat them as missing
    LeaveOut,
}

/// The answer to a question, written as options.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Answer {
    #[command(flatten)]
    known: FileFacts,
}

/// Something matters that the file does not say.
#[derive(Debug, thiserror::Error)]
#[error("{} that the file does not say, so the query was not run", things(.count))]
struct UndecidedError {
    count: usize,
}

fn things(count: &usize) -> String {
    if *count == 1 { "1 thing matters".to_owned() } else { format!("{count} things matter") }
}

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] if the file is no table of readings, [`Category::Undecided`] if it would
/// have to guess what matters; else as [`replay::run`].
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let bytes = read(&args.file)?;
    let mut known = args.known.clone();
    let mut found = look(&bytes, &known, &args.file)?;
    say(&summary(&found, &args.file))?;
    let mut accepted = false;
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    while asks && found.is_undecided() {
        let Some(more) = ask()? else {
            accepted = true;
            break;
        };
        known.add(more);
        found = look(&bytes, &known, &args.file)?;
        say(&summary(&found, &args.file))?;
    }
    if found.is_undecided() && !args.yes && !asks {
        return Err(undecided(
            &found,
            &args.file,
            "answer with the options that the questions name; `--yes` writes the files with the best guess",
        ));
    }
    let folder = args.output.clone().unwrap_or_else(|| default_folder(&args.file));
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let written = files(&found, &name);
    write(&written, &found, &folder)?;
    say(&format!(
        "Written to {}: schema.yaml, source.yaml, policies.yaml, query.sql, README.md, understood.json\n",
        folder.display()
    ))?;
    if found.is_undecided() && !accepted {
        return Err(undecided(
            &found,
            &args.file,
            "correct the written files, or run again with the options that the questions name and another --output",
        ));
    }
    answer(args, &written, &folder, globals)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if std::fs::metadata(path).blame_io(path)?.is_dir() {
        return Err(Failure::new(Category::Input, "this is a folder")
            .at(path.display().to_string())
            .with_help("name a file in it"));
    }
    read_rows(path)
}

fn look(bytes: &[u8], known: &FileFacts, path: &Path) -> Result<Understanding, Failure> {
    understand(bytes, &known.hints()?).blame_input(path)
}

fn default_folder(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("readings");
    PathBuf::from(format!("{stem}-alpheus"))
}

fn undecided(found: &Understanding, file: &Path, help: &str) -> Failure {
    let error = UndecidedError { count: found.questions.len() };
    Failure::new(Category::Undecided, error).at(file.display().to_string()).with_help(help)
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// Reads an answer to the questions that were shown. None if the person accepts the best guess.
fn ask() -> Result<Option<FileFacts>, Failure> {
    loop {
        say("Your answer, as the option that the question names (empty: take the best guess): ")?;
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line).blame(Category::Io)?;
        if read == 0 {
            // The shell's prompt begins on a line of its own.
            say("\n")?;
            let what = "the question has no answer, so nothing was written";
            let help = "answer with the option that it names, here or on the command line; an empty line, or `--yes`, takes the best guess";
            return Err(Failure::new(Category::Undecided, what).with_help(help));
        }
        if line.trim().is_empty() {
            return Ok(None);
        }
        match Answer::try_parse_from(line_words(&line)) {
            Ok(answer) => return Ok(Some(answer.known)),
            Err(error) => say(&not_understood(&error.to_string()))?,
        }
    }
}

/// What is wrong with an answer, without the usage of a command line.
fn not_understood(error: &str) -> String {
    let said = error.split("\nUsage:").next().unwrap_or(error).trim_end();
    format!(
        "{said}\nAn answer is an option and its value, such as `--day-first` or `--owner 'Name'`.\n"
    )
}

/// The words of a line; quotes keep spaces.
fn line_words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut open) = (Vec::<String>::new(), None, false);
    for c in line.trim().chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                if !open {
                    words.push(String::new());
                }
                open = true;
            }
            None if c.is_whitespace() => open = false,
            _ => {
                if !open {
                    words.push(String::new());
                }
                open = true;
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

impl FileFacts {
    fn hints(&self) -> Result<Hints, Failure> {
        let zone = match &self.zone {
            None => None,
            Some(text) => {
                let wrong = || {
                    let what = "neither an offset such as UTC or +02:00, nor a place such as Europe/Berlin";
                    Failure::new(Category::Usage, what).at("--zone")
                };
                Some(Region::parse(text).ok_or_else(wrong)?)
            }
        };
        if self.decimal.is_some_and(|mark| !matches!(mark, '.' | ',')) {
            return Err(Failure::new(Category::Usage, "expected `.` or `,`").at("--decimal"));
        }
        if let Some(format) = self.time_format.as_ref().filter(|text| Unit::parse(text).is_none()) {
            alpheus_discover::clock::Format::new(format)
                .map_err(|error| Failure::new(Category::Usage, error).at("--time-format"))?;
        }
        Ok(Hints {
            owner: self.owner.clone(),
            time: self.time.clone(),
            time_format: self.time_format.clone(),
            zone,
            decimal: self.decimal,
            day_first: (self.day_first || self.month_first).then_some(self.day_first),
            measure: self.measure.clone(),
            leave_out: self.leave_out.clone(),
            outliers: self.outliers.map(|outliers| match outliers {
                Outliers::Keep => Outlying::Keep,
                Outliers::LeaveOut => Outlying::LeaveOut,
            }),
        })
    }

    /// Adds what a later answer says.
    fn add(&mut self, more: FileFacts) {
        self.owner = more.owner.or(self.owner.take());
        if !more.time.is_empty() {
            self.time = more.time;
        }
        self.time_format = more.time_format.or(self.time_format.take());
        self.zone = more.zone.or(self.zone.take());
        self.decimal = more.decimal.or(self.decimal);
        self.measure.extend(more.measure);
        self.leave_out.extend(more.leave_out);
        self.outliers = more.outliers.or(self.outliers);
        if more.day_first || more.month_first {
            (self.day_first, self.month_first) = (more.day_first, more.month_first);
        }
    }
}

/// What was understood, and what became of each column.
fn summary(found: &Understanding, file: &Path) -> String {
    const SHOWN: usize = 60;
    let mut text = String::new();
    let tally = &found.tally;
    let time = found.time.columns.iter().filter_map(|at| found.names.get(*at));
    let time: Vec<String> = time.map(|name| format!("`{name}`")).collect();
    // Writing to a text does not fail.
    let _ = writeln!(text, "{}: {} rows, {} refused", file.display(), tally.rows, tally.refused());
    let _ = writeln!(
        text,
        "  time: {} as {}, zone: {}",
        time.join(" + "),
        found.time.format(),
        found.zone_text()
    );
    let _ = match &found.owner {
        Some(owner) => writeln!(text, "  owner: `{owner}`, {} of them", tally.owners),
        None => writeln!(text, "  owner: no column; one stream"),
    };
    let fates = found.fates();
    for (name, fate) in fates.iter().take(SHOWN) {
        let _ = match found.attributes.iter().find(|own| own.column == *name) {
            Some(own) => {
                let (count, sum) = (own.total.count, own.total.sum.text());
                writeln!(text, "  `{name}`: {fate}, {count} readings, sum {sum}")
            }
            None => writeln!(text, "  `{name}`: {fate}"),
        };
    }
    match fates.len().saturating_sub(SHOWN) {
        0 => {}
        more => {
            let _ = writeln!(text, "  and {more} more columns; README.md has them all");
        }
    }
    text.push_str(&open_points(found));
    text
}

/// What is asked, and the first notes.
fn open_points(found: &Understanding) -> String {
    const SHOWN: usize = 8;
    let mut text = String::new();
    for question in &found.questions {
        let _ = writeln!(text, "  open: {question}");
    }
    for note in found.notes.iter().take(SHOWN) {
        let _ = writeln!(text, "  note: {note}");
    }
    match found.notes.len().saturating_sub(SHOWN) {
        0 => {}
        more => {
            let _ = writeln!(text, "  and {more} more notes, in understood.json");
        }
    }
    text
}

fn write(written: &Files, found: &Understanding, folder: &Path) -> Result<(), Failure> {
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty {
        make_private_folder(folder)?;
    }
    let mut report = Vec::new();
    print_json(&Understood::of(found), &mut report).blame_io(folder)?;
    for (name, bytes) in [
        ("schema.yaml", written.schema.as_bytes()),
        ("source.yaml", written.source.as_bytes()),
        ("policies.yaml", written.policies.as_bytes()),
        ("query.sql", written.query.as_bytes()),
        ("README.md", written.readme.as_bytes()),
        ("understood.json", &report),
    ] {
        write_new(&folder.join(name), bytes, Readers::Everybody)?;
    }
    Ok(())
}

/// Runs the first query over the file, and shows the first rows of its answer.
fn answer(args: &Args, written: &Files, folder: &Path, globals: &Globals) -> Result<(), Failure> {
    let output = folder.join("answer.csv");
    let replayed = replay::Args {
        schema: folder.join("schema.yaml"),
        source: folder.join("source.yaml"),
        input: args.file.clone(),
        policies: Some(folder.join("policies.yaml")),
        query: vec![folder.join("query.sql")],
        controllers: replay::ControllerCount(Controllers::Count(1)),
        masks: None,
        membership: None,
        tick: written.tick.map(str::to_owned),
        state: None,
        max_refused: replay::MaxRefused::default(),
        output: output.clone(),
    };
    replay::run(&replayed, globals)?;
    let mut reader = csv::Reader::from_path(&output).blame_io(&output)?;
    let header = reader.headers().blame_io(&output)?.clone();
    let cut = |record: &csv::StringRecord| {
        let cells = record.iter().zip(&header).take(SHOWN_COLUMNS);
        cells.map(|(cell, name)| shown(name, cell)).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> =
        reader.records().filter_map(Result::ok).map(|record| cut(&record)).collect();
    let all = rows.len();
    let shown = rows.into_iter().take(SHOWN_ROWS).collect();
    let mut text = Vec::new();
    let table = Table { title: "First answer".to_owned(), columns: cut(&header), rows: shown };
    print_tables(&[table], Format::Table, &mut text).blame_io(&output)?;
    let mut out = std::io::stdout().lock();
    let _ = printed(
        out.write_all(&text).and_then(|()| writeln!(out, "{all} rows, in {}", output.display())),
    )?;
    Ok(())
}

/// A cell for people: times as text.
fn shown(column: &str, cell: &str) -> String {
    let is_time = matches!(column, "window_start" | "window_end");
    match cell.parse().ok().filter(|_| is_time) {
        Some(unix_ms) => iso_time(unix_ms),
        None => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_options() {
        let words = line_words("--owner 'Survey ID' --day-first\n");
        assert_eq!(words, ["--owner", "Survey ID", "--day-first"]);
        let mut known = FileFacts { zone: Some("UTC".to_owned()), ..FileFacts::default() };
        known.add(Answer::try_parse_from(words).unwrap().known);
        let hints = known.hints().unwrap();
        assert_eq!(
            (hints.owner.as_deref(), hints.day_first, hints.zone),
            (Some("Survey ID"), Some(true), Some(Region::Fixed(0)))
        );
        assert!(Answer::try_parse_from(line_words("--nothing")).is_err());
    }

    #[test]
    fn times_are_shown_as_texts_and_one_thing_matters() {
        assert_eq!(shown("window_start", "1700000000000"), "2023-11-14T22:13:20Z");
        assert_eq!(shown("sum_of_time", "1700000000000"), "1700000000000");
        assert!(UndecidedError { count: 1 }.to_string().starts_with("1 thing matters that"));
        assert!(UndecidedError { count: 2 }.to_string().starts_with("2 things matter that"));
    }

    #[test]
    fn folders_are_named_after_the_file() {
        assert_eq!(default_folder(Path::new("/data/steps.csv.gz")), Path::new("steps-alpheus"));
    }
}
