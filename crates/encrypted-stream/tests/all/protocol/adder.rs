//! An adder in the coordinator's place: keeps the first set and the first answers of a
//! window, and computes its sums once all are here.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_encrypted_stream::coordinator::{AdderMessage, Coordinator, SumSet, Sums};
use alpheus_time::Timestamp;

use crate::protocol::world::World;

/// Messages to the adder, durably kept.
#[derive(Clone, Debug, Default)]
pub struct Adder {
    pub sets: BTreeMap<Timestamp, SumSet>,
    answers: BTreeMap<(Timestamp, u32, bool), Vec<u64>>,
}

/// The coordinator, which delegates sums if there is an adder.
pub fn with_adder(coordinator: Coordinator, adder: Option<&Adder>) -> Coordinator {
    if adder.is_some() { coordinator.with_delegated_sums() } else { coordinator }
}

impl Adder {
    pub fn take(&mut self, given: &[AdderMessage]) {
        for given in given {
            match given {
                AdderMessage::Set(set) => {
                    let known = self.sets.insert(set.window.start, set.clone());
                    let opens = |set: &SumSet| !set.controllers.is_empty();
                    let once = known.is_none_or(|known| opens(&known) && !opens(set));
                    assert!(
                        once,
                        "one set for each window, ever, and one without members if it fails"
                    );
                }
                AdderMessage::Answer(answer) => {
                    let key = (answer.window.start, answer.controller, answer.opens);
                    let first = self.answers.entry(key).or_insert_with(|| answer.words.clone());
                    assert_eq!(*first, answer.words, "the same answer again");
                }
            }
        }
    }

    /// For each complete window: its start, Σ R·c and Σ (T − o) over its set.
    pub fn sums(&self, world: &World) -> Vec<(Timestamp, Vec<u64>, Vec<u64>)> {
        let sum = |set: &SumSet| {
            let tokens = self.tokens(set, world.plan.release.outputs())?;
            let ciphertexts = world.sum(&world.id(), set.window, &set.streams)?;
            Some((set.window.start, ciphertexts, tokens))
        };
        self.sets.values().filter(|set| !set.controllers.is_empty()).filter_map(sum).collect()
    }

    fn tokens(&self, set: &SumSet, outputs: usize) -> Option<Vec<u64>> {
        let mut sum = vec![0_u64; outputs];
        for controller in &set.controllers {
            let token = self.answers.get(&(set.window.start, *controller, false))?;
            sum.iter_mut().zip(token).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
            if set.masked {
                let opening = self.answers.get(&(set.window.start, *controller, true))?;
                sum.iter_mut().zip(opening).for_each(|(sum, word)| *sum = sum.wrapping_sub(*word));
            }
        }
        Some(sum)
    }

    /// Windows that have a set.
    pub fn windows(&self) -> BTreeSet<Timestamp> {
        self.sets.keys().copied().collect()
    }
}
