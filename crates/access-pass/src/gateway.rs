//! A gateway's sessions. A gateway has no issuer's key and stores nothing. It learns of sessions
//! from the verifier, and asks again after a restart.
//!
//! A session serves requests in the epochs that it was logged in or carried on for. When the
//! last one ends, no new request starts. Running requests may finish within the overlap; then
//! they are cut.

use crate::client::{connection_nonce, request_key};
use crate::error::GatewayError;
use crate::messages::{Challenge, Connect, ConnectResponse, Hello};
use crate::request::{Stamp, Target, tag};
use crate::window::Window;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::messages::{Login, Logout, SessionId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::labels;
use alpheus_crypto::mac::{MacKey, Tag};
use alpheus_crypto::secret::Secret;
use alpheus_time::{Span, Timestamp};
use rand_core::CryptoRng;
use std::collections::HashMap;

/// How long a challenge may be answered.
pub const CHALLENGE_LIFE: Span = Span::seconds(30);

/// A gateway's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent requests of one session.
    pub concurrent: u32,
    /// How long running requests may continue after a session's end.
    pub overlap: Span,
}

impl Default for Limits {
    /// Sixteen requests, two seconds.
    fn default() -> Self {
        Self { concurrent: 16, overlap: Span::seconds(2) }
    }
}

/// The sessions of one gateway process.
pub struct Gateway {
    pinned: PinnedConfiguration,
    limits: Limits,
    agreement: AgreementKey,
    challenges: MacKey,
    sessions: HashMap<SessionId, Session>,
    /// The latest epoch that ran here. An earlier one means that the clock went back.
    clock: Option<Epoch>,
}

struct Session {
    status: SessionStatus,
    ended: bool,
    connection: Option<Connection>,
    /// Running requests.
    running: u32,
}

/// A connection: the key of its requests, and the used counters.
struct Connection {
    key: MacKey,
    window: Window,
    /// `time:64 ‖ random:64` of the challenge that it answered. A later connection answers a
    /// later challenge.
    answered: [u8; 16],
}

/// A request that may proceed. The caller reports its end with [`Gateway::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that is not finished counts against its session"]
pub struct AdmittedRequest {
    /// The session.
    pub session: SessionId,
    /// When to check again whether it may still run.
    pub until: Timestamp,
}

impl Gateway {
    /// A gateway that knows no session.
    #[must_use]
    pub fn new(pinned: PinnedConfiguration, limits: Limits, rng: &mut impl CryptoRng) -> Self {
        Self {
            pinned,
            limits,
            agreement: AgreementKey::random(rng),
            challenges: MacKey::new(&Secret::random(rng)),
            sessions: HashMap::new(),
            clock: None,
        }
    }

