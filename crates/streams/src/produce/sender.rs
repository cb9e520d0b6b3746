//! Delivers an outbox's uploads to the service until the service confirms that they
//! are durable, or says that their stream is withdrawn.

use super::outbox::{Outbox, OutgoingUploads};
use super::refused_sessions::RefusedSessions;
use crate::wire::{Receipt, Upload, UploadStatus};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_node::service::health::{Part, State};
use alpheus_node::service::shutdown::Shutdown;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum and minimum bytes of frames in one request. Each failure halves the size,
/// because a slow connection may deliver only less in time.
const BYTES: (usize, usize) = (4 << 20, 64 << 10);
const WAIT: Duration = Duration::from_millis(200);
/// Pauses before the service is called again after a failure.
const RETRY: RetryPolicy =
    RetryPolicy::doubling(Duration::from_millis(100), Duration::from_secs(5));
/// After a request to stop: how long to wait for the rest to arrive, and how often to check.
const STOPPING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// At the end of its input: how long a device waits for a service that does not yet
/// know the stream.
const UNKNOWN: Duration = Duration::from_secs(30);

/// The receiver of uploads.
pub trait UploadClient: Send + 'static {
    /// Sends uploads.
    ///
    /// # Errors
    /// [`RequestError`].
    fn send(&self, uploads: &[Upload]) -> Result<Receipt, RequestError>;
}

/// The service, to which a device introduces itself where the schema needs it.
pub struct ServiceClient {
    client: BlockingClient,
    certificate: Option<Signed<Certificate>>,
    /// Whether the service does not know the certificate.
    unknown: AtomicBool,
}

impl ServiceClient {
    /// A device that only sends.
    #[must_use]
    pub fn new(client: BlockingClient) -> ServiceClient {
        ServiceClient { client, certificate: None, unknown: AtomicBool::new(true) }
    }

    /// A device whose sessions the service knows by its certificate.
    #[must_use]
    pub fn introducing(self, certificate: Signed<Certificate>) -> ServiceClient {
        ServiceClient { certificate: Some(certificate), ..self }
    }
}

impl UploadClient for ServiceClient {
    fn send(&self, uploads: &[Upload]) -> Result<Receipt, RequestError> {
        if let Some(certificate) = &self.certificate
            && self.unknown.load(Ordering::Relaxed)
        {
            let () = self.client.call("/v1/device", certificate, Duration::ZERO)?;
            self.unknown.store(false, Ordering::Relaxed);
        }
        let receipt: Receipt = self.client.call("/v1/events", &uploads, Duration::ZERO)?;
        // The service may have been restored from an older copy, or emptied.
        if receipt.refused.iter().any(|frame| frame.reason.heals()) {
            self.unknown.store(true, Ordering::Relaxed);
        }
        Ok(receipt)
    }
}

/// The sending thread.
pub struct Sender {
    thread: JoinHandle<Result<(), Failure>>,
    finishing: Arc<AtomicBool>,
    refused: RefusedSessions,
}

impl Sender {
    /// Starts sending. Where nothing waits to be sent for as long as `poll`, it asks the service
    /// whether it still takes anything, and so learns of revoked certificates. If it has to give
    /// up, it closes the outbox.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        client: impl UploadClient,
        outbox: Outbox,
        part: Part,
        poll: Duration,
    ) -> io::Result<Sender> {
        let finishing = Arc::new(AtomicBool::new(false));
        let (seen, refused) = (finishing.clone(), RefusedSessions::default());
        let noted = refused.clone();
        let thread = std::thread::Builder::new().name("sender".into());
        let thread = thread.spawn(move || {
            let mut carrier = Carrier::new(client, outbox, part, (seen, noted), poll);
            let carried = carrier.run();
            if let Err(failure) = &carried {
                tracing::error!(%failure, "sending has stopped for good");
                carrier.part.set(State::Failed);
            }
            carrier.outbox.close();
            carried
        })?;
        Ok(Sender { thread, finishing, refused })
    }

    /// Sessions that the service does not take any more.
    #[must_use]
    pub fn refused(&self) -> RefusedSessions {
        self.refused.clone()
    }

    /// Whether it has given up.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until everything has arrived; once `stop` is set, only a while longer. The
    /// rest waits for the next start.
    ///
    /// # Errors
    /// If the service refuses for good.
    pub fn finish(self, stop: &Shutdown) -> Result<(), Failure> {
        self.finishing.store(true, Ordering::Relaxed);
        let mut left = STOPPING;
        while !self.thread.is_finished() {
            if left.is_zero() {
                tracing::warn!("some frames have not arrived; they will be sent at the next start");
                return Ok(());
            }
            std::thread::sleep(LOOK);
            if stop.is_stopping() {
                left = left.saturating_sub(LOOK);
            }
        }
        let panicked = || Err("the sender panicked; this is a bug in Alpheus");
        self.thread.join().unwrap_or_else(|_| panicked().blame(Category::Io))
    }
}

/// The state of the sending thread.
struct Carrier<C> {
    client: C,
    outbox: Outbox,
    part: Part,
    finishing: Arc<AtomicBool>,
    refused: RefusedSessions,
    bytes: usize,
    backoff: Backoff,
    /// Since when the service has not known the stream, and the input has ended.
    unknown: Option<Instant>,
    /// How long it waits before it asks, and when it last called the service.
    poll: Duration,
    called: Instant,
}

