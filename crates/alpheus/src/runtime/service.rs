//! The service: policy manager, and the data plane that it commands. It never holds a key to data.

mod addressing;

use super::plane::{self, EngineKind, NotSummed, Plane, open_sums};
use super::results::{OK, Row};
use super::storage::{StoreLedger, Topics, read_on};
use super::watch::{Counters, Watch};
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::announced::Announced;
use alpheus_encrypted_stream::coordinator::{Coordinator, ForSums, Output, Said, SumSet, Timing};
use alpheus_encrypted_stream::error::{NotTaken, PlanRefused};
use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError, Scope, Step};
use alpheus_encrypted_stream::transformer::{PlanMismatch, Shape};
use alpheus_policy::ids::{ControllerId, PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::time::Timestamp;
use alpheus_transport::{Batch, Error, NewRecord, Offset, Store};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use thiserror::Error;

/// Bounds what is under way when many windows have passed at once, as after a
/// restart or in a replay.
const MOST_SUMMONS: usize = 4096;
/// Messages whose signatures are checked together.
const AT_A_TIME: usize = 64;

/// The service of an embedded deployment.
pub struct Service {
    store: Arc<dyn Store>,
    topics: Topics,
    ledger: StoreLedger,
    key: Arc<SigningKey>,
    plane: Box<dyn Plane>,
    queries: BTreeMap<PlanId, Query>,
    /// What restored coordinators ask again, once their windows' sums are back.
    pending: Vec<(PlanId, Step<Output>)>,
    timing: Timing,
    /// A commit was refused.
    failed: bool,
    /// What was counted since the start.
    pub counters: Counters,
    /// The same for other threads to see.
    pub watch: Watch,
}

/// A running plan.
struct Query {
    coordinator: Coordinator,
    place: HashMap<ControllerId, u32>,
    refusals: BTreeMap<ControllerId, PlanRefused>,
    /// Plans that ended without these controllers' hearing of it, and that each
    /// was told of again.
    ended: BTreeMap<ControllerId, BTreeSet<PlanId>>,
}

/// Why the service stops.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The log or the state store.
    #[error(transparent)]
    Store(#[from] Error),
    /// What must not be forgotten could not be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A plan of another schema, or with windows that are no multiples of the tick.
    #[error(transparent)]
    Mismatch(#[from] PlanMismatch),
    /// The stored state cannot be read.
    #[error(
        "the service's stored {what} cannot be read; restore the state folder from a backup, or start with a fresh --state"
    )]
    Damaged {
        /// What.
        what: &'static str,
    },
    /// Its plans were started under another engine, which alone has their sums.
    #[error(
        "plans run under the engine {before}, not {asked}: drop their queries there, or start with a fresh --state"
    )]
    OtherEngine {
        /// Which runs them.
        before: EngineKind,
        /// Which was asked for.
        asked: EngineKind,
    },
    /// A row cannot be written as JSON.
    #[error(transparent)]
    Row(#[from] serde_json::Error),
}

/// What the service gives out in one round.
#[derive(Default)]
pub struct Round {
    /// Messages to controllers.
    pub messages: Vec<super::hosts::ToController>,
    /// Windows that ended, durably.
    pub rows: Vec<Row>,
}

impl Service {
    /// Opens the service on its store, as it was left.
    ///
    /// # Errors
    /// [`ServiceError`] if the store fails or its content cannot be read.
    pub fn open(
        engine: EngineKind,
        store: Arc<dyn Store>,
        topics: &Topics,
        key: Arc<SigningKey>,
        shape: Shape,
        timing: Timing,
    ) -> Result<Service, ServiceError> {
        store.ensure_topic(&topics.events, topics.partitions)?;
        store.ensure_topic(&topics.results, 1)?;
        store.ensure_topic(&topics.refused, 1)?;
        store.ensure_space(&topics.service)?;
        let plane = plane::open(engine, &store, topics, shape)?;
        Ok(Service {
            ledger: StoreLedger::new(store.clone(), topics.service.clone()),
            store,
            topics: topics.clone(),
            key,
            plane,
            queries: BTreeMap::new(),
            pending: Vec::new(),
            timing,
            failed: false,
            counters: Counters::default(),
            watch: Watch::default(),
        })
    }

