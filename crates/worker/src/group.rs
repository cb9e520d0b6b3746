//! A process's share of the group's work: lanes and joiners, while their partitions are its own.

mod recovery;

use crate::instruction::{Instruction, Instructions};
use crate::joiner::Joiner;
use crate::journal;
use crate::lane::{Lane, Outcome, Pace};
use crate::meter::Meter;
use crate::part::Part;
use alpheus_encrypted_stream::job::{JobMessage, Progress, Token};
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::service::ServiceError;
use alpheus_node::service::heartbeat::Heart;
use alpheus_streams::runtime::storage::{Topics, read_on};
use alpheus_time::Timestamp;
use alpheus_transport::{
    Batch, Error, FetchedRecords, Group as GroupName, Limits, NameError, NewRecord, Offset,
    Ownership, Partition, Record, Store, Topic, partition_for_key,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A batch of about so many bytes is committed at once.
const MAX_BATCH: usize = 8 << 20;
/// After so many bytes of frames a snapshot is worth its own bytes, if it has no more.
const MIN_SNAPSHOT: u64 = 1 << 20;
/// A lane that has taken anything has a snapshot at least this often.
const SNAPSHOT: Duration = Duration::from_secs(600);
/// How much is kept of a record that is too long for a dead letter, and of its key.
const BEGINNING: usize = 64 << 10;
const KEY: usize = 64;

/// Why a worker leaves its group.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The cluster fails.
    #[error(transparent)]
    Store(#[from] Error),
    /// The group cannot be joined.
    #[error(transparent)]
    Join(#[from] ServiceError),
    /// The process was silent for too long, and its partitions are another's.
    #[error("the group gave this process's partitions to others; is the machine overloaded?")]
    Lost,
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
    /// A snapshot cannot be read.
    #[error(
        "the last snapshot in the journal of partition {partition} is not of this schema and version; give the worker the service's schema, or delete the topic worker-journal and the group's offsets: windows that have begun are then left out"
    )]
    State {
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
}

struct OwnJoiner {
    joiner: Joiner,
    parts: Offset,
    instructions: Offset,
}

/// The work of one process.
pub struct Group {
    store: Arc<dyn Store>,
    work: Work,
    ingest: Option<Ingest>,
    instructions: Instructions,
    lanes: BTreeMap<u32, OwnLane>,
    joiners: BTreeMap<u32, OwnJoiner>,
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

    /// Takes partitions over, or gives them up.
    ///
    /// # Errors
    /// [`WorkerError`]; then the process must leave the group.
    pub fn change(&mut self, change: Ownership) -> Result<(), WorkerError> {
        match change {
            Ownership::Gained(partitions) => {
                for partition in partitions {
                    self.gain(&partition)?;
                }
            }
            Ownership::Leaving(partitions) => {
                let events = self.work.names.topics.events.clone();
                let leaves = |number| partitions.contains(&events.partition(number));
                self.save(leaves)?;
                self.lose(&partitions);
            }
            // What was to be committed was about them too.
            Ownership::Lost(_) => return Err(WorkerError::Lost),
        }
        Ok(())
    }

    fn gain(&mut self, partition: &Partition) -> Result<(), WorkerError> {
        let number = partition.index;
        if partition.topic == self.work.names.parts {
            let joiner = self.recover_joiner(number)?;
            self.joiners.insert(number, joiner);
        } else {
            let lane = self.recover(number)?;
            let (instructions, step) = (self.instructions.next(), lane.step());
            tracing::info!(partition = number, ?step, %instructions, "took a partition over");
            let own = OwnLane { lane, since: 0, saved: Instant::now(), dirty: true };
            self.lanes.insert(number, own);
        }
        self.show();
        Ok(())
    }

    fn lose(&mut self, partitions: &[Partition]) {
        for partition in partitions {
            if partition.topic == self.work.names.parts {
                self.joiners.remove(&partition.index);
            } else {
                self.lanes.remove(&partition.index);
            }
        }
        self.show();
    }

    fn show(&self) {
        self.meter.partitions.set(i64::try_from(self.lanes.len()).unwrap_or(i64::MAX));
    }

    /// Does what there is to do. Returns whether there was anything.
    ///
    /// # Errors
    /// [`WorkerError`]; then the process must leave the group.
    pub fn turn(&mut self, now: Timestamp) -> Result<bool, WorkerError> {
        self.heart.beat();
        self.instructions.update(self.store.as_ref())?;
        let mut busy = false;
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
        let before = own.lane.step();
        let (lane, at) = (&mut own.lane, Offset(before.events));
        let events = self.work.names.topics.events.partition(number);
        let fetched = fetch(self.store.as_ref(), &events, at)?;
        let (next, records) = (fetched.next_offset(), fetched.collect::<Vec<Record>>());
        let (from, to) = (Offset(before.instructions), self.instructions.next());
        if from < to {
            let each = &mut |instruction: &Instruction| lane.instruct(instruction);
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
        let bytes = records.iter().map(|record| record.value.len() as u64).sum::<u64>();
        (own.since, own.dirty) = (own.since + bytes, true);
        self.meter.frames.inc_by(records.len() as u64);
        self.meter.bytes.inc_by(bytes);
        self.say(number, now, outcome)?;
        if reached.0 > before.reached {
            let progress = Progress { task: number, tasks: self.lanes_in_all(), time: reached };
            let key = format!("progress/{number}");
            let to = self.work.names.topics.job.summaries.partition(0);
            append(&mut self.batch, &to, now, (key.as_bytes(), &progress.to_bytes()))?;
        }
        let journal = self.work.names.journals.partition(number);
        journal::note(&mut self.batch, &journal, own.lane.step())?;
        Ok(moved || !is_all)
    }

    fn lanes_in_all(&self) -> u32 {
        self.work.names.topics.partitions
    }

    /// Puts what a lane has to say into the batch.
    fn say(&mut self, number: u32, now: Timestamp, outcome: Outcome) -> Result<(), WorkerError> {
        let Names { topics, parts, .. } = &self.work.names;
        let batch = &mut self.batch;
        self.meter.closed.inc_by(outcome.closed);
        self.meter.refused.inc_by(outcome.refused.len() as u64);
        let summaries = topics.job.summaries.partition(0);
        for (key, value) in outcome.reports {
            append(batch, &summaries, now, (key.as_bytes(), &value))?;
        }
        for part in outcome.parts {
            let key = Part::key(&part.plan, part.start);
            let to = parts.partition(partition_for_key(&key, topics.partitions));
            append(batch, &to, now, (&key, &part.to_bytes()))?;
        }
        let from = topics.events.partition(number);
        for (record, reason) in outcome.refused {
            bury(batch, &topics.job.dead_letters.partition(0), (&from, &record), reason)?;
        }
        Ok(())
    }

    /// Takes parts and answers, and writes the sums that are whole.
    fn join_up(&mut self, now: Timestamp) -> Result<(), WorkerError> {
        let Names { topics, parts, .. } = &self.work.names;
        let (store, job) = (self.store.as_ref(), &topics.job);
        for (number, position) in (0_u32..).zip(&mut self.tokens) {
            read_on(store, &job.tokens.partition(number), position, |fetched| {
                for token in fetched.filter_map(|record| Token::from_bytes(&record.value).ok()) {
                    self.joiners.values_mut().for_each(|own| own.joiner.answer(token.clone()));
                }
                Ok::<(), Error>(())
            })?;
        }
        let sums = store.partitions(&job.sums)?.unwrap_or(1);
        let to = self.instructions.next();
        for (number, own) in &mut self.joiners {
            let joiner = &mut own.joiner;
            let each = &mut |instruction: &Instruction| joiner.instruct(instruction);
            self.instructions.between(store, (own.instructions, to), each)?;
            own.instructions = to;
            read_on(store, &parts.partition(*number), &mut own.parts, |fetched| {
                for record in fetched {
                    let part = Part::from_bytes(&record.value);
                    part.into_iter().for_each(|part| own.joiner.take(record.offset, part));
                }
                Ok::<(), Error>(())
            })?;
            for (key, value) in own.joiner.sums() {
                let to = job.sums.partition(partition_for_key(key.as_bytes(), sums));
                append(&mut self.batch, &to, now, (key.as_bytes(), &value))?;
                self.meter.sums.inc();
            }
        }
        Ok(())
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
            let events = names.topics.events.partition(*number);
            batch.set_position(&names.group, &events, Offset(own.lane.step().events));
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
        self.save(|number| due.contains(&number))?;
        for (number, own) in &self.joiners {
            let needed = own.joiner.needed().unwrap_or(own.parts);
            self.store.truncate_before(&self.work.names.parts.partition(*number), needed)?;
        }
        Ok(())
    }

    /// Commits, and saves these lanes.
    fn save(&mut self, which: impl Fn(u32) -> bool) -> Result<(), WorkerError> {
        self.commit()?;
        let Names { topics, journals, group, .. } = &self.work.names;
        for (number, own) in self.lanes.iter_mut().filter(|(number, _)| which(**number)) {
            if !own.dirty {
                continue;
            }
            self.heart.beat();
            let (journal, events) = (journals.partition(*number), topics.events.partition(*number));
            let end = self.store.bounds(&journal)?.end;
            let bytes = own.lane.save().ok_or(WorkerError::State { partition: *number })?;
            for mut batch in journal::snapshot(&journal, &bytes)? {
                batch.set_position(group, &events, Offset(own.lane.step().events));
                self.store.commit(batch)?;
            }
            self.store.truncate_before(&journal, end)?;
            (own.since, own.saved, own.dirty) = (0, Instant::now(), false);
        }
        Ok(())
    }

    /// Commits and saves everything, so that others can go on at once.
    ///
    /// # Errors
    /// [`WorkerError`]; then others go on from what was committed.
    pub fn end(&mut self) -> Result<(), WorkerError> {
        self.save(|_| true)
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

fn append(
    batch: &mut Batch,
    to: &Partition,
    at: Timestamp,
    (key, value): (&[u8], &[u8]),
) -> Result<(), Error> {
    batch.append(to, &NewRecord { key, value, timestamp: at.0, ..Default::default() })
}

/// Adds a frame to the dead letters, with the reason and where it came from.
fn bury(
    batch: &mut Batch,
    to: &Partition,
    (from, record): (&Partition, &Record),
    reason: &str,
) -> Result<(), Error> {
    let (partition, offset) = (from.index.to_string(), record.offset.to_string());
    let headers: [(&str, &[u8]); 4] = [
        ("alpheus.reason", reason.as_bytes()),
        ("alpheus.topic", from.topic.as_str().as_bytes()),
        ("alpheus.partition", partition.as_bytes()),
        ("alpheus.offset", offset.as_bytes()),
    ];
    let key = record.key.get(..KEY).unwrap_or(&record.key);
    let value = record.value.get(..BEGINNING).unwrap_or(&record.value);
    let timestamp = record.timestamp;
    batch.append(to, &NewRecord { key, value, timestamp, headers: &headers })
}
