//! A device's key, store and service: what it needs before it can send anything.

use super::clock_steps::ClockSteps;
use super::lines::Line;
use super::live_device::{LiveDevice, Pace, Summary};
use super::outbox::Outbox;
use super::progress::Progress;
use super::sender::{Sender, ServiceClient};
use crate::ingest_keys::DeviceIdentity;
use crate::links;
use crate::owner::DeviceFile;
use crate::settings;
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_encrypted_stream::producer::{Producer, TickProducer};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::CERTIFICATE;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::service::expiry::watch_certificate;
use alpheus_node::service::health::{Note, Part};
use alpheus_node::service::metrics::Metrics;
use alpheus_node::service::shutdown::Shutdown;
use alpheus_node::settings::{Settings, path_flag};
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::{Frames, Schema};
use alpheus_stream_runtime::stream_producer::StreamProducer;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Whose events a command sends, and where to.
#[derive(Debug, clap::Args)]
pub struct DeviceArgs {
    /// The device's identity folder
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The device's file, from `alpheus owner add`: it holds the stream's key
    #[arg(long, value_name = "FILE", required = true)]
    device: Option<PathBuf>,
    /// The folder for frames that the service has not confirmed
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The stream's schema: YAML or .avsc
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The service's URL
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// How often to ask the service whether it still accepts frames, if there is nothing to send; by default
    /// every 10 seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    poll_seconds: Option<u32>,
}

/// A device that can send.
pub struct Device {
    schema: Schema,
    encoder: Encoder,
    stream: StreamId,
    producer: StreamProducer,
    client: ServiceClient,
    store: Arc<dyn Store>,
    metrics: Metrics,
    part: Part,
    clock: Note,
    poll: Duration,
    whole: Option<Span>,
    progress: Option<Progress>,
}

impl Device {
    /// Reads all that it needs.
    ///
    /// # Errors
    /// A setting is missing or wrong, or a file cannot be used.
    pub fn open(args: &DeviceArgs, globals: &Globals) -> Result<Device, Failure> {
        let settings = globals.settings(vec![
            ("identity", path_flag(args.identity.as_ref())),
            ("state", path_flag(args.state.as_ref())),
            ("schema", path_flag(args.schema.as_ref())),
            ("server", args.server.clone()),
            (settings::POLL, args.poll_seconds.map(|seconds| seconds.to_string())),
        ])?;
        let folder = Settings::needed(&settings.identity, "identity")?;
        let identity = open_identity(&folder, Role::Producer)?;
        watch_certificate(&globals.metrics, &globals.health, &identity.path(CERTIFICATE));
        let schema = settings::schema(&settings)?;
        let layout = Layout::of(&schema).blame(Category::Input)?;
        let (stream, master) =
            DeviceFile::read(&Settings::needed(&args.device, "device")?, &schema)?;
        let client = links::service(&Settings::needed(&settings.server, "server")?, &identity)?;
        let (producer, client) = match schema.frames {
            Frames::Events => {
                let own = Producer::for_schema(&master, stream, &schema, &layout);
                (
                    StreamProducer::Events(Box::new(own.blame(Category::Input)?)),
                    ServiceClient::new(client),
                )
            }
            Frames::Ticks { .. } => {
                let DeviceIdentity { secrets, certificate } = DeviceIdentity::open(&identity)?;
                let own = TickProducer::for_schema(&master, stream, &schema, &layout, secrets);
                let client = ServiceClient::new(client).introducing(certificate);
                (StreamProducer::Ticks(Box::new(own.blame(Category::Input)?)), client)
            }
        };
        let store = globals.open_store(&settings)?;
        let encoder = Encoder::new(&schema, &layout).blame(Category::Input)?;
        let (metrics, part) = (globals.metrics.clone(), globals.health.part("service"));
        let clock = globals.health.note("clock");
        Ok(Device {
            schema,
            encoder,
            stream,
            producer,
            client,
            store,
            metrics,
            part,
            clock,
            poll: settings::poll(&settings)?,
            whole: None,
            progress: None,
        })
    }

    /// Has the stream online for whole windows of this length, so that the first and the last
    /// of a recording count. Lines need times.
    ///
    /// # Errors
    /// The length is no multiple of the schema's tick.
    pub fn in_whole(self, windows: Option<Span>) -> Result<Device, Failure> {
        let tick = self.schema.tick;
        let off = windows.filter(|whole| whole.0 == 0 || !whole.0.is_multiple_of(tick.0));
        if let Some(whole) = off {
            let what = format!("windows are not a multiple of the schema's tick, {tick}");
            let help = format!("write {}", neighbours(whole, tick));
            return Err(Failure::new(Category::Usage, what).at("--whole-windows").with_help(help));
        }
        Ok(Device { whole: windows, ..self })
    }

    /// Says in a file how far everything has arrived.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn telling(self, file: Option<&Path>) -> Result<Device, Failure> {
        let progress = file.map(Progress::open).transpose()?;
        Ok(Device { progress, ..self })
    }

    /// The schema of its stream.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Its store, where records of lines can lie.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Sends lines until they end or the process is to stop, and what waits of earlier starts.
    ///
    /// # Errors
    /// The store fails; the service does not know the stream; its owner has withdrawn it.
    pub fn run(
        self,
        lines: Receiver<Result<Line, Failure>>,
        pace: Pace,
        stop: &Shutdown,
    ) -> Result<Summary, Failure> {
        let mut rng = entropy::rng()?;
        let (outbox, is_new) =
            Outbox::open(self.store, self.stream, &mut rng).blame(Category::Io)?;
        let reached = outbox.reached().blame(Category::Io)?;
        let sender = Sender::start(self.client, outbox.clone(), self.part, self.poll);
        let sender = sender.blame(Category::Io)?;
        let (refused, sent) = (sender.refused(), outbox.clone());
        refused.register(&self.metrics);
        let device = LiveDevice {
            encoder: self.encoder,
            schema: self.schema,
            outbox,
            rng,
            is_new,
            reached,
            pace,
            refused,
            steps: ClockSteps::new(&self.metrics, self.clock),
            whole: self.whole,
            last_event: None,
            progress: self.progress,
            stop: stop.clone(),
            unsettled: Vec::new(),
            done: Vec::new(),
        };
        let (ran, progress) = device.run(self.producer, lines);
        // A failed sender explains more than the closed outbox.
        let ran = match ran {
            Err(failure) if !sent.is_closed() => Err(failure),
            ran => sender.finish(stop).and(ran),
        };
        if let (Ok(_), Some(progress)) = (&ran, progress) {
            progress.set(Timestamp(u64::MAX))?;
        }
        ran
    }
}

/// The multiples of a tick next to a length, as the flag takes them.
fn neighbours(length: Span, tick: Span) -> String {
    let around = length.multiples_around(tick).map(|span| format!("`--whole-windows {span}`"));
    around.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_next_to_one_that_is_no_multiple_are_named() {
        let said = |seconds| neighbours(Span::seconds(seconds), Span::seconds(10));
        assert_eq!(said(15), "`--whole-windows 10s` or `--whole-windows 20s`");
        assert_eq!(said(5), "`--whole-windows 10s`");
        for length in [10, 60, 90, 3600, 86_400] {
            let span = Span::seconds(length);
            assert_eq!(alpheus_policy::document::parse_duration(&span.to_string()), Some(span));
        }
    }
}
