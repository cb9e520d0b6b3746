//! Links to all verifiers of a deployment, one per shard.

use crate::links;
use alpheus_anonymous_credential::messages::TagId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Concurrent requests to one shard; the others wait here. Each needs a connection, and a
/// burst would otherwise cost as many handshakes at the worst moment.
pub const MAX_CONCURRENT: usize = 128;
/// How long gateways and gates wait for a slot, and then for an answer. Clients wait
/// longer than that.
pub const FOR_CLIENTS: Duration = Duration::from_secs(15);
/// How long verifiers wait for each other. A request costs one disk flush. While it waits
/// for a shard that hangs, it blocks a gateway.
pub const AMONG_VERIFIERS: Duration = Duration::from_secs(2);
/// After a timeout, a shard gets no requests for this long. Then it gets one, as a probe.
const REST: Duration = Duration::from_secs(1);

/// The links, by shard.
#[derive(Clone)]
pub struct Shards {
    links: Arc<[ShardLink]>,
    timeout: Duration,
}

struct ShardLink {
    link: HttpClient,
    slots: Semaphore,
    /// It timed out, and gets no requests before this.
    rests: Mutex<Option<Instant>>,
}

/// The list of verifiers is empty.
#[derive(Debug, thiserror::Error)]
#[error(
    "the list of verifiers is empty; give all addresses in the order of shards, separated by commas"
)]
pub(crate) struct NoVerifierError;

impl Shards {
    /// Parses addresses in the order of shards, separated by commas. Requests wait up to
    /// `timeout` for a slot, and again for their answer.
    ///
    /// # Errors
    /// If an address is invalid, or a file of the identity cannot be used.
    pub fn new(
        addresses: &str,
        identity: &IdentityFolder,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let mut clients = Vec::new();
        for address in addresses.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let base = Base::parse(address).blame(Category::Usage)?;
            clients.push(links::verifier(base, identity)?);
        }
        if clients.is_empty() {
            return Err(NoVerifierError).blame(Category::Usage);
        }
        Ok(Self::over(clients, timeout))
    }

    fn over(links: Vec<HttpClient>, timeout: Duration) -> Self {
        let slots = || Semaphore::new(MAX_CONCURRENT);
        let shard = |link| ShardLink { link, slots: slots(), rests: Mutex::new(None) };
        Self { links: links.into_iter().map(shard).collect(), timeout }
    }

    /// The number of shards.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.links.len() as u64
    }

    /// Sends bytes to the shard of a tag, and returns its answer.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        request: &str,
        tag: TagId,
        body: Vec<u8>,
    ) -> Result<T, RequestError> {
        let (shard, of) = (tag.shard(self.count()), self.count());
        let to = usize::try_from(shard).ok().and_then(|shard| self.links.get(shard));
        let to = to.ok_or_else(|| RequestError::Malformed { base: "no such shard".into() })?;
        // The semaphore is never closed.
        let slot = timeout(self.timeout, to.slots.acquire()).await;
        let _slot = slot.map_err(|_| to.unreachable("too many requests wait for it"))?;
        to.check_rest(self.timeout)?;
        let path = format!("/v1/shards/{shard}/{of}/{request}");
        let answer = timeout(self.timeout, to.link.post(&path, body)).await;
        *to.rests() = answer.is_err().then(|| Instant::now() + REST);
        let answer = answer.map_err(|_| to.unreachable("it took too long"))??;
        postcard::from_bytes(&answer).map_err(|_| to.link.malformed())
    }

    /// Sends a value to the shard of a tag, and waits for its acknowledgement.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn send(
        &self,
        request: &str,
        tag: TagId,
        value: &impl Serialize,
    ) -> Result<(), RequestError> {
        let body = postcard::to_allocvec(value);
        let malformed = |_| RequestError::Malformed { base: "a message to a shard".into() };
        let body = body.map_err(malformed)?;
        self.ask::<alpheus_node::network::answer::EmptyAnswer>(request, tag, body).await.map(|_| ())
    }
}

