//! Fetches what the other smoothers have said. Everybody asks, nobody pushes: what was
//! missed is asked for again.

use super::bulletin::Page;
use super::engine::Job;
use crate::service::engine::Handle;
use crate::stats::ways::Way;
use alpheus_accountable_statistics::configuration::SmootherId;
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(50);
/// How long after a peer did not answer it is asked again.
const LATER: Duration = Duration::from_millis(500);

/// Asks one peer for as long as the engine runs.
pub async fn run(by: SmootherId, way: Way, engine: Handle<Job>) {
    let (mut boot, mut next) = (0, 0);
    loop {
        let path = format!("/v1/said/{boot}/{next}");
        match way.get::<Page>(&path).await {
            Ok(page) => {
                let idle = page.said.is_empty();
                if !idle {
                    engine.tell(Job::Heard(by, page.said)).await;
                }
                (boot, next) = (page.boot, page.next);
                if idle {
                    tokio::time::sleep(ROUND).await;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "asking a smoother");
                tokio::time::sleep(LATER).await;
            }
        }
    }
}

/// Tells the engine that time passes.
pub async fn tick(engine: Handle<Job>) {
    loop {
        tokio::time::sleep(ROUND).await;
        engine.tell(Job::Tick).await;
    }
}
