//! What registrar, smoothers and aggregator have in common as processes: where each is told
//! who it is and where its things are, and what is opened before it begins.

use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::ledger::{FencedLedger, Found};
use crate::service::{Flags, Settings, path_flag};
use crate::stats::card::{self, Opened};
use crate::stats::clock::Clock;
use crate::stats::settings::StatsSettings;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The spaces of a role's store.
const SPACES: [&str; 2] = ["stats", "stats-fence"];
/// The format of a role's records. One that cannot be read any more, or is read otherwise, gets
/// the next number.
const FORMAT: u32 = 1;

/// Arguments that all roles take.
#[derive(Debug, clap::Args)]
pub struct RoleArgs {
    /// The folder that says who it is to TLS
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The folder with its keys
    #[arg(long, value_name = "FOLDER")]
    keys: Option<PathBuf>,
    /// Where it keeps what must outlive it
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The file that shows an older copy of the state: best on another disk, and in no backup;
    /// by default in the state folder
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// Where everybody reaches it
    #[arg(long, value_name = "ADDRESS")]
    api: Option<SocketAddr>,
    /// A replay's clock, instead of the machine's
    #[arg(long, value_name = "FILE")]
    clock: Option<PathBuf>,
}

/// What a role begins with.
pub struct Seat {
    /// What it was told.
    pub settings: Settings,
    /// What it was told of statistics.
    pub stats: StatsSettings,
    /// Who it is to TLS.
    pub identity: IdentityFolder,
    /// The deployment.
    pub card: Opened,
    /// The folder of its keys.
    pub keys: PathBuf,
    /// Its clock.
    pub clock: Clock,
    /// Where everybody reaches it.
    pub address: SocketAddr,
    /// What its ledger holds.
    pub found: Found,
}

impl RoleArgs {
    /// Opens what the role has, with flags of its own beside these.
    ///
    /// # Errors
    /// A setting is missing or wrong, the identity is another role's, or card, clock or store
    /// cannot be opened.
    pub fn open(&self, role: Role, own: Flags, globals: &Globals) -> Result<Seat, Failure> {
        let settings = globals.settings([self.flags(), own].concat())?;
        let stats = settings.stats.clone().unwrap_or_default();
        let identity = Settings::needed(&settings.identity, "identity")?;
        let identity = IdentityFolder::open(&identity, role)?;
        let card = card::open(&Settings::needed(&stats.card, "stats.card")?)?;
        let keys = Settings::needed(&stats.keys, "stats.keys")?;
        let clock = Clock::of(stats.clock.as_deref())?;
        let address = Settings::needed(&settings.api, "api")?;
        let store = settings.open_store(&globals.health, &globals.metrics)?;
        let fence = stats.fence(&settings.state)?;
        let found = FencedLedger::open_spaces(store, &fence, None, SPACES)?;
        let found = found.in_format(FORMAT).blame(Category::Input)?;
        Ok(Seat { settings, stats, identity, card, keys, clock, address, found })
    }

    fn flags(&self) -> Flags {
        vec![
            ("identity", path_flag(self.identity.as_ref())),
            ("state", path_flag(self.state.as_ref())),
            ("api", self.api.map(|api| api.to_string())),
            ("stats.card", path_flag(self.card.as_ref())),
            ("stats.keys", path_flag(self.keys.as_ref())),
            ("stats.fence", path_flag(self.fence.as_ref())),
            ("stats.clock", path_flag(self.clock.as_ref())),
        ]
    }
}
