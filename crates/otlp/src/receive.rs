//! The running receiver: doors, intake, and the device that encrypts.

use crate::intake::{Event, Intake};
use crate::mapping::{Compiled, Mapping};
use crate::receiver::{MetricsService, NotLoopbackError, PATIENCE, router};
use alpheus_input::rows::Cell;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::service::shutdown::{self, Shutdown, Trigger};
use alpheus_node::settings::Settings;
use alpheus_streams::produce::device::{Device, DeviceArgs};
use alpheus_streams::produce::lines::Line;
use alpheus_streams::produce::live::Pace;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tonic::transport::server::TcpIncoming;

/// How long it waits for events before it looks whether to stop.
const WAIT: Duration = Duration::from_millis(100);
/// Maximum number of events read ahead.
const AHEAD: usize = 1024;

/// Arguments of `alpheus otlp`.
#[derive(Debug, clap::Args)]
pub struct ReceiverArgs {
    /// Whose events they are, and where they go.
    #[command(flatten)]
    device: DeviceArgs,
    /// The mapping from metrics to attributes: otlp.json, from `alpheus otlp import`
    #[arg(long, value_name = "FILE", required = true)]
    mapping: Option<PathBuf>,
    /// The address for OTLP over HTTP, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4318")]
    http: SocketAddr,
    /// The address for OTLP over gRPC, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4317")]
    grpc: SocketAddr,
}

/// Runs the receiver until it is asked to stop.
///
/// # Errors
/// A setting, a file or an address cannot be used; the store fails; the service does not know
/// the stream.
pub fn run(args: &ReceiverArgs, globals: &Globals) -> Result<(), Failure> {
    for address in [args.http, args.grpc] {
        if !address.ip().is_loopback() {
            return Err(Failure::new(Category::Usage, NotLoopbackError(address)));
        }
    }
    let path = Settings::needed(&args.mapping, "mapping")?;
    let mapping = read(&path)?;
    let device = Device::open(&args.device, globals)?;
    let compiled = Compiled::of(&mapping, device.schema()).blame_input(&path)?;
    let attributes = device.schema().attributes.len();
    let intake = Intake::open(device.store(), compiled, clock::now()).blame(Category::Io)?;
    intake.register(&globals.metrics);
    let (settings, grpc) = (globals.settings(Vec::new())?, Door::bind(args.grpc)?);
    let (ended, broken) = (Arc::new(AtomicBool::new(false)), Trigger::new());
    let lines = read_ahead(intake.clone(), attributes, Arc::clone(&ended));
    let (stop, is_broken) = (shutdown::on_signal().blame(Category::Io)?, broken.shutdown());
    let stopping = stop.clone();
    let running = std::thread::spawn(move || {
        let ran = device.run(lines, Pace::AtOnce, &stop);
        broken.stop();
        ran
    });
    let (address, router) = (args.http, router(intake.clone()));
    let listeners = || Ok(vec![Listener { address, tls: None, router, streams: false }]);
    let served = serve(listeners, &settings, globals, is_broken, |addresses| {
        let said = addresses.join(" ");
        println!("OTLP over HTTP at {said}, over gRPC at http://{}", grpc.address);
        tokio::spawn(grpc.serve(intake, stopping));
    });
    ended.store(true, Ordering::Relaxed);
    let panicked = || Err("the device panicked; this is a bug in Alpheus");
    let ran = running.join().unwrap_or_else(|_| panicked().blame(Category::Io));
    let summary = ran.and_then(|summary| served.map(|()| summary))?;
    eprintln!("{} events sent", summary.events);
    Ok(())
}

/// The door for gRPC.
struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

impl Door {
    fn bind(address: SocketAddr) -> Result<Door, Failure> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Door { listener, address })
        });
        bound.map_err(|error| {
            let failure = Failure::new(Category::Io, error).at(address.to_string());
            failure.with_help("choose another address, or port 0 for any free one")
        })
    }

    /// Serves until the process stops. A door that fails is logged, and the other stays open.
    async fn serve(self, intake: Intake, mut stopping: Shutdown) {
        let served = async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let server = tonic::transport::Server::builder().timeout(PATIENCE);
            let incoming = TcpIncoming::from(listener);
            let service = MetricsService(intake);
            let end = async move { stopping.stopping().await };
            let served = server.serve_with_incoming_shutdown(service, incoming, end).await;
            served.map_err(std::io::Error::other)
        };
        if let Err(error) = served.await {
            tracing::error!(%error, "OTLP over gRPC is not served any more");
        }
    }
}

fn read(path: &Path) -> Result<Mapping, Failure> {
    serde_json::from_str(&read_text(path)?).blame_input(path)
}

/// Events as lines, each with its record, until the receiver ends.
fn read_ahead(
    intake: Intake,
    attributes: usize,
    ended: Arc<AtomicBool>,
) -> Receiver<Result<Line, Failure>> {
    let (sender, receiver) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let mut last = 0;
        while !ended.load(Ordering::Relaxed) {
            let events = match intake.after(last, WAIT) {
                Ok(events) => events,
                Err(error) => {
                    let _ = sender.send(Err(Failure::new(Category::Io, error)));
                    return;
                }
            };
            for (number, event) in events {
                last = number;
                let record = Some(intake.record(number));
                let cells = cells(&event, attributes);
                let line = Line { place: format!("event {number}"), time: None, cells, record };
                if sender.send(Ok(line)).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

fn cells(event: &Event, attributes: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::Absent; attributes];
    for (position, value) in event {
        if let Some(cell) = cells.get_mut(usize::from(*position)) {
            *cell = Cell::Number(*value);
        }
    }
    cells
}
