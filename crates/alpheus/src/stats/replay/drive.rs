//! Drives a replay: moves the clock from one moment to the next, has clients upload what
//! they measured and volunteers fill what is left, and waits for the results. The clock
//! never goes past a moment before all that belongs before it is done.

use super::samples::{Sample, Samples};
use super::stage::Stage;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::service::children::{Children, Condition};
use crate::service::progress::Progress;
use crate::stats::clock::Clock;
use crate::stats::define::define;
use crate::stats::names::hex;
use crate::stats::person::{self, Account, Shared, Upload};
use crate::stats::plan::Plan;
use crate::stats::results::{Row, fetch};
use crate::stats::ways::{AGAIN, StatsError, Ways, patiently};
use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::Entry;
use alpheus_accountable_statistics::refused::NotContributed;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_anonymous_credential::schedule::Time;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::task::JoinSet;

/// Uploads under way at the same time.
const TOGETHER: usize = 32;

/// What happens when, in this order at one time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The result of an aggregate must be there before its deadline.
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
    /// One that could not be filled ends without a result.
    Over(usize),
}

/// One aggregate of the replay.
struct Aggregate {
    agreed: Agreed,
    prover: Arc<Prover>,
    /// Uploads that have found no slot yet.
    waiting: Vec<(Giver, Box<Attempt>)>,
    /// Slots that are filled.
    filled: u32,
}

/// Who gives something, and whether it is a sample.
#[derive(Clone, Copy)]
struct Giver {
    who: usize,
    sample: bool,
}

type Done = Result<(usize, Giver, Option<Upload>), StatsError>;

/// What came of a replay.
pub struct Played {
    /// The results.
    pub rows: Vec<Row>,
    /// Samples that found no slot.
    pub unplaced: u64,
}

/// A replay at work.
pub struct Drive {
    stage: Stage,
    ways: Ways,
    people: Vec<Shared<Records>>,
    aggregates: Vec<Aggregate>,
    under_way: JoinSet<Done>,
    unplaced: u64,
}

/// Something does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no result of an aggregate came in time; run with ALPHEUS_LOG=info to see why")]
struct NoResult;

/// None should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a process of the replay has ended; run with ALPHEUS_LOG=info to see why")]
struct Ended;

/// Runs all of it, and gives what came of it.
///
/// # Errors
/// If a process does not answer, or an upload fails.
pub async fn run(stage: Stage, plan: &Plan, samples: &Samples) -> Result<Played, Failure> {
    let mut drive = Drive::new(stage)?;
    // Gone before the folder, which the stage has.
    let mut children = drive.stage.children();
    tokio::select! {
        rows = drive.all(plan, samples) => rows,
        failed = watch(&mut children) => Err(failed),
    }
}

/// Starts processes that were killed again, on their state, until one has ended by itself.
pub(super) async fn watch(children: &mut Children) -> Failure {
    loop {
        tokio::time::sleep(AGAIN).await;
        match children.revive() {
            Ok(Condition::Running) => {}
            Ok(Condition::Revived) => tracing::info!("a killed process is started again"),
            Ok(Condition::Ended) => return Failure::new(Category::Io, Ended),
            Err(failure) => return failure,
        }
    }
}

