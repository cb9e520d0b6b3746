//! `alpheus table verify`: checks everything of the table as it is now that the server stores: by one
//! sum with random weights over all blocks of each column and product, and by fetching the saved state.

use super::ask::{QueryNeeds, ask_all, batches, next};
use super::remote::{Reach, Remote, rejected};
use super::save::settle;
use super::state::TableState;
use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_verifiable_table::owner::Audit;

const EXAMPLES: &str = "\
Examples:
  alpheus table verify --identity pki/ada --state ada --server https://localhost:7601

It exits with 1 if a block or the saved state differs from what was uploaded, or is lost. Old blocks
that wait for `alpheus table prune` are not checked.";

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
    let (mut state, remote) = args.reach.open(globals)?;
    settle(&mut state, &remote)?;
    let audits = state.owner.audit(&mut state.rng);
    let (sums, mut bytes) = (audits.len(), 0);
    let needed =
        |audit: &Audit| QueryNeeds { sums: vec![audit.request().clone()], blocks: Vec::new() };
    let parts: Vec<_> = audits.into_iter().map(|audit| (needed(&audit), audit)).collect();
    let parts = parts.into_iter().map(|(needed, audit)| (audit, needed));
    let batches = batches(parts, state.owner.manifest());
    ask_all((&remote, state.owner.manifest()), batches, |audits, answers| {
        let mut sums = answers.sums.into_iter();
        for audit in &audits {
            let answer = next(&mut sums)?.answer;
            bytes += answer.len();
            state.owner.check_audit(audit, &answer).map_err(rejected)?;
        }
        Ok(())
    })?;
    let blocks = state.owner.blocks();
    note!("{blocks} blocks are intact: {sums} sums verified, {bytes} bytes");
    verify_saved(&state, &remote)
}

/// Checks the state from which `alpheus table recover` would rebuild the folder.
fn verify_saved(state: &TableState, remote: &Remote) -> Result<(), Failure> {
    let Some(name) = state.owner.saved().filter(|_| !state.owner.has_unsaved()) else {
        // A warning has said why.
        note!("the state is not saved at the server: keep backups of the folder");
        return Ok(());
    };
    let at = |failure: Failure| failure.at(format!("saved state {name}"));
    let bytes = remote.state(name).map_err(at)?;
    state.owner.check_saved(&bytes).map_err(rejected).map_err(at)?;
    note!("the saved state {name} is intact");
    Ok(())
}
