//! A deployment in a test: an authority, a service, controllers with owners and producers,
//! and the tests' operations on them.
//!
//! Every stream of the plan has its own value in each window, a power of 32: sums show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, Identity, IdentitySecrets};
use alpheus_encrypted_stream::coordinator::{Sums, WindowReport};
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{Change, Fence, Ledger, LedgerError, Scope, Start};
use alpheus_encrypted_stream::messages::{Announcement, ServiceMessage};
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{ControllerId, PlanId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::{
    Fraction, Integrity, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::policy::{AttributePolicy, ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::{Frames, OptionKind, Schema};
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::devices;
use crate::protocol::identities::{SUBJECT, authority, certified, deployment, keys_of, owner_key};
use crate::protocol::noise::{Noise, noisy_schema};
use crate::protocol::schemas::schema_of;
use crate::protocol::sealed_results;

/// Length of windows and ticks: ten seconds.
pub const WINDOW: Span = Span::seconds(10);
pub const GRACE: Span = Span::seconds(5);
/// Start of the first window. The third begins at midnight, where sessions end.
pub const EPOCH: u64 = 1_700_006_400_000_000 - 2 * WINDOW.0;

/// The window with this number.
pub fn window(number: u64) -> Window {
    let start = Timestamp(EPOCH + number * WINDOW.0);
    Window { start, end: start.plus(WINDOW) }
}

/// A time at which the window with this number is over, grace included.
pub fn after(number: u64) -> Timestamp {
    window(number).end.plus(GRACE)
}

/// What a test requests.
#[derive(Clone)]
pub struct Setup {
    pub controllers: u32,
    pub streams_each: u32,
    pub minimum: u32,
    pub alpha: Fraction,
    pub colluders: u32,
    pub dropout: Fraction,
    pub masks: MaskStrategy,
    /// Bound on the failure probability of a sparse graph: 10^-delta.
    pub delta: u8,
    pub windows: u64,
    pub seed: u8,
    /// Whether the plan adds noise, and what policies allow.
    pub noise: Option<Noise>,
    /// A stream that sends this many events in each window instead of one.
    pub busy: Option<(usize, u64)>,
    /// Whether all streams of a controller belong to one owner.
    pub one_owner: bool,
    /// Whether results are sealed to a consumer, with policies to match.
    pub sealed: bool,
    /// What devices send.
    pub frames: Frames,
    /// Whether the members of windows decide what rows say.
    pub verified: bool,
    pub sets_per_day: Option<u32>,
    /// In a bounded plan: one for the sum, two with the count, three with the sum of squares.
    pub cells: usize,
}

impl Setup {
    pub fn new(controllers: u32) -> Self {
        Self {
            controllers,
            streams_each: 1,
            minimum: 1,
            alpha: Fraction::ZERO,
            colluders: 1,
            dropout: Fraction::FIFTH,
            masks: if controllers == 1 { MaskStrategy::Single } else { MaskStrategy::Clique },
            delta: 9,
            windows: 3,
            seed: 1,
            noise: None,
            busy: None,
            one_owner: false,
            sealed: false,
            frames: Frames::Events,
            verified: false,
            sets_per_day: None,
            cells: 2,
        }
    }

    /// The same, with one frame a tick. The second window ends at an anchor.
    pub fn with_ticks(self) -> Self {
        Self { frames: Frames::Ticks { anchor: Span(2 * WINDOW.0) }, ..self }
    }

    /// The same, in a verified plan. One colluder is thought of.
    pub fn verified(self) -> Self {
        let alpha = if self.controllers > 1 { Fraction::THIRD } else { self.alpha };
        Self { verified: true, alpha, ..self.with_ticks() }
    }

    /// What stream `number` of a plan sends in an event of a window.
    pub fn value(&self, number: usize, window: u64) -> u64 {
        match (self.noise, self.width()) {
            (Some(_), _) => 1 + number as u64 % 10,
            (None, 1) => 1 << (number % 48),
            (None, _) => value_of(number, window),
        }
    }

    /// Bits between the values of streams: one if there are many.
    pub fn width(&self) -> usize {
        if self.controllers * self.streams_each > 12 { 1 } else { 5 }
    }

    /// The key of a stream's owner.
    pub fn owner_key(&self, stream: StreamId) -> SigningKey {
        let number = stream.0.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte));
        let first = number - number % self.streams_each;
        owner_key(if self.one_owner { stream_id(first) } else { stream })
    }

    pub fn events(&self, number: usize) -> u64 {
        self.busy.filter(|(busy, _)| *busy == number).map_or(1, |(_, events)| events)
    }
}

/// A store in memory: whatever was committed is durable.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub map: BTreeMap<Vec<u8>, Vec<u8>>,
    pub commits: u64,
}

