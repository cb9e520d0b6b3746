//! The sessions of a stream with one frame a tick.
//!
//! A frame's words go into the windows of running plans at once. The transformer keeps the opening of each
//! session, the times that have come, and the claims that segments need.

use super::IngestError;
use super::proofs::{Entry, RunningSum};
use super::session::{End, Interest};
use crate::frame::Words;
use crate::keys::DAY;
use crate::tick::claim::{Claim, ClaimKind};
use crate::tick::frame::TickFrame;
use alpheus_crypto::mac::Tag;
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Number of sessions for which a stream may have open windows, besides one for each day
/// that they span.
const MAX_SESSIONS: usize = 64;
/// Number of gaps kept of a session.
const MAX_GAPS: usize = 1024;
/// Number of separate times that have come of a session.
const MAX_SPANS: usize = 256;
/// Number of sessions kept of which nothing but the opening has come.
const MAX_IDLE: usize = 4;
/// Number of pairs of claims for one border that are kept of a session.
const CONFLICTS: usize = 4;
/// Number of latest frames that are kept to tell a repeated one from another.
const RECENT: usize = 4;

/// What running plans need of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) interest: Interest,
    /// An open window starts at the frame's end, and all before it are closed.
    pub(super) starts: bool,
    /// A window starts or ends at the frame's end, or an anchor lies in its time.
    pub(super) cuts: bool,
    /// The stream is in a plan.
    pub(super) planned: bool,
}

/// What a frame is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickUse {
    /// Its words count.
    Counts,
    /// Its window is closed, but the next one starts with its claim.
    Starts,
}

/// The sessions of a stream, in the order in which they opened.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct TickSessions(Vec<TickSession>);

/// One session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TickSession {
    opening: Claim,
    /// The opening's frame. The session's key in it is sealed.
    frame: Box<[u8]>,
    partition: u32,
    end: End,
    /// Whether anything but its opening has come. Until then the session before stays open.
    started: bool,
    /// The end of its latest frame.
    latest: Timestamp,
    /// Nothing up to here is taken any more.
    settled: Timestamp,
    /// Times after that which have come, ascending and apart.
    come: Vec<Window>,
    /// What segments need, ascending.
    claims: Vec<Claim>,
    /// The latest frames, with their MACs.
    recent: Vec<(Claim, Tag)>,
    /// Pairs of claims for one border, the latest last. Whether both are the device's only its controller
    /// can tell, so one pair may not keep out the others.
    conflicts: VecDeque<[Claim; 2]>,
    /// Its sum, as far as verified plans need it.
    sum: Option<RunningSum>,
}

impl TickSessions {
    /// Opens a session, which changes nothing for the others. `needed` is whether plans need
    /// earlier sessions, and `proves` the number of an event's words, if its sums are needed.
    pub(super) fn open(
        &mut self,
        opening: Claim,
        frame: &[u8],
        partition: u32,
        (needed, proves): (bool, Option<u16>),
    ) -> Result<(), IngestError> {
        let (id, at) = (opening.session, opening.to);
        if self.0.iter().any(|session| session.opening.session == id) {
            return Err(IngestError::SessionKnown);
        }
        if self.0.iter().any(|session| session.started && at < session.latest) {
            return Err(IngestError::Backdated);
        }
        if !needed {
            self.0.retain(|session| session.end == End::Running);
        }
        // At midnight the next session opens before the last frame of the one that ends.
        let idle = self.0.iter().filter(|session| !session.started).count();
        if idle >= MAX_IDLE
            && let Some(oldest) = self.0.iter().position(|session| !session.started)
        {
            self.0.remove(oldest);
        }
        let days = self.0.first().map_or(0, |first| at.0.saturating_sub(first.opening.to.0) / DAY);
        let most = MAX_SESSIONS.saturating_add(usize::try_from(days).unwrap_or(usize::MAX));
        if self.0.len() >= most {
            return Err(IngestError::TooManySessions);
        }
        self.0.push(TickSession {
            opening,
            frame: frame.into(),
            partition,
            end: End::Running,
            started: false,
            latest: at,
            settled: at,
            come: Vec::new(),
            claims: Vec::new(),
            recent: Vec::new(),
            conflicts: VecDeque::new(),
            sum: proves.map(|words| RunningSum::starting_at(at, words)),
        });
        Ok(())
    }

