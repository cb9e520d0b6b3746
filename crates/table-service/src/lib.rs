//! `alpheus table`: an encrypted table on an untrusted server. The owner uploads rows, may
//! delete its own copy of them, and queries them; every answer is verified.
//!
//! - [`create`], [`append`], [`correct`], [`merge`], [`prune`], [`query`], [`verify`], [`recover`],
//!   [`rekey`], [`drop_table`]: the owner,
//! - [`serve`], [`quotas`], [`settings`]: the server, which holds no key,
//! - [`replay`]: both as processes, over a recorded file,
//! - [`schema`], [`sql`], [`index`], [`csv_rows`], [`ask`], [`answer`], [`query_cost`], [`statistics`]: schemas,
//!   rows and queries,
//! - [`state`], [`save`], [`remote`], [`blocks`], [`storage`], [`wire`]: durable state and the network.

pub mod answer;
pub mod append;
pub mod ask;
pub mod blocks;
pub mod correct;
pub mod create;
pub mod csv_rows;
pub mod drop_table;
pub mod error_ids;
pub mod index;
pub mod links;
pub mod merge;
pub mod prune;
pub mod query;
pub mod query_cost;
pub mod quotas;
pub mod recover;
pub mod rekey;
pub mod remote;
pub mod replay;
pub mod save;
pub mod schema;
pub mod serve;
pub mod settings;
pub mod sql;
pub mod state;
pub mod statistics;
pub mod storage;
pub mod verify;
pub mod wire;

use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus table serve --identity pki/service --state run/tables --api 127.0.0.1:7601
  alpheus table create schema.yaml --identity pki/ada --state ada \\
      --server https://localhost:7601
  alpheus table append counts.csv --identity pki/ada --state ada --server https://localhost:7601
  alpheus table query 'SELECT MEAN(cars), REGRESSION(trucks ~ cars)' --identity pki/ada \\
      --state ada --server https://localhost:7601
  alpheus table verify --identity pki/ada --state ada --server https://localhost:7601
  alpheus table replay --schema schema.yaml --input counts.csv --query stats.sql \\
      --output out.json

docs/tables.md is a guide.";

/// Arguments of `alpheus table`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create a table: its key, its state, and its name at the server
    Create(create::Args),
    /// Encrypt and upload the rows of a CSV file; continues after an interruption
    Append(append::Args),
    /// Replace rows by those of a CSV file
    Correct(correct::Args),
    /// Rewrite the blocks of many starts as one run, so that sums are verified faster
    Merge(merge::Args),
    /// Delete rewritten blocks at the server
    Prune(prune::Args),
    /// Run statistics queries and verify the answers
    Query(query::Args),
    /// Copy the table under another key, and perhaps a wider schema; continues after an interruption
    Rekey(rekey::Args),
    /// Delete the table at the server
    Drop(drop_table::Args),
    /// Rebuild a lost folder from the key and what the server has
    Recover(recover::Args),
    /// Verify all blocks that the server stores, by one sum per column, and the saved state
    Verify(verify::Args),
    /// Store blocks and add them up, without any key
    Serve(serve::Args),
    /// Run a recorded file through owner and server, and query it
    Replay(replay::Args),
}

/// Runs the command.
///
/// # Errors
/// A setting is missing or invalid, a file or the server is not available, or an answer is
/// rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create::run(args, globals),
        Command::Append(args) => append::run(args, globals),
        Command::Correct(args) => correct::run(args, globals),
        Command::Merge(args) => merge::run(args, globals),
        Command::Prune(args) => prune::run(args, globals),
        Command::Query(args) => query::run(args, globals),
        Command::Rekey(args) => rekey::run(args, globals),
        Command::Drop(args) => drop_table::run(args, globals),
        Command::Recover(args) => recover::run(args, globals),
        Command::Verify(args) => verify::run(args, globals),
        Command::Serve(args) => serve::run(args, globals),
        Command::Replay(args) => replay::run(args, globals),
    }
}