impl ShardLink {
    fn rests(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses while the shard rests. The first request after that is a probe. The others
    /// are refused for a short time, since the probe may be lost.
    fn check_rest(&self, timeout: Duration) -> Result<(), RequestError> {
        let (now, mut rests) = (Instant::now(), self.rests());
        if rests.is_some_and(|until| now < until) {
            return Err(self.unreachable("its last request timed out"));
        }
        *rests = rests.map(|_| now + timeout.min(AMONG_VERIFIERS));
        Ok(())
    }

    fn unreachable(&self, why: &str) -> RequestError {
        self.link.unreachable(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::hash::Digest;
    use alpheus_node::network::answer::EmptyAnswer;
    use alpheus_node::network::answer::encode;
    use alpheus_node::network::role::Role;
    use alpheus_node::service::http::{Bounds, Server};
    use alpheus_node::service::shutdown::Trigger;
    use axum::Router;
    use axum::routing::post;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::watch;

    /// As long as a loaded machine may take.
    const LONG: Duration = Duration::from_secs(60);

    /// A shard that counts requests, and answers once it is thawed.
    async fn frozen() -> (HttpClient, Arc<AtomicUsize>, watch::Sender<bool>, Trigger) {
        let (count, thawed) = (Arc::new(AtomicUsize::new(0)), watch::Sender::new(false));
        let (counter, thaws) = (count.clone(), thawed.subscribe());
        let answer = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut thaws = thaws.clone();
            async move {
                let _ = thaws.wait_for(|thawed| *thawed).await;
                encode(&EmptyAnswer {})
            }
        };
        let router = Router::new().fallback(post(answer));
        let server = Server::bind(([127, 0, 0, 1], 0).into(), None).await.unwrap();
        let server = server.with_bounds(Bounds::default());
        let base = Base::parse(&format!("http://{}", server.address().unwrap())).unwrap();
        let trigger = Trigger::new();
        tokio::spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        (HttpClient::anonymous(base, Role::Verifier, None).unwrap(), count, thawed, trigger)
    }

    async fn asks(shards: &Shards) -> Result<(), RequestError> {
        shards.send("hold", TagId(Digest([0; 32])), &EmptyAnswer {}).await
    }

    /// The others wait, and come in as soon as there is room.
    #[tokio::test]
    async fn a_shard_has_so_many_requests_at_once_and_no_more() {
        let (link, count, thawed, _running) = frozen().await;
        let shards = Shards::over(vec![link], LONG);
        let ask = || {
            let shards = shards.clone();
            tokio::spawn(async move { asks(&shards).await })
        };
        let crowd: Vec<_> = (0..MAX_CONCURRENT + 60).map(|_| ask()).collect();
        let end = Instant::now() + LONG;
        while count.load(Ordering::SeqCst) < MAX_CONCURRENT && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(count.load(Ordering::SeqCst), MAX_CONCURRENT, "no more at once");
        thawed.send_replace(true);
        for asked in crowd {
            assert!(asked.await.unwrap().is_ok());
        }
        assert_eq!(count.load(Ordering::SeqCst), MAX_CONCURRENT + 60);
    }

    /// Requests that wait for it would occupy slots that others need.
    #[tokio::test]
    async fn a_shard_that_hangs_gets_few_requests_until_it_answers() {
        const TIMEOUT: Duration = Duration::from_secs(1);
        let (link, count, thawed, _running) = frozen().await;
        let shards = Shards::over(vec![link], TIMEOUT);
        let ask = || {
            let shards = shards.clone();
            async move { asks(&shards).await }
        };
        let begun = Instant::now();
        let crowd: Vec<_> = (0..MAX_CONCURRENT + 60).map(|_| tokio::spawn(ask())).collect();
        for asked in crowd {
            assert!(matches!(asked.await.unwrap(), Err(RequestError::Unreachable { .. })));
        }
        for _ in 0..200 {
            assert!(matches!(ask().await, Err(RequestError::Unreachable { .. })));
        }
        // After each rest there is one probe. The first rest begins when the first request times out.
        let probes = (begun.elapsed() - TIMEOUT).as_millis() / REST.as_millis();
        let most = MAX_CONCURRENT + usize::try_from(probes).unwrap();
        let count = count.load(Ordering::SeqCst);
        assert!(count <= most, "{count}: all but {probes} were kept from it");
        thawed.send_replace(true);
        let again = async {
            while ask().await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(timeout(LONG, again).await.is_ok());
        let crowd: Vec<_> = (0..20).map(|_| tokio::spawn(ask())).collect();
        for asked in crowd {
            assert!(asked.await.unwrap().is_ok());
        }
    }
}
