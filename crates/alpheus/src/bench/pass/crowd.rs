//! A crowd of clients through the gateway: each comes in an epoch, and in each after
//! it is carried on, or logs in anew, at a time of its own.

use crate::bench::pass::holders::{Stay, Tokens};
use crate::bench::pass::load::{made, sleep_until};
use crate::bench::pass::town::Town;
use crate::bench::program::Server;
use crate::bench::report::Series;
use crate::failure::{Blame, Category, Failure};
use crate::pass::clock;
use crate::pass::gateway::api::PATH;
use crate::pass::link::Link;
use alpheus_anonymous_credential::schedule::{Epoch, Schedule, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};

/// How often the servers' processor time is read, as the paper does.
const LOOK: Duration = Duration::from_secs(5);

/// How a crowd fared.
pub(super) struct Crowd {
    pub(super) failed: u64,
    /// In order, in milliseconds.
    pub(super) latencies: Vec<f64>,
    pub(super) verifier: Used,
    pub(super) gateway: Used,
}

/// What a server used of the machine.
pub(super) struct Used {
    /// Shares of one processor, in percent, over seconds.
    pub(super) processor: Series,
    /// The same, while everybody was there: from the last one's coming to the end.
    pub(super) steady: f64,
    /// More memory than before, in KB.
    pub(super) memory: f64,
}

/// Watches a server from now on.
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

    async fn end(self, server: &Server, name: &str, from: f64) -> Result<Used, Failure> {
        let memory = server.memory()? - self.memory;
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.seen.await.blame(Category::Io)?;
        let share = |a: &(f64, f64), b: &(f64, f64)| 100.0 * (b.1 - a.1) / (b.0 - a.0);
        let points = seen.iter().zip(seen.iter().skip(1)).map(|(a, b)| [b.0, share(a, b)]);
        let steady = seen.iter().find(|(at, _)| *at >= from).or(seen.first()).zip(seen.last());
        let steady = steady.map_or(f64::NAN, |(a, b)| share(a, b));
        let processor =
            Series { name: name.to_owned(), unit: "% of one processor", points: points.collect() };
        Ok(Used { processor, steady, memory })
    }
}

/// Lets so many clients come, and stay to the end.
///
/// # Errors
/// If nothing can be sent at all.
pub(super) async fn crowd(
    town: &Town,
    verifier: &Arc<Server>,
    gateway: &Arc<Server>,
    clients: u32,
    stay: Stay,
) -> Result<Crowd, Failure> {
    let link = town.link("http", town.gateway_at)?;
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
    // The epoch after the last one's coming is the first in which all are there.
    let all_there = (last + 1 - first.0) * town.pinned.schedule.epoch;
    let from = Duration::from_micros(all_there).as_secs_f64();
    Ok(Crowd {
        failed,
        latencies,
        verifier: watches.0.end(verifier, "verifier", from).await?,
        gateway: watches.1.end(gateway, "gateway", from).await?,
    })
}

/// One client; the time of each of its requests, none for one that failed.
async fn client(
    schedule: Schedule,
    link: Link,
    tokens: Tokens,
    (number, clients): (u32, u32),
) -> Vec<Option<f64>> {
    // Three quarters of the time in which re-ups are taken, as our client does.
    let spread = schedule.pre_login * 3 / 4 * u64::from(number) / u64::from(clients);
    let mut fared = Vec::with_capacity(tokens.each.len());
    for (epoch, (what, body)) in (tokens.first.0..).map(Epoch).zip(tokens.each) {
        let from = if what == "login" { schedule.starts(epoch) } else { schedule.opens(epoch) };
        tokio::time::sleep(clock::until(Time(from.0 + spread))).await;
        fared.push(timed(&link, what, body).await);
    }
    fared
}

async fn timed(link: &Link, what: &str, body: Vec<u8>) -> Option<f64> {
    let start = Instant::now();
    let answer = link.post(&format!("{PATH}/{what}"), body).await;
    answer.ok().map(|_| start.elapsed().as_secs_f64() * 1000.0)
}
