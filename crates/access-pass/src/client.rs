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
use rand_core::CryptoRng;

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

/// The next step for a session that has reached `epoch`. `jitter`, drawn once for each epoch,
/// spreads a service's clients over the time in which re-ups are accepted. The last quarter of
/// that time is left for retries. At epochs whose number is a multiple of `rotation` (0: none),
/// new sessions begin.
///
/// # Privacy
/// Re-ups at a constant moment would distinguish clients by their clocks. A session that ends
/// after its own number of epochs could be linked to one that begins just then. So all sessions
/// end at the same epochs.
#[must_use]
pub fn next(
    schedule: &Schedule,
    now: Timestamp,
    epoch: Option<Epoch>,
    jitter: u32,
    rotation: u64,
) -> Next {
    let Some(epoch) = epoch else { return Next::LogIn };
    let following = epoch.next();
    if now >= schedule.starts(following) {
        return Next::LogIn;
    }
    let (opens, starts) = (schedule.opens(following).0, schedule.starts(following).0);
    let spread = (u128::from(starts - opens) * 3 / 4 * u128::from(jitter)) >> 32;
    let due = opens.saturating_add(u64::try_from(spread).unwrap_or(0));
    if now.0 < due {
        return Next::Wait(Timestamp(due));
    }
    let same = schedule.period_of(epoch) == schedule.period_of(following);
    let rotates = rotation > 0 && following.0.is_multiple_of(rotation);
    if same && !rotates { Next::ReUp } else { Next::LogInNext }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Span;

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
        let next =
            |now, epoch, jitter| next(&SCHEDULE, Timestamp(now), Some(Epoch(epoch)), jitter, 0);
        assert_eq!(next(500, 0, 0), Next::Wait(Timestamp(900)));
        assert_eq!(next(500, 0, u32::MAX), Next::Wait(Timestamp(974)));
        assert_eq!(next(899, 0, 1 << 31), Next::Wait(Timestamp(937)));
        assert_eq!(next(937, 0, 1 << 31), Next::ReUp);
        assert_eq!(next(1_000, 0, 0), Next::LogIn);
        // The third epoch is the last of its period.
        assert_eq!(next(2_599, 2, 0), Next::Wait(Timestamp(2_600)));
        assert_eq!(next(2_600, 2, 0), Next::LogInNext);
        assert_eq!(super::next(&SCHEDULE, Timestamp(5), None, 0, 0), Next::LogIn);
    }

    #[test]
    fn everybodys_sessions_rotate_at_the_same_epochs() {
        let long = Schedule { epochs_per_period: 1_000, ..SCHEDULE };
        let at_the_end = |epoch, rotation| {
            next(&long, Timestamp(epoch * 1_000 + 999), Some(Epoch(epoch)), 0, rotation)
        };
        // Whenever they began: the function does not take a session's first epoch.
        let rotated: Vec<u64> = (0..12).filter(|e| at_the_end(*e, 4) == Next::LogInNext).collect();
        assert_eq!(rotated, [3, 7, 11]);
        assert!((0..12).all(|epoch| at_the_end(epoch, 0) == Next::ReUp));
        // And not all at the same moment.
        let early = next(&long, Timestamp(3_901), Some(Epoch(3)), u32::MAX, 4);
        assert_eq!(early, Next::Wait(Timestamp(3_974)));
    }
}
