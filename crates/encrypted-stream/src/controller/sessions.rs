//! What a controller knows of the sessions of one stream.
//!
//! A producer draws a session at every start and never resumes one. So segments of
//! different sessions never overlap. Once another session is known, a new one may not reach
//! back. It opens after the last border of the session before, or exactly on that border if
//! it closed the session in order. A stream without a known session accepts any, so its
//! first session may be back-dated to the tick before its start.

use alpheus_time::{Span, Timestamp};

use super::segments::Stretch;
use crate::error::ExclusionError;
use crate::keys::DAY;

/// Sessions that are kept separately whatever their age; older ones merge into a floor.
const MIN_KEPT: usize = 16;
/// How far back from the last border sessions are kept separately, unless there are too
/// many. A session ends with its day, and a window may be a year long.
const KEPT_DAYS: u64 = 400;
/// Maximum number of sessions that are kept separately.
const MAX_KEPT: usize = 1024;

/// What is known about one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) session: u64,
    /// First border seen.
    pub(super) from: Timestamp,
    /// Last border seen.
    pub(super) to: Timestamp,
    /// Whether that one closed it.
    pub(super) closed: bool,
}

/// The sessions of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    recent: Vec<Session>,
    /// The latest of the deleted sessions: nothing may reach back beyond it.
    floor: Option<Session>,
}

/// Changes to the session records in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionChanges {
    /// New or newly closed.
    pub(super) fresh: Vec<Session>,
    /// Before the floor: nothing depends on them any more.
    pub(super) gone: Vec<u64>,
}

impl Sessions {
    /// Takes the segments of a window in. Returns the sessions that are new or newly
    /// closed, which must be durable before the controller depends on them.
    pub(super) fn admit(
        &mut self,
        stretches: &[Stretch],
    ) -> Result<SessionChanges, ExclusionError> {
        let mut next = self.clone();
        let mut fresh = Vec::new();
        for stretch in stretches {
            fresh.extend(next.admit_one(stretch)?);
        }
        let gone = next.forget();
        *self = next;
        Ok(SessionChanges { fresh, gone })
    }

    /// Whether a session is known to cross `edge`, the midnight between two days, by a tick
    /// or more. Producers of earlier builds did not end a session with its day.
    pub(super) fn crosses(&self, edge: Timestamp, tick: Span) -> bool {
        self.recent
            .iter()
            .chain(&self.floor)
            .any(|known| known.from < edge && known.to >= edge.plus(tick))
    }

    fn admit_one(&mut self, stretch: &Stretch) -> Result<Option<Session>, ExclusionError> {
        let others = self.recent.iter().filter(|known| known.session != stretch.session);
        if others.clone().any(|other| !follows(stretch, other) && !precedes(stretch, other)) {
            return Err(ExclusionError::SessionOverlap);
        }
        if let Some(known) = self.recent.iter_mut().find(|known| known.session == stretch.session) {
            let other = |a: u64, b: u64| a / DAY != b / DAY;
            // Note also the midnights that a session crosses, because day keys are handed
            // out by day. If a session ends with its day, all its segments lie in that day.
            let outlasts = other(stretch.from.0, known.from.0)
                || other(stretch.to.0.saturating_sub(1), known.to.0.saturating_sub(1));
            known.from = known.from.min(stretch.from);
            // The closing must be durable too: another session may open right there.
            let closes = stretch.closed && !known.closed;
            if stretch.to >= known.to {
                (known.to, known.closed) = (stretch.to, stretch.closed);
            } else if known.closed && stretch.closed {
                return Err(ExclusionError::SessionOverlap);
            }
            return Ok((closes || outlasts).then_some(*known));
        }
        if self.floor.is_some_and(|floor| stretch.from <= floor.to) {
            return Err(ExclusionError::SessionOverlap);
        }
        let Stretch { session, from, to, closed, .. } = *stretch;
        let fresh = Session { session, from, to, closed };
        self.recent.push(fresh);
        Ok(Some(fresh))
    }

    /// A token was spent up to this time, on the session that was the latest then. A later
    /// session may be known already.
    pub(super) fn extend(&mut self, to: Timestamp) {
        let begun = self.recent.iter_mut().filter(|known| known.from < to);
        if let Some(latest) = begun.max_by_key(|known| known.from) {
            latest.to = latest.to.max(to);
        }
    }

