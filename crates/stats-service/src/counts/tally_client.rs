//! The client's side of counts. It takes part once in the current count, and sends its presentation
//! at a random time after the count's end.

use crate::card::VerifiedCard;
use crate::client_ledger::ClientLedger;
use crate::contributor_state::{self, SharedState};
use crate::names::hex;
use crate::parties::{Parties, StatsError};
use crate::plan::count::CountPlan;
use alpheus_accountable_statistics::tally::{Tally, TallyDefinition};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, put};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_time::Timestamp;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The average pause between requests for counts, and between attempts to send a presentation.
const ROUND: Duration = Duration::from_secs(1);
/// The prefix of a pending presentation's record.
const WAITS: u8 = b'c';

/// A presentation to send, and when.
#[derive(Serialize, Deserialize)]
struct PendingCount {
    count: Digest,
    from: Timestamp,
    closes: Timestamp,
    presentation: Vec<u8>,
}

/// The presentation was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the aggregator did not acknowledge this client before the count was over, so it is not counted; check that the aggregator runs"
)]
pub(crate) struct NotAcknowledgedError;

fn key(count: &Digest) -> Vec<u8> {
    [[WAITS].as_slice(), count.as_bytes()].concat()
}

fn waiting(state: &SharedState<ClientLedger>) -> Option<PendingCount> {
    let records = contributor_state::lock(state).ledger().records();
    let mut ours = records.range(vec![WAITS]..vec![WAITS + 1]);
    ours.find_map(|(_, value)| postcard::from_bytes(value).ok())
}

/// Takes part in the current count of a plan, or in the next one. Ends once the aggregator has
/// acknowledged the presentation. A presentation from before a crash is sent unchanged.
///
/// # Errors
/// If the ledger cannot be written, or the aggregator does not accept the presentation in time.
pub async fn run(
    card: &VerifiedCard,
    clock: &Clock,
    plan: &CountPlan,
    state: &SharedState<ClientLedger>,
) -> Result<(), Failure> {
    loop {
        match waiting(state) {
            Some(waiting) => return send(card, clock, state, waiting).await,
            None => begin(card, clock, plan, state).await?,
        }
        pause().await?;
    }
}

/// A random pause, so that clients that start at the same time spread out.
async fn pause() -> Result<(), Failure> {
    let most = u64::try_from(ROUND.as_millis()).unwrap_or(u64::MAX);
    let drawn = entropy::rng()?.next_u64().checked_rem(most).unwrap_or(0);
    tokio::time::sleep(ROUND / 2 + Duration::from_millis(drawn)).await;
    Ok(())
}

/// Presents the credential for the current count, if there is one.
async fn begin(
    card: &VerifiedCard,
    clock: &Clock,
    plan: &CountPlan,
    state: &SharedState<ClientLedger>,
) -> Result<(), Failure> {
    let party = Parties::new(card)?.aggregator;
    let questions = match party.get::<Vec<Signed<TallyDefinition>>>("/v1/counts").await {
        Ok(questions) => questions,
        Err(error) => {
            tracing::debug!(%error, "cannot fetch counts");
            return Ok(());
        }
    };
    let now = clock.now();
    let runs =
        |tally: &Tally| plan.asks(tally, &card.pinned) && tally.start <= now && now < tally.end;
    let mut opened = questions.iter().filter_map(|signed| Tally::open(signed, &card.pinned).ok());
    let Some(tally) = opened.find(runs) else { return Ok(()) };
    contributor_state::count(state, &tally, |presentation, from| {
        let (count, closes) = (tally.name(), tally.closes);
        let waiting = PendingCount { count, from, closes, presentation };
        put(key(&count), postcard::to_allocvec(&waiting).unwrap_or_default())
    })?;
    note!("counts in {} from {}", tally.location.as_str(), tally.start.0 / 1000);
    Ok(())
}

/// Sends a presentation from its time on, until it is acknowledged.
async fn send(
    card: &VerifiedCard,
    clock: &Clock,
    state: &SharedState<ClientLedger>,
    waiting: PendingCount,
) -> Result<(), Failure> {
    let PendingCount { count, from, closes, presentation } = waiting;
    let path = format!("/v1/counts/{}", hex(&count));
    let gone = || {
        let gone = Change { key: key(&count), value: None };
        contributor_state::lock(state).ledger().commit(&[gone]).blame(Category::Io)
    };
    loop {
        let now = clock.now();
        if now >= closes {
            gone()?;
            return Err(NotAcknowledgedError).blame(Category::Check);
        }
        if now >= from {
            match Parties::new(card)?.aggregator.post::<()>(&path, &presentation).await {
                Ok(()) => {
                    println!("counted");
                    return gone();
                }
                // Clocks may differ slightly.
                Err(error) if error.may_pass() || error.rule() == Some("not-now") => {
                    tracing::debug!(%error, "cannot send the presentation yet");
                }
                Err(error) => {
                    gone()?;
                    return Err(StatsError::from(error).into());
                }
            }
        }
        pause().await?;
    }
}
