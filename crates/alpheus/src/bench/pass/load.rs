//! Sends what was made before, and watches the servers.

use crate::bench::pass::holders::{Tokens, tokens};
use crate::bench::pass::town::{Server, Town};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::clock;
use crate::pass::gateway::api::PATH;
use crate::pass::link::Link;
use alpheus_anonymous_credential::holder::{Requesting, Which};
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use axum::http::{Method, header};
use data_encoding::BASE64;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Requests on their way at the same time.
const AT_ONCE: usize = 32;

/// Requests that an issuer answered.
pub(super) struct Registered {
    requests: u32,
}

impl Registered {
    /// Milliseconds of the server's time for one, all of them since its start.
    ///
    /// # Errors
    /// The kernel does not say.
    pub(super) fn per_request(&self, server: &Server) -> Result<f64, Failure> {
        Ok(server.cpu()? * 1000.0 / f64::from(self.requests))
    }
}

/// Milliseconds of the verifier's time for one.
pub(super) struct Sent {
    pub(super) login: f64,
    pub(super) re_up: f64,
}

/// How a crowd fared.
pub(super) struct Crowd {
    pub(super) failed: f64,
    /// In order, in milliseconds.
    pub(super) latencies: Vec<f64>,
    pub(super) seconds: f64,
    pub(super) verifier_cpu: f64,
    pub(super) gateway_cpu: f64,
    pub(super) verifier_kb: f64,
    pub(super) gateway_kb: f64,
}

/// Registers accounts, each once.
///
/// # Errors
/// If one is refused.
pub(super) async fn register(town: &Town, requests: u32) -> Result<Registered, Failure> {
    let link = town.link("https", town.issuer_at)?;
    let mut asked = Vec::new();
    for (name, secret) in town.accounts.iter().take(requests as usize) {
        let (rng, now) = (&mut entropy::rng()?, clock::now());
        let begun =
            Requesting::begin(town.pinned.clone(), name.as_bytes(), now, Which::Running, rng);
        let begun = begun.blame(Category::Io)?.commit(&mut BTreeMap::new());
        let basic = BASE64.encode(format!("{name}:{secret}").as_bytes());
        asked.push((format!("Basic {basic}"), begun.blame(Category::Io)?.bytes()));
    }
    let requests = u32::try_from(asked.len()).unwrap_or(0);
    let send = move |(basic, body): (String, Vec<u8>)| {
        let link = link.clone();
        async move {
            let headers = [(header::AUTHORIZATION, basic.as_str())];
            link.exchange(Method::POST, "/v1/pass", &headers, body).await.map(drop)
        }
    };
    all(asked, send).await?;
    Ok(Registered { requests })
}

/// Sends everything, some at once.
async fn all<T, F>(
    items: Vec<T>,
    send: impl Fn(T) -> F + Send + Sync + 'static,
) -> Result<(), Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<(), crate::pass::link::LinkError>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(AT_ONCE));
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

/// Logins and re-ups straight to the verifier, over mutual TLS as from a gateway.
///
/// # Errors
/// If one is refused.
pub(super) async fn log_in_and_re_up(
    town: &Town,
    verifier: &Server,
    requests: u32,
) -> Result<Sent, Failure> {
    let link = town.link("https", town.verifier_at)?;
    // A new shard serves from the next epoch on, and making takes a while.
    let first = first_epoch(town, Duration::from_millis(u64::from(requests) * 4 + 1000));
    let sent = tokens(&town.key()?, &town.pinned, requests, first, 2)?;
    let post = move |link: Link, what: &'static str| {
        move |body: Vec<u8>| {
            let link = link.clone();
            async move { link.post(&format!("/v1/shards/0/1/{what}"), body).await.map(drop) }
        }
    };
    let (logins, re_ups): (Vec<_>, Vec<_>) =
        sent.into_iter().map(|Tokens { login, re_ups }| (login, re_ups.concat())).unzip();
    sleep_until(town.pinned.schedule.starts(first)).await;
    let start = verifier.cpu()?;
    all(logins, post(link.clone(), "login")).await?;
    let between = verifier.cpu()?;
    sleep_until(town.pinned.schedule.opens(first.next())).await;
    all(re_ups, post(link, "re-up")).await?;
    let (end, each) = (verifier.cpu()?, 1000.0 / f64::from(requests));
    Ok(Sent { login: (between - start) * each, re_up: (end - between) * each })
}

