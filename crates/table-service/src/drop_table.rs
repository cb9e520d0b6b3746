//! `alpheus table drop`: deletes a table's blocks and saved states at the server, and then its name, as
//! after a copy under another key.

use super::remote::Reach;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_verifiable_table::label::Address;

const EXAMPLES: &str = "\
Examples:
  alpheus table drop --name Street --identity pki/ada --state ada \\
      --server https://localhost:7601

An honest server deletes the table. The folder stays as it is; remove it yourself. If the server
kept copies, the old key still opens them: nothing can undo that.";

/// Arguments of `alpheus table drop`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table's name, so that no other one is deleted by mistake
    #[arg(long, value_name = "NAME")]
    name: String,
    #[command(flatten)]
    reach: Reach,
}

/// The folder holds another table.
#[derive(Debug, thiserror::Error)]
#[error("the table in this folder is called `{found}`; give its name with --name to delete it")]
pub(crate) struct OtherNameError {
    found: String,
}

/// Runs the command.
///
/// # Errors
/// If the folder holds another table, or the server does not answer.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (state, remote) = args.reach.open(globals)?;
    if args.name != state.schema.name {
        let other = OtherNameError { found: state.schema.name.clone() };
        return Err(Failure::new(Category::Usage, other));
    }
    // States first: one whose blocks are gone would recover a table without rows.
    let states = remote.states()?;
    for name in &states {
        remote.delete_state(*name)?;
    }
    let current = state.owner.runs().iter().flat_map(|run| {
        (run.from..run.to).map(|index| Address { segment: run.segment, epoch: run.epoch, index })
    });
    let mut blocks = 0;
    for address in current.chain(state.replaced()) {
        remote.delete(address)?;
        blocks += 1;
    }
    note!("{blocks} blocks and {} saved states deleted", states.len());
    let left: u64 = remote.segments()?.values().sum();
    if left > 0 {
        note!(
            "warning: the server has {left} more blocks of this table, from another copy of the folder: drop it there too"
        );
        return Ok(());
    }
    remote.forget()
}
