//! Messages of the job on its progress, and its sums.

use super::{Input, JobMessage, JobMessageError, put_id, put_words};
use crate::job::{JoinAck, Progress, Tally, WindowSum};

/// Maximum tasks in a job, Flink's own limit.
const MAX_TASKS: u32 = 1 << 15;

impl JobMessage for JoinAck {
    const KIND: u8 = 13;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.stream);
        put_id(out, &self.plan);
        out.extend(self.position.to_be_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        Ok(JoinAck { stream: input.id()?, plan: input.id()?, position: input.u32()? })
    }
}

impl JobMessage for Progress {
    const KIND: u8 = 12;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.task.to_be_bytes());
        out.extend(self.tasks.to_be_bytes());
        out.extend(self.time.0.to_be_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let (task, tasks, time) = (input.u32()?, input.u32()?, input.time()?);
        if task >= tasks || tasks > MAX_TASKS {
            return Err(JobMessageError::Malformed);
        }
        Ok(Progress { task, tasks, time })
    }
}

impl JobMessage for WindowSum {
    const KIND: u8 = 10;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.plan);
        out.extend(self.start.0.to_be_bytes());
        for tally in [&self.streams, &self.controllers] {
            out.extend(tally.count.to_be_bytes());
            put_words(out, &tally.digest.0);
        }
        put_words(out, &self.ciphertexts);
        put_words(out, &self.tokens);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let (plan, start) = (input.id()?, input.time()?);
        let mut tally = || Ok(Tally { count: input.u64()?, digest: input.digest()? });
        let (streams, controllers) = (tally()?, tally()?);
        let (ciphertexts, tokens) = (input.words()?, input.words()?);
        Ok(WindowSum { plan, start, streams, controllers, ciphertexts, tokens })
    }
}
