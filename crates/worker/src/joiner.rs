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
