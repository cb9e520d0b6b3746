//! A client's side of a connection, and when to carry a session on.

use crate::error::ClientError;
use crate::messages::{Acknowledgement, Challenge, Connect, ConnectResponse, Hello};
use crate::request::Stamper;
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage};
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::mac::MacKey;
use alpheus_crypto::secret::Secret;
use alpheus_time::Timestamp;
use rand_core::{CryptoRng, Rng};

/// A holder's own session, acknowledged exactly as it was sent. Only such a session is ever
/// connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcknowledgedSession {
    session: SessionId,
    epoch: Epoch,
}

impl AcknowledgedSession {
    /// Compares a gateway's acknowledgement with what was sent to it.
    ///
    /// # Errors
    /// [`ClientError::OtherSession`].
    ///
    /// # Privacy
    /// A gateway that suspects a returning holder answers a login with the earlier session. A
    /// holder that connected for that session would confirm the suspicion.
    pub fn check(
        holder: &Holder,
        sent: &OutboundMessage,
        acknowledged: &Acknowledgement,
    ) -> Result<Self, ClientError> {
        let Acknowledgement { session, epoch } = *acknowledged;
        let ours = session == sent.session && epoch >= sent.epoch;
        if ours && holder.has_presented(session, epoch) {
            Ok(Self { session, epoch })
        } else {
            Err(ClientError::OtherSession)
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The epoch that it has reached.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

/// A connection that the gateway has not confirmed yet.
pub struct PendingConnection {
    session: SessionId,
    key: MacKey,
    nonce: [u8; 32],
}

/// Answers a gateway's challenge for a session of the holder, with a fresh agreement key.
///
/// # Errors
/// [`ClientError`].
///
/// # Privacy
/// The connection is linked to its session and to no other: key, signature and agreement key
/// belong to the session alone.
pub fn connect(
    holder: &Holder,
    &AcknowledgedSession { session, .. }: &AcknowledgedSession,
    hello: &Hello,
    rng: &mut impl CryptoRng,
) -> Result<(Connect, PendingConnection), ClientError> {
    let key = AgreementKey::random(rng);
    let agreement = key.public();
    let nonce = connection_nonce(&hello.challenge, &hello.agreement, &agreement);
    let signature = holder.connect(session, &nonce)?;
    let key = request_key(&key.agree(&hello.agreement)?, session, &nonce);
    let connect = Connect { session, challenge: hello.challenge, agreement, signature };
    Ok((connect, PendingConnection { session, key, nonce }))
}

impl PendingConnection {
    /// Checks that the gateway has the same key.
    ///
    /// # Errors
    /// [`ClientError::Unconfirmed`].
    pub fn finish(self, connected: &ConnectResponse) -> Result<Stamper, ClientError> {
        let until = connected.until.0.to_be_bytes();
        self.key
            .verify(labels::PASS_CONFIRMATION, &[&self.nonce, &until], &connected.confirmation)
            .map_err(|_| ClientError::Unconfirmed)?;
        Ok(Stamper::new(self.session, self.key))
    }
}

/// The bytes that the holder signs: the challenge and both agreement keys. So a party in between
/// cannot substitute its own key.
pub(crate) fn connection_nonce(
    challenge: &Challenge,
    gateway: &AgreementPublic,
    client: &AgreementPublic,
) -> [u8; 32] {
    labelled_hash(labels::PASS_CONNECTION, &[&challenge.0, &gateway.0, &client.0]).0
}

pub(crate) fn request_key(agreed: &Secret<32>, session: SessionId, nonce: &[u8; 32]) -> MacKey {
    let parts: [&[u8]; 2] = [session.0.0.as_bytes(), nonce];
    MacKey::new(&derive::<32>(agreed.expose(), labels::PASS_REQUESTS, &parts))
}

/// A client's next step for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do nothing before this time.
    Wait(Timestamp),
    /// Carry the session on to the next epoch.
    ReUp,
    /// Log in for the next epoch. It is in another period, which no re-up reaches, or sessions
    /// rotate there.
    LogInNext,
    /// Log in: the session has lapsed, or there is none.
    LogIn,
}

/// When a session's re-ups are sent, as fractions of the time in which they are accepted. Three
/// quarters of it are used; the last is left for retries. A session has a sub-window, half as long,
/// which begins after its own shift. Each moment lies in it, at a jitter of its own.
///
/// # Privacy
/// Anyone who sees the re-ups of a session learns where its sub-window begins and ends, by a clock of
/// their own: the shift plus what the client's clock is off. The shift is drawn again for each
/// session, over a time much longer than clocks are off, so the sum says next to nothing about the
/// clock, and two sessions of one client look as unlike as those of two clients. With jitter alone
/// the edges would be the same in every session, and show the clock.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Of this session.
    shift: u32,
    /// Of the session after it, whose login is the first moment in its sub-window.
    shift_after: u32,
    /// Of the next re-up or login.
    jitter: u32,
}

impl Pace {
    /// The pace of a client that begins.
    #[must_use]
    pub fn draw(rng: &mut impl Rng) -> Self {
        let [shift, shift_after, jitter] = [(); 3].map(|()| rng.next_u32());
        Self { shift, shift_after, jitter }
    }

