//! What one session contributes to a window, by its claims.
//!
//! The service sends the claim at which the window starts, those of gaps and of ticks at
//! anchors, and the last one. The ticks between need no claim: the check word of the sum is
//! random if one is missing or doubled.

use crate::keys::StreamKeys;
use crate::tick::claim::{Claim, ClaimKind, Statement};
use alpheus_time::{Span, Timestamp, Window};
use std::cmp::Ordering;

/// What follows from the claims of one session in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSegment {
    /// The session.
    pub session: u64,
    /// The part of the window that the session covers.
    pub covers: Window,
    /// Whether it opened in the window.
    pub opened: bool,
    /// Whether it ended properly in the window.
    pub closed: bool,
    /// Number of events.
    pub events: u64,
    /// The sum of the session's ciphertexts in the window is that of the plaintexts plus
    /// `K(end) − K(start)` for each of these, in order. Nothing happened between them.
    pub spans: Vec<Window>,
}

/// Why claims are not a session's part of a window. Reveals only times and positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// There are none.
    #[error("the segment has no claims")]
    Empty,
    /// The stream's device did not state one.
    #[error("claim {0} is not the device's")]
    Forged(usize),
    /// One is of another session, or an opening within the session.
    #[error("claim {0} does not continue the session of the first")]
    OtherSession(usize),
    /// One starts before the end of the one before, or follows the session's end.
    #[error("claim {0} does not follow the one before")]
    Order(usize),
    /// An anchor lies between two claims. The count starts again there.
    #[error("a claim at the anchor {} µs is missing", .0.0)]
    MissingAnchor(Timestamp),
    /// The first does not start where the window or the session does.
    #[error("the first claim is neither at the window's start nor opens the session in it")]
    Start,
    /// The last does not end where the window or the session does.
    #[error("the last claim is neither at the window's end nor closes the session in it")]
    End,
    /// There are fewer events than before within one period.
    #[error("claim {0} states fewer events than the one before")]
    Events(usize),
}

/// Checks a session's claims in a window, under the stream's keys. `anchor` is the schema's.
///
/// # Errors
/// [`SegmentError`] with the first rule that does not hold.
pub fn check(
    keys: &StreamKeys,
    claims: &[Claim],
    window: Window,
    anchor: Span,
) -> Result<CheckedSegment, SegmentError> {
    let open = |(at, claim): (usize, &Claim)| {
        let opened = keys.open_claim(claim).map_err(|_| SegmentError::Forged(at))?;
        Ok((opened, claim.ends_period(anchor)))
    };
    let mut statements = claims.iter().enumerate().map(open);
    let (first, ends_period) = statements.next().ok_or(SegmentError::Empty)??;
    let mut walk = Walk::start(&first, ends_period, window)?;
    for (at, statement) in statements.enumerate() {
        let (statement, ends_period) = statement?;
        walk.follow(at + 1, &statement, ends_period, anchor)?;
    }
    walk.end(window)
}

/// The claims of a session whose sums make up that of the window, in order of time: each sum is
/// added, but that at the window's start, which is subtracted.
///
/// Claims between two anchors need none: the next sum covers them.
#[must_use]
pub fn claims_with_sums(claims: &[Claim], anchor: Span) -> Vec<(&Claim, bool)> {
    let last = claims.len().saturating_sub(1);
    let needed = |(at, claim): &(usize, &Claim)| match (*at, claim.ends_period(anchor)) {
        _ if last == 0 => false,
        (0, ends_period) => !ends_period,
        (at, ends_period) => ends_period || at == last,
    };
    claims.iter().enumerate().filter(needed).map(|(at, claim)| (claim, at == 0)).collect()
}

/// How far the claims have come.
struct Walk {
    so_far: CheckedSegment,
    /// The end of the last claim.
    at: Timestamp,
    /// Start of the last claim's time, if nothing happened in it.
    asleep_from: Option<Timestamp>,
    /// Number of events of the running period up to there.
    count: u64,
}

impl Walk {
    fn start(first: &Statement, ends_period: bool, window: Window) -> Result<Self, SegmentError> {
        let Statement { kind, session, from, to, count, .. } = *first;
        let starts = match kind {
            ClaimKind::Opening => to >= window.start && to < window.end,
            ClaimKind::Tick => to == window.start,
            ClaimKind::Gap => from <= window.start && window.start <= to,
            ClaimKind::ClosingGap => from <= window.start && window.start < to,
            ClaimKind::ClosingTick => false,
        };
        if !starts {
            return Err(SegmentError::Start);
        }
        let opened = kind == ClaimKind::Opening;
        let start = if opened { to } else { window.start };
        let so_far = CheckedSegment {
            session,
            covers: Window { start, end: start },
            opened,
            closed: kind.is_closing(),
            events: 0,
            spans: Vec::new(),
        };
        let asleep_from = kind.is_gap().then_some(from);
        Ok(Self { so_far, at: to, asleep_from, count: if ends_period { 0 } else { count } })
    }

    fn follow(
        &mut self,
        position: usize,
        next: &Statement,
        ends_period: bool,
        anchor: Span,
    ) -> Result<(), SegmentError> {
        let Statement { kind, session, from, to, count, .. } = *next;
        if session != self.so_far.session || kind == ClaimKind::Opening {
            return Err(SegmentError::OtherSession(position));
        }
        if self.so_far.closed || from < self.at || to <= from {
            return Err(SegmentError::Order(position));
        }
        // Where the ticks end that lie between, and the last time at which none needs a claim.
        let (end, before) = if kind.is_gap() { (from, from) } else { (to, from) };
        if self.at.floor(anchor) != before.floor(anchor) {
            return Err(SegmentError::MissingAnchor(before.floor(anchor)));
        }
        let more = count.checked_sub(self.count).ok_or(SegmentError::Events(position))?;
        self.so_far.events = self.so_far.events.saturating_add(more);
        if end > self.at {
            self.so_far.spans.push(Window { start: self.at, end });
        }
        (self.at, self.count) = (to, if ends_period { 0 } else { count });
        self.asleep_from = kind.is_gap().then_some(from);
        self.so_far.closed = kind.is_closing();
        Ok(())
    }

    fn end(mut self, window: Window) -> Result<CheckedSegment, SegmentError> {
        let slept = self.asleep_from.is_some_and(|from| from < window.end);
        let end = self.at.min(window.end);
        let ends = match self.at.cmp(&window.end) {
            Ordering::Less => self.so_far.closed,
            Ordering::Equal => true,
            Ordering::Greater => slept,
        };
        if !ends {
            return Err(SegmentError::End);
        }
        // It closed after the window.
        self.so_far.closed &= self.at <= window.end;
        self.so_far.covers.end = end;
        Ok(self.so_far)
    }
}
