//! The ways to all verifiers of a deployment, shard by shard.

use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::pass::link::{Base, Link, LinkError};
use alpheus_anonymous_credential::messages::TagId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// As many requests are under way to one shard; the others wait here. Each needs a
/// connection, and a crowd at once would cost as many handshakes, when time is dear.
pub const UNDER_WAY: usize = 128;
/// How long gateways and gates wait for a turn, and then for an answer: less than
/// clients wait for theirs.
pub const FOR_CLIENTS: Duration = Duration::from_secs(15);
/// How long verifiers wait for each other. What they ask is one flush of a disk, and
/// whoever waits for a shard that hangs keeps a gateway from this one.
pub const AMONG_VERIFIERS: Duration = Duration::from_secs(2);
/// After a shard has let a request run out of time, the others are not sent to it at
/// all for so long; then one is, to see.
const REST: Duration = Duration::from_secs(1);

/// The ways, by shard.
#[derive(Clone)]
pub struct Shards {
    ways: Arc<[Way]>,
    patience: Duration,
}

struct Way {
    link: Link,
    slots: Semaphore,
    /// It said nothing in time, and is not asked before this.
    rests: Mutex<Option<Instant>>,
}

/// No verifier is named.
#[derive(Debug, thiserror::Error)]
#[error("no verifier is named; say where each shard is, in order, between commas")]
struct NoVerifier;

impl Shards {
    /// Reads addresses between commas, in the order of the shards. Requests wait so long
    /// for their turn, and for their answer.
    ///
    /// # Errors
    /// If one is none, or a file of the identity cannot be used.
    pub fn new(
        addresses: &str,
        identity: &IdentityFolder,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let mut links = Vec::new();
        for address in addresses.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            links.push(Link::of(Base::parse(address).blame(Category::Usage)?, identity)?);
        }
        if links.is_empty() {
            return Err(NoVerifier).blame(Category::Usage);
        }
        Ok(Self::over(links, patience))
    }

    fn over(links: Vec<Link>, patience: Duration) -> Self {
        let way = |link| Way { link, slots: Semaphore::new(UNDER_WAY), rests: Mutex::new(None) };
        Self { ways: links.into_iter().map(way).collect(), patience }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ways.len() as u64
    }

    /// Sends bytes to the shard of a tag, and takes its answer.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        tag: TagId,
        body: Vec<u8>,
    ) -> Result<T, LinkError> {
        let (shard, of) = (tag.shard(self.count()), self.count());
        let way = usize::try_from(shard).ok().and_then(|shard| self.ways.get(shard));
        let way = way.ok_or_else(|| LinkError::Malformed("no such shard".into()))?;
        // It is never closed.
        let slot = timeout(self.patience, way.slots.acquire()).await;
        let _slot = slot.map_err(|_| way.silent("too many requests wait for it"))?;
        way.wakes(self.patience)?;
        let path = format!("/v1/shards/{shard}/{of}/{what}");
        let answer = timeout(self.patience, way.link.post(&path, body)).await;
        *way.rests() = answer.is_err().then(|| Instant::now() + REST);
        let answer = answer.map_err(|_| way.silent("it took too long"))??;
        let malformed = |_| LinkError::Malformed(way.link.base().origin());
        postcard::from_bytes(&answer).map_err(malformed)
    }

    /// Sends a value to the shard of a tag, and waits until it is done.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn tell(
        &self,
        what: &str,
        tag: TagId,
        value: &impl Serialize,
    ) -> Result<(), LinkError> {
        let body = postcard::to_allocvec(value);
        let body = body.map_err(|_| LinkError::Malformed("a message of ours".into()))?;
        self.ask::<crate::network::wire::Done>(what, tag, body).await.map(|_| ())
    }
}

impl Way {
    fn rests(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses while the shard rests. The first after that goes on, and the others wait
    /// for what comes of it, but not for long: it may be gone.
    fn wakes(&self, patience: Duration) -> Result<(), LinkError> {
        let (now, mut rests) = (Instant::now(), self.rests());
        if rests.is_some_and(|until| now < until) {
            return Err(self.silent("it did not answer just now"));
        }
        *rests = rests.map(|_| now + patience.min(AMONG_VERIFIERS));
        Ok(())
    }

    fn silent(&self, why: &str) -> LinkError {
        LinkError::Unreachable(self.link.base().origin(), why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::answer::encode;
    use crate::network::wire::Done;
    use crate::service::http::{Bounds, Server};
    use crate::service::shutdown::Trigger;
    use alpheus_crypto::hash::Digest;
    use axum::Router;
    use axum::routing::post;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::watch;

    /// A shard that hears what it is asked, and answers once it is thawed.
    async fn frozen() -> (Link, Arc<AtomicUsize>, watch::Sender<bool>, Trigger) {
        let (heard, thawed) = (Arc::new(AtomicUsize::new(0)), watch::Sender::new(false));
        let (count, thaws) = (heard.clone(), thawed.subscribe());
        let answer = move || {
            count.fetch_add(1, Ordering::SeqCst);
            let mut thaws = thaws.clone();
            async move {
                let _ = thaws.wait_for(|thawed| *thawed).await;
                encode(&Done {})
            }
        };
        let router = Router::new().fallback(post(answer));
        let server = Server::bind(([127, 0, 0, 1], 0).into(), None).await.unwrap();
        let server = server.with_bounds(Bounds::default());
        let base = Base::parse(&format!("http://{}", server.address().unwrap())).unwrap();
        let trigger = Trigger::new();
        tokio::spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
        (Link::new(base, None).unwrap(), heard, thawed, trigger)
    }

    /// Whoever waits for it keeps a slot of somebody who would not have to.
    #[tokio::test]
    async fn a_shard_that_hangs_is_left_alone_until_it_answers() {
        let (link, heard, thawed, _running) = frozen().await;
        let shards = Shards::over(vec![link], Duration::from_secs(1));
        let ask = || {
            let shards = shards.clone();
            async move { shards.tell("hold", TagId(Digest([0; 32])), &Done {}).await }
        };
        let crowd: Vec<_> = (0..UNDER_WAY + 60).map(|_| tokio::spawn(ask())).collect();
        for asked in crowd {
            assert!(matches!(asked.await.unwrap(), Err(LinkError::Unreachable(..))));
        }
        assert_eq!(heard.load(Ordering::SeqCst), UNDER_WAY, "no more at once");
        for _ in 0..200 {
            assert!(matches!(ask().await, Err(LinkError::Unreachable(..))));
        }
        let heard = heard.load(Ordering::SeqCst);
        assert!(heard <= UNDER_WAY + 2, "{heard}: all but one or two were kept from it");
        thawed.send_replace(true);
        let again = async {
            while ask().await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(timeout(Duration::from_secs(20), again).await.is_ok());
        let crowd: Vec<_> = (0..20).map(|_| tokio::spawn(ask())).collect();
        for asked in crowd {
            assert!(asked.await.unwrap().is_ok());
        }
    }
}
