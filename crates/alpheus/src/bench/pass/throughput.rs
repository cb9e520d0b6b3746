//! The most requests in a second that verifiers answer, one on each of so many
//! processors, by the mix of logins and re-ups.

use crate::bench::pass::holders::Stay;
use crate::bench::pass::load::{AT_ONCE, all, made, sleep_until};
use crate::bench::pass::town::Town;
use crate::bench::report::Figure;
use crate::failure::{Blame, Category, Failure};
use crate::pass::verifier::shards::{FOR_CLIENTS, Shards};
use alpheus_access_pass::gateway::session_of;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::Standing;
use std::time::Instant;

/// One request, and whose shard it is for.
type Sent = (&'static str, TagId, Vec<u8>);

/// Requests in a second: logins only, one login to four re-ups, re-ups only.
///
/// # Errors
/// If a verifier does not start, or refuses something.
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
    // A quarter more come in the second epoch, while the others are carried on.
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
        // By tags, which are random: shards and kinds of request take turns.
        step.sort_by_key(|(_, tag, _)| *tag.0.as_bytes());
        sleep_until(town.pinned.schedule.starts(epoch)).await;
        let rate = rate(shards, step, processors).await?;
        let named = format!("{mix}, verifiers on {processors} processors");
        figures.push(Figure::alone("pass, the most requests in a second", named, "1/s", rate));
    }
    Ok(figures)
}

/// Whose shard a request is for.
fn tag(town: &Town, what: &str, bytes: &[u8]) -> Result<TagId, Failure> {
    if what == "login" {
        let login = Login::from_bytes(bytes, Limit::ONE).blame(Category::Io)?;
        Ok(session_of(&town.pinned, &login).0)
    } else {
        Ok(ReUp::from_bytes(bytes).blame(Category::Io)?.session.0)
    }
}

/// Requests in a second, with enough under way that no verifier waits.
async fn rate(shards: &Shards, sent: Vec<Sent>, processors: usize) -> Result<f64, Failure> {
    let (requests, start, shards) = (sent.len() as f64, Instant::now(), shards.clone());
    let send = move |(what, tag, body): Sent| {
        let shards = shards.clone();
        async move { shards.ask::<Standing>(what, tag, body).await.map(drop) }
    };
    all(sent, AT_ONCE * 4 * processors, send).await?;
    Ok(requests / start.elapsed().as_secs_f64())
}
