//! Uploads that are made before they are sent: servers are asked as fast as they answer, and what
//! clients spend on making them is apart.

use alpheus_accountable_statistics::client::{Attempt, Client, Records};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{Deposit, DepositResponse, Grant};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_crypto::signed::Signed;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_stats_service::contributor_state::{self, Account};
use alpheus_stats_service::define::define;
use alpheus_stats_service::parties::{Parties, RETRY_PAUSE, StatsError};
use alpheus_stats_service::plan::Plan;
use alpheus_stats_service::replay::stage::Stage;
use alpheus_stats_service::results::fetch;
use alpheus_time::Timestamp;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use rand_chacha::ChaCha20Rng;
use std::time::Instant;

/// Requests under party at a time.
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
    at: usize,
    attempt: Attempt,
}

/// An upload with its slot.
type Granted = (Upload, SmootherId, Signed<Grant>);

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
            for (at, (agreed, _)) in self.aggregates.iter().enumerate() {
                let value = i64::from(number) * 7919 % 65_536;
                let gives = if dummies { Contribution::Dummy } else { Contribution::Sample(value) };
                let left = |(client, _): &mut (Client, Records)| client.left(agreed).unwrap_or(0);
                let most = (0..self.people.len()).max_by_key(|who| left(&mut self.people[*who]));
                let who = most.ok_or("no clients").blame(Category::Check)?;
                let (client, ledger) = &mut self.people[who];
                let begun = client.begin(agreed, gives, now, &mut self.rng);
                let attempt =
                    begun.map_err(StatsError::from)?.commit(ledger).blame(Category::Io)?;
                uploads.push(Upload { who, at, attempt });
            }
        }
        Ok(uploads)
    }

    /// Asks keepers for slots.
    pub(super) async fn slots(&self, uploads: Vec<Upload>) -> Result<Vec<Granted>, Failure> {
        let asked = stream::iter(uploads).map(|upload| self.slot(upload));
        asked.buffer_unordered(UNDER_WAY).try_collect().await
    }

    async fn slot(&self, mut upload: Upload) -> Result<Granted, Failure> {
        loop {
            let (keeper, request) = upload.attempt.request().map_err(StatsError::from)?;
            let party =
                self.parties.smoother(keeper).ok_or("no smoother").blame(Category::Check)?;
            match party.post("/v1/slots", &request).await {
                Ok(grant) => return Ok((upload, keeper, grant)),
                Err(error) if error.rule() == Some("full") => upload.attempt.handle_refusal(),
                Err(error) => return Err(StatsError::from(error).into()),
            }
        }
    }

    /// Proves tuples for the slots, and seals them.
    pub(super) fn prove(&mut self, granted: Vec<Granted>) -> Result<Vec<Upload>, Failure> {
        let (now, mut uploads) = (self.stage.clock.now(), Vec::new());
        for (mut upload, keeper, grant) in granted {
            let (client, ledger) = &mut self.people[upload.who];
            let prover = &self.aggregates[upload.at].1;
            let rng = &mut self.rng;
            let step = upload.attempt.handle_grant((keeper, &grant), client, prover, now, rng);
            step.map_err(StatsError::from)?.commit(ledger).blame(Category::Io)?;
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Deposits with one smoother, and takes its receipts; gives the seconds by the clock.
    pub(super) async fn deposit(
        &mut self,
        uploads: &mut [Upload],
        to: u16,
    ) -> Result<f64, Failure> {
        let to = SmootherId(to);
        let party = self.parties.smoother(to).ok_or("no smoother").blame(Category::Check)?;
        let deposits = uploads.iter().enumerate().filter_map(|(at, upload)| {
            let deposit = upload.attempt.deposits().into_iter().find(|(of, _)| *of == to);
            deposit.map(|(_, deposit)| (at, deposit))
        });
        let deposits: Vec<(usize, Deposit)> = deposits.collect();
        let start = Instant::now();
        let sent = stream::iter(deposits).map(|(at, deposit)| async move {
            let answer = party.post::<DepositResponse>("/v1/deposits", &deposit).await;
            answer.map(|answer| (at, answer)).map_err(StatsError::from)
        });
        let answers: Vec<(usize, DepositResponse)> =
            sent.buffer_unordered(UNDER_WAY).try_collect().await?;
        let elapsed = start.elapsed().as_secs_f64();
        for (at, answer) in answers {
            let DepositResponse::Stored(receipt) = answer else {
                return Err("a deposit of the bench is refused").blame(Category::Check);
            };
            let Upload { who, attempt, .. } = &mut uploads[at];
            let step = attempt.handle_receipt(&receipt, &self.stage.card.pinned);
            let ledger = &mut self.people[*who].1;
            step.map_err(StatsError::from)?.commit(ledger).blame(Category::Io)?;
        }
        Ok(elapsed)
    }

    /// Gives all smoothers the certificates.
    pub(super) async fn certify(&self, uploads: &[Upload]) -> Result<(), Failure> {
        let pinned = &self.stage.card.pinned;
        let made = uploads.iter().filter_map(|upload| upload.attempt.certificate(pinned));
        let sent = made.flat_map(|certificate| {
            self.parties.smoothers.iter().map(move |party| (party, certificate.clone()))
        });
        let sent = stream::iter(sent).map(|(party, certificate)| async move {
            party.post::<()>("/v1/certificates", &certificate).await.map_err(StatsError::from)
        });
        Ok(sent.buffer_unordered(UNDER_WAY).try_collect().await?)
    }

    /// Waits until all aggregates have ended, and gives their counts.
    pub(super) async fn counts(&self) -> Result<Vec<Option<u64>>, Failure> {
        let until = Instant::now() + self.parties.patience;
        loop {
            let rows = fetch(&self.parties).await?;
            let over = rows.iter().filter(|row| row.state != "open").count();
            if over >= self.aggregates.len() || Instant::now() > until {
                return Ok(rows.iter().map(|row| row.count).collect());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
