//! `alpheus table create`: creates a table's key and state, and registers it at the server.

use super::remote::{Reach, Remote};
use super::save::settle;
use super::state::TableState;
use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::settings::Settings;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus table create schema.yaml --identity pki/ada --state ada \\
      --server https://localhost:7601

Keep a copy of ada/table.key: without it the table is unreadable for ever. With it, `alpheus table
recover` rebuilds a lost folder from what the server has.";

/// Arguments of `alpheus table create`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema: columns, bounds, pairs
    schema: PathBuf,
    #[command(flatten)]
    reach: Reach,
}

/// Runs the command.
///
/// # Errors
/// If the folder exists, the schema is invalid, or the server does not answer.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let folder = Settings::needed(&settings.state, "state")?;
    let mut state = TableState::create(&folder, &args.schema)?;
    let manifest = state.owner.manifest().clone();
    let help = "the table exists here; the first `alpheus table append` registers it at the server";
    let (set, columns, products) = (manifest.set, manifest.columns, manifest.products.len());
    let registered = Remote::new(&settings, manifest.data_set).and_then(|remote| {
        remote.create(&manifest)?;
        settle(&mut state, &remote)
    });
    registered.map_err(|failure| failure.with_help(help))?;
    note!(
        "table `{}` created in {}: {set}, {columns} ciphertexts and {products} products per block of {} rows",
        state.schema.name,
        folder.display(),
        state.owner.block_rows(),
    );
    Ok(())
}
