//! What a window's rows hold of a stream with one frame a tick, and the segments that follow.

use super::Shape;
use super::session::End;
use super::ticks::{TickSession, TickSessions, between};
use super::window::{IncompleteError, Status, StreamSum};
use crate::messages::{Segments, SummonedStream};
use crate::tick::claim::{Claim, ClaimKind};
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};

/// A stretch of one session whose ticks are in the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tile {
    pub(super) session: u64,
    pub(super) span: Window,
}

/// Adds a tick, which continues a tile if possible.
pub(super) fn add(tiles: &mut Vec<Tile>, tick: Tile) {
    let before = tiles.iter().position(|tile| tile.continues(tick.session, tick.span.start));
    let after = tiles
        .iter()
        .position(|tile| tile.session == tick.session && tile.span.start == tick.span.end);
    match (before, after) {
        (Some(before), Some(after)) => {
            tiles[before].span.end = tiles[after].span.end;
            tiles.swap_remove(after);
        }
        (Some(before), None) => tiles[before].span.end = tick.span.end,
        (None, Some(after)) => tiles[after].span.start = tick.span.start,
        (None, None) => {
            tiles.reserve_exact(1);
            tiles.push(tick);
        }
    }
}

impl Tile {
    /// Whether it ends where something of a session starts.
    fn continues(&self, session: u64, start: Timestamp) -> bool {
        self.session == session && self.span.end == start
    }
}

/// The state of a stream that was online in the window.
pub(super) fn judge(
    window: Window,
    position: u32,
    sessions: Option<&TickSessions>,
    sum: Option<&StreamSum>,
    shape: &Shape,
    gaps: u64,
) -> Status {
    let offline = Status::Incomplete(IncompleteError::Offline);
    let (Some(sessions), Some(anchor)) = (sessions, shape.frames.anchor()) else { return offline };
    let tiles = tiles(window, sessions, sum);
    let tiling = Tiling { window, sessions, anchor, tick: shape.tick, gaps };
    match tiling.segments(&tiles) {
        Err(reason) => Status::Incomplete(reason),
        Ok(claims) => {
            let own = tiles.iter().filter_map(|tile| sessions.session(tile.session));
            let conflicts: Vec<_> = own.into_iter().flat_map(TickSession::conflicts).collect();
            // Each window shows another one, so that none keeps out the others for long.
            let length = window.end.0.saturating_sub(window.start.0).max(1);
            let shown = (window.start.0 / length).checked_rem(conflicts.len() as u64);
            let conflict = shown.and_then(|at| conflicts.get(usize::try_from(at).ok()?));
            let segments = Segments::OfTicks {
                claims,
                sums: Vec::new(),
                conflict: conflict.map(|pair| Box::new(**pair)),
            };
            let check_sum = sum.map_or(0, StreamSum::check_sum);
            Status::Complete(SummonedStream { position, segments, check_sum })
        }
    }
}

/// What is known about the window: the ticks in the rows, and gaps, in order and merged.
fn tiles(window: Window, sessions: &TickSessions, sum: Option<&StreamSum>) -> Vec<Tile> {
    let mut all = sum.map_or_else(Vec::new, |sum| sum.tiles().to_vec());
    for session in sessions.iter() {
        let gaps = session.claims().iter().filter(|claim| claim.kind.is_gap());
        all.extend(gaps.filter_map(|gap| {
            let (start, end) = (gap.from.max(window.start), gap.to.min(window.end));
            (start < end).then_some(Tile { session: session.id(), span: Window { start, end } })
        }));
    }
    all.sort_by_key(|tile| tile.span.start);
    let mut merged: Vec<Tile> = Vec::with_capacity(all.len());
    for tile in all {
        match merged.last_mut() {
            Some(last) if last.continues(tile.session, tile.span.start) => {
                last.span.end = tile.span.end;
            }
            _ => merged.push(tile),
        }
    }
    merged
}

/// What segments are made from.
struct Tiling<'a> {
    window: Window,
    sessions: &'a TickSessions,
    anchor: Span,
    tick: Span,
    gaps: u64,
}

