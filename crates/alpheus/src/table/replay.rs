//! `alpheus table replay`: a recorded file through an owner and a server, each a process
//! of its own, and queries over it. The owner deletes nothing but asks as if it had.

use super::append::append;
use super::ask::{AnswerRow, Asker};
use super::remote::Remote;
use super::sql;
use super::state::TableState;
use crate::ca;
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::role::Role;
use crate::replay::inputs::read_text;
use crate::service::Settings;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const EXAMPLES: &str = "\
Examples:
  alpheus table replay --schema schema.yaml --input counts.csv --query stats.sql --output out.json
  alpheus table replay --schema schema.yaml --input meters.csv.gz --query daily.sql --output out.json

The server is a process that it starts and ends; both meet over TLS, on this machine. Every
answer is checked. Each object of the output says how long server and owner worked, and how
many bytes the answers had; blocks that several groups share are counted where they are fetched.";

/// Arguments of `alpheus table replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema: columns, bounds, pairs
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The rows: CSV with a header, packed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Queries, each ended by a semicolon
    #[arg(long, value_name = "FILE")]
    query: PathBuf,
    /// Where the answers go, as JSON
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// If a file is wrong, a query is refused, or an answer is rejected.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let place = tempfile::tempdir().blame(Category::Io)?;
    let path = |name: &str| place.path().join(name);
    let mut state = TableState::create(&path("owner"), &args.schema)?;
    let text = read_text(&args.query)?;
    let queries = sql::parse(&text, &state.schema).blame_input(&args.query)?;
    let output = output(args)?;
    ca::make(&path("pki"), &[(Role::Server, "service"), (Role::Owner, "owner")])?;
    let server = Server::start(&path("pki/service"), &path("tables"))?;
    let settings = Settings {
        identity: Some(path("pki/owner")),
        server: Some(server.address.clone()),
        ..Settings::default()
    };
    let mut remote = Remote::new(&settings, state.owner.manifest().data_set)?;
    let appended = append(&mut state, &remote, &args.input, false)?;
    eprintln!("{appended}");
    let mut rows = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        for row in Asker::new(&state, &mut remote).answer(query)? {
            let mut numbered = AnswerRow::new();
            numbered.insert("query".into(), Value::from(number + 1));
            numbered.extend(row);
            rows.push(numbered);
        }
    }
    write(output, &rows).blame_io(&args.output)?;
    eprintln!("{} queries, {} rows, every answer verified", queries.len(), rows.len());
    Ok(())
}

/// The output would take the place of what is read.
#[derive(Debug, thiserror::Error)]
#[error("the output is a file that is read: name another")]
struct Same;

/// Opens the output, which keeps what it holds until there is an answer.
fn output(args: &Args) -> Result<File, Failure> {
    let there = args.output.canonicalize().ok();
    for read in [&args.schema, &args.input, &args.query] {
        if there.is_some() && there == read.canonicalize().ok() {
            return Err(Same).blame_input(&args.output);
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

/// The server's process; it ends with us.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(identity: &Path, state: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().blame(Category::Io)?;
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
        let said = child.stderr.take().map(BufReader::new);
        let mut server = Self { child, address: String::new() };
        let mut lines = said.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let address = lines.find_map(|line| {
            let address = line.strip_prefix("serving at ").map(str::to_owned);
            if address.is_none() {
                eprintln!("{line}");
            }
            address
        });
        server.address = address.ok_or("the server did not start").blame(Category::Io)?;
        // What it says from now on is ours to show, and nobody's to wait for.
        std::thread::spawn(move || lines.for_each(|line| eprintln!("server: {line}")));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
