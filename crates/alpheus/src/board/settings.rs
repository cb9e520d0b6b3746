//! Settings of the board's processes: `board.…` in the file, `ALPHEUS_BOARD__…` in
//! the environment, flags.

use serde::Deserialize;
use std::path::PathBuf;

/// What the board's processes can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoardSettings {
    /// The public card.
    pub card: Option<PathBuf>,
    /// This server's signing key.
    pub key: Option<PathBuf>,
    /// Who may write: a public key in each line.
    pub members: Option<PathBuf>,
}
