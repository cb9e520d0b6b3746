//! The service: the windows of running plans, over a data plane. It never holds a key to data.

mod commits;
mod epochs;
mod frames;
mod pauses;
mod proof_queue;
mod proofs;
mod recipients;
#[cfg(test)]
mod tests;

pub use super::service_error::ServiceError;

use super::counters::{Counters, Watch};
use super::engine_kind::EngineKind;
use super::plane::{self, Plane, UnsupportedPlanError, open_sums};
use super::results::Row;
use super::storage::{Topics, read_on};
use alpheus_crypto::ledger::Step;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::coordinator::{
    AdderMessage, Coordinator, Output, ProofCheck, SumSet, Timing, VerifiedMessage,
};
use alpheus_encrypted_stream::error::{MessageError, PlanRefusalError};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::ledger::store::StoreLedger;
use alpheus_policy::catalog::CatalogSchema;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::Plan;
use alpheus_policy::query::Accuracy;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Store};
use epochs::{EpochWindow, Epochs};
use proof_queue::ProofQueue;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of summons in one round, when many windows have passed at once, as
/// after a restart or in a replay.
const MAX_SUMMONS: usize = 4096;
/// Messages whose signatures are checked together.
const AT_A_TIME: usize = 64;

/// The service of an embedded deployment.
pub struct Service {
    store: Arc<dyn Store>,
    topics: Topics,
    ledger: StoreLedger,
    key: Arc<SigningKey>,
    plane: Box<dyn Plane>,
    /// The schema of its streams.
    schema: Option<Arc<Schema>>,
    /// What checks proofs of bounded windows, if not this thread.
    proofs: Option<ProofQueue<ProofCheck>>,
    queries: BTreeMap<PlanId, Query>,
    /// How exact the results of a query have to be, by its name.
    asked: BTreeMap<String, Accuracy>,
    epochs: Epochs,
    /// Requests that restored coordinators repeat, once their windows' sums are back.
    pending: Vec<(PlanId, Step<Vec<Output>>)>,
    timing: Timing,
    /// Time that does not count for how long windows wait.
    uncounted: Span,
    /// No window is closed until controllers are back.
    is_paused: bool,
    /// A commit failed.
    failed: bool,
    /// Counters since the start.
    pub counters: Counters,
    /// The same, for other threads.
    pub watch: Watch,
}

/// A running plan.
struct Query {
    coordinator: Coordinator,
    place: HashMap<ControllerId, u32>,
    refusals: BTreeMap<ControllerId, PlanRefusalError>,
    /// Ended plans that each controller was informed of again, after it missed the end.
    ended: BTreeMap<ControllerId, BTreeSet<PlanId>>,
    /// The epoch that the plan is for; none if its roster is fixed.
    epoch: Option<EpochWindow>,
}