/// A start with a number of its own.
pub fn start(fence: Option<Fence>) -> Start {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Start { number: LAST.fetch_add(1, Ordering::Relaxed) + 1, fence }
}

impl Ledger for Memory {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        self.commits += 1;
        self.map.commit(changes)
    }
}

impl Memory {
    pub fn values(&self, scope: Scope) -> Vec<&[u8]> {
        let prefix = scope.prefix();
        let under = self.map.iter().filter(|(key, _)| key.starts_with(&prefix));
        under.map(|(_, value)| value.as_slice()).collect()
    }
}

/// Everything that survives a crash, and what only tests know.
pub struct World {
    pub setup: Setup,
    pub authority: SigningKey,
    pub service: Arc<SigningKey>,
    pub deployment: Deployment,
    pub schema: Arc<Schema>,
    pub layout: Arc<Layout>,
    pub plan: Plan,
    pub announced: Arc<AnnouncedPlan>,
    pub transformer: Transformer,
    pub ingest: Ingest,
    /// Controllers by roster position: their seeds and certificates.
    pub seats: Vec<(u8, Signed<Certificate>)>,
    /// Streams whose master secrets are destroyed.
    pub erased: Vec<StreamId>,
    /// What producers have sent.
    pub frames: Vec<(StreamId, Vec<u8>)>,
    pub rng: ChaCha20Rng,
}

pub fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
}

/// A policy that allows exactly what the setup requests.
pub fn policy(setup: &Setup) -> ResolvedPolicy {
    let option = ResolvedOption {
        name: "aggr".into(),
        kind: setup.noise.map_or(OptionKind::Aggregate, |_| OptionKind::DpAggregate),
        window: WINDOW,
        min_population: setup.minimum,
        generalise: vec![],
        budget: setup.noise.map(|noise| noise.budget),
        to: setup.sealed.then(|| "tests".into()).into_iter().collect(),
        alpha: setup.alpha,
        colluders: setup.colluders,
        dropout: setup.dropout,
        missing_ticks: 0,
        split_populations: false,
        trusted: vec![],
        verified: true,
        sets_per_day: setup.sets_per_day,
    };
    ResolvedPolicy { attributes: vec![AttributePolicy { alternatives: vec![option] }] }
}

