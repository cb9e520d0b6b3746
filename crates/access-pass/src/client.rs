//! A client's side of a connection, and when a session is carried on.

use crate::error::ClientRefused;
use crate::messages::{Acknowledgement, Challenge, Connect, Connected, Hello};
use crate::request::Stamper;
use alpheus_anonymous_credential::holder::{Holder, Outgoing};
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule, Time};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::labelled;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::mac::MacKey;
use alpheus_crypto::secret::Secret;
use rand_core::CryptoRng;

/// A session of a holder's own, acknowledged as it was sent: only this can be
/// spoken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    session: SessionId,
    epoch: Epoch,
}

impl Served {
    /// Compares what a gateway acknowledges with what was sent to it.
    ///
    /// # Errors
    /// [`ClientRefused::OtherSession`].
    ///
    /// # Privacy
    /// A gateway that suspects who is there again answers a login with the session
    /// of before. A holder that spoke for that one would confirm it.
    pub fn check(
        holder: &Holder,
        sent: &Outgoing,
        acknowledged: &Acknowledgement,
    ) -> Result<Self, ClientRefused> {
        let Acknowledgement { session, epoch } = *acknowledged;
        let ours = session == sent.session && epoch >= sent.epoch;
        if ours && holder.has_shown(session, epoch) {
            Ok(Self { session, epoch })
        } else {
            Err(ClientRefused::OtherSession)
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The epoch that it has come to.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

/// A connection that the gateway has not confirmed.
pub struct Connecting {
    session: SessionId,
    key: MacKey,
    nonce: [u8; 32],
}

/// Answers a gateway's challenge for a session of the holder's, with an agreement
/// key of its own.
///
/// # Errors
/// [`ClientRefused`].
///
/// # Privacy
/// The connection is linked to its session and to no other: key, signature and
/// agreement key are the session's alone.
pub fn connect(
    holder: &Holder,
    &Served { session, .. }: &Served,
    hello: &Hello,
    rng: &mut impl CryptoRng,
) -> Result<(Connect, Connecting), ClientRefused> {
    let key = AgreementKey::random(rng);
    let agreement = key.public();
    let nonce = connection_nonce(&hello.challenge, &hello.agreement, &agreement);
    let signature = holder.connect(session, &nonce)?;
    let key = request_key(&key.agree(&hello.agreement)?, session, &nonce);
    let connect = Connect { session, challenge: hello.challenge, agreement, signature };
    Ok((connect, Connecting { session, key, nonce }))
}

impl Connecting {
    /// Checks that the gateway has the same key.
    ///
    /// # Errors
    /// [`ClientRefused::Unconfirmed`].
    pub fn finish(self, connected: &Connected) -> Result<Stamper, ClientRefused> {
        let until = connected.until.0.to_be_bytes();
        self.key
            .verify(labels::PASS_CONFIRMATION, &[&self.nonce, &until], &connected.confirmation)
            .map_err(|_| ClientRefused::Unconfirmed)?;
        Ok(Stamper::new(self.session, self.key))
    }
}

/// What the holder signs: the challenge and both agreement keys, so that nobody
/// in between can put in a key of their own.
pub(crate) fn connection_nonce(
    challenge: &Challenge,
    gateway: &AgreementPublic,
    client: &AgreementPublic,
) -> [u8; 32] {
    labelled(labels::PASS_CONNECTION, &[&challenge.0, &gateway.0, &client.0]).0
}

pub(crate) fn request_key(agreed: &Secret<32>, session: SessionId, nonce: &[u8; 32]) -> MacKey {
    let parts: [&[u8]; 2] = [session.0.0.as_bytes(), nonce];
    MacKey::new(&derive::<32>(agreed.expose(), labels::PASS_REQUESTS, &parts))
}

/// What a client does about its session next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing before this time.
    Wait(Time),
    /// Carry the session on to the next epoch.
    ReUp,
    /// Log in for the next epoch: it is of another period, which no re-up reaches,
    /// or one at which sessions begin anew.
    LogInNext,
    /// The session has lapsed, or there is none: log in.
    LogIn,
}

/// What to do about a session that has come to `epoch`. `jitter`, drawn once for
/// each epoch, spreads the clients of a service over the time in which re-ups are
/// taken; its last quarter is left for trying again. At epochs whose number is a
/// multiple of `rotation` (0: none) sessions begin anew.
///
/// # Privacy
/// Re-ups at a moment of one's own would tell clients apart by their clocks. A
/// session that ended after so many epochs of its own, and another one that began
/// just then, would be one person's: so everybody's end at the same epochs.
#[must_use]
pub fn next(
    schedule: &Schedule,
    now: Time,
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
        return Next::Wait(Time(due));
    }
    let same = schedule.period_of(epoch) == schedule.period_of(following);
    let rotates = rotation > 0 && following.0.is_multiple_of(rotation);
    if same && !rotates { Next::ReUp } else { Next::LogInNext }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start: Time(0),
        epoch: 1_000,
        pre_login: 100,
        border_pre_login: 400,
        epochs_per_period: 3,
        ahead: 0,
    };

    #[test]
    fn re_ups_are_spread_over_the_pre_login_and_leave_time_to_try_again() {
        let next = |now, epoch, jitter| next(&SCHEDULE, Time(now), Some(Epoch(epoch)), jitter, 0);
        assert_eq!(next(500, 0, 0), Next::Wait(Time(900)));
        assert_eq!(next(500, 0, u32::MAX), Next::Wait(Time(974)));
        assert_eq!(next(899, 0, 1 << 31), Next::Wait(Time(937)));
        assert_eq!(next(937, 0, 1 << 31), Next::ReUp);
        assert_eq!(next(1_000, 0, 0), Next::LogIn);
        // The third epoch is its period's last.
        assert_eq!(next(2_599, 2, 0), Next::Wait(Time(2_600)));
        assert_eq!(next(2_600, 2, 0), Next::LogInNext);
        assert_eq!(super::next(&SCHEDULE, Time(5), None, 0, 0), Next::LogIn);
    }

    #[test]
    fn sessions_begin_anew_at_the_same_epochs_for_everybody() {
        let long = Schedule { epochs_per_period: 1_000, ..SCHEDULE };
        let at_the_end = |epoch, rotation| {
            next(&long, Time(epoch * 1_000 + 999), Some(Epoch(epoch)), 0, rotation)
        };
        // Whenever they began: no session's own beginning is asked for.
        let anew: Vec<u64> = (0..12).filter(|e| at_the_end(*e, 4) == Next::LogInNext).collect();
        assert_eq!(anew, [3, 7, 11]);
        assert!((0..12).all(|epoch| at_the_end(epoch, 0) == Next::ReUp));
        // And not all at one moment of it.
        let early = next(&long, Time(3_901), Some(Epoch(3)), u32::MAX, 4);
        assert_eq!(early, Next::Wait(Time(3_974)));
    }
}
