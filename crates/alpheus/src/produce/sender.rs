//! Carries what waits in an outbox to the service, until it is known to be
//! durable there.

use super::outbox::{Outbox, Sending};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::client::{Client, RequestError};
use crate::network::wire::{Received, Upload};
use crate::service::health::{Part, State};
use crate::service::shutdown::Shutdown;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of frames in one request: after a failure half of that, as a slow line
/// may carry less in good time, down to the second.
const BYTES: (usize, usize) = (4 << 20, 64 << 10);
const WAIT: Duration = Duration::from_millis(200);
/// After a failure: so long, doubling, up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Whoever is asked to stop waits so long for the rest to arrive, and looks so often.
const STOPPING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// At the end of its input a device waits so long for a service that does not
/// know the stream.
const UNKNOWN: Duration = Duration::from_secs(30);

/// To whom uploads are carried.
pub trait Carry: Send + 'static {
    /// Hands uploads over.
    ///
    /// # Errors
    /// [`RequestError`].
    fn carry(&self, uploads: &[Upload]) -> Result<Vec<Received>, RequestError>;
}

impl Carry for Client {
    fn carry(&self, uploads: &[Upload]) -> Result<Vec<Received>, RequestError> {
        self.exchange("/v1/events", &uploads, Duration::ZERO)
    }
}

/// The thread that carries.
pub struct Sender {
    thread: JoinHandle<Result<(), Failure>>,
    finishing: Arc<AtomicBool>,
}

impl Sender {
    /// Starts carrying. If it has to give up, it closes the outbox.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(client: impl Carry, outbox: Outbox, part: Part) -> io::Result<Sender> {
        let finishing = Arc::new(AtomicBool::new(false));
        let seen = finishing.clone();
        let thread = std::thread::Builder::new().name("sender".into());
        let thread = thread.spawn(move || {
            let mut carrier = Carrier::new(client, outbox, part, seen);
            let carried = carrier.run();
            if let Err(failure) = &carried {
                tracing::error!(%failure, "frames are not sent any more");
                carrier.part.set(State::Failed);
            }
            carrier.outbox.close();
            carried
        })?;
        Ok(Sender { thread, finishing })
    }

    /// Whether it has given up.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until everything has arrived; once `stop` is set, only a while longer:
    /// what has not arrived waits for the next start.
    ///
    /// # Errors
    /// If the service will not take it.
    pub fn finish(self, stop: &Shutdown) -> Result<(), Failure> {
        self.finishing.store(true, Ordering::Relaxed);
        let mut left = STOPPING;
        while !self.thread.is_finished() {
            if left.is_zero() {
                tracing::warn!("some frames have not arrived; they wait for the next start");
                return Ok(());
            }
            std::thread::sleep(LOOK);
            if stop.is_stopping() {
                left = left.saturating_sub(LOOK);
            }
        }
        let panicked = || Err("sending ended in a panic, which is a mistake of ours");
        self.thread.join().unwrap_or_else(|_| panicked().blame(Category::Io))
    }
}

/// What the thread works with.
struct Carrier<C> {
    client: C,
    outbox: Outbox,
    part: Part,
    finishing: Arc<AtomicBool>,
    bytes: usize,
    rest: Duration,
    /// Since when the service has not known the stream, and the input has ended.
    unknown: Option<Instant>,
}

impl<C: Carry> Carrier<C> {
    fn new(client: C, outbox: Outbox, part: Part, finishing: Arc<AtomicBool>) -> Carrier<C> {
        let (bytes, rest) = (BYTES.0, REST.0);
        Carrier { client, outbox, part, finishing, bytes, rest, unknown: None }
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
                continue;
            }
            match self.client.carry(&sending.uploads) {
                Ok(received) => self.settle(&sending, &received)?,
                Err(error) => self.not_carried(error, sending.uploads.len())?,
            }
        }
    }

    /// Nobody has taken them: less at a time, later, or never.
    fn not_carried(&mut self, error: RequestError, uploads: usize) -> Result<(), Failure> {
        let too_large = matches!(&error, RequestError::Refused(problem) if problem.status == 413);
        let is_least = uploads == 1 && self.bytes <= BYTES.1;
        if !error.may_pass() && (!too_large || is_least) {
            return Err(error.into());
        }
        self.bytes = (self.bytes / 2).max(BYTES.1);
        if !too_large {
            self.part.set(State::Starting);
            tracing::warn!(%error, "the service was not reached; frames wait");
            self.pause();
        }
        Ok(())
    }

    fn pause(&mut self) {
        std::thread::sleep(self.rest);
        self.rest = (self.rest * 2).min(REST.1);
    }

    /// Goes by what became of the uploads.
    fn settle(&mut self, sending: &Sending, received: &[Received]) -> Result<(), Failure> {
        let pairs = || sending.uploads.iter().zip(received);
        let forked = |became: &Received| {
            // It had what was never sent from here: this outbox is an older copy, and
            // what it had under these numbers is something else.
            matches!(became, Received::Before { last } if *last > sending.sent_before)
        };
        if received.iter().any(forked) {
            tracing::warn!("the device's state is an older copy; what waits is sent anew");
            return self.outbox.begin_anew(&mut entropy::rng()?).blame(Category::Io);
        }
        let is_there =
            |became: &Received| matches!(became, Received::Taken | Received::Before { .. });
        let there = pairs().take_while(|(_, became)| is_there(became));
        if let Some(last) = there.map(|(upload, _)| upload.number).last() {
            self.outbox.arrived(last).blame(Category::Io)?;
            (self.bytes, self.rest, self.unknown) = (BYTES.0.min(self.bytes * 2), REST.0, None);
            self.part.set(State::Ready);
        }
        match pairs().find(|(_, became)| !is_there(became)) {
            Some((_, Received::NotYours)) => self.not_yours(),
            Some((upload, Received::Malformed)) => {
                tracing::error!(number = upload.number, "an upload is damaged and was dropped");
                self.outbox.arrived(upload.number).blame(Category::Io)
            }
            // Those after it wait for it; it is the first of the next request, or gone.
            Some((upload, Received::Missing { next })) if *next < upload.number => {
                if sending.uploads.iter().any(|held| held.number == *next) {
                    return Ok(());
                }
                tracing::warn!("the service's state is an older copy; what waits is sent anew");
                self.outbox.begin_anew(&mut entropy::rng()?).blame(Category::Io)
            }
            _ => Ok(()),
        }
    }

    /// The service may hear of the stream later: its controller tells it.
    fn not_yours(&mut self) -> Result<(), Failure> {
        self.part.set(State::Starting);
        let what = "the service does not know the stream, or knows another device for it";
        tracing::warn!("{what}; frames wait");
        if self.is_finishing() {
            let since = *self.unknown.get_or_insert_with(Instant::now);
            if since.elapsed() >= UNKNOWN {
                let help = "the controller tells the service once it is reachable; `alpheus owner add` names the device; what was not sent waits in the state folder";
                return Err(what).blame(Category::Input).map_err(|failure| failure.with_help(help));
            }
        }
        self.pause();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
