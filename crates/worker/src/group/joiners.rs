//! Joiners of a process: how they are taken over, and the marks from which others continue.

use super::step_messages::append;
use super::{Group, WorkerError};
use crate::instruction::{InstructionRecord, Instructions};
use crate::joiner::{self, Joiner, Mark, Positions};
use crate::part::Part;
use alpheus_encrypted_stream::job::{JobMessage, Token, WindowSum};
use alpheus_stream_runtime::storage::read_on;
use alpheus_time::Timestamp;
use alpheus_transport::{
    Batch, Error, Limits, Offset, Partition, Record, Store, Topic, partition_for_key,
};
use std::time::{Duration, Instant};

/// A joiner that has read anything leaves a mark at least this often.
const MARKS: Duration = Duration::from_secs(60);

/// A partition of parts that is this process's own.
pub(super) struct OwnJoiner {
    joiner: Joiner,
    pub(super) parts: Offset,
    pub(super) instructions: Offset,
    marked: Instant,
    /// Where the last mark says that a successor begins.
    mark: Mark,
    /// Whether something was read since, besides the mark itself.
    dirty: bool,
}

/// How far a joiner was taken over. It proceeds in slices: the process must ask for changes of its group
/// meanwhile.
pub(super) struct JoinerRecovery {
    pub(super) number: u32,
    stage: Stage,
    read: Positions,
    mark: Mark,
    parts: Vec<(Offset, Timestamp, Part)>,
    joiner: Joiner,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// Parts, and the last mark.
    Parts,
    Sums,
    /// Instructions up to here.
    Instructions(Offset),
    Tokens,
    Done,
}

impl JoinerRecovery {
    pub(super) fn new(number: u32, of: u32) -> JoinerRecovery {
        let (read, mark, joiner) = (Positions::default(), Mark::default(), Joiner::new(number, of));
        JoinerRecovery { number, stage: Stage::Begin, read, mark, parts: Vec::new(), joiner }
    }
}

impl Group {
    /// Goes on with the joiner of a partition of parts, for so long. None if there is more to do.
    pub(super) fn recover_joiner(
        &mut self,
        recovery: &mut JoinerRecovery,
        now: Timestamp,
        until: Instant,
    ) -> Result<Option<OwnJoiner>, WorkerError> {
        while recovery.stage != Stage::Done {
            self.heart.beat();
            recovery.stage = match recovery.stage {
                Stage::Begin => self.begin_joiner(recovery)?,
                Stage::Parts => self.read_parts(recovery, now)?,
                Stage::Sums => self.read_sums(recovery)?,
                Stage::Instructions(to) => self.read_instructions(recovery, to)?,
                Stage::Tokens => self.read_tokens(recovery)?,
                Stage::Done => Stage::Done,
            };
            if Instant::now() > until && recovery.stage != Stage::Done {
                return Ok(None);
            }
        }
        let joiner = std::mem::replace(&mut recovery.joiner, Joiner::new(recovery.number, 1));
        let Positions { parts, instructions, .. } = recovery.read;
        let (marked, mark) = (Instant::now(), std::mem::take(&mut recovery.mark));
        Ok(Some(OwnJoiner { joiner, parts, instructions, marked, mark, dirty: true }))
    }

    fn begin_joiner(&self, recovery: &mut JoinerRecovery) -> Result<Stage, WorkerError> {
        let names = &self.work.names;
        let (store, parts) = (self.store.as_ref(), names.parts.partition(recovery.number));
        // This waits until no transaction is undecided of the process that had it.
        store.position(&names.group, &parts)?;
        recovery.read.parts = store.bounds(&parts)?.start;
        Ok(Stage::Parts)
    }

    /// What was before the last mark is needed no more.
    fn read_parts(
        &self,
        recovery: &mut JoinerRecovery,
        now: Timestamp,
    ) -> Result<Stage, WorkerError> {
        let names = &self.work.names;
        let (store, parts) = (self.store.as_ref(), names.parts.partition(recovery.number));
        let fetched = store.read(&parts, recovery.read.parts, Limits::default())?;
        let next = fetched.next_offset();
        if next > recovery.read.parts {
            for record in fetched {
                if record.key == joiner::KEY {
                    recovery.mark = Mark::from_bytes(&record.value)
                        .ok_or(WorkerError::Mark { partition: recovery.number })?;
                    let from = recovery.mark.positions().parts;
                    recovery.parts.retain(|(at, ..)| *at >= from);
                } else if let Some(part) = Part::from_bytes(&record.value) {
                    recovery.parts.push((record.offset, Timestamp(record.timestamp), part));
                }
            }
            recovery.read.parts = next;
            return Ok(Stage::Parts);
        }
        let place = (recovery.number, names.topics.partitions);
        let mut joiner = Joiner::after(&recovery.mark, place);
        // What is too old is not even taken.
        joiner.give_up(now);
        let parts = std::mem::take(&mut recovery.parts);
        parts.into_iter().for_each(|(at, said, part)| joiner.take(at, said, part));
        recovery.joiner = joiner;
        let job = &names.topics.job;
        let from = recovery.mark.positions();
        recovery.read.sums = starts(store, &job.sums, &from.sums)?;
        recovery.read.tokens = starts(store, &job.tokens, &from.tokens)?;
        recovery.read.instructions = from.instructions;
        Ok(Stage::Sums)
    }

