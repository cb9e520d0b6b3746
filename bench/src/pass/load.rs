//! Sends prepared requests, and counts the servers' processor time.

use crate::pass::holders::{Stay, Tokens, takes, tokens};
use crate::pass::town::Town;
use crate::program::Server;
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_time::Timestamp;
use axum::http::{Method, header};
use data_encoding::BASE64;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The number of concurrent requests.
pub(super) const AT_ONCE: usize = 32;

/// Requests that an issuer answered.
pub(super) struct AnsweredRequests {
    requests: u32,
}

impl AnsweredRequests {
    /// Milliseconds of the server's time for one request, over all since its start.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub(super) fn per_request(&self, server: &Server) -> Result<f64, Failure> {
        Ok(server.cpu()? * 1000.0 / f64::from(self.requests))
    }
}

/// Milliseconds of the verifier's time for one.
pub(super) struct RequestCosts {
    pub(super) login: f64,
    pub(super) re_up: f64,
}

/// Registers accounts, each once.
///
/// # Errors
/// If one is refused.
pub(super) async fn register(town: &Town, requests: u32) -> Result<AnsweredRequests, Failure> {
    let link = town.issuer_client()?;
    let mut asked = Vec::new();
    for (name, secret) in town.accounts.iter().take(requests as usize) {
        let (rng, now) = (&mut entropy::rng()?, clock::now());
        let begun =
            PendingRequest::begin(town.pinned.clone(), name.as_bytes(), Timing::Running, now, rng);
        let begun = begun.blame(Category::Io)?.commit(&mut BTreeMap::new());
        let basic = BASE64.encode(format!("{name}:{secret}").as_bytes());
        asked.push((format!("Basic {basic}"), begun.blame(Category::Io)?.bytes()));
    }
    let requests = u32::try_from(asked.len()).unwrap_or(0);
    let send = move |(basic, body): (String, Vec<u8>)| {
        let link = link.clone();
        async move {
            let headers = [(header::AUTHORIZATION, basic.as_str())];
            link.exchange(Method::POST, "/v1/pass", &headers, body, Limits::SHORT).await.map(drop)
        }
    };
    all(asked, AT_ONCE, send).await?;
    Ok(AnsweredRequests { requests })
}

/// Sends everything, with limited concurrency.
///
/// # Errors
/// If one is refused.
pub(super) async fn all<T, F>(
    items: Vec<T>,
    at_once: usize,
    send: impl Fn(T) -> F + Send + Sync + 'static,
) -> Result<(), Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<(), alpheus_node::network::error::RequestError>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for item in items {
        let slot = slots.clone().acquire_owned().await.blame(Category::Io)?;
        let sending = send(item);
        running.spawn(async move {
            let _slot = slot;
            sending.await
        });
    }
    while let Some(sent) = running.join_next().await {
        sent.blame(Category::Io)??;
    }
    Ok(())
}

/// Sends logins and re-ups directly to the verifier, over mutual TLS as from a gateway.
///
/// # Errors
/// If one is refused.
pub(super) async fn log_in_and_re_up(
    town: &Town,
    verifier: &Server,
    requests: u32,
) -> Result<RequestCosts, Failure> {
    let link = town.verifier_client()?;
    let (first, sent) = made(town, requests, Stay::from_the_first(2))?;
    let post = move |link: HttpClient, what: &'static str| {
        move |body: Vec<u8>| {
            let link = link.clone();
            async move { link.post(&format!("/v1/shards/0/1/{what}"), body).await.map(drop) }
        }
    };
    let (mut logins, mut re_ups) = (Vec::new(), Vec::new());
    for (what, bytes) in sent.into_iter().flat_map(|tokens| tokens.each) {
        if what == "login" { logins.push(bytes) } else { re_ups.push(bytes) }
    }
    sleep_until(town.pinned.schedule.starts(first)).await;
    let start = verifier.cpu()?;
    all(logins, AT_ONCE, post(link.clone(), "login")).await?;
    let between = verifier.cpu()?;
    sleep_until(town.pinned.schedule.opens(first.next())).await;
    all(re_ups, AT_ONCE, post(link, "re-up")).await?;
    let (end, each) = (verifier.cpu()?, 1000.0 / f64::from(requests));
    Ok(RequestCosts { login: (between - start) * each, re_up: (end - between) * each })
}

/// Tokens from an epoch on that starts after they are made. Nobody could log in
/// for it yet when the shard started. Otherwise the shard would reject it.
pub(super) fn made(town: &Town, holders: u32, stay: Stay) -> Result<(Epoch, Vec<Tokens>), Failure> {
    let (key, pinned) = (town.key()?, &town.pinned);
    let takes = takes(&key, pinned, holders, stay)? + Duration::from_secs(1);
    let takes = u64::try_from(takes.as_micros()).unwrap_or(0);
    let done = clock::now().0 + takes + pinned.schedule.border_pre_login.0;
    let first = pinned.schedule.epoch_at(Timestamp(done)).unwrap_or(Epoch(0)).next();
    Ok((first, tokens(&key, pinned, holders, first, stay)?))
}

pub(super) async fn sleep_until(time: Timestamp) {
    tokio::time::sleep(clock::until(time)).await;
}
