//! Copies of a stream's device, as two claims for one border have shown them.
//!
//! A session that was copied is in no window any more, so each is remembered, not only the last:
//! a service may show known proofs in any order. Only a device can make a proof, so a ledger
//! grows with copied sessions, and with its owner's confirmations.
//!
//! A service may also keep proofs back, or show more sessions than are remembered. So a proof about
//! a time before the owner's last confirmation is none of a new copy: its session is left out, and
//! the owner is not asked again.

use alpheus_time::{Timestamp, Window};

/// Copied sessions that are remembered. Beyond them the first to be confirmed is forgotten;
/// while none is confirmed, the stream waits in any case.
const KEPT: usize = 8;

/// A device has a copy, as two of its claims for one border have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceCopy {
    /// The session of both.
    pub(super) session: u64,
    /// When the owner confirmed that the copy is gone. Until then nothing is released.
    pub(super) confirmed: Option<Timestamp>,
}

/// What a new proof changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewCopy {
    /// The copy.
    pub(super) copy: DeviceCopy,
    /// A copied session that is forgotten for it.
    pub(super) forgotten: Option<u64>,
}

/// The known copies of one stream's device.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies(Vec<DeviceCopy>);

impl Copies {
    /// Notes a proven copy, which showed at that time. `None` if it is known from this session, or if
    /// so many are known that one more changes nothing.
    pub(super) fn note(&mut self, session: u64, at: Timestamp) -> Option<NewCopy> {
        if self.contains(session) {
            return None;
        }
        let last = self.0.iter().filter_map(|copy| copy.confirmed).max();
        let confirmed = last.filter(|confirmed| at <= *confirmed);
        let forgotten = if self.0.len() >= KEPT { Some(self.forget_first()?) } else { None };
        let copy = DeviceCopy { session, confirmed };
        self.0.push(copy);
        Some(NewCopy { copy, forgotten })
    }

    fn forget_first(&mut self) -> Option<u64> {
        let confirmed = self.0.iter().filter(|copy| copy.confirmed.is_some());
        let first = confirmed.min_by_key(|copy| copy.confirmed)?.session;
        self.0.retain(|copy| copy.session != first);
        Some(first)
    }

    /// The owner has chosen again, so the copies are gone. Returns those that waited.
    pub(super) fn confirm(&mut self, now: Timestamp) -> Vec<DeviceCopy> {
        let waiting = self.0.iter_mut().filter(|copy| copy.confirmed.is_none());
        let confirm = |copy: &mut DeviceCopy| {
            copy.confirmed = Some(now);
            *copy
        };
        waiting.map(confirm).collect()
    }

    /// Whether nothing is released before the owner has confirmed that a copy is gone.
    pub(super) fn waits(&self) -> bool {
        self.0.iter().any(|copy| copy.confirmed.is_none())
    }

    /// Whether the owner knew of no copy during a whole window.
    pub(super) fn is_without_any_in(&self, window: Window) -> bool {
        let gone = |copy: &DeviceCopy| copy.confirmed.is_some_and(|since| since <= window.start);
        self.0.iter().all(gone)
    }

    /// Whether a copy showed in this session.
    pub(super) fn contains(&self, session: u64) -> bool {
        self.0.iter().any(|copy| copy.session == session)
    }

    /// All of them.
    pub(super) fn known(&self) -> impl Iterator<Item = &DeviceCopy> {
        self.0.iter()
    }

    /// Applies a record of the ledger.
    pub(super) fn remember(&mut self, copy: DeviceCopy) {
        self.0.retain(|known| known.session != copy.session);
        self.0.push(copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_proofs_in_any_order_change_nothing() {
        let mut copies = Copies::default();
        let new = |copies: &mut Copies, session| copies.note(session, Timestamp(3)).is_some();
        assert!(new(&mut copies, 1) && new(&mut copies, 2));
        assert!(!new(&mut copies, 1) && !new(&mut copies, 2) && !new(&mut copies, 1));
        assert_eq!(copies.confirm(Timestamp(5)).len(), 2);
        assert!(!new(&mut copies, 1) && !copies.waits() && copies.contains(2));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_stream_waits_beyond() {
        let mut copies = Copies::default();
        let noted = |copies: &mut Copies, from: u64| {
            let new = |session: &u64| copies.note(*session, Timestamp(3)).is_some();
            (from..from + 100).filter(new).count()
        };
        assert_eq!(noted(&mut copies, 0), KEPT);
        assert!(copies.waits());
        copies.confirm(Timestamp(5));
        let next = copies.note(100, Timestamp(6)).unwrap();
        assert_eq!(next.forgotten, Some(0));
        assert!(copies.waits() && copies.0.len() == KEPT);
    }

    /// A service that has proofs of more sessions than are remembered shows them in turn, forever.
    #[test]
    fn proofs_from_before_a_confirmation_never_make_the_owner_confirm_again() {
        let (mut copies, sessions) = (Copies::default(), KEPT as u64 + 1);
        for session in 0..sessions {
            copies.note(session, Timestamp(session));
        }
        assert!(copies.waits());
        copies.confirm(Timestamp(sessions));
        for session in (0..sessions).cycle().take(100) {
            copies.note(session, Timestamp(session));
            assert!(copies.contains(session) && !copies.waits(), "session {session}");
            assert_eq!(copies.0.len(), KEPT);
        }
        copies.note(1_000, Timestamp(sessions + 1));
        assert!(copies.waits(), "a copy that showed since");
    }
}
