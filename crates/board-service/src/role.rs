//! The setup that a board's servers and its doorkeeper share as processes: their flags and settings, and
//! the files that they open before they begin.

use crate::card::{self, VerifiedCard};
use crate::keys;
use crate::settings::BoardSettings;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::failure::Failure;
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::settings::{Flags, Settings, path_flag};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments that all of them take.
#[derive(Debug, clap::Args)]
pub struct RoleArgs {
    /// The folder with the TLS identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The board's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The signing key of this process
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The folder for its state
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The fence: the file that reveals an older copy of the state. Keep it on another disk, and out of
    /// backups; it must be outside the state folder. Next to a server's fence is a file with the same name
    /// and the ending `.slots`. Without it an epoch's secrets cannot be read. It is overwritten in place
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// The address it listens on
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

/// The opened setup.
pub struct RoleContext {
    /// All settings.
    pub settings: Settings,
    /// The settings of boards.
    pub board: BoardSettings,
    /// The TLS identity.
    pub identity: IdentityFolder,
    /// The board.
    pub card: VerifiedCard,
    /// The signing key.
    pub key: SigningKey,
    /// The address to listen on.
    pub address: SocketAddr,
}

impl RoleArgs {
    /// Opens the setup, with a role's own flags beside these.
    ///
    /// # Errors
    /// A setting is missing or wrong, the identity is another role's, or card or key cannot be used.
    pub fn open(&self, own: Flags, globals: &Globals) -> Result<RoleContext, Failure> {
        let settings = globals.settings([self.flags(), own].concat())?;
        let board = settings.part::<BoardSettings>()?;
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&identity, Role::Board)?;
        let card = card::open(&Settings::needed(&board.card, "board.card")?)?;
        let key = keys::load(&Settings::needed(&board.key, "board.key")?)?;
        let address = Settings::needed(&settings.api, "api")?;
        Ok(RoleContext { settings, board, identity, card, key, address })
    }

    fn flags(&self) -> Flags {
        vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("api", self.api.map(|api| api.to_string())),
            ("board.card", path_flag(self.card.as_ref())),
            ("board.key", path_flag(self.key.as_ref())),
            ("board.fence", path_flag(self.fence.as_ref())),
        ]
    }
}
