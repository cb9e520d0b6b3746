//! Takes partitions over: from a journal's last snapshot, and the steps after it.

use super::{Group, OwnJoiner, WorkerError, fetch};
use crate::instruction::Instruction;
use crate::joiner::Joiner;
use crate::journal::{self, History};
use crate::lane::{Lane, Step};
use crate::part::Part;
use alpheus_encrypted_stream::job::{JobMessage, Token, WindowSum};
use alpheus_streams::runtime::storage::read_on;
use alpheus_time::Timestamp;
use alpheus_transport::{Error, Limits, Offset, Record, Store, Topic};
use std::time::{Duration, Instant};

/// How long a journal's end may be hidden by another's transaction, which a broker ends by itself.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

impl Group {
    /// The lane of a partition, as the process that had it last committed it.
    pub(super) fn recover(&mut self, number: u32) -> Result<Lane, WorkerError> {
        let names = &self.work.names;
        let (events, journal) =
            (names.topics.events.partition(number), names.journals.partition(number));
        // This waits until no transaction is undecided that moves the offset.
        let committed = self.store.position(&names.group, &events)?;
        let mut position = self.store.bounds(&journal)?.start;
        let (mut history, until) = (History::default(), Instant::now() + PATIENCE);
        let mut lane = loop {
            let read = journal::read(self.store.as_ref(), &journal, &mut position, &mut history)?;
            read.map_err(|_| WorkerError::Journal { partition: number })?;
            let lane = self.restored(number, &history)?;
            let last = history.steps.last().map_or(lane.step().events, |step| step.events);
            if committed.is_none_or(|committed| last >= committed.0) {
                break lane;
            }
            if Instant::now() > until {
                return Err(WorkerError::Behind { partition: number });
            }
            self.heart.beat();
            std::thread::sleep(PAUSE);
        };
        self.repeat(number, &mut lane, &history.steps)?;
        Ok(lane)
    }

    fn restored(&self, number: u32, history: &History) -> Result<Lane, WorkerError> {
        let place = (number, self.work.names.topics.partitions);
        match &history.snapshot {
            Some(bytes) => Lane::restore(self.work.shape, place, bytes)
                .ok_or(WorkerError::State { partition: number }),
            None => {
                let events = self.work.names.topics.events.partition(number);
                Ok(Lane::new(self.work.shape, place, self.store.bounds(&events)?.start))
            }
        }
    }

    /// Repeats steps. What they have to say was said.
    fn repeat(&mut self, number: u32, lane: &mut Lane, steps: &[Step]) -> Result<(), WorkerError> {
        let events = self.work.names.topics.events.partition(number);
        self.instructions.update(self.store.as_ref())?;
        let (mut waiting, mut read) = (Vec::<Record>::new(), Offset(lane.step().events));
        for step in steps {
            let (from, to) = (lane.step().instructions, step.instructions);
            if from < to {
                let each = &mut |instruction: &Instruction| lane.instruct(instruction);
                let span = (Offset(from), Offset(to));
                self.instructions.between(self.store.as_ref(), span, each)?;
                lane.instructed(Offset(to));
            }
            loop {
                let own = waiting.partition_point(|record| record.offset.0 < step.events);
                let rest = waiting.split_off(own);
                let latest = Timestamp(step.latest);
                lane.take(latest, &std::mem::replace(&mut waiting, rest), self.ingest.as_mut());
                if read.0 >= step.events {
                    break;
                }
                let fetched = fetch(self.store.as_ref(), &events, read)?;
                let next = fetched.next_offset();
                waiting.extend(fetched);
                self.heart.beat();
                if next == read {
                    // Nothing is left of it.
                    break;
                }
                read = next;
            }
            lane.taken(Offset(step.events));
            lane.finish(Timestamp(step.reached));
            self.meter.repeated.inc();
        }
        Ok(())
    }

    /// The joiner of a partition of parts, with everything that is kept of its windows.
    pub(super) fn recover_joiner(&mut self, number: u32) -> Result<OwnJoiner, WorkerError> {
        let names = &self.work.names;
        let (store, job) = (self.store.as_ref(), &names.topics.job);
        let mut joiner = Joiner::new(number, names.topics.partitions);
        for sum in written(store, &job.sums)? {
            joiner.written(sum.plan, sum.start);
        }
        self.instructions.update(store)?;
        let to = self.instructions.next();
        let each = &mut |instruction: &Instruction| joiner.instruct(instruction);
        self.instructions.between(store, (Offset(0), to), each)?;
        for (partition, end) in (0_u32..).zip(&self.tokens) {
            let tokens = job.tokens.partition(partition);
            let mut at = store.bounds(&tokens)?.start;
            while at < *end {
                let fetched = store.read(&tokens, at, Limits::default())?;
                let next = fetched.next_offset();
                let before = fetched.filter(|record| record.offset < *end);
                let tokens = before.filter_map(|record| Token::from_bytes(&record.value).ok());
                tokens.for_each(|token| joiner.answer(token));
                if next == at {
                    break;
                }
                at = next;
            }
        }
        let parts = names.parts.partition(number);
        let mut position = store.bounds(&parts)?.start;
        loop {
            let fetched = store.read(&parts, position, Limits::default())?;
            let next = fetched.next_offset();
            for record in fetched {
                let part = Part::from_bytes(&record.value);
                part.into_iter().for_each(|part| joiner.take(record.offset, part));
            }
            if next == position {
                break;
            }
            position = next;
        }
        Ok(OwnJoiner { joiner, parts: position, instructions: to })
    }
}

/// The sums of windows that are in the topic of sums.
fn written(store: &dyn Store, sums: &Topic) -> Result<Vec<WindowSum>, Error> {
    let mut found = Vec::new();
    for number in 0..store.partitions(sums)?.unwrap_or(0) {
        let partition = sums.partition(number);
        let mut position = store.bounds(&partition)?.start;
        read_on(store, &partition, &mut position, |fetched| {
            found.extend(fetched.filter_map(|it| WindowSum::from_bytes(&it.value).ok()));
            Ok::<(), Error>(())
        })?;
    }
    Ok(found)
}
