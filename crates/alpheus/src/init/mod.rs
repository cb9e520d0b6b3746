//! `alpheus init`: from an unknown file of readings to schema, source, policies and a first answer.
//!
//! - [`questions`]: questions at a terminal,
//! - [`noise`]: results with noise of a stated error,
//! - [`answer`]: the first answer, as people read it,
//! - [`progress`]: how far passes over a large file are.

mod answer;
mod noise;
mod progress;
mod questions;

use alpheus_discover::clock::{Format, Region, Unit};
use alpheus_discover::plural::counted;
use alpheus_discover::write::{FileReport, Files};
use alpheus_discover::{Hints, OutlierTreatment, Understanding, decimal_mark, understand_watched};
use alpheus_input::files::read_rows;
use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::{Readers, make_private_folder, write_new};
use alpheus_node::globals::Globals;
use progress::Passes;
use questions::ask;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus init readings.csv
  alpheus init readings.csv --yes --output readings
  alpheus init export.csv --owner customer --day-first --zone Europe/Berlin --output export
  alpheus init events.jsonl --measure level --leave-out note --outliers leave-out --output events
  alpheus init logger.txt --time Date --time Clock --time-format '%d.%m.%Y %H:%M' --output logger
  alpheus init data.csv.gz --yes --error '10 %' --output with-noise

The command looks at the file, says what it understood, and asks about anything important that it
cannot know. It writes schema.yaml, source.yaml, policies.yaml, query.sql, README.md and
understood.json. Then it runs the query and shows the answer. With --yes it asks nothing, all files
hold the best guess, and understood.json lists what is unsure. If something important is unsure, it
does not run the query, and the exit code is 6. With --error, owners release only results with
noise, and the query states that error. If it is not possible, the command writes nothing and names
the nearest possible error, if there is one. Nothing is sent anywhere.";

/// Arguments of `alpheus init`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file: delimited text of any kind, JSON (lines or a list), or Parquet; or compressed as .gz
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Ask nothing: write the best guess, and list what is unsure
    #[arg(long)]
    pub yes: bool,
    /// The folder to write to; without --force, it must not exist, or be empty. By default
    /// NAME-alpheus, where NAME is the file's name up to its first dot
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace the files that an earlier run wrote to the folder
    #[arg(long)]
    pub force: bool,
    /// Release results with noise (differential privacy), 95 of 100 with at most this error; by
    /// default, results are exact totals over many owners
    #[arg(long, value_name = "PERCENT")]
    pub error: Option<noise::ErrorShare>,
    /// What you know about the file.
    #[command(flatten)]
    pub known: FileFacts,
}

/// What a person knows about a file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FileFacts {
    /// The column that says which owner a reading belongs to; `none` if all belong to one
    #[arg(long, value_name = "COLUMN")]
    pub owner: Option<String>,
    /// Each column of numbers belongs to one owner; NAME says what they measure
    #[arg(long, value_name = "NAME", conflicts_with = "owner")]
    pub wide: Option<String>,
    /// A column with the time, or a part of it; several are joined with spaces
    #[arg(long, value_name = "COLUMN")]
    pub time: Vec<String>,
    /// The date of all rows, if they have only times of day, such as 2024-03-01. With
    /// `--time-format days`, the date of day 0
    #[arg(long, value_name = "DATE")]
    pub date: Option<String>,
    /// The format of the time, as in strftime; or s, ms, us, ns or days for numbers since 1970, or
    /// spreadsheet-days. `days` also works for other whole numbers, such as years: each counts as
    /// one day
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// The time zone of times that do not state one, such as UTC, +02:00 or Europe/Berlin
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub zone: Option<String>,
    /// The decimal separator: `.` or `,`, or `both` if columns differ
    #[arg(long, value_name = "MARK", value_parser = decimal)]
    pub decimal: Option<char>,
    /// The day comes before the month
    #[arg(long, conflicts_with = "month_first")]
    pub day_first: bool,
    /// The month comes before the day
    #[arg(long)]
    pub month_first: bool,
    /// A column of measurements, whatever its name says; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub measure: Vec<String>,
    /// A column to leave out; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub leave_out: Vec<String>,
    /// How to treat outliers, and marks such as 990: widen the bounds to include them, or treat
    /// them, and bounds such as <5, as missing
    #[arg(long, value_enum)]
    pub outliers: Option<Outliers>,
    /// Keep rows on days far from all others: their times are right
    #[arg(long)]
    pub keep_far_days: bool,
}

/// What stands before decimals.
fn decimal(text: &str) -> Result<char, &'static str> {
    decimal_mark::read(text).ok_or("expected `.`, `,` or `both`")
}

/// How to treat values far from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Outliers {
    /// Widen the bounds to include them
    Keep,
    /// Treat them as missing
    LeaveOut,
}

