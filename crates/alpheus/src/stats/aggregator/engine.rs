//! The aggregator's role on a thread of its own: one writer.

use super::counted::{Counted, Stand};
use super::published::Results;
use crate::pass::ledger::FencedLedger;
use crate::service::engine::Reply;
use crate::service::shutdown::Trigger;
use crate::stats::clock::Clock;
use crate::stats::counts::desk::{Desk, NotCounted};
use crate::stats::results::Row;
use alpheus_accountable_statistics::aggregator::{Aggregator, Examined, Work};
use alpheus_accountable_statistics::closing::Leaves;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{Agreed, BadDefinition, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Closing, Outcome, Release, Shown};
use alpheus_accountable_statistics::refused::NotGathered;
use alpheus_accountable_statistics::tally::{BadTally, Question};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::signed::Signed;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Something to do.
pub enum Job {
    /// A quorum has signed a definition.
    Learn(Box<Endorsed<Definition>>, Reply<Result<(), BadDefinition>>),
    /// What is to be done now.
    Due(Reply<Vec<Due>>),
    /// What a smoother releases.
    Take(SmootherId, Box<Release>, Reply<Result<bool, NotGathered>>),
    /// What is to be examined.
    Work(Digest, Reply<Result<Work, NotGathered>>),
    /// It was.
    Examined(Box<Examined>, Reply<Result<Signed<Closing>, NotGathered>>),
    /// How a smoother says that aggregates ended.
    Outcomes(SmootherId, Vec<Signed<Outcome>>),
    /// A row for each aggregate and count.
    All(Reply<Vec<Row>>),
    /// The operator asks how many are somewhere.
    Ask(Box<Signed<Question>>, Reply<Result<(), BadTally>>),
    /// Counts that are not over.
    Questions(Reply<Vec<Signed<Question>>>),
    /// Somebody counts.
    Count(Digest, Vec<u8>, Reply<Result<(), NotCounted>>),
    /// A closing.
    Closing(Digest, Reply<Option<Signed<Closing>>>),
    /// What a closing counts.
    Leaves(Digest, Reply<Option<Leaves>>),
    /// The process stops.
    Stop,
}

/// An aggregate whose time has come.
pub struct Due {
    /// Its name.
    pub name: Digest,
    /// Once it is closed: the closing, and what is shown to smoothers.
    pub closed: Option<(Signed<Closing>, Arc<Vec<Shown>>)>,
    /// It may have been closed before this state: smoothers alone say how it ended.
    pub sits_out: bool,
}

/// The role and what it needs.
pub struct Engine {
    /// The role.
    pub aggregator: Aggregator,
    /// Counts.
    pub desk: Desk,
    /// Its ledger.
    pub ledger: FencedLedger,
    /// The time.
    pub clock: Clock,
    /// Its public key.
    pub key: alpheus_crypto::sign::VerifyingKey,
    /// Where results go as they are published.
    pub results: Results,
    /// So long after its deadline an aggregate is kept, in microseconds.
    pub kept: u64,
    /// What it counts.
    pub counted: Counted,
}

/// Runs until it is told to stop, or its ledger fails.
///
/// # Errors
/// [`LedgerError`].
pub fn run(
    mut engine: Engine,
    mut jobs: mpsc::Receiver<Job>,
    trigger: Trigger,
) -> Result<(), LedgerError> {
    let mut worked = Ok(());
    while let Some(job) = jobs.blocking_recv() {
        if matches!(job, Job::Stop) {
            break;
        }
        worked = engine.job(job);
        if let Err(error) = &worked {
            tracing::error!(%error, "the aggregator stops");
            break;
        }
    }
    drop(trigger);
    worked
}

impl Engine {
    fn job(&mut self, job: Job) -> Result<(), LedgerError> {
        match job {
            Job::Learn(signed, reply) => {
                let learnt = self.learn(&signed)?;
                let _ = reply.send(learnt);
            }
            Job::Due(reply) => {
                self.poll()?;
                self.counted.stand(self.stand());
                let _ = reply.send(self.due());
            }
            Job::Take(by, release, reply) => {
                let _ = reply.send(self.aggregator.take(by, *release));
            }
            Job::Work(name, reply) => {
                let _ = reply.send(self.aggregator.work(&name));
            }
            Job::Examined(examined, reply) => {
                let closed = match self.aggregator.close(*examined) {
                    Ok(step) => {
                        let closing = step.commit(&mut self.ledger)?;
                        self.count(&closing);
                        Ok(closing)
                    }
                    Err(why) => Err(why),
                };
                let _ = reply.send(closed);
            }
            Job::Outcomes(by, outcomes) => self.hear(by, &outcomes)?,
            Job::All(reply) => drop(reply.send(self.all())),
            Job::Questions(reply) => drop(reply.send(self.desk.questions(self.clock.now()))),
            Job::Ask(signed, reply) => {
                let asked = self.desk.ask(*signed, self.clock.now());
                self.answer(asked, reply)?;
            }
            Job::Count(name, showing, reply) => {
                let about = (&self.aggregator, self.clock.now());
                let counted = self.desk.take(&name, &showing, about);
                self.answer(counted, reply)?;
            }
            Job::Closing(name, reply) => drop(reply.send(self.aggregator.closing(&name))),
            Job::Leaves(name, reply) => drop(reply.send(self.aggregator.leaves(&name))),
            Job::Stop => {}
        }
        Ok(())
    }

