//! An embedded deployment: owners' devices, controllers and service in one
//! process, each with its own keys and its own part of the state folder.

use super::controller_host::ControllerHost;
use super::devices::Device;
use super::engine_kind::EngineKind;
use super::error::RuntimeError;
use super::fences::ControllerFences;
use super::keys::RootSecret;
use super::manager::Manager;
use super::results::Row;
use super::service::{Service, ServiceOutput};
use super::storage::Topics;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::clock;
use alpheus_node::ledger::store::StoreLedger;
use alpheus_node::service::metrics::Metrics;
use alpheus_policy::ids::{ControllerId, PlanId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::MaskChoice;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Store, local};
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const PARTITIONS: u32 = 4;

/// Someone whose stream takes part.
#[derive(Clone)]
pub struct Member {
    /// Identifies the stream.
    pub key: String,
    /// Identifies the owner.
    pub owner: String,
    /// Public facts about the stream.
    pub metadata: BTreeMap<String, String>,
}

/// How many privacy controllers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// One for each owner.
    PerOwner,
    /// This many; owners are assigned in turn.
    Count(u32),
}

/// How time passes for the service's deadlines.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// By the wall clock: controllers that do not answer in time are left out, and a window
    /// closes `idle` after its end without streams that hold back the watermark.
    Live {
        /// How long a window waits in each step.
        timing: Timing,
        /// How long after its end it waits for events.
        idle: Span,
    },
    /// As fast as possible: a deadline passes only once no party has anything left to say,
    /// so a slow machine leaves nobody out.
    Recorded,
}

impl Pace {
    /// Within one process no message is lost, so requests need not be repeated.
    const RECORDED: Timing = Timing {
        presence: Span::seconds(1),
        tokens: Span::seconds(1),
        openings: Span::seconds(1),
        proofs: Span::seconds(600),
        sums: Span::seconds(1),
        retry: Span::seconds(60),
    };

    fn timing(self) -> Timing {
        match self {
            Pace::Live { timing, .. } => timing,
            Pace::Recorded => Pace::RECORDED,
        }
    }
}

/// How a deployment runs.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// How time passes.
    pub pace: Pace,
    /// The engine that sums ciphertexts.
    pub engine: EngineKind,
}

impl From<Pace> for RunOptions {
    fn from(pace: Pace) -> RunOptions {
        RunOptions { pace, engine: EngineKind::InProcess }
    }
}

/// The durable stores of a deployment.
pub struct Stores {
    /// The service's: encrypted events, results, windows under way.
    pub service: Arc<dyn Store>,
    /// The owners' and controllers': keys and ledgers.
    pub private: Arc<dyn Store>,
    /// How far the ledgers have come: a file that backups must leave out.
    pub fence: PathBuf,
}

/// An embedded deployment.
pub struct EmbeddedDeployment {
    /// The service's side.
    pub manager: Manager,
    /// Privacy controllers.
    pub host: ControllerHost,
    /// Devices, in the order of the members.
    pub devices: Vec<Device>,
    /// Turns values into words.
    pub encoder: Encoder,
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
    /// The secret was drawn in this run, so no ledger of its keys can have been lost.
    pub(super) root_is_new: bool,
    pub(super) pace: Pace,
    /// When the last deadline passed, if time passes by [`Pace::Recorded`].
    passed: Timestamp,
    /// How long controllers have worked so far.
    busy: Span,
    pub(super) schema: Arc<Schema>,
    pub(super) deployment: Deployment,
}

