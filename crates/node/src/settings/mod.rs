//! The settings of a process, in layers: a file, the environment, flags.
//!
//! [`Settings`] holds what every process shares. A part keeps its own settings in a table of
//! the file and reads them with [`Settings::part`], so that no crate lists all of them; the
//! program says at its start which keys its parts read ([`Layers::load`]).

pub mod kafka;
mod key_filter;
pub mod layers;

use crate::failure::{Category, Failure};
use crate::proxy::Proxy;
use clap::ValueEnum;
use kafka::KafkaSettings;
use layers::{ConfigError, Layers};
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long a process drains by default.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(10);

/// The settings that every process shares, and access to those of parts.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Where to serve health, metrics and, for servers, everything else.
    pub listen: Option<SocketAddr>,
    /// The SOCKS proxy for all connections over TLS that the process opens.
    pub proxy: Option<Proxy>,
    /// How results are printed.
    pub format: Option<Format>,
    /// What to log; see [`crate::service::log::start`].
    pub log: Option<String>,
    /// The format of log lines.
    pub log_format: Option<LogFormat>,
    /// Directory of the durable store, and of files beside it.
    pub state: Option<PathBuf>,
    /// The durable store is in a Kafka cluster.
    pub kafka: Option<KafkaSettings>,
    /// Time for a process that was asked to stop to finish its work.
    pub drain_seconds: Option<u64>,
    /// Maximum number of open connections.
    pub connections: Option<usize>,
    /// Serve with TLS.
    pub tls: Option<TlsFiles>,
    /// Address for requests of the deployment's other processes.
    pub api: Option<SocketAddr>,
    /// The identity folder of this process.
    pub identity: Option<PathBuf>,
    /// The service's URL.
    pub server: Option<String>,
    /// The file that opens the key store.
    pub key_file: Option<PathBuf>,
    /// The layers, from which parts read their settings; see [`Settings::part`].
    #[serde(skip)]
    pub layers: Layers,
}

/// The settings of one part of the program: a key or table of the file.
pub trait Part: DeserializeOwned + Default {
    /// The key.
    const KEY: &'static str;
}

/// Where a server's certificate and key are.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[derive(Default)]
pub struct TlsFiles {
    /// The server's certificate, followed by its chain.
    pub certificate: Option<PathBuf>,
    /// The certificate's private key.
    pub key: Option<PathBuf>,
    /// Authorities of clients. If set, a client must have a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Plain,
    /// For programs.
    Json,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting that this service needs is missing.
    #[error("the setting {0} is missing: set it as a flag, as a variable or in the --config file")]
    Missing(&'static str),
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let category = match &error {
            SettingsError::Config(ConfigError::Read { .. }) => Category::Io,
            SettingsError::Config(config) if config.is_in_file() => Category::Input,
            SettingsError::Config(_) | SettingsError::Missing(_) => Category::Usage,
        };
        Self::new(category, error)
    }
}

impl Settings {
    /// The settings that every process shares. Keys in `parts` are left for
    /// [`Settings::part`]; any other key must be one of these fields.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn load(layers: Layers, parts: &[&str]) -> Result<Self, SettingsError> {
        Ok(Self { layers: layers.clone(), ..layers.load(parts)? })
    }

    /// The settings of one part; its default where none is set.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn part<P: Part>(&self) -> Result<P, SettingsError> {
        Ok(self.value(P::KEY)?.unwrap_or_default())
    }

    /// A setting of a part that is a single key.
    ///
    /// # Errors
    /// The value is wrong.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, SettingsError> {
        Ok(self.layers.value(key)?)
    }

    /// A setting that the command requires.
    ///
    /// # Errors
    /// [`SettingsError::Missing`].
    pub fn needed<T: Clone>(value: &Option<T>, setting: &'static str) -> Result<T, SettingsError> {
        value.clone().ok_or(SettingsError::Missing(setting))
    }

    /// How long to drain.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.drain_seconds.map_or(DEFAULT_DRAIN, Duration::from_secs)
    }
}

/// A command's own flags, by their settings keys.
pub type Flags = Vec<(&'static str, Option<String>)>;

/// The path of a flag, for [`Flags`].
#[must_use]
pub fn path_flag(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}
