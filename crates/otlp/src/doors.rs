//! The addresses at which exporters send, for the receiver and for a capture.

use crate::receiver::{MetricsService, NotLoopbackError, PATIENCE, Sink, router};
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::{Listener, serve};
use alpheus_node::service::shutdown::Shutdown;
use alpheus_node::settings::Settings;
use std::net::{SocketAddr, TcpListener};
use tonic::transport::server::TcpIncoming;

/// Where exporters send.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DoorArgs {
    /// The address for OTLP over HTTP, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4318")]
    http: SocketAddr,
    /// The address for OTLP over gRPC, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4317")]
    grpc: SocketAddr,
}

/// Doors that can be opened.
pub(crate) struct Doors {
    http: SocketAddr,
    grpc: Door,
}

impl DoorArgs {
    /// Refuses addresses that others could reach.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match [self.http, self.grpc].into_iter().find(|address| !address.ip().is_loopback()) {
            Some(address) => Err(Failure::new(Category::Usage, NotLoopbackError(address))),
            None => Ok(()),
        }
    }

    pub(crate) fn bind(&self) -> Result<Doors, Failure> {
        Ok(Doors { http: self.http, grpc: Door::bind(self.grpc)? })
    }
}

impl Doors {
    /// Takes requests until a signal arrives, or `broken` is triggered. gRPC ends with `stopping`.
    pub(crate) fn serve(
        self,
        sink: &Sink,
        (settings, globals): (&Settings, &Globals),
        broken: Shutdown,
        stopping: Shutdown,
    ) -> Result<(), Failure> {
        let (address, router, grpc) = (self.http, router(sink.clone()), self.grpc);
        let listeners =
            || Ok(vec![Listener { address, tls: None, router, streams: false, revoked: None }]);
        serve(listeners, settings, globals, broken, |addresses| {
            let said = addresses.join(" ");
            println!("OTLP over HTTP at {said}, over gRPC at http://{}", grpc.address);
            tokio::spawn(grpc.serve(sink.clone(), stopping));
        })
    }
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
    async fn serve(self, sink: Sink, mut stopping: Shutdown) {
        let served = async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let server = tonic::transport::Server::builder().timeout(PATIENCE);
            let incoming = TcpIncoming::from(listener);
            let service = MetricsService(sink);
            let end = async move { stopping.stopping().await };
            let served = server.serve_with_incoming_shutdown(service, incoming, end).await;
            served.map_err(std::io::Error::other)
        };
        if let Err(error) = served.await {
            tracing::error!(%error, "OTLP over gRPC is no longer served");
        }
    }
}
