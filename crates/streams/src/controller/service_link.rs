//! Messages to and from the service: sends the controllers' messages, waits for requests,
//! answers them, and repeats. The service repeats lost requests, and the same request
//! gets the same answer.

use super::guard::{Guard, GuardError};
use crate::wire::{Introduction, Mail, MailCursor, Notice, NoticeReply, Post, Welcome};
use alpheus_node::clock;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_node::service::health::{Part, State};
use alpheus_node::service::shutdown::Trigger;
use alpheus_policy::ids::StreamId;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a request waits at the service for messages.
const WAIT: Duration = Duration::from_secs(2);
/// Maximum number of notices in one request.
const AT_ONCE: usize = 256;
/// How often refused notices are sent again.
const RETRY_REFUSED: Duration = Duration::from_secs(60);
/// The first pause before the service is called again after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long windows wait, as far as the service has not said.
const WINDOWS_WAIT: Duration = Duration::from_secs(2);

/// Pauses that are shorter than windows wait. After longer ones, windows that close when the
/// service is back would be without its controllers.
fn pauses(windows_wait: Duration) -> RetryPolicy {
    let (first, longest) = PAUSES;
    RetryPolicy::doubling(first, (windows_wait / 2).clamp(first, longest))
}

/// The thread that exchanges messages.
pub struct Carrier {
    thread: JoinHandle<Result<(), GuardError>>,
    ending: Arc<AtomicBool>,
}

impl Carrier {
    /// Ends the thread and returns its result.
    ///
    /// # Errors
    /// [`GuardError`] if it ended by itself because records could not be written.
    pub fn end(self) -> Result<(), GuardError> {
        self.ending.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Err(GuardError::Panicked))
    }
}

/// Starts the thread. The trigger is dropped, and so triggered, when it ends.
///
/// # Errors
/// If the system cannot start a thread.
pub fn start(
    server: BlockingClient,
    guard: Arc<Mutex<Guard>>,
    trigger: Trigger,
    part: Part,
) -> io::Result<Carrier> {
    let ending = Arc::new(AtomicBool::new(false));
    let seen = ending.clone();
    let thread = std::thread::Builder::new().name("post".into()).spawn(move || {
        let _trigger = trigger;
        let received = MailCursor::default();
        let (life, retried) = (None, Instant::now());
        let (introduced, windows_wait) = (false, WINDOWS_WAIT);
        let mut exchange =
            Exchange { server, guard, part, introduced, received, life, windows_wait, retried };
        let mut backoff = Backoff::new(pauses(windows_wait));
        while !seen.load(Ordering::Relaxed) {
            match exchange.run() {
                Ok(()) => backoff = Backoff::new(pauses(exchange.windows_wait)),
                Err(CarryError::Request(error)) => {
                    exchange.part.set(State::Starting);
                    // The service may have lost its state, and with it our introduction.
                    exchange.introduced = false;
                    tracing::warn!(%error, "cannot reach the service");
                    std::thread::sleep(backoff.pause());
                }
                Err(CarryError::Guard(error)) => {
                    exchange.part.set(State::Failed);
                    tracing::error!(%error, "the controllers stop");
                    return Err(error);
                }
            }
        }
        Ok(())
    })?;
    Ok(Carrier { thread, ending })
}

enum CarryError {
    Request(RequestError),
    Guard(GuardError),
}

impl From<RequestError> for CarryError {
    fn from(error: RequestError) -> Self {
        CarryError::Request(error)
    }
}

impl<E: Into<GuardError>> From<E> for CarryError {
    fn from(error: E) -> Self {
        CarryError::Guard(error.into())
    }
}

struct Exchange {
    server: BlockingClient,
    guard: Arc<Mutex<Guard>>,
    part: Part,
    introduced: bool,
    received: MailCursor,
    /// The service's run at our last introduction.
    life: Option<[u8; 16]>,
    /// How long windows wait for answers.
    windows_wait: Duration,
    /// When refused notices were last sent again.
    retried: Instant,
}

