//! One signal that everything in a process stops for.

use crate::failure::Category;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Hands out [`Shutdown`]s and triggers them. When it is dropped they are
/// triggered too.
#[derive(Debug)]
pub struct Trigger {
    sender: watch::Sender<bool>,
}

impl Default for Trigger {
    fn default() -> Self {
        Self::new()
    }
}

impl Trigger {
    /// Not triggered.
    #[must_use]
    pub fn new() -> Self {
        Self { sender: watch::Sender::new(false) }
    }

    /// Tells everyone to stop.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Something to wait on.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        Shutdown { receiver: self.sender.subscribe() }
    }
}

/// Knows whether to stop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown {
    receiver: watch::Receiver<bool>,
}

impl Shutdown {
    /// Whether to stop; for loops that do not wait.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.receiver.borrow() || self.receiver.has_changed().is_err()
    }

    /// Waits until it is time to stop.
    pub async fn stopping(&mut self) {
        // An error means that the trigger is gone, so that nobody could tell us later.
        let _ = self.receiver.wait_for(|stop| *stop).await;
    }
}

/// The two ways to ask a process to stop: SIGTERM and SIGINT (Ctrl-C).
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they no longer end the process by themselves.
    ///
    /// # Errors
    /// The operating system does not let us listen to signals.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for either.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// For a command that works for a while: the first signal asks it to stop in
/// order, a second ends the process at once, which is as safe as a crash.
///
/// # Errors
/// The operating system gives no thread, or does not let us listen to signals.
pub fn on_signal() -> io::Result<Shutdown> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    let trigger = Trigger::new();
    let shutdown = trigger.shutdown();
    let wait = async move {
        signals.next().await;
        trigger.stop();
        signals.next().await;
        std::process::exit(Category::Interrupted.exit_code().into());
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(wait))?;
    Ok(shutdown)
}

/// How long a process that was told to stop may finish what it has begun.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everyone_stops_when_told_or_when_nobody_is_left_to_tell() {
        let trigger = Trigger::new();
        let (mut first, mut second) = (trigger.shutdown(), trigger.shutdown().clone());
        assert!(!first.is_stopping());
        trigger.stop();
        first.stopping().await;
        second.stopping().await;
        assert!(trigger.shutdown().is_stopping());

        let trigger = Trigger::new();
        let mut orphan = trigger.shutdown();
        drop(trigger);
        orphan.stopping().await;
        assert!(orphan.is_stopping());
    }
}
