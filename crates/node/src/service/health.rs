//! Whether each part of the process can do its work; served at `/healthz`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of one part of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not yet ready: recovering, waiting for a peer.
    Starting,
    /// Does its work.
    Ready,
    /// Cannot do its work; see the logs.
    Failed,
    /// Finishes its work and takes nothing new.
    Stopping,
}

/// The parts of a process. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    parts: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

/// What `/healthz` answers.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Whether every part is ready.
    pub ready: bool,
    /// Each part.
    pub parts: BTreeMap<&'static str, State>,
}

impl Health {
    /// A process without parts: ready.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part that is starting.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        let part = Part { health: self.clone(), name };
        part.set(State::Starting);
        part
    }

    /// Marks every part as stopping from now on.
    pub fn stop(&self) {
        self.lock().values_mut().for_each(|state| *state = State::Stopping);
    }

    /// The state of all parts.
    #[must_use]
    pub fn report(&self) -> Report {
        let parts = self.lock().clone();
        Report { ready: parts.values().all(|state| *state == State::Ready), parts }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports the state of one part.
#[derive(Clone, Debug)]
pub struct Part {
    health: Health,
    name: &'static str,
}

impl Part {
    /// Sets the part's state.
    pub fn set(&self, state: State) {
        let mut parts = self.health.lock();
        let now = parts.entry(self.name).or_insert(state);
        if *now != State::Stopping {
            *now = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_when_every_part_is() {
        let health = Health::new();
        assert!(health.report().ready);
        let (store, peers) = (health.part("store"), health.part("peers"));
        store.set(State::Ready);
        assert!(!health.report().ready);
        peers.set(State::Ready);
        assert!(health.report().ready);
        peers.set(State::Failed);
        assert!(!health.report().ready);
        health.stop();
        store.set(State::Ready);
        assert_eq!(health.report().parts["store"], State::Stopping);
    }
}