    /// Takes a tick or a gap.
    pub(super) fn take(
        &mut self,
        claim: &Claim,
        mac: Tag,
        needs: Needs,
    ) -> Result<TickUse, IngestError> {
        let own = self.0.iter().position(|session| session.id() == claim.session);
        let Some(own) = own else {
            let is_late = needs.interest == Interest::Late;
            return Err(if is_late { IngestError::Late } else { IngestError::UnknownSession });
        };
        let Some(session) = self.0.get_mut(own) else { return Err(IngestError::UnknownSession) };
        let is_first = !session.started;
        let taken = session.take(claim, mac, needs)?;
        if is_first {
            // The stream's earlier sessions have died where this one opened. Those of which
            // nothing came are given up.
            let opened = session.opening.to;
            let mut place = 0;
            self.0.retain_mut(|session| {
                place += 1;
                let is_earlier = place <= own;
                if is_earlier && session.end == End::Running {
                    session.end = End::Replaced(opened);
                }
                session.started || !is_earlier
            });
        }
        Ok(taken)
    }

    /// Enters a frame into its session's sum; without an entry, no plan needs the sum.
    pub(super) fn sum_up(
        &mut self,
        claim: &Claim,
        words: Option<&Words<'_>>,
        entry: Option<Entry>,
    ) {
        let own = self.0.iter_mut().find(|session| session.id() == claim.session);
        let Some(session) = own else { return };
        match entry {
            Some(entry) => RunningSum::enter(&mut session.sum, claim, words, entry),
            None => session.sum = None,
        }
    }

    /// Drops the sums at claims that are not needed.
    pub(super) fn settle_sums(&mut self, needed: impl Fn(&Claim) -> bool) {
        self.0
            .iter_mut()
            .filter_map(|session| session.sum.as_mut())
            .for_each(|s| s.settle(&needed));
    }

    /// The partition of a running session.
    pub(super) fn open_partition(&self) -> Option<u32> {
        let running = self.0.iter().rev().find(|session| session.end == End::Running);
        running.map(|session| session.partition)
    }

    /// The first time at or after `start` at which the stream is online. A session that died
    /// keeps its stream online until the next one starts.
    pub(super) fn online_from(&self, start: Timestamp) -> Option<Timestamp> {
        let reaches = |session: &&TickSession| match session.end {
            End::Running => true,
            End::Closed(last) | End::Replaced(last) => last > start,
        };
        self.0.iter().find(reaches).map(|session| session.opening.to.max(start))
    }

    /// The last border of a session, if the opening of a later one names it. The device states
    /// what it remembers; that proves nothing.
    pub(super) fn stated_end(&self, id: u64, tick: Span) -> Option<Timestamp> {
        let previous = |session: &TickSession| match TickFrame::parse(&session.frame, tick) {
            Ok(TickFrame::Opening(opening)) => opening.head.previous,
            _ => None,
        };
        let mut named = self.0.iter().filter_map(previous);
        named.find(|(session, _)| *session == id).map(|(_, last)| last)
    }

    /// The opening of a session, as it came.
    pub(super) fn opening(&self, id: u64) -> Option<&[u8]> {
        self.session(id).map(|session| &*session.frame)
    }

    /// The session with this number.
    pub(super) fn session(&self, id: u64) -> Option<&TickSession> {
        self.0.iter().find(|session| session.id() == id)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &TickSession> {
        self.0.iter()
    }

    /// Drops everything before `horizon`, and claims that are not needed.
    pub(super) fn settle(&mut self, horizon: Timestamp, needed: impl Fn(&Claim) -> bool) {
        self.0.iter_mut().for_each(|session| session.settle(horizon, &needed));
        let over = |session: &TickSession| match session.end {
            End::Running => false,
            End::Closed(last) | End::Replaced(last) => last <= horizon,
        };
        // The last session stays: a new one must not open in its past.
        let last = self.0.len().saturating_sub(1);
        let mut i = 0;
        self.0.retain(|session| {
            i += 1;
            i > last || !over(session)
        });
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let sessions = self.0.iter().map(|session| {
            session.frame.len()
                + session.come.capacity() * size_of::<Window>()
                + session.claims.capacity() * size_of::<Claim>()
                + session.recent.capacity() * size_of::<(Claim, Tag)>()
                + session.sum.as_ref().map_or(0, RunningSum::heap)
        });
        sessions.sum::<usize>() + self.0.capacity() * size_of::<TickSession>()
    }
}

impl TickSession {
    pub(super) fn id(&self) -> u64 {
        self.opening.session
    }

    /// The claim of its opening.
    pub(super) fn opening(&self) -> &Claim {
        &self.opening
    }

    /// Two different claims for one border each: the latest pairs.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = &[Claim; 2]> {
        self.conflicts.iter()
    }

    /// The end of its latest frame, or where it opened.
    pub(super) fn latest(&self) -> Timestamp {
        self.latest
    }

    /// Its sum, as far as it is kept.
    pub(super) fn sum(&self) -> Option<&RunningSum> {
        self.sum.as_ref()
    }

    /// How it ended.
    pub(super) fn end(&self) -> End {
        self.end
    }