    /// Applies a record of the ledger.
    pub(super) fn remember(&mut self, session: Session) {
        self.recent.push(session);
        self.forget();
    }

    /// Deletes sessions that are too old or too many. Returns those whose records can be
    /// removed.
    fn forget(&mut self) -> Vec<u64> {
        let newest = self.recent.iter().map(|known| known.to).max().unwrap_or(Timestamp(0));
        let mut gone = Vec::new();
        while self.recent.len() > MIN_KEPT {
            let oldest = self.recent.iter().enumerate().min_by_key(|(_, known)| known.to);
            let Some((place, oldest)) = oldest else { break };
            let is_old = oldest.to.plus(Span(KEPT_DAYS * DAY)) <= newest;
            if !is_old && self.recent.len() <= MAX_KEPT {
                break;
            }
            let forgotten = self.recent.remove(place);
            let known = self.floor.replace(forgotten);
            // Of the deleted sessions only the last is needed, to know the floor after a
            // restart.
            match known.filter(|known| known.to > forgotten.to) {
                Some(later) => {
                    self.floor = Some(later);
                    gone.push(forgotten.session);
                }
                None => gone.extend(known.map(|known| known.session)),
            }
        }
        gone
    }
}

/// Whether a segment of another session may come after this session.
fn follows(stretch: &Stretch, other: &Session) -> bool {
    stretch.from > other.to || (stretch.from == other.to && other.closed && stretch.opened)
}

