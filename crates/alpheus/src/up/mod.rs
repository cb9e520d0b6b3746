//! `alpheus up`: a whole deployment on this machine in one command. The service, controllers,
//! owners, their devices and two consoles are processes of their own and talk over mutual TLS.
//!
//! - [`inputs`]: the files of a folder, or the example that is built in,
//! - [`stage`]: keys, certificates and processes,
//! - [`feed`]: the recording's events, each at its time, and the clock that all follow,
//! - [`rows`]: results as they arrive,
//! - [`summary`]: what came of all windows.

mod feed;
mod inputs;
mod rows;
mod stage;
mod summary;

use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::children::Folder;
use alpheus_node::service::shutdown;
use alpheus_streams::replay::counted;
use clap::value_parser;
use feed::{End, Feed};
use inputs::Inputs;
use stage::Stage;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus up
  alpheus up my-data --input readings.csv
  alpheus up my-data --owners 40 --controllers 5 --state my-data/run
  alpheus up my-data --input readings.csv --query \\
      'SELECT AVG(power) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Household'
  alpheus up --stay

DIR contains schema.yaml, source.yaml, policies.yaml and query.sql, and also the recording unless
--input names it. Without DIR, a street of generated electricity meters is used.

Each device sends each event of the recording at its time. All processes follow one clock, which may
be faster than real time. The clock waits if devices or results lag behind, and a window without the
data of all owners says so. `alpheus up` prints the addresses of two consoles, and commands for
another terminal. When the recording has ended and its windows have results, it prints a summary and
stops everything. The exit code is 1 if no window opened, or if the results lack one. With --stay
everything keeps running, so that you can look at the consoles. Ctrl-C stops everything, and so does
closing the pipe that reads the output.";

/// Arguments of `alpheus up`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder with the files; by default a built-in example
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The recording: CSV, JSON lines or Parquet; by default the only such file in the folder
    #[arg(long, value_name = "FILE", requires = "dir")]
    input: Option<PathBuf>,
    /// The query: a file, or the text itself; by default query.sql in the folder
    #[arg(long, value_name = "FILE|SQL")]
    query: Option<PathBuf>,
    /// Number of owners to take from the recording, those with the most events first; by default
    /// all, up to 100 or the number that the query needs
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(inputs::MAX_OWNERS)))]
    owners: Option<u32>,
    /// Number of privacy controllers; by default 3, or 1 if with 3 the query would be refused or
    /// fewer than nine in ten of its windows would open
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=64))]
    controllers: Option<u32>,
    /// How many seconds of the recording pass per second; by default a window takes about five
    /// seconds
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    speed: Option<u32>,
    /// Folder for keys, logs and state, which must not exist; by default a temporary one that is
    /// removed at the end
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Keep running after the recording has ended, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// What it does by default, for scripts of earlier versions
    #[arg(long, hide = true, conflicts_with = "stay")]
    once: bool,
}

/// Where the state lies.
enum StateFolder {
    Temporary(Folder),
    Kept(PathBuf),
}

impl StateFolder {
    fn create(state: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = state else { return Folder::create("up").map(StateFolder::Temporary) };
        alpheus_node::files::make_private_folder(path)?;
        std::fs::canonicalize(path).blame_io(path).map(StateFolder::Kept)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Kept(path) => path,
        }
    }
}

/// Runs the command until the recording has ended, or it is stopped.
///
/// # Errors
/// A file cannot be used, policies refuse the query, a process ends by itself, or a window has no
/// result.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let stop = shutdown::on_signal().blame(Category::Io)?;
    let place = StateFolder::create(args.state.as_deref())?;
    let inputs = Inputs::read(args, place.path())?;
    note!("{}", inputs.summary());
    let speed = args.speed.unwrap_or_else(|| inputs.usual_speed());
    let mut stage = Stage::build(place.path(), &inputs, speed, &stop)?;
    stage.start(&inputs, &stop)?;
    stage.ask(&inputs, &stop)?;
    stage.open_consoles()?;
    let said = describe(&place, &stage, &inputs, speed);
    if printed(std::io::stdout().lock().write_all(said.as_bytes()))?.is_break() {
        return Ok(());
    }
    let rows = rows::follow(&stage, &inputs)?;
    let end = Feed::new(&inputs, speed).play(&mut stage, (&rows, args.stay), &stop)?;
    let remedy = summary::say(&inputs, &rows);
    note!("ending all processes");
    if end == End::Played { summary::check(&rows, remedy) } else { Ok(()) }
}

/// What to do next.
fn describe(place: &StateFolder, stage: &Stage, inputs: &Inputs, speed: u32) -> String {
    let at = place.path().display();
    let (server, name) = (stage.server(), &inputs.create.name);
    let analyst = format!("--server {server} --identity {at}/pki/analyst");
    let controllers = match &inputs.controllers {
        (_, Some(why)) => format!("1 controller: {why}"),
        (many, None) => counted(u64::from(*many), "controller"),
    };
    let kept = match place {
        StateFolder::Temporary(_) => " (removed at the end)",
        StateFolder::Kept(_) => "",
    };
    format!(
        "service:    {server}, and {controllers}
consumer:   {consumer}
an owner:   {owner}
state:      {at}{kept}
clock:      {speed} times as fast as real time, from the recording's beginning

Open one of the pages in a browser, or try in another terminal:
  alpheus sql {analyst}
  alpheus query {analyst} --results {name} --follow
  {log}
  {revoke}

Results of {name}, as they arrive; Ctrl-C ends everything:
",
        consumer = stage.consumer_page,
        owner = stage.owner_page,
        log = stage.owner_command(place.path(), "log"),
        revoke = stage.owner_command(place.path(), "revoke"),
    )
}