pub fn stream_id(number: u32) -> StreamId {
    let mut id = [7; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    StreamId(id)
}

pub fn master(stream: StreamId) -> MasterSecret {
    let mut secret = [3; 32];
    secret[..16].copy_from_slice(&stream.0);
    MasterSecret::new(Secret::from_bytes(secret))
}

/// What stream `number` of a plan sends in a window.
pub fn value_of(number: usize, window: u64) -> u64 {
    (1 + window % 3) << (5 * (number % 12))
}

impl World {
    /// Every stream sends one event in each window.
    pub fn new(setup: Setup) -> Self {
        Self::with_data(setup, |_, _| true)
    }

    /// Streams send an event in the windows for which `with_data` is true.
    pub fn with_data(setup: Setup, with_data: impl Fn(usize, u64) -> bool) -> Self {
        Self::with(setup, with_data, |_, master| master)
    }

    /// The same, with producers that hold the master secrets returned by `secret`.
    pub fn with(
        setup: Setup,
        with_data: impl Fn(usize, u64) -> bool,
        secret: impl Fn(usize, MasterSecret) -> MasterSecret,
    ) -> Self {
        let (authority, service, deployment) = (authority(), key(102), deployment());
        let schema = if setup.noise.is_some() { noisy_schema() } else { schema_of(setup.cells) };
        let schema = Arc::new(Schema { frames: setup.frames, ..schema });
        let layout = Arc::new(Layout::of(&schema).unwrap());
        let seats = certify(&setup, &authority, &deployment);
        let roster = seats.iter().map(|(id, ..)| *id).collect();
        let plan = make_plan(&setup, &schema, &layout, roster);
        let seats: Vec<_> = seats.into_iter().map(|(_, seed, signed)| (seed, signed)).collect();
        let announced = announce(&plan, &seats, &service, &deployment);
        let mut transformer = transformer(&schema, &layout);
        transformer.register(&plan).unwrap();
        let ingest = devices::ingest(authority.verifying_key(), schema.id(), schema.tick);
        let rng = ChaCha20Rng::from_seed([setup.seed; 32]);
        let service = Arc::new(service);
        let mut world = Self {
            setup,
            authority,
            service,
            deployment,
            schema,
            layout,
            plan,
            announced,
            transformer,
            ingest,
            seats,
            erased: Vec::new(),
            frames: Vec::new(),
            rng,
        };
        for number in 0..world.plan.streams.len() {
            let secret = secret(number, master(world.plan.streams[number].stream));
            world.produce(number, &secret, &|window| with_data(number, window));
        }
        world
    }

    /// Another plan over some of the same streams, which the transformer sums from scratch.
    pub fn take_over(&mut self, plan: Plan) {
        self.announced = announce(&plan, &self.seats, &self.service, &self.deployment);
        self.transformer = transformer(&self.schema, &self.layout);
        self.transformer.register(&plan).unwrap();
        self.plan = plan;
        let planned = self.plan.streams.clone();
        let own = |id: &StreamId| planned.iter().any(|planned| planned.stream == *id);
        let frames = self.frames.clone();
        for (stream, frame) in frames.iter().filter(|(stream, _)| own(stream)) {
            self.take(*stream, frame);
        }
    }

    pub fn id(&self) -> PlanId {
        self.announced.id()
    }

    /// Closes a window at the transformer.
    pub fn report(&mut self, number: u64) -> WindowReport {
        let report = self.transformer.close(&self.id(), window(number), 0).unwrap();
        WindowReport {
            window: report.window,
            complete: report.complete().cloned().collect(),
            excluded: report.excluded().map(|(p, _)| (p, ExclusionError::Incomplete)).collect(),
            unreported: 0,
        }
    }

    pub fn identity(&self, position: u32) -> Identity {
        let (seed, certificate) = &self.seats[position as usize];
        IdentitySecrets::from_seed(&Secret::from_bytes([*seed; 32]))
            .certified(certificate, &self.deployment)
            .unwrap()
    }

    pub fn held(&self, position: u32) -> Vec<HeldStream> {
        let own = self.plan.streams.iter().filter(|planned| planned.controller == position);
        own.map(|planned| HeldStream {
            stream: planned.stream,
            owner: planned.owner,
            schema: Arc::clone(&self.schema),
            layout: Arc::clone(&self.layout),
            master: (!self.erased.contains(&planned.stream)).then(|| master(planned.stream)),
        })
        .collect()
    }

    /// A new controller with its streams and their annotations, committed.
    pub fn controller(&self, position: u32, ledger: &mut Memory) -> Controller {
        let now = Timestamp(EPOCH);
        let (mut controller, mut step) =
            Controller::create(self.identity(position), self.deployment.clone(), now);
        for held in self.held(position) {
            let stream = held.stream;
            controller.hold(held);
            let signed = self.annotate(stream, 1, policy(&self.setup));
            let owner = certified(&self.setup.owner_key(stream));
            step.merge(controller.annotate(&signed, &owner, now).unwrap());
        }
        step.commit(ledger).unwrap();
        controller.note_fenced();
        controller.draw_keys_from(keys_of(self.seats[position as usize].0));
        controller
    }

    pub fn annotate(
        &self,
        stream: StreamId,
        version: u32,
        policy: ResolvedPolicy,
    ) -> Signed<Annotation> {
        let key = self.setup.owner_key(stream);
        let annotation = Annotation {
            stream,
            owner: certified(&key).id(),
            schema: self.schema.id(),
            version,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: vec![],
            policy,
        };
        Signed::new(&annotation, &key)
    }

    /// The plan's rows over these streams in a window, in the clear.
    pub fn truth(&self, streams: impl IntoIterator<Item = usize>, number: u64) -> Vec<u64> {
        let of = |stream| self.setup.value(stream, number) * self.setup.events(stream);
        let sum: u64 = streams.into_iter().map(of).sum();
        let words = u64::from(self.layout.check_word());
        (1..=words).map(|word| sum * word).chain([0]).collect()
    }

    pub fn announcement(&self) -> ServiceMessage {
        self.announced.message()
    }
}

pub fn transformer(schema: &Schema, layout: &Layout) -> Transformer {
    let mut transformer = Transformer::new(Shape::of(schema, layout, Span::seconds(3600)), 1);
    transformer.prove_with(Blocks::of(layout));
    transformer
}

impl Sums for World {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        self.transformer.sum(plan, window, streams).ok()
    }
}

