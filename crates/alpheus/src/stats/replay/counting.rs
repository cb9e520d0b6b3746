//! A replay of counts: moves the clock from one moment to the next, has each client that was there
//! show its credential, and sends that at the time that it has drawn. The aggregator alone takes
//! part, beside the registrar.

use super::drive::watch;
use super::samples::Samples;
use super::stage::Stage;
use crate::failure::{Blame, Category, Failure};
use crate::stats::counts::plan::Count;
use crate::stats::names::hex;
use crate::stats::person::{self, Account, Shared};
use crate::stats::results::{OPEN, Row, fetch};
use crate::stats::ways::{AGAIN, StatsError, Ways, patiently};
use alpheus_accountable_statistics::client::Records;
use alpheus_accountable_statistics::tally::Tally;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::put;
use alpheus_crypto::signed::Signed;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Where a showing waits in a client's records.
const WAITS: u8 = b'c';

/// What happens when, in this order at one time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The operator asks, and who is there shows its credential.
    Ask(Time),
    /// A client sends.
    Send(Digest, Vec<u8>),
    /// It is over, and its result is there.
    Close(Digest),
}

struct Counting<'a> {
    stage: Stage,
    ways: Ways,
    people: Vec<Shared<Records>>,
    plan: &'a Count,
    moments: BTreeSet<(Time, What)>,
}

/// Runs all of it, and gives a row for each count.
///
/// # Errors
/// If a process does not answer, or a showing is not taken.
pub async fn run(mut stage: Stage, plan: &Count, samples: &Samples) -> Result<Vec<Row>, Failure> {
    let mut children = stage.children();
    let ways = Ways::new(&stage.card)?;
    let moments = samples.starts.iter().map(|start| (*start, What::Ask(*start))).collect();
    let counting = Counting { stage, ways, people: Vec::new(), plan, moments };
    tokio::select! {
        rows = counting.all(samples) => rows,
        failed = watch(&mut children) => Err(failed),
    }
}

/// By how many counts and the recording differ.
pub fn lost(rows: &[Row], samples: &Samples) -> u64 {
    let mut lost = 0;
    for Row { aggregate, interval_start, interval_end, count, .. } in rows {
        let Some(count) = *count else { continue };
        let there = there(samples, Time(interval_start * 1000), Time(interval_end * 1000)).len();
        if count != there as u64 {
            eprintln!("{aggregate} from {interval_start}: {count} of {there} are counted");
        }
        lost += count.abs_diff(there as u64);
    }
    lost
}

/// Who was there.
fn there(samples: &Samples, start: Time, end: Time) -> BTreeSet<usize> {
    let within = samples.all.iter().filter(|sample| start <= sample.time && sample.time < end);
    within.map(|sample| sample.client).collect()
}

impl Counting<'_> {
    async fn all(mut self, samples: &Samples) -> Result<Vec<Row>, Failure> {
        self.register().await?;
        while let Some((time, what)) = self.moments.pop_first() {
            self.stage.hand.set(time)?;
            match what {
                What::Ask(start) => self.ask(start, samples).await?,
                What::Send(count, showing) => {
                    let path = format!("/v1/counts/{}", hex(&count));
                    self.send(&path, &showing).await?;
                }
                What::Close(count) => self.closed(&hex(&count)).await?,
            }
        }
        Ok(self.rows().await?)
    }

    async fn register(&mut self) -> Result<(), Failure> {
        let Stage { card, clock, accounts, .. } = &self.stage;
        for (name, secret) in accounts {
            let (account, ledger) = (Account { name, secret }, Records::new());
            let (pinned, ways) = (&card.pinned, &self.ways);
            let person = person::register(pinned, ways, &account, clock, ledger, Records::clone);
            self.people.push(Arc::new(Mutex::new(person.await?)));
        }
        Ok(())
    }

    async fn ask(&mut self, start: Time, samples: &Samples) -> Result<(), Failure> {
        let pinned = &self.stage.card.pinned;
        let signed = Signed::new(&self.plan.question(pinned, start), &self.stage.operator);
        let tally = Tally::open(&signed, pinned).blame(Category::Input)?;
        self.send("/v1/counts", &signed).await?;
        for client in there(samples, tally.start, tally.end) {
            let Some(person) = self.people.get(client) else { continue };
            let mut drawn = None;
            person::count(person, &tally, |showing, from| {
                drawn = Some((from, What::Send(tally.name(), showing.clone())));
                put([[WAITS].as_slice(), tally.name().as_bytes()].concat(), showing)
            })?;
            self.moments.extend(drawn);
        }
        self.moments.insert((tally.closes, What::Close(tally.name())));
        Ok(())
    }

    /// Sends to the aggregator, which may just come back.
    async fn send(&self, path: &str, value: &impl Serialize) -> Result<(), StatsError> {
        let sent = || async { Ok(self.ways.aggregator.post::<()>(path, value).await?) };
        patiently(self.ways.patience, sent).await
    }

    /// Waits until a count is over.
    async fn closed(&self, name: &str) -> Result<(), StatsError> {
        loop {
            let rows = self.rows().await?;
            if rows.iter().any(|row| row.name == name && row.state != OPEN) {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn rows(&self) -> Result<Vec<Row>, StatsError> {
        patiently(self.ways.patience, || fetch(&self.ways)).await
    }
}
