//! `alpheus init` as people run it: from a file to the first answer.

use crate::program::waited_seconds;
use crate::report::{Environment, Figure, Goal, Report};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_node::service::children;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Owners of the made file.
const OWNERS: u32 = 34;
/// Processor time that a person waits for, at most.
const MAX_SECONDS: f64 = 10.0;
/// With an answer, no table of readings, and with a question.
const CODES: [i32; 3] = [0, 4, 6];

/// Arguments of `alpheus-bench init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Real files: each .csv and .tsv file in this folder is measured too
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Rows of the file that is made
    #[arg(long, value_name = "NUMBER", default_value_t = 1_700_000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Fail if a file takes more than 10 seconds of a processor
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Measures `init` on the made file and on real ones.
pub(crate) fn measure(args: &Args) -> Result<Report, Failure> {
    let environment = Environment::here();
    let folder = tempfile::tempdir().blame(Category::Io)?;
    let made = folder.path().join("made.csv");
    write(&made, args.rows).blame(Category::Io)?;
    let mut files = vec![(format!("made, {} rows of {OWNERS} owners", args.rows), made)];
    files.extend(args.files.as_deref().map(real).transpose()?.unwrap_or_default());
    let mut figures = Vec::new();
    for (number, (name, file)) in files.iter().enumerate() {
        note!("init: {name}");
        let output = folder.path().join(number.to_string());
        figures.extend(figures_of(name, file, &output)?);
    }
    Ok(Report { environment, figures, series: Vec::new() })
}

/// The tables of a folder, by name.
fn real(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).blame(Category::Io)? {
        let path = entry.blame(Category::Io)?.path();
        let is_table = path.extension().is_some_and(|ending| ending == "csv" || ending == "tsv");
        if is_table && let Some(name) = path.file_name() {
            files.push((name.to_string_lossy().into_owned(), path.clone()));
        }
    }
    files.sort();
    Ok(files)
}

/// A minute of each owner in each row, with a clock of 12 hours.
fn write(path: &Path, rows: u32) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "Id,ActivityMinute,Steps,Calories,Mode")?;
    for row in 0..rows {
        let (owner, minute) = (row % OWNERS, row / OWNERS);
        let (day, hour) = (minute / 1440, minute / 60 % 24);
        let (month, day) = (day / 28 % 12 + 1, day % 28 + 1);
        let (twelve, half) = ((hour + 11) % 12 + 1, if hour < 12 { "AM" } else { "PM" });
        let (steps, mode) =
            (row * 37 % 90, ["still", "walking", "running"][(row / 7 % 3) as usize]);
        writeln!(
            file,
            "{},{month}/{day}/2016 {twelve}:{:02}:00 {half},{steps},{}.{:04},{mode}",
            1_503_960_366 + u64::from(owner) * 101_010_101,
            minute % 60,
            row % 7,
            row % 9973
        )?;
    }
    file.flush()
}

/// Seconds of the clock and of processors for one file.
fn figures_of(name: &str, file: &Path, output: &Path) -> Result<[Figure; 2], Failure> {
    let (begin, before) = (Instant::now(), waited_seconds()?);
    let mut command = Command::new(children::program()?);
    command.arg("init").arg(file).args(["--yes", "--output"]).arg(output);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let code = status.blame(Category::Io)?.code();
    let (wall, own) = (begin.elapsed().as_secs_f64(), waited_seconds()? - before);
    if !code.is_some_and(|code| CODES.contains(&code)) {
        return Err(format!("`alpheus init` of {name} has failed")).blame(Category::Check);
    }
    let says = match code {
        Some(0) => "an answer",
        Some(6) => "a question",
        _ => "no table of readings",
    };
    let named = |what: &str| format!("{name}, to {says}{what}");
    let goal = Goal::AtMost(MAX_SECONDS);
    Ok([
        Figure::alone("init", named(", processors"), "s", own).with_goal(goal),
        Figure::alone("init", named(""), "s", wall),
    ])
}
