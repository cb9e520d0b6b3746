//! Settings of the board's processes: `board.…` in the settings file, `ALPHEUS_BOARD__…` in
//! the environment, or flags.

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::settings::{Part, Settings};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Settings of the board's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoardSettings {
    /// The public card.
    pub card: Option<PathBuf>,
    /// This server's signing key.
    pub key: Option<PathBuf>,
    /// The members' public keys, one per line.
    pub members: Option<PathBuf>,
    /// The fence: the file that reveals an older copy of the state.
    pub fence: Option<PathBuf>,
}

/// The fence is in the folder that it guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fence is inside the state folder, and a copy of that folder would copy it too; give a file on another disk with --fence, and keep it out of backups"
)]
pub(crate) struct FenceInsideError;

impl BoardSettings {
    /// The path of the fence, which is outside of the state. Its folder is created.
    ///
    /// # Errors
    /// If it is not set, or is inside the state folder.
    pub fn fence(&self, state: &Option<PathBuf>) -> Result<PathBuf, Failure> {
        let state = Settings::needed(state, "state")?;
        let fence = Settings::needed(&self.fence, "board.fence")?;
        let folder = fence.parent().map(Path::to_owned).unwrap_or_default();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        for folder in [&folder, &state] {
            std::fs::create_dir_all(folder).blame_io(folder)?;
        }
        let (at, guarded) =
            (folder.canonicalize().blame_io(&folder)?, state.canonicalize().blame_io(&state)?);
        let inside = at.starts_with(&guarded);
        if inside { Err(FenceInsideError).blame(Category::Usage) } else { Ok(fence) }
    }
}

impl Part for BoardSettings {
    const KEY: &'static str = "board";
}