    /// Its store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Names in its store.
    #[must_use]
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Whether its engine can sum a plan that is to start.
    ///
    /// # Errors
    /// [`NotSummed`].
    pub fn check(&self, plan: &Plan) -> Result<(), NotSummed> {
        self.plane.check(plan)
    }

    /// Starts a plan whose participants were checked, or takes it up again.
    /// The next [`Service::close_windows`] announces it.
    ///
    /// # Errors
    /// [`ServiceError`] if its records cannot be read.
    pub fn start(&mut self, now: Timestamp, announced: Arc<Announced>) -> Result<(), ServiceError> {
        let (id, plan) = (announced.id(), announced.plan());
        self.plane.register(plan)?;
        let place = (0..).zip(&plan.roster).map(|(place, id)| (*id, place)).collect();
        let prefix = Scope::Service(id).prefix();
        let records = super::storage::scan_all(self.store.as_ref(), &self.topics.service, &prefix)?;
        let values = records.iter().map(|(_, value)| value.as_ref());
        let (coordinator, asked) =
            Coordinator::restore(announced, self.key.clone(), self.timing, values, now)
                .map_err(|_| ServiceError::Damaged { what: "window records" })?;
        let coordinator = match self.plane.adds_up() {
            true => coordinator.that_leaves_sums_to_others(),
            false => coordinator,
        };
        self.pending.extend([(id, coordinator.announce()), (id, asked)]);
        let (refusals, ended) = (BTreeMap::new(), BTreeMap::new());
        self.queries.insert(id, Query { coordinator, place, refusals, ended });
        Ok(())
    }

