//! Serves a process's routers until it is told to stop: the public one, and
//! others that only this machine or a proxy in front should reach.

use crate::commands::Globals;
use crate::failure::Failure;
use crate::pass::settings::PassSettings;
use crate::pass::verifier::shards::UNDER_WAY;
use crate::service::http::{Bounds, Drained, Server};
use crate::service::shutdown::{Shutdown, Signals, Trigger};
use crate::service::tls::{TlsError, TlsFiles, server};
use crate::service::{ServiceError, Settings};
use axum::Router;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

/// One address and what it serves.
pub struct Listener {
    /// Where.
    pub address: SocketAddr,
    /// With which certificate; none for no TLS.
    pub tls: Option<TlsFiles>,
    /// What.
    pub router: Router,
    /// Whether answers may run for hours while the other end only listens.
    pub streams: bool,
}

/// Serves without a limit that is worth a name.
const CONNECTIONS: usize = 16_384;

/// Serves until a signal comes or `broken` says so. `started` gets the addresses
/// and may start tasks.
///
/// # Errors
/// An address or a certificate cannot be had.
pub fn serve(
    listeners: impl FnOnce() -> Result<Vec<Listener>, Failure>,
    settings: &Settings,
    globals: &Globals,
    mut broken: Shutdown,
    started: impl FnOnce(&[String]),
) -> Result<(), Failure> {
    let pass = settings.pass.clone().unwrap_or_default();
    block_on(async {
        // Whoever is told that this serves may stop it at once.
        let mut signals = Signals::listen().map_err(ServiceError::from)?;
        let (trigger, mut serving, mut addresses) = (Trigger::new(), Vec::new(), Vec::new());
        for listener in listeners()? {
            let (server, address) = bind(&listener, &pass).await?;
            addresses.push(address);
            let served = server.serve(listener.router, trigger.shutdown(), settings.drain());
            serving.push(tokio::spawn(served));
        }
        started(&addresses);
        tokio::select! {
            () = signals.next() => {}
            () = broken.stopping() => {}
        }
        globals.health.stop();
        trigger.stop();
        for served in serving {
            let drained = served.await.map_err(|e| ServiceError::from(io::Error::other(e)))?;
            if let Drained::Cut(connections) = drained {
                tracing::warn!(connections, "connections were cut off");
            }
        }
        Ok(())
    })
}

async fn bind(listener: &Listener, pass: &PassSettings) -> Result<(Server, String), ServiceError> {
    let tls = listener.tls.as_ref().map(|files| server(files, SystemTime::now()));
    let tls = tls.transpose().map_err(|error: TlsError| ServiceError::from(error))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let bound = Server::bind(listener.address, tls).await?;
    let connections = pass.connections.unwrap_or(CONNECTIONS);
    let bound = bound.with_bounds(bounds(connections, listener.streams));
    let address = format!("{scheme}://{}", bound.address()?);
    Ok((bound, address))
}

/// A gateway asks a verifier for all its clients, but not so that others cannot; it needs
/// as many connections as it has requests under way.
fn bounds(connections: usize, streams: bool) -> Bounds {
    let silence = Bounds::default().silence.filter(|_| !streams);
    Bounds { connections, of_one: (connections / 4).max(UNDER_WAY), silence }
}

/// Runs a future on all processors.
///
/// # Errors
/// The runtime cannot start, or what the future says.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(ServiceError::from)?.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_may_have_as_many_connections_as_it_uses() {
        for connections in [UNDER_WAY, 300, CONNECTIONS] {
            assert!(bounds(connections, false).of_one >= UNDER_WAY, "{connections}");
        }
        assert_eq!(bounds(CONNECTIONS, false).of_one, CONNECTIONS / 4);
        assert!(bounds(300, true).silence.is_none() && bounds(300, false).silence.is_some());
    }
}
