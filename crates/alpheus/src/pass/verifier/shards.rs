//! The ways to all verifiers of a deployment, shard by shard.

use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::pass::link::{Base, Link, LinkError};
use alpheus_anonymous_credential::messages::TagId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// As many requests are under way to one shard; the others wait here. Each needs a
/// connection, and a crowd at once would cost as many handshakes, when time is dear.
const UNDER_WAY: usize = 128;

/// The ways, by shard.
#[derive(Clone)]
pub struct Shards(Arc<[Way]>);

struct Way {
    link: Link,
    slots: Semaphore,
}

/// No verifier is named.
#[derive(Debug, thiserror::Error)]
#[error("no verifier is named; say where each shard is, in order, between commas")]
struct NoVerifier;

impl Shards {
    /// Reads addresses between commas, in the order of the shards.
    ///
    /// # Errors
    /// If one is none, or a file of the identity cannot be used.
    pub fn new(addresses: &str, identity: &IdentityFolder) -> Result<Self, Failure> {
        let mut links = Vec::new();
        for address in addresses.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let base = Base::parse(address).blame(Category::Usage)?;
            let slots = Semaphore::new(UNDER_WAY);
            links.push(Way { link: Link::of(base, identity)?, slots });
        }
        if links.is_empty() {
            return Err(NoVerifier).blame(Category::Usage);
        }
        Ok(Self(links.into()))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len() as u64
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
        let way = usize::try_from(shard).ok().and_then(|shard| self.0.get(shard));
        let Way { link, slots } =
            way.ok_or_else(|| LinkError::Malformed("no such shard".into()))?;
        // It is never closed.
        let _slot = slots.acquire().await;
        let answer = link.post(&format!("/v1/shards/{shard}/{of}/{what}"), body).await?;
        postcard::from_bytes(&answer).map_err(|_| LinkError::Malformed(link.base().origin()))
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
