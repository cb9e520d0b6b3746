//! `alpheus table prune`: deletes rewritten blocks at the server. Until then other copies of
//! the owner's folder remain usable.

use super::remote::{Reach, Remote};
use super::save::settle;
use super::state::TableState;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;

const EXAMPLES: &str = "\
Examples:
  cp -r ada ada.backup && alpheus table prune --identity pki/ada --state ada \\
      --server https://localhost:7601

Copy the folder first, and delete every other copy, older or newer. Other copies refer to the old
versions of blocks that were rewritten here. Pruning deletes these versions, and the other copies
lose their rows.";

/// Arguments of `alpheus table prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Prune even if another copy of the folder has uploaded blocks that this one does not know, or
    /// the state is not saved at the server
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Another copy of the folder has uploaded blocks.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server has blocks of {0} starts that this folder does not know: another copy of the folder uploaded them, and would lose the blocks that are deleted now"
)]
pub(crate) struct UnknownSegmentsError(usize);

/// The server has no state that knows the new blocks.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state is too large to be saved at the server, and the server's older state needs the old blocks: without them, a lost folder could not be recovered"
)]
pub(crate) struct UnsavedStateError;

/// Runs the command.
///
/// # Errors
/// If the state is not saved, another copy of the folder has uploaded blocks, the server does not answer, or the disk
/// fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    // A block's replacement, and the state that knows it, must be stored before the block is
    // deleted.
    settle(&mut state, &remote)?;
    let old = state.replaced();
    if !args.force && !old.is_empty() {
        check_saved(&state)?;
        check_segments(&state, &remote)?;
    }
    for address in &old {
        remote.delete(*address)?;
        state.record_pruned(address)?;
    }
    settle(&mut state, &remote)?;
    note!("{} old blocks deleted", old.len());
    Ok(())
}

/// Checks that the state at the server does not need the old blocks.
fn check_saved(state: &TableState) -> Result<(), Failure> {
    if !state.owner.has_unsaved() {
        return Ok(());
    }
    let help = "copy the folder, which is the only way back if it is lost; then use --force";
    Err(Failure::new(Category::Refused, UnsavedStateError).with_help(help))
}

/// Checks that all blocks at an honest server belong to this folder. This is a safety net
/// only: it does not notice a copy that has uploaded nothing, nor a server that lies.
fn check_segments(state: &TableState, remote: &Remote) -> Result<(), Failure> {
    let segments = remote.segments()?;
    let unknown = segments.keys().filter(|segment| !state.knows(segment)).count();
    if unknown == 0 {
        return Ok(());
    }
    let help = "prune in the newest copy and delete the others, this one too; if that copy is lost, use --force";
    Err(Failure::new(Category::Refused, UnknownSegmentsError(unknown)).with_help(help))
}