    fn hear(&mut self, by: SmootherId, outcomes: &[Signed<Outcome>]) -> Result<(), LedgerError> {
        for outcome in outcomes {
            match self.aggregator.hear(by, outcome) {
                Ok(step) => drop(self.results.publish(&self.aggregator, &mut self.ledger, step)?),
                Err(why) => tracing::warn!(%why, by = by.0, "an outcome is not taken"),
            }
        }
        Ok(())
    }

    /// What time asks for.
    fn poll(&mut self) -> Result<(), LedgerError> {
        let now = self.clock.now();
        let step = self.aggregator.poll(now);
        self.results.publish(&self.aggregator, &mut self.ledger, step)?;
        let (step, rows) = self.desk.poll(now);
        self.results.append(&mut self.ledger, step, rows)?;
        self.aggregator.prune(now, self.kept).commit(&mut self.ledger)?;
        self.desk.prune(now, self.kept).commit(&mut self.ledger)?;
        self.results.forget(&self.aggregator);
        Ok(())
    }

    /// Answers what a step releases once it is durable, or why there is none.
    fn answer<T, E>(
        &mut self,
        done: Result<Step<T>, E>,
        reply: Reply<Result<T, E>>,
    ) -> Result<(), LedgerError> {
        let done = match done {
            Ok(step) => Ok(step.commit(&mut self.ledger)?),
            Err(why) => Err(why),
        };
        // Who asked may be gone.
        let _ = reply.send(done);
        Ok(())
    }

    /// Works by a definition, unless it is so old that it would be forgotten at once.
    fn learn(
        &mut self,
        signed: &Endorsed<Definition>,
    ) -> Result<Result<(), BadDefinition>, LedgerError> {
        let agreed = match Agreed::open(signed, self.aggregator.pinned()) {
            Ok(agreed) => agreed,
            Err(why) => return Ok(Err(why)),
        };
        let kept_until = agreed.deadline().0.saturating_add(self.kept);
        if kept_until <= self.clock.now().0 || self.aggregator.knows(&agreed.name()) {
            return Ok(Ok(()));
        }
        match self.aggregator.learn(signed) {
            Ok(step) => step.commit(&mut self.ledger).map(|_| Ok(())),
            Err(why) => Ok(Err(why)),
        }
    }

    fn count(&self, closing: &Signed<Closing>) {
        let Ok(closing) = closing.open(&self.key) else { return };
        let agreed = self.aggregator.aggregates().find(|a| a.name() == closing.aggregate);
        let slots = agreed.map_or(0, |agreed| agreed.slots as usize);
        self.counted.checked(slots.saturating_sub(closing.empty.len()), closing.rejected.len());
    }

    fn stand(&self) -> Stand {
        let mut stand = Stand::default();
        for agreed in self.aggregator.aggregates() {
            let name = agreed.name();
            match self.aggregator.published(&name).map(|outcome| outcome.result.is_ok()) {
                Some(true) => stand.result += 1,
                Some(false) => stand.without += 1,
                None if self.aggregator.closing(&name).is_some() => stand.closed += 1,
                None => stand.open += 1,
            }
        }
        stand
    }

    fn due(&self) -> Vec<Due> {
        let now = self.clock.now();
        let open = |agreed: &&Agreed| {
            now >= agreed.release() && self.aggregator.published(&agreed.name()).is_none()
        };
        let due = |agreed: &Agreed| {
            let name = agreed.name();
            let closed = self.aggregator.closing(&name).zip(self.aggregator.shown(&name));
            let sits_out = closed.is_none() && self.aggregator.sits_out(agreed.release());
            Due { name, closed, sits_out }
        };
        self.aggregator.aggregates().filter(open).map(due).collect()
    }

    fn all(&self) -> Vec<Row> {
        let row = |agreed: &Agreed| {
            let name = agreed.name();
            let outcome = self.aggregator.published(&name);
            Row::new(agreed, outcome.as_ref(), self.aggregator.missing(&name))
        };
        let mut rows: Vec<Row> = self.aggregator.aggregates().map(row).collect();
        rows.extend(self.desk.rows(self.clock.now()));
        rows.sort_by(|a, b| {
            (a.interval_start, &a.aggregate).cmp(&(b.interval_start, &b.aggregate))
        });
        rows
    }
}
