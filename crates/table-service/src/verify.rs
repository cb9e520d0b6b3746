//! `alpheus table verify`: checks everything that the server stores, by one sum with random
//! weights over all blocks of each column and product.

use super::answer::rejected;
use super::append::{AppendSummary, send_waiting};
use super::remote::Reach;
use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;

const EXAMPLES: &str = "\
Examples:
  alpheus table verify --identity pki/ada --state ada --server https://localhost:7601

It exits with 1 if something differs from what was uploaded.";

/// Arguments of `alpheus table verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    reach: Reach,
}

/// Runs the command.
///
/// # Errors
/// If the server does not answer, or its answer is rejected.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (mut state, mut remote) = args.reach.open(globals)?;
    send_waiting(&mut state, &remote, &mut AppendSummary::default())?;
    let audits = state.owner.audit(&mut state.rng);
    for audit in &audits {
        let answer = remote.sum(audit.request())?;
        state.owner.check_audit(audit, &answer).map_err(rejected)?;
    }
    let (blocks, sums) = (state.owner.blocks(), audits.len());
    eprintln!("{blocks} blocks are intact: {sums} sums verified, {} bytes", remote.bytes);
    Ok(())
}
