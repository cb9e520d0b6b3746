//! `alpheus board replay`: three servers as processes, one epoch, and a writer of
//! its own for each line of a file.

use crate::board::card::{self, Card};
use crate::board::client::{BoardError, Client, Posted};
use crate::board::init::Size;
use crate::board::keys;
use crate::commands::{Format, Globals};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::init::write_new;
use crate::pass::serve::block_on;
use crate::replay::inputs::read_text;
use alpheus_anonymous_board::admission::Members;
use alpheus_anonymous_board::reader::Reading;
use alpheus_anonymous_board::writer::{Content, Fate, View};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use serde::Serialize;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus board replay --input posts.txt --output board.txt
  alpheus board replay --input posts.txt --rows 20000 --output board.txt --format json

One machine and one person run all three servers here: it shows the board, and hides nothing
from who runs it. Each message that is lost to a collision is known to its writer, and counted.";

/// Writers that post at the same time.
const TOGETHER: usize = 32;
/// How long servers may take to answer for the first time.
const START: Duration = Duration::from_secs(60);
const SERVERS: [&str; 3] = ["first", "second", "auditor"];

/// Arguments of `alpheus board replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The messages, one in each line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Rows of the table; by default what delivers 95 % of the lines
    #[arg(long, value_name = "NUMBER")]
    rows: Option<u32>,
    /// Where the table's messages are written, one in each line; must not be there yet
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    lines: usize,
    rows: u32,
    delivered: usize,
    recovered: usize,
    lost: usize,
    rejected: usize,
}

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("the file has fewer than two lines; a table of one write would name its writer")]
    TooFew,
    #[error("a server did not start; see what it said above")]
    NotStarted,
    #[error("the table's messages are not those that writers found in it: a mistake of ours")]
    Silent,
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read or written, a server does not start, or what came back
/// is not what was posted.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let text = read_text(&args.input)?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() < 2 {
        return Err(Wrong::TooFew).blame_input(&args.input);
    }
    let writers: Vec<SigningKey> = (0..lines.len())
        .map(|_| Ok(SigningKey::from_seed(&Secret::random(&mut entropy::rng()?))))
        .collect::<Result<_, Failure>>()?;
    let folder = Folder::create()?;
    let _servers = start(&folder.0, &writers, args.rows)?;
    let card = card::open(&folder.0.join("board.json"))?;
    let rows = card.board.rows;
    let (reading, counts) = block_on(post_all(&card, &lines, writers))?;
    let counts = Counts { lines: lines.len(), rows, ..counts };
    if reading.messages.len() != counts.delivered + counts.recovered {
        return Err(Wrong::Silent).blame(Category::Check);
    }
    let mut out = Vec::new();
    for message in &reading.messages {
        out.extend_from_slice(message);
        out.push(b'\n');
    }
    write_new(&args.output, &String::from_utf8_lossy(&out), 0o644)?;
    print(&counts, globals.format.unwrap_or_default())
}

/// Posts all lines, then waits for the table.
async fn post_all(
    card: &card::Opened,
    lines: &[&str],
    writers: Vec<SigningKey>,
) -> Result<(Reading, Counts), Failure> {
    let client = Client::new(card)?;
    let view = Arc::new(first_view(&client).await?);
    let mut counts = Counts::default();
    let (mut posted, mut waiting) = (Vec::new(), tokio::task::JoinSet::new());
    for (line, key) in lines.iter().zip(writers) {
        if waiting.len() >= TOGETHER {
            collect(waiting.join_next().await, &mut posted, &mut counts)?;
        }
        let (client, view, line) = (client.clone(), Arc::clone(&view), (*line).to_owned());
        waiting.spawn(async move {
            let mut rng = entropy::rng()?;
            let content = Content::Message(line.as_bytes());
            Ok::<_, Failure>(client.post(&view, content, &key, &mut rng).await)
        });
    }
    while !waiting.is_empty() {
        collect(waiting.join_next().await, &mut posted, &mut counts)?;
    }
    let epoch = view.epoch();
    let (reading, fates) = client.settled(epoch, &posted).await?;
    for fate in fates {
        match fate {
            Fate::Delivered => counts.delivered += 1,
            Fate::Recovered => counts.recovered += 1,
            Fate::Lost | Fate::Covered => counts.lost += 1,
        }
    }
    Ok((reading, counts))
}

type Joined = Option<Result<Result<Result<Posted, BoardError>, Failure>, tokio::task::JoinError>>;

fn collect(done: Joined, posted: &mut Vec<Posted>, counts: &mut Counts) -> Result<(), Failure> {
    let Some(done) = done else { return Ok(()) };
    match done.blame(Category::Io)?? {
        Ok(one) => posted.push(one),
        Err(error @ (BoardError::Server(..) | BoardError::Malformed(_))) if !refused(&error) => {
            return Err(error.into());
        }
        Err(error) => {
            eprintln!("a line is rejected: {error}");
            counts.rejected += 1;
        }
    }
    Ok(())
}

