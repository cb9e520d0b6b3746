//! Saved states: what the server needs for `alpheus table recover` after each change.

use super::append::{AppendSummary, send_waiting};
use super::remote::Remote;
use super::state::TableState;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_verifiable_table::owner::Owner;

/// Sends everything that waits: blocks, then the state, if it has changed. Every command that
/// contacts the server does this first, since a killed command may have left something, and
/// last if it has changed something.
///
/// # Errors
/// If the server does not answer, or the disk fails.
pub fn settle(state: &mut TableState, remote: &Remote) -> Result<(), Failure> {
    send_waiting(state, remote, &mut AppendSummary::default())?;
    send_state(state, remote)?;
    if state.owner.has_unsaved() && state.save()? {
        send_state(state, remote)?;
        if let Some(name) = state.owner.saved() {
            eprintln!("state {name} is saved at the server, sealed");
        }
    }
    Ok(())
}

/// Sends the state that the server has not acknowledged, and has it delete the one before.
fn send_state(state: &mut TableState, remote: &Remote) -> Result<(), Failure> {
    let Some(unsent) = state.owner.unsent_state() else { return Ok(()) };
    let lost = || "a waiting state is missing in the folder; restore the folder from a backup";
    let bytes = state.ledger.get(&Owner::state_key()).blame(Category::Io)?;
    remote.save_state(bytes.ok_or_else(lost).blame(Category::Io)?)?;
    if let Some(old) = unsent.replaces {
        remote.delete_state(old)?;
    }
    let step = state.owner.acknowledge_state().blame(Category::Io)?;
    state.commit(step)
}
