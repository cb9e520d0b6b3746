//! `alpheus table prune`: the server drops blocks that were written anew. Until then other
//! copies of the owner's folder are good.

use super::append::{Appended, send_waiting};
use super::remote::{Reach, Remote};
use super::state::TableState;
use crate::commands::Globals;
use crate::failure::{Category, Failure};

const EXAMPLES: &str = "\
Examples:
  cp -r ada ada.backup && alpheus table prune --identity pki/ada --state ada --server https://localhost:7601

Copy the folder first, and throw every other copy away, older ones and newer ones: of a block that
was written anew here they know the old one only, which is gone afterwards, and its rows with it.";

/// Arguments of `alpheus table prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Also if another copy of the folder has written blocks that this one does not know
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Another copy of the folder has written.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server has blocks of {0} starts of which this folder knows nothing: another copy of it has written them, and would lose what is dropped now"
)]
struct Strangers(usize);

/// Runs the command.
///
/// # Errors
/// If another copy of the folder has written, the server does not answer, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    // What replaces a block must be there before the block goes.
    send_waiting(&mut state, &remote, &mut Appended::default())?;
    let old = state.replaced();
    if !args.force && !old.is_empty() {
        alone(&state, &remote)?;
    }
    for address in &old {
        remote.forget(*address)?;
        state.pruned(address)?;
    }
    eprintln!("{} old blocks dropped", old.len());
    Ok(())
}

/// Whether all that the server has is this folder's, if it says the truth. A net only: a copy
/// that has sent no block is not seen, and a server that lies can lose blocks anyway.
fn alone(state: &TableState, remote: &Remote) -> Result<(), Failure> {
    let segments = remote.segments()?;
    let strangers = segments.iter().filter(|segment| !state.knows(segment)).count();
    if strangers == 0 {
        return Ok(());
    }
    let help = "prune in the newest copy and throw the others away, this one too; if that copy is gone for good: --force";
    Err(Failure::new(Category::Refused, Strangers(strangers)).with_help(help))
}
