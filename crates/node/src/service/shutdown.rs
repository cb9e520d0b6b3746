//! One signal that stops everything in a process.

use crate::failure::Category;
use std::io;
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

    /// Makes everything stop.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// A receiver to wait on.
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
        // An error means that the trigger is gone, so no later signal is possible.
        let _ = self.receiver.wait_for(|stop| *stop).await;
    }
}

/// The two ways to ask a process to stop: SIGTERM and SIGINT (Ctrl-C).
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Registers the handlers: from now on the signals do not end the process by themselves.
    ///
    /// # Errors
    /// The operating system refuses signal handlers.
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

/// For a command that runs for a while: the first signal asks it to stop cleanly, a second
/// ends the process at once, which is as safe as a crash.
///
/// # Errors
/// The operating system refuses a thread or signal handlers.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn receivers_stop_when_triggered_or_when_the_trigger_is_gone() {
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
