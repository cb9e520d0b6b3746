//! Fetches what the other smoothers have said. Everybody asks, nobody pushes: what was
//! missed is asked for again.

use super::bulletin::{PAGE, Page, Said};
use super::engine::{Job, RELEASED};
use crate::pass::link::LinkError;
use crate::service::engine::Handle;
use crate::stats::names::hex;
use crate::stats::ways::Way;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Entry, Ready};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often.
const ROUND: Duration = Duration::from_millis(50);
/// How soon after a page that was full.
const SOON: Duration = Duration::from_millis(5);
/// How long after a peer did not answer it is asked again.
const LATER: Duration = Duration::from_millis(500);

/// Asks one peer for as long as the engine runs.
pub async fn run(by: SmootherId, way: Way, engine: Handle<Job>) {
    let (mut boot, mut next) = (0, 0);
    loop {
        let path = format!("/v1/said/{boot}/{next}");
        match way.get::<Page>(&path).await {
            Ok(page) => {
                let full = page.said.len() >= PAGE;
                if !page.said.is_empty() {
                    engine.tell(Job::Heard(by, page.said)).await;
                }
                (boot, next) = (page.boot, page.next);
                // What is said meanwhile comes together; who always has more is heard so fast.
                tokio::time::sleep(if full { SOON } else { ROUND }).await;
            }
            Err(error) => {
                tracing::debug!(%error, "asking a smoother");
                tokio::time::sleep(LATER).await;
            }
        }
    }
}

/// Fetches from a peer what is lacking before a release, and once of each aggregate what it knows
/// to be certified and who was ready for which set: a smoother that comes back from an old copy of
/// its state finds its own signatures there.
pub async fn complete(way: Way, engine: Handle<Job>) {
    let mut asked = BTreeSet::new();
    loop {
        tokio::time::sleep(LATER).await;
        let needs = engine.ask(Job::Needs).await.unwrap_or_default();
        asked.retain(|name| needs.iter().any(|need| need.aggregate == *name));
        for need in needs {
            let name = hex(&need.aggregate);
            if need.uncertified || !asked.contains(&need.aggregate) {
                match known(&way, &need.aggregate, &engine).await {
                    Ok(()) => drop(asked.insert(need.aggregate)),
                    Err(error) => tracing::debug!(%error, "asking what is certified"),
                }
            }
            for slot in need.lacking {
                match way.get::<Option<Sealed>>(&format!("/v1/kept/{name}/{slot}")).await {
                    Ok(Some(sealed)) => {
                        engine.tell(Job::Keep(need.aggregate, slot, Box::new(sealed))).await;
                    }
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "asking for a deposit"),
                }
            }
        }
    }
}

/// Fetches what a peer knows to be certified, some slots at a time, and who it has heard to be
/// ready for which set.
async fn known(way: &Way, aggregate: &Digest, engine: &Handle<Job>) -> Result<(), LinkError> {
    let (name, mut from) = (hex(aggregate), Some(0));
    while let Some(slot) = from {
        let path = format!("/v1/certificates/{name}/{slot}");
        let part: Vec<Endorsed<Entry>> = way.get(&path).await?;
        let last = part.last().and_then(Endorsed::dangerous_unverified);
        // One that goes back would go on for ever.
        let last = last.filter(|last| part.len() >= RELEASED && last.slot >= slot);
        from = last.and_then(|last| last.slot.checked_add(1));
        engine.tell(Job::Certified(part)).await;
    }
    let heard: Vec<(SmootherId, Signed<Ready>)> = way.get(&format!("/v1/readies/{name}")).await?;
    for (by, ready) in heard {
        engine.tell(Job::Heard(by, vec![Said::Ready(ready)])).await;
    }
    Ok(())
}

/// Tells the engine that time passes.
pub async fn tick(engine: Handle<Job>) {
    loop {
        tokio::time::sleep(ROUND).await;
        engine.tell(Job::Tick).await;
    }
}
