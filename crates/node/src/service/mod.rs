//! What every long-running process needs: health, metrics, logs, TLS, an orderly stop.
//!
//! A command that works for a while (`replay`, `demo`) keeps what [`watch`] returns; a server
//! calls [`run`]. The durable store is `alpheus_transport::local` or a Kafka cluster;
//! [`open_store`] opens it and watches it.

pub mod children;
pub mod descriptors;
pub mod expiry;
pub mod health;
pub mod heartbeat;
pub mod http;
pub mod kafka;
pub mod log;
pub mod metrics;
pub mod process;
pub mod progress;
pub mod reload;
pub mod shutdown;
pub mod tls;

use crate::backup::source::serve_exports;
use crate::failure::{Category, Failure};
use crate::settings::{Settings, SettingsError};
use alpheus_transport::{Error as StoreError, Store, local};
use axum::Router;
use health::{Health, State};
use http::{Bounds, DrainOutcome, ListenError, Server};
use log::LogError;
use metrics::Metrics;
use reload::Live;
use shutdown::{Shutdown, Trigger};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tls::TlsError;

/// Why a service does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting is wrong or missing.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The file of properties cannot be read.
    #[error("{path}: cannot read the Kafka properties")]
    Properties {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The settings need Kafka, but this program was built without it.
    #[error("this program was built without Kafka")]
    NoKafka,
    /// The store's growth is secret, and a cluster shows it.
    #[error("this process must not reveal how much it writes, and a Kafka cluster would show it")]
    SharedStore,
    /// The state folder cannot be created.
    #[error("{path}: cannot create the folder")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Logging cannot start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The operating system refuses threads, signals or timers.
    #[error("cannot start the runtime")]
    Runtime(#[from] io::Error),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let category = match error {
            ServiceError::Settings(error) => return error.into(),
            ServiceError::Log(_) | ServiceError::NoKafka | ServiceError::SharedStore => {
                Category::Usage
            }
            ServiceError::Tls(_) => Category::Input,
            _ => Category::Io,
        };
        let help = match &error {
            ServiceError::Store(store) => store.help(),
            ServiceError::NoKafka => {
                Some("build it with `cargo build --release --package alpheus --features kafka`")
            }
            ServiceError::SharedStore => {
                Some("remove `kafka` from its settings, and set `state` to a folder")
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

/// Opens the durable store, in `state` or in Kafka, with health and metrics. With Kafka, the
/// `state` folder is created, if it is set, for files beside the store.
///
/// # Errors
/// Neither is set, or the store cannot be opened.
pub fn open_store(
    settings: &Settings,
    health: &Health,
    metrics: &Metrics,
) -> Result<Arc<dyn Store>, ServiceError> {
    let part = health.part("store");
    let store = match (&settings.kafka, &settings.state) {
        (Some(kafka), folder) => {
            folder.as_ref().map_or(Ok(()), |folder| make_private(folder))?;
            kafka::open(kafka)?
        }
        (None, Some(path)) => local::open(path, &local::Options::default())?,
        (None, None) => return Err(SettingsError::Missing("state").into()),
    };
    metrics.watch_store(&store);
    metrics.watch_health(health);
    process::register(metrics);
    http::handshakes::register(metrics);
    if let Some(folder) = &settings.state {
        heartbeat::watch_disk(health, metrics, folder);
        if settings.kafka.is_none() {
            serve_exports(&store, folder);
        }
    }
    part.set(State::Ready);
    Ok(store)
}

/// Opens the durable store of a process that keeps secret how much it writes: in a folder,
/// without metrics.
///
/// # Errors
/// The settings name a Kafka cluster or no folder, or the store cannot be opened.
pub fn open_hidden_store(
    settings: &Settings,
    health: &Health,
) -> Result<Arc<dyn Store>, ServiceError> {
    if settings.kafka.is_some() {
        return Err(ServiceError::SharedStore);
    }
    let path = settings.state.as_ref().ok_or(SettingsError::Missing("state"))?;
    let part = health.part("store");
    let store = local::open(path, &local::Options::default())?;
    serve_exports(&store, path);
    part.set(State::Ready);
    Ok(store)
}

/// Health and metrics are asked for by few, and what they hold is not there for the store.
const MONITOR: Bounds =
    Bounds { connections: 48, of_one: 16, strangers: 48, silence: Some(Duration::from_secs(75)) };

fn tls_of(settings: &Settings) -> Result<Option<Arc<Live<rustls::ServerConfig>>>, TlsError> {
    settings.tls.as_ref().map(|files| tls::server(files, SystemTime::now())).transpose()
}

/// Whether the holder of a certificate may read metrics.
pub type MayRead = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Creates a folder for its user alone, unless it exists.
fn make_private(path: &Path) -> Result<(), ServiceError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|source| ServiceError::Folder { path: path.to_owned(), source })
}

/// Serves `router`, health and metrics until the process is asked to stop or `broken` is
/// triggered, then drains. `started` is called with the address as soon as it is known. Of those
/// who show a certificate, metrics are for those for whom `may_read` holds.
///
/// # Errors
/// The service cannot start; once it runs it does not fail.
pub fn run(
    settings: &Settings,
    (router, may_read): (Router, MayRead),
    (health, metrics): (&Health, &Metrics),
    mut broken: Shutdown,
    started: impl FnOnce(SocketAddr),
) -> Result<DrainOutcome, ServiceError> {
    let address = settings.listen.ok_or(SettingsError::Missing("listen"))?;
    let tls = tls_of(settings)?;
    if let Some(certificate) = settings.tls.as_ref().and_then(|files| files.certificate.as_ref()) {
        expiry::watch_certificate(metrics, health, certificate);
    }
    let observability = http::observability(health.clone(), metrics.clone(), may_read);
    let router = router.merge(observability);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // A process that sees this one serving may stop it at once.
        let mut signals = shutdown::Signals::listen()?;
        let bounds = descriptors::bounds(descriptors::share_of(settings, 1), false);
        let bounds = Bounds { of_one: descriptors::CONCURRENT_REQUESTS, ..bounds };
        let server = Server::bind(address, tls).await?.with_bounds(bounds);
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
        // A caller whose logs may say so reports how many connections were cut off.
        tracing::info!("stopped");
        Ok(drained)
    })
}

/// Starts the logs of a command and, if it is to listen, serves its health and
/// metrics until the monitor is dropped.
///
/// # Errors
/// A setting is wrong, or the address cannot be used.
pub fn watch(
    settings: &Settings,
    health: &Health,
    metrics: &Metrics,
) -> Result<Option<Monitor>, ServiceError> {
    let filter = settings.log.as_deref().unwrap_or(log::DEFAULT_FILTER);
    match log::start(filter, settings.log_format.unwrap_or_default()) {
        // Two commands in one process, as in tests, share the logs of the first.
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
    thread: Option<JoinHandle<DrainOutcome>>,
}

impl Monitor {
    /// Starts serving at `settings.listen`; nothing if that is not set.
    ///
    /// # Errors
    /// The address cannot be used, or TLS cannot be offered.
    pub fn start(
        settings: &Settings,
        health: &Health,
        metrics: &Metrics,
    ) -> Result<Option<Self>, ServiceError> {
        let Some(address) = settings.listen else {
            return Ok(None);
        };
        let tls = tls_of(settings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(Server::bind(address, tls))?.with_bounds(MONITOR);
        let address = server.address()?;
        let trigger = Trigger::new();
        let shutdown = trigger.shutdown();
        let router = http::observability(health.clone(), metrics.clone(), Arc::new(|_| true));
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
            // The result of a failed monitor no longer matters.
            let _ = thread.join();
        }
    }
}
