//! What the service says, in one order: plans and their streams, opening sets, devices.

use alpheus_encrypted_stream::job::{DeviceNote, JobMessage, Join, Opening, PlanEnd, PlanView};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::Timestamp;
use alpheus_transport::{Error, Limits, Offset, Partition, Record, Store};
use std::collections::VecDeque;
use std::sync::Arc;

/// An instruction.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// A plan runs.
    Start(Arc<PlanView>),
    /// A stream is in a plan.
    Join {
        /// The stream.
        stream: StreamId,
        /// The plan.
        plan: PlanId,
        /// The stream's position in it.
        position: u32,
    },
    /// A plan has ended.
    End(PlanId),
    /// The sets that a window opens over.
    Opening(Arc<Opening>),
    /// The device of a stream.
    Device(DeviceNote),
}

impl Instruction {
    /// Reads a record; none if it is not an instruction.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Instruction> {
        let kind = *bytes.get(1)?;
        match kind {
            PlanView::KIND => {
                PlanView::from_bytes(bytes).ok().map(|view| Instruction::Start(view.into()))
            }
            Join::KIND => Join::from_bytes(bytes).ok().map(|join| {
                let Join { stream, plan, position } = join;
                Instruction::Join { stream, plan: plan.plan, position }
            }),
            PlanEnd::KIND => PlanEnd::from_bytes(bytes).ok().map(|end| Instruction::End(end.plan)),
            Opening::KIND => {
                Opening::from_bytes(bytes).ok().map(|set| Instruction::Opening(set.into()))
            }
            DeviceNote::KIND => DeviceNote::from_bytes(bytes).ok().map(Instruction::Device),
            _ => None,
        }
    }
}

/// Why instructions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// Some of them are not there.
    #[error("{partition} no longer has the records from {from} to {to}")]
    Missing {
        /// The partition.
        partition: Partition,
        /// The first record that is missing.
        from: Offset,
        /// What was to be read before.
        to: Offset,
    },
}

/// An instruction in its topic.
#[derive(Clone, Debug)]
pub struct InstructionRecord {
    /// Where it is.
    pub offset: Offset,
    /// Its record's time: of an opening set that of its window's end.
    pub at: Timestamp,
    /// What it says.
    pub instruction: Instruction,
}

impl InstructionRecord {
    /// Reads a record; none if it is not an instruction, which is logged.
    #[must_use]
    pub fn read(record: &Record) -> Option<InstructionRecord> {
        let (offset, at) = (record.offset, Timestamp(record.timestamp));
        let instruction = Instruction::read(&record.value);
        if instruction.is_none() {
            tracing::warn!(%offset, "not an instruction");
        }
        Some(InstructionRecord { offset, at, instruction: instruction? })
    }
}

/// The topic of instructions, as far as it was read. Instructions that all lanes have in their snapshots are read
/// again when somebody needs them.
pub struct Instructions {
    topic: Partition,
    /// Where the kept ones begin.
    from: Offset,
    /// Where the next one will be.
    next: Offset,
    kept: VecDeque<InstructionRecord>,
}

impl Instructions {
    /// Reads the topic from its end on. Earlier instructions are read when they are requested.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(store: &dyn Store, topic: Partition) -> Result<Instructions, Error> {
        let end = store.bounds(&topic)?.end;
        Ok(Instructions { topic, from: end, next: end, kept: VecDeque::new() })
    }

    /// Where the next instruction will be.
    #[must_use]
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Reads new ones.
    ///
    /// # Errors
    /// The store's error.
    pub fn update(&mut self, store: &dyn Store) -> Result<(), Error> {
        loop {
            let fetched = store.read(&self.topic, self.next, Limits::default())?;
            let next = fetched.next_offset();
            if next == self.next {
                return Ok(());
            }
            self.kept.extend(fetched.filter_map(|record| InstructionRecord::read(&record)));
            self.next = next;
        }
    }

    /// Forgets those before an offset.
    pub fn forget_before(&mut self, before: Offset) {
        while self.kept.front().is_some_and(|received| received.offset < before) {
            self.kept.pop_front();
        }
        self.from = self.from.max(before.min(self.next));
    }

    /// Gives those from `from` to `to`, in order.
    ///
    /// # Errors
    /// The store's error. [`ReadError::Missing`] if not all of them are there.
    pub fn between(
        &self,
        store: &dyn Store,
        (from, to): (Offset, Offset),
        each: &mut dyn FnMut(&InstructionRecord),
    ) -> Result<(), ReadError> {
        if to > self.next {
            let (partition, from) = (self.topic.clone(), self.next);
            return Err(ReadError::Missing { partition, from, to });
        }
        let (mut at, end) = (from, self.from.min(to));
        while at < end {
            at = self.slice(store, (at, end), each)?;
        }
        let begin = self.kept.partition_point(|received| received.offset < from);
        self.kept.range(begin..).take_while(|received| received.offset < to).for_each(each);
        Ok(())
    }

    /// Reads some of those from `from` to `to` from the topic. Returns where the next one is.
    ///
    /// # Errors
    /// As [`Instructions::between`].
    pub fn slice(
        &self,
        store: &dyn Store,
        (from, to): (Offset, Offset),
        each: &mut dyn FnMut(&InstructionRecord),
    ) -> Result<Offset, ReadError> {
        let start = store.bounds(&self.topic)?.start;
        let missing = || ReadError::Missing { partition: self.topic.clone(), from, to };
        // Nobody may delete them: who passed one over would sum something else.
        if from < start {
            return Err(missing());
        }
        let fetched = store.read(&self.topic, from, Limits::default())?;
        let next = fetched.next_offset();
        if next == from && from < to {
            return Err(missing());
        }
        let before = fetched.filter(|record| record.offset < to);
        before
            .filter_map(|record| InstructionRecord::read(&record))
            .for_each(|received| each(&received));
        Ok(next.min(to))
    }
}
