//! Drives a replay: moves the clock from one moment to the next, has clients upload what
//! they measured and volunteers fill what is left, and waits for the results. The clock
//! never goes past a moment before all that belongs before it is done.

use super::samples::{Sample, Samples};
use super::stage::Stage;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::link::LinkError;
use crate::service::progress::Progress;
use crate::stats::define::define;
use crate::stats::names::hex;
use crate::stats::person::{self, Account, Shared, Upload};
use crate::stats::plan::Plan;
use crate::stats::results::{Row, fetch};
use crate::stats::ways::{AGAIN, StatsError, Ways};
use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::schedule::Time;
use rand_core::Rng;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Uploads under way at the same time.
const TOGETHER: usize = 32;
/// How long a process may take to answer for the first time, and a result to come.
const PATIENCE: Duration = Duration::from_secs(300);

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
}

/// One aggregate of the replay.
struct Aggregate {
    agreed: Agreed,
    prover: Arc<Prover>,
    /// Uploads that have found no slot yet.
    waiting: Vec<(usize, Box<Attempt>)>,
}

type Done = Result<(usize, usize, Upload), StatsError>;

struct Drive {
    stage: Stage,
    ways: Ways,
    people: Vec<Shared<Records>>,
    aggregates: Vec<Aggregate>,
    under_way: JoinSet<Done>,
    lost: u64,
}

/// Something does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Stuck {
    #[error("no result of an aggregate came in time; run with ALPHEUS_LOG=info to see why")]
    NoResult,
    #[error("a process of the replay has ended; run with ALPHEUS_LOG=info to see why")]
    Ended,
}

/// Runs all of it, and gives the results.
///
/// # Errors
/// If a process does not answer, or an upload fails.
pub async fn run(stage: Stage, plan: &Plan, samples: &Samples) -> Result<Vec<Row>, Failure> {
    let ways = Ways::new(&stage.card)?;
    let mut drive = Drive {
        stage,
        ways,
        people: Vec::new(),
        aggregates: Vec::new(),
        under_way: JoinSet::new(),
        lost: 0,
    };
    drive.register().await?;
    drive.play(plan, samples).await?;
    if drive.lost > 0 {
        eprintln!("{} uploads found no quorum of smoothers", drive.lost);
    }
    drive.results().await
}

impl Drive {
    async fn register(&mut self) -> Result<(), Failure> {
        let mut progress =
            Progress::new("clients registered", Some(self.stage.accounts.len() as u64));
        let until = Instant::now() + PATIENCE;
        for (name, secret) in &self.stage.accounts {
            let account = Account { name, secret };
            let person = loop {
                let (pinned, ledger) = (&self.stage.card.pinned, Records::new());
                let clock = &self.stage.clock;
                let person =
                    person::register(pinned, &self.ways, &account, clock, ledger, Records::clone);
                match person.await {
                    Ok(person) => break person,
                    Err(StatsError::Link(LinkError::Unreachable(..))) if Instant::now() < until => {
                        tokio::time::sleep(AGAIN).await;
                    }
                    Err(error) => return Err(error.into()),
                }
            };
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
        self.aggregates.push(Aggregate { agreed, prover, waiting: Vec::new() });
        Ok(())
    }

    async fn play(&mut self, plan: &Plan, samples: &Samples) -> Result<(), Failure> {
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
                What::Release(_) => {
                    self.settle().await?;
                    self.stage.hand.set(time)?;
                }
                // The clock stays before it until the result is there.
                What::Deadline(at) => self.await_result(at).await?,
            }
        }
        Ok(())
    }

    async fn upload(&mut self, sample: &Sample) -> Result<(), Failure> {
        let of = |a: &Aggregate| a.agreed.start <= sample.time && sample.time < a.agreed.end;
        let Some(at) = self.aggregates.iter().position(of) else { return Ok(()) };
        self.begin(at, sample.client, Contribution::Sample(sample.value));
        self.bound(TOGETHER).await
    }

    /// Starts an upload.
    fn begin(&mut self, at: usize, who: usize, contribution: Contribution) {
        let Some((aggregate, person)) = self.aggregates.get(at).zip(self.people.get(who)) else {
            return;
        };
        let (agreed, prover) = (aggregate.agreed.clone(), Arc::clone(&aggregate.prover));
        let (person, ways) = (Arc::clone(person), self.ways.clone());
        let (clock, pinned) = (self.stage.clock.clone(), self.stage.card.pinned.clone());
        self.under_way.spawn(async move {
            let begun =
                person::begin(Arc::clone(&person), agreed, contribution, clock.clone()).await?;
            Ok((at, who, person::go_on(person, &ways, prover, begun, (&pinned, &clock)).await?))
        });
    }

    /// Goes on with an upload that found no slot.
    fn again(&mut self, at: usize, who: usize, attempt: Attempt) {
        let Some((aggregate, person)) = self.aggregates.get(at).zip(self.people.get(who)) else {
            return;
        };
        let (prover, person) = (Arc::clone(&aggregate.prover), Arc::clone(person));
        let (ways, pinned) = (self.ways.clone(), self.stage.card.pinned.clone());
        let clock = self.stage.clock.clone();
        self.under_way.spawn(async move {
            Ok((at, who, person::go_on(person, &ways, prover, attempt, (&pinned, &clock)).await?))
        });
    }

    /// Waits until fewer than so many uploads are under way.
    async fn bound(&mut self, most: usize) -> Result<(), Failure> {
        while self.under_way.len() >= most.max(1) {
            let Some(done) = self.under_way.join_next().await else { break };
            self.note(done.blame(Category::Io)??);
        }
        Ok(())
    }

    fn note(&mut self, (at, who, upload): (usize, usize, Upload)) {
        match upload {
            Upload::Done => {}
            Upload::Waits(attempt) => {
                if let Some(aggregate) = self.aggregates.get_mut(at) {
                    aggregate.waiting.push((who, attempt));
                }
            }
            Upload::Lost => self.lost += 1,
        }
    }

    /// Waits for all uploads that are under way.
    async fn settle(&mut self) -> Result<(), Failure> {
        self.bound(1).await
    }

    fn waiting(&self, at: usize) -> usize {
        self.aggregates.get(at).map_or(0, |aggregate| aggregate.waiting.len())
    }

    /// Uploads that found no slot at an earlier turn.
    async fn retry(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get_mut(at) else { return Ok(()) };
        for (who, attempt) in std::mem::take(&mut aggregate.waiting) {
            self.again(at, who, *attempt);
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
            self.begin(at, who, Contribution::Dummy);
            self.bound(TOGETHER).await?;
        }
        self.settle().await
    }

    /// Waits until an aggregate has ended.
    async fn await_result(&mut self, at: usize) -> Result<(), Failure> {
        let Some(aggregate) = self.aggregates.get(at) else { return Ok(()) };
        let name = hex(&aggregate.agreed.name());
        let until = Instant::now() + PATIENCE;
        loop {
            let rows = fetch(&self.ways).await?;
            if rows.iter().any(|row| row.name == name && row.state != "open") {
                return Ok(());
            }
            if self.stage.any_ended() {
                return Err(Stuck::Ended).blame(Category::Io);
            }
            if Instant::now() > until {
                return Err(Stuck::NoResult).blame(Category::Check);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// All results.
    async fn results(&mut self) -> Result<Vec<Row>, Failure> {
        Ok(fetch(&self.ways).await?)
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
    }
    let samples = samples.all.iter().enumerate();
    moments.extend(samples.map(|(at, sample)| (sample.time, What::Sample(at))));
    moments.sort_unstable();
    moments
}
