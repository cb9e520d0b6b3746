//! The maximum number of requests a second that verifiers answer, one on each of the
//! processors, by the mix of logins and re-ups.

use crate::pass::holders::Stay;
use crate::pass::load::{AT_ONCE, all, made, sleep_until};
use crate::pass::town::Town;
use crate::report::Figure;
use alpheus_access_pass::gateway::session_of;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_pass_service::verifier::shards::{FOR_CLIENTS, Shards};
use std::time::Instant;

/// One request, and the tag that decides its shard.
type ShardRequest = (&'static str, TagId, Vec<u8>);

/// Requests in a second: logins only, one login to four re-ups, re-ups only.
///
/// # Errors
/// If a verifier does not start, or rejects a request.
pub(super) fn figures(requests: u32, processors: usize) -> Result<Vec<Figure>, Failure> {
    let town = Town::new(4, 0)?;
    let (verifiers, addresses) = town.verifiers(processors)?;
    let shards = Shards::new(&addresses, &town.identity()?, FOR_CLIENTS)?;
    let figures = town.runtime.block_on(measure(&town, &shards, requests, processors));
    drop(verifiers);
    figures
}

async fn measure(
    town: &Town,
    shards: &Shards,
    requests: u32,
    processors: usize,
) -> Result<Vec<Figure>, Failure> {
    // A quarter more arrive in the second epoch, while the others re-up.
    let stay = Stay { epochs: 3, join: Some(requests), login_only: false };
    let (first, sent) = made(town, requests + requests / 4, stay)?;
    let mut steps = [Vec::new(), Vec::new(), Vec::new()];
    for tokens in sent {
        let late = usize::try_from(tokens.first.0 - first.0).unwrap_or(0);
        for (step, (what, bytes)) in steps.iter_mut().skip(late).zip(tokens.each) {
            step.push((what, tag(town, what, &bytes)?, bytes));
        }
    }
    let mut figures = Vec::new();
    let mixes = ["logins", "one login to four re-ups", "re-ups"];
    for ((epoch, mix), mut step) in (first.0..).map(Epoch).zip(mixes).zip(steps) {
        // Sorted by tags, which are random. So shards and kinds of request alternate.
        step.sort_by_key(|(_, tag, _)| *tag.0.as_bytes());
        sleep_until(town.pinned.schedule.starts(epoch)).await;
        let rate = rate(shards, step, processors).await?;
        let named = format!("{mix}, verifiers on {processors} processors");
        figures.push(Figure::alone("pass, the most requests in a second", named, "1/s", rate));
    }
    Ok(figures)
}

/// The shard of a request.
fn tag(town: &Town, what: &str, bytes: &[u8]) -> Result<TagId, Failure> {
    if what == "login" {
        let login = Login::from_bytes(bytes, Limit::ONE).blame(Category::Io)?;
        Ok(session_of(&town.pinned, &login).0)
    } else {
        Ok(ReUp::from_bytes(bytes).blame(Category::Io)?.session.0)
    }
}

/// Requests in a second, with enough of them concurrent that no verifier waits.
async fn rate(shards: &Shards, sent: Vec<ShardRequest>, processors: usize) -> Result<f64, Failure> {
    let (requests, start, shards) = (sent.len() as f64, Instant::now(), shards.clone());
    let send = move |(what, tag, body): ShardRequest| {
        let shards = shards.clone();
        async move { shards.ask::<SessionStatus>(what, tag, body).await.map(drop) }
    };
    all(sent, AT_ONCE * 4 * processors, send).await?;
    Ok(requests / start.elapsed().as_secs_f64())
}
