//! What the service says, in one order: plans and their streams, opening sets, devices.

use alpheus_encrypted_stream::job::{DeviceNote, JobMessage, Join, Opening, PlanEnd, PlanView};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_transport::{Error, Limits, Offset, Partition, Store};
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

/// The topic of instructions, as far as it was read. What all lanes have in their snapshots is read again
/// when somebody needs it.
pub struct Instructions {
    topic: Partition,
    /// Where the kept ones begin.
    from: Offset,
    /// Where the next one will be.
    next: Offset,
    kept: VecDeque<(Offset, Instruction)>,
}

impl Instructions {
    /// Reads the topic from its end on. What was before is read when it is asked for.
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
        let (mut new, start) = (Vec::new(), self.next);
        self.next = read(store, &self.topic, start, None, &mut |at, instruction| {
            new.push((at, instruction));
        })?;
        self.kept.extend(new);
        Ok(())
    }

    /// Forgets those before an offset.
    pub fn forget_before(&mut self, before: Offset) {
        while self.kept.front().is_some_and(|(at, _)| *at < before) {
            self.kept.pop_front();
        }
        self.from = self.from.max(before.min(self.next));
    }

    /// Gives those from `from` to `to`, in order.
    ///
    /// # Errors
    /// The store's error.
    pub fn between(
        &self,
        store: &dyn Store,
        (from, to): (Offset, Offset),
        each: &mut dyn FnMut(&Instruction),
    ) -> Result<(), Error> {
        if from < self.from && from < to {
            let end = self.from.min(to);
            read(store, &self.topic, from, Some(end), &mut |_, instruction| each(&instruction))?;
        }
        let begin = self.kept.partition_point(|(at, _)| *at < from);
        let kept = self.kept.range(begin..).take_while(|(at, _)| *at < to);
        kept.for_each(|(_, instruction)| each(instruction));
        Ok(())
    }
}

/// Reads instructions from an offset to another, or to the end. Returns where it ended.
fn read(
    store: &dyn Store,
    topic: &Partition,
    from: Offset,
    to: Option<Offset>,
    each: &mut dyn FnMut(Offset, Instruction),
) -> Result<Offset, Error> {
    let mut at = from.max(if to.is_some() { store.bounds(topic)?.start } else { from });
    while to.is_none_or(|to| at < to) {
        let fetched = store.read(topic, at, Limits::default())?;
        let next = fetched.next_offset();
        if next == at {
            break;
        }
        for record in fetched.filter(|record| to.is_none_or(|to| record.offset < to)) {
            match Instruction::read(&record.value) {
                Some(instruction) => each(record.offset, instruction),
                None => tracing::warn!(offset = %record.offset, "not an instruction"),
            }
        }
        at = next;
    }
    Ok(at)
}