    /// For the next epoch of the same session.
    #[must_use]
    pub fn next_epoch(self, rng: &mut impl Rng) -> Self {
        Self { jitter: rng.next_u32(), ..self }
    }

    /// For the session that follows.
    #[must_use]
    pub fn next_session(self, rng: &mut impl Rng) -> Self {
        let [shift_after, jitter] = [(); 2].map(|()| rng.next_u32());
        Self { shift: self.shift_after, shift_after, jitter }
    }

    /// The pace after a client's session was `before` and is `now`.
    #[must_use]
    pub fn follow(
        self,
        before: Option<AcknowledgedSession>,
        now: Option<AcknowledgedSession>,
        rng: &mut impl Rng,
    ) -> Self {
        let id = |session: Option<AcknowledgedSession>| session.map(|ours| ours.session);
        match (id(before) == id(now), before == now) {
            (_, true) => self,
            (true, _) => self.next_epoch(rng),
            _ => self.next_session(rng),
        }
    }

    /// The moment in a time of this length.
    fn moment(self, shift: u32, length: u64) -> u64 {
        let half = u128::from(length) * 3 / 8;
        let moment = (half * (u128::from(shift) + u128::from(self.jitter))) >> 32;
        u64::try_from(moment).unwrap_or(0)
    }
}

/// The next step for a session that has reached `epoch`, at its pace. At epochs whose number is a
/// multiple of `rotation` (0: none), new sessions begin.
///
/// # Privacy
/// A session that ends after its own number of epochs could be linked to one that begins just then.
/// So all sessions end at the same epochs. When in an epoch: see [`Pace`].
#[must_use]
pub fn next(
    schedule: &Schedule,
    now: Timestamp,
    epoch: Option<Epoch>,
    pace: Pace,
    rotation: u64,
) -> Next {
    let Some(epoch) = epoch else { return Next::LogIn };
    let following = epoch.next();
    if now >= schedule.starts(following) {
        return Next::LogIn;
    }
    let (opens, starts) = (schedule.opens(following).0, schedule.starts(following).0);
    let same = schedule.period_of(epoch) == schedule.period_of(following);
    let rotates = rotation > 0 && following.0.is_multiple_of(rotation);
    let re_up = same && !rotates;
    let shift = if re_up { pace.shift } else { pace.shift_after };
    let due = opens.saturating_add(pace.moment(shift, starts - opens));
    if now.0 < due {
        return Next::Wait(Timestamp(due));
    }
    if re_up { Next::ReUp } else { Next::LogInNext }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_anonymous_credential::messages::TagId;
    use alpheus_crypto::hash::Digest;
    use alpheus_time::Span;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    const SCHEDULE: Schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(1_000),
        pre_login: Span(100),
        border_pre_login: Span(400),
        epochs_per_period: 3,
        ahead: 0,
    };

