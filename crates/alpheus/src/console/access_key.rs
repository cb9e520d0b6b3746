//! Identity may use the page: only requests of a tab that was opened with a key, from a page that
//! this program served.
//!
//! The key in an address opens one tab. The tab exchanges it for a session of its own, which is in no
//! address, history or cookie. So anyone who sees the address later can do nothing with it.

use alpheus_node::network::answer::ApiError;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::routing::post;
use axum::{Json, Router};
use data_encoding::HEXLOWER;
use rand_core::CryptoRng;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq;

/// Tabs that are open at a time. The oldest has to be opened again.
const MAX_TABS: usize = 16;

/// Makes keys, and says which there are.
pub(super) struct AccessKey(Arc<Mutex<Keys>>);

struct Keys {
    /// Opens one tab.
    unused: String,
    /// Of the tabs.
    sessions: VecDeque<String>,
    /// Draws another one.
    draw: Box<dyn FnMut() -> String + Send>,
    /// Says the key that opens the next tab.
    say: Box<dyn Fn(&str) + Send>,
}

impl AccessKey {
    /// A fresh key. Once it is used, `say` says the next one.
    pub(super) fn new(
        mut rng: impl CryptoRng + Send + 'static,
        say: impl Fn(&str) + Send + 'static,
    ) -> AccessKey {
        let mut draw = move || {
            let mut key = [0; 16];
            rng.fill_bytes(&mut key);
            HEXLOWER.encode(&key)
        };
        let unused = draw();
        let sessions = VecDeque::new();
        let keys = Keys { unused, sessions, draw: Box::new(draw), say: Box::new(say) };
        AccessKey(Arc::new(Mutex::new(keys)))
    }

    /// For the page's address.
    pub(super) fn key(&self) -> String {
        locked(&self.0).unused.clone()
    }

    /// Lets only requests of tabs through.
    pub(super) fn guard(&self, router: Router) -> Router {
        let keys = Arc::clone(&self.0);
        let guarded = router.layer(from_fn(move |request: Request, next: Next| {
            let checked = locked(&keys).check(request.headers());
            async move {
                match checked {
                    Ok(()) => Ok(next.run(request).await),
                    Err(refused) => Err(refused),
                }
            }
        }));
        guarded.route("/api/session", post(open).with_state(Arc::clone(&self.0)))
    }
}

fn locked(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Serialize)]
struct Session {
    session: String,
}

/// Opens a tab with the key of an address.
async fn open(
    State(keys): State<Arc<Mutex<Keys>>>,
    headers: HeaderMap,
) -> Result<Json<Session>, ApiError> {
    locked(&keys).open(&headers).map(|session| Json(Session { session }))
}

impl Keys {
    fn open(&mut self, headers: &HeaderMap) -> Result<String, ApiError> {
        check_place(headers)?;
        if !is_same(&self.unused, shown(headers)) {
            return Err(refused(
                "this address has opened a tab before, and opens no other: open the last address that the command printed",
            ));
        }
        self.unused = (self.draw)();
        (self.say)(&self.unused);
        let session = (self.draw)();
        self.sessions.push_back(session.clone());
        if self.sessions.len() > MAX_TABS {
            self.sessions.pop_front();
        }
        Ok(session)
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        check_place(headers)?;
        let shown = shown(headers);
        match self.sessions.iter().any(|session| is_same(session, shown)) {
            true => Ok(()),
            false => {
                Err(refused("open the last address that the command printed; it contains a key"))
            }
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// That the page which makes the request is this program's.
fn check_place(headers: &HeaderMap) -> Result<(), ApiError> {
    let host = text(headers, header::HOST).unwrap_or_default();
    // A foreign page may point its own host name at this address.
    if !matches!(host.rsplit_once(':'), Some(("127.0.0.1" | "localhost", _))) {
        return Err(refused("open the page as 127.0.0.1 or localhost"));
    }
    if text(headers, header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}")) {
        return Err(refused("only the page itself may make requests"));
    }
    Ok(())
}

/// The key or session that a request shows.
fn shown(headers: &HeaderMap) -> &str {
    let shown = text(headers, header::AUTHORIZATION).and_then(|text| text.strip_prefix("Bearer "));
    shown.unwrap_or_default()
}

fn is_same(known: &str, shown: &str) -> bool {
    known.as_bytes().ct_eq(shown.as_bytes()).into()
}

fn refused(why: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "key", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn fields(of: &[(header::HeaderName, &str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn bearer(key: &str) -> HeaderMap {
        let shown = format!("Bearer {key}");
        fields(&[(header::HOST, "127.0.0.1:5"), (header::AUTHORIZATION, &shown)])
    }

    #[test]
    fn only_the_page_with_a_session_may_make_requests() {
        let gate = AccessKey::new(ChaCha20Rng::seed_from_u64(1), |_| {});
        let key = gate.key();
        let session = locked(&gate.0).open(&bearer(&key)).unwrap();
        let asked = |of: &[(header::HeaderName, &str)]| locked(&gate.0).check(&fields(of)).is_ok();
        let shown = format!("Bearer {session}");
        let (host, key) = ((header::HOST, "127.0.0.1:5"), (header::AUTHORIZATION, &*shown));
        let origin = |origin| (header::ORIGIN, origin);
        assert!(asked(&[host.clone(), key.clone()]));
        assert!(asked(&[host.clone(), key.clone(), origin("http://127.0.0.1:5")]));
        assert!(!asked(std::slice::from_ref(&host)) && !asked(std::slice::from_ref(&key)));
        assert!(!asked(&[host.clone(), (header::AUTHORIZATION, &shown[..shown.len() - 1])]));
        assert!(!asked(&[host.clone(), (header::AUTHORIZATION, "Bearer ")]));
        assert!(!asked(&[(header::HOST, "evil.example:5"), key.clone()]));
        assert!(!asked(&[host.clone(), key.clone(), origin("http://evil.example")]));
        assert!(!asked(&[host, key, origin("null")]));
    }

    #[test]
    fn a_key_opens_one_tab() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let say = move |key: &str| heard.lock().unwrap().push(key.to_owned());
        let gate = AccessKey::new(ChaCha20Rng::seed_from_u64(2), say);
        let key = gate.key();
        let open = |key: &str| locked(&gate.0).open(&bearer(key));
        let is_in = |key: &str| locked(&gate.0).check(&bearer(key)).is_ok();
        assert!(!is_in(&key), "the key itself may do nothing");
        let first = open(&key).unwrap();
        assert!(open(&key).is_err(), "a second browser has the address");
        assert!(is_in(&first) && !is_in(&key));
        assert!(open(&first).is_err() && open("").is_err());
        // Another tab of the same person has an address of its own.
        let next = said.lock().unwrap().pop().unwrap();
        assert!(next == gate.key() && open(&next).is_ok() && is_in(&first));
        for _ in 0..MAX_TABS {
            open(&gate.key()).unwrap();
        }
        assert!(!is_in(&first));
    }
}
