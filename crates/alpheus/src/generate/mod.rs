//! `alpheus generate`: plausible recorded data, deterministic for a seed, so that
//! every example runs anywhere.

pub mod profile;
mod walk;

use alpheus_input::files::read_schema;
use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::{STANDARD_OUTPUT, read_text};
use alpheus_node::globals::Globals;
use alpheus_policy::schema::Schema;
use chacha20::ChaCha12Rng;
use clap::value_parser;
use profile::Profile;
use rand_core::SeedableRng;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus generate --schema examples/fitness/schema.yaml \\
      --profile examples/fitness/profile.yaml --output fitness.csv
  alpheus generate --schema S.yaml --profile P.yaml --streams 300 --minutes 5 --seed 7 \\
      --output data.csv";

/// Arguments of `alpheus generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema of the data
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// The profile: how each attribute behaves
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Number of streams; by default as in the profile
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub streams: Option<u32>,
    /// Minutes of data; by default as in the profile
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub minutes: Option<u32>,
    /// The same seed produces the same file
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Where to write the CSV; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read, understood or written.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let schema = read_schema(&args.schema)?;
    let mut profile =
        Profile::parse(&read_text(&args.profile)?, &schema).blame_input(&args.profile)?;
    profile.streams = args.streams.unwrap_or(profile.streams);
    profile.minutes = args.minutes.unwrap_or(profile.minutes);
    let file: Box<dyn Write> = match args.output == Path::new(STANDARD_OUTPUT) {
        true => Box::new(std::io::stdout().lock()),
        false => Box::new(std::fs::File::create(&args.output).blame_io(&args.output)?),
    };
    let mut output = std::io::BufWriter::new(file);
    match generate(&schema, &profile, args.seed, &mut output).and_then(|()| output.flush()) {
        // The reader of the pipe has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.blame_io(&args.output),
    }
}

/// What the system said, which tells a full disk from other failures.
fn of_system(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// Writes `profile`'s data as CSV: `stream`, `timestamp` in milliseconds, then
/// the schema's metadata and attributes under their names.
///
/// # Errors
/// The writer's error.
pub fn generate(
    schema: &Schema,
    profile: &Profile,
    seed: u64,
    output: &mut impl Write,
) -> std::io::Result<()> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut csv = csv::Writer::from_writer(output);
    let names =
        schema.metadata.iter().map(|m| &m.name).chain(schema.attributes.iter().map(|a| &a.name));
    let header = ["stream", "timestamp"].into_iter().chain(names.map(String::as_str));
    csv.write_record(header).map_err(of_system)?;
    let mut streams: Vec<walk::Stream> = (0..profile.streams)
        .map(|number| walk::Stream::new(number, schema, profile, &mut rng))
        .collect();
    let steps = u64::from(profile.minutes) * 60_000 / profile.interval_ms;
    for step in 0..steps {
        for stream in &mut streams {
            let time = profile.start * 1000 + step * profile.interval_ms + stream.phase_ms;
            csv.write_record(stream.row(time, schema, profile, &mut rng)).map_err(of_system)?;
        }
    }
    csv.flush()
}