    /// Sums that were written after the mark.
    fn read_sums(&self, recovery: &mut JoinerRecovery) -> Result<Stage, WorkerError> {
        let (store, sums) = (self.store.as_ref(), &self.work.names.topics.job.sums);
        for (number, at) in (0_u32..).zip(&mut recovery.read.sums) {
            let from = *at;
            let records = slice(store, &sums.partition(number), at)?;
            if *at > from {
                let sums = records.iter().filter_map(|it| WindowSum::from_bytes(&it.value).ok());
                sums.for_each(|sum| recovery.joiner.written(sum.plan, sum.start));
                return Ok(Stage::Sums);
            }
        }
        Ok(Stage::Instructions(self.instructions.next()))
    }

    fn read_instructions(
        &self,
        JoinerRecovery { joiner, read, .. }: &mut JoinerRecovery,
        to: Offset,
    ) -> Result<Stage, WorkerError> {
        if read.instructions >= to {
            return Ok(Stage::Tokens);
        }
        let (store, each) =
            (self.store.as_ref(), &mut |received: &InstructionRecord| joiner.instruct(received));
        let span = (read.instructions, to);
        read.instructions = self.instructions.slice(store, span, each)?;
        Ok(Stage::Instructions(to))
    }

    /// Answers, as far as the process has read them for its other joiners.
    fn read_tokens(
        &self,
        JoinerRecovery { joiner, read, .. }: &mut JoinerRecovery,
    ) -> Result<Stage, WorkerError> {
        let (store, tokens) = (self.store.as_ref(), &self.work.names.topics.job.tokens);
        for ((number, end), at) in (0_u32..).zip(&self.tokens).zip(&mut read.tokens) {
            if *at >= *end {
                continue;
            }
            let partition = tokens.partition(number);
            let from = *at;
            let records = slice(store, &partition, at)?;
            if *at == from {
                return Err(WorkerError::Missing { partition, from, to: *end });
            }
            for record in records.iter().filter(|record| record.offset < *end) {
                if let Ok(token) = Token::from_bytes(&record.value) {
                    let from = (number, record.offset);
                    joiner.answer(from, Timestamp(record.timestamp), &token);
                }
            }
            *at = (*at).min(*end);
            return Ok(Stage::Tokens);
        }
        Ok(Stage::Done)
    }

    /// Takes parts and answers, and writes the sums that are whole.
    pub(super) fn join_up(&mut self, now: Timestamp) -> Result<(), WorkerError> {
        let job = &self.work.names.topics.job;
        let store = self.store.as_ref();
        for (number, position) in (0_u32..).zip(&mut self.tokens) {
            read_on(store, &job.tokens.partition(number), position, |fetched| {
                for record in fetched {
                    let token = Token::from_bytes(&record.value).ok();
                    let (from, said) = ((number, record.offset), Timestamp(record.timestamp));
                    for own in self.joiners.values_mut() {
                        own.dirty = true;
                        token.iter().for_each(|token| own.joiner.answer(from, said, token));
                    }
                }
                Ok::<(), Error>(())
            })?;
        }
        let sums = store.partitions(&job.sums)?.unwrap_or(1);
        for (number, own) in &mut self.joiners {
            own.read_on(store, (&self.work.names.parts.partition(*number), &self.instructions))?;
            for (key, value) in own.joiner.sums() {
                let to = job.sums.partition(partition_for_key(key.as_bytes(), sums));
                append(&mut self.batch, &to, now, (key.as_bytes(), &value))?;
                self.meter.sums.inc();
            }
            let lost = own.joiner.give_up(now);
            if let Some((plan, start)) = lost.first() {
                let (many, start) = (lost.len(), start.0);
                tracing::warn!(many, %plan, start, "windows are given up: parts or answers of them never arrived");
            }
            self.meter.given_up.inc_by(lost.len() as u64);
        }
        Ok(())
    }

