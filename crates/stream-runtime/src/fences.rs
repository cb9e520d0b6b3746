//! The fence file of a host: one entry per controller.

use alpheus_encrypted_stream::ledger::Fence;
use alpheus_node::fence::{self, FenceError, FenceFile};
use alpheus_policy::ids::ControllerId;
use std::path::Path;

/// How far each controller's ledger has come.
pub struct ControllerFences(FenceFile);

impl ControllerFences {
    /// Reads the file, or starts an empty one.
    ///
    /// # Errors
    /// [`FenceError`] if there is a file that cannot be read.
    pub fn load(path: &Path) -> Result<ControllerFences, FenceError> {
        FenceFile::load(path).map(ControllerFences)
    }

    /// The same for the process that goes by it: no other one may until this one ends.
    ///
    /// # Errors
    /// [`FenceError`], also if another process goes by it.
    pub fn hold(path: &Path) -> Result<ControllerFences, FenceError> {
        FenceFile::hold(path).map(ControllerFences)
    }

    /// The entry of a controller.
    #[must_use]
    pub fn get(&self, controller: &ControllerId) -> Option<Fence> {
        let fence::Fence { sequence, start, clock, restored } = self.0.get(&controller.0)?;
        Some(Fence { sequence, start, clock, restored })
    }

    /// Records durably how far ledgers have come. An entry never goes back.
    ///
    /// # Errors
    /// [`FenceError`]; nothing may then be sent.
    pub fn advance(
        &mut self,
        fences: impl IntoIterator<Item = (ControllerId, Fence)>,
    ) -> Result<(), FenceError> {
        self.0.advance(fences.into_iter().map(|(controller, fence)| {
            let Fence { sequence, start, clock, restored } = fence;
            (controller.0, fence::Fence { sequence, start, clock, restored })
        }))
    }

    /// Disk flushes so far.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.0.flushes()
    }
}
