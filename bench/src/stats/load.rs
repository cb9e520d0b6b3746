//! Uploads of many clients in one process, each over its own connections as the client's command
//! makes them, and as fast as servers answer.

use alpheus_accountable_statistics::client::{Attempt, Client, Records};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{DepositResponse, Grant};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_stats_service::contributor_state::{self, Account};
use alpheus_stats_service::define::define;
use alpheus_stats_service::parties::{Parties, RETRY_PAUSE, StatsError};
use alpheus_stats_service::plan::Plan;
use alpheus_stats_service::replay::stage::Stage;
use alpheus_stats_service::results_reader::ResultsReader;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::time::Instant;

/// Uploads under way at a time.
const UNDER_WAY: usize = 64;

/// A deployment, its clients, and what they give to.
pub(super) struct Load {
    /// The processes.
    pub(super) stage: Stage,
    parties: Parties,
    people: Vec<(Client, Records)>,
    aggregates: Vec<(AgreedDefinition, Prover)>,
    rng: ChaCha20Rng,
}

/// An upload, and whose it is.
pub(super) struct Upload {
    who: usize,
    attempt: Attempt,
    /// Connections of its own.
    parties: Parties,
}

/// An upload with its slot.
type GrantedUpload = (Upload, SmootherId, Signed<Grant>);

impl Load {
    /// Registers all clients.
    pub(super) async fn new(stage: Stage) -> Result<Self, Failure> {
        let (parties, mut people) = (Parties::new(&stage.card)?, Vec::new());
        let pinned = &stage.card.pinned;
        for (name, secret) in &stage.accounts {
            let account = Account { name, secret };
            let (ledger, clock) = (Records::new(), &stage.clock);
            let state = contributor_state::register(
                pinned,
                &parties,
                &account,
                clock,
                ledger,
                Records::clone,
            );
            let records = state.await?.ledger().clone();
            let period = contributor_state::running(pinned, clock)?;
            let client = Client::restore(pinned, period, records.clone()).blame(Category::Check)?;
            let client = client.ok_or("a client that is none").blame(Category::Check)?;
            people.push((client, records));
        }
        let (aggregates, rng) = (Vec::new(), entropy::rng()?);
        Ok(Self { stage, parties, people, aggregates, rng })
    }

    /// Has an aggregate defined.
    pub(super) async fn define(&mut self, plan: &Plan, start: Timestamp) -> Result<(), Failure> {
        let by = (plan, &self.stage.definer);
        let agreed = define(&self.stage.card, &self.parties, by, start).await?;
        let prover = Prover::new(*agreed.terms());
        self.aggregates.push((agreed, prover));
        Ok(())
    }

    /// Moves all clocks on.
    pub(super) fn set(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.stage.clock_writer.set(now)
    }

    /// The definition that all have in common but for its place.
    pub(super) fn agreed(&self) -> Result<&AgreedDefinition, Failure> {
        let first = self.aggregates.first().map(|(agreed, _)| agreed);
        first.ok_or("no aggregate").blame(Category::Check)
    }

    /// Begins so many uploads to each aggregate: values in turn, or dummies.
    pub(super) fn begin(&mut self, each: u32, dummies: bool) -> Result<Vec<Upload>, Failure> {
        let (now, mut uploads) = (self.stage.clock.now(), Vec::new());
        for number in 0..each {
            for (agreed, prover) in &self.aggregates {
                let value = i64::from(number) * 7919 % 65_536;
                let gives = if dummies { Contribution::Dummy } else { Contribution::Sample(value) };
                let left = |(client, _): &mut (Client, Records)| client.left(agreed).unwrap_or(0);
                let most = (0..self.people.len()).max_by_key(|who| left(&mut self.people[*who]));
                let who = most.ok_or("no clients").blame(Category::Check)?;
                let (client, ledger) = &mut self.people[who];
                let begun = client.begin((agreed, prover), gives, now, &mut self.rng);
                let attempt =
                    begun.map_err(StatsError::from)?.commit(ledger).blame(Category::Io)?;
                let parties = self.parties.unlinked();
                uploads.push(Upload { who, attempt, parties });
            }
        }
        Ok(uploads)
    }