    /// Ends plans: their windows under way fail by that name, and what comes out
    /// tells the controllers.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn retire(&mut self, plans: &[PlanId]) -> Result<Round, ServiceError> {
        let retired = plans.iter().filter_map(|id| {
            self.queries.get_mut(id).map(|query| (*id, query.coordinator.retire()))
        });
        let steps = retired.collect();
        let round = self.finish_with(steps, plans)?;
        plans.iter().for_each(|id| drop(self.queries.remove(id)));
        Ok(round)
    }

    /// Lets a stream's events in, before any plan asks for them.
    pub fn admit(&mut self, stream: StreamId) {
        self.plane.admit(stream);
    }

    /// Plans that run.
    #[must_use]
    pub fn running(&self) -> Vec<PlanId> {
        self.queries.keys().copied().collect()
    }

    /// Controllers that refused a plan, and why.
    pub fn refusals(
        &self,
        plan: &PlanId,
    ) -> impl Iterator<Item = (&ControllerId, &PlanRefused)> + use<'_> {
        self.queries.get(plan).into_iter().flat_map(|query| &query.refusals)
    }

    /// No more input comes, and `end` is the end of what there was with the
    /// longest grace: every window until then has passed.
    pub fn seal(&mut self, end: Timestamp) {
        self.plane.seal(end);
    }

    /// Event time as far as all partitions have come.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.plane.watermark()
    }

    /// Whether [`Service::close_windows`] has anything to do.
    #[must_use]
    pub fn has_due(&self, idle: Timestamp) -> bool {
        let due = |id| self.plane.due(id, idle).is_some();
        !self.pending.is_empty() || self.plane.has_sums() || self.queries.keys().any(due)
    }

    /// Reads everything new from the log.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn ingest(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        self.go_on()?;
        self.plane.ingest(now, &mut self.counters)
    }

    /// Opens windows whose sums have come.
    fn open_windows(&mut self) -> Vec<(PlanId, Step<Output>)> {
        let mut steps = Vec::new();
        for (record, sum) in self.plane.take_sums() {
            // Of a plan that has ended.
            let Some(query) = self.queries.get_mut(&sum.plan) else { continue };
            let (step, refused) = open_sums(&mut query.coordinator, &sum);
            if let Some(reason) = refused {
                tracing::warn!(reason, plan = %sum.plan, "sums of a window are refused");
                *self.counters.refused_messages.entry(reason.to_owned()).or_default() += 1;
                self.plane.bury(&record, reason);
            }
            steps.push((sum.plan, step));
        }
        steps
    }

    /// Closes windows that have passed, as many at a time as make
    /// [`MOST_SUMMONS`]; ask [`Service::has_due`] whether there are more.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn close_windows(
        &mut self,
        now: Timestamp,
        idle: Timestamp,
    ) -> Result<Round, ServiceError> {
        let mut steps = std::mem::take(&mut self.pending);
        steps.extend(self.open_windows());
        let mut summons = 0;
        for id in self.running() {
            while summons < MOST_SUMMONS
                && let Some(window) = self.plane.due(&id, idle)
                && let Some(query) = self.queries.get_mut(&id)
            {
                let Some(report) = self.plane.close(&id, window) else {
                    summons += 1;
                    continue;
                };
                if query.coordinator.has_ended(window.start) {
                    if query.coordinator.is_beyond(window.start) {
                        let none = ForSums::Set(SumSet::none(window));
                        self.plane.give(&id, query.coordinator.plan(), &none)?;
                    }
                    self.plane.finish(&id, window);
                    continue;
                }
                if !query.coordinator.knows(window) {
                    summons += query.place.len();
                }
                steps.push((id, query.coordinator.window_closed(now, &report)));
            }
        }
        self.finish_round(steps)
    }

    /// Takes messages of controllers.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn receive(
        &mut self,
        now: Timestamp,
        messages: Vec<super::hosts::FromController>,
    ) -> Result<Round, ServiceError> {
        let heard = self.hear(&messages);
        let mut steps = Vec::with_capacity(heard.len());
        for (plan, said) in heard {
            let Some(query) = self.queries.get_mut(&plan) else { continue };
            match said.and_then(|said| query.coordinator.take(now, &said, &self.plane)) {
                Ok(step) => steps.push((plan, step)),
                Err(reason) => {
                    *self.counters.refused_messages.entry(reason.to_string()).or_default() += 1;
                }
            }
        }
        self.finish_round(steps)
    }

    /// Signatures are most of the work: some at a time, on all processors.
    fn hear(
        &self,
        messages: &[super::hosts::FromController],
    ) -> Vec<(PlanId, Result<Said, NotTaken>)> {
        let of_plan = |messages: &[super::hosts::FromController]| {
            let plan = messages.first().map(|(_, plan, _)| *plan)?;
            let query = self.queries.get(&plan)?;
            let placed = messages.iter().filter_map(|(from, _, message)| {
                query.place.get(from).map(|place| (*place, message))
            });
            let said = query.coordinator.hear_all(&placed.collect::<Vec<_>>());
            Some(said.into_iter().map(move |said| (plan, said)))
        };
        let plans = |some: &[super::hosts::FromController]| {
            some.chunk_by(|a, b| a.1 == b.1).filter_map(of_plan).flatten().collect::<Vec<_>>()
        };
        messages.par_chunks(AT_A_TIME).flat_map_iter(plans).collect()
    }

    /// Goes on where a deadline has passed.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn timeout(&mut self, now: Timestamp) -> Result<Round, ServiceError> {
        let sums = &self.plane;
        let step = |(id, query): (&PlanId, &mut Query)| (*id, query.coordinator.timeout(now, sums));
        let steps = self.queries.iter_mut().map(step).collect();
        self.finish_round(steps)
    }

    /// When [`Service::timeout`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.queries.values().filter_map(|query| query.coordinator.deadline()).min()
    }

    /// Windows under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.queries.values().map(|query| query.coordinator.under_way()).sum()
    }

    fn finish_round(&mut self, steps: Vec<(PlanId, Step<Output>)>) -> Result<Round, ServiceError> {
        self.finish_with(steps, &[])
    }

    /// Records, result rows and what is for sums in one commit, then messages. These plans
    /// are summed no longer.
    fn finish_with(
        &mut self,
        steps: Vec<(PlanId, Step<Output>)>,
        ended: &[PlanId],
    ) -> Result<Round, ServiceError> {
        self.go_on()?;
        let committed = self.commit(steps, ended);
        self.failed |= committed.is_err();
        committed
    }

    /// Whether what is known here is what the store knows: once a commit was refused it is not,
    /// and nothing more is said that might rest on it.
    fn go_on(&self) -> Result<(), ServiceError> {
        if self.failed { Err(LedgerError.into()) } else { Ok(()) }
    }

    fn commit(
        &mut self,
        steps: Vec<(PlanId, Step<Output>)>,
        ended: &[PlanId],
    ) -> Result<Round, ServiceError> {
        let (mut rows, mut merged) = (Vec::new(), Step::default());
        for (id, step) in steps {
            let Some(query) = self.queries.get(&id) else { continue };
            let plan = query.coordinator.plan();
            step.for_sums().try_for_each(|given| self.plane.give(&id, plan, given))?;
            for outcome in step.outcomes() {
                let row = Row::ended(plan, outcome);
                self.counters.window(outcome, row.status == OK);
                rows.push(row);
                self.plane.finish(&id, outcome.window);
            }
            merged.merge(step.map(|output| (id, output)));
        }
        ended.iter().for_each(|id| self.plane.unregister(id));
        let mut batch = self.plane.staged()?;
        for row in &rows {
            let value = serde_json::to_vec(row)?;
            let record =
                NewRecord { value: &value, timestamp: row.window_end, ..Default::default() };
            batch.append(&self.topics.results.partition(0), &record)?;
        }
        // Where nothing is under way, a window's end is the time to note how far
        // the log was read: it shares the row's flush.
        let noted = !rows.is_empty() && self.under_way() == 0 && self.plane.is_worth_noting();
        if noted {
            self.plane.note(&mut batch)?;
        }
        self.counters.under_way = self.under_way();
        self.counters.watermark = Some(self.watermark());
        self.watch.show(&self.counters);
        let mut beside = WithRows { ledger: &self.ledger, store: &*self.store, batch };
        let outputs = merged.commit(&mut beside)?;
        beside.commit_rest()?;
        if noted {
            self.plane.noted();
        }
        Ok(Round { messages: self.address(outputs), rows })
    }

    /// All result rows of the store, in the order in which windows ended.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn results(&self) -> Result<Vec<Row>, ServiceError> {
        let (topic, mut position) = (self.topics.results.partition(0), Offset(0));
        let mut rows = Vec::new();
        read_on(self.store.as_ref(), &topic, &mut position, |fetched| {
            for record in fetched {
                rows.push(serde_json::from_slice(&record.value)?);
            }
            Ok::<(), ServiceError>(())
        })?;
        Ok(rows)
    }

    /// Makes durable how far the log was read and what was summed of it.
    ///
    /// # Errors
    /// [`ServiceError`] if it cannot be written.
    pub fn checkpoint(&mut self) -> Result<(), ServiceError> {
        let mut batch = Batch::new();
        self.plane.note(&mut batch)?;
        self.store.commit(batch)?;
        self.plane.noted();
        Ok(())
    }

    /// [`Service::checkpoint`], if a restart would otherwise read more than it
    /// saves, or bury frames twice. Result rows bring their own.
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint_if_worth(&mut self) -> Result<(), ServiceError> {
        if self.plane.is_worth_noting() { self.checkpoint() } else { Ok(()) }
    }
}

/// A ledger whose commits also hold result rows.
struct WithRows<'a> {
    ledger: &'a StoreLedger,
    store: &'a dyn Store,
    batch: Batch,
}

impl WithRows<'_> {
    /// What no record is beside.
    fn commit_rest(self) -> Result<(), ServiceError> {
        if !self.batch.is_empty() {
            self.store.commit(self.batch)?;
        }
        Ok(())
    }
}

impl Ledger for WithRows<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        let mut batch = std::mem::take(&mut self.batch);
        let staged = self.ledger.stage(changes, &mut batch);
        staged.and_then(|()| self.store.commit(batch)).map(|_| ()).map_err(|error| {
            tracing::error!(%error, "the service's records could not be written");
            LedgerError
        })
    }
}