fn refused(error: &BoardError) -> bool {
    use crate::pass::link::LinkError;
    matches!(error, BoardError::Server(_, LinkError::Refused(problem)) if problem.status < 500)
}

/// Waits for the servers to start.
async fn first_view(client: &Client) -> Result<View, Failure> {
    let until = tokio::time::Instant::now() + START;
    loop {
        match client.view().await {
            Ok(view) => return Ok(view),
            Err(BoardError::Server(..)) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A folder that goes with the command.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, Failure> {
        let name = Secret::<16>::random(&mut entropy::rng()?);
        let name = data_encoding::HEXLOWER.encode(name.expose());
        let path = std::env::temp_dir().join(format!("alpheus-board-{name}"));
        std::fs::create_dir(&path).blame_io(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Processes that go with the command.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes PKI, keys and card in a folder, and starts the servers.
fn start(folder: &Path, writers: &[SigningKey], rows: Option<u32>) -> Result<Servers, Failure> {
    command(folder, &["ca", "init", "pki"])?;
    let mut at: Vec<SocketAddr> = Vec::new();
    for name in SERVERS {
        command(folder, &["ca", "issue", "pki", "--role", "board", "--name", name])?;
        at.push(free_address()?);
    }
    let key = |name: &str| keys::create(&folder.join(format!("{name}.key")));
    let servers = [key(SERVERS[0])?, key(SERVERS[1])?, key(SERVERS[2])?];
    let lines: Vec<String> = writers.iter().map(|key| keys::hex(&key.verifying_key())).collect();
    write_new(&folder.join("members.txt"), &(lines.join("\n") + "\n"), 0o644)?;
    let members = Members::new(writers.iter().map(SigningKey::verifying_key));
    let size = Size {
        writers: u32::try_from(writers.len()).blame(Category::Input)?,
        rows,
        fewest: 2,
        epoch: 3600,
        complaints: 1,
        patience: 3600,
    };
    let configuration =
        size.configuration(servers.each_ref().map(SigningKey::verifying_key), &members)?;
    let authority = std::fs::read_to_string(folder.join("pki/ca.pem")).blame_io(folder)?;
    let urls = [0, 1, 2].map(|i| at.get(i).map_or_else(String::new, |at| format!("https://{at}")));
    let operator = SigningKey::from_seed(&Secret::random(&mut entropy::rng()?));
    let card = Card::new(&configuration, urls, Some(authority), &operator);
    card.open().blame(Category::Usage)?;
    let text = serde_json::to_string_pretty(&card).blame(Category::Io)?;
    write_new(&folder.join("board.json"), &text, 0o644)?;
    let mut started = Servers(Vec::new());
    for (name, at) in SERVERS.iter().zip(&at) {
        started.0.push(serve(folder, name, at)?);
    }
    Ok(started)
}

fn serve(folder: &Path, name: &str, at: &SocketAddr) -> Result<Child, Failure> {
    let role = if name == "auditor" { "auditor" } else { "database" };
    let (identity, key, state) =
        (format!("pki/{name}"), format!("{name}.key"), format!("run/{name}"));
    let at = at.to_string();
    let mut command = Command::new(std::env::current_exe().blame(Category::Io)?);
    command.current_dir(folder).args(["board", "serve", "--role", role, "--identity", &identity]);
    command.args(["--card", "board.json", "--key", &key, "--members", "members.txt"]);
    command.args(["--state", &state, "--api", &at]).stdin(Stdio::null()).stdout(Stdio::null());
    if std::env::var_os("ALPHEUS_LOG").is_none() {
        command.stderr(Stdio::null());
    }
    command.spawn().blame(Category::Io)
}

fn command(folder: &Path, args: &[&str]) -> Result<(), Failure> {
    let program = std::env::current_exe().blame(Category::Io)?;
    let status =
        Command::new(program).current_dir(folder).args(args).stdout(Stdio::null()).status();
    let done = status.blame(Category::Io)?.success();
    if done { Ok(()) } else { Err(Wrong::NotStarted).blame(Category::Io) }
}

fn free_address() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

fn print(counts: &Counts, format: Format) -> Result<(), Failure> {
    let Counts { lines, rows, delivered, recovered, lost, rejected } = *counts;
    let mut out = std::io::stdout().lock();
    let said = match format {
        Format::Table => format!(
            "{lines} lines into {rows} rows: {delivered} delivered, {recovered} recovered, {lost} lost to collisions, {rejected} rejected"
        ),
        Format::Csv => format!(
            "lines,rows,delivered,recovered,lost,rejected\n{lines},{rows},{delivered},{recovered},{lost},{rejected}"
        ),
        Format::Json => serde_json::to_string_pretty(counts).blame(Category::Io)?,
    };
    writeln!(out, "{said}").blame(Category::Io)
}