    /// Gives all of them.
    pub(super) async fn give(&mut self, uploads: Vec<Upload>) -> Result<(), Failure> {
        let mut uploads = uploads.into_iter();
        loop {
            let some: Vec<Upload> = uploads.by_ref().take(UNDER_WAY).collect();
            if some.is_empty() {
                return Ok(());
            }
            let asked = stream::iter(some).map(|upload| self.slot(upload));
            let granted = asked.buffer_unordered(UNDER_WAY).try_collect().await?;
            let signed = self.sign(granted)?;
            self.deposit(signed).await?;
        }
    }

    async fn slot(&self, mut upload: Upload) -> Result<GrantedUpload, Failure> {
        loop {
            let (keeper, request) = upload.attempt.request().map_err(StatsError::from)?;
            let party = upload.parties.smoother(keeper).ok_or("no smoother");
            match party.blame(Category::Check)?.post("/v1/slots", &request).await {
                Ok(grant) => return Ok((upload, keeper, grant)),
                Err(error) if error.rule() == Some("full") => upload.attempt.handle_refusal(),
                Err(error) => return Err(StatsError::from(error).into()),
            }
        }
    }

    /// Signs entries in the slots.
    fn sign(&mut self, granted: Vec<GrantedUpload>) -> Result<Vec<Upload>, Failure> {
        let (now, mut uploads) = (self.stage.clock.now(), Vec::new());
        for (mut upload, keeper, grant) in granted {
            let (_, ledger) = &mut self.people[upload.who];
            let (pinned, rng) = (&self.stage.card.pinned, &mut self.rng);
            let step = upload.attempt.handle_grant((keeper, &grant), pinned, now, rng);
            step.map_err(StatsError::from)?.commit(ledger).blame(Category::Io)?;
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Deposits with the keepers, which forward, and takes all receipts.
    async fn deposit(&mut self, uploads: Vec<Upload>) -> Result<(), Failure> {
        let pinned = self.stage.card.pinned.clone();
        let sent = stream::iter(uploads).map(|upload| async move {
            let forwarded = upload.attempt.forwarded().ok_or("no deposit");
            let (keeper, deposit) = forwarded.blame(Category::Check)?;
            let party = upload.parties.smoother(keeper).ok_or("no smoother");
            let answers: Vec<(SmootherId, DepositResponse)> = party
                .blame(Category::Check)?
                .post("/v1/deposits/forwarded", &deposit)
                .await
                .map_err(StatsError::from)?;
            Ok::<_, Failure>((upload, answers))
        });
        let answered: Vec<(Upload, Vec<(SmootherId, DepositResponse)>)> =
            sent.buffer_unordered(UNDER_WAY).try_collect().await?;
        for (Upload { who, mut attempt, .. }, answers) in answered {
            for (_, answer) in answers {
                let DepositResponse::Stored(receipt) = answer else {
                    return Err("a deposit of the bench is refused").blame(Category::Check);
                };
                let step = attempt.handle_receipt(&receipt, &pinned).map_err(StatsError::from)?;
                step.commit(&mut self.people[who].1).blame(Category::Io)?;
            }
            if !attempt.is_certified_everywhere(&pinned) {
                return Err("a smoother gave the bench no receipt").blame(Category::Check);
            }
        }
        Ok(())
    }

    /// Waits until all aggregates have ended, and gives their counts.
    pub(super) async fn counts(&self) -> Result<Vec<Option<u64>>, Failure> {
        let until = Instant::now() + self.parties.patience;
        let mut reader = ResultsReader::new(&self.stage.card.pinned);
        loop {
            let rows = reader.fetch(&self.parties).await?.rows;
            let over = rows.iter().filter(|row| row.state != "open").count();
            if over >= self.aggregates.len() || Instant::now() > until {
                return Ok(rows.iter().map(|row| row.count).collect());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
