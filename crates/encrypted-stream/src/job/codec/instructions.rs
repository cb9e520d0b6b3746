//! Messages to the job.

use super::{Input, JobMessage, JobMessageError, put_id, put_length, put_positions, put_words};
use crate::job::{DeviceNote, Join, Opening, PlanEnd, PlanView, Token};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::Span;

impl JobMessage for PlanView {
    const KIND: u8 = 3;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.plan);
        for number in [self.window.0, self.grace.0, self.from.0] {
            out.extend(number.to_be_bytes());
        }
        out.extend(self.gaps.to_be_bytes());
        put_length(out, self.rows.len());
        for row in &self.rows {
            put_length(out, row.len());
            row.iter().for_each(|word| out.extend(word.to_be_bytes()));
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        Ok(PlanView {
            plan: input.id::<PlanId>()?,
            window: Span(input.u64()?),
            grace: Span(input.u64()?),
            from: input.time()?,
            gaps: input.u32()?,
            rows: input.list(|row| row.list(Input::u16))?,
        })
    }
}

impl JobMessage for Join {
    const KIND: u8 = 2;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.stream);
        self.plan.write(out);
        out.extend(self.position.to_be_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let (stream, plan) = (input.id::<StreamId>()?, PlanView::read(input)?);
        Ok(Join { stream, plan, position: input.u32()? })
    }
}

impl JobMessage for PlanEnd {
    const KIND: u8 = 4;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.plan);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        Ok(PlanEnd { plan: input.id()? })
    }
}

impl JobMessage for Opening {
    const KIND: u8 = 5;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.plan);
        out.extend(self.start.0.to_be_bytes());
        put_positions(out, &self.streams);
        put_words(out, &self.stream_digest.0);
        put_positions(out, &self.controllers);
        put_words(out, &self.token_digest.0);
        out.push(self.masked.into());
        out.extend(self.rows.to_be_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        Ok(Opening {
            plan: input.id()?,
            start: input.time()?,
            streams: input.positions()?,
            stream_digest: input.digest()?,
            controllers: input.positions()?,
            token_digest: input.digest()?,
            masked: input.flag()?,
            rows: input.u32()?,
        })
    }
}

impl JobMessage for Token {
    const KIND: u8 = 9;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.plan);
        out.extend(self.start.0.to_be_bytes());
        out.extend(self.controller.to_be_bytes());
        out.push(self.opens.into());
        put_words(out, &self.rows);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        Ok(Token {
            plan: input.id()?,
            start: input.time()?,
            controller: input.u32()?,
            opens: input.flag()?,
            rows: input.words()?,
        })
    }
}

impl JobMessage for DeviceNote {
    const KIND: u8 = 15;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.stream);
        out.extend(self.certificate.as_bytes());
        out.extend(self.key.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let (stream, certificate) = (input.id()?, Digest(input.array()?));
        let key = VerifyingKey::from_bytes(input.array()?);
        Ok(DeviceNote { stream, certificate, key: key.map_err(|_| JobMessageError::Malformed)? })
    }
}
