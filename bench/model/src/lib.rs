//! Can a service open two sets of one window? Not if (1) any two sets that can open it share an honest
//! controller, and (2) an honest controller answers one set, ever. [`sets`] compares all pairs of sets of
//! small rosters, with the real quorum. This module explores a model of a controller to its end: every
//! request of a lying service in every order, with a crash at every moment, and older copies of its
//! ledger put back.
//!
//! Controllers do not speak to each other, and a lying service may send anything to any of them at any
//! time: so one controller is explored, not a roster of them. The real one is not driven here, since
//! its state holds keys and signatures and cannot be compared. [`controller`] names, for each
//! rule, the function that implements it.

pub mod controller;
pub mod sets;

use controller::{Bounds, Controller, Event, Rules};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The result of an exploration.
#[derive(Debug)]
pub struct Outcome {
    /// States.
    pub states: usize,
    /// Steps from them.
    pub steps: usize,
    /// How a controller comes to answer two opening sets, if it can. The exploration ends there.
    pub answered_twice: Option<Vec<Event>>,
}

/// Identifies a state. Two of 10^8 states are taken for one with a probability of 10^-22.
type Fingerprint = u128;

fn fingerprint(state: &Controller) -> Fingerprint {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

/// Explores everything within the bounds, breadth first.
#[must_use]
pub fn explore(rules: &Rules, bounds: &Bounds) -> Outcome {
    let first = Controller::new();
    let mut from = HashMap::from([(fingerprint(&first), None)]);
    let (mut states, mut steps, mut last) = (1, 0, vec![first]);
    while !last.is_empty() {
        let mut found = Vec::new();
        for state in last {
            let parent = fingerprint(&state);
            for (event, next) in state.next(rules, bounds) {
                steps += 1;
                let name = fingerprint(&next);
                let Entry::Vacant(free) = from.entry(name) else { continue };
                free.insert(Some((parent, event)));
                states += 1;
                if next.has_answered_twice() {
                    let answered_twice = Some(trace(&from, name));
                    return Outcome { states, steps, answered_twice };
                }
                found.push(next);
            }
        }
        last = found;
    }
    Outcome { states, steps, answered_twice: None }
}

fn trace(
    from: &HashMap<Fingerprint, Option<(Fingerprint, Event)>>,
    state: Fingerprint,
) -> Vec<Event> {
    let (mut events, mut at) = (Vec::new(), state);
    while let Some(Some((before, event))) = from.get(&at) {
        events.push(*event);
        at = *before;
    }
    events.reverse();
    events
}

#[cfg(test)]
mod tests;
