//! The aggregator's role on its own thread, the only writer of its ledger.

use super::metrics::{AggregateCounts, AggregatorMetrics};
use super::results_log::ResultsLog;
use crate::counts::tally_server::{CountRejectedError, TallyServer};
use crate::results_reader::{PAGE_RESULTS, ResultsPage, ShownResult};
use crate::row::{Row, by_time};
use alpheus_accountable_statistics::aggregator::{
    Aggregator, Examination, ExaminationReport, ShownUploads,
};
use alpheus_accountable_statistics::closing::Leaves;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition, DefinitionError};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Closing, Outcome, Release};
use alpheus_accountable_statistics::role_error::AggregatorError;
use alpheus_accountable_statistics::tally::{TallyDefinition, TallyError};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::engine::{self, Reply};
use alpheus_node::ledger::FencedLedger;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A call to the engine.
pub enum Call {
    /// A quorum has signed a definition.
    Learn(Box<Endorsed<Definition>>, Reply<Result<(), DefinitionError>>),
    /// Asks which aggregates are due.
    Due(Reply<Vec<Due>>),
    /// A smoother's release arrives.
    Take(SmootherId, Box<Release>, Reply<Result<bool, AggregatorError>>),
    /// Asks for the examination of an aggregate.
    Work(Digest, Reply<Result<Examination, AggregatorError>>),
    /// An examination has finished.
    Examined(Box<ExaminationReport>, Reply<Result<Signed<Closing>, AggregatorError>>),
    /// A smoother's outcomes arrive.
    Outcomes(SmootherId, Vec<Signed<Outcome>>),
    /// Asks for the rows of aggregates and counts, those after a name.
    Rows(Option<Digest>, Reply<ResultsPage<Row>>),
    /// Asks for the same with what smoothers have signed.
    Shown(Option<Digest>, Reply<ResultsPage<ShownResult>>),
    /// The operator defines a count.
    Ask(Box<Signed<TallyDefinition>>, Reply<Result<(), TallyError>>),
    /// Asks for the open counts.
    Questions(Reply<Vec<Signed<TallyDefinition>>>),
    /// An account takes part in a count.
    Count(Digest, Vec<u8>, Reply<Result<(), CountRejectedError>>),
    /// Asks for a closing.
    Closing(Digest, Reply<Option<Signed<Closing>>>),
    /// Asks for a closing's leaves.
    Leaves(Digest, Reply<Option<Leaves>>),
    /// The process stops.
    Stop,
}

/// An aggregate that is due.
pub struct Due {
    /// Its name.
    pub name: Digest,
    /// The number of its slots.
    pub slots: u32,
    /// Once it is closed: the closing, and what smoothers are shown of it.
    pub closed: Option<(Signed<Closing>, Arc<ShownUploads>)>,
    /// Whether it may have been closed before this state. Then only smoothers know its outcome.
    pub sits_out: bool,
}

/// The role and what it needs.
pub struct Engine {
    /// The role.
    pub aggregator: Aggregator,
    /// Counts.
    pub tallies: TallyServer,
    /// Its ledger.
    pub ledger: FencedLedger,
    /// The time.
    pub clock: Clock,
    /// Its public key.
    pub key: alpheus_crypto::sign::VerifyingKey,
    /// The log of results.
    pub results: ResultsLog,
    /// How long after its deadline an aggregate is kept, in microseconds.
    pub kept: u64,
    /// Its metrics.
    pub metrics: AggregatorMetrics,
}

impl engine::Engine for Engine {
    type Call = Call;
    type Error = LedgerError;

    fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, LedgerError> {
        for call in calls {
            if matches!(call, Call::Stop) {
                return Ok(ControlFlow::Break(()));
            }
            self.call(call)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Engine {
    fn call(&mut self, call: Call) -> Result<(), LedgerError> {
        match call {
            Call::Learn(signed, reply) => {
                let learnt = self.learn(&signed)?;
                let _ = reply.send(learnt);
            }
            Call::Due(reply) => {
                self.poll()?;
                self.metrics.set_aggregates(self.aggregate_counts());
                let _ = reply.send(self.due());
            }
            Call::Take(by, release, reply) => {
                let _ = reply.send(self.aggregator.handle_release(*release, by));
            }
            Call::Work(name, reply) => {
                let _ = reply.send(self.aggregator.examination(&name));
            }
            Call::Examined(examined, reply) => {
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
            Call::Outcomes(by, outcomes) => self.hear(by, &outcomes)?,
            Call::Rows(after, reply) => drop(reply.send(self.rows(after.as_ref()))),
            Call::Shown(after, reply) => drop(reply.send(self.shown(after.as_ref()))),
            Call::Questions(reply) => drop(reply.send(self.tallies.questions(self.clock.now()))),
            Call::Ask(signed, reply) => {
                let asked = self.tallies.ask(*signed, self.clock.now());
                self.answer(asked, reply)?;
            }
            Call::Count(name, presentation, reply) => {
                let about = (&self.aggregator, self.clock.now());
                let counted = self.tallies.take(&name, &presentation, about);
                self.answer(counted, reply)?;
            }
            Call::Closing(name, reply) => drop(reply.send(self.aggregator.closing(&name))),
            Call::Leaves(name, reply) => drop(reply.send(self.aggregator.leaves(&name))),
            Call::Stop => {}
        }
        Ok(())
    }

    fn hear(&mut self, by: SmootherId, outcomes: &[Signed<Outcome>]) -> Result<(), LedgerError> {
        let mut rejected = None;
        for outcome in first_of_each(outcomes, |name| self.aggregator.knows(name)) {
            match self.aggregator.handle_outcome(outcome, by) {
                Ok(step) => {
                    self.results.publish(&mut self.aggregator, &mut self.ledger, step)?;
                }
                Err(why) => rejected = Some(why),
            }
        }
        if let Some(why) = rejected {
            tracing::warn!(%why, by = by.0, "rejected outcomes");
        }
        Ok(())
    }

    /// Does work that is due by time.
    fn poll(&mut self) -> Result<(), LedgerError> {
        let now = self.clock.now();
        let step = self.aggregator.poll(now);
        self.results.publish(&mut self.aggregator, &mut self.ledger, step)?;
        let (step, rows) = self.tallies.poll(&self.aggregator, now);
        self.results.append(&mut self.ledger, step, rows)?;
        self.aggregator.prune(now, self.kept).commit(&mut self.ledger)?;
        self.tallies.prune(now, self.kept).commit(&mut self.ledger)?;
        Ok(())
    }

    /// Answers a request with a step's output once it is durable, or with an error.
    fn answer<T, E>(
        &mut self,
        done: Result<Step<T>, E>,
        reply: Reply<Result<T, E>>,
    ) -> Result<(), LedgerError> {
        let done = match done {
            Ok(step) => Ok(step.commit(&mut self.ledger)?),
            Err(why) => Err(why),
        };
        // The caller may be gone.
        let _ = reply.send(done);
        Ok(())
    }

    /// Learns a definition, unless it is so old that it would be deleted at once.
    fn learn(
        &mut self,
        signed: &Endorsed<Definition>,
    ) -> Result<Result<(), DefinitionError>, LedgerError> {
        let agreed = match AgreedDefinition::open(signed, self.aggregator.pinned()) {
            Ok(agreed) => agreed,
            Err(why) => return Ok(Err(why)),
        };
        let kept_until = agreed.deadline().0.saturating_add(self.kept);
        if kept_until <= self.clock.now().0 || self.aggregator.knows(&agreed.name()) {
            return Ok(Ok(()));
        }
        match self.aggregator.handle_definition(signed) {
            Ok(step) => step.commit(&mut self.ledger).map(|_| Ok(())),
            Err(why) => Ok(Err(why)),
        }
    }

    fn count(&self, closing: &Signed<Closing>) {
        let Ok(closing) = closing.open(&self.key) else { return };
        let agreed = self.aggregator.aggregate(&closing.aggregate);
        let slots = agreed.map_or(0, |agreed| agreed.slots as usize);
        self.metrics.checked(slots.saturating_sub(closing.empty.len()), closing.rejected.len());
    }

    fn aggregate_counts(&self) -> AggregateCounts {
        let mut counts = AggregateCounts::default();
        for agreed in self.aggregator.aggregates() {
            let name = agreed.name();
            match self.aggregator.outcome(&name).map(|outcome| outcome.result.is_ok()) {
                Some(true) => counts.result += 1,
                Some(false) => counts.without += 1,
                None if self.aggregator.closing(&name).is_some() => counts.closed += 1,
                None => counts.open += 1,
            }
        }
        counts
    }

    fn due(&self) -> Vec<Due> {
        let now = self.clock.now();
        let open = |agreed: &&AgreedDefinition| {
            now >= agreed.release() && self.aggregator.outcome(&agreed.name()).is_none()
        };
        let due = |agreed: &AgreedDefinition| {
            let name = agreed.name();
            let closed = self.aggregator.closing(&name).zip(self.aggregator.shown(&name));
            let sits_out = closed.is_none() && self.aggregator.sits_out(agreed.release());
            Due { name, slots: agreed.slots, closed, sits_out }
        };
        self.aggregator.aggregates().filter(open).map(due).collect()
    }

    /// The next names after one, aggregates' and counts', and whether there are more.
    fn names(&self, after: Option<&Digest>) -> ResultsPage<Digest> {
        let aggregates = self.aggregator.aggregates_after(after).map(AgreedDefinition::name);
        // One more than a page has: with it, there is a next page.
        let mut names: Vec<Digest> = aggregates.take(PAGE_RESULTS + 1).collect();
        names.extend(self.tallies.names_after(after).take(PAGE_RESULTS + 1));
        names.sort_unstable();
        let more = names.len() > PAGE_RESULTS;
        names.truncate(PAGE_RESULTS);
        let next = names.last().copied().filter(|_| more);
        ResultsPage { results: names, next }
    }

    fn shown(&self, after: Option<&Digest>) -> ResultsPage<ShownResult> {
        let (ResultsPage { results, next }, now) = (self.names(after), self.clock.now());
        let shown = |name: &Digest| match self.aggregator.publication(name) {
            Some(shown) => Some(ShownResult::Aggregate(Box::new(shown))),
            None => self.tallies.shown(name, &self.aggregator, now),
        };
        ResultsPage { results: results.iter().filter_map(shown).collect(), next }
    }

    fn rows(&self, after: Option<&Digest>) -> ResultsPage<Row> {
        let (ResultsPage { results, next }, now) = (self.names(after), self.clock.now());
        let row = |name: &Digest| match self.aggregator.aggregate(name) {
            Some(agreed) => Some(Row::new(agreed, self.aggregator.outcome(name).as_ref())),
            None => self.tallies.row(name, &self.aggregator, now),
        };
        let mut rows: Vec<Row> = results.iter().filter_map(row).collect();
        rows.sort_by(by_time);
        ResultsPage { results: rows, next }
    }
}

/// The first outcome of each known aggregate: a smoother sends one of each, and a signature costs
/// time to check.
fn first_of_each(
    outcomes: &[Signed<Outcome>],
    knows: impl Fn(&Digest) -> bool,
) -> Vec<&Signed<Outcome>> {
    let mut seen = BTreeSet::new();
    let first = |outcome: &&Signed<Outcome>| {
        let name = outcome.dangerous_first::<Digest>().filter(&knows);
        name.is_some_and(|name| seen.insert(name))
    };
    outcomes.iter().filter(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_accountable_statistics::messages::NoResultError;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;

    #[test]
    fn one_outcome_of_each_known_aggregate_is_checked() {
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let [known, other] = [1, 2].map(|name| Digest([name; 32]));
        let of =
            |aggregate| Signed::new(&Outcome { aggregate, result: Err(NoResultError::Late) }, &key);
        let page: Vec<_> = [other, known, other, known, known].map(of).into();
        assert_eq!(first_of_each(&page, |name| *name == known), [&page[1]]);
    }
}
