//! One stream: its sessions in order of time.

use super::plan::Plans;
use super::proofs::Entry;
use super::session::{End, Event, FrozenTick, Interest, Session, tick_of};
use super::ticks::{Needs, TickSession, TickSessions, TickUse, between};
use super::{IncompleteError, IngestError, Shape};
use crate::frame::Words;
use crate::keys::DAY;
use crate::tick::claim::Claim;
use crate::tick::ingest::AuthenticFrame;
use alpheus_crypto::mac::Tag;
use alpheus_policy::ids::StreamId;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Number of sessions for which a stream may have open windows, besides one for each day
/// that they span.
const MAX_SESSIONS: usize = 64;

/// A stream's position in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Membership {
    /// The plan's slot.
    pub(super) slot: u32,
    /// The stream's position in the plan.
    pub(super) position: u32,
}

/// The state of a stream. Its sessions follow each other: none extends past the opening of
/// the next, so no tick is covered twice.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    /// Stored inline if there is one, which is nearly always the case. So for a stream that
    /// has left the caches, the sum is only a fetch or two away.
    sessions: SmallVec<[Session; 1]>,
    /// The sessions of a schema with one frame a tick; then there are no others.
    ticks: Option<Box<TickSessions>>,
    memberships: Box<[Membership]>,
}

impl Stream {
    pub(super) fn new(id: StreamId) -> Stream {
        Stream { id, sessions: SmallVec::new(), ticks: None, memberships: Box::default() }
    }

    pub(super) fn memberships(&self) -> &[Membership] {
        &self.memberships
    }

    pub(super) fn join(&mut self, slot: u32, position: u32) {
        let joined = [Membership { slot, position }];
        self.memberships = self.memberships.iter().copied().chain(joined).collect();
    }

    pub(super) fn leave(&mut self, slot: u32) {
        let others = self.memberships.iter().filter(|membership| membership.slot != slot);
        self.memberships = others.copied().collect();
    }

    /// The partition of its running session.
    pub(super) fn open_partition(&self) -> Option<u32> {
        if let Some(ticks) = &self.ticks {
            return ticks.open_partition();
        }
        let running = self.sessions.last().filter(|session| session.end == End::Running);
        running.map(|session| session.partition)
    }

    /// The latest time that its running session has reached; none if it is offline. A plan
    /// must need it.
    pub(super) fn reached(&self) -> Option<Timestamp> {
        if self.memberships.is_empty() || self.open_partition().is_none() {
            return None;
        }
        match &self.ticks {
            Some(ticks) => ticks.iter().map(TickSession::latest).max(),
            None => self.sessions.iter().map(|session| session.latest).max(),
        }
    }

    /// Touches the session and the tick that the next event probably belongs to.
    pub(super) fn fetch(&self) -> u64 {
        self.sessions.last().map_or(0, Session::fetch)
    }

    /// Touches that tick's sum; call after [`Stream::fetch`].
    pub(super) fn fetch_words(&self) -> u64 {
        self.sessions.last().map_or(0, Session::fetch_words)
    }

    /// Opens a session. A session that was still running has died.
    pub(super) fn open(
        &mut self,
        id: u64,
        t: Timestamp,
        tag: Tag,
        partition: u32,
    ) -> Result<(), IngestError> {
        if self.sessions.iter().any(|session| session.id == id) {
            return Err(IngestError::SessionKnown);
        }
        if self.sessions.last().is_some_and(|last| t < last.latest) {
            return Err(IngestError::Backdated);
        }
        if self.sessions.len() >= self.max_sessions(t) && !self.memberships.is_empty() {
            return Err(IngestError::TooManySessions);
        }
        if let Some(last) = self.sessions.last_mut() {
            last.replace(t);
        }
        // Only windows of plans need ended sessions.
        if self.memberships.is_empty() {
            self.sessions.clear();
        }
        // A session that was replaced where it opened holds nothing.
        self.sessions.retain(|session| session.end != End::Replaced(session.opened));
        self.sessions.reserve_exact(1);
        self.sessions.push(Session::new(id, t, tag, partition));
        Ok(())
    }

    /// Opens a session of ticks. `proves` is the number of an event's words, if a verified plan
    /// needs the session's sums.
    pub(super) fn open_ticks(
        &mut self,
        opening: Claim,
        frame: &[u8],
        partition: u32,
        proves: Option<u16>,
    ) -> Result<(), IngestError> {
        let needed = !self.memberships.is_empty();
        let sessions = self.ticks.get_or_insert_default();
        sessions.open(opening, frame, partition, (needed, proves))
    }