    #[test]
    fn re_ups_are_spread_over_the_pre_login_and_leave_time_for_retries() {
        let next = |now, epoch, (shift, jitter)| {
            let pace = Pace { shift, shift_after: 0, jitter };
            next(&SCHEDULE, Timestamp(now), Some(Epoch(epoch)), pace, 0)
        };
        assert_eq!(next(500, 0, (0, 0)), Next::Wait(Timestamp(900)));
        assert_eq!(next(500, 0, (u32::MAX, u32::MAX)), Next::Wait(Timestamp(973)));
        assert_eq!(next(500, 0, (0, u32::MAX)), Next::Wait(Timestamp(936)));
        assert_eq!(next(899, 0, (1 << 30, 1 << 30)), Next::Wait(Timestamp(918)));
        assert_eq!(next(918, 0, (1 << 30, 1 << 30)), Next::ReUp);
        assert_eq!(next(1_000, 0, (0, 0)), Next::LogIn);
        // The third epoch is the last of its period.
        assert_eq!(next(2_599, 2, (u32::MAX, 0)), Next::Wait(Timestamp(2_600)), "a new session");
        assert_eq!(next(2_600, 2, (0, 0)), Next::LogInNext);
        let pace = Pace { shift: 0, shift_after: 0, jitter: 0 };
        assert_eq!(super::next(&SCHEDULE, Timestamp(5), None, pace, 0), Next::LogIn);
    }

    #[test]
    fn a_session_keeps_its_shift_and_the_one_after_it_has_the_next() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let first = Pace::draw(&mut rng);
        let again = first.next_epoch(&mut rng);
        assert_eq!((again.shift, again.shift_after), (first.shift, first.shift_after));
        assert_ne!(again.jitter, first.jitter);
        let after = again.next_session(&mut rng);
        assert_eq!(after.shift, first.shift_after);
        assert_ne!(after.shift_after, first.shift_after);
    }

    #[test]
    fn a_pace_follows_the_session() {
        let mut rng = ChaCha20Rng::from_seed([2; 32]);
        let first = Pace::draw(&mut rng);
        let session = |id: u8, epoch| {
            let session = SessionId(TagId(Digest([id; 32])));
            Some(AcknowledgedSession { session, epoch: Epoch(epoch) })
        };
        let mut shift = |before, now| first.follow(before, now, &mut rng).shift;
        assert_eq!(shift(session(1, 7), session(1, 7)), first.shift);
        assert_eq!(shift(session(1, 7), session(1, 8)), first.shift);
        // Logged in ahead, or after it had lapsed.
        assert_eq!(shift(session(1, 7), session(2, 8)), first.shift_after);
        assert_eq!(shift(None, session(1, 7)), first.shift_after);
        let again = first.follow(session(1, 7), session(1, 8), &mut rng);
        assert_ne!(again.jitter, first.jitter);
    }

    #[test]
    fn everybodys_sessions_rotate_at_the_same_epochs() {
        let long = Schedule { epochs_per_period: 1_000, ..SCHEDULE };
        let at_the_end = |epoch, rotation| {
            let pace = Pace { shift: 0, shift_after: 0, jitter: 0 };
            next(&long, Timestamp(epoch * 1_000 + 999), Some(Epoch(epoch)), pace, rotation)
        };
        // Whenever they began: the function does not take a session's first epoch.
        let rotated: Vec<u64> = (0..12).filter(|e| at_the_end(*e, 4) == Next::LogInNext).collect();
        assert_eq!(rotated, [3, 7, 11]);
        assert!((0..12).all(|epoch| at_the_end(epoch, 0) == Next::ReUp));
        // And not all at the same moment.
        let late = Pace { shift: 0, shift_after: u32::MAX, jitter: u32::MAX };
        let early = next(&long, Timestamp(3_901), Some(Epoch(3)), late, 4);
        assert_eq!(early, Next::Wait(Timestamp(3_973)));
    }
}
