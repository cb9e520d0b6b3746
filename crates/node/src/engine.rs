//! A role on its own thread, the only writer of its state: how it is started and ended, and
//! how requests call it and get answers.

use crate::failure::{Blame, Category, Failure};
use crate::service::ServiceError;
use crate::service::shutdown::{Shutdown, Trigger};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of waiting calls; further callers are asked to retry.
const WAITING: usize = 4096;
/// As many calls are worked on together.
pub const BATCH: usize = 256;

/// Where an answer goes. It is dropped if the caller is gone.
pub type Reply<T> = oneshot::Sender<T>;

/// Makes calls to a role.
pub struct Handle<J>(mpsc::Sender<J>);

impl<J> Clone for Handle<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Too many calls are waiting.
    #[error("the server is busy; try again")]
    Busy,
    /// The role has stopped: its ledger could not be written, or it was asked to stop.
    #[error("the server is stopping; try again")]
    Stopped,
}

/// The handle, and the channel that the role reads.
#[must_use]
pub fn channel<J>() -> (Handle<J>, mpsc::Receiver<J>) {
    channel_for(WAITING)
}

/// As [`channel`], for at most so many waiting calls.
#[must_use]
pub fn channel_for<J>(waiting: usize) -> (Handle<J>, mpsc::Receiver<J>) {
    let (sender, receiver) = mpsc::channel(waiting);
    (Handle(sender), receiver)
}

impl<J> Handle<J> {
    /// Makes a call and waits for its answer.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn ask<T>(&self, call: impl FnOnce(Reply<T>) -> J) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(call(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => EngineError::Busy,
            mpsc::error::TrySendError::Closed(_) => EngineError::Stopped,
        })?;
        answer.await.map_err(|_| EngineError::Stopped)
    }

    /// Makes a call once there is room, and waits for its answer.
    ///
    /// # Errors
    /// [`EngineError::Stopped`].
    pub async fn ask_patiently<T>(
        &self,
        call: impl FnOnce(Reply<T>) -> J,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(call(reply)).await.map_err(|_| EngineError::Stopped)?;
        answer.await.map_err(|_| EngineError::Stopped)
    }

    /// Makes a call without an answer, once there is room.
    pub async fn tell(&self, call: J) {
        // If the role has stopped, the call no longer matters.
        let _ = self.0.send(call).await;
    }

    /// As [`Handle::tell`], outside of any runtime.
    pub fn tell_blocking(&self, call: J) {
        let _ = self.0.blocking_send(call);
    }
}

/// A role that answers calls, the only writer of its state.
pub trait Engine {
    /// What it is asked to do.
    type Call;
    /// Why it must start again from what is durable.
    type Error: Error + Send + Sync + 'static;

    /// Maximum time between two turns. A turn without calls is given none. Without a maximum,
    /// every turn waits for a call.
    const MAX_REST: Option<Duration> = None;

