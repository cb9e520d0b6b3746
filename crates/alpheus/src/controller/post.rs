//! Messages to and from the service: says what the controllers say, waits for
//! what there is to hear, answers it, and so on. Whatever is lost on the way is
//! asked for again; the same request gets the same answer.

use super::guard::{Guard, GuardError};
use crate::network::client::{Client, RequestError};
use crate::network::wire::{Heard, Introduction, Mail, Noted, Post, Welcome};
use crate::runtime::embedded::wall_clock;
use crate::service::health::{Part, State};
use crate::service::shutdown::Trigger;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the service may keep us waiting for news.
const WAIT: Duration = Duration::from_secs(2);
/// Notices in one request.
const AT_ONCE: usize = 256;
/// What the service does not take, it is told again after so long.
const AGAIN: Duration = Duration::from_secs(60);
/// After a failure: so long, doubling, up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The thread that carries messages.
pub struct Carrier {
    thread: JoinHandle<Result<(), GuardError>>,
    ending: Arc<AtomicBool>,
}

impl Carrier {
    /// Ends it and says how it went.
    ///
    /// # Errors
    /// [`GuardError`] if it ended by itself: what must be durable could not be
    /// written.
    pub fn end(self) -> Result<(), GuardError> {
        self.ending.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Err(GuardError::Panicked))
    }
}

/// Starts carrying. The trigger is dropped, and so triggered, when it ends.
///
/// # Errors
/// If there is no thread to be had.
pub fn start(
    server: Client,
    guard: Arc<Mutex<Guard>>,
    trigger: Trigger,
    part: Part,
) -> io::Result<Carrier> {
    let ending = Arc::new(AtomicBool::new(false));
    let seen = ending.clone();
    let thread = std::thread::Builder::new().name("post".into()).spawn(move || {
        let _trigger = trigger;
        let heard = Heard::default();
        let (life, told) = (None, Instant::now());
        let mut round = Round { server, guard, part, introduced: false, heard, life, told };
        let mut rest = REST.0;
        while !seen.load(Ordering::Relaxed) {
            match round.go() {
                Ok(()) => rest = REST.0,
                Err(NotCarried::Request(error)) => {
                    round.part.set(State::Starting);
                    // The service may have forgotten us with its state.
                    round.introduced = false;
                    tracing::warn!(%error, "the service was not reached");
                    std::thread::sleep(rest);
                    rest = (rest * 2).min(REST.1);
                }
                Err(NotCarried::Guard(error)) => {
                    round.part.set(State::Failed);
                    tracing::error!(%error, "the controllers stop");
                    return Err(error);
                }
            }
        }
        Ok(())
    })?;
    Ok(Carrier { thread, ending })
}

enum NotCarried {
    Request(RequestError),
    Guard(GuardError),
}

impl From<RequestError> for NotCarried {
    fn from(error: RequestError) -> Self {
        NotCarried::Request(error)
    }
}

impl<E: Into<GuardError>> From<E> for NotCarried {
    fn from(error: E) -> Self {
        NotCarried::Guard(error.into())
    }
}

struct Round {
    server: Client,
    guard: Arc<Mutex<Guard>>,
    part: Part,
    introduced: bool,
    heard: Heard,
    /// The service's, when we were last introduced.
    life: Option<[u8; 16]>,
    /// When what it does not take was last told again.
    told: Instant,
}

impl Round {
    fn guard(&self) -> Result<MutexGuard<'_, Guard>, GuardError> {
        self.guard.lock().map_err(|_| GuardError::Panicked)
    }

    fn go(&mut self) -> Result<(), NotCarried> {
        if !self.introduced {
            let certificates = self.guard()?.certificates();
            let introduction = Introduction { certificates };
            let Welcome { life } =
                self.server.exchange("/v1/controllers", &introduction, Duration::ZERO)?;
            if self.life.replace(life).is_some_and(|before| before != life) {
                self.guard()?.notices().tell_all()?;
            }
            self.introduced = true;
            self.part.set(State::Ready);
        }
        self.tell()?;
        let busy = self.guard()?.draw_ahead(wall_clock());
        let going = self.guard()?.going();
        let wait = if going.said.is_empty() && !busy { WAIT } else { Duration::ZERO };
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(0);
        let mail = Mail { said: going.said.clone(), wait: milliseconds, heard: self.heard };
        let post = self.server.exchange_while("/v1/mail", &mail, wait, || going.stands());
        let post: Post = match post {
            // An owner has taken something back: what is left is said anew.
            Err(_) if !going.stands() => return Ok(()),
            Err(error) if !error.may_pass() && !going.said.is_empty() => {
                // The same again would be refused again.
                self.guard()?.not_heard();
                return Err(error.into());
            }
            answered => answered?,
        };
        let mut guard = self.guard()?;
        guard.arrived(&going);
        guard.answer(wall_clock(), post.messages)?;
        drop(guard);
        self.heard = post.heard;
        // Another life may know less than the one that we were introduced to.
        self.introduced &= self.life == Some(post.heard.life);
        Ok(())
    }

    /// Tells the service of streams and choices that it does not have yet.
    fn tell(&mut self) -> Result<(), NotCarried> {
        if self.told.elapsed() >= AGAIN {
            self.told = Instant::now();
            self.guard()?.notices().again();
        }
        loop {
            let untold = self.guard()?.notices().some(AT_ONCE)?;
            if untold.is_empty() {
                return Ok(());
            }
            let notices: Vec<_> = untold.iter().map(|(_, notice)| notice).collect();
            let noted: Vec<Noted> =
                self.server.exchange("/v1/streams", &notices, Duration::ZERO)?;
            if noted.len() != untold.len() {
                return Err(self.server.malformed().into());
            }
            for ((stream, notice), noted) in untold.iter().zip(noted) {
                if let Noted::Refused { why } = &noted {
                    tracing::warn!(%why, "the service does not take a stream yet");
                }
                self.guard()?.notices().told(stream, notice, noted == Noted::Yes)?;
            }
        }
    }
}
