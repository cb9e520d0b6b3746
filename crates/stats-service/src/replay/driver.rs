//! Drives a replay: it advances the clock from one event to the next, has clients upload samples and
//! dummies, and waits for the results. The clock passes an event only once all earlier work is
//! done.

use super::samples::{Sample, Samples};
use super::stage::Stage;
use crate::contributor_state::{self, Account, SharedState, Upload};
use crate::define::define;
use crate::names::hex;
use crate::parties::{LOOK, Parties, StatsError, retry_unreachable};
use crate::plan::Plan;
use crate::results_reader::ResultsReader;
use crate::row::{OPEN, Row};
use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::Entry;
use alpheus_accountable_statistics::role_error::ContributionError;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_node::clock::Clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::service::children::{Children, Condition};
use alpheus_node::service::progress::Progress;
use alpheus_time::Timestamp;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// Parallel uploads.
const TOGETHER: usize = 32;

/// Events, in their order at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The result of an aggregate must be available before its deadline.
    Deadline(usize),
    /// An aggregate is defined.
    Define(usize),
    /// A turn of an aggregate's time begins.
    Border(usize),
    /// A turn of its filling begins.
    Turn(usize),
    /// A sample.
    Sample(usize),
    /// Deposits of an aggregate are released.
    Release(usize),
    /// An aggregate that could not be filled ends without a result.
    Over(usize),
}

/// One aggregate of the replay.
struct Aggregate {
    agreed: AgreedDefinition,
    prover: Arc<Prover>,
    /// Uploads that found no slot yet.
    waiting: Vec<(Uploader, Box<Attempt>)>,
    /// The number of filled slots.
    filled: u32,
}

/// The client of an upload, and whether it is a sample.
#[derive(Clone, Copy)]
struct Uploader {
    who: usize,
    sample: bool,
}

type UploadOutcome = Result<(usize, Uploader, Option<Upload>), StatsError>;

/// The result of a replay.
pub struct ReplayResult {
    /// The results.
    pub rows: Vec<Row>,
    /// The number of samples that found no slot.
    pub unplaced: u64,
}

/// A running replay.
pub struct Driver {
    stage: Stage,
    parties: Parties,
    reader: tokio::sync::Mutex<ResultsReader>,
    contributors: Vec<SharedState<Records>>,
    aggregates: Vec<Aggregate>,
    under_way: JoinSet<UploadOutcome>,
    unplaced: u64,
}

/// A result is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no aggregate's result arrived in time; run with ALPHEUS_LOG=info to see why")]
pub(crate) struct NoResultError;

/// A process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a process of the replay has ended; run with ALPHEUS_LOG=info to see why")]
pub(crate) struct ProcessEndedError;

/// Runs the replay.
///
/// # Errors
/// If a process does not answer, or an upload fails.
pub async fn run(stage: Stage, plan: &Plan, samples: &Samples) -> Result<ReplayResult, Failure> {
    let mut driver = Driver::new(stage)?;
    // Dropped before the folder, which the stage owns.
    let mut children = driver.stage.children();
    tokio::select! {
        rows = driver.all(plan, samples) => rows,
        failed = watch(&mut children) => Err(failed),
    }
}

/// Restarts killed processes on their state, until one ends by itself.
pub(super) async fn watch(children: &mut Children) -> Failure {
    loop {
        tokio::time::sleep(LOOK).await;
        match children.revive() {
            Ok(Condition::Running) => {}
            Ok(Condition::Revived) => tracing::info!("restarted a killed process"),
            Ok(Condition::Ended | Condition::GaveUp) => {
                return Failure::new(Category::Io, ProcessEndedError);
            }
            Err(failure) => return failure,
        }
    }
}