impl EmbeddedDeployment {
    /// Opens the deployment in a folder as it was left, or creates it.
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
    ) -> Result<EmbeddedDeployment, RuntimeError> {
        let stores = Stores {
            service: local::open(&folder.join("service"), &local::Options::default())?,
            private: local::open(&folder.join("private"), &local::Options::default())?,
            fence: folder.join("fence"),
        };
        EmbeddedDeployment::on(stores, schema, members, policies, controllers, pace, rng)
    }

    /// Opens the deployment on stores as it was left, or creates it.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub fn on(
        stores: Stores,
        schema: &Schema,
        members: &[Member],
        policies: &Policies,
        controllers: Controllers,
        how: impl Into<RunOptions>,
        rng: &mut impl CryptoRng,
    ) -> Result<EmbeddedDeployment, RuntimeError> {
        let RunOptions { pace, engine } = how.into();
        let topics = Topics::new(PARTITIONS)?;
        let Stores { service: store, private, fence } = stores;
        for space in [&topics.keys, &topics.ledger] {
            private.ensure_space(space)?;
        }
        store.ensure_space(&topics.progress)?;
        let (root, root_is_new) = RootSecret::load(private.as_ref(), &topics.keys, rng)?;
        let (schema, layout) = (Arc::new(schema.clone()), Arc::new(Layout::of(schema)?));
        let (deployment, service_key) = deployment(&root)?;
        let ledger = StoreLedger::new(private.clone(), topics.ledger.clone());
        let shape = Shape::of(&schema, &layout, Span::seconds(60));
        let (own, timing) = (store.clone(), pace.timing());
        let mut service = Service::open(engine, own, &topics, service_key.clone(), shape, timing)?;
        service.counters.lists_windows = true;
        let mut embedded = EmbeddedDeployment {
            manager: Manager::new(service, &schema, deployment.clone(), service_key)?,
            host: ControllerHost::new(&deployment, ledger, ControllerFences::load(&fence)?)
                .with_eager_noise(),
            devices: Vec::with_capacity(members.len()),
            encoder: Encoder::new(&schema, &layout)?,
            controller_of: Vec::with_capacity(members.len()),
            streams: Vec::with_capacity(members.len()),
            private: private.clone(),
            store,
            topics,
            root,
            root_is_new,
            pace,
            passed: Timestamp(0),
            busy: Span(0),
            schema,
            deployment,
        };
        embedded.admit_frames()?;
        embedded.seat(members, policies, controllers, &layout, private.as_ref(), rng)?;
        let now = embedded.now();
        embedded.manager.resume(now)?;
        Ok(embedded)
    }

    /// Adds the deployment's counters to the process's metrics.
    pub fn watch(&self, metrics: &Metrics) {
        metrics.watch_store(&self.store);
        self.manager.service.watch.register(metrics);
    }

    /// Starts plans and stores them, so that a restart resumes them. `clock` is the
    /// controllers' clock.
    ///
    /// # Errors
    /// [`RuntimeError`]; a controller's refusal is no error, see [`Service::refusals`].
    pub fn start(&mut self, clock: Timestamp, plans: &[Plan]) -> Result<(), RuntimeError> {
        self.start_masked(clock, plans, None)
    }

    /// The same for plans that share masks as their query says.
    ///
    /// # Errors
    /// As [`EmbeddedDeployment::start`].
    pub fn start_masked(
        &mut self,
        clock: Timestamp,
        plans: &[Plan],
        masks: Option<MaskChoice>,
    ) -> Result<(), RuntimeError> {
        self.introduce_readers(plans)?;
        let outgoing = self.manager.start(self.now(), plans, masks)?;
        self.exchange(clock, outgoing).map(|_| ())
    }

    /// A plan as the service announced it, checked; none if the service has none such.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub fn announced(&self, plan: &PlanId) -> Result<Option<AnnouncedPlan>, RuntimeError> {
        let signed = self.manager.announcement(plan)?;
        let opened = signed.map(|signed| AnnouncedPlan::open(&signed, &self.deployment));
        Ok(opened.transpose()?)
    }

    /// The deployment's authority and service: whose signatures count.
    #[must_use]
    pub fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Plans that run.
    #[must_use]
    pub fn running(&self) -> Vec<PlanId> {
        self.manager.service.running()
    }

    /// Reads new events, closes windows, and exchanges messages until no party has anything
    /// left to say. `clock` is the controllers' clock.
    ///
    /// # Errors
    /// [`RuntimeError`]; the stores hold everything that was sent before.
    pub fn pump(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        self.manager.service.ingest(clock)?;
        let idle = match self.pace {
            Pace::Live { idle, .. } => Timestamp(clock.0.saturating_sub(idle.0)),
            Pace::Recorded => Timestamp(0),
        };
        // A restart repeats its requests before any deadline passes.
        let mut rows = Vec::new();
        loop {
            let outgoing = self.manager.service.close_windows(self.now(), idle)?;
            rows.extend(self.exchange(clock, outgoing)?);
            rows.extend(self.pass_deadlines(clock)?);
            if !self.manager.service.has_due(idle) {
                break;
            }
        }
        if self.manager.service.in_progress() == 0 {
            self.manager.service.checkpoint_if_worth()?;
        }
        Ok(rows)
    }

    fn exchange(
        &mut self,
        clock: Timestamp,
        mut outgoing: ServiceOutput,
    ) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = std::mem::take(&mut outgoing.rows);
        while !outgoing.messages.is_empty() {
            let begun = clock::now();
            let answers = self.host.handle(clock, outgoing.messages)?;
            self.busy.0 += clock::now().0.saturating_sub(begun.0);
            outgoing = self.manager.service.receive(self.now(), clock, answers)?;
            rows.append(&mut outgoing.rows);
        }
        Ok(rows)
    }

    /// Runs [`EmbeddedDeployment::pump`] until no window is in progress. If a controller does not
    /// answer, that takes as long as [`Timing`] waits for it.
    ///
    /// # Errors
    /// [`RuntimeError`]; the stores hold everything that was sent before.
    pub fn settle(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = self.pump(clock)?;
        while let Some(deadline) = self.manager.service.deadline() {
            let wait = deadline.0.saturating_sub(self.now().0);
            std::thread::sleep(Duration::from_micros(wait));
            rows.extend(self.pump(clock)?);
        }
        Ok(rows)
    }

    /// The service's clock, for deadlines only.
    fn now(&self) -> Timestamp {
        match self.pace {
            // All roles share this process: while controllers work, nobody is late.
            Pace::Live { .. } => Timestamp(clock::now().0.saturating_sub(self.busy.0)),
            Pace::Recorded => self.passed,
        }
    }

    /// Continues windows whose deadlines have passed.
    fn pass_deadlines(&mut self, clock: Timestamp) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = Vec::new();
        while let Some(deadline) = self.manager.service.deadline() {
            if matches!(self.pace, Pace::Recorded) {
                self.passed = self.passed.max(deadline);
            }
            if deadline > self.now() {
                break;
            }
            let outgoing = self.manager.service.timeout(self.now())?;
            rows.extend(self.exchange(clock, outgoing)?);
        }
        Ok(rows)
    }
}

/// The deployment's authority and the service's keys in it.
fn deployment(root: &RootSecret) -> Result<(Deployment, Arc<SigningKey>), RuntimeError> {
    let (authority, service) = (root.authority(), root.service());
    let certificate = root.certify(service.request());
    let deployment = Deployment::new(authority.verifying_key(), &certificate)?;
    Ok((deployment, Arc::new(service.into_signing())))
}