impl Exchange {
    fn guard(&self) -> Result<MutexGuard<'_, Guard>, GuardError> {
        self.guard.lock().map_err(|_| GuardError::Panicked)
    }

    fn run(&mut self) -> Result<(), CarryError> {
        // Before any message: keys that are over are wiped, no matter what the service does.
        let busy = self.guard()?.draw_ahead(clock::now());
        if !self.introduced {
            let certificates = self.guard()?.certificates();
            let introduction = Introduction { certificates };
            let Welcome { life, wait } =
                self.server.call("/v1/controllers", &introduction, Duration::ZERO)?;
            if self.life.replace(life).is_some_and(|before| before != life) {
                self.guard()?.notices().resend_all()?;
            }
            self.introduced = true;
            self.windows_wait = Duration::from_millis(wait.into());
            self.part.set(State::Ready);
        }
        self.send_notices()?;
        self.guard()?.tend_logs(clock::now(), clock::steady())?;
        self.guard()?.count_unconfirmed();
        let batch = self.guard()?.outgoing_batch();
        let wait = if batch.messages.is_empty() && !busy { WAIT } else { Duration::ZERO };
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(0);
        let messages = batch.messages.clone();
        let mail = Mail { messages, wait: milliseconds, received: self.received };
        let is_current = batch.current_check();
        let post: Post = match self.server.call_while("/v1/mail", &mail, wait, is_current) {
            // An owner has taken something back: the rest is sent again.
            Err(_) if !batch.is_current() => return Ok(()),
            Err(error) if !error.may_pass() && !batch.messages.is_empty() => {
                // A repetition would be refused again.
                self.guard()?.drop_outgoing();
                return Err(error.into());
            }
            answered => answered?,
        };
        let mut guard = self.guard()?;
        guard.arrived(&batch);
        guard.answer(clock::now(), post.messages)?;
        drop(guard);
        self.received = post.cursor;
        // After a restart the service may know less than at our introduction.
        self.introduced &= self.life == Some(post.cursor.life);
        Ok(())
    }

    /// Sends pending notices of streams and choices.
    fn send_notices(&mut self) -> Result<(), CarryError> {
        if self.retried.elapsed() >= RETRY_REFUSED {
            self.retried = Instant::now();
            self.guard()?.notices().retry_refused();
        }
        loop {
            let pending = self.guard()?.notices().some(AT_ONCE)?;
            if pending.is_empty() {
                return Ok(());
            }
            let notices: Vec<_> = pending.iter().map(|(_, notice)| notice).collect();
            let noted: Vec<NoticeReply> =
                self.server.call("/v1/streams", &notices, Duration::ZERO)?;
            if noted.len() != pending.len() {
                return Err(self.server.malformed().into());
            }
            for ((stream, notice), noted) in pending.iter().zip(noted) {
                self.note(stream, notice, noted)?;
            }
        }
    }

    fn note(
        &self,
        stream: &StreamId,
        notice: &Notice,
        noted: NoticeReply,
    ) -> Result<(), GuardError> {
        let mut guard = self.guard()?;
        match &noted {
            NoticeReply::Yes => {}
            NoticeReply::Refused { why } => {
                tracing::warn!(%why, "the service refuses a stream for now");
            }
            NoticeReply::Moved(stands) => match guard.give_up(clock::now(), stream, stands) {
                Ok(()) => {
                    tracing::warn!(%stream, "its owner has moved the stream elsewhere, but this copy of the state did not record that")
                }
                // The host could not write it down.
                Err(error @ (GuardError::Host(_) | GuardError::Store(_))) => return Err(error),
                Err(refused) => tracing::warn!(%refused, "the service refuses a stream for now"),
            },
        }
        guard.notices().delivered(stream, notice, noted == NoticeReply::Yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_shorter_than_windows_wait() {
        for wait in [1, 2, 3, 10].map(Duration::from_secs) {
            let mut backoff = Backoff::new(pauses(wait));
            let longest = (0..20).map(|_| backoff.pause()).max();
            assert!(longest.is_some_and(|longest| longest <= wait / 2), "{wait:?}: {longest:?}");
        }
        let mut backoff = Backoff::new(pauses(Duration::MAX));
        assert_eq!((0..20).map(|_| backoff.pause()).max(), Some(PAUSES.1));
    }
}
