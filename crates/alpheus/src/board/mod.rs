//! `alpheus board`: a public table that members write to while no server learns
//! who wrote what. Two databases and an auditor, or three to six equal servers, each run by
//! another operator.
//!
//! - [`keys`], [`init`], [`card`]: keys and the public card of a board,
//! - [`serve`]: a database, the auditor or an equal server as a process,
//! - [`door`], [`entry`]: who admits by passes, and how writers come in,
//! - [`client`], `complaints`: the ways to the servers, for writers, readers and other parts,
//! - [`post`], [`read`]: the writer and the reader,
//! - [`replay`], [`stage`]: a whole board for one epoch of a file's lines,
//! - [`settings`]: what the processes can be told.

pub mod card;
pub mod client;
mod complaints;
pub mod door;
pub mod entry;
pub mod init;
pub mod keys;
pub mod post;
pub mod read;
pub mod replay;
pub mod serve;
pub mod settings;
pub mod stage;

use crate::commands::Globals;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  alpheus board key first.key
  alpheus board init board.json --first https://localhost:7601 --first-key HEX --second https://localhost:7602 --second-key HEX --auditor https://localhost:7603 --auditor-key HEX --members members.txt
  alpheus board serve --role database --identity pki/first --card board.json --key first.key --members members.txt --state run/first --api 127.0.0.1:7601
  alpheus board post 'Hello' --card board.json --key ada.key
  alpheus board read --card board.json
  alpheus board replay --input posts.txt --output board.txt

docs/board.md is a guide with three terminals.";

/// Arguments of `alpheus board`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a signing key, of a server or of a member, and print its public half
    Key(keys::Args),
    /// Make a board's card, which everybody pins
    Init(Box<init::Args>),
    /// Run one of the servers
    Serve(serve::Args),
    /// Run the doorkeeper of a board whose writers show passes
    Door(door::Args),
    /// Write a message, or a cover, in the epoch that is open
    Post(post::Args),
    /// Read an epoch's messages, and check that they are what the servers signed
    Read(read::Args),
    /// Post each line of a file by a writer of its own, over three servers started here
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong, a file, a store or an address cannot be had, a
/// server refuses.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Key(args) => keys::run(args),
        What::Init(args) => init::run(args),
        What::Serve(args) => serve::run(args, globals),
        What::Door(args) => door::run(args, globals),
        What::Post(args) => post::run(args, globals),
        What::Read(args) => read::run(args, globals),
        What::Replay(args) => replay::run(args, globals),
    }
}
