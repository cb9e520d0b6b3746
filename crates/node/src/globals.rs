//! The options that every command understands.

use crate::clock;
use crate::failure::{Blame, Category, Failure};
use crate::files::check_private_folder;
use crate::proxy::Proxy;
use crate::service;
use crate::service::health::Health;
use crate::service::metrics::Metrics;
use crate::settings::layers::{ConfigError, Layers};
use crate::settings::{Flags, Format, Settings, SettingsError};
use crate::start_clock::{self, WrongClockError};
use crate::state_owner;
use alpheus_transport::Store;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that every command understands.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// How to print results on standard output
    #[arg(
        long,
        global = true,
        value_enum,
        env = "ALPHEUS_FORMAT",
        help_heading = "Common options"
    )]
    pub format: Option<Format>,
    /// What to log on standard error: off, error, warn, info, debug, or per module as in `warn,alpheus=info` [default: warn]
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_LOG",
        value_name = "FILTER",
        help_heading = "Common options"
    )]
    pub log: Option<String>,
    /// Configuration file; flags and ALPHEUS_* variables override it
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_CONFIG",
        value_name = "FILE",
        help_heading = "Common options"
    )]
    pub config: Option<PathBuf>,
    /// Serve /healthz and /metrics at this address while the command runs
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_LISTEN",
        value_name = "ADDRESS",
        help_heading = "Common options"
    )]
    pub listen: Option<SocketAddr>,
    /// Connect to all servers through this SOCKS proxy, such as Tor's at socks5h://127.0.0.1:9050
    #[arg(
        long,
        global = true,
        env = "ALPHEUS_PROXY",
        value_name = "URL",
        help_heading = "Common options"
    )]
    pub proxy: Option<Proxy>,
    /// The file with a replay's clock, which replaces the machine's
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub replay_clock: Option<PathBuf>,
    /// The keys of the settings file that the program's parts read
    #[arg(skip)]
    pub parts: &'static [&'static str],
    /// What `/healthz` reports
    #[arg(skip)]
    pub health: Health,
    /// What `/metrics` reports
    #[arg(skip)]
    pub metrics: Metrics,
}

impl Globals {
    /// Takes the time from a replay's clock, if the command names one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn follow_clock(&self) -> Result<(), Failure> {
        self.replay_clock.as_deref().map_or(Ok(()), clock::follow)
    }

    /// The settings, including the command's own flags.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn settings(&self, flags: Flags) -> Result<Settings, Failure> {
        let layers = self.layers(flags).map_err(SettingsError::from)?;
        Ok(Settings::load(layers, self.parts)?)
    }

    /// Opens the durable store of the settings; health and metrics watch it.
    ///
    /// # Errors
    /// No store is set, or it cannot be opened.
    pub fn open_store(&self, settings: &Settings) -> Result<Arc<dyn Store>, Failure> {
        start_clock::check(settings).map_err(wrong_clock)?;
        let store = service::open_store(settings, &self.health, &self.metrics)?;
        check_owner(settings)?;
        Ok(store)
    }

    /// Opens the durable store of a process that keeps secret how much it writes: in a folder
    /// that only its owner can look into. Health watches it, and no metric does.
    ///
    /// # Errors
    /// No folder is set, others can look into it, or the store cannot be opened.
    pub fn open_hidden_store(&self, settings: &Settings) -> Result<Arc<dyn Store>, Failure> {
        start_clock::check(settings).map_err(wrong_clock)?;
        let store = service::open_hidden_store(settings, &self.health)?;
        check_owner(settings)?;
        settings.state.as_deref().map_or(Ok(()), check_private_folder)?;
        Ok(store)
    }

    fn layers(&self, flags: Flags) -> Result<Layers, ConfigError> {
        // Our variables are UTF-8; those of other programs need not be.
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(text);
        let layers = Layers::default().file(self.config.as_deref())?.environment(variables);
        let format = self.format.and_then(|format| format.to_possible_value());
        let common = [
            ("format", format.map(|format| format.get_name().to_owned())),
            ("log", self.log.clone()),
            ("listen", self.listen.map(|listen| listen.to_string())),
            ("proxy", self.proxy.as_ref().map(Proxy::to_string)),
        ];
        let given = common.into_iter().chain(flags);
        let given = given.filter_map(|(key, value)| Some((key, value?)));
        Ok(given.fold(layers, |layers, (key, value)| layers.flag(key, value)))
    }
}

fn wrong_clock(error: WrongClockError) -> Failure {
    let help = "set it (`timedatectl set-ntp true`), or renew the certificate if it has expired, and start again";
    Failure::new(Category::Io, error).with_help(help)
}

/// Checks that the state folder is this process's.
fn check_owner(settings: &Settings) -> Result<(), Failure> {
    let folder = settings.state.as_deref();
    let checked = folder.map(|folder| state_owner::check(folder, settings.identity.as_deref()));
    checked.unwrap_or(Ok(())).blame(Category::Input)
}