    /// The claims that are kept for segments, ascending.
    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The claim that ends at a border, as far as it is kept.
    pub(super) fn claim_at(&self, to: Timestamp) -> Option<&Claim> {
        let kept = self.claims.iter().find(|claim| claim.to == to);
        kept.or_else(|| self.recent.iter().map(|(claim, _)| claim).find(|claim| claim.to == to))
    }

    /// The time that has come, without a gap, and includes the tick that ends at `end`.
    pub(super) fn come(&self, end: Timestamp) -> Option<Window> {
        self.come.iter().find(|span| span.start < end && end <= span.end).copied()
    }

    fn take(&mut self, claim: &Claim, mac: Tag, needs: Needs) -> Result<TickUse, IngestError> {
        if claim.from < self.opening.to {
            return Err(IngestError::BeforeOpening);
        }
        let span = Window { start: claim.from, end: claim.to };
        let met = self.come.iter().find(|come| come.overlaps(span));
        if let Some(met) = met {
            let inside = met.start <= span.start && span.end <= met.end;
            return Err(self.repeated(claim, mac, inside));
        }
        let over = matches!(self.end, End::Closed(last) | End::Replaced(last) if claim.to > last);
        if over || (claim.kind.is_closing() && claim.to < self.latest) {
            return Err(IngestError::SessionEnded);
        }
        let taken = match needs.interest {
            Interest::Late if needs.starts => TickUse::Starts,
            Interest::Late => return Err(IngestError::Late),
            _ if claim.to <= self.settled => return Err(IngestError::Frozen),
            _ => TickUse::Counts,
        };
        let kept = needs.cuts || claim.kind.is_gap() || claim.kind.is_closing();
        if claim.kind == ClaimKind::Gap {
            // Other claims are as many as open windows, or anchors in them.
            let gaps = self.claims.iter().filter(|known| known.kind.is_gap()).count();
            if gaps >= MAX_GAPS {
                return Err(IngestError::TooManyGaps);
            }
        }
        if !needs.planned {
            // A plan that starts now needs what its first window starts with.
            self.claims.clear();
        }
        self.add(span);
        if kept || !needs.planned {
            let place = self.claims.partition_point(|known| known.to < claim.to);
            self.claims.insert(place, *claim);
        }
        if self.recent.len() >= RECENT {
            self.recent.remove(0);
        }
        self.recent.push((*claim, mac));
        self.latest = self.latest.max(claim.to);
        self.started = true;
        if claim.kind.is_closing() {
            self.end = End::Closed(claim.to);
        }
        Ok(taken)
    }

    /// A frame for a time that has come: the same again, or another one.
    fn repeated(&mut self, claim: &Claim, mac: Tag, inside: bool) -> IngestError {
        if self.recent.iter().any(|(known, own)| known.to == claim.to && *own == mac) {
            return IngestError::Frozen;
        }
        let recent = self.recent.iter().any(|(known, _)| known.to == claim.to);
        match self.claim_at(claim.to).copied() {
            Some(known) if known.tag != claim.tag => {
                let pair = [known, *claim];
                if !self.conflicts.contains(&pair) {
                    if self.conflicts.len() >= CONFLICTS {
                        self.conflicts.pop_front();
                    }
                    self.conflicts.push_back(pair);
                }
                IngestError::Conflicting
            }
            // The same claim over other words.
            Some(_) if recent => IngestError::Conflicting,
            Some(_) => IngestError::Frozen,
            None if inside => IngestError::Frozen,
            None => IngestError::Conflicting,
        }
    }

    /// Notes that a time has come.
    fn add(&mut self, span: Window) {
        let place = self.come.partition_point(|known| known.end < span.start);
        let end = self.come.partition_point(|known| known.start <= span.end);
        let merged = self.come.get(place..end).unwrap_or_default();
        let start = merged.first().map_or(span.start, |first| first.start.min(span.start));
        let last = merged.last().map_or(span.end, |last| last.end.max(span.end));
        self.come.splice(place..end, [Window { start, end: last }]);
        if self.come.len() > MAX_SPANS {
            // Give up what is missing before the oldest.
            let oldest = self.come.remove(0);
            self.settled = self.settled.max(oldest.end);
        }
    }

    fn settle(&mut self, horizon: Timestamp, needed: impl Fn(&Claim) -> bool) {
        self.come.retain(|span| span.end > horizon);
        self.claims.retain(|claim| claim.to >= horizon && needed(claim));
        self.settled = self.settled.max(horizon);
    }
}

/// Whether a segment needs a claim that is neither its first nor its last.
pub(super) fn between(claim: &Claim, anchor: Span) -> bool {
    claim.kind.is_gap() || claim.kind == ClaimKind::ClosingTick || claim.ends_period(anchor)
}
