//! What a controller knows of the sessions of one stream.
//!
//! A producer draws a session at every start and never resumes one. So the
//! stretches of different sessions never overlap, and once another session is
//! known a new one may not reach back: it opens after the last border of the
//! one before, or right on it if that border closed it in order. Only for a
//! stream without a known session anything goes, so that its first session may
//! be back-dated to the tick before its start.

use alpheus_policy::time::Timestamp;

use super::held::Stretch;
use crate::error::Exclusion;

/// Sessions that are told apart; older ones merge into a floor.
const REMEMBERED: usize = 16;

/// What is known of one session.
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
    known: Vec<Session>,
    /// Last border of the sessions that were forgotten.
    floor: Option<Timestamp>,
}

impl Sessions {
    /// Takes the stretches of a window in; says which sessions are new or newly
    /// closed, which must be durable before the controller builds on them.
    pub(super) fn admit(&mut self, stretches: &[Stretch]) -> Result<Vec<Session>, Exclusion> {
        let mut next = self.clone();
        let mut fresh = Vec::new();
        for stretch in stretches {
            fresh.extend(next.admit_one(stretch)?);
        }
        next.forget();
        *self = next;
        Ok(fresh)
    }

    fn admit_one(&mut self, stretch: &Stretch) -> Result<Option<Session>, Exclusion> {
        let others = self.known.iter().filter(|known| known.session != stretch.session);
        if others.clone().any(|other| !follows(stretch, other) && !precedes(stretch, other)) {
            return Err(Exclusion::SessionOverlap);
        }
        if let Some(known) = self.known.iter_mut().find(|known| known.session == stretch.session) {
            known.from = known.from.min(stretch.from);
            // That it closed must be durable too: another may open right there.
            let closes = stretch.closed && !known.closed;
            if stretch.to >= known.to {
                (known.to, known.closed) = (stretch.to, stretch.closed);
            } else if known.closed && stretch.closed {
                return Err(Exclusion::SessionOverlap);
            }
            return Ok(closes.then_some(*known));
        }
        if self.floor.is_some_and(|floor| stretch.from <= floor) {
            return Err(Exclusion::SessionOverlap);
        }
        let Stretch { session, from, to, closed, .. } = *stretch;
        let fresh = Session { session, from, to, closed };
        self.known.push(fresh);
        Ok(Some(fresh))
    }

    /// A token was spent up to here, on the session that was the latest then:
    /// a later one may be known already.
    pub(super) fn extend(&mut self, to: Timestamp) {
        let begun = self.known.iter_mut().filter(|known| known.from < to);
        if let Some(latest) = begun.max_by_key(|known| known.from) {
            latest.to = latest.to.max(to);
        }
    }

    /// Takes in what a ledger kept.
    pub(super) fn remember(&mut self, session: Session) {
        self.known.push(session);
        self.forget();
    }

    fn forget(&mut self) {
        while self.known.len() > REMEMBERED {
            let oldest = self.known.iter().enumerate().min_by_key(|(_, known)| known.to);
            let Some((oldest, _)) = oldest else { return };
            let gone = self.known.remove(oldest);
            self.floor = self.floor.max(Some(gone.to));
        }
    }
}

/// A stretch of another session may stand after this one.
fn follows(stretch: &Stretch, other: &Session) -> bool {
    stretch.from > other.to || (stretch.from == other.to && other.closed && stretch.opened)
}

/// A stretch of another, earlier session may stand before this one.
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
    fn the_first_session_may_start_anywhere_and_go_on() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap().len(), 1);
        assert_eq!(sessions.admit(&[stretch(1, 10, 20, false, false)]), Ok(vec![]));
    }

    #[test]
    fn a_later_session_does_not_reach_back() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        for from in [0, 5, 10] {
            let refused = sessions.admit(&[stretch(2, from, 20, true, false)]);
            assert_eq!(refused, Err(Exclusion::SessionOverlap), "from {from}");
        }
        assert!(sessions.admit(&[stretch(2, 11, 20, true, false)]).is_ok());
        let resumed = sessions.admit(&[stretch(1, 20, 30, false, false)]);
        assert_eq!(resumed, Err(Exclusion::SessionOverlap));
    }

    #[test]
    fn a_session_may_open_where_another_closed_in_order() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, true)]).unwrap();
        assert!(sessions.admit(&[stretch(2, 10, 20, true, false)]).is_ok());
        let mut running = Sessions::default();
        running.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        assert_eq!(running.admit(&[stretch(1, 10, 20, false, true)]).unwrap().len(), 1);
        let mut both = Sessions::default();
        let window = [stretch(1, 0, 10, true, true), stretch(2, 10, 20, true, false)];
        assert_eq!(both.admit(&window).unwrap().len(), 2);
    }

    #[test]
    fn an_earlier_window_of_an_earlier_session_may_come_late() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(2, 20, 30, true, false)]).unwrap();
        assert!(sessions.admit(&[stretch(1, 0, 10, true, false)]).is_ok());
        let overlapping = sessions.admit(&[stretch(1, 10, 25, false, false)]);
        assert_eq!(overlapping, Err(Exclusion::SessionOverlap));
    }

    #[test]
    fn a_token_extends_the_session_that_ran_then() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        sessions.admit(&[stretch(2, 70, 80, false, false)]).unwrap();
        sessions.extend(Timestamp(60));
        let back = sessions.admit(&[stretch(2, 60, 70, true, false)]);
        assert_eq!(back, Err(Exclusion::SessionOverlap));
    }

    #[test]
    fn a_refused_window_changes_nothing() {
        let mut sessions = Sessions::default();
        sessions.admit(&[stretch(1, 0, 10, true, false)]).unwrap();
        let window = [stretch(1, 10, 20, false, false), stretch(2, 15, 30, true, false)];
        assert!(sessions.admit(&window).is_err());
        assert!(sessions.admit(&[stretch(3, 11, 20, true, false)]).is_ok());
    }

    #[test]
    fn forgotten_sessions_stay_in_the_past() {
        let mut sessions = Sessions::default();
        for i in 0..40 {
            sessions.admit(&[stretch(i, 10 * i, 10 * i + 5, true, false)]).unwrap();
        }
        assert_eq!(sessions.known.len(), REMEMBERED);
        let back = sessions.admit(&[stretch(99, 7, 8, true, false)]);
        assert_eq!(back, Err(Exclusion::SessionOverlap));
    }
}
