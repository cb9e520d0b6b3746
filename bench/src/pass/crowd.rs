//! A crowd of clients through the gateway: each logs in during an epoch, and in each later
//! epoch it re-ups or logs in again, at its own time.

use crate::pass::holders::{Stay, Tokens};
use crate::pass::load::{made, sleep_until};
use crate::pass::town::Town;
use crate::program::Server;
use crate::report::Series;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::client::HttpClient;
use alpheus_pass_service::gateway::api::PATH;
use alpheus_time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};

/// How often the servers' processor time is read, as the paper does.
const LOOK: Duration = Duration::from_secs(5);

/// The result of a crowd.
pub(super) struct Crowd {
    pub(super) failed: u64,
    /// In order, in milliseconds.
    pub(super) latencies: Vec<f64>,
    pub(super) verifier: ServerLoad,
    pub(super) gateway: ServerLoad,
}

/// The resources that a server used.
pub(super) struct ServerLoad {
    /// Shares of one processor, in percent, over seconds.
    pub(super) processor: Series,
    /// The same with everybody online: from the arrival of the last client to the end.
    pub(super) steady: f64,
    /// The growth of memory, in KB.
    pub(super) memory: f64,
}

/// Starts to measure a server.
struct Watch {
    stop: Arc<AtomicBool>,
    memory: f64,
    /// Seconds since the start, and processor time by then.
    seen: JoinHandle<Vec<(f64, f64)>>,
}

impl Watch {
    fn begin(server: &Arc<Server>, memory: f64) -> Self {
        let (stop, server) = (Arc::new(AtomicBool::new(false)), Arc::clone(server));
        let stopped = Arc::clone(&stop);
        let seen = tokio::spawn(async move {
            let (start, mut seen) = (Instant::now(), Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                seen.extend(server.cpu().map(|cpu| (start.elapsed().as_secs_f64(), cpu)).ok());
                tokio::time::sleep(LOOK).await;
            }
            seen
        });
        Self { stop, memory, seen }
    }

    async fn end(self, server: &Server, name: &str, from: f64) -> Result<ServerLoad, Failure> {
        let memory = server.memory()? - self.memory;
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.seen.await.blame(Category::Io)?;
        let share = |a: &(f64, f64), b: &(f64, f64)| 100.0 * (b.1 - a.1) / (b.0 - a.0);
        let points = seen.iter().zip(seen.iter().skip(1)).map(|(a, b)| [b.0, share(a, b)]);
        let steady = seen.iter().find(|(at, _)| *at >= from).or(seen.first()).zip(seen.last());
        let steady = steady.map_or(f64::NAN, |(a, b)| share(a, b));
        let processor =
            Series { name: name.to_owned(), unit: "% of one processor", points: points.collect() };
        Ok(ServerLoad { processor, steady, memory })
    }
}

/// Runs this many clients to the end.
///
/// # Errors
/// If nothing can be sent.
pub(super) async fn crowd(
    town: &Town,
    verifier: &Arc<Server>,
    gateway: &Arc<Server>,
    clients: u32,
    stay: Stay,
) -> Result<Crowd, Failure> {
    let link = town.gateway_client()?;
    let (first, sent) = made(town, clients, stay)?;
    let memory = (verifier.memory()?, gateway.memory()?);
    sleep_until(town.pinned.schedule.starts(first)).await;
    let watches = (Watch::begin(verifier, memory.0), Watch::begin(gateway, memory.1));
    let last = sent.iter().map(|tokens| tokens.first.0).max().unwrap_or(first.0);
    let mut running = JoinSet::new();
    for (number, tokens) in (0..clients).zip(sent) {
        running.spawn(client(town.pinned.schedule, link.clone(), tokens, (number, clients)));
    }
    let (mut failed, mut latencies) = (0, Vec::new());
    while let Some(fared) = running.join_next().await {
        for latency in fared.blame(Category::Io)? {
            match latency {
                Some(latency) => latencies.push(latency),
                None => failed += 1,
            }
        }
    }
    latencies.sort_by(f64::total_cmp);
    // The epoch after the last arrival is the first in which all are online.
    let all_there = (last + 1 - first.0) * town.pinned.schedule.epoch.0;
    let from = Duration::from_micros(all_there).as_secs_f64();
    Ok(Crowd {
        failed,
        latencies,
        verifier: watches.0.end(verifier, "verifier", from).await?,
        gateway: watches.1.end(gateway, "gateway", from).await?,
    })
}

/// One client. Returns the time of each of its requests, or `None` for a failed one.
async fn client(
    schedule: Schedule,
    link: HttpClient,
    tokens: Tokens,
    (number, clients): (u32, u32),
) -> Vec<Option<f64>> {
    // Three quarters of the time in which re-ups are taken, as our client does.
    let spread = schedule.pre_login.0 * 3 / 4 * u64::from(number) / u64::from(clients);
    let mut fared = Vec::with_capacity(tokens.each.len());
    for (epoch, (what, body)) in (tokens.first.0..).map(Epoch).zip(tokens.each) {
        let from = if what == "login" { schedule.starts(epoch) } else { schedule.opens(epoch) };
        tokio::time::sleep(clock::until(Timestamp(from.0 + spread))).await;
        fared.push(timed(&link, what, body).await);
    }
    fared
}

async fn timed(link: &HttpClient, what: &str, body: Vec<u8>) -> Option<f64> {
    let start = Instant::now();
    let answer = link.post(&format!("{PATH}/{what}"), body).await;
    answer.ok().map(|_| start.elapsed().as_secs_f64() * 1000.0)
}