impl Drive {
    /// Before anything.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn new(stage: Stage) -> Result<Self, Failure> {
        let (ways, under_way) = (Ways::new(&stage.card)?, JoinSet::new());
        let (people, aggregates) = (Vec::new(), Vec::new());
        Ok(Self { stage, ways, people, aggregates, under_way, unplaced: 0 })
    }

    /// The processes: registrar, aggregator, smoothers.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.stage.processes()
    }

    async fn all(&mut self, plan: &Plan, samples: &Samples) -> Result<Played, Failure> {
        self.register().await?;
        self.play(plan, samples).await?;
        Ok(Played { rows: self.rows().await?, unplaced: self.unplaced })
    }

    /// Gives all clients their credentials.
    ///
    /// # Errors
    /// If the registrar refuses.
    pub async fn register(&mut self) -> Result<(), Failure> {
        let mut progress =
            Progress::new("clients registered", Some(self.stage.accounts.len() as u64));
        let Stage { card, clock, accounts, .. } = &self.stage;
        for (name, secret) in accounts {
            let (account, ledger) = (Account { name, secret }, Records::new());
            let ways = &self.ways;
            let person =
                person::register(&card.pinned, ways, &account, clock, ledger, Records::clone);
            let person = person.await?;
            self.people.push(Arc::new(Mutex::new(person)));
            progress.advance(1);
        }
        Ok(())
    }

    /// Has an aggregate defined.
    async fn define(&mut self, plan: &Plan, start: Time) -> Result<(), Failure> {
        let by = (plan, &self.stage.definer);
        let agreed = define(&self.stage.card, &self.ways, by, start).await?;
        let prover = Arc::new(Prover::new(*agreed.terms()));
        self.aggregates.push(Aggregate { agreed, prover, waiting: Vec::new(), filled: 0 });
        Ok(())
    }

    /// Brings all samples to their aggregates, and these to their ends.
    ///
    /// # Errors
    /// If an upload fails, or no result comes.
    pub async fn play(&mut self, plan: &Plan, samples: &Samples) -> Result<(), Failure> {
        let mut progress = Progress::new("samples uploaded", Some(samples.all.len() as u64));
        for (time, what) in moments(plan, samples) {
            match what {
                What::Sample(at) => {
                    self.stage.hand.set(time)?;
                    let Some(sample) = samples.all.get(at) else { continue };
                    self.upload(sample).await?;
                    progress.advance(1);
                }
                What::Define(at) => {
                    self.settle().await?;
                    self.stage.hand.set(time)?;
                    let start = samples.starts.get(at).copied().unwrap_or(time);
                    self.define(plan, start).await?;
                }
                What::Border(at) => {
                    self.settle().await?;
                    self.stage.hand.set(time)?;
                    self.retry(at).await?;
                }
                What::Turn(at) => {
                    self.settle().await?;
                    self.stage.hand.set(time)?;
                    self.retry(at).await?;
                    self.fill(at).await?;
                }
                What::Release(at) => {
                    self.settle().await?;
                    self.give_up(at);
                    self.stage.hand.set(time)?;
                }
                // The clock stays before it until the result is there, if there is to be one.
                What::Deadline(at) if self.is_filled(at) => self.await_result(at).await?,
                What::Deadline(_) => {}
                What::Over(at) => {
                    self.stage.hand.set(time)?;
                    self.await_result(at).await?;
                }
            }
        }
        Ok(())
    }

    async fn upload(&mut self, sample: &Sample) -> Result<(), Failure> {
        let of = |a: &Aggregate| a.agreed.start <= sample.time && sample.time < a.agreed.end;
        let Some(at) = self.aggregates.iter().position(of) else { return Ok(()) };
        let giver = Giver { who: sample.client, sample: true };
        self.begin(at, giver, Contribution::Sample(sample.value));
        self.bound(TOGETHER).await
    }

    /// Starts an upload.
    fn begin(&mut self, at: usize, giver: Giver, contribution: Contribution) {
        let Some((upload, agreed)) = self.way_of(at, giver.who) else { return };
        self.under_way.spawn(async move {
            let (person, clock) = (Arc::clone(&upload.person), upload.clock.clone());
            let done = match person::begin(person, agreed, contribution, clock, Vec::new()).await {
                Ok(begun) => upload.run(begun).await,
                Err(why) => Err(why),
            };
            Ok((at, giver, unless_spent(done)?))
        });
    }

    /// Goes on with an upload that found no slot.
    fn again(&mut self, at: usize, giver: Giver, attempt: Attempt) {
        let Some((upload, _)) = self.way_of(at, giver.who) else { return };
        self.under_way
            .spawn(async move { Ok((at, giver, unless_spent(upload.run(attempt).await)?)) });
    }

    fn way_of(&self, at: usize, who: usize) -> Option<(Uploading, Agreed)> {
        let (aggregate, person) = self.aggregates.get(at).zip(self.people.get(who))?;
        let uploading = Uploading {
            person: Arc::clone(person),
            prover: Arc::clone(&aggregate.prover),
            ways: self.ways.clone(),
            pinned: self.stage.card.pinned.clone(),
            clock: self.stage.clock.clone(),
        };
        Some((uploading, aggregate.agreed.clone()))
    }

    /// Waits until fewer than so many uploads are under way.
    async fn bound(&mut self, most: usize) -> Result<(), Failure> {
        while self.under_way.len() >= most.max(1) {
            let Some(done) = self.under_way.join_next().await else { break };
            self.note(done.blame(Category::Io)??);
        }
        Ok(())
    }

    fn note(&mut self, (at, giver, upload): (usize, Giver, Option<Upload>)) {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return };
        match upload {
            Some(Upload::Done(_)) => aggregate.filled += 1,
            // As those that find no slot: at the next turn again.
            Some(Upload::Waits(attempt) | Upload::Away(attempt) | Upload::Lost(attempt)) => {
                aggregate.waiting.push((giver, attempt));
            }
            None => self.unplaced += u64::from(giver.sample),
        }
    }

    /// Whether so many slots are filled that there is to be a result.
    fn is_filled(&self, at: usize) -> bool {
        self.aggregates.get(at).is_some_and(|Aggregate { agreed, filled, .. }| {
            filled + self.stage.card.pinned.missing_at_most(agreed.slots) >= agreed.slots
        })
    }

    /// Waits for all uploads that are under way.
    async fn settle(&mut self) -> Result<(), Failure> {
        self.bound(1).await
    }

    /// What has found no slot finds none any more. What was deposited may count.
    fn give_up(&mut self, at: usize) {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return };
        let waited = std::mem::take(&mut aggregate.waiting).into_iter();
        let lost = waited.filter(|(giver, attempt)| giver.sample && attempt.entry().is_none());
        self.unplaced += lost.count() as u64;
    }

    fn waiting(&self, at: usize) -> usize {
        self.aggregates.get(at).map_or(0, |aggregate| aggregate.waiting.len())
    }

    /// Uploads that found no slot at an earlier turn.
    async fn retry(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return Ok(()) };
        for (giver, attempt) in std::mem::take(&mut aggregate.waiting) {
            self.again(at, giver, *attempt);
            self.bound(TOGETHER).await?;
        }
        self.settle().await
    }

    /// Volunteers, in an order that is drawn, until no keeper has a free slot at this turn.
    async fn fill(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get(at) else { return Ok(()) };
        let agreed = aggregate.agreed.clone();
        let mut rng = entropy::rng()?;
        let mut left = Vec::new();
        for (who, person) in self.people.iter().enumerate() {
            left.extend(std::iter::repeat_n(who, person::left(person, &agreed)? as usize));
        }
        while !left.is_empty() && self.waiting(at) == 0 {
            let drawn = rng.next_u64().checked_rem(left.len() as u64).unwrap_or(0);
            let who = left.swap_remove(usize::try_from(drawn).unwrap_or(0));
            self.begin(at, Giver { who, sample: false }, Contribution::Dummy);
            self.bound(TOGETHER).await?;
        }
        self.settle().await
    }

    /// Waits until an aggregate has ended.
    async fn await_result(&self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get(at) else { return Ok(()) };
        let name = hex(&aggregate.agreed.name());
        let until = Instant::now() + self.ways.patience;
        loop {
            let rows = self.rows().await?;
            if rows.iter().any(|row| row.name == name && row.state != "open") {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(NoResult).blame(Category::Check);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// All results, from an aggregator that may just come back.
    ///
    /// # Errors
    /// If it does not.
    pub async fn rows(&self) -> Result<Vec<Row>, Failure> {
        Ok(patiently(self.ways.patience, || fetch(&self.ways)).await?)
    }
}

/// Who has shown its credential as often as it may gives nothing more: slots that were lost
/// with their keepers have cost showings too.
fn unless_spent(done: Result<Upload, StatsError>) -> Result<Option<Upload>, StatsError> {
    match done {
        Err(StatsError::NotContributed(NotContributed::Holder(HolderRefused::Burnt))) => Ok(None),
        done => done.map(Some),
    }
}

/// What an upload needs.
struct Uploading {
    person: Shared<Records>,
    prover: Arc<Prover>,
    ways: Ways,
    pinned: Pinned,
    clock: Clock,
}

impl Uploading {
    /// Brings an upload to its end, or to where it waits for another turn. Who is away for a
    /// moment is asked again: the clock stands still meanwhile.
    async fn run(self, mut attempt: Attempt) -> Result<Upload, StatsError> {
        let until = Instant::now() + self.ways.patience;
        loop {
            let (person, prover) = (Arc::clone(&self.person), Arc::clone(&self.prover));
            let (ways, about) = (&self.ways, (&self.pinned, &self.clock));
            let nothing = |_: &Entry, _: &Endorsed<Entry>| Vec::new();
            match person::go_on(person, ways, prover, attempt, about, nothing).await? {
                Upload::Away(later) if Instant::now() < until => {
                    tokio::time::sleep(AGAIN).await;
                    attempt = *later;
                }
                Upload::Lost(lost) => {
                    let (person, clock) = (Arc::clone(&self.person), self.clock.clone());
                    attempt = person::again(person, *lost, clock).await?;
                }
                other => return Ok(other),
            }
        }
    }
}

/// All moments, in order.
fn moments(plan: &Plan, samples: &Samples) -> Vec<(Time, What)> {
    let mut moments = Vec::new();
    for (at, start) in samples.starts.iter().enumerate() {
        let end = start.0.saturating_add(plan.every.0);
        moments.push((Time(start.0.saturating_sub(plan.every.0)), What::Define(at)));
        let during = plan.every.0.div_ceil(u64::from(plan.during).max(1));
        for turn in 1..plan.during {
            moments.push((Time(start.0 + during.saturating_mul(turn.into())), What::Border(at)));
        }
        for turn in 0..plan.after.turns {
            let since = plan.after.turn.saturating_mul(turn.into());
            moments.push((Time(end.saturating_add(since)), What::Turn(at)));
        }
        let filled = plan.after.turn.saturating_mul(plan.after.turns.into());
        let release = end.saturating_add(filled).saturating_add(plan.after.settling);
        moments.push((Time(release), What::Release(at)));
        let deadline = release.saturating_add(plan.after.patience);
        moments.push((Time(deadline.saturating_sub(1)), What::Deadline(at)));
        moments.push((Time(deadline), What::Over(at)));
    }
    let samples = samples.all.iter().enumerate();
    moments.extend(samples.map(|(at, sample)| (sample.time, What::Sample(at))));
    moments.sort_unstable();
    moments
}