/// An epoch that begins once something of that length is done, and that nobody could
/// log in for yet when the shard was started: else it would refuse it.
fn first_epoch(town: &Town, takes: Duration) -> Epoch {
    let takes = u64::try_from(takes.as_micros()).unwrap_or(0);
    let done = clock::now().0 + takes + town.pinned.schedule.border_pre_login;
    town.pinned.schedule.epoch_at(Time(done)).unwrap_or(Epoch(0)).next()
}

async fn sleep_until(time: Time) {
    tokio::time::sleep(clock::until(time)).await;
}

/// A crowd of clients through the gateway: each logs in somewhere in the first
/// epoch, and is carried on to each after it, at a time of its own.
///
/// # Errors
/// If nothing can be sent at all.
pub(super) async fn crowd(
    town: &Town,
    verifier: &Server,
    gateway: &Server,
    clients: u32,
    epochs: u32,
) -> Result<Crowd, Failure> {
    let link = town.link("http", town.gateway_at)?;
    let each = u64::from(epochs) * 1000 + 4000;
    let takes = Duration::from_micros(u64::from(clients) * each) + Duration::from_secs(1);
    let first = first_epoch(town, takes);
    let sent = tokens(&town.key()?, &town.pinned, clients, first, epochs)?;
    let (verifier_kb, gateway_kb) = (verifier.memory()?, gateway.memory()?);
    sleep_until(town.pinned.schedule.starts(first)).await;
    let (verifier_cpu, gateway_cpu) = (verifier.cpu()?, gateway.cpu()?);
    let (started, mut running) = (Instant::now(), JoinSet::new());
    for (number, tokens) in (0..clients).zip(sent) {
        let place = (number, clients);
        running.spawn(client(town.pinned.schedule, link.clone(), tokens, first, place));
    }
    let (mut failed, mut latencies) = (0.0, Vec::new());
    while let Some(fared) = running.join_next().await {
        for latency in fared.blame(Category::Io)? {
            match latency {
                Some(latency) => latencies.push(latency),
                None => failed += 1.0,
            }
        }
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Crowd {
        failed,
        latencies,
        seconds: started.elapsed().as_secs_f64(),
        verifier_cpu: verifier.cpu()? - verifier_cpu,
        gateway_cpu: gateway.cpu()? - gateway_cpu,
        verifier_kb: verifier.memory()? - verifier_kb,
        gateway_kb: gateway.memory()? - gateway_kb,
    })
}

/// One client; the time of each of its requests, none for one that failed.
async fn client(
    schedule: alpheus_anonymous_credential::schedule::Schedule,
    link: Link,
    tokens: Tokens,
    first: Epoch,
    (number, clients): (u32, u32),
) -> Vec<Option<f64>> {
    // Three quarters of the time in which re-ups are taken, as our client does.
    let spread = schedule.pre_login * 3 / 4 * u64::from(number) / u64::from(clients);
    let at = |epoch: Epoch| Time(schedule.opens(epoch).0 + spread);
    let mut fared = Vec::with_capacity(tokens.re_ups.len() + 1);
    tokio::time::sleep(clock::until(Time(schedule.starts(first).0 + spread))).await;
    fared.push(timed(&link, "login", tokens.login).await);
    let mut epoch = first;
    for re_up in tokens.re_ups {
        epoch = epoch.next();
        // The login itself may have come late in the first epoch.
        tokio::time::sleep(clock::until(at(epoch))).await;
        fared.push(timed(&link, "re-up", re_up).await);
    }
    fared
}

async fn timed(link: &Link, what: &str, body: Vec<u8>) -> Option<f64> {
    let start = Instant::now();
    let answer = link.post(&format!("{PATH}/{what}"), body).await;
    answer.ok().map(|_| start.elapsed().as_secs_f64() * 1000.0)
}
