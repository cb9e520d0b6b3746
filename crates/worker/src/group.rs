//! A process's share of the group's work: lanes and joiners, while their partitions are its own.

mod joiners;
mod recovery;
mod step_messages;

use crate::clock::ClockError;
use crate::instruction::{InstructionRecord, Instructions, ReadError};
use crate::journal;
use crate::lane::{Lane, Outcome, Pace};
use crate::meter::Meter;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::service::ServiceError;
use alpheus_node::service::heartbeat::Heart;
use alpheus_stream_runtime::storage::Topics;
use alpheus_time::Timestamp;
use alpheus_transport::{
    Batch, Error, FetchedRecords, Group as GroupName, Limits, NameError, Offset, Ownership,
    Partition, Record, Store, Topic,
};
use joiners::{JoinerRecovery, OwnJoiner};
use recovery::{Arrival, RecoveredLane, Recovery};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use step_messages::set_positions;

/// A batch of about so many bytes is committed at once, if need be in the midst of a step.
const MAX_BATCH: usize = 8 << 20;
/// After so many bytes of frames a snapshot is worth its own bytes, if it has no more.
const MIN_SNAPSHOT: u64 = 1 << 20;
/// A lane that has taken anything has a snapshot at least this often.
const SNAPSHOT: Duration = Duration::from_secs(600);
/// Who takes partitions over looks at its group again after about so long, or the group gives up on it.
const SLICE: Duration = Duration::from_secs(1);

/// Why a worker leaves its group.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The cluster fails.
    #[error(transparent)]
    Store(#[from] Error),
    /// The group cannot be joined.
    #[error(transparent)]
    Join(#[from] ServiceError),
    /// A topic cannot have its name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An entry of a journal is of another version.
    #[error(
        "the journal of partition {partition} is of another version of this program; stop all workers, then start those of one version"
    )]
    Journal {
        /// The partition.
        partition: u32,
    },
    /// Steps are another program's.
    #[error(
        "version {theirs} of this program took steps in partition {partition} that no snapshot contains, and this is version {}: start a worker of version {theirs} and stop it with SIGTERM, which writes a snapshot",
        journal::PROGRAM
    )]
    Version {
        /// The partition.
        partition: u32,
        /// The version that took the steps.
        theirs: String,
    },
    /// The clock is wrong.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A snapshot cannot be read.
    #[error(
        "the last snapshot in the journal of partition {partition} is not of this schema and version; give the worker the service's schema, or delete the topic worker-journal and the group's offsets: windows that have begun are then left out"
    )]
    State {
        /// The partition.
        partition: u32,
    },
    /// A repeated step refuses other frames than it did.
    #[error(
        "in a step of partition {partition}, this worker refuses different frames from those that the worker that took the step refused; give all workers the same identity folder with the same ingest keys, and stop all of them before you change a key"
    )]
    Keys {
        /// The partition.
        partition: u32,
    },
    /// Records that somebody has read cannot be read here.
    #[error(
        "{partition} no longer has the records from {from} to {to}, which others have read: something deletes records that are still needed; check retention.ms of the topic"
    )]
    Missing {
        /// The partition.
        partition: Partition,
        /// The first record that is missing.
        from: Offset,
        /// What was to be read before.
        to: Offset,
    },
    /// A mark is of another version.
    #[error(
        "the last mark in partition {partition} of worker-parts is of another version of this program; stop all workers, then start those of one version"
    )]
    Mark {
        /// The partition.
        partition: u32,
    },
    /// A journal ends before the group's offset.
    #[error(
        "the journal of partition {partition} ends before the group's offset; records were deleted: delete the topic worker-journal and the group's offsets: windows that have begun are then left out"
    )]
    Behind {
        /// The partition.
        partition: u32,
    },
}

impl From<ReadError> for WorkerError {
    fn from(error: ReadError) -> WorkerError {
        match error {
            ReadError::Store(error) => WorkerError::Store(error),
            ReadError::Missing { partition, from, to } => {
                WorkerError::Missing { partition, from, to }
            }
        }
    }
}

/// The names in the cluster.
#[derive(Clone, Debug)]
pub struct Names {
    /// Those of the service.
    pub topics: Topics,
    /// Journals of lanes, by partition of events.
    pub journals: Topic,
    /// Sums over partitions, keyed by window.
    pub parts: Topic,
    /// The consumer group.
    pub group: GroupName,
}

