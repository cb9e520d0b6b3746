//! S(b) of a session's ticks, kept for plans whose members check it: the sum since the last
//! anchor, and the sums at claims that open windows need.

use super::ticks::TickSessions;
use super::{IncompleteError, Shape, Status};
use crate::frame::Words;
use crate::messages::Segments;
use crate::tick::claim::Claim;
use crate::tick::parts::{NeededBlocks, PartialSum};
use crate::tick::segment::claims_with_sums;
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The sum of a session since its last anchor.
///
/// Frames count only in order. If one is missing, the sum is not what the device states until the
/// next anchor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunningSum {
    /// The end of the last frame in it.
    reached: Timestamp,
    words: Box<[u64]>,
    /// The sums at claims that windows need.
    kept: Vec<(Claim, Box<[u64]>)>,
}

/// How a frame counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The schema's anchor period.
    pub(super) anchor: Span,
    /// Number of words of an event.
    pub(super) words: u16,
    /// Whether an open window needs the sum at the frame's end.
    pub(super) kept: bool,
}

impl RunningSum {
    /// The sum of nothing, in a session that opens or passes an anchor at `at`.
    pub(super) fn starting_at(at: Timestamp, words: u16) -> Self {
        let words = vec![0; usize::from(words)].into();
        Self { reached: at, words, kept: Vec::new() }
    }

    /// Enters a frame of the session, in order of time. A gap has no words.
    pub(super) fn enter(
        known: &mut Option<Self>,
        claim: &Claim,
        words: Option<&Words<'_>>,
        entry: Entry,
    ) {
        let ends_period = claim.ends_period(entry.anchor);
        let Some(sum) = known else {
            if ends_period {
                *known = Some(Self::starting_at(claim.to, entry.words));
            }
            return;
        };
        if claim.to <= sum.reached {
            // It came before.
            return;
        }
        sum.reached = claim.to;
        let added = words.into_iter().flat_map(|words| words.iter());
        sum.words.iter_mut().zip(added).for_each(|(own, word)| *own = own.wrapping_add(word));
        if entry.kept || ends_period || claim.kind.is_closing() {
            sum.kept.push((*claim, sum.words.clone()));
        }
        if ends_period {
            sum.words.fill(0);
        }
    }

    /// The sum at a claim.
    fn at(&self, claim: &Claim, anchor: Span) -> Option<&[u64]> {
        let kept = self.kept.iter().find(|(kept, _)| kept == claim).map(|(_, words)| &**words);
        // A session that died ends at its last frame, whatever that is.
        let last = self.reached == claim.to && !claim.ends_period(anchor);
        kept.or_else(|| last.then_some(&*self.words))
    }

    /// Drops the sums at claims that no open window needs.
    pub(super) fn settle(&mut self, needed: impl Fn(&Claim) -> bool) {
        self.kept.retain(|(claim, _)| needed(claim));
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let each = size_of::<(Claim, Box<[u64]>)>();
        let kept: usize = self.kept.iter().map(|(_, words)| 8 * words.len()).sum();
        8 * self.words.len() + kept + self.kept.capacity() * each
    }
}

/// Adds the parts of sums that a complete stream's controller needs. A sum that is not what the
/// device states is of no use to it: a frame of it was lost.
pub(super) fn prove(
    status: Status,
    sessions: Option<&TickSessions>,
    shape: &Shape,
    needed: &NeededBlocks,
) -> Status {
    let Status::Complete(mut stream) = status else { return status };
    let unknown = Status::Incomplete(IncompleteError::SumUnknown);
    let (Some(sessions), Some(anchor)) = (sessions, shape.frames.anchor()) else { return unknown };
    let Segments::OfTicks { claims, sums, .. } = &mut stream.segments else { return unknown };
    let of_claim = |claim: &Claim| -> Option<PartialSum> {
        let sum = sessions.session(claim.session)?.sum()?.at(claim, anchor)?;
        let (part, root) = needed.part(sum);
        (root == claim.root).then_some(part)
    };
    let of_session = |claims: &Vec<Claim>| {
        let wanted = claims_with_sums(claims, anchor).into_iter();
        wanted.map(|(claim, _)| of_claim(claim)).collect::<Option<Vec<_>>>()
    };
    match claims.iter().map(of_session).collect() {
        Some(found) => *sums = found,
        None => return unknown,
    }
    Status::Complete(stream)
}
