//! `alpheus table replay`: sends a recorded file from an owner to a server in another process,
//! and queries it. The owner keeps its rows, but queries as if they were deleted.

use super::answer::{AnswerRow, QueryRunner};
use super::append::append;
use super::remote::Remote;
use super::sql;
use super::state::TableState;
use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::{STANDARD_OUTPUT, read_text};
use alpheus_node::globals::Globals;
use alpheus_node::network::role::Role;
use alpheus_node::note;
use alpheus_node::pki;
use alpheus_node::service::children;
use alpheus_node::settings::Settings;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const EXAMPLES: &str = "\
Examples:
  alpheus table replay --schema schema.yaml --input counts.csv --query stats.sql \\
      --output out.json
  alpheus table replay --schema schema.yaml --input meters.csv.gz --query daily.sql \\
      --output out.json

It starts and stops the server as another process on this machine, and connects over TLS. Every
answer is verified. Each object of the output has the times of server and owner, and the bytes of
the answers. A block that several groups share counts for the group that fetches it.";

/// Arguments of `alpheus table replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema: columns, bounds, pairs
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The rows: CSV with a header, JSON lines or Parquet, compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Queries, each ended by a semicolon
    #[arg(long, value_name = "FILE")]
    query: PathBuf,
    /// The file for the answers, as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If a file is invalid, a query is refused, or an answer is rejected.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let folder = tempfile::tempdir().blame(Category::Io)?;
    let path = |name: &str| folder.path().join(name);
    let mut state = TableState::create(&path("owner"), &args.schema)?;
    let text = read_text(&args.query)?;
    let queries = sql::parse(&text, &state.schema).blame_input(&args.query)?;
    let output = match args.output == Path::new(STANDARD_OUTPUT) {
        true => None,
        false => Some(output(args)?),
    };
    pki::make(&path("pki"), &[(Role::Server, "service"), (Role::Owner, "owner")])?;
    let server = Server::start(&path("pki/service"), &path("tables"))?;
    let settings = Settings {
        identity: Some(path("pki/owner")),
        server: Some(server.address.clone()),
        ..Settings::default()
    };
    let remote = Remote::new(&settings, state.owner.manifest().data_set)?;
    let summary = append(&mut state, &remote, &args.input, false)?;
    note!("{summary}");
    let (mut rows, mut runner) = (Vec::new(), QueryRunner::new(&state, &remote));
    for (number, query) in queries.iter().enumerate() {
        for row in runner.answer(query)? {
            let mut numbered = AnswerRow::new();
            numbered.insert("query".into(), Value::from(number + 1));
            numbered.extend(row);
            rows.push(numbered);
        }
    }
    match output {
        Some(output) => write(output, &rows).blame_io(&args.output)?,
        None => drop(printed(print_json(&rows, &mut std::io::stdout().lock()))?),
    }
    note!("{} queries, {} rows, every answer verified", queries.len(), rows.len());
    note!("{}", runner.spent());
    Ok(())
}

/// The output would overwrite an input.
#[derive(Debug, thiserror::Error)]
#[error("the output is also an input; choose another file")]
struct OutputError;

/// Opens the output. Its old content stays until there is an answer.
fn output(args: &Args) -> Result<File, Failure> {
    let output = args.output.canonicalize().ok();
    for input in [&args.schema, &args.input, &args.query] {
        if output.is_some() && output == input.canonicalize().ok() {
            return Err(OutputError).blame_input(&args.output);
        }
    }
    let mut open = File::options();
    open.write(true).create(true).truncate(false).open(&args.output).blame_io(&args.output)
}

fn write(output: File, rows: &[AnswerRow]) -> std::io::Result<()> {
    if output.metadata()?.is_file() {
        output.set_len(0)?;
    }
    let mut output = BufWriter::new(output);
    serde_json::to_writer_pretty(&mut output, rows)?;
    writeln!(output)?;
    output.flush()
}

/// The server's process. It is killed when this is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(identity: &Path, state: &Path) -> Result<Self, Failure> {
        let program = children::program()?;
        let mut child = Command::new(program)
            .args(["table", "serve", "--api", "127.0.0.1:0", "--identity"])
            .arg(identity)
            .arg("--state")
            .arg(state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .blame(Category::Io)?;
        let log = child.stderr.take().map(BufReader::new);
        let mut server = Self { child, address: String::new() };
        let mut lines = log.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let address = lines.find_map(|line| {
            let address = line.strip_prefix("serving at ").map(str::to_owned);
            if address.is_none() {
                note!("{line}");
            }
            address
        });
        server.address = address.ok_or("the server did not start").blame(Category::Io)?;
        // The rest of its log is printed in the background.
        std::thread::spawn(move || lines.for_each(|line| note!("server: {line}")));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
