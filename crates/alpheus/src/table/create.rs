//! `alpheus table create`: a table's key and state, and its name at the server.

use super::remote::{Reach, Remote};
use super::state::TableState;
use crate::commands::Globals;
use crate::failure::Failure;
use crate::service::Settings;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus table create schema.yaml --identity pki/ada --state ada --server https://localhost:7601

Keep a copy of ada/table.key: without it nobody can read the table again. A backup of the
whole folder may be old: it makes no answer wrong, and rows appended since are not in it.";

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
/// If the folder is there already, the schema makes no table, or the server does not
/// answer.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let folder = Settings::needed(&settings.state, "state")?;
    let state = TableState::create(&folder, &args.schema)?;
    let manifest = state.owner.manifest();
    let again = "the table is made here, and is told to the server by the first append";
    let told = Remote::new(&settings, manifest.data_set).and_then(|remote| remote.create(manifest));
    told.map_err(|failure| failure.with_help(again))?;
    let (set, columns, products) = (manifest.set, manifest.columns, manifest.products.len());
    eprintln!(
        "table `{}` made in {}: {set}, {columns} ciphertexts and {products} products a block of {} rows",
        state.schema.name,
        folder.display(),
        state.owner.block_rows(),
    );
    Ok(())
}