    /// A hello for a client to compare and answer.
    pub fn hello(&self, now: Timestamp, rng: &mut impl CryptoRng) -> Hello {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&now.0.to_be_bytes());
        rng.fill_bytes(&mut bytes[8..16]);
        let tag = self.challenges.tag(labels::PASS_CHALLENGE, &[&bytes[..16]]);
        bytes[16..].copy_from_slice(&tag.0);
        let fingerprint = self.pinned.fingerprint();
        Hello { fingerprint, challenge: Challenge(bytes), agreement: self.agreement.public() }
    }

    /// Records a session's status from the verifier: after a login or a re-up, or when asked.
    /// The epoch that a session has reached never goes back.
    pub fn update(&mut self, status: SessionStatus) {
        let new = || Session { status, ended: false, connection: None, running: 0 };
        let session = self.sessions.entry(status.session).or_insert_with(new);
        if status.epoch > session.status.epoch {
            session.status = status;
        }
    }

    /// Whether the session is known here and has reached the running epoch. If not, the verifier
    /// may know more.
    #[must_use]
    pub fn knows(&self, id: SessionId, now: Timestamp) -> bool {
        let running = self.pinned.schedule.epoch_at(now);
        let known = self.sessions.get(&id);
        known.is_some_and(|session| session.ended || running <= Some(session.status.epoch))
    }

    /// Checks that a challenge is this gateway's and has not expired. This costs one MAC, so
    /// call it before all other checks of a `Connect`.
    ///
    /// # Errors
    /// [`GatewayError::Challenge`].
    pub fn verify_challenge(
        &self,
        challenge: &Challenge,
        now: Timestamp,
    ) -> Result<(), GatewayError> {
        self.check_challenge(challenge, now).map(|_| ())
    }

    /// Connects a session with a fresh key. An earlier connection of the session ends, and its
    /// stamps become invalid.
    ///
    /// # Errors
    /// [`GatewayError`].
    ///
    /// # Privacy
    /// The gateway learns which requests belong to one session, as it must, and nothing that
    /// links the session to another.
    pub fn connect(
        &mut self,
        connect: &Connect,
        now: Timestamp,
    ) -> Result<ConnectResponse, GatewayError> {
        self.tick(now)?;
        let answered = self.check_challenge(&connect.challenge, now)?;
        let session = self.sessions.get_mut(&connect.session).ok_or(GatewayError::NoSession)?;
        if session.ended {
            return Err(GatewayError::Ended);
        }
        if session.connection.as_ref().is_some_and(|connection| answered <= connection.answered) {
            return Err(GatewayError::Challenge);
        }
        let ours = self.agreement.public();
        let nonce = connection_nonce(&connect.challenge, &ours, &connect.agreement);
        let speaks = [connect.session.0.0.as_bytes().as_slice(), &nonce].concat();
        session
            .status
            .holder
            .verify(labels::CREDENTIAL_CONNECTION, &speaks, &connect.signature)
            .map_err(|_| GatewayError::Signature)?;
        let agreed = self.agreement.agree(&connect.agreement)?;
        let key = request_key(&agreed, connect.session, &nonce);
        let until = self.pinned.schedule.starts(session.status.epoch.next());
        let parts: [&[u8]; 2] = [&nonce, &until.0.to_be_bytes()];
        let confirmation = key.tag(labels::PASS_CONFIRMATION, &parts);
        session.connection = Some(Connection { key, window: Window::default(), answered });
        Ok(ConnectResponse { until, confirmation })
    }

    fn check_challenge(
        &self,
        challenge: &Challenge,
        now: Timestamp,
    ) -> Result<[u8; 16], GatewayError> {
        let (body, tag) = challenge.0.split_first_chunk::<16>().ok_or(GatewayError::Challenge)?;
        let tag = Tag(tag.try_into().map_err(|_| GatewayError::Challenge)?);
        self.challenges
            .verify(labels::PASS_CHALLENGE, &[body], &tag)
            .map_err(|_| GatewayError::Challenge)?;
        if is_valid(body, now) { Ok(*body) } else { Err(GatewayError::Challenge) }
    }

    /// Admits one request. Its session is served now, its stamp is the session's and for this
    /// request, its counter is unused, and the session is below its limit.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn admit(
        &mut self,
        stamp: &Stamp,
        target: &Target<'_>,
        now: Timestamp,
    ) -> Result<AdmittedRequest, GatewayError> {
        let admitted = self.check(stamp, target, now)?;
        let session = self.sessions.get_mut(&stamp.session).ok_or(GatewayError::NoSession)?;
        if session.running >= self.limits.concurrent {
            return Err(GatewayError::TooMany);
        }
        session.running += 1;
        Ok(admitted)
    }

    /// The same for a caller that sees only a request's start and not its end (forward
    /// authentication). The request does not count against the limit.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn check(
        &mut self,
        stamp: &Stamp,
        target: &Target<'_>,
        now: Timestamp,
    ) -> Result<AdmittedRequest, GatewayError> {
        let running = self.tick(now)?.ok_or(GatewayError::NotYet)?;
        let session = self.sessions.get_mut(&stamp.session).ok_or(GatewayError::NoSession)?;
        if session.ended {
            return Err(GatewayError::Ended);
        }
        let connection = session.connection.as_mut().ok_or(GatewayError::NotConnected)?;
        if tag(&connection.key, stamp.session, stamp.counter, target) != stamp.tag {
            return Err(GatewayError::Unauthentic);
        }
        let SessionStatus { first, epoch, .. } = session.status;
        if running < first {
            return Err(GatewayError::NotYet);
        }
        if running > epoch {
            return Err(GatewayError::Lapsed);
        }
        if !connection.window.accept(stamp.counter) {
            return Err(GatewayError::Replayed);
        }
        let until = cut_at(&self.pinned, &self.limits, epoch);
        Ok(AdmittedRequest { session: stamp.session, until })
    }

    /// Reports that a request has ended, for whatever reason.
    pub fn finish(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.running = session.running.saturating_sub(1);
        }
    }

    /// Until when a running request of the session may continue: the end of the last epoch that
    /// the session was carried on for, plus the overlap. `None` if it has ended.
    #[must_use]
    pub fn until(&self, id: SessionId) -> Option<Timestamp> {
        let session = self.sessions.get(&id).filter(|session| !session.ended)?;
        Some(cut_at(&self.pinned, &self.limits, session.status.epoch))
    }

    /// Ends a session at once, after checking the logout. The caller must send it to the
    /// verifier, too.
    ///
    /// # Errors
    /// [`GatewayError::NoSession`], [`GatewayError::Signature`].
    pub fn log_out(&mut self, logout: &Logout) -> Result<(), GatewayError> {
        let session = self.sessions.get_mut(&logout.session).ok_or(GatewayError::NoSession)?;
        let id = logout.session.0.0;
        session
            .status
            .holder
            .verify(labels::CREDENTIAL_LOGOUT, id.as_bytes(), &logout.signature)
            .map_err(|_| GatewayError::Signature)?;
        session.ended = true;
        session.connection = None;
        Ok(())
    }

    /// Deletes sessions that have no running requests and can no longer be carried on, as far as is
    /// known here. One that has answered a challenge which is still valid stays: it may have been carried
    /// on elsewhere, and must not answer the same challenge again.
    pub fn prune(&mut self, now: Timestamp) {
        let Some(running) = self.pinned.schedule.epoch_at(now) else { return };
        self.sessions.retain(|_, session| {
            let answered = session.connection.as_ref().map(|connection| &connection.answered);
            session.running > 0
                || session.status.epoch.next() >= running
                || answered.is_some_and(|answered| is_valid(answered, now))
        });
    }

    /// The number of known sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no session is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The running epoch, unless the clock went back.
    fn tick(&mut self, now: Timestamp) -> Result<Option<Epoch>, GatewayError> {
        let running = self.pinned.schedule.epoch_at(now);
        if running < self.clock {
            return Err(GatewayError::ClockStepped);
        }
        self.clock = running;
        Ok(running)
    }
}

/// Whether a challenge, `time:64 ‖ random:64`, may be answered now.
fn is_valid(challenge: &[u8; 16], now: Timestamp) -> bool {
    let drawn = challenge.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
    now.0.checked_sub(drawn).is_some_and(|age| age <= CHALLENGE_LIFE.0)
}

fn cut_at(pinned: &PinnedConfiguration, limits: &Limits, epoch: Epoch) -> Timestamp {
    pinned.schedule.starts(epoch.next()).plus(limits.overlap)
}

/// The name of a login's session, to find its shard without a key.
#[must_use]
pub fn session_of(pinned: &PinnedConfiguration, login: &Login) -> SessionId {
    use alpheus_anonymous_credential::messages::TagId;
    SessionId(TagId::of(&pinned.fingerprint(), login.epoch, &login.tag))
}
