//! `alpheus board replay`: a board's servers as processes, one epoch, and a writer of
//! its own for each line of a file.

use crate::board::card;
use crate::board::client::{BoardError, Client, Posted};
use crate::board::entry::Entry;
use crate::board::stage::{Keepers, Stage};
use crate::commands::{Format as Shown, Globals};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::init::write_new;
use crate::pass::serve::block_on;
use crate::replay::inputs::read_text;
use alpheus_anonymous_board::reader::Reading;
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::writer::{Content, Fate, View};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus board replay --input posts.txt --output board.txt
  alpheus board replay --input posts.txt --rows 20000 --output board.txt --format json
  alpheus board replay --input posts.txt --servers 3 --output board.txt

One machine and one person run all servers here: it shows the board, and hides nothing
from who runs it. Each message that is lost to a collision is known to its writer, and counted.";

/// Writers that post at the same time.
const TOGETHER: usize = 32;
/// How long servers may take to answer for the first time.
const START: Duration = Duration::from_secs(60);

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
    /// So many equal servers, in place of two databases and an auditor
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(3..=6))]
    servers: Option<u8>,
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
    left_out: usize,
    rejected: usize,
}

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("the file has fewer than two lines; a table of one write would name its writer")]
    TooFew,
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
    let keepers = args.servers.map_or(Keepers::Audited, Keepers::Equal);
    let stage = Stage::start(&writers, Format::RECOVERED, args.rows, keepers)?;
    let rows = stage.card.board.rows;
    let (reading, counts) = block_on(post_all(&stage.card, &lines, writers))?;
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
        waiting.spawn(async move { one(&client, &view, &line, &key).await });
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
            Fate::Lost => counts.lost += 1,
            Fate::LeftOut => counts.left_out += 1,
            Fate::Covered => {}
        }
    }
    Ok((reading, counts))
}

/// Posts a line. The writer of one that is no message writes a cover, since the epoch
/// closes once everybody has written.
async fn one(
    client: &Client,
    view: &View,
    line: &str,
    key: &SigningKey,
) -> Result<(Posted, bool), Failure> {
    let mut rng = entropy::rng()?;
    match client
        .post(view, Content::Message(line.as_bytes()), &mut Entry::Member(key), &mut rng)
        .await
    {
        Ok(posted) => Ok((posted, true)),
        Err(BoardError::NotWritten(refused)) => {
            eprintln!("a line is rejected: {refused}");
            Ok((client.post(view, Content::Cover, &mut Entry::Member(key), &mut rng).await?, false))
        }
        Err(error) => Err(error.into()),
    }
}

type Joined = Option<Result<Result<(Posted, bool), Failure>, tokio::task::JoinError>>;

fn collect(done: Joined, posted: &mut Vec<Posted>, counts: &mut Counts) -> Result<(), Failure> {
    let Some(done) = done else { return Ok(()) };
    let (one, accepted) = done.blame(Category::Io)??;
    posted.push(one);
    counts.rejected += usize::from(!accepted);
    Ok(())
}

/// Waits for the servers to start.
///
/// # Errors
/// If they do not.
pub async fn first_view(client: &Client) -> Result<View, Failure> {
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

fn print(counts: &Counts, format: Shown) -> Result<(), Failure> {
    let Counts { lines, rows, delivered, recovered, lost, left_out, rejected } = *counts;
    let mut out = std::io::stdout().lock();
    let said = match format {
        Shown::Table => format!(
            "{lines} lines into {rows} rows: {delivered} delivered, {recovered} recovered, {lost} lost to collisions, {left_out} left out, {rejected} rejected"
        ),
        Shown::Csv => format!(
            "lines,rows,delivered,recovered,lost,left_out,rejected\n{lines},{rows},{delivered},{recovered},{lost},{left_out},{rejected}"
        ),
        Shown::Json => serde_json::to_string_pretty(counts).blame(Category::Io)?,
    };
    writeln!(out, "{said}").blame(Category::Io)
}