    /// Takes a tick or a gap.
    pub(super) fn take_tick(
        &mut self,
        shape: &Shape,
        plans: &Plans,
        frame: &AuthenticFrame<'_>,
    ) -> Result<TickUse, IngestError> {
        let claim = &frame.claim();
        let (memberships, ticks) = (&self.memberships, self.ticks.as_mut());
        let needs = Needs {
            interest: plans.interest_in(memberships, claim.to),
            starts: plans.window_starts_at(memberships, claim.to),
            cuts: plans.cuts_at(memberships, claim.to)
                || shape.frames.anchor().is_some_and(|anchor| claim.ends_period(anchor)),
            planned: !memberships.is_empty(),
        };
        match ticks {
            Some(ticks) => {
                let taken = ticks.take(claim, frame.mac(), needs);
                // What is too late for a window is in the session's sum all the same.
                if matches!(taken, Ok(_) | Err(IngestError::Late)) {
                    let anchor = shape.frames.anchor().filter(|_| plans.prove(memberships));
                    let entry = anchor.map(|anchor| Entry {
                        anchor,
                        words: shape.words,
                        kept: plans.proof_cuts(memberships, claim),
                    });
                    ticks.sum_up(claim, frame.words(), entry);
                }
                taken
            }
            None if needs.interest == Interest::Late => Err(IngestError::Late),
            None => Err(IngestError::UnknownSession),
        }
    }

    /// The sessions of a schema with one frame a tick.
    pub(super) fn ticks(&self) -> Option<&TickSessions> {
        self.ticks.as_deref()
    }

    /// The opening of a session of ticks, as it came.
    pub(super) fn opening(&self, session: u64) -> Option<&[u8]> {
        self.ticks.as_ref()?.opening(session)
    }

    /// Maximum number of sessions when one opens at `t`. A session ends with its day.
    fn max_sessions(&self, t: Timestamp) -> usize {
        let days = self.sessions.first().map_or(0, |first| (t.0 - first.opened.0) / DAY);
        MAX_SESSIONS.saturating_add(usize::try_from(days).unwrap_or(usize::MAX))
    }

    /// Adds an event to its session.
    #[inline]
    pub(super) fn add(
        &mut self,
        shape: &Shape,
        plans: &Plans,
        event: Event,
        words: &Words<'_>,
    ) -> Result<Option<FrozenTick>, IngestError> {
        let memberships = &self.memberships;
        let session = self.sessions.iter_mut().rev().find(|s| s.id == event.link.session);
        let wants = |tick| plans.interest_in(memberships, tick);
        match session {
            Some(session) => session.add(shape, wants, event, words),
            // A session is dropped once all its windows are closed.
            None if wants(tick_of(shape, &event)?) == Interest::Late => Err(IngestError::Late),
            None => Err(IngestError::UnknownSession),
        }
    }

    /// Drops everything that no open window needs.
    pub(super) fn settle(&mut self, shape: &Shape, plans: &Plans) {
        let horizon = plans.horizon(&self.memberships);
        if let Some(ticks) = &mut self.ticks {
            let (memberships, anchor) = (&self.memberships, shape.frames.anchor());
            ticks.settle(horizon, |claim| {
                anchor.is_some_and(|anchor| between(claim, anchor))
                    || plans.open_window_cuts_at(memberships, claim.to)
            });
            ticks.settle_sums(|claim| {
                anchor.is_some_and(|anchor| plans.need_proof(memberships, claim, anchor))
            });
        }
        for session in &mut self.sessions {
            session.settle(horizon);
        }
        let over = |session: &Session| match session.end {
            End::Running => false,
            End::Closed(last) | End::Replaced(last) => last <= horizon,
        };
        // The last session stays: a new one must not open in its past.
        let last = self.sessions.len().saturating_sub(1);
        let mut i = 0;
        self.sessions.retain(|session| {
            i += 1;
            i > last || !over(session)
        });
    }

    /// Whether the stream was online at any time in the window.
    pub(super) fn online(&self, window: Window) -> bool {
        self.online_from(window.start).is_some_and(|from| from < window.end)
    }

    /// The first time at or after `start` at which the stream is online. A session that
    /// died keeps its stream online until the next one opens: the stream was not offline,
    /// its data was lost.
    pub(super) fn online_from(&self, start: Timestamp) -> Option<Timestamp> {
        if let Some(ticks) = &self.ticks {
            return ticks.online_from(start);
        }
        let reaches = |session: &&Session| match session.end {
            End::Running => true,
            End::Closed(last) | End::Replaced(last) => last > start,
        };
        self.sessions.iter().find(reaches).map(|session| session.opened.max(start))
    }

    /// The session with this number.
    pub(super) fn session(&self, id: u64) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// Why its tick that ends at `end` is not complete.
    pub(super) fn trouble(&self, end: Timestamp) -> IncompleteError {
        let covering = self.sessions.iter().find(|session| session.covers(end));
        covering.map_or(IncompleteError::Offline, |session| session.trouble(end))
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.sessions.iter().map(Session::heap).sum::<usize>()
            + if self.sessions.spilled() {
                self.sessions.capacity() * size_of::<Session>()
            } else {
                0
            }
            + self.memberships.len() * size_of::<Membership>()
            + self.ticks.as_ref().map_or(0, |ticks| ticks.heap())
    }
}
