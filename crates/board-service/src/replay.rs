//! `alpheus board replay`: starts a board's servers as processes, and posts each line of a file as
//! a separate writer in one epoch.

use crate::card;
use crate::client::{BoardError, Client, PostedWrite};
use crate::entry::Entry;
use crate::stage::{Keepers, Stage};
use alpheus_anonymous_board::reader::Reading;
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::writer::{Content, Fate, View};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::files::{STANDARD_OUTPUT, write_output};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_node::settings::Format as OutputFormat;
use alpheus_time::Span;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  alpheus board replay --input posts.txt --output board.txt
  alpheus board replay --input posts.txt --rows 20000 --output board.txt --format json
  alpheus board replay --input posts.txt --servers 3 --output board.txt

One person runs all servers on one machine, so this demonstrates the board but hides nothing from
that person. Writers detect messages lost to collisions, and the command counts them.";

/// Writers that post in parallel.
const MAX_PARALLEL: usize = 32;
/// How long servers may take to start.
const START: Duration = Duration::from_secs(60);

/// Arguments of `alpheus board replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file with the messages, one per line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Rows of the table; by default enough to deliver 95 % of the lines
    #[arg(long, value_name = "NUMBER")]
    rows: Option<u32>,
    /// Number of equal servers, in place of two databases and an auditor
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(3..=6))]
    servers: Option<u8>,
    /// The file for the table's messages, one per line; it must not exist yet. `-` is standard
    /// output
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// The printed counts.
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

/// The replay failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum ReplayError {
    #[error(
        "the file has fewer than two lines; add lines, since a table of one write would identify its writer"
    )]
    TooFew,
    #[error(
        "the table's messages differ from those that writers found in it; this is a bug, please report it"
    )]
    Silent,
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be read or written, a server does not start, or the table differs from the
/// posted messages.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let text = read_text(&args.input)?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() < 2 {
        return Err(ReplayError::TooFew).blame_input(&args.input);
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
        return Err(ReplayError::Silent).blame(Category::Check);
    }
    let mut out = Vec::new();
    for message in &reading.messages {
        out.extend_from_slice(message);
        out.push(b'\n');
    }
    write_output(&args.output, &out)?;
    let format = globals.format.unwrap_or_default();
    // Counts do not stand among the messages.
    match args.output == Path::new(STANDARD_OUTPUT) {
        true => print(&counts, format, note::lines()),
        false => print(&counts, format, std::io::stdout().lock()),
    }
}

/// Posts all lines, then waits for the table.
async fn post_all(
    card: &card::VerifiedCard,
    lines: &[&str],
    writers: Vec<SigningKey>,
) -> Result<(Reading, Counts), Failure> {
    let client = Client::new(card)?;
    let view = Arc::new(first_view(&client).await?);
    let mut counts = Counts::default();
    let (mut posted, mut waiting) = (Vec::new(), tokio::task::JoinSet::new());
    for (line, key) in lines.iter().zip(writers) {
        if waiting.len() >= MAX_PARALLEL {
            collect(waiting.join_next().await, &mut posted, &mut counts)?;
        }
        let (client, view, line) = (client.clone(), Arc::clone(&view), (*line).to_owned());
        waiting.spawn(async move {
            one(&client, &view, &line, &mut Entry::Member(Box::new(key))).await
        });
    }
    while !waiting.is_empty() {
        collect(waiting.join_next().await, &mut posted, &mut counts)?;
    }
    let epoch = view.epoch();
    let (reading, fates) = client.settle(epoch, &posted).await?;
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

/// Posts a line. If the line cannot be a message, its writer posts a cover, because the epoch
/// closes once all have written.
async fn one(
    client: &Client,
    view: &View,
    line: &str,
    entry: &mut Entry,
) -> Result<(PostedWrite, bool), Failure> {
    let mut rng = entropy::rng()?;
    match client.post(view, Content::Message(line.as_bytes()), entry, Span(0), &mut rng).await {
        Ok(posted) => Ok((posted, true)),
        Err(BoardError::NotWritten(refused)) => {
            note!("a line is rejected: {refused}");
            Ok((client.post(view, Content::Cover, entry, Span(0), &mut rng).await?, false))
        }
        Err(error) => Err(error.into()),
    }
}

type PostResult = Option<Result<Result<(PostedWrite, bool), Failure>, tokio::task::JoinError>>;

fn collect(
    done: PostResult,
    posted: &mut Vec<PostedWrite>,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let Some(done) = done else { return Ok(()) };
    let (one, accepted) = done.blame(Category::Io)??;
    posted.push(one);
    counts.rejected += usize::from(!accepted);
    Ok(())
}

/// Waits for the servers to start.
///
/// # Errors
/// If they do not start in time.
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

fn print(counts: &Counts, format: OutputFormat, mut out: impl Write) -> Result<(), Failure> {
    let Counts { lines, rows, delivered, recovered, lost, left_out, rejected } = *counts;
    let said = match format {
        OutputFormat::Table => format!(
            "{lines} lines into {rows} rows: {delivered} delivered, {recovered} recovered, {lost} lost to collisions, {left_out} left out, {rejected} rejected"
        ),
        OutputFormat::Csv => format!(
            "lines,rows,delivered,recovered,lost,left_out,rejected\n{lines},{rows},{delivered},{recovered},{lost},{left_out},{rejected}"
        ),
        OutputFormat::Json => serde_json::to_string_pretty(counts).blame(Category::Io)?,
    };
    writeln!(out, "{said}").blame(Category::Io)
}