impl Driver {
    /// Opens the connections.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn new(stage: Stage) -> Result<Self, Failure> {
        let (parties, under_way) = (Parties::new(&stage.card)?, JoinSet::new());
        let (contributors, aggregates) = (Vec::new(), Vec::new());
        let reader = tokio::sync::Mutex::new(ResultsReader::new(&stage.card.pinned));
        Ok(Self { stage, parties, reader, contributors, aggregates, under_way, unplaced: 0 })
    }

    /// The process ids: registrar, aggregator, smoothers.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.stage.processes()
    }

    async fn all(&mut self, plan: &Plan, samples: &Samples) -> Result<ReplayResult, Failure> {
        self.register().await?;
        self.play(plan, samples).await?;
        Ok(ReplayResult { rows: self.rows().await?, unplaced: self.unplaced })
    }

    /// Obtains credentials for all clients.
    ///
    /// # Errors
    /// If the registrar refuses.
    pub async fn register(&mut self) -> Result<(), Failure> {
        let mut progress =
            Progress::new("clients registered", Some(self.stage.accounts.len() as u64));
        let Stage { card, clock, accounts, .. } = &self.stage;
        for (name, secret) in accounts {
            let (account, ledger) = (Account { name, secret }, Records::new());
            let parties = &self.parties;
            let state = contributor_state::register(
                &card.pinned,
                parties,
                &account,
                clock,
                ledger,
                Records::clone,
            );
            let state = state.await?;
            self.contributors.push(Arc::new(Mutex::new(state)));
            progress.advance(1);
        }
        Ok(())
    }

    /// Defines an aggregate.
    async fn define(&mut self, plan: &Plan, start: Timestamp) -> Result<(), Failure> {
        let by = (plan, &self.stage.definer);
        let agreed = define(&self.stage.card, &self.parties, by, start).await?;
        let prover = Arc::new(Prover::new(*agreed.terms()));
        self.aggregates.push(Aggregate { agreed, prover, waiting: Vec::new(), filled: 0 });
        Ok(())
    }

    /// Uploads all samples, and takes all aggregates to their end.
    ///
    /// # Errors
    /// If an upload fails, or no result comes.
    pub async fn play(&mut self, plan: &Plan, samples: &Samples) -> Result<(), Failure> {
        let mut progress = Progress::new("samples uploaded", Some(samples.all.len() as u64));
        for (time, what) in moments(plan, samples) {
            match what {
                Moment::Sample(at) => {
                    self.stage.clock_writer.set(time)?;
                    let Some(sample) = samples.all.get(at) else { continue };
                    self.upload(sample).await?;
                    progress.advance(1);
                }
                Moment::Define(at) => {
                    self.settle().await?;
                    self.stage.clock_writer.set(time)?;
                    let start = samples.starts.get(at).copied().unwrap_or(time);
                    self.define(plan, start).await?;
                }
                Moment::Border(at) => {
                    self.settle().await?;
                    self.stage.clock_writer.set(time)?;
                    self.retry(at).await?;
                }
                Moment::Turn(at) => {
                    self.settle().await?;
                    self.stage.clock_writer.set(time)?;
                    self.retry(at).await?;
                    self.fill(at).await?;
                }
                Moment::Release(at) => {
                    self.settle().await?;
                    self.void_scan(at);
                    self.stage.clock_writer.set(time)?;
                }
                // The clock stops here until the result is available, if one is expected.
                Moment::Deadline(at) if self.is_filled(at) => self.await_result(at).await?,
                Moment::Deadline(_) => {}
                Moment::Over(at) => {
                    self.stage.clock_writer.set(time)?;
                    self.await_result(at).await?;
                }
            }
        }
        Ok(())
    }

    async fn upload(&mut self, sample: &Sample) -> Result<(), Failure> {
        let of = |a: &Aggregate| a.agreed.start <= sample.time && sample.time < a.agreed.end;
        let Some(at) = self.aggregates.iter().position(of) else { return Ok(()) };
        let uploader = Uploader { who: sample.client, sample: true };
        self.begin(at, uploader, Contribution::Sample(sample.value));
        self.bound(TOGETHER).await
    }

    /// Starts an upload.
    fn begin(&mut self, at: usize, uploader: Uploader, contribution: Contribution) {
        let Some((upload, agreed)) = self.upload_context(at, uploader.who) else { return };
        self.under_way.spawn(async move {
            let (state, clock) = (Arc::clone(&upload.state), upload.clock.clone());
            let of = (agreed, Arc::clone(&upload.prover));
            let done =
                match contributor_state::begin(state, of, contribution, clock, Vec::new()).await {
                    Ok(begun) => upload.run(begun).await,
                    Err(why) => Err(why),
                };
            Ok((at, uploader, unless_spent(done)?))
        });
    }

    /// Continues an upload that found no slot.
    fn again(&mut self, at: usize, uploader: Uploader, attempt: Attempt) {
        let Some((upload, _)) = self.upload_context(at, uploader.who) else { return };
        self.under_way
            .spawn(async move { Ok((at, uploader, unless_spent(upload.run(attempt).await)?)) });
    }

    fn upload_context(&self, at: usize, who: usize) -> Option<(UploadContext, AgreedDefinition)> {
        let (aggregate, state) = self.aggregates.get(at).zip(self.contributors.get(who))?;
        let uploading = UploadContext {
            state: Arc::clone(state),
            prover: Arc::clone(&aggregate.prover),
            parties: self.parties.clone(),
            pinned: self.stage.card.pinned.clone(),
            clock: self.stage.clock.clone(),
        };
        Some((uploading, aggregate.agreed.clone()))
    }

    /// Waits until fewer than this many uploads are under way.
    async fn bound(&mut self, most: usize) -> Result<(), Failure> {
        while self.under_way.len() >= most.max(1) {
            let Some(done) = self.under_way.join_next().await else { break };
            self.note(done.blame(Category::Io)??);
        }
        Ok(())
    }

    fn note(&mut self, (at, uploader, upload): (usize, Uploader, Option<Upload>)) {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return };
        match upload {
            Some(Upload::Done(_)) => aggregate.filled += 1,
            // Retried at the next turn, as those without a slot.
            Some(Upload::Waits(attempt) | Upload::Away(attempt) | Upload::Lost(attempt)) => {
                aggregate.waiting.push((uploader, attempt));
            }
            None => self.unplaced += u64::from(uploader.sample),
        }
    }

    /// Whether enough slots are filled for a result.
    fn is_filled(&self, at: usize) -> bool {
        self.aggregates.get(at).is_some_and(|Aggregate { agreed, filled, .. }| {
            filled + self.stage.card.pinned.max_missing(agreed.slots) >= agreed.slots
        })
    }

    /// Waits for all uploads under way.
    async fn settle(&mut self) -> Result<(), Failure> {
        self.bound(1).await
    }

    /// Gives up uploads without a slot. Those that were deposited may still count.
    fn void_scan(&mut self, at: usize) {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return };
        let waited = std::mem::take(&mut aggregate.waiting).into_iter();
        let lost =
            waited.filter(|(uploader, attempt)| uploader.sample && attempt.entry().is_none());
        self.unplaced += lost.count() as u64;
    }

    fn waiting(&self, at: usize) -> usize {
        self.aggregates.get(at).map_or(0, |aggregate| aggregate.waiting.len())
    }

    /// Uploads that found no slot at an earlier turn.
    async fn retry(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return Ok(()) };
        for (uploader, attempt) in std::mem::take(&mut aggregate.waiting) {
            self.again(at, uploader, *attempt);
            self.bound(TOGETHER).await?;
        }
        self.settle().await
    }

    /// Contributes dummies from random clients, until no keeper has a free slot in this turn.
    async fn fill(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get(at) else { return Ok(()) };
        let agreed = aggregate.agreed.clone();
        let mut rng = entropy::rng()?;
        let mut left = Vec::new();
        for (who, state) in self.contributors.iter().enumerate() {
            left.extend(std::iter::repeat_n(
                who,
                contributor_state::left(state, &agreed)? as usize,
            ));
        }
        while !left.is_empty() && self.waiting(at) == 0 {
            let drawn = rng.next_u64().checked_rem(left.len() as u64).unwrap_or(0);
            let who = left.swap_remove(usize::try_from(drawn).unwrap_or(0));
            self.begin(at, Uploader { who, sample: false }, Contribution::Dummy);
            self.bound(TOGETHER).await?;
        }
        self.settle().await
    }

    /// Waits until an aggregate has ended.
    async fn await_result(&self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get(at) else { return Ok(()) };
        let name = hex(&aggregate.agreed.name());
        let mut attempts = self.parties.attempts();
        loop {
            let rows = self.rows().await?;
            if rows.iter().any(|row| row.name == name && row.state != OPEN) {
                return Ok(());
            }
            if !attempts.again().await {
                return Err(NoResultError).blame(Category::Check);
            }
        }
    }

    /// Fetches all rows; retries while the aggregator restarts.
    ///
    /// # Errors
    /// If it does not.
    pub async fn rows(&self) -> Result<Vec<Row>, Failure> {
        let fetch = || async {
            let mut reader = self.reader.lock().await;
            Ok(reader.fetch(&self.parties).await?.rows)
        };
        Ok(retry_unreachable(self.parties.patience, fetch).await?)
    }
}

