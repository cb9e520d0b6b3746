//! Adds up a window's parts from all partitions, and its controllers' answers. Both sums go out together,
//! and only if they are over the opening set.

mod mark;

pub use mark::{KEY, Mark, Positions};

use crate::instruction::{Instruction, InstructionRecord};
use crate::lane::PATIENCE;
use crate::part::{Part, add, join};
use alpheus_encrypted_stream::job::{JobMessage, Opening, SetDigest, Tally, Token, WindowSum};
use alpheus_policy::ids::PlanId;
use alpheus_time::Timestamp;
use alpheus_transport::{Offset, partition_for_key};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A window, by its plan and start.
pub type WindowId = (PlanId, Timestamp);

/// The windows of one partition of the topic of parts.
pub struct Joiner {
    number: u32,
    of: u32,
    windows: BTreeMap<WindowId, Window>,
    /// By plan: windows whose sums are written, or that have none.
    given: HashMap<PlanId, FinishedWindows>,
    ended: HashSet<PlanId>,
    /// What was read of windows that are over, since the last marks.
    over: BTreeMap<WindowId, Inputs>,
    /// Windows that are not mentioned after this time are given up.
    old: Timestamp,
    /// What is before was of windows that are over.
    from: Positions,
}

/// The latest windows of a plan that are given, which are kept one by one. Of earlier ones that are not
/// over something is there: each partition's parts come in order.
const GIVEN: usize = 4096;
/// A mark names no more windows than these, which fit into a record.
const MAX_OVER: usize = 1 << 16;

/// Which windows of a plan are over.
struct FinishedWindows {
    /// All that start before.
    before: Timestamp,
    /// And these.
    starts: BTreeSet<Timestamp>,
}

/// The first and the last record of a window in a partition.
type Ends = (Offset, Offset);

/// Where the records of a window are.
#[derive(Default)]
struct Inputs {
    instructions: Option<Ends>,
    parts: Option<Ends>,
    /// By partition of answers.
    answers: BTreeMap<u32, Ends>,
}

/// What is there of a window.
#[derive(Default)]
struct Window {
    set: Option<Arc<Opening>>,
    /// By partition of events.
    parts: BTreeMap<u32, Part>,
    /// By controller and whether it is the opening.
    answers: BTreeMap<(u32, bool), Vec<u64>>,
    inputs: Inputs,
    /// The latest time that a record of it has, or its start.
    latest: u64,
}