/// Something matters that the file does not say.
#[derive(Debug, thiserror::Error)]
#[error("{} open, so the query was not run", things(.count))]
struct UndecidedError {
    count: usize,
}

fn things(count: &usize) -> String {
    if *count == 1 {
        "1 important question is".to_owned()
    } else {
        format!("{count} important questions are")
    }
}

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] if the file is no table of readings, [`Category::Undecided`] if it would
/// have to guess what matters; else as [`alpheus_streams::replay::run`].
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let passes = Passes::start("MB read");
    let bytes = read(&args.file)?;
    let mut known = args.known.clone();
    let mut found = look(&bytes, &known, &args.file, passes)?;
    say(&summary(&found, &args.file))?;
    let mut accepted = false;
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    while asks && found.is_undecided() {
        let Some(more) = ask(&found)? else {
            accepted = true;
            break;
        };
        (known, found) = looked_again(&bytes, (known, found), more, &args.file)?;
    }
    if found.is_undecided() && !args.yes && !asks {
        return Err(undecided(
            &found,
            &args.file,
            "answer with the options that the questions name, or use `--yes` to write the files with the best guess",
        ));
    }
    let folder = args.output.clone().unwrap_or_else(|| default_folder(&args.file));
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let (written, promised) = match asks && args.error.is_none() && found.tally.owners > 1 {
        true => noise::asked(&found, (&name, &bytes))?,
        false => noise::planned(&found, (&name, &bytes), args.error.as_ref())
            .map_err(|failure| with_questions(failure, &found, (&args.file, accepted)))?,
    };
    write(&written, &found, &folder, args.force)?;
    say(&format!(
        "Written to {}: schema.yaml, source.yaml, policies.yaml, query.sql, README.md, understood.json\n",
        folder.display()
    ))?;
    if found.is_undecided() && !accepted {
        return Err(undecided(
            &found,
            &args.file,
            "edit what the questions name in source.yaml and schema.yaml, then run the command in README.md. Or run again with the options that they name and --force, which replaces these files",
        ));
    }
    if noise::takes_long(&written) {
        say(
            "The query was not run: its windows need so many owners that an answer would take minutes. The command in README.md runs it.\n",
        )?;
    } else {
        answer::show(args, &written, (&bytes, &found), &folder, globals)?;
    }
    promised.iter().try_for_each(|what| say(&format!("{what}\n")))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if std::fs::metadata(path).blame_io(path)?.is_dir() {
        return Err(Failure::new(Category::Input, "this is a folder")
            .at(path.display().to_string())
            .with_help("name a file in it"));
    }
    read_rows(path)
}

fn look(
    bytes: &[u8],
    known: &FileFacts,
    path: &Path,
    mut passes: Passes,
) -> Result<Understanding, Failure> {
    understand_watched(bytes, &known.hints()?, &mut passes).blame_input(path)
}

