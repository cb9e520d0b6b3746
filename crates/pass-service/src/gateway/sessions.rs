//! The gateway's sessions, shared by all requests. A request is cut when its session ends.

use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::gateway::{AdmittedRequest, Gateway};
use alpheus_access_pass::messages::{Challenge, Connect, ConnectResponse, Hello};
use alpheus_access_pass::request::{Stamp, Target};
use alpheus_anonymous_credential::messages::{Logout, SessionId};
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_node::clock;
use alpheus_node::service::http::Cut;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use futures_util::future::{FutureExt, Shared};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often the end of a session is checked again, in case the wall clock is set meanwhile.
const CHECK: Duration = Duration::from_secs(5);

/// All sessions of this process.
pub struct Sessions(Mutex<Inner>);

struct Inner {
    gateway: Gateway,
    rng: ChaCha20Rng,
    /// For sessions with requests that can be cut.
    endings: HashMap<SessionId, Ending>,
}

/// The end of a session, shared by its requests. With one timer per request, each request
/// would wake the task that waits for the next timer.
struct Ending {
    /// Notified when the session ends early.
    early: Arc<Notify>,
    over: Shared<Cut>,
}

/// A running request. It counts against its session until this is dropped.
pub struct Permit {
    sessions: Arc<Sessions>,
    session: SessionId,
    over: Shared<Cut>,
}

impl Sessions {
    /// No sessions.
    #[must_use]
    pub fn new(gateway: Gateway, rng: ChaCha20Rng) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { gateway, rng, endings: HashMap::new() })))
    }

    /// The clock is read under the lock, so no request sees it go backwards.
    fn lock(&self) -> (MutexGuard<'_, Inner>, Timestamp) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner, clock::now())
    }

    /// The fingerprint that a client compares, and the challenge that it answers.
    #[must_use]
    pub fn hello(&self) -> Hello {
        let (mut inner, now) = self.lock();
        let Inner { gateway, rng, .. } = &mut *inner;
        gateway.hello(now, rng)
    }

    /// Records a session's status from a verifier.
    pub fn note(&self, status: SessionStatus) {
        self.lock().0.gateway.update(status);
    }

    /// Whether the session is known, so that its verifier need not be asked.
    #[must_use]
    pub fn knows(&self, session: SessionId) -> bool {
        let (inner, now) = self.lock();
        inner.gateway.knows(session, now)
    }

    /// Checks that a challenge is ours and still valid.
    ///
    /// # Errors
    /// [`GatewayError::Challenge`].
    pub fn recognises(&self, challenge: &Challenge) -> Result<(), GatewayError> {
        let (inner, now) = self.lock();
        inner.gateway.verify_challenge(challenge, now)
    }

    /// Connects a holder to a session.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn connect(&self, connect: &Connect) -> Result<ConnectResponse, GatewayError> {
        let (mut inner, now) = self.lock();
        inner.gateway.connect(connect, now)
    }

    /// Admits a request.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn admit(
        self: &Arc<Self>,
        stamp: &Stamp,
        target: &Target<'_>,
    ) -> Result<Permit, GatewayError> {
        let (mut inner, now) = self.lock();
        let AdmittedRequest { session, .. } = inner.gateway.admit(stamp, target, now)?;
        let known = inner.endings.get(&session).map(|ending| ending.over.clone());
        // One that has completed is stale: the clock was set back since.
        let over = known.filter(|over| over.peek().is_none()).unwrap_or_else(|| {
            let ending = Ending::new(self, session);
            let over = ending.over.clone();
            inner.endings.insert(session, ending);
            over
        });
        Ok(Permit { sessions: Arc::clone(self), session, over })
    }

    /// Checks a request whose end is not visible here.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn check(
        &self,
        stamp: &Stamp,
        target: &Target<'_>,
    ) -> Result<AdmittedRequest, GatewayError> {
        let (mut inner, now) = self.lock();
        inner.gateway.check(stamp, target, now)
    }

    /// Ends a session, and cuts its running requests.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn log_out(&self, logout: &Logout) -> Result<(), GatewayError> {
        let (mut inner, _) = self.lock();
        inner.gateway.log_out(logout)?;
        if let Some(ending) = inner.endings.get(&logout.session) {
            ending.early.notify_one();
        }
        Ok(())
    }

    /// Removes sessions that have ended.
    pub fn prune(&self) {
        let (mut inner, now) = self.lock();
        let Inner { gateway, endings, .. } = &mut *inner;
        gateway.prune(now);
        endings.retain(|_, ending| ending.over.strong_count().is_some_and(|count| count > 1));
    }

    /// The number of known sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().0.gateway.len()
    }

    /// Whether no session is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Ending {
    /// Completes when the session was not renewed and the overlap is over, or when its
    /// holder logged out.
    fn new(sessions: &Arc<Sessions>, session: SessionId) -> Ending {
        let (sessions, early) = (Arc::downgrade(sessions), Arc::new(Notify::new()));
        let woken = Arc::clone(&early);
        let over: Cut = Box::pin(async move {
            let until = || sessions.upgrade()?.lock().0.gateway.until(session);
            while let Some(left) = until().map(clock::until).filter(|left| !left.is_zero()) {
                tokio::select! {
                    () = tokio::time::sleep(left.min(CHECK)) => {}
                    () = woken.notified() => {}
                }
            }
        });
        Ending { early, over: over.shared() }
    }
}

impl Permit {
    /// Completes when the request must be cut: its session was not renewed and the overlap
    /// is over, or its holder logged out.
    #[must_use]
    pub fn cut(&self) -> Cut {
        Box::pin(self.over.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.sessions.lock().0.gateway.finish(self.session);
    }
}
