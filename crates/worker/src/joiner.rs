//! Adds up a window's parts from all partitions, and its controllers' answers. Both sums go out together,
//! and only if they are over the opening set.

use crate::instruction::Instruction;
use crate::part::{Part, add, join};
use alpheus_encrypted_stream::job::{JobMessage, Opening, SetDigest, Tally, Token, WindowSum};
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use alpheus_transport::{Offset, partition_for_key};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

type Place = (PlanId, Timestamp);

/// The windows of one partition of the topic of parts.
pub struct Joiner {
    number: u32,
    of: u32,
    windows: BTreeMap<Place, Window>,
    /// Windows whose sums are written.
    given: HashSet<Place>,
    ended: HashSet<PlanId>,
}

/// What is there of a window.
#[derive(Default)]
struct Window {
    set: Option<Arc<Opening>>,
    /// By partition of events; with the offset of the first.
    parts: BTreeMap<u32, Part>,
    first: Option<Offset>,
    /// By controller and whether it is the opening.
    answers: BTreeMap<(u32, bool), Vec<u64>>,
}

impl Joiner {
    /// A partition, of so many, of which nothing was read yet.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Joiner {
        let (given, ended) = (HashSet::new(), HashSet::new());
        Joiner { number, of, windows: BTreeMap::new(), given, ended }
    }

    /// A window that is this partition's and is not over.
    fn window(&mut self, place: Place) -> Option<&mut Window> {
        let own = partition_for_key(&Part::key(&place.0, place.1), self.of) == self.number;
        let over = self.given.contains(&place) || self.ended.contains(&place.0);
        (own && !over).then(|| self.windows.entry(place).or_default())
    }

    /// Takes an instruction.
    pub fn instruct(&mut self, instruction: &Instruction) {
        match instruction {
            Instruction::Opening(set) if set.controllers.is_empty() => {
                let place = (set.plan, set.start);
                if self.window(place).is_some() {
                    self.windows.remove(&place);
                    self.given.insert(place);
                }
            }
            Instruction::Opening(set) => {
                if let Some(window) = self.window((set.plan, set.start)) {
                    window.set.get_or_insert_with(|| Arc::clone(set));
                }
            }
            Instruction::End(plan) => {
                self.ended.insert(*plan);
                self.windows.retain(|(id, _), _| id != plan);
                self.given.retain(|(id, _)| id != plan);
            }
            Instruction::Start(_) | Instruction::Join { .. } | Instruction::Device(_) => {}
        }
    }

    /// Takes a controller's answer. The first one counts.
    pub fn answer(&mut self, token: Token) {
        let Token { plan, start, controller, opens, rows } = token;
        if let Some(window) = self.window((plan, start)) {
            window.answers.entry((controller, opens)).or_insert(rows);
        }
    }

    /// Takes a part, from an offset. A partition's first one counts.
    pub fn take(&mut self, at: Offset, part: Part) {
        if let Some(window) = self.window((part.plan, part.start)) {
            window.first.get_or_insert(at);
            window.parts.entry(part.lane).or_insert(part);
        }
    }

    /// The sums of a window are written.
    pub fn written(&mut self, plan: PlanId, start: Timestamp) {
        let place = (plan, start);
        if self.window(place).is_some() {
            self.windows.remove(&place);
            self.given.insert(place);
        }
    }

    /// The first part that a restart must read again, if any.
    #[must_use]
    pub fn needed(&self) -> Option<Offset> {
        self.windows.values().filter_map(|window| window.first).min()
    }

    /// Sums that are whole, with their keys. Each comes once.
    pub fn sums(&mut self) -> Vec<(String, Vec<u8>)> {
        let whole = self.windows.iter().filter_map(|(place, window)| Some((*place, window.sum()?)));
        let whole: Vec<_> = whole.collect();
        for (place, _) in &whole {
            self.windows.remove(place);
            self.given.insert(*place);
        }
        let record = |((plan, start), sum): (Place, WindowSum)| {
            (format!("{plan}/{}", start.0), sum.to_bytes())
        };
        whole.into_iter().map(record).collect()
    }
}

