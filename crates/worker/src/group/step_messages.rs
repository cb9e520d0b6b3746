//! What steps have to say, on its way into transactions.

use super::{Group, MAX_BATCH, Names, OwnLane, WorkerError};
use crate::journal::{self, Prefix};
use crate::lane::{Lane, Message, Outcome};
use crate::part::Part;
use alpheus_encrypted_stream::job::{JobMessage, Progress};
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Error, NewRecord, Offset, Partition, Record, partition_for_key};

/// How much is kept of a record that is too long for a dead letter, and of its key.
const BEGINNING: usize = 64 << 10;
const KEY: usize = 64;

impl Group {
    /// Says how far a lane is, after everything up to there.
    pub(super) fn progress(
        &mut self,
        task: u32,
        own: &OwnLane,
        now: Timestamp,
    ) -> Result<(), WorkerError> {
        let topics = &self.work.names.topics;
        let time = Timestamp(own.lane.step().reached);
        let progress = Progress { task, tasks: topics.partitions, time };
        let (key, to) = (format!("progress/{task}"), topics.job.summaries.partition(0));
        Ok(append(&mut self.batch, &to, now, (key.as_bytes(), &progress.to_bytes()))?)
    }

    /// Puts what a step has to say into the batch, without the first messages, which were said. Output that is too
    /// long for one transaction is sent in several, and the journal records the progress of each.
    pub(super) fn say(
        &mut self,
        number: u32,
        own: &mut OwnLane,
        now: Timestamp,
        (outcome, from): (Outcome, u64),
    ) -> Result<(), WorkerError> {
        let (mut messages, mut in_parts) = (0, from > 0);
        for message in outcome.messages() {
            messages += 1;
            if messages <= from {
                continue;
            }
            self.put(number, now, message)?;
            if self.batch.bytes() >= MAX_BATCH {
                in_parts = true;
                self.note_said(number, own, messages)?;
                self.commit()?;
            }
        }
        if in_parts {
            self.note_said(number, own, messages)?;
        }
        Ok(())
    }

    fn note_said(
        &mut self,
        number: u32,
        own: &mut OwnLane,
        messages: u64,
    ) -> Result<(), WorkerError> {
        let said = Prefix { number: own.lane.next_entry(), messages };
        let names = &self.work.names;
        journal::note_said(&mut self.batch, &names.journals.partition(number), said)?;
        set_positions(&mut self.batch, names, (number, &own.lane));
        Ok(())
    }

    fn put(&mut self, number: u32, now: Timestamp, message: Message) -> Result<(), WorkerError> {
        let (Names { topics, parts, .. }, batch) = (&self.work.names, &mut self.batch);
        match message {
            Message::Report(key, value) => {
                let summaries = topics.job.summaries.partition(0);
                append(batch, &summaries, now, (key.as_bytes(), &value))?;
            }
            Message::Part(part) => {
                let key = Part::key(&part.plan, part.start);
                let to = parts.partition(partition_for_key(&key, topics.partitions));
                append(batch, &to, now, (&key, &part.to_bytes()))?;
            }
            Message::Refused(record, reason) => {
                let from = topics.events.partition(number);
                bury(batch, &topics.job.dead_letters.partition(0), (&from, &record), reason)?;
            }
        }
        Ok(())
    }
}

/// Puts how far a lane has come into a batch: in its events, and as its journal's last number.
pub(super) fn set_positions(batch: &mut Batch, names: &Names, (number, lane): (u32, &Lane)) {
    let (step, group) = (lane.step(), &names.group);
    batch.set_position(group, &names.topics.events.partition(number), Offset(step.events));
    batch.set_position(group, &names.journals.partition(number), Offset(step.number));
}

pub(super) fn append(
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