impl<C: UploadClient> Carrier<C> {
    fn new(
        client: C,
        outbox: Outbox,
        part: Part,
        (finishing, refused): (Arc<AtomicBool>, RefusedSessions),
        poll: Duration,
    ) -> Carrier<C> {
        let (bytes, backoff, called) = (BYTES.0, Backoff::new(RETRY), Instant::now());
        let unknown = None;
        Carrier { client, outbox, part, finishing, refused, bytes, backoff, unknown, poll, called }
    }

    fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Relaxed)
    }

    fn run(&mut self) -> Result<(), Failure> {
        loop {
            let sending = self.outbox.oldest(self.bytes, WAIT).blame(Category::Io)?;
            if sending.uploads.is_empty() {
                if self.is_finishing() && self.outbox.is_empty() {
                    return Ok(());
                }
                if self.called.elapsed() < self.poll {
                    continue;
                }
            }
            self.called = Instant::now();
            match self.client.send(&sending.uploads) {
                Ok(receipt) if sending.uploads.is_empty() => {
                    self.refused.note(&receipt.refused);
                    self.backoff.reset();
                    self.part.set(State::Ready);
                }
                Ok(receipt) => {
                    self.refused.note(&receipt.refused);
                    self.settle(&sending, &receipt.uploads)?;
                }
                Err(error) => self.not_carried(error, sending.uploads.len())?,
            }
        }
    }

    /// Uploads were not accepted: sends less at a time, later, or gives up.
    fn not_carried(&mut self, error: RequestError, uploads: usize) -> Result<(), Failure> {
        let too_large = matches!(&error, RequestError::Refused(problem) if problem.status == 413);
        let is_least = uploads == 1 && self.bytes <= BYTES.1;
        if !error.may_pass() && (!too_large || is_least) {
            return Err(error.into());
        }
        self.bytes = (self.bytes / 2).max(BYTES.1);
        if !too_large {
            self.part.set(State::Starting);
            tracing::warn!(%error, "the service has not taken frames; they wait");
            self.pause()?;
        }
        Ok(())
    }

    /// Devices that an outage has cut off do not come back together.
    fn pause(&mut self) -> Result<(), Failure> {
        std::thread::sleep(self.backoff.jittered(&mut entropy::rng()?));
        Ok(())
    }

    /// Acts on the answers to the uploads.
    fn settle(
        &mut self,
        sending: &OutgoingUploads,
        received: &[UploadStatus],
    ) -> Result<(), Failure> {
        let pairs = || sending.uploads.iter().zip(received);
        let forked = |became: &UploadStatus| {
            // The service has numbers that were never sent from here, so this outbox is an
            // older copy, and those numbers stand for other uploads.
            matches!(became, UploadStatus::Before { last } if *last > sending.sent_before)
        };
        if received.iter().any(forked) {
            tracing::warn!(
                "the device's state is an older copy; waiting uploads are sent under a new name"
            );
            return self.outbox.rename(&mut entropy::rng()?).blame(Category::Io);
        }
        let is_there = |became: &UploadStatus| {
            matches!(became, UploadStatus::Taken | UploadStatus::Before { .. })
        };
        let there = pairs().take_while(|(_, became)| is_there(became));
        if let Some(last) = there.map(|(upload, _)| upload.number).last() {
            self.outbox.arrived(last).blame(Category::Io)?;
            (self.bytes, self.unknown) = (BYTES.0.min(self.bytes * 2), None);
            self.backoff.reset();
            self.part.set(State::Ready);
        }
        match pairs().find(|(_, became)| !is_there(became)) {
            Some((_, UploadStatus::NotYours)) => self.not_yours(),
            Some((_, UploadStatus::Withdrawn)) => withdrawn(),
            Some((upload, UploadStatus::Malformed)) => {
                tracing::error!(number = upload.number, "an upload was corrupted and was dropped");
                self.outbox.arrived(upload.number).blame(Category::Io)
            }
            // Later uploads depend on it: it starts the next request, or it is lost.
            Some((upload, UploadStatus::Missing { next })) if *next < upload.number => {
                if sending.uploads.iter().any(|held| held.number == *next) {
                    return Ok(());
                }
                tracing::warn!(
                    "the service's state is an older copy; waiting uploads are sent under a new name"
                );
                self.outbox.rename(&mut entropy::rng()?).blame(Category::Io)
            }
            _ => Ok(()),
        }
    }

    /// The service may learn of the stream later, from the stream's controller.
    fn not_yours(&mut self) -> Result<(), Failure> {
        self.part.set(State::Starting);
        let what = "the service does not know the stream, or expects another device for it";
        tracing::warn!("{what}; frames wait");
        if self.is_finishing() {
            let since = *self.unknown.get_or_insert_with(Instant::now);
            if since.elapsed() >= UNKNOWN {
                let help = "the controller registers the stream once the service is reachable; `alpheus owner add` names the device; unsent frames wait in the state folder";
                return Err(what).blame(Category::Input).map_err(|failure| failure.with_help(help));
            }
        }
        self.pause()
    }
}

/// The owner has withdrawn the stream. No later choice brings it back, so nothing more of it is read
/// or made. Waiting frames are kept, in case the service is mistaken.
fn withdrawn() -> Result<(), Failure> {
    let what =
        "the owner has withdrawn the stream for good, and the service accepts nothing more of it";
    let help = "unsent frames stay in the state folder; to send again, the owner adds another stream with `alpheus owner add`, and the device starts with its file and a state folder of its own";
    Err(what).blame(Category::Refused).map_err(|failure| failure.with_help(help))
}

#[cfg(test)]
mod tests;