/// A client whose credential is spent contributes nothing more: slots lost with their keepers also
/// cost presentations.
fn unless_spent(done: Result<Upload, StatsError>) -> Result<Option<Upload>, StatsError> {
    match done {
        Err(StatsError::NotContributed(ContributionError::Holder(HolderError::Burnt))) => Ok(None),
        done => done.map(Some),
    }
}

/// The context of an upload.
struct UploadContext {
    state: SharedState<Records>,
    prover: Arc<Prover>,
    parties: Parties,
    pinned: PinnedConfiguration,
    clock: Clock,
}

impl UploadContext {
    /// Advances an upload to its end, or until it must wait for another turn. Unreachable parties are
    /// retried; the clock stands still meanwhile.
    async fn run(self, mut attempt: Attempt) -> Result<Upload, StatsError> {
        let mut attempts = self.parties.attempts();
        loop {
            let state = Arc::clone(&self.state);
            let (parties, about) = (&self.parties, (&self.pinned, &self.clock));
            let nothing = |_: &Entry, _: &Endorsed<Entry>| Vec::new();
            match contributor_state::go_on(state, parties, attempt, about, nothing).await? {
                Upload::Away(later) => {
                    if !attempts.again().await {
                        return Ok(Upload::Away(later));
                    }
                    attempt = *later;
                }
                Upload::Lost(lost) => {
                    let (state, clock) = (Arc::clone(&self.state), self.clock.clone());
                    let prover = Arc::clone(&self.prover);
                    attempt = contributor_state::again(state, *lost, prover, clock).await?;
                }
                other => return Ok(other),
            }
        }
    }
}