impl Tiling<'_> {
    /// The claims of each session. Between sessions, no more than `gaps` ticks may be missing.
    fn segments(&self, tiles: &[Tile]) -> Result<Vec<Vec<Claim>>, IncompleteError> {
        let (mut reached, mut missing) = (self.window.start, 0);
        let mut segments = Vec::with_capacity(tiles.len());
        for tile in tiles {
            let gap = tile.span.start.0.checked_sub(reached.0);
            let gap = gap.ok_or(IncompleteError::Duplicate)?;
            missing += gap / self.tick.0;
            let session = self.sessions.session(tile.session).ok_or(IncompleteError::Offline)?;
            if gap > 0 && session.opening().to != tile.span.start {
                return Err(self.trouble(reached));
            }
            let claims = self.claims(session, tile.span);
            segments.push(claims.ok_or_else(|| self.trouble(reached))?);
            reached = tile.span.end;
        }
        if let Some(opening) = tiles.last().and_then(|last| self.opened_after(last)) {
            missing += (self.window.end.0 - reached.0) / self.tick.0;
            segments.push(vec![opening]);
            reached = self.window.end;
        }
        if missing > self.gaps || reached != self.window.end {
            return Err(self.trouble(if missing > 0 { self.window.start } else { reached }));
        }
        Ok(segments)
    }

    /// A session's claims of a stretch without a missing tick.
    fn claims(&self, session: &TickSession, span: Window) -> Option<Vec<Claim>> {
        let first = if session.opening().to == span.start {
            *session.opening()
        } else if span.start == self.window.start {
            let crosses = |claim: &&Claim| {
                claim.kind.is_gap() && claim.from <= span.start && span.start < claim.to
            };
            let crossing = session.claims().iter().find(crosses);
            *crossing.or_else(|| session.claim_at(span.start))?
        } else {
            return None;
        };
        let follows = |claim: &&Claim| {
            claim.from >= first.to && claim.from < span.end && between(claim, self.anchor)
        };
        let mut claims = vec![first];
        claims.extend(session.claims().iter().filter(follows));
        let end = claims.last().map_or(first.to, |last| last.to);
        if end < span.end {
            claims.push(*session.claim_at(span.end)?);
        }
        // The opening alone covers nothing.
        (claims.len() > 1 || first.kind != ClaimKind::Opening).then_some(claims)
    }

    /// The opening after the window's end that shows that a session died before it.
    fn opened_after(&self, last: &Tile) -> Option<Claim> {
        let End::Replaced(opened) = self.sessions.session(last.session)?.end() else { return None };
        let within = last.span.end < self.window.end && opened >= self.window.end;
        let next = self.sessions.iter().find(|session| session.opening().to == opened)?;
        within.then_some(*next.opening())
    }

    /// Why the first tick after `reached` that has not come is missing. If all have come, the
    /// plan lacks one that came before it.
    fn trouble(&self, reached: Timestamp) -> IncompleteError {
        let mut end = reached.plus(self.tick);
        while end <= self.window.end {
            let covers = |session: &&TickSession| {
                session.opening().to < end
                    && match session.end() {
                        End::Running => true,
                        End::Closed(last) | End::Replaced(last) => end <= last,
                    }
            };
            let Some(session) = self.sessions.iter().find(covers) else {
                return IncompleteError::Offline;
            };
            match session.come(end) {
                Some(span) => end = span.end.plus(self.tick),
                None if self.has_died_before(session, end) => return IncompleteError::SessionDied,
                None => return IncompleteError::MissingBorder,
            }
        }
        IncompleteError::BeforePlan
    }

    /// Whether a session ended without the tick that ends here. If its device states a later
    /// border, the tick was sent and is lost.
    fn has_died_before(&self, session: &TickSession, end: Timestamp) -> bool {
        let stated = self.sessions.stated_end(session.id(), self.tick);
        matches!(session.end(), End::Replaced(_)) && stated.is_none_or(|last| last < end)
    }
}