/// Controllers with their seeds and certificates, in the order of their ids.
fn certify(
    setup: &Setup,
    authority: &SigningKey,
    deployment: &Deployment,
) -> Vec<(ControllerId, u8, Signed<Certificate>)> {
    let one = |number: u32| {
        // Another seed has another roster.
        let seed = u8::try_from(number).unwrap().wrapping_add(setup.seed);
        let secrets = IdentitySecrets::from_seed(&Secret::from_bytes([seed; 32]));
        let signed = secrets.request(format!("controller {number}")).certify(SUBJECT, authority);
        (secrets.certified(&signed, deployment).unwrap().id(), seed, signed)
    };
    let mut seats: Vec<_> = (0..setup.controllers).map(one).collect();
    seats.sort_by_key(|(id, ..)| *id);
    seats
}

pub fn announce(
    plan: &Plan,
    seats: &[(u8, Signed<Certificate>)],
    service: &SigningKey,
    deployment: &Deployment,
) -> Arc<AnnouncedPlan> {
    let certificates = seats.iter().map(|(_, certificate)| certificate.clone()).collect();
    let consumer = plan.sealed_to.map(|_| sealed_results::certificate());
    let announcement = Announcement { plan: plan.clone(), certificates, consumer };
    Arc::new(AnnouncedPlan::open(&Signed::new(&announcement, service), deployment).unwrap())
}

fn make_plan(setup: &Setup, schema: &Schema, layout: &Layout, roster: Vec<ControllerId>) -> Plan {
    let streams = (0..setup.controllers * setup.streams_each).map(|number| {
        let stream = stream_id(number);
        let owner = certified(&setup.owner_key(stream)).id();
        PlannedStream { stream, owner, controller: number / setup.streams_each }
    });
    let mut plan = Plan {
        nonce: [setup.seed; 16],
        name: "sums".into(),
        consumer: "tests".into(),
        sealed_to: setup.sealed.then(sealed_results::id),
        schema: schema.id(),
        group: vec![],
        window: WINDOW,
        grace: GRACE,
        from: Timestamp(EPOCH),
        release: Release { rows: (0..layout.words).map(|word| vec![word]).collect() },
        select: ReleasePlan::default(),
        integrity: if setup.verified { Integrity::Verified } else { Integrity::Plain },
        selection: Selection::default(),
        privacy: None,
        attributes: vec![0],
        population: PopulationBounds { min: setup.minimum, max: 1000 },
        alpha: setup.alpha,
        colluders: setup.colluders,
        dropout: setup.dropout,
        delta_exponent: setup.delta,
        masks: setup.masks,
        epoch: None,
        roster,
        streams: streams.collect(),
    };
    plan.privacy = setup.noise.map(Noise::privacy);
    if let (Some(privacy), true) = (&mut plan.privacy, setup.one_owner) {
        privacy.streams_per_owner = setup.streams_each;
    }
    let sized = plan.calibration(schema, layout).unwrap();
    if let (Some(privacy), Some(sized)) = (&mut plan.privacy, sized) {
        privacy.noise = sized.rows;
    }
    plan
}
