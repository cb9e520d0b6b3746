//! The service's side of a deployment: streams, controllers, running queries, and the
//! plans that a restart must resume.

use super::ended_plans;
use super::error::RuntimeError;
use super::plane::UnsupportedPlanError;
use super::query_planner::{QueryContext, plan_query};
use super::service::{Service, ServiceOutput};
use super::storage::{KEPT, PLANS, TERMS};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed};
use alpheus_encrypted_stream::annotation::ControllerChange;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, consumer_id, fingerprint};
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::ledger::scan_all;
use alpheus_policy::catalog::{Catalog, CatalogStream, RunningQuery, StartError};
use alpheus_policy::ids::{ConsumerId, ControllerId, PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::{PlannedQuery, PlanningError};
use alpheus_policy::query::{Create, MaskChoice, Statement, Word, parse};
use alpheus_policy::schema::Schema;
use alpheus_standards::evidence::EndedPlans;
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Offset};
use rand_core::CryptoRng;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use thiserror::Error;

const QUERIES: &[u8] = b"query/";
const ASKERS: &[u8] = b"asker/";
const BEGUN: &[u8] = b"begun/";

/// Why a query is not started.
#[derive(Debug, Error)]
pub enum QueryError {
    /// Policies forbid it.
    #[error("policies forbid it")]
    Refused(Box<PlanningError>),
    /// Its name or its data is in use.
    #[error(transparent)]
    Conflict(#[from] StartError),
    /// The engine cannot sum it.
    #[error(transparent)]
    UnsupportedPlanError(#[from] UnsupportedPlanError),
    /// Its consumer has as many as one may have.
    #[error(transparent)]
    TooMany(#[from] TooManyQueriesError),
    /// The runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// How many queries of one consumer may run at a time, unless a setting says otherwise.
pub const QUERIES_PER_CONSUMER: u32 = 100;

/// A consumer has as many running queries as one may have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "you have {running} running queries, and one consumer may have {most} at a time; stop one, for example with `DROP STREAM {}`, or ask the operator for a larger `queries-per-consumer`",
    Word::new(.one)
)]
pub struct TooManyQueriesError {
    /// How many run.
    pub running: usize,
    /// How many may.
    pub most: u32,
    /// The name of one of them.
    pub one: String,
}

impl From<PlanningError> for QueryError {
    fn from(refusal: PlanningError) -> Self {
        QueryError::Refused(Box::new(refusal))
    }
}

/// Policy manager and transformer of one schema's streams. It never holds a key
/// to data.
pub struct Manager {
    /// Sums and windows.
    pub service: Service,
    /// Streams, controllers and running queries.
    pub catalog: Catalog,
    deployment: Deployment,
    key: Arc<SigningKey>,
    certificates: HashMap<ControllerId, Signed<Certificate>>,
    /// Consumers that results may be sealed to.
    consumers: HashMap<ConsumerId, Signed<Certificate>>,
    /// The first consumer to use each name, who owns its results.
    owners: HashMap<String, String>,
    /// For each name, its last statement, and where its rows begin in the log.
    begun: HashMap<String, (String, u64)>,
    /// How many queries of one consumer may run at a time.
    queries_per_consumer: u32,
    /// Plans that have ended and are kept.
    pub ended: EndedPlans,
}

impl Manager {
    /// A manager without streams. `key` is the service's key in the deployment.
    ///
    /// # Errors
    /// [`RuntimeError`] if the schema has no layout.
    pub fn new(
        mut service: Service,
        schema: &Schema,
        deployment: Deployment,
        key: Arc<SigningKey>,
    ) -> Result<Manager, RuntimeError> {
        let mut catalog = Catalog::default();
        catalog.add_schema(schema.clone())?;
        if let Some(known) = catalog.schema(&schema.name) {
            service.prove_with(known);
        }
        let (certificates, consumers, owners, begun, ended) = Default::default();
        let queries_per_consumer = QUERIES_PER_CONSUMER;
        Ok(Manager {
            service,
            catalog,
            deployment,
            key,
            certificates,
            consumers,
            owners,
            begun,
            queries_per_consumer,
            ended,
        })
    }

    /// How many queries of one consumer may run at a time. Running ones continue.
    pub fn limit_queries(&mut self, per_consumer: u32) {
        self.queries_per_consumer = per_consumer;
    }

    /// Checks that one more query of a consumer may run.
    fn check_quota(&self, consumer: &str) -> Result<(), TooManyQueriesError> {
        let names = self.catalog.queries().map(|query| &query.name);
        let theirs: Vec<&String> =
            names.filter(|name| self.owner_of(name) == Some(consumer)).collect();
        let (running, most) = (theirs.len(), self.queries_per_consumer);
        if running < most as usize {
            return Ok(());
        }
        let one = theirs.first().map_or_else(String::new, |name| (*name).clone());
        Err(TooManyQueriesError { running, most, one })
    }

    /// Registers a controller, so that plans can name it.
    ///
    /// # Errors
    /// [`RuntimeError`] if the deployment's authority has not signed its certificate.
    pub fn register_controller(
        &mut self,
        certificate: &Signed<Certificate>,
    ) -> Result<ControllerId, RuntimeError> {
        let id = fingerprint(&self.deployment.controller(certificate)?);
        self.certificates.insert(id, certificate.clone());
        self.service.know(id, certificate);
        Ok(id)
    }

    /// Registers a stream as its owner placed it, or a new choice. By epochs it may take part from
    /// the next one on, and if its owner has `moved` it, at the controller of each window. A fixed roster
    /// keeps the controllers that it began with.
    pub fn put_stream(&mut self, known: CatalogStream, moved: Option<ControllerChange>) {
        self.service.place(&known, moved);
        self.catalog.put_stream(known);
    }

    /// Registers a consumer, so that results can be sealed to it.
    ///
    /// # Errors
    /// [`CertificateError`] if the deployment's authority has not signed its
    /// certificate, or under another name.
    pub fn register_consumer(
        &mut self,
        name: &str,
        certificate: &Signed<Certificate>,
    ) -> Result<ConsumerId, CertificateError> {
        let opened = self.deployment.consumer(certificate)?;
        if opened.party.name != name {
            return Err(CertificateError::OtherName);
        }
        let id = consumer_id(&opened);
        self.consumers.insert(id, certificate.clone());
        Ok(id)
    }

    /// A plan as it was announced, with all certificates. A consumer needs it to read the
    /// plan's sealed rows, even after the plan has ended.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn announcement(
        &self,
        plan: &PlanId,
    ) -> Result<Option<Signed<Announcement>>, RuntimeError> {
        let (store, space) = (self.service.store(), &self.service.topics().service);
        let found = ended_plans::announcement(store.as_ref(), space, *plan)?;
        let read = |bytes: &[u8]| postcard::from_bytes(bytes);
        found.map(|bytes| read(&bytes)).transpose().map_err(|_| RuntimeError::DamagedPlans)
    }

    /// Starts plans and stores them, so that a restart resumes them. The returned messages
    /// announce them. `masks` is how lists share them, if the query says so.
    ///
    /// # Errors
    /// [`RuntimeError`]; a controller's refusal is no error, see [`Service::refusals`].
    pub fn start(
        &mut self,
        now: Timestamp,
        plans: &[Plan],
        masks: Option<MaskChoice>,
    ) -> Result<ServiceOutput, RuntimeError> {
        self.start_with(now, (plans, masks), Batch::new())
    }

    /// The same, with a batch in the same commit.
    fn start_with(
        &mut self,
        now: Timestamp,
        (plans, masks): (&[Plan], Option<MaskChoice>),
        mut batch: Batch,
    ) -> Result<ServiceOutput, RuntimeError> {
        let mut announced = Vec::with_capacity(plans.len());
        let (by_epochs, fixed): (Vec<&Plan>, Vec<&Plan>) =
            plans.iter().partition(|plan| plan.is_terms());
        for plan in &by_epochs {
            let key = [TERMS, &plan.id().0].concat();
            let bytes = postcard::to_allocvec(&(plan, masks));
            let bytes = bytes.map_err(|_| RuntimeError::DamagedPlans)?;
            batch.put(&self.service.topics().service, key, bytes)?;
        }
        for plan in fixed {
            let certificates =
                plan.roster.iter().filter_map(|id| self.certificates.get(id).cloned());
            let consumer = plan.sealed_to.and_then(|id| self.consumers.get(&id).cloned());
            let certificates = certificates.collect();
            let announcement = Announcement { plan: plan.clone(), certificates, consumer };
            let signed = Signed::new(&announcement, &self.key);
            let key = [PLANS, &plan.id().0].concat();
            let bytes = postcard::to_allocvec(&signed).map_err(|_| RuntimeError::DamagedPlans)?;
            batch.put(&self.service.topics().service, key, bytes)?;
            announced.push(Arc::new(AnnouncedPlan::open(&signed, &self.deployment)?));
        }
        self.service.store().commit(batch)?;
        for announced in announced {
            self.service.start(now, announced)?;
        }
        by_epochs.into_iter().try_for_each(|terms| self.start_terms(now, terms, masks))?;
        Ok(self.service.close_windows(now, Timestamp(0))?)
    }

    fn start_terms(
        &mut self,
        now: Timestamp,
        terms: &Plan,
        masks: Option<MaskChoice>,
    ) -> Result<(), RuntimeError> {
        let streams = self.catalog.streams_of(terms);
        Ok(self.service.start_terms(now, (terms, masks), &self.deployment, streams)?)
    }

    /// Plans a query and starts it under its name, durably.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn ask(
        &mut self,
        create: &Create,
        context: QueryContext<'_>,
        rng: &mut impl CryptoRng,
    ) -> Result<(PlannedQuery, ServiceOutput), QueryError> {
        self.check_quota(context.consumer)?;
        let planned = plan_query(create, &self.catalog, context, rng)?;
        if self.owners.get(&planned.name).is_some_and(|owner| owner != context.consumer) {
            return Err(StartError::NameTaken(planned.name).into());
        }
        let plans = planned.to_run();
        plans.iter().try_for_each(|plan| self.service.check(plan))?;
        let (name, sql) = (planned.name.clone(), planned.sql.clone());
        let query = RunningQuery { name: name.clone(), sql, plans: plans.clone() };
        let bytes = postcard::to_allocvec(&query).map_err(|_| RuntimeError::DamagedPlans)?;
        self.catalog.start(query)?;
        let mut batch = Batch::new();
        let key = [QUERIES, name.as_bytes()].concat();
        let space = &self.service.topics().service;
        batch.put(space, key, bytes).map_err(RuntimeError::from)?;
        let asker = [ASKERS, name.as_bytes()].concat();
        batch
            .put(space, asker, context.consumer.as_bytes().to_vec())
            .map_err(RuntimeError::from)?;
        let begun = self.begin(&name, create.to_string(), &mut batch)?;
        // The query and its plans are stored together or not at all.
        let started = self.start_with(context.now, (&plans, planned.masks), batch);
        let outgoing = started.inspect_err(|_| drop(self.catalog.stop(&name)))?;
        self.begun.insert(name.clone(), begun);
        self.service.expect(&name, create.settings.accuracy);
        self.owners.insert(name, context.consumer.to_owned());
        Ok((planned, outgoing))
    }