impl Window {
    /// Both sums, once all of the opening set is there.
    fn sum(&self) -> Option<WindowSum> {
        let set = self.set.as_deref()?;
        let rows = usize::try_from(set.rows).ok()?;
        let nothing = Tally { count: 0, digest: SetDigest::default() };
        let streams = self.parts.values().fold(nothing, |sum, part| join(sum, part.streams));
        let wanted = Tally { count: set.streams.len() as u64, digest: set.stream_digest };
        if streams != wanted {
            return None;
        }
        let mut ciphertexts = vec![0; rows];
        self.parts.values().for_each(|part| add(&mut ciphertexts, &part.rows));
        let mut tokens = vec![0_u64; rows];
        for controller in &set.controllers {
            let answer =
                |opens| self.answers.get(&(*controller, opens)).filter(|words| words.len() == rows);
            add(&mut tokens, answer(false)?);
            if set.masked {
                let opening = answer(true)?;
                tokens
                    .iter_mut()
                    .zip(opening)
                    .for_each(|(sum, word)| *sum = sum.wrapping_sub(*word));
            }
        }
        let controllers = Tally { count: set.controllers.len() as u64, digest: set.token_digest };
        let (plan, start) = (set.plan, set.start);
        Some(WindowSum { plan, start, streams, controllers, ciphertexts, tokens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_policy::ids::StreamId;

    const PLAN: PlanId = PlanId([3; 32]);
    const START: Timestamp = Timestamp(20);

    fn set(streams: &[u8]) -> Instruction {
        let ids = streams.iter().map(|at| StreamId([*at; 16]));
        Instruction::Opening(Arc::new(Opening {
            plan: PLAN,
            start: START,
            streams: streams.iter().map(|at| (*at).into()).collect(),
            stream_digest: SetDigest::of_streams(&PLAN, START, ids),
            controllers: vec![0, 1],
            token_digest: SetDigest::of_controllers(&PLAN, START, &[0, 1]),
            masked: true,
            rows: 2,
        }))
    }

    fn part(lane: u32, streams: &[u8], rows: [u64; 2]) -> Part {
        let ids = streams.iter().map(|at| StreamId([*at; 16]));
        let digest = SetDigest::of_streams(&PLAN, START, ids);
        let streams = Tally { count: streams.len() as u64, digest };
        Part { plan: PLAN, start: START, lane, streams, rows: rows.to_vec() }
    }

    fn token(controller: u32, opens: bool, rows: Vec<u64>) -> Token {
        Token { plan: PLAN, start: START, controller, opens, rows }
    }

    #[test]
    fn a_window_is_whole_once_with_exactly_its_set() {
        let mut joiner = Joiner::new(0, 1);
        joiner.take(Offset(4), part(0, &[1, 2], [10, 20]));
        joiner.instruct(&set(&[1, 2, 5]));
        joiner.answer(token(0, false, vec![1, 1]));
        joiner.answer(token(0, true, vec![0, u64::MAX]));
        joiner.answer(token(1, false, vec![5]));
        joiner.answer(token(1, true, vec![1, 1]));
        // The same again, and another partition's that is not all of it.
        joiner.take(Offset(5), part(0, &[1, 2], [10, 20]));
        joiner.take(Offset(6), part(1, &[5], [1, 2]));
        assert_eq!(joiner.sums(), [], "an answer has the wrong length, and the first one counts");
        let mut joiner = Joiner::new(0, 1);
        for (controller, rows) in [(0, vec![1, 1]), (1, vec![5, 5])] {
            joiner.answer(token(controller, false, rows.clone()));
            joiner.answer(token(controller, true, vec![1, 1]));
        }
        joiner.instruct(&set(&[1, 2, 5]));
        joiner.take(Offset(4), part(0, &[1, 2], [10, 20]));
        assert_eq!((joiner.sums(), joiner.needed()), (vec![], Some(Offset(4))));
        joiner.take(Offset(6), part(1, &[5], [1, 2]));
        let sums = joiner.sums();
        let sum = WindowSum::from_bytes(&sums[0].1).unwrap();
        assert_eq!((sum.ciphertexts, sum.tokens), (vec![11, 22], vec![4, 4]));
        assert_eq!((sum.streams.count, sum.controllers.count), (3, 2));
        joiner.take(Offset(7), part(1, &[5], [1, 2]));
        assert_eq!((joiner.sums(), joiner.needed()), (vec![], None));
    }

    #[test]
    fn another_stream_in_a_part_keeps_the_window_shut() {
        let mut joiner = Joiner::new(0, 1);
        joiner.instruct(&set(&[1, 2]));
        for controller in [0, 1] {
            joiner.answer(token(controller, false, vec![1, 1]));
            joiner.answer(token(controller, true, vec![1, 1]));
        }
        joiner.take(Offset(0), part(0, &[1, 3], [10, 20]));
        assert_eq!(joiner.sums(), []);
    }
}
