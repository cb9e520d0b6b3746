//! One signal that stops everything in a process.

use super::reload;
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

/// The ways to ask a process to stop: SIGTERM, SIGINT (Ctrl-C), and closing its terminal. Without a
/// terminal, SIGHUP asks it to read its [TLS files](super::reload) again.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    in_terminal: bool,
}

impl Signals {
    /// Registers the handlers: from now on the signals do not end the process by themselves.
    ///
    /// # Errors
    /// The operating system refuses signal handlers.
    pub fn listen() -> io::Result<Self> {
        // `nohup` makes a process outlive its terminal.
        let in_terminal = !ignores_hang_up() && has_terminal();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            in_terminal,
        })
    }

    /// Waits until the process is asked to stop.
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {}
            }
            if self.in_terminal && !has_terminal() {
                return;
            }
            reload::ask();
        }
    }
}

/// From now on SIGHUP does not end a process without a terminal, also before it [listens](Signals::listen):
/// who has it read its files again may do so while it still starts, when it reads them anyway.
pub fn outlive_hang_up() {
    if has_terminal() || ignores_hang_up() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // The handler stays for as long as the process does. Without it SIGHUP does what it always did.
    let kept = runtime.and_then(|runtime| {
        let _in_runtime = runtime.enter();
        signal(SignalKind::hangup()).map(drop)
    });
    if let Err(error) = kept {
        tracing::debug!(%error, "SIGHUP ends the process while it starts");
    }
}

/// Whether there is a terminal that controls this process. One that was closed is none.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether the process was started so that SIGHUP means nothing to it.
fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status))
}

/// The lowest bit of the mask of ignored signals is SIGHUP's.
fn ignores(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let last = mask.and_then(|mask| mask.trim().chars().next_back()?.to_digit(16));
    last.is_some_and(|digit| digit & 1 == 1)
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

    #[test]
    fn a_process_under_nohup_is_known() {
        assert!(ignores("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores(""));
    }

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
