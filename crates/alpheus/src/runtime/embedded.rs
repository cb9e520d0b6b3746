//! An embedded deployment: owners' devices, controllers and service in one
//! process, each with its own keys and its own part of the state folder.

use super::devices::Device;
use super::fence::{FenceError, FenceFile};
use super::hosts::{ControllerHost, HostError};
use super::keys::{RootError, RootSecret};
use super::results::Row;
use super::service::{Round, Service, ServiceError};
use super::storage::{StoreLedger, Topics, reached, scan_all};
use crate::service::metrics::Metrics;
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, owner_id};
use alpheus_encrypted_stream::announced::Announced;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, Role};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords, Identity};
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::encode::{Encoder, LayoutMismatch};
use alpheus_encrypted_stream::error::{
    AnnotationRefused, BadCertificate, PlanRefused, RestoreError,
};
use alpheus_encrypted_stream::ledger::{Scope, Step};
use alpheus_encrypted_stream::messages::{Announcement, ControllerMessage};
use alpheus_encrypted_stream::producer::{Producer, SetupError};
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_policy::catalog::{Catalog, CatalogStream};
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::{Layout, LayoutError};
use alpheus_policy::plan::Plan;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Span, Timestamp};
use alpheus_transport::{Batch, Store, local};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use thiserror::Error;

const PARTITIONS: u32 = 4;
const PLANS: &[u8] = b"announcement/";

/// Someone whose stream takes part.
#[derive(Clone)]
pub struct Member {
    /// Tells the stream apart.
    pub key: String,
    /// Tells the owner apart.
    pub owner: String,
    /// Public facts about the stream.
    pub metadata: BTreeMap<String, String>,
}

/// How many privacy controllers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// One for each owner.
    PerOwner,
    /// This many, owners dealt out in turn.
    Count(u32),
}

/// How time passes for the service's deadlines.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// By the wall clock: who has not answered in time is left out, and a window
    /// that ended `idle` ago closes without those who hold back the watermark.
    Live {
        /// How long a window waits in each step.
        timing: Timing,
        /// How long after its end it waits for events.
        idle: Span,
    },
    /// As fast as the machine gets on: a deadline passes once everybody has said
    /// all there is to say, so that a slow machine leaves nobody out.
    Recorded,
}

impl Pace {
    /// Within one process no message is lost: nobody need be asked again.
    const RECORDED: Timing = Timing {
        presence: Span::seconds(1),
        tokens: Span::seconds(1),
        openings: Span::seconds(1),
        retry: Span::seconds(60),
    };

    fn timing(self) -> Timing {
        match self {
            Pace::Live { timing, .. } => timing,
            Pace::Recorded => Pace::RECORDED,
        }
    }
}

