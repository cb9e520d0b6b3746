//! Whether each part of the process can do its work; served at `/healthz`.

use std::collections::BTreeMap;
use std::fmt;
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
    notes: Arc<Mutex<BTreeMap<&'static str, String>>>,
    looks: Arc<Mutex<BTreeMap<&'static str, Look>>>,
}

/// Finds what is wrong with a part whenever somebody asks for the report.
struct Look(Box<dyn Fn() -> Finding + Send>);

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look")
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing to say.
    Fine,
    /// Something that an operator should know, although the process works.
    Noteworthy(String),
    /// The process cannot do its work.
    Broken(String),
}

/// What `/healthz` answers.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Whether every part is ready.
    pub ready: bool,
    /// Each part.
    pub parts: BTreeMap<&'static str, State>,
    /// What an operator should know although the process works.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<&'static str, String>,
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

    /// A note about this, which is empty for now.
    #[must_use]
    pub fn note(&self, about: &'static str) -> Note {
        Note { health: self.clone(), about }
    }

    /// Looks at this whenever somebody asks for the report. It is a part only while it is broken.
    pub fn watch(&self, about: &'static str, look: impl Fn() -> Finding + Send + 'static) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.insert(about, Look(Box::new(look)));
    }

    /// Marks every part as stopping from now on.
    pub fn stop(&self) {
        self.lock().values_mut().for_each(|state| *state = State::Stopping);
    }

    /// The state of all parts.
    #[must_use]
    pub fn report(&self) -> Report {
        let (mut parts, mut notes) = (self.lock().clone(), self.notes().clone());
        for (about, look) in self.looks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match (look.0)() {
                Finding::Fine => {}
                Finding::Noteworthy(text) => drop(notes.insert(*about, text)),
                Finding::Broken(text) => {
                    notes.insert(*about, text);
                    parts.insert(*about, State::Failed);
                }
            }
        }
        let ready = parts.values().all(|state| *state == State::Ready);
        Report { ready, parts, notes }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells an operator something that does not keep the process from its work.
#[derive(Clone, Debug)]
pub struct Note {
    health: Health,
    about: &'static str,
}

impl Note {
    /// Says this from now on. It holds no secret and nobody's value.
    pub fn set(&self, text: impl Into<String>) {
        self.health.notes().insert(self.about, text.into());
    }

    /// There is nothing more to say.
    pub fn clear(&self) {
        self.health.notes().remove(self.about);
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

    #[test]
    fn a_note_is_shown_until_it_is_cleared_and_changes_nothing_else() {
        let health = Health::new();
        let note = health.note("clock");
        let json = |health: &Health| serde_json::to_string(&health.report()).unwrap();
        assert_eq!(json(&health), r#"{"ready":true,"parts":{}}"#);
        note.set("it jumped");
        assert_eq!(json(&health), r#"{"ready":true,"parts":{},"notes":{"clock":"it jumped"}}"#);
        note.clear();
        assert!(health.report().notes.is_empty());
    }

    #[test]
    fn what_is_watched_is_looked_at_with_each_report() {
        let (health, found) = (Health::new(), Arc::new(Mutex::new(Finding::Fine)));
        let own = Arc::clone(&found);
        health.watch("certificate", move || own.lock().unwrap().clone());
        assert!(health.report() == Health::new().report());
        *found.lock().unwrap() = Finding::Noteworthy("it ends soon".into());
        let report = health.report();
        assert!(report.ready && report.notes["certificate"] == "it ends soon");
        *found.lock().unwrap() = Finding::Broken("it has ended".into());
        let report = health.report();
        assert!(!report.ready && report.parts["certificate"] == State::Failed);
        *found.lock().unwrap() = Finding::Fine;
        assert!(health.report().ready);
    }
}
