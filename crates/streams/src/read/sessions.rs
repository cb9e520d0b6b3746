//! What is missing among the frames that the service sends.

use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::keys::DAY;
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind};
use alpheus_node::note;
use alpheus_time::Timestamp;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of sessions of the device: one a day, and one for each start.
pub(super) const MAX_SESSIONS: usize = 1 << 16;

/// The service would keep its reader reading forever.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndlessReadError {
    #[error(
        "the service moved backwards in its log, from {after} to {next}; its answers cannot be used"
    )]
    Back { after: u64, next: u64 },
    #[error(
        "the service sent more than {MAX_SESSIONS} sessions of the device, more than any device has; have fewer days granted, or contact the operator of the service"
    )]
    Sessions,
}

/// The device's sessions in the frames received so far. Links between frames show gaps;
/// borders show where a session begins and ends.
#[derive(Default)]
pub(super) struct Sessions {
    /// Days with a key.
    pub(super) days: BTreeSet<u64>,
    /// Days with at least one frame.
    reached: BTreeSet<u64>,
    pub(super) seen: HashMap<u64, Session>,
    /// Frames whose predecessor is missing.
    lost: u64,
}

pub(super) struct Session {
    /// Its first received frame opens it, or follows a frame from before these days.
    headed: bool,
    /// It was closed, or continues after these days.
    tailed: bool,
    last: Timestamp,
}

/// What is missing, as far as can be detected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingFrames {
    /// Gaps within sessions.
    pub(super) inside: u64,
    /// Sessions without their beginning, and without their end.
    pub(super) heads: usize,
    pub(super) tails: usize,
    /// Days without any frame.
    pub(super) days: usize,
}

/// A received frame, apart from its words.
#[derive(Clone, Copy)]
pub(super) struct FrameMark {
    session: u64,
    /// The frame before it; none if it opens the session.
    previous: Option<Timestamp>,
    t: Timestamp,
    closes: bool,
}

impl From<&FrameView<'_>> for FrameMark {
    fn from(frame: &FrameView<'_>) -> FrameMark {
        let closes = matches!(frame, Frame::Closing { .. });
        let previous = frame.link().map(|link| link.previous);
        FrameMark { session: frame.session(), previous, t: frame.t(), closes }
    }
}

impl From<&Claim> for FrameMark {
    fn from(claim: &Claim) -> FrameMark {
        let previous = (claim.kind != ClaimKind::Opening).then_some(claim.from);
        let Claim { session, to: t, kind, .. } = *claim;
        FrameMark { session, previous, t, closes: kind.is_closing() }
    }
}

impl Sessions {
    pub(super) fn of_days(days: impl Iterator<Item = u64>) -> Sessions {
        Sessions { days: days.collect(), ..Sessions::default() }
    }

    /// Whether a frame for this time or a later one of the session was received.
    pub(super) fn has(&self, frame: FrameMark) -> bool {
        self.seen.get(&frame.session).is_some_and(|session| frame.t <= session.last)
    }

    pub(super) fn note(&mut self, frame: FrameMark) -> Result<(), EndlessReadError> {
        let FrameMark { session, previous, t, closes } = frame;
        let keyed = |at: Timestamp| self.days.contains(&(at.0 / DAY));
        let tailed = closes || !keyed(t);
        let headed = previous.is_none_or(|previous| !keyed(previous));
        // A border belongs to the time before it.
        self.reached.extend(previous.map(|_| t.0.saturating_sub(1) / DAY));
        let many = self.seen.len();
        match self.seen.get_mut(&session) {
            None if many >= MAX_SESSIONS => return Err(EndlessReadError::Sessions),
            None => {
                self.seen.insert(session, Session { headed, tailed, last: t });
            }
            Some(session) => {
                let follows = previous == Some(session.last);
                self.lost += u64::from(!follows);
                (session.last, session.tailed) = (t, session.tailed || tailed);
            }
        }
        Ok(())
    }

    pub(super) fn missing(&self) -> MissingFrames {
        MissingFrames {
            inside: self.lost,
            heads: self.seen.values().filter(|session| !session.headed).count(),
            tails: self.seen.values().filter(|session| !session.tailed).count(),
            days: self.days.difference(&self.reached).count(),
        }
    }
}

impl MissingFrames {
    pub(super) fn print(&self) {
        let MissingFrames { inside, heads, tails, days } = self;
        if *inside > 0 {
            note!("the service withheld frames at {inside} places");
        }
        if *heads > 0 {
            note!("the service withheld the beginning of {heads} sessions of the device");
        }
        if *tails > 0 {
            note!(
                "{tails} sessions of the device have no end: the device was cut off, or the service withheld it"
            );
        }
        if *days > 0 {
            note!("{days} days have no frames: the device was off, or the service withheld them");
        }
    }
}
