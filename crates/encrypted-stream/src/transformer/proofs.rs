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
use std::sync::OnceLock;

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
    kept: Vec<KeptSum>,
}

/// The sum at a claim.
#[derive(Debug, Serialize, Deserialize)]
struct KeptSum {
    claim: Claim,
    words: Box<[u64]>,
    /// The last part that was made of it, if its root is the claim's: a window ends where the next one
    /// begins, and both need the same.
    #[serde(skip)]
    proven: OnceLock<(Vec<usize>, PartialSum)>,
}

impl KeptSum {
    /// The blocks that a plan needs, if the sum is what the device states.
    fn part(&self, needed: &NeededBlocks) -> Option<PartialSum> {
        if let Some((_, part)) = self.proven.get().filter(|(of, _)| of == needed.indices()) {
            return Some(part.clone());
        }
        let part = checked_part(&self.words, &self.claim, needed)?;
        // Another plan's part may be there already. Then that one stays.
        let _ = self.proven.set((needed.indices().to_vec(), part.clone()));
        Some(part)
    }

    fn heap(&self) -> usize {
        let proven = self.proven.get().map_or(0, |(indices, part)| {
            size_of_val(&indices[..]) + 8 * part.words.len() + size_of_val(&part.path[..])
        });
        8 * self.words.len() + proven
    }
}

/// The blocks of a sum that a plan needs, if the device states its root.
fn checked_part(sum: &[u64], claim: &Claim, needed: &NeededBlocks) -> Option<PartialSum> {
    let (part, root) = needed.part(sum);
    (root == claim.root).then_some(part)
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
            let (claim, words) = (*claim, sum.words.clone());
            sum.kept.push(KeptSum { claim, words, proven: OnceLock::new() });
        }
        if ends_period {
            sum.words.fill(0);
        }
    }

    /// The part of the sum at a claim that a plan needs, if the sum is what the device states there.
    fn part(&self, claim: &Claim, anchor: Span, needed: &NeededBlocks) -> Option<PartialSum> {
        if let Some(kept) = self.kept.iter().find(|kept| kept.claim == *claim) {
            return kept.part(needed);
        }
        // A session that died ends at its last frame, whatever that is.
        let last = self.reached == claim.to && !claim.ends_period(anchor);
        last.then(|| checked_part(&self.words, claim, needed)).flatten()
    }

    /// Drops the sums at claims that no open window needs.
    pub(super) fn settle(&mut self, needed: impl Fn(&Claim) -> bool) {
        self.kept.retain(|kept| needed(&kept.claim));
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let each = size_of::<KeptSum>();
        let kept: usize = self.kept.iter().map(KeptSum::heap).sum();
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
        sessions.session(claim.session)?.sum()?.part(claim, anchor, needed)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick::claim::ClaimKind;
    use crate::tick::sums::{Blocks, prefix};
    use alpheus_crypto::mac::Tag;
    use alpheus_policy::plan::Release;

    /// A kept sum whose part was made for one plan gives every plan its own, and none if the device
    /// states another root.
    #[test]
    fn each_plan_gets_its_own_part_of_a_kept_sum() {
        let blocks = Blocks::of_lengths(&[8, 3, 1]);
        let words: Vec<u64> = (0..12).map(|word| 1000 + word * word).collect();
        let root = prefix(&blocks.root(&words));
        let kept = |root| {
            let (from, to, tag) = (Timestamp(0), Timestamp(1), Tag([0; 16]));
            let kind = ClaimKind::Tick;
            let claim = Claim { kind, session: 1, from, to, masked_count: 0, root, tag };
            KeptSum { claim, words: words.clone().into(), proven: OnceLock::new() }
        };
        let needed =
            |word| NeededBlocks::of(&blocks, &Release { rows: vec![vec![word], vec![11]] });
        let (plans, kept, lost) = ([needed(0), needed(9)], kept(root), kept(Default::default()));
        for plan in plans.iter().chain(&plans) {
            assert_eq!(kept.part(plan), Some(plan.part(&words).0));
            assert_eq!(lost.part(plan), None);
        }
    }
}