impl Joiner {
    /// A partition, of so many, of which nothing was read yet.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Joiner {
        let (given, ended, old) = (HashMap::new(), HashSet::new(), Timestamp(0));
        let (windows, over) = (BTreeMap::new(), BTreeMap::new());
        Joiner { number, of, windows, given, ended, over, old, from: Positions::default() }
    }

    /// The same, of which everything before a mark was read.
    #[must_use]
    pub fn after(mark: &Mark, (number, of): (u32, u32)) -> Joiner {
        let mut joiner = Joiner { from: mark.positions(), ..Joiner::new(number, of) };
        mark.over().for_each(|place| joiner.give(place));
        joiner
    }

    fn is_own(&self, (plan, start): WindowId) -> bool {
        partition_for_key(&Part::key(&plan, start), self.of) == self.number
    }

    fn is_over(&self, (plan, start): WindowId) -> bool {
        let given = self.given.get(&plan).is_some_and(|given| given.contains(start));
        given || self.ended.contains(&plan)
    }

    /// The window that a record of this time is about, if it is this partition's and is not over.
    fn window(
        &mut self,
        place: WindowId,
        said: Timestamp,
        note: impl FnOnce(&mut Inputs),
    ) -> Option<&mut Window> {
        if !self.is_own(place) {
            return None;
        }
        let said = said.max(place.1);
        let is_new = !self.windows.contains_key(&place);
        if self.is_over(place) || (is_new && said < self.old) {
            note(self.over.entry(place).or_default());
            return None;
        }
        let window = self.windows.entry(place).or_default();
        window.latest = window.latest.max(said.0);
        note(&mut window.inputs);
        Some(window)
    }

    /// Takes an instruction.
    pub fn instruct(&mut self, received: &InstructionRecord) {
        if received.offset < self.from.instructions {
            return;
        }
        match &received.instruction {
            // It opens no more, whatever was said before.
            Instruction::Opening(set) if set.controllers.is_empty() => {
                self.end((set.plan, set.start));
            }
            Instruction::Opening(set) => {
                let note = |inputs: &mut Inputs| inputs.instructed(received.offset);
                if let Some(window) = self.window((set.plan, set.start), received.at, note) {
                    window.set.get_or_insert_with(|| Arc::clone(set));
                }
            }
            Instruction::End(plan) => {
                self.ended.insert(*plan);
                let gone: Vec<WindowId> = self.of_plan(*plan).map(|(place, _)| *place).collect();
                gone.into_iter().for_each(|place| self.give(place));
                self.given.remove(plan);
            }
            Instruction::Start(_) | Instruction::Join { .. } | Instruction::Device(_) => {}
        }
    }

    /// Takes a controller's answer, of this time, from a partition of answers. The first one counts.
    pub fn answer(&mut self, from: (u32, Offset), said: Timestamp, token: &Token) {
        let Token { plan, start, controller, opens, rows } = token;
        let (partition, at) = from;
        let tokens = usize::try_from(partition).ok().and_then(|it| self.from.tokens.get(it));
        if tokens.is_some_and(|tokens| at < *tokens) {
            return;
        }
        let note = |inputs: &mut Inputs| inputs.answered(from);
        if let Some(window) = self.window((*plan, *start), said, note) {
            window.answers.entry((*controller, *opens)).or_insert_with(|| rows.clone());
        }
    }

    /// Takes a part, of this time, from an offset. A partition's first one counts.
    pub fn take(&mut self, at: Offset, said: Timestamp, part: Part) {
        if at < self.from.parts {
            return;
        }
        let note = |inputs: &mut Inputs| inputs.taken(at);
        if let Some(window) = self.window((part.plan, part.start), said, note) {
            window.parts.entry(part.lane).or_insert(part);
        }
    }

    /// The sums of a window are written.
    pub fn written(&mut self, plan: PlanId, start: Timestamp) {
        self.end((plan, start));
    }

    fn end(&mut self, place: WindowId) {
        if self.is_own(place) && !self.is_over(place) {
            self.give(place);
        }
    }

    /// Nothing more of a window is needed.
    fn give(&mut self, place: WindowId) {
        if let Some(window) = self.windows.remove(&place) {
            self.over.insert(place, window.inputs);
        }
        self.given.entry(place.0).or_default().starts.insert(place.1);
    }

    /// Gives up windows of which nothing was said for a week. Returns the plans and starts of those that
    /// would have opened.
    pub fn give_up(&mut self, now: Timestamp) -> Vec<WindowId> {
        self.old = Timestamp(now.0.saturating_sub(PATIENCE.0));
        let old = self.windows.iter().filter(|(_, window)| window.latest < self.old.0);
        let old: Vec<(WindowId, bool)> =
            old.map(|(place, window)| (*place, window.set.is_some())).collect();
        old.iter().for_each(|(place, _)| self.give(*place));
        old.into_iter().filter(|(_, has_set)| *has_set).map(|(place, _)| place).collect()
    }

    /// What a successor needs, if everything was read up to these positions.
    pub fn mark(&mut self, read: &Positions) -> Mark {
        let mut from = read.clone();
        for window in self.windows.values() {
            let Inputs { instructions, parts, answers } = &window.inputs;
            bound(&mut from.instructions, instructions.as_ref());
            bound(&mut from.parts, parts.as_ref());
            for (at, first) in (0_u32..).zip(&mut from.tokens) {
                bound(first, answers.get(&at));
            }
        }
        self.over.retain(|_, inputs| inputs.is_after(&from));
        // The others would be given up again.
        while self.over.len() > MAX_OVER {
            self.over.pop_first();
        }
        Mark::new(&from, self.over.keys().copied())
    }

    fn of_plan(&self, plan: PlanId) -> impl Iterator<Item = (&WindowId, &Window)> {
        let all = self.windows.range((plan, Timestamp(0))..);
        all.take_while(move |((id, _), _)| *id == plan)
    }

    /// The first window of a plan of which something is there.
    fn first_waiting(&self, plan: PlanId) -> Option<Timestamp> {
        self.of_plan(plan).next().map(|((_, start), _)| *start)
    }

    /// Makes a mark of the older windows that are given.
    fn forget(&mut self) {
        let many = self.given.iter().filter(|(_, given)| given.starts.len() >= 2 * GIVEN);
        let many: Vec<PlanId> = many.map(|(plan, _)| *plan).collect();
        for plan in many {
            let waiting = self.first_waiting(plan);
            self.given.entry(plan).or_default().forget(waiting);
        }
    }

    /// Sums that are whole, with their keys. Each comes once.
    pub fn sums(&mut self) -> Vec<(String, Vec<u8>)> {
        let whole = self.windows.iter().filter_map(|(place, window)| Some((*place, window.sum()?)));
        let whole: Vec<_> = whole.collect();
        whole.iter().for_each(|(place, _)| self.give(*place));
        // Not while a restart reads again what is there: windows that wait may come last.
        self.forget();
        let record = |((plan, start), sum): (WindowId, WindowSum)| {
            (format!("{plan}/{}", start.0), sum.to_bytes())
        };
        whole.into_iter().map(record).collect()
    }
}

