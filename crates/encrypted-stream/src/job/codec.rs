//! The encoding of the job's messages: version, kind, body. Numbers are big-endian, and
//! texts and lists follow their length.

use super::digest::WORDS;
use super::{
    Join, JoinAck, Opening, PlanEnd, PlanView, Progress, SetDigest, Summary, Tally, Token,
    WindowSum,
};
use crate::messages::{Segment, SegmentBorder};
use crate::transformer::IncompleteError;
use alpheus_crypto::mac::Tag;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Span, Timestamp};
use std::str::FromStr;

const VERSION: u8 = 1;
/// Takes the place of a reason if the stream is complete.
const COMPLETE: u8 = 255;
/// Maximum elements in a list. No valid list has more, and a false length must not use up
/// memory.
const MAX_ELEMENTS: usize = 1 << 20;
const MAX_BYTES: usize = 1 << 26;
/// Maximum tasks in a job, Flink's own limit.
const MAX_TASKS: u32 = 1 << 15;

/// Reasons in the order of their numbers.
const REASONS: [IncompleteError; 9] = [
    IncompleteError::Gap,
    IncompleteError::Duplicate,
    IncompleteError::BrokenChain,
    IncompleteError::MissingBorder,
    IncompleteError::SessionDied,
    IncompleteError::Offline,
    IncompleteError::OverCapacity,
    IncompleteError::WrongLength,
    IncompleteError::BeforePlan,
];

/// Why bytes are not a message of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobMessageError {
    /// The version is not supported.
    #[error(
        "the message has version {0}, which is not supported; run service and job of the same release"
    )]
    Version(u8),
    /// The kind does not belong to the topic.
    #[error("the message has kind {0}, which does not belong to this topic")]
    Kind(u8),
    /// The message ends too early.
    #[error("the message is truncated")]
    Truncated,
    /// A list exceeds the limit.
    #[error("a list in the message exceeds the maximum length")]
    TooLong,
    /// An id, a reason or a flag is invalid.
    #[error("the message has an invalid id, reason, flag or number")]
    Malformed,
    /// There are trailing bytes.
    #[error("the message has trailing bytes")]
    Trailing,
}

impl JobMessageError {
    /// A short name for counters and dead letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version(_) => "version",
            Self::Kind(_) => "kind",
            Self::Truncated => "truncated",
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::Trailing => "trailing",
        }
    }
}

/// A message to or from the job.
pub trait JobMessage: Sized {
    /// The number of the message's kind.
    const KIND: u8;

    /// Writes the body.
    #[doc(hidden)]
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the body.
    #[doc(hidden)]
    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError>;

    /// The message as a record of its topic.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, Self::KIND];
        self.write(&mut out);
        out
    }

    /// Reads a record of a topic.
    ///
    /// # Errors
    /// [`JobMessageError`] if the record is not a message of this kind.
    fn from_bytes(bytes: &[u8]) -> Result<Self, JobMessageError> {
        let mut input = Input(bytes);
        let (version, kind) = (input.u8()?, input.u8()?);
        if version != VERSION {
            return Err(JobMessageError::Version(version));
        }
        if kind != Self::KIND {
            return Err(JobMessageError::Kind(kind));
        }
        let message = Self::read(&mut input)?;
        if input.0.is_empty() { Ok(message) } else { Err(JobMessageError::Trailing) }
    }
}

