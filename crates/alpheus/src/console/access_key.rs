//! Identity may use the page: only requests with the key from its address,
//! from a page that this program served.

use alpheus_node::network::answer::ApiError;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use data_encoding::HEXLOWER;
use rand_core::CryptoRng;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The key that requests must present.
pub(super) struct AccessKey(Arc<str>);

impl AccessKey {
    /// A fresh key.
    pub(super) fn new(rng: &mut impl CryptoRng) -> AccessKey {
        let mut key = [0; 16];
        rng.fill_bytes(&mut key);
        AccessKey(HEXLOWER.encode(&key).into())
    }

    /// For the page's address.
    pub(super) fn key(&self) -> &str {
        &self.0
    }

    /// Lets only requests with the key through.
    pub(super) fn guard(&self, router: Router) -> Router {
        let key = self.0.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let checked = check(&key, request.headers());
            async move {
                match checked {
                    Ok(()) => Ok(next.run(request).await),
                    Err(refused) => Err(refused),
                }
            }
        }))
    }
}

fn check(key: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    // A foreign page may point its own host name at this address.
    if !matches!(host.rsplit_once(':'), Some(("127.0.0.1" | "localhost", _))) {
        return Err(refused("open the page as 127.0.0.1 or localhost"));
    }
    if text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}")) {
        return Err(refused("only the page itself may make requests"));
    }
    let shown = text(header::AUTHORIZATION).and_then(|text| text.strip_prefix("Bearer "));
    if bool::from(shown.unwrap_or_default().as_bytes().ct_eq(key.as_bytes())) {
        return Ok(());
    }
    Err(refused("open the address that the command printed; it contains the key"))
}

fn refused(why: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "key", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_with_the_key_may_make_requests() {
        let asked = |fields: &[(header::HeaderName, &str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            check("0123", &fields.collect()).is_ok()
        };
        let (host, key) = ((header::HOST, "127.0.0.1:5"), (header::AUTHORIZATION, "Bearer 0123"));
        let origin = |origin| (header::ORIGIN, origin);
        assert!(asked(&[host.clone(), key.clone()]));
        assert!(asked(&[host.clone(), key.clone(), origin("http://127.0.0.1:5")]));
        assert!(!asked(std::slice::from_ref(&host)) && !asked(std::slice::from_ref(&key)));
        assert!(!asked(&[host.clone(), (header::AUTHORIZATION, "Bearer 012")]));
        assert!(!asked(&[(header::HOST, "evil.example:5"), key.clone()]));
        assert!(!asked(&[host.clone(), key.clone(), origin("http://evil.example")]));
        assert!(!asked(&[host, key, origin("null")]));
    }
}
