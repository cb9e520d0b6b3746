//! Summaries of streams. Those of streams with one frame a tick have claims in place of segments.

use super::{Input, JobMessage, JobMessageError, put_id, put_length};
use crate::job::{Summary, TickSegments, TickSummary};
use crate::messages::{Segment, SegmentBorder};
use crate::tick::claim::{Claim, ClaimKind, RootPrefix};
use crate::transformer::IncompleteError;
use alpheus_crypto::mac::Tag;

/// Takes the place of a reason if the stream is complete.
const COMPLETE: u8 = 255;

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

/// Kinds of claims in the order of their numbers.
const CLAIMS: [ClaimKind; 5] = [
    ClaimKind::Opening,
    ClaimKind::Tick,
    ClaimKind::Gap,
    ClaimKind::ClosingTick,
    ClaimKind::ClosingGap,
];

impl JobMessage for Summary {
    const KIND: u8 = 6;

    fn write(&self, out: &mut Vec<u8>) {
        put_head(out, self);
        let segments = self.judgement.as_deref().unwrap_or_default();
        put_length(out, segments.len());
        segments.iter().for_each(|segment| put_segment(out, segment));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let head = Head::read(input)?;
        let segments = input.list(segment)?;
        let is_empty = segments.is_empty();
        head.summary(segments, is_empty)
    }
}

impl JobMessage for TickSummary {
    const KIND: u8 = 14;

    fn write(&self, out: &mut Vec<u8>) {
        put_head(out, self);
        let segments = self.judgement.as_ref().ok();
        let claims = segments.map_or(&[][..], |segments| &segments.claims);
        put_length(out, claims.len());
        for session in claims {
            put_length(out, session.len());
            session.iter().for_each(|claim| put_claim(out, claim));
        }
        let conflict = segments.and_then(|segments| segments.conflict.as_deref());
        out.push(conflict.is_some().into());
        conflict.into_iter().flatten().for_each(|claim| put_claim(out, claim));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, JobMessageError> {
        let head = Head::read(input)?;
        let claims = input.list(|session| session.list(claim))?;
        let conflict = match input.flag()? {
            true => Some(Box::new([claim(input)?, claim(input)?])),
            false => None,
        };
        let is_empty = claims.is_empty() && conflict.is_none();
        head.summary(TickSegments { claims, conflict }, is_empty)
    }
}

fn put_head<S>(out: &mut Vec<u8>, summary: &Summary<S>) {
    put_id(out, &summary.stream);
    put_id(out, &summary.plan);
    out.extend(summary.start.0.to_be_bytes());
    out.extend(summary.position.to_be_bytes());
    out.extend(summary.check_sum.to_be_bytes());
    let number = |why: &IncompleteError| (0u8..).zip(REASONS).find(|(_, reason)| reason == why);
    let why = summary.judgement.as_ref().err().and_then(number);
    out.push(why.map_or(COMPLETE, |(number, _)| number));
}

/// What all summaries start with; `Ok` in place of a reason.
struct Head(Summary<()>);

impl Head {
    fn read(input: &mut Input<'_>) -> Result<Head, JobMessageError> {
        let (stream, plan, start) = (input.id()?, input.id()?, input.time()?);
        let (position, check_sum, why) = (input.u32()?, input.u64()?, input.u8()?);
        let judgement = match REASONS.get(usize::from(why)) {
            Some(why) => Err(*why),
            None if why == COMPLETE => Ok(()),
            None => return Err(JobMessageError::Malformed),
        };
        Ok(Head(Summary { stream, plan, start, position, check_sum, judgement }))
    }

    /// With what the stream is complete by: nothing if it is not.
    fn summary<S>(self, segments: S, is_empty: bool) -> Result<Summary<S>, JobMessageError> {
        let Head(Summary { stream, plan, start, position, check_sum, judgement }) = self;
        let judgement = match judgement {
            Err(why) if is_empty => Err(why),
            Err(_) => return Err(JobMessageError::Malformed),
            Ok(()) => Ok(segments),
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

fn put_claim(out: &mut Vec<u8>, claim: &Claim) {
    let Claim { kind, session, from, to, masked_count, root, tag } = claim;
    let number = (0u8..).zip(CLAIMS).find(|(_, known)| known == kind);
    out.push(number.map_or(0, |(number, _)| number));
    for number in [*session, from.0, to.0, *masked_count] {
        out.extend(number.to_be_bytes());
    }
    out.extend(root.0);
    out.extend(tag.0);
}

fn claim(input: &mut Input<'_>) -> Result<Claim, JobMessageError> {
    let kind = CLAIMS.get(usize::from(input.u8()?)).copied();
    Ok(Claim {
        kind: kind.ok_or(JobMessageError::Malformed)?,
        session: input.u64()?,
        from: input.time()?,
        to: input.time()?,
        masked_count: input.u64()?,
        root: RootPrefix(input.array()?),
        tag: Tag(input.array()?),
    })
}