/// All events, in order.
fn moments(plan: &Plan, samples: &Samples) -> Vec<(Timestamp, Moment)> {
    let mut moments = Vec::new();
    for (at, start) in samples.starts.iter().enumerate() {
        let end = start.0.saturating_add(plan.every.0);
        moments.push((Timestamp(start.0.saturating_sub(plan.every.0)), Moment::Define(at)));
        let during = plan.every.0.div_ceil(u64::from(plan.during).max(1));
        for turn in 1..plan.during {
            moments.push((
                Timestamp(start.0 + during.saturating_mul(turn.into())),
                Moment::Border(at),
            ));
        }
        for turn in 0..plan.after.turns {
            let since = plan.after.turn.0.saturating_mul(turn.into());
            moments.push((Timestamp(end.saturating_add(since)), Moment::Turn(at)));
        }
        let filled = plan.after.turn.0.saturating_mul(plan.after.turns.into());
        let release = end.saturating_add(filled).saturating_add(plan.after.settling.0);
        moments.push((Timestamp(release), Moment::Release(at)));
        let deadline = release.saturating_add(plan.after.patience.0);
        moments.push((Timestamp(deadline.saturating_sub(1)), Moment::Deadline(at)));
        moments.push((Timestamp(deadline), Moment::Over(at)));
    }
    let samples = samples.all.iter().enumerate();
    moments.extend(samples.map(|(at, sample)| (sample.time, Moment::Sample(at))));
    moments.sort_unstable();
    moments
}
