//! A replay of counts. It advances the clock from one event to the next, has each client that was
//! present present its credential, and sends that at the client's random time. Only the registrar
//! and the aggregator take part.

use super::driver::watch;
use super::samples::Samples;
use super::stage::Stage;
use crate::contributor_state::{self, Account, SharedState};
use crate::names::hex;
use crate::parties::{LOOK, Parties, StatsError, retry_unreachable};
use crate::plan::count::CountPlan;
use crate::results_reader::ResultsReader;
use crate::row::{OPEN, Row};
use alpheus_accountable_statistics::client::Records;
use alpheus_accountable_statistics::tally::Tally;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::put;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_time::Timestamp;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The prefix of a pending presentation's record.
const WAITS: u8 = b'c';

/// Events, in their order at the same time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The operator defines a count, and clients present their credentials.
    Ask(Timestamp),
    /// A client sends its presentation.
    Send(Digest, Vec<u8>),
    /// The count is over, and its result is available.
    Close(Digest),
}

struct CountDriver<'a> {
    stage: Stage,
    parties: Parties,
    contributors: Vec<SharedState<Records>>,
    plan: &'a CountPlan,
    moments: BTreeSet<(Timestamp, Moment)>,
}

/// Runs the replay; returns a row for each count.
///
/// # Errors
/// If a process does not answer, or a presentation is rejected.
pub async fn run(
    mut stage: Stage,
    plan: &CountPlan,
    samples: &Samples,
) -> Result<Vec<Row>, Failure> {
    let mut children = stage.children();
    let parties = Parties::new(&stage.card)?;
    let moments = samples.starts.iter().map(|start| (*start, Moment::Ask(*start))).collect();
    let driver = CountDriver { stage, parties, contributors: Vec::new(), plan, moments };
    tokio::select! {
        rows = driver.all(samples) => rows,
        failed = watch(&mut children) => Err(failed),
    }
}

/// The difference between the counts and the recording.
pub fn lost(rows: &[Row], samples: &Samples) -> u64 {
    let mut lost = 0;
    for Row { aggregate, interval_start, interval_end, count, .. } in rows {
        let Some(count) = *count else { continue };
        let there =
            there(samples, Timestamp(interval_start * 1000), Timestamp(interval_end * 1000)).len();
        if count != there as u64 {
            note!("{aggregate} from {interval_start}: {count} of {there} are counted");
        }
        lost += count.abs_diff(there as u64);
    }
    lost
}

/// The clients with data in an interval.
fn there(samples: &Samples, start: Timestamp, end: Timestamp) -> BTreeSet<usize> {
    let within = samples.all.iter().filter(|sample| start <= sample.time && sample.time < end);
    within.map(|sample| sample.client).collect()
}

impl CountDriver<'_> {
    async fn all(mut self, samples: &Samples) -> Result<Vec<Row>, Failure> {
        self.register().await?;
        while let Some((time, what)) = self.moments.pop_first() {
            self.stage.clock_writer.set(time)?;
            match what {
                Moment::Ask(start) => self.ask(start, samples).await?,
                Moment::Send(count, presentation) => {
                    let path = format!("/v1/counts/{}", hex(&count));
                    self.send(&path, &presentation).await?;
                }
                Moment::Close(count) => self.closed(&hex(&count)).await?,
            }
        }
        Ok(self.rows().await?)
    }

    async fn register(&mut self) -> Result<(), Failure> {
        let Stage { card, clock, accounts, .. } = &self.stage;
        for (name, secret) in accounts {
            let (account, ledger) = (Account { name, secret }, Records::new());
            let (pinned, parties) = (&card.pinned, &self.parties);
            let state = contributor_state::register(
                pinned,
                parties,
                &account,
                clock,
                ledger,
                Records::clone,
            );
            self.contributors.push(Arc::new(Mutex::new(state.await?)));
        }
        Ok(())
    }

    async fn ask(&mut self, start: Timestamp, samples: &Samples) -> Result<(), Failure> {
        let pinned = &self.stage.card.pinned;
        let signed = Signed::new(&self.plan.question(pinned, start), &self.stage.operator);
        let tally = Tally::open(&signed, pinned).blame(Category::Input)?;
        self.send("/v1/counts", &signed).await?;
        for client in there(samples, tally.start, tally.end) {
            let Some(state) = self.contributors.get(client) else { continue };
            let mut drawn = None;
            contributor_state::count(state, &tally, |presentation, from| {
                drawn = Some((from, Moment::Send(tally.name(), presentation.clone())));
                put([[WAITS].as_slice(), tally.name().as_bytes()].concat(), presentation)
            })?;
            self.moments.extend(drawn);
        }
        self.moments.insert((tally.closes, Moment::Close(tally.name())));
        Ok(())
    }

    /// Sends to the aggregator; retries while it restarts.
    async fn send(&self, path: &str, value: &impl Serialize) -> Result<(), StatsError> {
        let sent = || async { Ok(self.parties.aggregator.post::<()>(path, value).await?) };
        retry_unreachable(self.parties.patience, sent).await
    }

    /// Waits until a count is over.
    async fn closed(&self, name: &str) -> Result<(), StatsError> {
        loop {
            let rows = self.rows().await?;
            if rows.iter().any(|row| row.name == name && row.state != OPEN) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn rows(&self) -> Result<Vec<Row>, StatsError> {
        let fetch = || async {
            let mut reader = ResultsReader::new(&self.stage.card.pinned);
            Ok(reader.fetch(&self.parties).await?.rows)
        };
        retry_unreachable(self.parties.patience, fetch).await
    }
}