impl Names {
    /// Of so many partitions of events.
    ///
    /// # Errors
    /// None in practice: the names are valid.
    pub fn new(partitions: u32) -> Result<Names, WorkerError> {
        Ok(Names {
            topics: Topics::new(partitions)?,
            journals: Topic::new("worker-journal")?,
            parts: Topic::new("worker-parts")?,
            group: GroupName::new("worker")?,
        })
    }
}

/// How a worker works.
pub struct Work {
    /// The names in the cluster.
    pub names: Names,
    /// The schema's shape.
    pub shape: Shape,
    /// How event time is measured.
    pub pace: Pace,
    /// How long results wait for others to share their transaction.
    pub commit: Duration,
}

struct OwnLane {
    lane: Lane,
    /// Bytes that were taken since the last snapshot.
    since: u64,
    /// When that was.
    saved: Instant,
    dirty: bool,
    /// What another process did not finish to say: how many messages of it were said.
    unsaid: Option<(Outcome, u64)>,
}

/// The work of one process.
pub struct Group {
    store: Arc<dyn Store>,
    work: Work,
    ingest: Option<Ingest>,
    instructions: Instructions,
    lanes: BTreeMap<u32, OwnLane>,
    joiners: BTreeMap<u32, OwnJoiner>,
    /// Partitions that are being taken over.
    arriving: VecDeque<Arrival>,
    /// How far answers were read, by partition.
    tokens: Vec<Offset>,
    batch: Batch,
    committed: Instant,
    meter: Meter,
    heart: Heart,
}

