//! The service: policy manager and transformer. It never holds a key to data.

mod reading;

use super::results::{OK, Row};
use super::storage::{StoreLedger, Topics};
use super::watch::{Counters, Watch};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced::Announced;
use alpheus_encrypted_stream::coordinator::{Coordinator, Output, Said, Timing};
use alpheus_encrypted_stream::error::{NotTaken, PlanRefused};
use alpheus_encrypted_stream::ledger::{Change, Ledger, LedgerError, Scope, Step};
use alpheus_encrypted_stream::messages::{Retirement, ServiceMessage};
use alpheus_encrypted_stream::transformer::{PlanMismatch, Shape, Transformer};
use alpheus_policy::ids::{ControllerId, PlanId, StreamId};
use alpheus_policy::time::{Timestamp, Window};
use alpheus_transport::{Batch, Error, Limits, NewRecord, Offset, Store};
use rayon::prelude::*;
use reading::Reading;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use thiserror::Error;

/// Bounds what is under way when many windows have passed at once, as after a
/// restart or in a replay.
const MOST_SUMMONS: usize = 4096;
/// Of so many ended plans a controller is told again for one that it refuses.
const MOST_ENDED: usize = 64;
/// Messages whose signatures are checked together.
const AT_A_TIME: usize = 64;

