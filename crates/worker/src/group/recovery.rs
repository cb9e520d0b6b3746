//! Takes partitions over: from a journal's last snapshot, and the steps after it.

use super::joiners::JoinerRecovery;
use super::{Group, WorkerError, fetch};
use crate::instruction::InstructionRecord;
use crate::journal::{self, History, Prefix};
use crate::lane::{Lane, Outcome, Step};
use alpheus_time::Timestamp;
use alpheus_transport::{Offset, Record};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a journal's end may be hidden by another's transaction, which a broker ends by itself.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

/// A partition that is being taken over.
pub(super) enum Arrival {
    Joiner(Box<JoinerRecovery>),
    Lane(Box<Recovery>),
}

impl Arrival {
    /// Whether it is this partition, of parts or of events.
    pub(super) fn is(&self, of_parts: bool, index: u32) -> bool {
        match self {
            Arrival::Joiner(recovery) => of_parts && recovery.number == index,
            Arrival::Lane(recovery) => !of_parts && recovery.number == index,
        }
    }
}

/// How far a lane was taken over. It proceeds in slices: the process must ask for changes of its group
/// meanwhile.
pub(super) struct Recovery {
    pub(super) number: u32,
    journal: Option<JournalReader>,
    lane: Option<(Lane, VecDeque<Step>, Option<Prefix>)>,
    /// What the last step has to say, if not all of it was said.
    unsaid: Option<(Outcome, u64)>,
    /// Frames that were read.
    waiting: Vec<Record>,
    read: Offset,
}

/// A journal that is being read.
struct JournalReader {
    /// The number of the last entry that was committed.
    committed: Option<Offset>,
    position: Offset,
    history: History,
    until: Instant,
}

/// A lane that was taken over.
pub(super) struct RecoveredLane {
    pub(super) lane: Lane,
    pub(super) unsaid: Option<(Outcome, u64)>,
}

impl Recovery {
    pub(super) fn new(number: u32) -> Recovery {
        let (waiting, read) = (Vec::new(), Offset(0));
        Recovery { number, journal: None, lane: None, unsaid: None, waiting, read }
    }
}

impl Group {
    /// Goes on with the lane of a partition, as the process that had it last committed it, for so long. None
    /// if there is more to do.
    pub(super) fn recover(
        &mut self,
        recovery: &mut Recovery,
        until: Instant,
    ) -> Result<Option<RecoveredLane>, WorkerError> {
        let number = recovery.number;
        if recovery.lane.is_none() {
            let Some((lane, history)) = self.read_journal(recovery)? else {
                // Another's transaction is undecided.
                std::thread::sleep(PAUSE);
                return Ok(None);
            };
            recovery.read = Offset(lane.step().events);
            recovery.lane = Some((lane, history.steps.into(), history.said));
            self.instructions.update(self.store.as_ref())?;
        }
        while let Some((mut lane, mut steps, said)) = recovery.lane.take() {
            let Some(step) = steps.pop_front() else {
                return Ok(Some(RecoveredLane { lane, unsaid: recovery.unsaid.take() }));
            };
            let outcome = self.repeat(number, &mut lane, step, recovery)?;
            if let Some(said) = said.filter(|_| steps.is_empty()) {
                recovery.unsaid = Some((outcome, said.messages));
                lane.repeated(said.number);
            }
            recovery.lane = Some((lane, steps, said));
            if Instant::now() > until {
                break;
            }
        }
        Ok(None)
    }

    /// The last snapshot's lane, and the steps after it. None while entries are hidden.
    fn read_journal(
        &self,
        recovery: &mut Recovery,
    ) -> Result<Option<(Lane, History)>, WorkerError> {
        let (names, store, number) = (&self.work.names, self.store.as_ref(), recovery.number);
        let journal = names.journals.partition(number);
        if recovery.journal.is_none() {
            recovery.journal = Some(JournalReader {
                // This waits until no transaction is undecided that moves it.
                committed: store.position(&names.group, &journal)?,
                position: store.bounds(&journal)?.start,
                history: History::default(),
                until: Instant::now() + PATIENCE,
            });
        }
        let Some(reading) = &mut recovery.journal else { return Ok(None) };
        let read = journal::read(store, &journal, &mut reading.position, &mut reading.history)?;
        read.map_err(|_| WorkerError::Journal { partition: number })?;
        if let Some(theirs) = &reading.history.other {
            let (partition, theirs) = (number, theirs.clone());
            return Err(WorkerError::Version { partition, theirs });
        }
        let lane = self.restored(number, &reading.history)?;
        let last = reading.history.last().unwrap_or(lane.step().number);
        if reading.committed.is_none_or(|committed| last >= committed.0) {
            return Ok(Some((lane, std::mem::take(&mut reading.history))));
        }
        if Instant::now() > reading.until {
            return Err(WorkerError::Behind { partition: number });
        }
        Ok(None)
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

    /// Repeats a step. Returns what it has to say.
    fn repeat(
        &mut self,
        number: u32,
        lane: &mut Lane,
        step: Step,
        Recovery { waiting, read, .. }: &mut Recovery,
    ) -> Result<Outcome, WorkerError> {
        let events = self.work.names.topics.events.partition(number);
        let begin = Offset(lane.step().events);
        let (from, to) = (lane.step().instructions, step.instructions);
        if from < to {
            let each = &mut |received: &InstructionRecord| lane.instruct(&received.instruction);
            let span = (Offset(from), Offset(to));
            self.instructions.between(self.store.as_ref(), span, each)?;
            lane.instructed(Offset(to));
        }
        while read.0 < step.events {
            let fetched = fetch(self.store.as_ref(), &events, *read)?;
            let next = fetched.next_offset();
            waiting.extend(fetched);
            self.heart.beat();
            if next == *read {
                // Frames may be deleted before they are summed, but none that a step has taken is to come.
                let (from, to) = (*read, Offset(step.events));
                return Err(WorkerError::Missing { partition: events, from, to });
            }
            *read = next;
        }
        let own = waiting.partition_point(|record| record.offset.0 < step.events);
        let rest = waiting.split_off(own);
        // All at once, as the step did.
        let records = std::mem::replace(waiting, rest);
        lane.take(Timestamp(step.latest), &records, self.ingest.as_mut());
        lane.taken(Offset(step.events));
        let outcome = lane.finish(Timestamp(step.reached));
        let judged_otherwise = outcome.refused.len() as u64 != step.refused;
        // Frames that were deleted since are no one's fault.
        if judged_otherwise && self.store.bounds(&events)?.start <= begin {
            return Err(WorkerError::Keys { partition: number });
        }
        lane.repeated(step.number);
        self.meter.repeated.inc();
        Ok(outcome)
    }
}