impl Default for FinishedWindows {
    fn default() -> Self {
        Self { before: Timestamp(0), starts: BTreeSet::new() }
    }
}

impl FinishedWindows {
    fn contains(&self, start: Timestamp) -> bool {
        start < self.before || self.starts.contains(&start)
    }

    /// All but the latest become a mark, which passes no window that waits.
    fn forget(&mut self, waiting: Option<Timestamp>) {
        let Some(first) = self.starts.iter().nth_back(GIVEN - 1).copied() else { return };
        self.before = self.before.max(waiting.map_or(first, |waiting| waiting.min(first)));
        self.starts = self.starts.split_off(&self.before);
    }
}

impl Inputs {
    fn instructed(&mut self, at: Offset) {
        widen(self.instructions.get_or_insert((at, at)), at);
    }

    fn taken(&mut self, at: Offset) {
        widen(self.parts.get_or_insert((at, at)), at);
    }

    fn answered(&mut self, (partition, at): (u32, Offset)) {
        widen(self.answers.entry(partition).or_insert((at, at)), at);
    }

    /// Whether something of it is read by a reader that begins there.
    fn is_after(&self, from: &Positions) -> bool {
        let is_after = |ends: Option<&Ends>, from: &Offset| ends.is_some_and(|(_, it)| it >= from);
        let mut answers = (0_u32..).zip(&from.tokens);
        is_after(self.instructions.as_ref(), &from.instructions)
            || is_after(self.parts.as_ref(), &from.parts)
            || answers.any(|(at, from)| is_after(self.answers.get(&at), from))
    }
}

/// A successor reads from the first record of a window on.
fn bound(from: &mut Offset, window: Option<&Ends>) {
    *from = window.map_or(*from, |(first, _)| (*from).min(*first));
}

fn widen((first, last): &mut Ends, at: Offset) {
    (*first, *last) = ((*first).min(at), (*last).max(at));
}

impl Window {
    /// Both sums, once all of the opening set is there.
    fn sum(&self) -> Option<WindowSum> {
        let set = self.set.as_deref()?;
        let rows = usize::try_from(set.rows).ok()?;
        let nothing = Tally { count: 0, digest: SetDigest::default() };
        let streams = self.parts.values().fold(nothing, |sum, part| join(sum, part.streams));
        let wanted = Tally { count: set.streams.len() as u64, digest: set.stream_digest };
        let are_whole = self.parts.values().all(|part| part.rows.len() == rows);
        if streams != wanted || !are_whole {
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

    const PLAN: PlanId = PlanId([1; 32]);

    fn at(number: u64) -> Timestamp {
        Timestamp(number * 1_000_000)
    }

    /// The set of a window is known: no stream, and one controller.
    fn open(joiner: &mut Joiner, number: u64) {
        let (start, controllers) = (at(number), vec![0]);
        let set = Opening {
            plan: PLAN,
            start,
            streams: Vec::new(),
            stream_digest: SetDigest::default(),
            token_digest: SetDigest::of_controllers(&PLAN, start, &controllers),
            controllers,
            masked: false,
            rows: 1,
        };
        let instruction = Instruction::Opening(Arc::new(set));
        joiner.instruct(&InstructionRecord { offset: Offset(number), at: start, instruction });
    }

    /// That controller answers. Returns the number of sums that are whole.
    fn answer(joiner: &mut Joiner, number: u64) -> usize {
        let (plan, start, controller, opens, rows) = (PLAN, at(number), 0, false, vec![number]);
        let token = Token { plan, start, controller, opens, rows };
        joiner.answer((0, Offset(number)), start, &token);
        joiner.sums().len()
    }

    #[test]
    fn windows_that_are_over_stay_over_and_take_bounded_memory() {
        let (mut joiner, many) = (Joiner::new(0, 1), 3 * GIVEN as u64);
        // It waits for as long as the others come.
        open(&mut joiner, 7);
        for number in 8..many {
            open(&mut joiner, number);
            assert_eq!(answer(&mut joiner, number), 1, "window {number}");
        }
        assert_eq!(answer(&mut joiner, 7), 1, "one that waited is not taken for over");
        let kept = |joiner: &Joiner| joiner.given[&PLAN].starts.len();
        assert!(kept(&joiner) < 2 * GIVEN, "{}", kept(&joiner));
        for number in 7..many {
            open(&mut joiner, number);
            assert_eq!(answer(&mut joiner, number), 0, "window {number} comes once");
        }
        assert!(joiner.windows.is_empty());
    }
}
