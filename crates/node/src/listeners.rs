//! Serves a process's routers until it is asked to stop: the public one, and others that
//! only this machine or a reverse proxy should reach.

use crate::failure::Failure;
use crate::globals::Globals;
use crate::network::door;
use crate::network::revoked_certificates::RevokedCertificates;
use crate::service::ServiceError;
use crate::service::descriptors::{Share, bounds, share_of};
use crate::service::expiry::watch_certificate;
use crate::service::http::{DrainOutcome, Server};
use crate::service::shutdown::{Shutdown, Signals, Trigger};
use crate::service::tls::{TlsError, server};
use crate::settings::{Settings, TlsFiles};
use axum::Router;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

/// One address and what it serves.
pub struct Listener {
    /// The address.
    pub address: SocketAddr,
    /// The certificate; none for no TLS.
    pub tls: Option<TlsFiles>,
    /// The routes.
    pub router: Router,
    /// Whether answers may run for hours while the client only listens.
    pub streams: bool,
    /// Certificates of clients that it refuses.
    pub revoked: Option<RevokedCertificates>,
}

/// Serves until a signal arrives or `broken` is triggered. `started` gets the addresses and
/// may start tasks.
///
/// # Errors
/// An address or a certificate cannot be used.
pub fn serve(
    listeners: impl FnOnce() -> Result<Vec<Listener>, Failure>,
    settings: &Settings,
    globals: &Globals,
    mut broken: Shutdown,
    started: impl FnOnce(&[String]),
) -> Result<(), Failure> {
    block_on(async {
        // A process that sees this one serving may stop it at once.
        let mut signals = Signals::listen().map_err(ServiceError::from)?;
        let (trigger, mut serving, mut addresses) = (Trigger::new(), Vec::new(), Vec::new());
        let listeners = listeners()?;
        let share = share_of(settings, listeners.len());
        let certificate = listeners.iter().find_map(|own| own.tls.as_ref()?.certificate.clone());
        if let Some(certificate) = certificate {
            watch_certificate(&globals.metrics, &globals.health, &certificate);
        }
        for listener in listeners {
            let (server, address) = bind(&listener, share).await?;
            addresses.push(address);
            let router = door::without(listener.router, listener.revoked);
            let served = server.serve(router, trigger.shutdown(), settings.drain());
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
            if matches!(drained, DrainOutcome::Cut(_)) {
                // At a smoother that moves with the number of samples, so no usual log has it.
                tracing::debug!("connections were cut off");
            }
        }
        Ok(())
    })
}

async fn bind(listener: &Listener, share: Share) -> Result<(Server, String), ServiceError> {
    let tls = listener.tls.as_ref().map(|files| server(files, SystemTime::now()));
    let tls = tls.transpose().map_err(|error: TlsError| ServiceError::from(error))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let bound = Server::bind(listener.address, tls).await?;
    let bound = bound.with_bounds(bounds(share, listener.streams));
    let address = format!("{scheme}://{}", bound.address()?);
    Ok((bound, address))
}

/// Runs a future on all processors.
///
/// # Errors
/// The runtime cannot start, or the future fails.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(ServiceError::from)?.block_on(work)
}
