//! The setup that registrar, smoothers and aggregator share as processes: their settings, and the
//! files and stores that they open before they begin.

use crate::card::{self, VerifiedCard};
use crate::settings::StatsSettings;
use alpheus_node::clock::Clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::ledger::{FencedLedger, OpenedLedger};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::settings::{Flags, Settings, path_flag};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The spaces of a role's store.
const SPACES: [&str; 2] = ["stats", "stats-fence"];
/// The format version of a role's records. An incompatible change gets the next number.
const FORMAT: u32 = 3;

/// Arguments that all roles take.
#[derive(Debug, clap::Args)]
pub struct RoleArgs {
    /// The folder with the TLS identity
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The folder with this party's keys
    #[arg(long, value_name = "FOLDER")]
    keys: Option<PathBuf>,
    /// The folder for its state
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The fence: the file that reveals an older copy of the state. Keep it out of backups. By default it is
    /// next to the state folder, with the same name and the ending `.fence`; a smoother's is in a folder of
    /// that name. Another disk is better
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// The address it listens on
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
}

/// The opened setup of a role.
pub struct RoleContext {
    /// All settings.
    pub settings: Settings,
    /// The settings of statistics.
    pub stats: StatsSettings,
    /// The TLS identity.
    pub identity: IdentityFolder,
    /// The deployment.
    pub card: VerifiedCard,
    /// The folder of its keys.
    pub keys: PathBuf,
    /// Its clock.
    pub clock: Clock,
    /// The address to listen on.
    pub address: SocketAddr,
    /// The ledger and its records.
    pub found: OpenedLedger,
}

impl RoleArgs {
    /// Opens the role's setup, with its own flags beside these.
    ///
    /// # Errors
    /// A setting is missing or wrong, the identity is another role's, card, clock or store
    /// cannot be opened, or others can look into a smoother's state.
    pub fn open(&self, role: Role, own: Flags, globals: &Globals) -> Result<RoleContext, Failure> {
        let settings = globals.settings([self.flags(), own].concat())?;
        let stats = settings.part::<StatsSettings>()?;
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = open_identity(&identity, role)?;
        let card = card::open(&Settings::needed(&stats.card, "stats.card")?)?;
        let keys = Settings::needed(&stats.keys, "stats.keys")?;
        let clock = Clock::Process;
        let address = Settings::needed(&settings.api, "api")?;
        let (store, fence) = if role == Role::Smoother {
            // What it writes grows with the number of samples.
            (globals.open_hidden_store(&settings)?, stats.hidden_fence(&settings.state)?)
        } else {
            (globals.open_store(&settings)?, stats.fence(&settings.state)?)
        };
        let found = FencedLedger::open_spaces(store, &fence, None, SPACES)?;
        let found = found.in_format(FORMAT).blame(Category::Input)?;
        Ok(RoleContext { settings, stats, identity, card, keys, clock, address, found })
    }

    fn flags(&self) -> Flags {
        vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("api", self.api.map(|api| api.to_string())),
            ("stats.card", path_flag(self.card.as_ref())),
            ("stats.keys", path_flag(self.keys.as_ref())),
            ("stats.fence", path_flag(self.fence.as_ref())),
        ]
    }
}
