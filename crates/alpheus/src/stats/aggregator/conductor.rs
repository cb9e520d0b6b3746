//! Brings each aggregate whose time has come from the release to its result: fetches what
//! smoothers release, has it examined, closes, shows all of it, hears how it ended.

use super::engine::{Due, Job};
use crate::pass::link::LinkError;
use crate::service::engine::Handle;
use crate::stats::names::hex;
use crate::stats::ways::Way;
use alpheus_accountable_statistics::aggregator::Examined;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::messages::{Closing, Outcome, Release, Shown};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(100);
/// Tuples that are shown at a time.
const SHOWN: usize = 256;

/// What it knows beside the role.
struct Conductor {
    ways: Vec<(SmootherId, Way)>,
    engine: Handle<Job>,
    /// Who has agreed to which closing.
    agreed: BTreeSet<(Digest, SmootherId)>,
}

/// Runs for as long as the engine does.
pub async fn run(ways: Vec<(SmootherId, Way)>, engine: Handle<Job>) {
    let mut conductor = Conductor { ways, engine, agreed: BTreeSet::new() };
    loop {
        tokio::time::sleep(ROUND).await;
        let Ok(due) = conductor.engine.ask(Job::Due).await else { continue };
        if due.is_empty() {
            continue;
        }
        for due in due {
            conductor.advance(due).await;
        }
        conductor.outcomes().await;
    }
}

impl Conductor {
    async fn advance(&mut self, due: Due) {
        match due.closed {
            None => self.gather(due.name).await,
            Some((closing, shown)) => self.show(due.name, &closing, &shown).await,
        }
    }

    /// From what smoothers release to the closing.
    async fn gather(&mut self, name: Digest) {
        let path = format!("/v1/release/{}", hex(&name));
        for (by, way) in &self.ways {
            match way.get::<Release>(&path).await {
                Ok(release) => {
                    let release = Box::new(release);
                    let taken = self.engine.ask(|reply| Job::Take(*by, release, reply)).await;
                    if let Ok(Err(why)) = taken {
                        tracing::warn!(%why, by = by.0, "a release is not taken");
                    }
                }
                Err(error) => told(&error, "asking for a release"),
            }
        }
        let work = match self.engine.ask(|reply| Job::Work(name, reply)).await {
            Ok(Ok(work)) => work,
            Ok(Err(why)) => return tracing::debug!(%why, "nothing to examine yet"),
            Err(_) => return,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = work.split(threads).into_iter();
        let parts: Vec<_> =
            parts.map(|part| tokio::task::spawn_blocking(move || part.run())).collect();
        let mut examined = Vec::new();
        for part in parts {
            let Ok(part) = part.await else { return };
            examined.push(part);
        }
        let Some(examined) = Examined::join(examined).map(Box::new) else { return };
        tracing::info!(rejected = examined.rejected(), "an aggregate is examined");
        if let Ok(Err(why)) = self.engine.ask(|reply| Job::Examined(examined, reply)).await {
            tracing::warn!(%why, "an aggregate is not closed");
        }
    }

    /// All that counts, to every smoother that has not agreed yet.
    async fn show(&mut self, name: Digest, closing: &Signed<Closing>, shown: &Arc<Vec<Shown>>) {
        let mut showing = tokio::task::JoinSet::new();
        for (by, way) in self.ways.clone() {
            if self.agreed.contains(&(name, by)) {
                continue;
            }
            let (closing, shown) = (closing.clone(), Arc::clone(shown));
            showing.spawn(async move { (by, show_one(&way, name, &closing, &shown).await) });
        }
        while let Some(Ok((by, result))) = showing.join_next().await {
            match result {
                Ok(()) => drop(self.agreed.insert((name, by))),
                Err(error) => told(&error, "showing what counts"),
            }
        }
    }

    async fn outcomes(&self) {
        for (by, way) in &self.ways {
            match way.get::<Vec<Signed<Outcome>>>("/v1/outcomes").await {
                Ok(outcomes) => self.engine.tell(Job::Outcomes(*by, outcomes)).await,
                Err(error) => told(&error, "asking for outcomes"),
            }
        }
    }
}

async fn show_one(
    way: &Way,
    name: Digest,
    closing: &Signed<Closing>,
    shown: &[Shown],
) -> Result<(), LinkError> {
    let path = format!("/v1/check/{}", hex(&name));
    for chunk in shown.chunks(SHOWN) {
        way.post::<()>(&path, &chunk).await?;
    }
    way.post("/v1/close", closing).await
}

fn told(error: &LinkError, what: &str) {
    tracing::debug!(%error, what);
}