/// The service of an embedded deployment.
pub struct Service {
    store: Arc<dyn Store>,
    topics: Topics,
    ledger: StoreLedger,
    key: Arc<SigningKey>,
    sums: Transformer,
    queries: BTreeMap<PlanId, Query>,
    reading: Reading,
    /// What restored coordinators ask again, once their windows' sums are back.
    pending: Vec<(PlanId, Step<Output>)>,
    timing: Timing,
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
        let (transformer, reading) = Reading::resume(store.as_ref(), topics, shape)?;
        Ok(Service {
            ledger: StoreLedger::new(store.clone(), topics.service.clone()),
            store,
            topics: topics.clone(),
            key,
            sums: transformer,
            queries: BTreeMap::new(),
            reading,
            pending: Vec::new(),
            timing,
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

    /// Starts a plan whose participants were checked, or takes it up again.
    /// The next [`Service::close_windows`] announces it.
    ///
    /// # Errors
    /// [`ServiceError`] if its records cannot be read.
    pub fn start(&mut self, now: Timestamp, announced: Arc<Announced>) -> Result<(), ServiceError> {
        let (id, plan) = (announced.id(), announced.plan());
        match self.sums.register(plan) {
            // A restored transformer runs it already.
            Ok(_) | Err(PlanMismatch::Running) => {}
            Err(mismatch) => return Err(mismatch.into()),
        }
        let place = (0..).zip(&plan.roster).map(|(place, id)| (*id, place)).collect();
        let prefix = Scope::Service(id).prefix();
        let records = super::storage::scan_all(self.store.as_ref(), &self.topics.service, &prefix)?;
        let values = records.iter().map(|(_, value)| value.as_ref());
        let (coordinator, asked) =
            Coordinator::restore(announced, self.key.clone(), self.timing, values, now)
                .map_err(|_| ServiceError::Damaged { what: "window records" })?;
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
        let round = self.finish_round(steps)?;
        for id in plans {
            self.queries.remove(id);
            self.sums.unregister(id);
        }
        Ok(round)
    }

    /// Lets a stream's events in, before any plan asks for them.
    pub fn admit(&mut self, stream: StreamId) {
        self.sums.admit(stream);
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
        self.sums.watermarks().seal(end);
    }

    /// Event time as far as all partitions have come.
    #[must_use]
    pub fn watermark(&self) -> Timestamp {
        self.sums.watermark()
    }

    /// Whether [`Service::close_windows`] has anything to do.
    #[must_use]
    pub fn has_due(&self, idle: Timestamp) -> bool {
        !self.pending.is_empty() || self.queries.keys().any(|id| self.due(id, idle).is_some())
    }

    /// The next window of a plan that has passed: by event time, or because it
    /// ended before `idle` and whoever holds back the watermark is not waited for.
    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window> {
        self.sums.due(plan).or_else(|| self.sums.due_by(plan, idle))
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
        let mut summons = 0;
        for id in self.running() {
            while summons < MOST_SUMMONS
                && let Some(window) = self.due(&id, idle)
                && let Some(query) = self.queries.get_mut(&id)
            {
                // The report comes once: `due` named the next window of a plan that runs.
                // Controllers know how many ticks each owner lets be missing.
                let Ok(report) = self.sums.close(&id, window, u64::MAX) else { break };
                if query.coordinator.has_ended(window.start) {
                    self.sums.finish(&id, window);
                    continue;
                }
                if !query.coordinator.knows(window) {
                    summons += query.place.len();
                }
                steps.push((id, query.coordinator.window_closed(now, &report.into())));
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
            match said.and_then(|said| query.coordinator.take(now, &said, &self.sums)) {
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
        let sums = &self.sums;
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

    /// Records and result rows in one commit, then messages.
    fn finish_round(&mut self, steps: Vec<(PlanId, Step<Output>)>) -> Result<Round, ServiceError> {
        let (mut rows, mut merged) = (Vec::new(), Step::default());
        for (id, step) in steps {
            let Some(query) = self.queries.get(&id) else { continue };
            let plan = query.coordinator.plan();
            for outcome in step.outcomes() {
                let row = Row::ended(plan, outcome);
                self.counters.window(outcome, row.status == OK);
                rows.push(row);
                self.sums.finish(&id, outcome.window);
            }
            merged.merge(step.map(|output| (id, output)));
        }
        let mut batch = Batch::new();
        for row in &rows {
            let value = serde_json::to_vec(row)?;
            let record =
                NewRecord { value: &value, timestamp: row.window_end, ..Default::default() };
            batch.append(&self.topics.results.partition(0), &record)?;
        }
        // Where nothing is under way, a window's end is the time to note how far
        // the log was read: it shares the row's flush.
        let noted = !rows.is_empty() && self.under_way() == 0 && self.is_worth_noting();
        if noted {
            self.note(&mut batch)?;
        }
        self.counters.under_way = self.under_way();
        self.counters.watermark = Some(self.watermark());
        self.watch.show(&self.counters);
        let outputs =
            merged.commit(&mut WithRows { ledger: &self.ledger, store: &*self.store, batch })?;
        if noted {
            self.reading.noted();
        }
        Ok(Round { messages: self.address(outputs), rows })
    }

    /// Names the receivers of what coordinators give out.
    fn address(&mut self, outputs: Vec<(PlanId, Output)>) -> Vec<super::hosts::ToController> {
        let mut messages = Vec::new();
        for (id, output) in outputs {
            if let Output::Answered { controller, answer: Err(PlanRefused::Locked { plan, .. }) } =
                &output
            {
                messages.extend(self.unlock(id, *controller, *plan));
            }
            let Some(query) = self.queries.get_mut(&id) else { continue };
            let roster = &query.coordinator.plan().roster;
            match output {
                Output::Send { to, message } => {
                    messages.extend(
                        roster.get(to as usize).map(|controller| (*controller, id, message)),
                    );
                }
                Output::Broadcast(message) => {
                    messages
                        .extend(roster.iter().map(|controller| (*controller, id, message.clone())));
                }
                Output::Answered { controller, answer: Err(refused) } => {
                    query.refusals.extend(roster.get(controller as usize).map(|id| (*id, refused)));
                }
                Output::Answered { controller, answer: Ok(()) } => {
                    roster.get(controller as usize).map(|id| query.refusals.remove(id));
                }
                Output::Outcome(_) => {}
            }
        }
        messages
    }

    /// A controller gives a stream to a plan that does not run any more: it has
    /// missed the end, or was restored from before it. It is told of that, and
    /// asked again.
    fn unlock(
        &mut self,
        asked: PlanId,
        controller: u32,
        locking: PlanId,
    ) -> Vec<super::hosts::ToController> {
        if self.queries.contains_key(&locking) {
            return Vec::new();
        }
        let Some(query) = self.queries.get_mut(&asked) else { return Vec::new() };
        let Some(id) = query.coordinator.plan().roster.get(controller as usize).copied() else {
            return Vec::new();
        };
        let told = query.ended.entry(id).or_default();
        if told.len() >= MOST_ENDED || !told.insert(locking) {
            return Vec::new();
        }
        let retirement = Signed::new(&Retirement { plan: locking }, &self.key);
        let announcement = query.coordinator.announcement();
        vec![
            (id, locking, ServiceMessage::Retirement(retirement)),
            (id, asked, ServiceMessage::Announcement(announcement)),
        ]
    }

    /// All result rows of the store, in the order in which windows ended.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn results(&self) -> Result<Vec<Row>, ServiceError> {
        let (topic, mut position, mut rows) =
            (self.topics.results.partition(0), Offset(0), Vec::new());
        loop {
            let fetched = self.store.read(&topic, position, Limits::default())?;
            let next = fetched.next_offset();
            if next == position {
                return Ok(rows);
            }
            for record in fetched {
                rows.push(serde_json::from_slice(&record.value)?);
            }
            position = next;
        }
    }
}

/// A ledger whose commits also hold result rows.
struct WithRows<'a> {
    ledger: &'a StoreLedger,
    store: &'a dyn Store,
    batch: Batch,
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
