//! Saved states: what the server needs for `alpheus table recover` after each change.

use super::remote::Remote;
use super::state::TableState;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_verifiable_table::owner::Owner;

/// Sends everything that waits: blocks, then the state, if it has changed. Every command that
/// contacts the server does this first, since a killed command may have left something, and
/// last if it has changed something.
///
/// # Errors
/// If the server does not answer, or the disk fails.
pub fn settle(state: &mut TableState, remote: &Remote) -> Result<(), Failure> {
    send_waiting(state, remote)?;
    send_state(state, remote)?;
    if state.owner.has_unsaved() && state.save()? {
        send_state(state, remote)?;
        if let Some(name) = state.owner.saved() {
            note!("state {name} is saved at the server, sealed");
        }
    }
    Ok(())
}

/// Blocks that were sent.
#[derive(Default)]
pub struct Upload {
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Sends the stored bytes of blocks that the server has not acknowledged.
///
/// # Errors
/// If the server does not answer, or the disk fails.
pub fn send_waiting(state: &mut TableState, remote: &Remote) -> Result<Upload, Failure> {
    let mut sent = Upload::default();
    let waiting: Vec<_> = state.owner.outbox().copied().collect();
    for address in waiting {
        let lost = || "a waiting block is missing in the state; restore the folder from a backup";
        let bytes = state.ledger.get(&Owner::outbox_key(&address)).blame(Category::Io)?;
        let bytes = bytes.ok_or_else(lost).blame(Category::Io)?;
        sent.bytes += bytes.len() as u64;
        sent.blocks += 1;
        remote.put(address, bytes)?;
        let step = state.owner.acknowledge(&address).blame(Category::Io)?;
        state.commit(step)?;
    }
    Ok(sent)
}

/// Sends the state that the server has not acknowledged, and has it delete the one before.
fn send_state(state: &mut TableState, remote: &Remote) -> Result<(), Failure> {
    let Some(unsent) = state.owner.unsent_state() else { return Ok(()) };
    let lost = || "a waiting state is missing in the folder; restore the folder from a backup";
    let bytes = state.ledger.get(&Owner::state_key()).blame(Category::Io)?;
    remote.save_state(unsent.name, bytes.ok_or_else(lost).blame(Category::Io)?)?;
    if let Some(old) = unsent.replaces {
        remote.delete_state(old)?;
    }
    let step = state.owner.acknowledge_state().blame(Category::Io)?;
    state.commit(step)
}