/// The unread rest of a message.
#[doc(hidden)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], JobMessageError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(JobMessageError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u8(&mut self) -> Result<u8, JobMessageError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, JobMessageError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, JobMessageError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, JobMessageError> {
        self.array().map(u64::from_be_bytes)
    }

    fn time(&mut self) -> Result<Timestamp, JobMessageError> {
        self.u64().map(Timestamp)
    }

    fn flag(&mut self) -> Result<bool, JobMessageError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(JobMessageError::Malformed),
        }
    }

    fn length(&mut self, max: usize) -> Result<usize, JobMessageError> {
        let length = usize::try_from(self.u32()?).map_err(|_| JobMessageError::TooLong)?;
        if length > max { Err(JobMessageError::TooLong) } else { Ok(length) }
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], JobMessageError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(JobMessageError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// An id in lower-case hexadecimal digits.
    fn id<T: FromStr + ToString>(&mut self) -> Result<T, JobMessageError> {
        let length = usize::from(self.u16()?);
        let text =
            std::str::from_utf8(self.bytes(length)?).map_err(|_| JobMessageError::Malformed)?;
        let id = text.parse::<T>().map_err(|_| JobMessageError::Malformed)?;
        if id.to_string() == text { Ok(id) } else { Err(JobMessageError::Malformed) }
    }

    /// A list. Its memory grows with the bytes present, not with the stated length.
    fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, JobMessageError>,
    ) -> Result<Vec<T>, JobMessageError> {
        let length = self.length(MAX_ELEMENTS)?;
        let mut list = Vec::with_capacity(length.min(self.0.len()));
        for _ in 0..length {
            list.push(one(self)?);
        }
        Ok(list)
    }

    fn words(&mut self) -> Result<Vec<u64>, JobMessageError> {
        self.list(Self::u64)
    }

    fn digest(&mut self) -> Result<SetDigest, JobMessageError> {
        let words: Result<[u64; WORDS], _> = self.words()?.try_into();
        words.map(SetDigest).map_err(|_| JobMessageError::Malformed)
    }

    /// The positions in a bitmap, ascending; bit 0 is the lowest.
    fn positions(&mut self) -> Result<Vec<u32>, JobMessageError> {
        let length = self.length(MAX_BYTES)?;
        let bytes = (0u32..).zip(self.bytes(length)?);
        let of = |(at, byte): (u32, &u8)| {
            let byte = *byte;
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * at + bit)
        };
        Ok(bytes.flat_map(of).collect())
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    // No message is longer, since a plan's rows, streams and controllers are bounded.
    out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_id(out: &mut Vec<u8>, id: &impl ToString) {
    let text = id.to_string();
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    put_length(out, words.len());
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// As `java.util.BitSet` writes it: without zero bytes at the end.
fn put_positions(out: &mut Vec<u8>, positions: &[u32]) {
    let length = positions.iter().max().map_or(0, |last| last / 8 + 1) as usize;
    put_length(out, length);
    let from = out.len();
    out.resize(from + length, 0);
    for position in positions {
        if let Some(byte) = out.get_mut(from + (position / 8) as usize) {
            *byte |= 1 << (position % 8);
        }
    }
}

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

impl JobMessage for Summary {
    const KIND: u8 = 6;

    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, &self.stream);
        put_id(out, &self.plan);
        out.extend(self.start.0.to_be_bytes());
        out.extend(self.position.to_be_bytes());
        out.extend(self.check_sum.to_be_bytes());
        let number = |why| (0u8..).zip(REASONS).find(|(_, reason)| *reason == why);
        let why = self.judgement.as_ref().err().and_then(|why| number(*why));
        out.push(why.map_or(COMPLETE, |(number, _)| number));
        let segments = self.judgement.as_deref().unwrap_or_default();
        put_length(out, segments.len());
        segments.iter().for_each(|segment| put_segment(out, segment));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let (stream, plan, start) = (input.id()?, input.id()?, input.time()?);
        let (position, check_sum, why) = (input.u32()?, input.u64()?, input.u8()?);
        let segments = input.list(segment)?;
        let judgement = match REASONS.get(usize::from(why)) {
            Some(why) if segments.is_empty() => Err(*why),
            None if why == COMPLETE => Ok(segments),
            _ => return Err(JobMessageError::Malformed),
        };
        Ok(Summary { stream, plan, start, position, check_sum, judgement })
    }
}

fn put_segment(out: &mut Vec<u8>, segment: &Segment) {
    out.extend(segment.session.to_be_bytes());
    out.extend(segment.from.0.to_be_bytes());
    out.push(segment.opening.is_some().into());
    out.extend(segment.opening.map_or([0; 16], |tag| tag.0));
    put_length(out, segment.borders.len());
    for border in &segment.borders {
        out.extend(segment.session.to_be_bytes());
        out.extend(border.at.0.to_be_bytes());
        out.push(border.closing.into());
        out.extend(border.events.to_be_bytes());
        out.extend(border.tag.0);
    }
}

fn segment(input: &mut Input<'_>) -> Result<Segment, JobMessageError> {
    let (session, from) = (input.u64()?, input.time()?);
    let (opens, tag) = (input.flag()?, Tag(input.array()?));
    let border = |input: &mut Input<'_>| {
        if input.u64()? != session {
            return Err(JobMessageError::Malformed);
        }
        let (at, closing, events) = (input.time()?, input.flag()?, input.u64()?);
        Ok(SegmentBorder { at, closing, events, tag: Tag(input.array()?) })
    };
    let borders = input.list(border)?;
    Ok(Segment { session, from, opening: opens.then_some(tag), borders })
}

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
