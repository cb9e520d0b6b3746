//! Settings of the board's processes: `board.…` in the settings file, `ALPHEUS_BOARD__…` in
//! the environment, or flags.

use alpheus_node::settings::Part;
use serde::Deserialize;
use std::path::PathBuf;

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
}

impl Part for BoardSettings {
    const KEY: &'static str = "board";
}
