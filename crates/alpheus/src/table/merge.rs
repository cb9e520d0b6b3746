//! `alpheus table merge`: blocks that many starts have sealed are fetched, checked, and
//! written anew as one run. Killed at any point, what was written stays, and the same
//! command goes on with the rest.

use super::append::{Appended, send_waiting};
use super::correct::fetch;
use super::remote::{Reach, Remote};
use super::state::TableState;
use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::service::progress::Progress;
use std::ops::Range;

const EXAMPLES: &str = "\
Examples:
  alpheus table merge --identity pki/ada --state ada --server https://localhost:7601
  alpheus table merge --below 100 --identity pki/ada --state ada --server https://localhost:7601

Each start that seals blocks begins a run, and checking a sum takes some microseconds for each.
A merge downloads and uploads its blocks; --below leaves those alone that stand in long runs, also
if a merge that was broken off has begun them. The server keeps the old blocks, which other copies
of the folder need, until `alpheus table prune`.";

/// Arguments of `alpheus table merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The first block
    #[arg(long, value_name = "BLOCK", default_value_t = 0)]
    from: u64,
    /// One more than the last block; by default all
    #[arg(long, value_name = "BLOCK", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,
    /// Only neighbouring runs of fewer blocks than this
    #[arg(long, value_name = "BLOCKS", default_value_t = u64::MAX, hide_default_value = true)]
    below: u64,
    #[command(flatten)]
    reach: Reach,
}

/// There are no such blocks.
#[derive(Debug, thiserror::Error)]
#[error(
    "no block stands from --from {from} to --to: the table has {blocks} blocks, counted from 0"
)]
struct NoRange {
    from: u64,
    blocks: u64,
}

/// Runs the command.
///
/// # Errors
/// If the server does not answer, its answer is rejected, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, mut remote) = args.reach.open(globals)?;
    let blocks = state.owner.blocks();
    if args.from >= args.to || args.from > blocks {
        return Err(Failure::new(Category::Usage, NoRange { from: args.from, blocks }));
    }
    send_waiting(&mut state, &remote, &mut Appended::default())?;
    let (before, mut blocks) = (state.owner.runs().len(), 0);
    // What was broken off is finished first, and joined then: each time there are fewer runs.
    loop {
        let stretches = state.owner.scattered(&(args.from..args.to), args.below);
        if stretches.is_empty() {
            break;
        }
        let these = stretches.iter().map(|blocks| blocks.end - blocks.start).sum();
        let mut progress = Progress::new("blocks", Some(these));
        for stretch in stretches {
            merge(&mut state, &mut remote, stretch, &mut progress)?;
        }
        blocks += these;
    }
    let after = state.owner.runs().len();
    eprintln!("{blocks} blocks written anew; {before} runs are {after} now");
    Ok(())
}

/// Each block's commit holds its bytes, where it stands and what it replaces; then it goes
/// out.
fn merge(
    state: &mut TableState,
    remote: &mut Remote,
    blocks: Range<u64>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut merge = state.owner.begin_merge(blocks).blame(Category::Io)?;
    while let Some(index) = merge.next_block() {
        let (old, block) = (state.owner.address(index), fetch(state, remote, index)?);
        let step = state.owner.merge(&mut merge, &block, &mut state.rng).blame(Category::Io)?;
        let step = step.and(state.replaced_by(old));
        drop(state.commit(step)?);
        send_waiting(state, remote, &mut Appended::default())?;
        progress.advance(1);
    }
    Ok(())
}
