//! What every long-running part has, once: configuration, health, metrics,
//! logs, TLS, an orderly stop.
//!
//! A command that works for a while (`replay`, `demo`) keeps what [`watch`]
//! gives; a server calls [`run`]. The durable store with group commit is
//! `alpheus_transport::local`, or a Kafka cluster; [`Settings::open_store`] opens
//! it and has it watched.

pub mod children;
pub mod config;
pub mod engine;
pub mod health;
pub mod http;
pub mod kafka;
pub mod log;
pub mod metrics;
pub mod progress;
pub mod shutdown;
pub mod tls;

use crate::commands::Format;
use crate::failure::{Category, Failure};
use crate::runtime::plane::EngineKind;
use alpheus_transport::{Error as StoreError, Store, local};
use axum::Router;
use clap::ValueEnum;
use config::{ConfigError, Layers};
use health::{Health, State};
use http::{Drained, ListenError, Server};
use log::{LogError, LogFormat};
use metrics::Metrics;
use shutdown::{DEFAULT_DRAIN, Shutdown, Trigger};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tls::{TlsError, TlsFiles};

/// What every service can be told; see [`config`] for how.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Where to serve health, metrics and, for servers, everything else.
    pub listen: Option<SocketAddr>,
    /// How results are printed.
    pub format: Option<Format>,
    /// What to log; see [`log::start`].
    pub log: Option<String>,
    /// How a line of the log looks.
    pub log_format: Option<LogFormat>,
    /// Directory of the durable store, and of files beside it.
    pub state: Option<PathBuf>,
    /// The durable store is in a Kafka cluster.
    pub kafka: Option<kafka::KafkaSettings>,
    /// How long a process that was told to stop may finish what it has begun.
    pub drain_seconds: Option<u64>,
    /// Serve with TLS.
    pub tls: Option<TlsFiles>,
    /// Where to serve the requests of the deployment's other processes.
    pub api: Option<SocketAddr>,
    /// The folder that says who this process is.
    pub identity: Option<PathBuf>,
    /// Where the service is reached.
    pub server: Option<String>,
    /// The schema's file.
    pub schema: Option<PathBuf>,
    /// What adds up ciphertexts.
    pub engine: Option<EngineKind>,
    /// How long windows wait, and their ciphertext is kept.
    pub windows: Option<crate::server::settings::WindowSettings>,
    /// The file that opens the key store.
    pub key_file: Option<PathBuf>,
    /// Of the anonymous board.
    #[cfg(feature = "board")]
    pub board: Option<crate::board::settings::BoardSettings>,
    /// Of accountable statistics.
    #[cfg(feature = "stats")]
    pub stats: Option<crate::stats::settings::StatsSettings>,
    /// Of the access pass.
    #[cfg(feature = "pass")]
    pub pass: Option<crate::pass::settings::PassSettings>,
}

/// Why a service does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file of properties cannot be read.
    #[error("{path}: cannot read the properties of Kafka")]
    Properties {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The settings want Kafka, which this program was built without.
    #[error("this program was built without Kafka")]
    NoKafka,
    /// The state folder cannot be made.
    #[error("{path}: cannot make the folder")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Logging cannot start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The job is another process, which cannot read a folder's log.
    #[error(
        "the engine `job` needs topics that the job can read: set kafka.brokers and kafka.prefix"
    )]
    JobNeedsKafka,
    /// A setting that this service needs is missing.
    #[error("the setting {0} is missing: give it as a flag, a variable or in the --config file")]
    Missing(&'static str),
    /// The operating system refuses threads, signals or timers.
    #[error("cannot start the runtime")]
    Runtime(#[from] io::Error),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let category = match error {
            ServiceError::Missing(_)
            | ServiceError::Log(_)
            | ServiceError::NoKafka
            | ServiceError::JobNeedsKafka => Category::Usage,
            ServiceError::Config(ConfigError::Read { .. }) => Category::Io,
            ServiceError::Config(ref config) if !config.is_in_file() => Category::Usage,
            ServiceError::Tls(_) | ServiceError::Config(_) => Category::Input,
            _ => Category::Io,
        };
        let help = match &error {
            ServiceError::Store(store) => store.help(),
            ServiceError::NoKafka => {
                Some("build it with `cargo build --release --package alpheus --features kafka`")
            }
            ServiceError::Listen(_) => Some("choose another address, or port 0 for any free one"),
            _ => None,
        };
        let failure = Self::new(category, error);
        match help {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}

impl Settings {
    /// How long to drain.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.drain_seconds.map_or(DEFAULT_DRAIN, Duration::from_secs)
    }

    /// Opens the durable store, in `state` or in Kafka, and has it watched. With Kafka
    /// `state`, if it is set, is made for the files that stand beside a store.
    ///
    /// # Errors
    /// Neither is set, or the store cannot be opened.
    pub fn open_store(
        &self,
        health: &Health,
        metrics: &Metrics,
    ) -> Result<Arc<dyn Store>, ServiceError> {
        let part = health.part("store");
        let store = match (&self.kafka, &self.state) {
            (Some(kafka), folder) => {
                folder.as_ref().map_or(Ok(()), |folder| make_private(folder))?;
                kafka.open()?
            }
            (None, Some(path)) => local::open(path, &local::Options::default())?,
            (None, None) => return Err(ServiceError::Missing("state")),
        };
        metrics.watch_store(&store);
        part.set(State::Ready);
        Ok(store)
    }

    /// What adds up, which must be able to.
    ///
    /// # Errors
    /// [`ServiceError::JobNeedsKafka`].
    pub fn engine(&self) -> Result<EngineKind, ServiceError> {
        let engine = self.engine.unwrap_or_default();
        if engine == EngineKind::Job && self.kafka.is_none() {
            return Err(ServiceError::JobNeedsKafka);
        }
        Ok(engine)
    }

    /// A setting that the command needs.
    ///
    /// # Errors
    /// [`ServiceError::Missing`].
    pub fn needed<T: Clone>(value: &Option<T>, setting: &'static str) -> Result<T, ServiceError> {
        value.clone().ok_or(ServiceError::Missing(setting))
    }

    fn tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, TlsError> {
        self.tls.as_ref().map(|files| tls::server(files, SystemTime::now())).transpose()
    }
}