impl Group {
    /// A process without partitions. All topics exist.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(
        store: Arc<dyn Store>,
        work: Work,
        ingest: Option<Ingest>,
        (meter, heart): (Meter, Heart),
    ) -> Result<Group, WorkerError> {
        let job = &work.names.topics.job;
        let instructions = Instructions::open(store.as_ref(), job.instructions.partition(0))?;
        let partitions = store.partitions(&job.tokens)?.unwrap_or(0);
        let end = |at| Ok(store.bounds(&job.tokens.partition(at))?.end);
        let tokens: Result<Vec<Offset>, Error> = (0..partitions).map(end).collect();
        Ok(Group {
            instructions,
            tokens: tokens?,
            store,
            work,
            ingest,
            lanes: BTreeMap::new(),
            joiners: BTreeMap::new(),
            arriving: VecDeque::new(),
            batch: Batch::new(),
            committed: Instant::now(),
            meter,
            heart,
        })
    }

    /// The topics that the group shares.
    #[must_use]
    pub fn shared(&self) -> [Topic; 2] {
        [self.work.names.topics.events.clone(), self.work.names.parts.clone()]
    }

    /// Gives partitions up, or begins to take them over, which [`Group::turn`] continues.
    ///
    /// # Errors
    /// [`WorkerError`]; then the process must leave the group.
    pub fn change(&mut self, change: Ownership) -> Result<(), WorkerError> {
        match change {
            Ownership::Gained(partitions) => {
                let (parts, of) = (&self.work.names.parts, self.work.names.topics.partitions);
                let (own, beyond) =
                    partitions.into_iter().partition::<Vec<_>, _>(|it| it.index < of);
                self.meter.beyond.inc_by(beyond.len() as u64);
                for partition in beyond {
                    tracing::error!(
                        %partition, of,
                        "partitions were added to events: nobody reads this one, and streams that are in it now are left out; take another prefix"
                    );
                }
                self.arriving.extend(own.into_iter().map(|partition| {
                    match partition.topic == *parts {
                        true => Arrival::Joiner(Box::new(JoinerRecovery::new(partition.index, of))),
                        false => Arrival::Lane(Box::new(Recovery::new(partition.index))),
                    }
                }));
            }
            Ownership::Leaving(partitions) => {
                let events = self.work.names.topics.events.clone();
                let leaves = |number| partitions.contains(&events.partition(number));
                self.save(leaves)?;
                let parts = self.work.names.parts.clone();
                self.mark(|number, _| partitions.contains(&parts.partition(number)))?;
                self.lose(&partitions);
            }
            // What was to be committed was about them too.
            Ownership::Lost(_) => return Err(Error::NotInGroup.into()),
        }
        Ok(())
    }

    /// Takes over for a while. Returns whether anything is left to be taken over.
    fn arrive(&mut self, now: Timestamp) -> Result<bool, WorkerError> {
        let until = Instant::now() + SLICE;
        for _ in 0..self.arriving.len() {
            match self.arriving.pop_front() {
                Some(Arrival::Joiner(mut recovery)) => {
                    match self.recover_joiner(&mut recovery, now, until)? {
                        Some(joiner) => {
                            self.joiners.insert(recovery.number, joiner);
                            self.show();
                        }
                        None => self.arriving.push_back(Arrival::Joiner(recovery)),
                    }
                }
                Some(Arrival::Lane(mut recovery)) => match self.recover(&mut recovery, until)? {
                    Some(recovered) => self.own(recovery.number, recovered),
                    None => self.arriving.push_back(Arrival::Lane(recovery)),
                },
                None => break,
            }
            if Instant::now() > until {
                break;
            }
        }
        Ok(!self.arriving.is_empty())
    }

    fn own(&mut self, number: u32, RecoveredLane { lane, unsaid }: RecoveredLane) {
        let (instructions, step) = (self.instructions.next(), lane.step());
        tracing::info!(partition = number, ?step, %instructions, "took a partition over");
        let own = OwnLane { lane, since: 0, saved: Instant::now(), dirty: true, unsaid };
        self.lanes.insert(number, own);
        self.show();
    }

    fn lose(&mut self, partitions: &[Partition]) {
        let parts = &self.work.names.parts;
        for Partition { topic, index } in partitions {
            let of_parts = topic == parts;
            if of_parts {
                self.joiners.remove(index);
            } else {
                self.lanes.remove(index);
            }
            self.arriving.retain(|arrival| !arrival.is(of_parts, *index));
        }
        self.show();
    }

    fn show(&self) {
        let many = |own: usize| i64::try_from(own).unwrap_or(i64::MAX);
        self.meter.partitions.set(many(self.lanes.len()));
        self.meter.part_partitions.set(many(self.joiners.len()));
    }

    /// Does what there is to do. Returns whether there was anything.
    ///
    /// # Errors
    /// [`WorkerError`]; then the process must leave the group.
    pub fn turn(&mut self, now: Timestamp) -> Result<bool, WorkerError> {
        self.heart.beat();
        self.instructions.update(self.store.as_ref())?;
        let mut busy = self.arrive(now)?;
        let numbers: Vec<u32> = self.lanes.keys().copied().collect();
        for number in numbers {
            if let Some(mut own) = self.lanes.remove(&number) {
                let worked = self.step(number, &mut own, now);
                self.lanes.insert(number, own);
                busy |= worked?;
                if self.batch.bytes() >= MAX_BATCH {
                    self.commit()?;
                }
            }
        }
        self.join_up(now)?;
        if !self.batch.is_empty() && self.committed.elapsed() >= self.work.commit {
            self.commit()?;
            self.save_if_worth()?;
            self.mark(|_, own| own.is_due())?;
        }
        Ok(busy)
    }

    /// Whether there are results that are not committed.
    #[must_use]
    pub fn has_results(&self) -> bool {
        !self.batch.is_empty()
    }

    /// A lane's next step. Returns whether there were frames.
    fn step(
        &mut self,
        number: u32,
        own: &mut OwnLane,
        now: Timestamp,
    ) -> Result<bool, WorkerError> {
        if let Some(unsaid) = own.unsaid.take() {
            self.say(number, own, now, unsaid)?;
            self.progress(number, own, now)?;
        }
        let before = own.lane.step();
        let (lane, at) = (&mut own.lane, Offset(before.events));
        let events = self.work.names.topics.events.partition(number);
        let fetched = fetch(self.store.as_ref(), &events, at)?;
        let (next, records) = (fetched.next_offset(), fetched.collect::<Vec<Record>>());
        let (from, to) = (Offset(before.instructions), self.instructions.next());
        if from < to {
            let each = &mut |received: &InstructionRecord| lane.instruct(&received.instruction);
            self.instructions.between(self.store.as_ref(), (from, to), each)?;
            lane.instructed(to);
        }
        let moved = next > at;
        if moved {
            lane.take(now.plus(self.work.pace.skew), &records, self.ingest.as_mut());
            lane.taken(next);
        }
        let (reached, is_all) = lane.reach(now, !moved, self.work.pace);
        let is_idle = !moved && from >= to;
        if is_idle && (reached.0 == before.reached || !lane.has_plans()) {
            return Ok(false);
        }
        let outcome = lane.finish(reached);
        lane.next_entry();
        let bytes = records.iter().map(|record| record.value.len() as u64).sum::<u64>();
        (own.since, own.dirty) = (own.since + bytes, true);
        self.meter.frames.inc_by(records.len() as u64);
        self.meter.bytes.inc_by(bytes);
        self.meter.closed.inc_by(outcome.closed);
        self.meter.refused.inc_by(outcome.refused.len() as u64);
        let journal = self.work.names.journals.partition(number);
        journal::note(&mut self.batch, &journal, own.lane.step())?;
        self.say(number, own, now, (outcome, 0))?;
        if reached.0 > before.reached {
            self.progress(number, own, now)?;
        }
        Ok(moved || !is_all)
    }

    /// Commits what was said, with how far everything was read. It counts only while the process is in
    /// the group.
    fn commit(&mut self) -> Result<(), WorkerError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut self.batch);
        let names = &self.work.names;
        for (number, own) in &self.lanes {
            set_positions(&mut batch, names, (*number, &own.lane));
        }
        for (number, own) in &self.joiners {
            batch.set_position(&names.group, &names.parts.partition(*number), own.parts);
        }
        self.store.commit(batch)?;
        self.committed = Instant::now();
        self.meter.commits.inc();
        let steps = self.lanes.values().map(|own| Offset(own.lane.step().instructions));
        let joined = self.joiners.values().map(|own| own.instructions);
        let needed = steps.chain(joined).min().unwrap_or(self.instructions.next());
        self.instructions.forget_before(needed);
        Ok(())
    }

    /// Saves lanes whose journals are longer than their states, or old.
    fn save_if_worth(&mut self) -> Result<(), WorkerError> {
        let worth = |own: &OwnLane| {
            let read = own.since >= MIN_SNAPSHOT && own.since >= own.lane.footprint() as u64;
            own.dirty && (read || own.saved.elapsed() >= SNAPSHOT)
        };
        let due: Vec<u32> =
            self.lanes.iter().filter(|(_, own)| worth(own)).map(|(number, _)| *number).collect();
        if due.is_empty() {
            return Ok(());
        }
        self.save(|number| due.contains(&number))
    }

    /// Commits, and saves these lanes.
    fn save(&mut self, which: impl Fn(u32) -> bool) -> Result<(), WorkerError> {
        self.commit()?;
        let names = &self.work.names;
        for (number, own) in self.lanes.iter_mut().filter(|(number, _)| which(**number)) {
            // A snapshot does not have what another process left unsaid.
            if !own.dirty || own.unsaid.is_some() {
                continue;
            }
            self.heart.beat();
            let journal = names.journals.partition(*number);
            let end = self.store.bounds(&journal)?.end;
            let bytes = own.lane.save().ok_or(WorkerError::State { partition: *number })?;
            for mut batch in journal::snapshot(&journal, &bytes)? {
                set_positions(&mut batch, names, (*number, &own.lane));
                self.store.commit(batch)?;
            }
            self.store.truncate_before(&journal, end)?;
            (own.since, own.saved, own.dirty) = (0, Instant::now(), false);
        }
        Ok(())
    }

    /// Commits and saves everything, so that others can continue at once.
    ///
    /// # Errors
    /// [`WorkerError`]; then others continue from the last commit.
    pub fn end(&mut self) -> Result<(), WorkerError> {
        self.save(|_| true)?;
        self.mark(|_, _| true)
    }
}

/// Reads a partition of events. What was deleted is passed over: streams that lack it are incomplete.
fn fetch(store: &dyn Store, events: &Partition, at: Offset) -> Result<FetchedRecords, Error> {
    match store.read(events, at, Limits::default()) {
        Err(Error::OffsetOutOfRange { bounds, .. }) if at < bounds.start => {
            tracing::warn!(partition = %events, %at, start = %bounds.start, "events were deleted before they were summed");
            store.read(events, bounds.start, Limits::default())
        }
        fetched => fetched,
    }
}
