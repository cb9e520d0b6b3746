//! What the aggregator shows of aggregates that ended here, kept for a while: many clients ask for it
//! at about the same time.

use alpheus_crypto::hash::Digest;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// For how long the same is relayed. An aggregator that has said something wrong is asked again then.
const KEPT: Duration = Duration::from_secs(30);
/// The most bytes that are kept.
const MAX_BYTES: usize = 64 << 20;

/// Responses by the aggregate's name. Clones share them.
#[derive(Clone, Default)]
pub struct RelayedResponses {
    responses: Arc<Mutex<BTreeMap<Digest, Response>>>,
}

struct Response {
    asked: Instant,
    bytes: Arc<OnceCell<Arc<[u8]>>>,
}

impl RelayedResponses {
    /// The response about an aggregate. It is fetched once for all who ask meanwhile; a failure is not
    /// kept.
    ///
    /// # Errors
    /// That of `fetch`.
    pub async fn get<E>(
        &self,
        name: Digest,
        fetch: impl AsyncFnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<[u8]>, E> {
        let response = self.response(name, Instant::now());
        response.get_or_try_init(async || fetch().await.map(Arc::from)).await.cloned()
    }

    fn response(&self, name: Digest, now: Instant) -> Arc<OnceCell<Arc<[u8]>>> {
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        responses.retain(|_, kept| now.saturating_duration_since(kept.asked) < KEPT);
        let length = |kept: &Response| kept.bytes.get().map_or(0, |bytes| bytes.len());
        while responses.values().map(length).sum::<usize>() > MAX_BYTES {
            let whole = responses.iter().filter(|(_, kept)| length(kept) > 0);
            let oldest = whole.min_by_key(|(_, kept)| kept.asked).map(|(name, _)| *name);
            oldest.and_then(|name| responses.remove(&name));
        }
        let new = || Response { asked: now, bytes: Arc::default() };
        Arc::clone(&responses.entry(name).or_insert_with(new).bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_response_is_fetched_once_and_a_failure_again() {
        let (relayed, name) = (RelayedResponses::default(), Digest([1; 32]));
        assert_eq!(relayed.get(name, async || Err("nobody")).await, Err("nobody"));
        // Two ask at once, and one of them fetches.
        let fetched = Mutex::new(0);
        let slow = async || {
            *fetched.lock().unwrap() += 1;
            tokio::task::yield_now().await;
            Ok::<_, &str>(vec![7])
        };
        let (one, two) = tokio::join!(relayed.get(name, slow), relayed.get(name, slow));
        assert_eq!(
            (one.unwrap().as_ref(), two.unwrap().as_ref()),
            ([7].as_slice(), [7].as_slice())
        );
        assert_eq!(*fetched.lock().unwrap(), 1);
        let other = relayed.get(Digest([2; 32]), async || Err("another one")).await;
        assert_eq!(other, Err("another one"));
    }

    #[test]
    fn nothing_is_kept_for_long_and_nothing_beyond_the_limit() {
        let (relayed, start) = (RelayedResponses::default(), Instant::now());
        let put = |name: u8, after: Duration, bytes: usize| {
            let response = relayed.response(Digest([name; 32]), start + after);
            response.set(vec![0; bytes].into()).is_ok()
        };
        assert!(put(1, Duration::ZERO, 1) && !put(1, KEPT - Duration::from_nanos(1), 1));
        assert!(put(1, KEPT, 1), "it is fetched again");
        let now = KEPT;
        assert!(put(2, now, MAX_BYTES - 1) && put(3, now + Duration::from_nanos(1), 9));
        assert!(put(4, now + Duration::from_nanos(2), 1), "it makes room");
        let names: Vec<Digest> = relayed.responses.lock().unwrap().keys().copied().collect();
        assert_eq!(names, [3, 4].map(|name| Digest([name; 32])));
    }
}
