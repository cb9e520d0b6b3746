//! `alpheus board`: a public table that members write to without any server learning who wrote
//! what. A board has two databases and an auditor, or three to six equal servers. Each server has
//! its own operator.
//!
//! - [`keys`], [`init`], [`card`]: keys and the public card of a board,
//! - [`serve`]: a database, the auditor or an equal server as a process,
//! - [`role`]: the setup that they and the doorkeeper share,
//! - [`door`], [`entry`]: the doorkeeper that checks passes, and how writers are admitted,
//! - [`client`], [`links`], `complaints`: connections to the servers, for writers, readers and other parts,
//! - [`post`], [`content`], [`read`]: the writer and the reader,
//! - [`moments`]: when a writer's machine contacts each server,
//! - [`member`], [`queue`]: a member that writes in every epoch, and the messages that wait for it,
//! - [`replay`], [`stage`]: a local board that runs one epoch over a file's lines,
//! - [`settings`]: the settings of the processes.

pub mod card;
pub mod client;
pub mod content;
pub mod door;
pub mod entry;
pub mod error_ids;
pub mod init;
pub mod keys;
pub mod links;
pub mod member;
pub mod moments;
pub mod post;
pub mod queue;
pub mod read;
mod refusal;
pub mod replay;
pub mod role;
pub mod serve;
pub mod settings;
pub mod stage;
#[cfg(test)]
mod test_board;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus board key first.key > first.pub
  alpheus board init board.json --first https://localhost:7601 --first-key $(cat first.pub) \\
      --second https://localhost:7602 --second-key $(cat second.pub) \\
      --auditor https://localhost:7603 --auditor-key $(cat auditor.pub) --members members.txt
  alpheus board serve --role database --identity pki/first --card board.json --key first.key \\
      --members members.txt --state run/first --fence fences/first --api 127.0.0.1:7601
  alpheus board member --card board.json --key ada.key --state run/ada
  echo 'Hello' | alpheus board queue --card board.json --state run/ada
  alpheus board read --card board.json
  alpheus board replay --input posts.txt --output board.txt

docs/board.md is a guide with three terminals.";

/// Arguments of `alpheus board`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a signing key for a server or a member, and print its public half
    Key(keys::Args),
    /// Create a board's card, which all participants pin
    Init(Box<init::Args>),
    /// Run one of the board's servers
    Serve(serve::Args),
    /// Run the doorkeeper of a board that admits writers by access pass
    Door(door::Args),
    /// Write a message, or a cover, in the current epoch
    Post(post::Args),
    /// Write once in every epoch: a queued message, or a cover
    Member(member::Args),
    /// Queue a message for `alpheus board member`, or show what became of earlier ones
    Queue(queue::Args),
    /// Read an epoch's messages, and check them against the servers' signatures
    Read(read::Args),
    /// Start local servers and post each line of a file as a separate writer
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong; a file, store or address is unavailable; or a server refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Command::Key(args) => keys::run(args),
        Command::Init(args) => init::run(args),
        Command::Serve(args) => serve::run(args, globals),
        Command::Door(args) => door::run(args, globals),
        Command::Post(args) => post::run(args, globals),
        Command::Member(args) => member::run(args, globals),
        Command::Queue(args) => queue::run(args, globals),
        Command::Read(args) => read::run(args, globals),
        Command::Replay(args) => replay::run(args, globals),
    }
}