    /// The consumer who owns a query's name, now or before.
    #[must_use]
    pub fn owner_of(&self, name: &str) -> Option<&str> {
        self.owners.get(name).map(String::as_str)
    }

    /// Where the rows of a name's last statement begin. Those of another one before it had other columns,
    /// windows or streams under the same name.
    #[must_use]
    pub fn rows_of(&self, name: &str) -> Offset {
        Offset(self.begun.get(name).map_or(0, |(_, rows)| *rows))
    }

    /// Notes, in a batch, where the rows of a query begin. The same statement continues with its rows.
    fn begin(
        &self,
        name: &str,
        statement: String,
        batch: &mut Batch,
    ) -> Result<(String, u64), RuntimeError> {
        let (store, topics) = (self.service.store(), self.service.topics());
        let rows = match self.begun.get(name) {
            Some((last, rows)) if *last == statement => *rows,
            Some(_) => store.bounds(&topics.results.partition(0))?.end.0,
            None => 0,
        };
        let begun = (statement, rows);
        let bytes = postcard::to_allocvec(&begun).map_err(|_| RuntimeError::DamagedPlans)?;
        batch.put(&topics.service, [BEGUN, name.as_bytes()].concat(), bytes)?;
        Ok(begun)
    }

    /// Forgets a stream whose owner has withdrawn: no later plan uses it.
    pub fn forget(&mut self, stream: &StreamId) {
        self.service.displace(stream);
        self.catalog.remove_stream(stream);
    }

