//! Carries what waits in an outbox to the service, until it is known to be
//! durable there.

use super::outbox::Outbox;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::client::{Client, RequestError};
use crate::network::wire::{Received, Upload};
use crate::service::health::{Part, State};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Uploads of one request.
const AT_ONCE: usize = 64;
const WAIT: Duration = Duration::from_millis(200);
/// After a failure: so long, doubling, up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The thread that carries.
pub struct Sender {
    thread: JoinHandle<Result<(), Failure>>,
    finishing: Arc<AtomicBool>,
}

impl Sender {
    /// Starts carrying.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(client: Client, outbox: Outbox, part: Part) -> io::Result<Sender> {
        let finishing = Arc::new(AtomicBool::new(false));
        let seen = finishing.clone();
        let thread = std::thread::Builder::new().name("sender".into());
        let thread = thread.spawn(move || carry(&client, &outbox, &part, &seen))?;
        Ok(Sender { thread, finishing })
    }

    /// Waits until everything has arrived.
    ///
    /// # Errors
    /// If the service will not take it.
    pub fn finish(self) -> Result<(), Failure> {
        self.finishing.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Ok(()))
    }
}

fn carry(
    client: &Client,
    outbox: &Outbox,
    part: &Part,
    finishing: &AtomicBool,
) -> Result<(), Failure> {
    let mut rest = REST.0;
    loop {
        let uploads = outbox.oldest(AT_ONCE, WAIT).blame(Category::Io)?;
        if uploads.is_empty() {
            if finishing.load(Ordering::Relaxed) && outbox.is_empty() {
                return Ok(());
            }
            continue;
        }
        match client.exchange::<Vec<Received>>("/v1/events", &uploads, Duration::ZERO) {
            Ok(received) => {
                part.set(State::Ready);
                rest = REST.0;
                settle(outbox, &uploads, &received)?;
            }
            Err(error @ RequestError::Refused(_)) if !error.may_pass() => return Err(error.into()),
            Err(error) => {
                part.set(State::Starting);
                tracing::warn!(%error, "the service was not reached; frames wait");
                std::thread::sleep(rest);
                rest = (rest * 2).min(REST.1);
            }
        }
    }
}

/// Goes by what became of the uploads.
fn settle(outbox: &Outbox, uploads: &[Upload], received: &[Received]) -> Result<(), Failure> {
    let taken = uploads.iter().zip(received).take_while(|(_, became)| **became == Received::Taken);
    if let Some(last) = taken.map(|(upload, _)| upload.number).last() {
        outbox.arrived(last).blame(Category::Io)?;
    }
    let failed = uploads.iter().zip(received).find(|(_, became)| **became != Received::Taken);
    match failed {
        None => Ok(()),
        Some((_, Received::NotYours)) => Err("the service does not know the stream, or knows another device for it")
            .blame(Category::Input)
            .map_err(|failure| failure.with_help("the controller tells the service once it is reachable; `alpheus owner add` names the device")),
        Some((upload, Received::Malformed)) => {
            tracing::error!(number = upload.number, "an upload is damaged and was dropped");
            outbox.arrived(upload.number).blame(Category::Io)
        }
        // Those after it wait for it; it is the first of the next request, or gone.
        Some((upload, Received::Missing { next })) if *next < upload.number => {
            if uploads.iter().any(|held| held.number == *next) {
                return Ok(());
            }
            outbox.begin_anew(&mut entropy::rng()?).blame(Category::Io)
        }
        Some(_) => Ok(()),
    }
}
