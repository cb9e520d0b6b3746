//! `alpheus table prune`: the server drops blocks that were written anew. Until then older
//! copies of the owner's folder are good.

use super::append::{Appended, send_waiting};
use super::remote::Reach;
use crate::commands::Globals;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  cp -r ada ada.backup && alpheus table prune --identity pki/ada --state ada --server https://localhost:7601

Copy the folder first, and throw older copies away: of a block that was written anew they know the
old one only, which is gone afterwards, and its rows with it.";

/// Arguments of `alpheus table prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    reach: Reach,
}

/// Runs the command.
///
/// # Errors
/// If the server does not answer, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    // What replaces a block must be there before the block goes.
    send_waiting(&mut state, &remote, &mut Appended::default())?;
    let old = state.replaced();
    for address in &old {
        remote.forget(*address)?;
        state.pruned(address)?;
    }
    eprintln!("{} old blocks dropped", old.len());
    Ok(())
}