    /// The names of a consumer's queries, now or before.
    #[must_use]
    pub fn names_of(&self, consumer: &str) -> BTreeSet<String> {
        let theirs = self.owners.iter().filter(|(_, owner)| *owner == consumer);
        theirs.map(|(name, _)| name.clone()).collect()
    }

    /// Deletes plans that have ended and whose rows and receipts are gone.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn forget_ended(&mut self) -> Result<(), RuntimeError> {
        ended_plans::forget(&mut self.ended, (self.service.store().as_ref(), self.service.topics()))
    }

    /// How many controllers plans can name.
    #[must_use]
    pub fn controllers(&self) -> usize {
        self.certificates.len()
    }

    /// Signs a message as the service.
    #[must_use]
    pub fn sign<T: Message>(&self, message: &T) -> Signed<T> {
        Signed::new(message, &self.key)
    }

    /// Ends a query; none if there is none of this name. The returned messages inform the
    /// controllers, which then unlock the query's streams.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn drop_query(
        &mut self,
        now: Timestamp,
        name: &str,
    ) -> Result<Option<ServiceOutput>, RuntimeError> {
        let Some(query) = self.catalog.stop(name) else { return Ok(None) };
        let space = self.service.topics().service.clone();
        let plans: Vec<PlanId> = query.plans.iter().map(Plan::id).collect();
        let outgoing = self.service.retire(&plans)?;
        let (_, until) = ended_plans::logs(self.service.store().as_ref(), self.service.topics())?;
        let mut batch = Batch::new();
        batch.delete(&space, [QUERIES, name.as_bytes()].concat())?;
        for plan in &query.plans {
            let (id, key) = (plan.id(), [PLANS, &plan.id().0].concat());
            // A reader of its rows needs it later, or who asks what they cost.
            let reads = plan.sealed_to.is_some() || plan.integrity.is_verified();
            let needed = reads || plan.privacy.is_some();
            let kept = self.service.store().get(&space, &key)?.filter(|_| needed);
            if let Some(kept) = kept {
                batch.put(&space, [KEPT, &id.0].concat(), kept.to_vec())?;
                ended_plans::note(&mut self.ended, (&mut batch, &space), plan, (now, until))?;
            }
            batch.delete(&space, key)?;
            batch.delete(&space, [TERMS, &id.0].concat())?;
        }
        self.service.store().commit(batch)?;
        Ok(Some(outgoing))
    }

    /// Ends the queries whose results are sealed to a consumer with one of these certificates.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn drop_queries_for(
        &mut self,
        now: Timestamp,
        revoked: &BTreeSet<Digest>,
    ) -> Result<Vec<ServiceOutput>, RuntimeError> {
        let is_for = |plan: &Plan| plan.sealed_to.is_some_and(|id| revoked.contains(&Digest(id.0)));
        let queries = self.catalog.queries();
        let for_them = queries.filter(|query| query.plans.iter().any(is_for));
        let names: Vec<String> = for_them.map(|query| query.name.clone()).collect();
        let mut all = Vec::new();
        for name in names {
            tracing::warn!(name, "the certificate of the query's consumer is revoked: it ends");
            all.extend(self.drop_query(now, &name)?);
        }
        Ok(all)
    }

    /// Resumes what ran when the process ended.
    ///
    /// # Errors
    /// [`RuntimeError`] if the stored plans cannot be read.
    pub fn resume(&mut self, now: Timestamp) -> Result<(), RuntimeError> {
        let (store, space) = (self.service.store().clone(), self.service.topics().service.clone());
        for (key, value) in scan_all(store.as_ref(), &space, ASKERS)? {
            let name = String::from_utf8_lossy(key.get(ASKERS.len()..).unwrap_or_default());
            self.owners.insert(name.into_owned(), String::from_utf8_lossy(&value).into_owned());
        }
        for (key, value) in scan_all(store.as_ref(), &space, BEGUN)? {
            let name = String::from_utf8_lossy(key.get(BEGUN.len()..).unwrap_or_default());
            let begun = postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            self.begun.insert(name.into_owned(), begun);
        }
        for (_, value) in scan_all(store.as_ref(), &space, QUERIES)? {
            let query: RunningQuery =
                postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            if let Ok(Statement::Create(create)) = parse(&query.sql) {
                self.service.expect(&query.name, create.settings.accuracy);
            }
            self.catalog.start(query).map_err(|_| RuntimeError::DamagedPlans)?;
        }
        for (_, value) in scan_all(store.as_ref(), &space, PLANS)? {
            let signed: Signed<Announcement> =
                postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            let announced = Arc::new(AnnouncedPlan::open(&signed, &self.deployment)?);
            self.service.start(now, announced)?;
        }
        for (_, value) in scan_all(store.as_ref(), &space, TERMS)? {
            let (terms, masks): (Plan, Option<MaskChoice>) =
                postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            self.start_terms(now, &terms, masks)?;
        }
        let topics = self.service.topics();
        self.ended = ended_plans::load(store.as_ref(), topics, &self.deployment, now)?;
        self.service.resumed();
        Ok(())
    }
}
