//! The gateway's sessions, shared by all requests, and what cuts a request off
//! when its session is over.

use crate::pass::clock;
use crate::service::http::Cut;
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::gateway::{Admitted, Gateway};
use alpheus_access_pass::messages::{Challenge, Connect, Connected, Hello};
use alpheus_access_pass::request::{Stamp, Target};
use alpheus_anonymous_credential::messages::{Logout, SessionId};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::sessions::Standing;
use rand_chacha::ChaCha20Rng;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A request looks at least this often whether its session still is, in case the
/// wall clock is set.
const LOOK: Duration = Duration::from_secs(5);

/// All sessions of this process.
pub struct Sessions(Mutex<Inner>);

struct Inner {
    gateway: Gateway,
    rng: ChaCha20Rng,
    /// Woken when a session ends before its time.
    ended: HashMap<SessionId, Arc<Notify>>,
}

/// A request that runs; it counts against its session until this is dropped.
pub struct Permit {
    sessions: Arc<Sessions>,
    session: SessionId,
    ended: Arc<Notify>,
}

impl Sessions {
    /// None yet.
    #[must_use]
    pub fn new(gateway: Gateway, rng: ChaCha20Rng) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { gateway, rng, ended: HashMap::new() })))
    }

    /// The clock is read under the lock, so that no request sees it go back.
    fn lock(&self) -> (MutexGuard<'_, Inner>, Time) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner, clock::now())
    }

    /// What a client compares and answers.
    #[must_use]
    pub fn hello(&self) -> Hello {
        let (mut inner, now) = self.lock();
        let Inner { gateway, rng, .. } = &mut *inner;
        gateway.hello(now, rng)
    }

    /// Takes note of what a verifier says.
    pub fn note(&self, standing: Standing) {
        self.lock().0.gateway.note(standing);
    }

    /// Whether a verifier need not be asked.
    #[must_use]
    pub fn knows(&self, session: SessionId) -> bool {
        let (inner, now) = self.lock();
        inner.gateway.knows(now, session)
    }

    /// Whether a challenge is ours, and may be answered.
    ///
    /// # Errors
    /// [`Denied::Challenge`].
    pub fn recognises(&self, challenge: &Challenge) -> Result<(), Denied> {
        let (inner, now) = self.lock();
        inner.gateway.recognises(now, challenge)
    }

    /// A holder speaks for a session.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn connect(&self, connect: &Connect) -> Result<Connected, Denied> {
        let (mut inner, now) = self.lock();
        inner.gateway.connect(now, connect)
    }

    /// A request may run.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn admit(self: &Arc<Self>, stamp: &Stamp, target: &Target<'_>) -> Result<Permit, Denied> {
        let (mut inner, now) = self.lock();
        let Admitted { session, .. } = inner.gateway.admit(now, stamp, target)?;
        let ended = inner.ended.entry(session).or_default().clone();
        Ok(Permit { sessions: Arc::clone(self), session, ended })
    }

    /// A request may begin; nobody here sees its end.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn check(&self, stamp: &Stamp, target: &Target<'_>) -> Result<Admitted, Denied> {
        let (mut inner, now) = self.lock();
        inner.gateway.check(now, stamp, target)
    }

    /// A session ends, and what runs of it is cut.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn log_out(&self, logout: &Logout) -> Result<(), Denied> {
        let (mut inner, _) = self.lock();
        inner.gateway.log_out(logout)?;
        if let Some(ended) = inner.ended.get(&logout.session) {
            ended.notify_waiters();
        }
        Ok(())
    }

    /// Forgets what is over.
    pub fn prune(&self) {
        let (mut inner, now) = self.lock();
        let Inner { gateway, ended, .. } = &mut *inner;
        gateway.prune(now);
        ended.retain(|_, ended| Arc::strong_count(ended) > 1);
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().0.gateway.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Permit {
    /// Completes when the request must be cut off: its session was not carried on
    /// and the overlap is over, or its holder logged out.
    #[must_use]
    pub fn cut(&self) -> Cut {
        let (sessions, session) = (Arc::clone(&self.sessions), self.session);
        let ended = Arc::clone(&self.ended);
        Box::pin(async move {
            loop {
                let woken = ended.notified();
                tokio::pin!(woken);
                woken.as_mut().enable();
                let Some(until) = sessions.lock().0.gateway.until(session) else { return };
                let left = clock::until(until);
                if left.is_zero() {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(left.min(LOOK)) => {}
                    () = woken => {}
                }
            }
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.sessions.lock().0.gateway.finish(self.session);
    }
}