/// Makes a folder for its user alone, unless it is there.
fn make_private(path: &Path) -> Result<(), ServiceError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|source| ServiceError::Folder { path: path.to_owned(), source })
}

/// Serves `router`, health and metrics until the process is told to stop or
/// `broken` is, then drains. `started` is called with the address as soon as it
/// is known.
///
/// # Errors
/// The service cannot start; once it runs it does not fail.
pub fn run(
    settings: &Settings,
    router: Router,
    health: &Health,
    metrics: &Metrics,
    mut broken: Shutdown,
    started: impl FnOnce(SocketAddr),
) -> Result<Drained, ServiceError> {
    let address = settings.listen.ok_or(ServiceError::Missing("listen"))?;
    let tls = settings.tls()?;
    let router = router.merge(http::observability(health.clone(), metrics.clone()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Whoever is told that this serves may stop it at once.
        let mut signals = shutdown::Signals::listen()?;
        let server = Server::bind(address, tls).await?;
        let trigger = Trigger::new();
        let served = server.address()?;
        let serving = tokio::spawn(server.serve(router, trigger.shutdown(), settings.drain()));
        started(served);
        tracing::info!(address = %served, "serving");
        tokio::select! {
            () = signals.next() => {}
            () = broken.stopping() => {}
        }
        tracing::info!("stopping");
        health.stop();
        trigger.stop();
        let drained = serving.await.map_err(io::Error::other)?;
        tracing::info!(?drained, "stopped");
        Ok(drained)
    })
}

/// What the command line said of the settings; the rest comes from the
/// environment and the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// The configuration file.
    pub config: Option<&'a Path>,
    /// [`Settings::format`].
    pub format: Option<Format>,
    /// [`Settings::log`].
    pub log: Option<&'a str>,
    /// [`Settings::listen`].
    pub listen: Option<SocketAddr>,
}

/// What a command's own flags say, by the settings' keys.
pub type Flags = Vec<(&'static str, Option<String>)>;

/// A path that a flag names, as [`Flags`] hold it.
#[must_use]
pub fn path_flag(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

impl Said<'_> {
    /// The settings, all layers together.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn settings(self, flags: Flags) -> Result<Settings, ConfigError> {
        // Names of ours are plain text; what others keep in the environment need not be.
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(text);
        let mut layers = Layers::default().file(self.config).environment(variables);
        if let Some(format) = self.format.and_then(|format| format.to_possible_value()) {
            layers = layers.flag("format", format.get_name());
        }
        if let Some(log) = self.log {
            layers = layers.flag("log", log);
        }
        if let Some(listen) = self.listen {
            layers = layers.flag("listen", listen.to_string());
        }
        for (key, value) in flags {
            if let Some(value) = value {
                layers = layers.flag(key, value);
            }
        }
        layers.load()
    }
}

/// Starts the logs of a command and, if it is to listen, serves its health and
/// metrics until the monitor is dropped.
///
/// # Errors
/// A setting is wrong, or the address cannot be had.
pub fn watch(
    settings: &Settings,
    health: &Health,
    metrics: &Metrics,
) -> Result<Option<Monitor>, ServiceError> {
    let filter = settings.log.as_deref().unwrap_or(log::DEFAULT_FILTER);
    match log::start(filter, settings.log_format.unwrap_or_default()) {
        // Two commands in one process, as tests run them, share the first one's logs.
        Ok(()) | Err(LogError::Started(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Monitor::start(settings, health, metrics)
}

/// Serves `/healthz` and `/metrics` from a thread of its own while a command
/// works; stops when it is dropped.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    trigger: Trigger,
    thread: Option<JoinHandle<Drained>>,
}

impl Monitor {
    /// Starts serving at `settings.listen`; nothing if that is not set.
    ///
    /// # Errors
    /// The address cannot be had, or TLS cannot be offered.
    pub fn start(
        settings: &Settings,
        health: &Health,
        metrics: &Metrics,
    ) -> Result<Option<Self>, ServiceError> {
        let Some(address) = settings.listen else {
            return Ok(None);
        };
        let tls = settings.tls()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(Server::bind(address, tls))?;
        let address = server.address()?;
        let trigger = Trigger::new();
        let shutdown = trigger.shutdown();
        let router = http::observability(health.clone(), metrics.clone());
        let drain = settings.drain().min(Duration::from_secs(1));
        let thread = std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || runtime.block_on(server.serve(router, shutdown, drain)))?;
        Ok(Some(Self { address, trigger, thread: Some(thread) }))
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.trigger.stop();
        if let Some(thread) = self.thread.take() {
            // A monitor that died has nothing to say that matters any more.
            let _ = thread.join();
        }
    }
}
