//! `alpheus table`: an encrypted table on a server that is not trusted. The
//! owner uploads it, forgets it, and asks; every answer is checked.
//!
//! - [`create`], [`append`], [`correct`], [`merge`], [`prune`], [`query`], [`verify`]: the owner,
//! - [`serve`]: the server, which holds no key,
//! - [`replay`]: both as processes, over a recorded file,
//! - [`schema`], [`sql`], [`index`], [`csv_rows`], [`ask`]: what they are made of,
//! - [`state`], [`remote`], [`blocks`], [`storage`], [`wire`]: what lasts, and the network.

pub mod append;
pub mod ask;
pub mod blocks;
pub mod correct;
pub mod create;
pub mod csv_rows;
pub mod index;
pub mod merge;
pub mod prune;
pub mod query;
pub mod remote;
pub mod replay;
pub mod schema;
pub mod serve;
pub mod sql;
pub mod state;
pub mod storage;
pub mod verify;
pub mod wire;

use crate::commands::Globals;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  alpheus table serve --identity pki/service --state run/tables --api 127.0.0.1:7601
  alpheus table create schema.yaml --identity pki/ada --state ada --server https://localhost:7601
  alpheus table append counts.csv --identity pki/ada --state ada --server https://localhost:7601
  alpheus table query 'SELECT MEAN(cars), REGRESSION(trucks ~ cars)' --identity pki/ada --state ada --server https://localhost:7601
  alpheus table verify --identity pki/ada --state ada --server https://localhost:7601
  alpheus table replay --schema schema.yaml --input counts.csv --query stats.sql --output out.json

docs/tables.md is a guide.";

/// Arguments of `alpheus table`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a table: its key, its state, and its name at the server
    Create(create::Args),
    /// Encrypt rows of a CSV file and upload them; goes on where it was interrupted
    Append(append::Args),
    /// Replace rows, by a CSV file with the right ones
    Correct(correct::Args),
    /// Write blocks of many starts anew as one run, so that sums are checked as fast again
    Merge(merge::Args),
    /// Let the server drop blocks that were written anew
    Prune(prune::Args),
    /// Ask for statistics, and check the answers
    Query(query::Args),
    /// Check all that the server stores, a constant amount for each column
    Verify(verify::Args),
    /// Store blocks and add them up; no key to any of it
    Serve(serve::Args),
    /// Run a recorded file through owner and server, and ask
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or wrong, a file or the server cannot be had, or an answer
/// is rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.what {
        What::Create(args) => create::run(args, globals),
        What::Append(args) => append::run(args, globals),
        What::Correct(args) => correct::run(args, globals),
        What::Merge(args) => merge::run(args, globals),
        What::Prune(args) => prune::run(args, globals),
        What::Query(args) => query::run(args, globals),
        What::Verify(args) => verify::run(args, globals),
        What::Serve(args) => serve::run(args, globals),
        What::Replay(args) => replay::run(args, globals),
    }
}
