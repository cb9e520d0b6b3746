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
use futures_util::future::{FutureExt, Shared};
use rand_chacha::ChaCha20Rng;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Whether a session still is, is looked at least this often, in case the wall
/// clock is set.
const LOOK: Duration = Duration::from_secs(5);

/// All sessions of this process.
pub struct Sessions(Mutex<Inner>);

struct Inner {
    gateway: Gateway,
    rng: ChaCha20Rng,
    /// Of sessions with requests that can be cut.
    endings: HashMap<SessionId, Ending>,
}

/// The end of a session, for all of its requests: with a timer for each, a request
/// would wake whoever waits for the next of all timers.
#[derive(Clone)]
struct Ending {
    /// Woken when the session ends before its time.
    early: Arc<Notify>,
    over: Shared<Cut>,
}

/// A request that runs; it counts against its session until this is dropped.
pub struct Permit {
    sessions: Arc<Sessions>,
    session: SessionId,
    over: Shared<Cut>,
}

impl Sessions {
    /// None yet.
    #[must_use]
    pub fn new(gateway: Gateway, rng: ChaCha20Rng) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { gateway, rng, endings: HashMap::new() })))
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
        let known = inner.endings.get(&session).map(|ending| ending.over.clone());
        // One that has come, by a clock that was set back since, is none.
        let over = known.filter(|over| over.peek().is_none()).unwrap_or_else(|| {
            let ending = Ending::new(self, session);
            let over = ending.over.clone();
            inner.endings.insert(session, ending);
            over
        });
        Ok(Permit { sessions: Arc::clone(self), session, over })
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
        if let Some(ending) = inner.endings.get(&logout.session) {
            ending.early.notify_one();
        }
        Ok(())
    }

    /// Forgets what is over.
    pub fn prune(&self) {
        let (mut inner, now) = self.lock();
        let Inner { gateway, endings, .. } = &mut *inner;
        gateway.prune(now);
        endings.retain(|_, ending| ending.over.strong_count().is_some_and(|held| held > 1));
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

impl Ending {
    /// Completes when the session was not carried on and the overlap is over, or its
    /// holder logged out.
    fn new(sessions: &Arc<Sessions>, session: SessionId) -> Ending {
        let (sessions, early) = (Arc::downgrade(sessions), Arc::new(Notify::new()));
        let woken = Arc::clone(&early);
        let over: Cut = Box::pin(async move {
            let until = || sessions.upgrade()?.lock().0.gateway.until(session);
            while let Some(left) = until().map(clock::until).filter(|left| !left.is_zero()) {
                tokio::select! {
                    () = tokio::time::sleep(left.min(LOOK)) => {}
                    () = woken.notified() => {}
                }
            }
        });
        Ending { early, over: over.shared() }
    }
}

impl Permit {
    /// Completes when the request must be cut off: its session was not carried on
    /// and the overlap is over, or its holder logged out.
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
