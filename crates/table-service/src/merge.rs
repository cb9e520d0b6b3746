//! `alpheus table merge`: fetches blocks that many starts have sealed, verifies them, and
//! rewrites them as one run. If it is killed, rewritten blocks stay, and the same command
//! continues with the rest.

use super::correct::fetch;
use super::remote::{Reach, Remote};
use super::save::{send_waiting, settle};
use super::state::TableState;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::progress::Progress;
use std::ops::Range;

const EXAMPLES: &str = "\
Examples:
  alpheus table merge --identity pki/ada --state ada --server https://localhost:7601
  alpheus table merge --below 100 --identity pki/ada --state ada --server https://localhost:7601

Each start that seals blocks begins a run, and verifying a sum takes some microseconds per run.
A merge downloads and uploads its blocks. --below skips blocks in long runs, even if an interrupted
merge began them. The server keeps the old blocks, which other copies of the folder need, until
`alpheus table prune`.";

/// Arguments of `alpheus table merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The first block
    #[arg(long, value_name = "BLOCK", default_value_t = 0)]
    from: u64,
    /// End of the range (exclusive) [default: all blocks]
    #[arg(long, value_name = "BLOCK", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,
    /// Merge only neighbouring runs of fewer blocks than this
    #[arg(long, value_name = "BLOCKS", default_value_t = u64::MAX, hide_default_value = true)]
    below: u64,
    #[command(flatten)]
    reach: Reach,
}

/// The range of blocks is empty.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no block between --from {from} and --to; the table has {blocks} blocks, counted from 0"
)]
pub(crate) struct RangeError {
    from: u64,
    blocks: u64,
}

/// Runs the command.
///
/// # Errors
/// If the server does not answer, its answer is rejected, or the disk fails.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, remote) = args.reach.open(globals)?;
    let blocks = state.owner.blocks();
    if args.from >= args.to || args.from > blocks {
        return Err(Failure::new(Category::Usage, RangeError { from: args.from, blocks }));
    }
    settle(&mut state, &remote)?;
    let (before, mut blocks) = (state.owner.runs().len(), 0);
    // An interrupted merge is finished first, then joined with others. Each pass leaves fewer
    // runs.
    loop {
        let stretches = state.owner.merge_candidates(&(args.from..args.to), args.below);
        if stretches.is_empty() {
            break;
        }
        let these = stretches.iter().map(|blocks| blocks.end - blocks.start).sum();
        let mut progress = Progress::new("blocks", Some(these));
        for stretch in stretches {
            merge(&mut state, &remote, stretch, &mut progress)?;
        }
        blocks += these;
    }
    settle(&mut state, &remote)?;
    let after = state.owner.runs().len();
    note!("{blocks} blocks rewritten; {before} runs became {after}");
    Ok(())
}

/// The commit of a block holds its bytes, its address and the block that it replaces. Then it
/// is sent.
fn merge(
    state: &mut TableState,
    remote: &Remote,
    blocks: Range<u64>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut merge = state.owner.begin_merge(blocks).blame(Category::Io)?;
    while let Some(index) = merge.next_block() {
        let (old, block) = (state.owner.address(index), fetch(state, remote, index)?);
        let step = state.owner.merge(&mut merge, &block, &mut state.rng).blame(Category::Io)?;
        let step = step.and(state.record_replaced(old));
        drop(state.commit(step)?);
        send_waiting(state, remote)?;
        progress.advance(1);
    }
    Ok(())
}