    /// Prepares for the first call.
    ///
    /// # Errors
    /// It cannot work.
    fn begin(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Works on calls that have waited together, and answers once what the answers rest on
    /// is durable. It breaks when it is asked to stop.
    ///
    /// # Errors
    /// Nothing was answered that is not durable.
    fn work(&mut self, calls: Vec<Self::Call>) -> Result<ControlFlow<()>, Self::Error>;

    /// Ends, after all handles are gone.
    ///
    /// # Errors
    /// Nothing was answered that is not durable.
    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// How long to wait for more calls when so many wait, so long after the last turn.
    fn linger(_waiting: usize, _rested: Option<Duration>) -> Option<Duration> {
        None
    }
}

/// Gives an engine whatever waits, until it breaks or all handles are gone.
///
/// # Errors
/// [`Engine::Error`]: the engine must start again from what is durable.
pub fn run<E: Engine>(engine: &mut E, calls: &mut mpsc::Receiver<E::Call>) -> Result<(), E::Error> {
    engine.begin()?;
    let mut ended = None::<Instant>;
    loop {
        let Some(mut waiting) = receive(calls, E::MAX_REST) else {
            return engine.finish();
        };
        if let Some(linger) = E::linger(waiting.len(), ended.map(|ended| ended.elapsed())) {
            thread::sleep(linger);
            let left = BATCH - waiting.len();
            waiting.extend(std::iter::from_fn(|| calls.try_recv().ok()).take(left));
        }
        if engine.work(waiting)?.is_break() {
            return Ok(());
        }
        ended = Some(Instant::now());
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Whatever waits, after a call has arrived or the time is over; nothing if all handles are gone.
fn receive<J>(calls: &mut mpsc::Receiver<J>, rest: Option<Duration>) -> Option<Vec<J>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut waiting, begun) = (Vec::with_capacity(BATCH), Instant::now());
    loop {
        let polled = calls.poll_recv_many(&mut Context::from_waker(&waker), &mut waiting, BATCH);
        match (polled, rest.map(|rest| rest.saturating_sub(begun.elapsed()))) {
            (Poll::Ready(0), _) => return None,
            (Poll::Ready(_), _) | (Poll::Pending, Some(Duration::ZERO)) => return Some(waiting),
            (Poll::Pending, Some(left)) => thread::park_timeout(left),
            (Poll::Pending, None) => thread::park(),
        }
    }
}

/// A role's thread.
pub struct Worker {
    name: &'static str,
    thread: JoinHandle<Result<(), Failure>>,
}

/// A role's thread panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} panicked; this is a bug in Alpheus")]
struct PanicError(&'static str);

impl Worker {
    /// Starts the thread. When it ends, the process stops.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start<E: Engine<Call: Send> + Send + 'static>(
        name: &'static str,
        mut engine: E,
        mut calls: mpsc::Receiver<E::Call>,
    ) -> Result<(Self, Shutdown), Failure> {
        let trigger = Trigger::new();
        let broken = trigger.shutdown();
        let work = move || {
            let _trigger = trigger;
            let worked = run(&mut engine, &mut calls);
            let worked = worked.inspect_err(|error| tracing::error!(%error, "the {name} stops"));
            worked.blame(Category::Io)
        };
        let thread = thread::Builder::new().name(name.into());
        let thread = thread.spawn(work).map_err(ServiceError::from)?;
        Ok((Self { name, thread }, broken))
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// It could not work, as when its ledger could not be written, or it panicked.
    pub fn end(self) -> Result<(), Failure> {
        match self.thread.join() {
            Ok(worked) => worked,
            Err(_) => Err(PanicError(self.name)).blame(Category::Io),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Remembers the numbers that it was called with, and how often it was given nothing.
    #[derive(Default)]
    struct Listener<const RESTS: bool> {
        numbers: Vec<u8>,
        rests: usize,
        finished: bool,
    }

    enum Call {
        Number(u8),
        /// Answered in the first turn that has no calls.
        Rest(Reply<()>),
        Stop,
    }

    impl<const RESTS: bool> Engine for (Listener<RESTS>, Vec<Reply<()>>) {
        type Call = Call;
        type Error = Infallible;

        const MAX_REST: Option<Duration> =
            if RESTS { Some(Duration::from_millis(1)) } else { None };

        fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, Infallible> {
            if calls.is_empty() {
                self.0.rests += 1;
                for reply in self.1.drain(..) {
                    let _ = reply.send(());
                }
            }
            for call in calls {
                match call {
                    Call::Number(number) => self.0.numbers.push(number),
                    Call::Rest(reply) => self.1.push(reply),
                    Call::Stop => return Ok(ControlFlow::Break(())),
                }
            }
            Ok(ControlFlow::Continue(()))
        }

        fn finish(&mut self) -> Result<(), Infallible> {
            self.0.finished = true;
            Ok(())
        }
    }

    /// What an engine has seen after these calls from another thread.
    fn ran<const RESTS: bool>(calls: impl FnOnce(Handle<Call>) + Send) -> Listener<RESTS> {
        let (handle, mut waiting) = channel_for(1);
        let mut engine = (Listener::default(), Vec::new());
        thread::scope(|scope| {
            scope.spawn(move || calls(handle));
            let Ok(()) = run(&mut engine, &mut waiting);
        });
        engine.0
    }

    #[test]
    fn an_engine_has_every_call_in_order_and_ends_with_the_last_handle() {
        let listener = ran::<false>(|handle| {
            (0..100).for_each(|number| handle.tell_blocking(Call::Number(number)));
        });
        assert_eq!(listener.numbers, (0..100).collect::<Vec<u8>>());
        assert!(listener.finished && listener.rests == 0, "without a rest it only waits");
    }

    #[test]
    fn an_engine_with_a_rest_has_turns_without_calls() {
        let listener = ran::<true>(|handle| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(handle.ask_patiently(Call::Rest)).unwrap();
            handle.tell_blocking(Call::Number(1));
        });
        assert!(listener.rests > 0 && listener.finished);
        assert_eq!(listener.numbers, [1]);
    }

    #[test]
    fn an_engine_that_is_asked_to_stop_does_not_wait_for_handles() {
        let (handle, mut waiting) = channel();
        handle.tell_blocking(Call::Stop);
        let mut engine = (Listener::<false>::default(), Vec::new());
        let Ok(()) = run(&mut engine, &mut waiting);
        assert!(!engine.0.finished);
        drop(waiting);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers = runtime.block_on(async {
            (handle.ask(Call::Rest).await, handle.ask_patiently(Call::Rest).await)
        });
        assert_eq!(answers, (Err(EngineError::Stopped), Err(EngineError::Stopped)));
    }

    #[test]
    fn a_call_waits_for_room_only_if_it_is_patient() {
        let (handle, mut waiting) = channel_for(1);
        handle.tell_blocking(Call::Number(1));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(handle.ask(Call::Rest)), Err(EngineError::Busy));
        let answered = thread::scope(|scope| {
            let patient = scope.spawn(|| {
                let answer = runtime.block_on(handle.ask_patiently(Call::Rest));
                handle.tell_blocking(Call::Stop);
                answer
            });
            let Ok(()) = run(&mut (Listener::<true>::default(), Vec::new()), &mut waiting);
            patient.join().unwrap()
        });
        assert_eq!(answered, Ok(()));
    }
}
