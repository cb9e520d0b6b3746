//! A client's side of counts: it counts once in the count that runs while it is there, and sends
//! that at a time that it draws, after the count's end.

use super::plan::Count;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::stats::card::Opened;
use crate::stats::client::book::Book;
use crate::stats::clock::Clock;
use crate::stats::names::hex;
use crate::stats::person::{self, Shared};
use crate::stats::ways::{StatsError, Ways};
use alpheus_accountable_statistics::tally::{Question, Tally};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, put};
use alpheus_crypto::signed::Signed;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// About how often the aggregator is asked what is counted, and a showing is sent again.
const ROUND: Duration = Duration::from_secs(1);
/// A showing that waits for its time.
const WAITS: u8 = b'c';

/// What is sent, and when.
#[derive(Serialize, Deserialize)]
struct Waiting {
    count: Digest,
    from: Time,
    closes: Time,
    showing: Vec<u8>,
}

/// The showing was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the aggregator has not acknowledged this client before the count was over, so it is not counted; see whether the aggregator runs"
)]
struct NotAcknowledged;

fn key(count: &Digest) -> Vec<u8> {
    [[WAITS].as_slice(), count.as_bytes()].concat()
}

fn waiting(person: &Shared<Book>) -> Option<Waiting> {
    let records = person::lock(person).ledger().records();
    let mut ours = records.range(vec![WAITS]..vec![WAITS + 1]);
    ours.find_map(|(_, value)| postcard::from_bytes(value).ok())
}

/// Counts in the count of a plan that runs, or in the next one; ends once the aggregator has
/// acknowledged it. What waited before a crash is sent as it was.
///
/// # Errors
/// If the ledger cannot be written, or nobody takes the showing in time.
pub async fn run(
    card: &Opened,
    clock: &Clock,
    plan: &Count,
    person: &Shared<Book>,
) -> Result<(), Failure> {
    loop {
        match waiting(person) {
            Some(waiting) => return send(card, clock, person, waiting).await,
            None => begin(card, clock, plan, person).await?,
        }
        pause().await?;
    }
}

/// A drawn moment: clients that begin at one time do not stay together.
async fn pause() -> Result<(), Failure> {
    let most = u64::try_from(ROUND.as_millis()).unwrap_or(u64::MAX);
    let drawn = entropy::rng()?.next_u64().checked_rem(most).unwrap_or(0);
    tokio::time::sleep(ROUND / 2 + Duration::from_millis(drawn)).await;
    Ok(())
}

/// Shows the credential about the count that runs, if one does.
async fn begin(
    card: &Opened,
    clock: &Clock,
    plan: &Count,
    person: &Shared<Book>,
) -> Result<(), Failure> {
    let way = Ways::new(card)?.aggregator;
    let questions = match way.get::<Vec<Signed<Question>>>("/v1/counts").await {
        Ok(questions) => questions,
        Err(error) => {
            tracing::debug!(%error, "asking what is counted");
            return Ok(());
        }
    };
    let now = clock.now();
    let runs = |tally: &Tally| {
        let ours = **tally == plan.question(&card.pinned, tally.start);
        ours && tally.start <= now && now < tally.end
    };
    let mut opened = questions.iter().filter_map(|signed| Tally::open(signed, &card.pinned).ok());
    let Some(tally) = opened.find(runs) else { return Ok(()) };
    person::count(person, &tally, |showing, from| {
        let (count, closes) = (tally.name(), tally.closes);
        let waiting = Waiting { count, from, closes, showing };
        put(key(&count), postcard::to_allocvec(&waiting).unwrap_or_default())
    })?;
    eprintln!("counts in {} from {}", tally.place.as_str(), tally.start.0 / 1000);
    Ok(())
}

/// Sends a showing when its time has come, until it is acknowledged.
async fn send(
    card: &Opened,
    clock: &Clock,
    person: &Shared<Book>,
    waiting: Waiting,
) -> Result<(), Failure> {
    let Waiting { count, from, closes, showing } = waiting;
    let path = format!("/v1/counts/{}", hex(&count));
    let gone = || {
        let gone = Change { key: key(&count), value: None };
        person::lock(person).ledger().commit(&[gone]).blame(Category::Io)
    };
    loop {
        let now = clock.now();
        if now >= closes {
            gone()?;
            return Err(NotAcknowledged).blame(Category::Check);
        }
        if now >= from {
            match Ways::new(card)?.aggregator.post::<()>(&path, &showing).await {
                Ok(()) => {
                    println!("counted");
                    return gone();
                }
                // Clocks differ a little.
                Err(error) if error.may_pass() || error.rule() == Some("not-now") => {
                    tracing::debug!(%error, "sending");
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