/// Looks with one more answer. A name that is mistyped is no reason to begin again.
fn looked_again(
    bytes: &[u8],
    (known, found): (FileFacts, Understanding),
    more: FileFacts,
    path: &Path,
) -> Result<(FileFacts, Understanding), Failure> {
    let mut tried = known.clone();
    tried.add(more);
    match look(bytes, &tried, path, Passes::start("MB read")) {
        Ok(better) => {
            say(&summary(&better, path))?;
            Ok((tried, better))
        }
        Err(failure) => {
            say(&format!("{failure}\n"))?;
            Ok((known, found))
        }
    }
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

/// If an error is not possible, but questions are open: that they come first.
fn with_questions(
    failure: Failure,
    found: &Understanding,
    (file, accepted): (&Path, bool),
) -> Failure {
    if failure.category() != Category::Refused || !found.is_undecided() || accepted {
        return failure;
    }
    undecided(
        found,
        file,
        "answer with the options that the questions name: the error that is possible depends on them. With the best guess, the requested one is not, so no file was written",
    )
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

impl FileFacts {
    fn hints(&self) -> Result<Hints, Failure> {
        let zone = match &self.zone {
            None => None,
            Some(text) => {
                let wrong = || {
                    let what = format!(
                        "`{text}` is neither an offset such as UTC or +02:00, nor a place such as Europe/Berlin"
                    );
                    Failure::new(Category::Usage, what).at("--zone")
                };
                Some(Region::parse(text).ok_or_else(wrong)?)
            }
        };
        if let Some(format) = self.time_format.as_ref().filter(|text| Unit::parse(text).is_none()) {
            let read = match &self.date {
                Some(_) => Format::part(format),
                None => Format::new(format),
            };
            read.map_err(|error| Failure::new(Category::Usage, error).at("--time-format"))?;
        }
        if let Some(date) = &self.date {
            Format::on_date("%H:%M", date)
                .map_err(|error| Failure::new(Category::Usage, error).at("--date"))?;
        }
        Ok(Hints {
            owner: self.owner.clone(),
            wide: self.wide.clone(),
            time: self.time.clone(),
            date: self.date.clone(),
            time_format: self.time_format.clone(),
            zone,
            decimal: self.decimal,
            day_first: (self.day_first || self.month_first).then_some(self.day_first),
            measure: self.measure.clone(),
            leave_out: self.leave_out.clone(),
            outliers: self.outliers.map(|outliers| match outliers {
                Outliers::Keep => OutlierTreatment::Keep,
                Outliers::LeaveOut => OutlierTreatment::LeaveOut,
            }),
            keep_far_days: self.keep_far_days,
        })
    }

    /// Adds what a later answer says.
    fn add(&mut self, more: FileFacts) {
        self.owner = more.owner.or(self.owner.take());
        self.wide = more.wide.or(self.wide.take());
        if !more.time.is_empty() {
            self.time = more.time;
        }
        self.date = more.date.or(self.date.take());
        self.time_format = more.time_format.or(self.time_format.take());
        self.zone = more.zone.or(self.zone.take());
        self.decimal = more.decimal.or(self.decimal);
        self.measure.extend(more.measure);
        self.leave_out.extend(more.leave_out);
        self.outliers = more.outliers.or(self.outliers);
        self.keep_far_days |= more.keep_far_days;
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
    let rows = if found.wide.is_some() { "reading" } else { "row" };
    let (all, refused) = (counted(tally.rows, rows), tally.refused());
    let _ = writeln!(text, "{}: {all}, {refused} refused", file.display());
    let _ = writeln!(
        text,
        "  time: {} as {} ({}), zone: {} ({})",
        time.join(" + "),
        found.time.format(),
        found.sure_of_time().word(),
        found.zone_text(),
        found.sure_of_zone().word()
    );
    let _ = writeln!(text, "  owner: {} ({})", owners(found), found.sure_of_owner().word());
    let fates = found.fates();
    for (name, fate) in fates.iter().take(SHOWN) {
        let sure = found.sure_of(name).word();
        let _ = match found.attributes.iter().find(|own| own.column == *name) {
            Some(own) => {
                let (count, sum) = (counted(own.total.count, "reading"), own.total.sum.text());
                writeln!(text, "  `{name}`: {fate}, {count}, sum {sum} ({sure})")
            }
            None => writeln!(text, "  `{name}`: {fate} ({sure})"),
        };
    }
    match fates.len().saturating_sub(SHOWN) {
        0 => {}
        more => {
            let _ = writeln!(text, "  and {more} more columns; README.md has them all");
        }
    }
    for own in found.attributes.iter().filter(|_| found.wide.is_some()) {
        let (count, sum) = (counted(own.total.count, "reading"), own.total.sum.text());
        let _ = writeln!(text, "  measured as {}: {count}, sum {sum}", own.name);
    }
    text.push_str(&open_points(found));
    text
}

/// What says whose a reading is.
fn owners(found: &Understanding) -> String {
    let many = found.tally.owners;
    match (&found.wide, &found.owner) {
        (Some(wide), _) => {
            let (first, last) = wide.ends();
            format!("each of {many} columns is one's, `{first}` to `{last}`")
        }
        (None, Some(owner)) => format!("`{owner}`, {many} of them"),
        (None, None) => "no column; one stream".to_owned(),
    }
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

/// The files that are written.
const WRITTEN: [&str; 7] = [
    "schema.yaml",
    "source.yaml",
    "policies.yaml",
    "query.sql",
    "README.md",
    "understood.json",
    "answer.csv",
];

fn write(
    written: &Files,
    found: &Understanding,
    folder: &Path,
    force: bool,
) -> Result<(), Failure> {
    let earlier = folder.join("understood.json").is_file();
    let again = force && earlier;
    if again {
        for path in WRITTEN.map(|name| folder.join(name)).iter().filter(|path| path.is_file()) {
            std::fs::remove_file(path).blame_io(path)?;
        }
    }
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty && !again {
        make_private_folder(folder).map_err(|failure| match earlier {
            true => failure.with_help("nothing is overwritten: --force replaces the files of the earlier run, or name another folder"),
            false => failure,
        })?;
    }
    let mut report = Vec::new();
    print_json(&FileReport::of(found), &mut report).blame_io(folder)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_matters_or_several() {
        assert!(
            UndecidedError { count: 1 }.to_string().starts_with("1 important question is open")
        );
        assert!(
            UndecidedError { count: 2 }.to_string().starts_with("2 important questions are open")
        );
    }

    #[test]
    fn folders_are_named_after_the_file() {
        assert_eq!(default_folder(Path::new("/data/steps.csv.gz")), Path::new("steps-alpheus"));
    }
}