/// Why the runtime stops.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// The service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The controllers' host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The fence.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// The root secret.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A controller's ledger.
    #[error("a controller cannot be restored from its ledger: {0}")]
    Restore(#[from] RestoreError),
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] BadCertificate),
    /// An annotation.
    #[error("a controller refused its owner's annotation: {0}")]
    Annotation(#[from] AnnotationRefused),
    /// A plan.
    #[error("the plan does not check out: {0}")]
    Plan(#[from] PlanRefused),
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The encoder.
    #[error(transparent)]
    Encoder(#[from] LayoutMismatch),
    /// A producer.
    #[error(transparent)]
    Producer(#[from] SetupError),
    /// Stored plans.
    #[error(
        "the stored plans cannot be read; restore the state folder from a backup, or start with a fresh --state"
    )]
    DamagedPlans,
}

/// Where a deployment keeps what must outlive it.
pub struct Stores {
    /// The service's: encrypted events, results, windows under way.
    pub service: Arc<dyn Store>,
    /// The owners' and controllers': keys and ledgers.
    pub private: Arc<dyn Store>,
    /// How far the ledgers had come: a file that backups of them leave out.
    pub fence: PathBuf,
}

/// An embedded deployment.
pub struct Embedded {
    /// Policy manager and transformer.
    pub service: Service,
    /// Privacy controllers.
    pub host: ControllerHost,
    /// Devices, in the order of the members.
    pub devices: Vec<Device>,
    /// Turns values into words.
    pub encoder: Encoder,
    /// Who is there and what runs.
    pub catalog: Catalog,
    /// The service's store.
    pub store: Arc<dyn Store>,
    /// Names in it.
    pub topics: Topics,
    /// Each member's controller, in the order of the members.
    pub controller_of: Vec<ControllerId>,
    /// Each member's stream, in the order of the members.
    pub streams: Vec<StreamId>,
    pub(super) private: Arc<dyn Store>,
    pub(super) root: RootSecret,
    pace: Pace,
    /// When the last deadline passed, if time passes by [`Pace::Recorded`].
    passed: Timestamp,
    schema: Arc<Schema>,
    deployment: Deployment,
    service_key: Arc<SigningKey>,
    certificates: HashMap<ControllerId, Signed<Certificate>>,
}

/// A controller that is to be made or restored.
struct Seat {
    identity: Identity,
    streams: Vec<(HeldStream, Signed<Annotation>, SigningKey)>,
}

impl Embedded {
    /// Opens the deployment in a folder, as it was left, or makes it.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub fn open(
        folder: &Path,
        schema: &Schema,
        members: &[Member],
        policies: &Policies,
        controllers: Controllers,
        pace: Pace,
        rng: &mut impl CryptoRng,
    ) -> Result<Embedded, RuntimeError> {
        let stores = Stores {
            service: local::open(&folder.join("service"), &local::Options::default())?,
            private: local::open(&folder.join("private"), &local::Options::default())?,
            fence: folder.join("fence"),
        };
        Embedded::on(stores, schema, members, policies, controllers, pace, rng)
    }

    /// Opens the deployment on stores, as it was left, or makes it.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub fn on(
        stores: Stores,
        schema: &Schema,
        members: &[Member],
        policies: &Policies,
        controllers: Controllers,
        pace: Pace,
        rng: &mut impl CryptoRng,
    ) -> Result<Embedded, RuntimeError> {
        let topics = Topics::new(PARTITIONS)?;
        let Stores { service: store, private, fence } = stores;
        for space in [&topics.keys, &topics.ledger] {
            private.ensure_space(space)?;
        }
        store.ensure_space(&topics.progress)?;
        let (root, _) = RootSecret::load(private.as_ref(), &topics.keys, rng)?;
        let (schema, layout) = (Arc::new(schema.clone()), Arc::new(Layout::of(schema)?));
        let (deployment, service_key) = deployment(&root)?;
        let fence = FenceFile::load(&fence)?;
        let ledger = StoreLedger::new(private.clone(), topics.ledger.clone());
        let shape = Shape::of(&schema, &layout, Span::seconds(60));
        let mut embedded = Embedded {
            service: Service::open(
                store.clone(),
                &topics,
                service_key.clone(),
                shape,
                pace.timing(),
            )?,
            host: ControllerHost::new(&deployment, ledger, fence),
            devices: Vec::with_capacity(members.len()),
            encoder: Encoder::new(&schema, &layout)?,
            catalog: Catalog::default(),
            controller_of: Vec::with_capacity(members.len()),
            streams: Vec::with_capacity(members.len()),
            private: private.clone(),
            certificates: HashMap::new(),
            store,
            topics,
            root,
            pace,
            passed: Timestamp(0),
            schema,
            deployment,
            service_key,
        };
        embedded.catalog.add_schema((*embedded.schema).clone())?;
        embedded.seat(members, policies, controllers, &layout, private.as_ref())?;
        embedded.resume_plans()?;
        Ok(embedded)
    }

    /// Makes or restores devices and controllers.
    fn seat(
        &mut self,
        members: &[Member],
        policies: &Policies,
        controllers: Controllers,
        layout: &Arc<Layout>,
        private: &dyn Store,
    ) -> Result<(), RuntimeError> {
        let mut seats: BTreeMap<String, Seat> = BTreeMap::new();
        let mut names: HashMap<&str, String> = HashMap::new();
        for member in members {
            let next = names.len();
            let name = names.entry(&member.owner).or_insert_with(|| match controllers {
                Controllers::PerOwner => {
                    format!("controller of {}", self.root.stream(&member.owner))
                }
                Controllers::Count(count) => format!("controller {}", next % count.max(1) as usize),
            });
            let seat = match seats.entry(name.clone()) {
                std::collections::btree_map::Entry::Occupied(seat) => seat.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => place.insert(seat_of(
                    name,
                    &self.root,
                    &self.deployment,
                    &mut self.certificates,
                )?),
            };
            self.controller_of.push(seat.identity.id());
            self.add_member(member, policies, layout, seat)?;
        }
        let host = scan_all(private, &self.topics.ledger, &Scope::Host.prefix())?;
        let host =
            HostRecords::read(host.iter().map(|(_, value)| value.as_ref()), &self.deployment)?;
        let mut made = Vec::with_capacity(seats.len());
        for seat in seats.into_values() {
            made.push(self.controller(seat, &host, private)?);
        }
        self.host.take(made)?;
        Ok(())
    }

    /// A member's device, catalogue entry and stream at its controller.
    fn add_member(
        &mut self,
        member: &Member,
        policies: &Policies,
        layout: &Arc<Layout>,
        seat: &mut Seat,
    ) -> Result<(), RuntimeError> {
        let (stream, owner_key) = (self.root.stream(&member.key), self.root.owner(&member.owner));
        self.streams.push(stream);
        self.service.admit(stream);
        let owner = owner_id(&owner_key.verifying_key());
        let policy = policies.of_owner(&member.owner).clone();
        let metadata: Vec<(String, String)> = member.metadata.clone().into_iter().collect();
        let producer =
            Producer::for_schema(&self.root.master(&member.key), stream, &self.schema, layout)?;
        self.devices.push(Device::new(producer.with_longest_silence(u64::MAX), &self.topics));
        let annotation = Annotation {
            stream,
            owner,
            schema: self.schema.id(),
            version: 1,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: metadata.clone(),
            policy: policy.clone(),
        };
        let signed = Signed::new(&annotation, &owner_key);
        let (schema, controller) = (self.schema.id(), seat.identity.id());
        self.catalog.put_stream(CatalogStream {
            stream,
            owner,
            controller,
            schema,
            metadata,
            policy,
        });
        let (schema, layout, master) =
            (self.schema.clone(), layout.clone(), self.root.master(&member.key));
        seat.streams.push((
            HeldStream { stream, owner, schema, layout, master },
            signed,
            owner_key,
        ));
        Ok(())
    }

    /// Keys and ledger are created together; keys whose ledger is there are restored.
    fn controller(
        &self,
        seat: Seat,
        host: &HostRecords,
        private: &dyn Store,
    ) -> Result<(Controller, Step<ControllerMessage>), RuntimeError> {
        let id = seat.identity.id();
        let records = scan_all(private, &self.topics.ledger, &Scope::Controller(id).prefix())?;
        let deployment = self.deployment.clone();
        let fence = self.host.fence_of(&id);
        // What the fence has seen has a ledger, or has lost it.
        if !records.is_empty() || fence.is_some() {
            let streams = seat.streams.into_iter().map(|(stream, ..)| stream).collect();
            let values = records.iter().map(|(_, value)| value.as_ref());
            let clock = self.started()?;
            return Ok(Controller::restore(
                seat.identity,
                deployment,
                streams,
                host,
                values,
                clock,
                fence,
            )?);
        }
        let now = Timestamp(0);
        let (mut controller, mut step) = Controller::create(seat.identity, deployment, now);
        for (stream, annotation, owner) in seat.streams {
            controller.hold(stream);
            step.merge(controller.annotate(now, &owner.verifying_key(), &annotation)?);
        }
        Ok((controller, step))
    }

    /// Shows what the deployment counts among the process's metrics.
    pub fn watch(&self, metrics: &Metrics) {
        metrics.watch_store(&self.store);
        self.service.watch.register(metrics);
    }

    /// Starts plans and keeps them, so that a restart takes them up again.
    ///
    /// # Errors
    /// [`RuntimeError`]; a controller's refusal is no error, see [`Service::refusals`].
    pub fn start(&mut self, plans: &[Plan]) -> Result<(), RuntimeError> {
        let mut batch = Batch::new();
        let mut announced = Vec::with_capacity(plans.len());
        for plan in plans {
            let certificates =
                plan.roster.iter().filter_map(|id| self.certificates.get(id).cloned());
            let announcement =
                Announcement { plan: plan.clone(), certificates: certificates.collect() };
            let signed = Signed::new(&announcement, &self.service_key);
            let key = [PLANS, &plan.id().0].concat();
            let bytes = postcard::to_allocvec(&signed).map_err(|_| RuntimeError::DamagedPlans)?;
            batch.put(&self.topics.service, key, bytes)?;
            announced.push(Arc::new(Announced::open(&signed, &self.deployment)?));
        }
        self.store.commit(batch)?;
        for announced in announced {
            self.service.start(self.now(), announced)?;
        }
        let round = self.service.close_windows(self.now(), Timestamp(0))?;
        self.exchange(Timestamp(0), round).map(|_| ())
    }

    fn resume_plans(&mut self) -> Result<(), RuntimeError> {
        for (_, value) in scan_all(self.store.as_ref(), &self.topics.service, PLANS)? {
            let signed: Signed<Announcement> =
                postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            let announced = Arc::new(Announced::open(&signed, &self.deployment)?);
            self.service.start(self.now(), announced)?;
        }
        Ok(())
    }

    /// Plans that run.
    #[must_use]
    pub fn running(&self) -> Vec<alpheus_policy::ids::PlanId> {
        self.service.running()
    }

    /// Takes up what is new in the log, closes windows, and exchanges messages
    /// until nobody has anything to say. `clock` is the controllers' clock.
    ///
    /// # Errors
    /// [`RuntimeError`]; the stores hold all that was said before.
    pub fn pump(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        self.service.ingest(clock)?;
        let idle = match self.pace {
            Pace::Live { idle, .. } => Timestamp(clock.0.saturating_sub(idle.0)),
            Pace::Recorded => Timestamp(0),
        };
        // What a restart must ask again is asked before any deadline passes.
        let mut rows = Vec::new();
        loop {
            let round = self.service.close_windows(self.now(), idle)?;
            rows.extend(self.exchange(clock, round)?);
            rows.extend(self.pass_deadlines(clock)?);
            if !self.service.has_due(idle) {
                break;
            }
        }
        if self.service.under_way() == 0 {
            self.service.checkpoint()?;
        }
        Ok(rows)
    }

    fn exchange(&mut self, clock: Timestamp, mut round: Round) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = std::mem::take(&mut round.rows);
        while !round.messages.is_empty() {
            let answers = self.host.handle(clock, round.messages)?;
            round = self.service.receive(self.now(), answers)?;
            rows.append(&mut round.rows);
        }
        Ok(rows)
    }

    /// [`Embedded::pump`], and goes on until no window is under way: where a
    /// controller does not answer, that takes as long as [`Timing`] waits for it.
    ///
    /// # Errors
    /// [`RuntimeError`]; the stores hold all that was said before.
    pub fn settle(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = self.pump(clock)?;
        while let Some(deadline) = self.service.deadline() {
            let wait = deadline.0.saturating_sub(self.now().0);
            std::thread::sleep(Duration::from_micros(wait));
            rows.extend(self.pump(clock)?);
        }
        Ok(rows)
    }

    /// The controllers' clock at the start. In a replay time stands still while
    /// nothing is fed.
    fn started(&self) -> Result<Timestamp, RuntimeError> {
        match self.pace {
            Pace::Live { .. } => Ok(wall_clock()),
            Pace::Recorded => {
                Ok(reached(self.store.as_ref(), &self.topics)?.unwrap_or(Timestamp(0)))
            }
        }
    }

    /// The service's clock, for deadlines only.
    fn now(&self) -> Timestamp {
        match self.pace {
            Pace::Live { .. } => wall_clock(),
            Pace::Recorded => self.passed,
        }
    }

    /// Goes on where deadlines have passed.
    fn pass_deadlines(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = Vec::new();
        while let Some(deadline) = self.service.deadline() {
            if matches!(self.pace, Pace::Recorded) {
                self.passed = self.passed.max(deadline);
            }
            if deadline > self.now() {
                break;
            }
            let round = self.service.timeout(self.now())?;
            rows.extend(self.exchange(clock, round)?);
        }
        Ok(rows)
    }
}

fn deployment(root: &RootSecret) -> Result<(Deployment, Arc<SigningKey>), RuntimeError> {
    let (authority, seed) = (root.authority(), root.service());
    let key = SigningKey::from_seed(&derive(seed.expose(), "alpheus/service/signing/v1", &[]));
    let agreement =
        AgreementKey::from_seed(&derive(seed.expose(), "alpheus/service/agreement/v1", &[]));
    let certificate = Certificate {
        role: Role::Service,
        name: "service".to_owned(),
        verifying: key.verifying_key(),
        agreement: agreement.public(),
    };
    let deployment = Deployment::new(authority.verifying_key(), &certificate.issue(&authority))?;
    Ok((deployment, Arc::new(key)))
}

fn seat_of(
    name: &str,
    root: &RootSecret,
    deployment: &Deployment,
    certificates: &mut HashMap<ControllerId, Signed<Certificate>>,
) -> Result<Seat, RuntimeError> {
    let secrets = root.controller(name);
    let certificate = secrets.request(name).issue(&root.authority());
    let identity = secrets.certified(&certificate, deployment)?;
    certificates.insert(identity.id(), certificate);
    Ok(Seat { identity, streams: Vec::new() })
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