    /// Leaves marks for the process that takes joiners over, and lets their partitions be shortened. Everything was
    /// committed.
    pub(super) fn mark(
        &mut self,
        which: impl Fn(u32, &OwnJoiner) -> bool,
    ) -> Result<(), WorkerError> {
        let (names, store) = (&self.work.names, self.store.as_ref());
        let end = |at: Partition| -> Result<Offset, Error> { Ok(store.bounds(&at)?.end) };
        let due = self.joiners.iter().any(|(number, own)| own.dirty && which(*number, own));
        if !due {
            return Ok(());
        }
        let sums = names.topics.job.sums.clone();
        let many = store.partitions(&sums)?.unwrap_or(0);
        let sums =
            (0..many).map(|at| end(sums.partition(at))).collect::<Result<Vec<_>, Error>>()?;
        for (number, own) in &mut self.joiners {
            if !own.dirty || !which(*number, own) {
                continue;
            }
            let (instructions, parts) = (own.instructions, own.parts);
            let (tokens, sums) = (self.tokens.clone(), sums.clone());
            own.mark = own.joiner.mark(&Positions { instructions, parts, tokens, sums });
            let (partition, mut batch) = (names.parts.partition(*number), Batch::new());
            own.mark.note(&mut batch, &partition)?;
            batch.set_position(&names.group, &partition, own.parts);
            store.commit(batch)?;
            store.truncate_before(&partition, own.mark.positions().parts)?;
            (own.marked, own.dirty) = (Instant::now(), false);
        }
        Ok(())
    }
}

impl OwnJoiner {
    /// Whether its last mark is old.
    pub(super) fn is_due(&self) -> bool {
        self.marked.elapsed() >= MARKS
    }

    /// Takes instructions and parts.
    fn read_on(
        &mut self,
        store: &dyn Store,
        (parts, instructions): (&Partition, &Instructions),
    ) -> Result<(), WorkerError> {
        let to = instructions.next();
        let joiner = &mut self.joiner;
        let each = &mut |received: &InstructionRecord| joiner.instruct(received);
        instructions.between(store, (self.instructions, to), each)?;
        self.dirty |= self.instructions < to;
        self.instructions = to;
        Ok(read_on(store, parts, &mut self.parts, |fetched| {
            for record in fetched {
                if let Some(part) = Part::from_bytes(&record.value) {
                    self.dirty = true;
                    joiner.take(record.offset, Timestamp(record.timestamp), part);
                }
            }
            Ok::<(), Error>(())
        })?)
    }
}

/// Reads some records, and moves on.
fn slice(store: &dyn Store, partition: &Partition, at: &mut Offset) -> Result<Vec<Record>, Error> {
    let fetched = store.read(partition, *at, Limits::default())?;
    let next = fetched.next_offset();
    let records = fetched.collect();
    *at = next;
    Ok(records)
}

/// Where to read a topic's partitions from: what is kept, from these offsets on.
fn starts(store: &dyn Store, topic: &Topic, from: &[Offset]) -> Result<Vec<Offset>, Error> {
    let many = store.partitions(topic)?.unwrap_or(0);
    let mut from = from.iter().copied();
    let mut start = |at: u32| {
        let start = store.bounds(&topic.partition(at))?.start;
        Ok(from.next().map_or(start, |from| from.max(start)))
    };
    (0..many).map(&mut start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Names, Work};
    use crate::lane::Pace;
    use crate::meter::Meter;
    use alpheus_encrypted_stream::job::PlanEnd;
    use alpheus_encrypted_stream::transformer::Shape;
    use alpheus_node::service::health::Health;
    use alpheus_node::service::heartbeat::Heart;
    use alpheus_policy::ids::{PlanId, SchemaId};
    use alpheus_policy::schema::Frames;
    use alpheus_time::Span;
    use alpheus_transport::NewRecord;
    use alpheus_transport::simulation::Machine;

    /// A process of one partition, over instructions that take several reads.
    fn group(reads: usize) -> Group {
        let (store, names) = (Machine::new().open().unwrap(), Names::new(1).unwrap());
        let job = &names.topics.job;
        let own = [&names.topics.events, &names.journals, &names.parts];
        for topic in own.into_iter().chain([&job.instructions, &job.tokens, &job.sums]) {
            store.ensure_topic(topic, 1).unwrap();
        }
        let value = PlanEnd { plan: PlanId([1; 32]) }.to_bytes();
        for _ in 0..reads {
            let mut batch = Batch::new();
            for _ in 0..Limits::default().records {
                let record = NewRecord { value: &value, ..Default::default() };
                batch.append(&job.instructions.partition(0), &record).unwrap();
            }
            store.commit(batch).unwrap();
        }
        let frames = Frames::Events;
        let (schema, tick, skew) = (SchemaId([1; 32]), Span::seconds(1), Span(0));
        let shape = Shape { schema, words: 2, tick, events: 100, skew, frames };
        let pace = Pace { disorder: skew, idle: tick, skew };
        let work = Work { names, shape, pace, commit: Duration::ZERO };
        let counted = (Meter::default(), Heart::watched(&Health::new(), "worker"));
        Group::open(store, work, None, counted).unwrap()
    }

    #[test]
    fn a_joiner_is_taken_over_in_slices() {
        let mut group = group(4);
        let (mut recovery, mut slices) = (JoinerRecovery::new(0, 1), 1);
        // Each slice ends as soon as it may.
        let now = Instant::now();
        while group.recover_joiner(&mut recovery, Timestamp(0), now).unwrap().is_none() {
            slices += 1;
        }
        assert!(slices > 4, "{slices}");
    }
}