/// What the service sends and shows next.
#[derive(Default)]
pub struct ServiceOutput {
    /// Messages to controllers.
    pub messages: Vec<super::controller_host::ToController>,
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
        store.ensure_topic(&topics.receipts, 1)?;
        store.ensure_topic(&topics.refused, 1)?;
        store.ensure_space(&topics.service)?;
        let plane = plane::open(engine, &store, topics, shape)?;
        Ok(Service {
            ledger: StoreLedger::new(store.clone(), topics.service.clone()),
            store,
            topics: topics.clone(),
            key,
            plane,
            schema: None,
            proofs: None,
            queries: BTreeMap::new(),
            asked: BTreeMap::new(),
            epochs: Epochs::default(),
            pending: Vec::new(),
            timing,
            uncounted: Span(0),
            is_paused: false,
            failed: false,
            counters: Counters::default(),
            watch: Watch::default(),
        })
    }

    /// Says how exact the results of a query have to be, so that rows tell where they are not.
    pub fn expect(&mut self, name: &str, asked: Accuracy) {
        self.asked.remove(name);
        self.asked.extend(asked.is_asked().then(|| (name.to_owned(), asked)));
    }

    /// Says what its streams' schema is: verified plans need to know how sums are cut into blocks, and
    /// bounded ones what an owner may add to them.
    pub fn prove_with(&mut self, known: &CatalogSchema) {
        self.plane.prove_with(Blocks::of(&known.layout));
        self.schema = Some(Arc::new(known.schema.clone()));
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
    /// [`UnsupportedPlanError`].
    pub fn check(&self, plan: &Plan) -> Result<(), UnsupportedPlanError> {
        self.plane.check(plan)
    }

    /// Starts or resumes a plan whose participants were checked. The next
    /// [`Service::close_windows`] announces it.
    ///
    /// # Errors
    /// [`ServiceError`] if its records cannot be read.
    pub fn start(
        &mut self,
        now: Timestamp,
        announced: Arc<AnnouncedPlan>,
    ) -> Result<(), ServiceError> {
        let (now, id) = (self.counted(now), announced.id());
        self.plane.register(announced.plan())?;
        self.coordinate(now, announced, None)?;
        self.take_up(now, id);
        Ok(())
    }

    /// Takes up windows that were closed before a restart: a checkpoint holds their sums, and the
    /// plane does not close them again. Before M is fixed, nothing else is known of them.
    fn take_up(&mut self, now: Timestamp, id: PlanId) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        for report in self.plane.unfinished(&id) {
            if query.coordinator.has_ended(report.window.start) {
                self.plane.finish(&id, report.window);
            } else {
                self.pending.push((id, query.coordinator.handle_window_report(&report, now)));
            }
        }
    }

    /// Starts or resumes the coordinator of a plan.
    fn coordinate(
        &mut self,
        now: Timestamp,
        announced: Arc<AnnouncedPlan>,
        epoch: Option<EpochWindow>,
    ) -> Result<(), ServiceError> {
        let (id, plan) = (announced.id(), announced.plan());
        let place = (0..).zip(&plan.roster).map(|(place, id)| (*id, place)).collect();
        let prefix = Scope::Service(id).prefix();
        let records =
            alpheus_node::ledger::scan_all(self.store.as_ref(), &self.topics.service, &prefix)?;
        let values = records.iter().map(|(_, value)| value.as_ref());
        let checker = self.schema.as_deref().and_then(|schema| announced.checker(schema));
        let (coordinator, asked) =
            Coordinator::restore(announced, self.key.clone(), self.timing, values, now)
                .map_err(|_| ServiceError::Damaged { what: "window records" })?;
        let coordinator = match checker {
            Some(checker) if self.proofs.is_some() => {
                coordinator.with_checker(checker).with_checks_apart()
            }
            Some(checker) => coordinator.with_checker(checker),
            None => coordinator,
        };
        let mut coordinator = match self.plane.sums_for_coordinators() {
            true => coordinator.with_delegated_sums(),
            false => coordinator,
        };
        if let Some(epoch) = &epoch {
            coordinator.share_sets(self.epochs.sets_of(epoch));
        }
        self.pending.extend([(id, coordinator.announce()), (id, asked)]);
        let (refusals, ended) = (BTreeMap::new(), BTreeMap::new());
        self.queries.insert(id, Query { coordinator, place, refusals, ended, epoch });
        Ok(())
    }

    /// Ends plans: their windows in progress fail with that reason, and the returned
    /// messages inform the controllers.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn retire(&mut self, plans: &[PlanId]) -> Result<ServiceOutput, ServiceError> {
        let mut ended = plans.to_vec();
        ended.extend(self.epochs_of(plans));
        let retired = ended.iter().filter_map(|id| {
            let Query { coordinator, epoch, .. } = self.queries.get_mut(id)?;
            let by_epoch = epoch.is_some();
            Some((*id, if by_epoch { coordinator.dismiss() } else { coordinator.retire() }))
        });
        let steps = retired.collect();
        let outgoing = self.finish_with(steps, &ended)?;
        ended.iter().for_each(|id| drop(self.queries.remove(id)));
        self.drop_terms(plans)?;
        Ok(outgoing)
    }

    /// Plans that run: those with a fixed roster, and those by epochs.
    #[must_use]
    pub fn running(&self) -> Vec<PlanId> {
        self.fixed_plans().chain(self.epochs.plans()).collect()
    }

    fn fixed_plans(&self) -> impl Iterator<Item = PlanId> {
        let fixed = self.queries.iter().filter(|(_, query)| query.epoch.is_none());
        fixed.map(|(id, _)| *id)
    }

    /// Controllers that refused a plan, and why.
    pub fn refusals(
        &self,
        plan: &PlanId,
    ) -> impl Iterator<Item = (&ControllerId, &PlanRefusalError)> + use<'_> {
        self.queries.get(plan).into_iter().flat_map(|query| &query.refusals)
    }

    /// Marks the end of all input: every window until `end` has passed, which includes the
    /// longest grace.
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
        let due = |id: PlanId| self.plane.due(&id, idle).is_some();
        let closes = self.fixed_plans().any(due) || self.has_due_epochs(idle);
        let closes = !self.is_paused && closes;
        let checked = self.proofs.as_ref().is_some_and(ProofQueue::has_found);
        !self.pending.is_empty() || self.plane.has_sums() || checked || closes
    }

    /// Reads everything new from the log.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn ingest(&mut self, now: Timestamp) -> Result<(), ServiceError> {
        self.check_not_failed()?;
        self.plane.ingest(now, &mut self.counters)
    }

    /// Opens windows whose sums have arrived.
    fn open_windows(&mut self) -> Vec<(PlanId, Step<Vec<Output>>)> {
        let mut steps = Vec::new();
        for (record, sum) in self.plane.take_sums() {
            // The plan may have ended.
            let Some(query) = self.queries.get_mut(&sum.plan) else { continue };
            let (step, refused) = open_sums(&mut query.coordinator, &sum);
            if let Some(reason) = refused {
                tracing::warn!(reason, plan = %sum.plan, "refused the sums of a window");
                *self.counters.refused_messages.entry(reason.to_owned()).or_default() += 1;
                self.plane.bury(&record, reason);
            }
            steps.push((sum.plan, step));
        }
        steps
    }

    /// Closes windows that have passed, up to [`MAX_SUMMONS`] at a time;
    /// [`Service::has_due`] says whether there are more.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn close_windows(
        &mut self,
        now: Timestamp,
        idle: Timestamp,
    ) -> Result<ServiceOutput, ServiceError> {
        let mut steps = std::mem::take(&mut self.pending);
        steps.extend(self.open_windows());
        steps.extend(self.take_checked(now));
        if self.is_paused {
            return self.finish_round(steps);
        }
        let (now, mut summons) = (self.counted(now), 0);
        for id in self.fixed_plans().collect::<Vec<_>>() {
            while summons < MAX_SUMMONS
                && let Some(window) = self.plane.due(&id, idle)
                && let Some(query) = self.queries.get_mut(&id)
            {
                let Some(report) = self.plane.close(&id, window) else {
                    summons += 1;
                    continue;
                };
                if query.coordinator.has_ended(window.start) {
                    if query.coordinator.is_beyond(window.start) {
                        let none = AdderMessage::Set(SumSet::none(window));
                        self.plane.give(&id, query.coordinator.plan(), &none)?;
                    }
                    self.plane.finish(&id, window);
                    continue;
                }
                if !query.coordinator.knows(window) {
                    summons += query.place.len();
                }
                steps.push((id, query.coordinator.handle_window_report(&report, now)));
            }
        }
        let mut outgoing = self.finish_round(steps)?;
        self.close_epochs(now, idle, &mut outgoing)?;
        Ok(outgoing)
    }

    /// Takes messages of controllers. `clock` is the time of day, which `now`, for deadlines, need not
    /// be; in a replay, the watermark.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn receive(
        &mut self,
        now: Timestamp,
        clock: Timestamp,
        messages: Vec<super::controller_host::FromController>,
    ) -> Result<ServiceOutput, ServiceError> {
        let now = self.counted(now);
        let (answers, messages): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|(_, plan, _)| self.epochs.has(plan));
        let mut outgoing = self.receive_attendances(now, &answers)?;
        let verified = self.verify(&messages);
        let mut steps = Vec::with_capacity(verified.len());
        for (plan, message) in verified {
            let Some(query) = self.queries.get_mut(&plan) else { continue };
            query.coordinator.note_clock(clock);
            match message.and_then(|own| query.coordinator.handle(&own, now, &self.plane)) {
                Ok(step) => steps.push((plan, step)),
                Err(reason) => {
                    *self.counters.refused_messages.entry(reason.to_string()).or_default() += 1;
                }
            }
        }
        outgoing.add(self.finish_round(steps)?);
        Ok(outgoing)
    }

    /// Verifies messages in groups, on all processors: signatures are most of the work.
    fn verify(
        &self,
        messages: &[super::controller_host::FromController],
    ) -> Vec<(PlanId, Result<VerifiedMessage, MessageError>)> {
        let of_plan = |messages: &[super::controller_host::FromController]| {
            let plan = messages.first().map(|(_, plan, _)| *plan)?;
            let query = self.queries.get(&plan)?;
            let placed = messages.iter().filter_map(|(from, _, message)| {
                query.place.get(from).map(|place| (*place, message))
            });
            let verified = query.coordinator.verify_all(&placed.collect::<Vec<_>>());
            Some(verified.into_iter().map(move |message| (plan, message)))
        };
        let plans = |some: &[super::controller_host::FromController]| {
            some.chunk_by(|a, b| a.1 == b.1).filter_map(of_plan).flatten().collect::<Vec<_>>()
        };
        messages.par_chunks(AT_A_TIME).flat_map_iter(plans).collect()
    }

    /// Continues windows whose deadlines have passed.
    ///
    /// # Errors
    /// [`ServiceError`] if what must be durable cannot be written.
    pub fn timeout(&mut self, now: Timestamp) -> Result<ServiceOutput, ServiceError> {
        let (now, sums) = (self.counted(now), &self.plane);
        let step = |(id, query): (&PlanId, &mut Query)| (*id, query.coordinator.poll(now, sums));
        let steps = self.queries.iter_mut().map(step).collect();
        let mut outgoing = self.finish_round(steps)?;
        outgoing.add(self.time_out_calls(now)?);
        Ok(outgoing)
    }

    /// When [`Service::timeout`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let windows = self.queries.values().filter_map(|query| query.coordinator.deadline());
        let due = windows.chain(self.epochs.deadline()).min();
        due.map(|due| due.plus(self.uncounted))
    }

    /// Windows in progress.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        let windows = self.queries.values().map(|query| query.coordinator.under_way());
        windows.sum::<usize>() + self.epochs.calling()
    }

    /// All result rows of the store, in the order in which windows ended.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn results(&self) -> Result<Vec<Row>, ServiceError> {
        let topic = self.topics.results.partition(0);
        let mut position = self.store.bounds(&topic)?.start;
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

    /// Runs [`Service::checkpoint`] if a restart would otherwise read more than it saves, or
    /// store dead letters twice. Commits of result rows include their own checkpoint.
    ///
    /// # Errors
    /// [`ServiceError`] if it cannot be written.
    pub fn checkpoint_if_worth(&mut self) -> Result<(), ServiceError> {
        if self.plane.is_worth_noting() { self.checkpoint() } else { Ok(()) }
    }
}

impl ServiceOutput {
    /// What comes after it.
    fn add(&mut self, mut later: ServiceOutput) {
        self.messages.append(&mut later.messages);
        self.rows.append(&mut later.rows);
    }
}