/// Whether a segment of another, earlier session may come before this session.
fn precedes(stretch: &Stretch, other: &Session) -> bool {
    stretch.to < other.from || (stretch.to == other.from && stretch.closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(session: u64, from: u64, to: u64, opened: bool, closed: bool) -> Stretch {
        Stretch { session, from: Timestamp(from), to: Timestamp(to), opened, closed }
    }

    #[test]
    fn the_first_session_may_start_anywhere_and_continue() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap().fresh.len(), 1);
        assert_eq!(
            sessions.admit(&[stretch(1, 10, 20, false, false)]),
            Ok(SessionChanges::default())
        );
    }

    #[test]
    fn a_later_session_does_not_reach_back() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        for from in [0, 5, 10] {
            let refused = sessions.admit(&[stretch(2, from, 20, true, false)]);
            assert_eq!(refused, Err(ExclusionError::SessionOverlap), "from {from}");
        }
        assert!(sessions.admit(&[stretch(2, 11, 20, true, false)]).is_ok());
        let resumed = sessions.admit(&[stretch(1, 20, 30, false, false)]);
        assert_eq!(resumed, Err(ExclusionError::SessionOverlap));
    }

    #[test]
    fn a_session_may_open_where_another_closed_in_order() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, true)]).unwrap();
        assert!(sessions.admit(&[stretch(2, 10, 20, true, false)]).is_ok());
        let mut running = Sessions::default();
        running.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        assert_eq!(running.admit(&[stretch(1, 10, 20, false, true)]).unwrap().fresh.len(), 1);
        let mut both = Sessions::default();
        let window = [stretch(1, 0, 10, true, true), stretch(2, 10, 20, true, false)];
        assert_eq!(both.admit(&window).unwrap().fresh.len(), 2);
    }

    #[test]
    fn an_earlier_window_of_an_earlier_session_may_come_late() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(2, 20, 30, true, false)]).unwrap();
        assert!(sessions.admit(&[stretch(1, 0, 10, true, false)]).is_ok());
        let overlapping = sessions.admit(&[stretch(1, 10, 25, false, false)]);
        assert_eq!(overlapping, Err(ExclusionError::SessionOverlap));
    }

    #[test]
    fn a_token_extends_the_session_that_ran_then() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        sessions.admit(&[stretch(2, 70, 80, false, false)]).unwrap();
        sessions.extend(Timestamp(60));
        let back = sessions.admit(&[stretch(2, 60, 70, true, false)]);
        assert_eq!(back, Err(ExclusionError::SessionOverlap));
    }

    #[test]
    fn a_refused_window_changes_nothing() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        let window = [stretch(1, 10, 20, false, false), stretch(2, 15, 30, true, false)];
        assert!(sessions.admit(&window).is_err());
        assert!(sessions.admit(&[stretch(3, 11, 20, true, false)]).is_ok());
    }

    /// One session on each of many days: two more than are kept separately.
    fn daily(days: u64) -> (Sessions, Vec<u64>) {
        let (mut sessions, mut gone) = (Sessions::default(), Vec::new());
        for day in 0..days {
            let whole = stretch(day, day * DAY, (day + 1) * DAY, true, true);
            gone.extend(sessions.admit(&[whole]).unwrap().gone);
        }
        (sessions, gone)
    }

    #[test]
    fn forgotten_sessions_stay_in_the_past() {
        let (mut sessions, gone) = daily(KEPT_DAYS + 3);
        assert_eq!(sessions.recent.len() as u64, KEPT_DAYS);
        assert_eq!(gone, [0, 1], "the last of those forgotten holds the floor");
        let back = stretch(2, 2 * DAY, 3 * DAY, true, true);
        assert_eq!(sessions.admit(&[back]), Err(ExclusionError::SessionOverlap));
        // Also after a restart, from the records that are left.
        let mut again = Sessions::default();
        let left = [sessions.floor.unwrap()].into_iter().chain(sessions.recent.clone());
        left.for_each(|session| again.remember(session));
        assert_eq!(again.admit(&[back]), Err(ExclusionError::SessionOverlap));
        assert_eq!((again.recent.len(), again.floor), (sessions.recent.len(), sessions.floor));
    }

    /// Windows of a day and of a year may both be requested.
    #[test]
    fn days_of_a_long_window_are_still_known_at_its_end() {
        let (mut sessions, _) = daily(366);
        let year: Vec<_> =
            (0..366).map(|day| stretch(day, day * DAY, (day + 1) * DAY, true, true)).collect();
        assert_eq!(sessions.admit(&year), Ok(SessionChanges::default()));
    }

    #[test]
    fn many_short_sessions_are_bounded() {
        let mut sessions = Sessions::default();
        for i in 0..MAX_KEPT as u64 + 40 {
            sessions.admit(&[stretch(i, 10 * i, 10 * i + 5, true, false)]).unwrap();
        }
        assert_eq!(sessions.recent.len(), MAX_KEPT);
        let back = sessions.admit(&[stretch(9999, 7, 8, true, false)]);
        assert_eq!(back, Err(ExclusionError::SessionOverlap));
    }

    /// A restart may have nothing but these records.
    #[test]
    fn a_session_that_outlasts_its_day_is_noted() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, DAY + 10, DAY + 20, false, false)]).unwrap();
        let noted = |sessions: &mut Sessions, from, to| {
            sessions.admit(&[stretch(1, from, to, false, false)]).unwrap().fresh
        };
        assert_eq!(noted(&mut sessions, DAY + 20, DAY + 30), []);
        // Up to midnight it belongs to the day.
        assert_eq!(noted(&mut sessions, 2 * DAY - 10, 2 * DAY), []);
        for (from, to) in [(2 * DAY, 2 * DAY + 10), (DAY - 10, DAY)] {
            let [known] = noted(&mut sessions, from, to)[..] else { unreachable!() };
            assert!(known.from.0.min(from) == known.from.0 && known.to.0 >= to);
            let mut again = Sessions::default();
            again.remember(known);
            let edge = Timestamp(2 * DAY);
            assert!(again.crosses(edge, Span(10)));
        }
    }

    #[test]
    fn a_session_that_outlasts_its_day_is_known_by_its_borders() {
        let tick = Span(10);
        let crossing = |from: u64, to: u64| {
            let mut sessions = Sessions::default();
            sessions.admit(&[stretch(1, from, to, true, false)]).unwrap();
            sessions.crosses(Timestamp(DAY), tick)
        };
        assert!(crossing(DAY - 10, DAY + 10));
        assert!(crossing(0, 3 * DAY));
        // It ends on the first border of the next day, wherever that is.
        assert!(!crossing(DAY - 10, DAY));
        assert!(!crossing(DAY - 7, DAY + 3));
        assert!(!crossing(DAY, DAY + 30));
    }
}
