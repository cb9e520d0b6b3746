//! A service and hosts of controllers over disks of the test's choice, on a clock
//! that the test holds. Their messages to each other are carried by hand.

use crate::common::{KEY_FILE, in_memory};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::{Annotation, Placement};
use alpheus_encrypted_stream::certificate::{
    Certificate, Deployment, Party, Recipient, Role, Subject, fingerprint,
};
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{Producer, Session, Start};
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::network::revocation_list::{tls_digest, tls_key_digest};
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_node::slots::SlotFile;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::controller_host::ToController;
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::fences::ControllerFences;
use alpheus_stream_runtime::keys::ServiceKeys;
use alpheus_stream_runtime::manager::{Manager, QueryError};
use alpheus_stream_runtime::query_planner::QueryContext;
use alpheus_stream_runtime::service::{Service, ServiceOutput};
use alpheus_stream_runtime::storage::Topics;
use alpheus_streams::controller::guard::{Guard, GuardError, Parts, Spaces, begin_identity};
use alpheus_streams::controller::keystore::KeyStore;
use alpheus_streams::owner::identity::OwnerIdentity;
use alpheus_streams::server::intake::Intake;
use alpheus_streams::server::registry::Registry;
use alpheus_streams::wire::{Choice, Handover, Notice, Upload, WithdrawalRequest};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Store;
use alpheus_transport::simulation::Machine;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const SCHEMA: &str = "\
name: Meters
version: 1
frames: events
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1, 3], window: 2s, alpha: 0, dropout: 1/2 }
";
const POLICIES: &str = "\
schema: Meters
service: analyst
default: { reading: { option: crowd, clients: 1 } }
";
pub(crate) const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 2 SECONDS) FROM Meters";
/// When it all begins.
pub(crate) const EPOCH: Timestamp = Timestamp(1_700_000_000_000_000);

/// Seconds after the beginning.
pub(crate) fn at(seconds: u64) -> Timestamp {
    EPOCH.plus(Span::seconds(seconds))
}

/// What everybody of the deployment knows, and the keys of everybody.
pub(crate) struct Town {
    pub(crate) schema: Schema,
    pub(crate) layout: Layout,
    pub(crate) deployment: Deployment,
    pub(crate) authority: SigningKey,
    service: [u8; 32],
    folder: tempfile::TempDir,
    /// Certificates that the authority has revoked, as all hosts know.
    pub(crate) revoked: RevokedCertificates,
    pub(crate) rng: ChaCha20Rng,
    /// What sums at the service.
    pub(crate) engine: EngineKind,
}

/// A host with one controller, and its disk.
pub(crate) struct House {
    pub(crate) name: String,
    pub(crate) disk: Machine,
    pub(crate) id: ControllerId,
    pub(crate) recipient: Recipient,
    pub(crate) guard: Option<Guard>,
}

/// The service, and its disk.
pub(crate) struct Hall {
    pub(crate) disk: Machine,
    pub(crate) manager: Manager,
    pub(crate) registry: Registry,
    pub(crate) intake: Intake,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) topics: Topics,
}

/// An owner with a stream, and its device.
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) identity: OwnerIdentity,
    pub(crate) stream: StreamId,
    pub(crate) secret: [u8; 32],
    session: Option<Session>,
    uploads: u64,
}

impl Person {
    pub(crate) fn certificate(&self) -> Signed<Certificate> {
        self.identity.certified.certificate().clone()
    }
}

impl Town {
    pub(crate) fn new() -> Town {
        Town::of(SCHEMA)
    }

    /// The same with another schema, which offers what [`SCHEMA`] offers.
    pub(crate) fn of(schema: &str) -> Town {
        let schema = Schema::from_yaml(schema).unwrap();
        let layout = Layout::of(&schema).unwrap();
        let authority = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let service = [2; 32];
        let keys = ServiceKeys::from_seed(&Secret::from_bytes(service));
        let certificate = keys.request().certify(Subject([0; 16]), &authority);
        let deployment = Deployment::new(authority.verifying_key(), &certificate).unwrap();
        let (folder, rng) = (in_memory::folder(), ChaCha20Rng::seed_from_u64(3));
        let revoked = RevokedCertificates::new(tls_digest, tls_key_digest);
        let engine = EngineKind::InProcess;
        Town { schema, layout, deployment, authority, service, folder, revoked, rng, engine }
    }

    pub(crate) fn policy(&self) -> ResolvedPolicy {
        Policies::from_yaml(POLICIES, &self.schema).unwrap().of_owner("anybody").clone()
    }

    /// A service on a disk, as it was left.
    pub(crate) fn hall(&self, disk: Machine) -> Hall {
        self.hall_at(disk, EPOCH)
    }

    /// The keys of the service.
    pub(crate) fn service_keys(&self) -> ServiceKeys {
        ServiceKeys::from_seed(&Secret::from_bytes(self.service))
    }

    /// The same, which starts then.
    pub(crate) fn hall_at(&self, disk: Machine, now: Timestamp) -> Hall {
        let key = Arc::new(self.service_keys().into_signing());
        let topics = Topics::new(2).unwrap();
        let shape = Shape::of(&self.schema, &self.layout, Span::seconds(60));
        let store = disk.open().unwrap();
        let service = Service::open(
            self.engine,
            store.clone(),
            &topics,
            key.clone(),
            shape,
            Timing::default(),
        )
        .unwrap();
        let mut manager =
            Manager::new(service, &self.schema, self.deployment.clone(), key).unwrap();
        let registry = Registry::load(&mut manager, &self.deployment).unwrap();
        manager.resume(now).unwrap();
        let intake = Intake::new(store.clone(), topics.clone());
        Hall { disk, manager, registry, intake, store, topics }
    }

    /// A service and two hosts, each with a stream, of which a query runs.
    pub(crate) fn two_houses(&mut self) -> (Hall, [House; 2], [Person; 2]) {
        let mut hall = self.hall(Machine::new());
        let mut houses = [self.house("first"), self.house("second")];
        let people = [self.person(1), self.person(2)];
        for (person, house) in people.iter().zip(&mut houses) {
            let handover = self.handover(person, house);
            house.guard().take(at(0), &person.name, &handover).unwrap();
            house.tell(&mut hall, self);
        }
        let round = hall.ask(QUERY, at(1), &mut self.rng);
        let [first, second] = &mut houses;
        hall.carry(at(1), round, &mut [first, second]);
        (hall, houses, people)
    }

    /// Where a host's slots lie.
    pub(crate) fn slot_file(&self, house: &str) -> PathBuf {
        self.folder.path().join(format!("{house}.slots"))
    }

    /// A new host with one controller.
    pub(crate) fn house(&mut self, name: &str) -> House {
        let (disk, spaces) = (Machine::new(), Spaces::new().unwrap());
        let store = disk.open().unwrap();
        let keys = KeyStore::create(
            store.clone(),
            spaces.keys.clone(),
            self.slots(name),
            KEY_FILE.as_bytes(),
            &mut self.rng,
        );
        let secrets = keys.unwrap().new_identity(name, &mut self.rng).unwrap();
        let signed = secrets.request(name).certify(Subject([0; 16]), &self.authority);
        let key = secrets.hybrid().clone();
        let recipient = Recipient::new(self.deployment.controller(&signed).unwrap(), key).unwrap();
        let identity = secrets.certified(&signed, &self.deployment).unwrap();
        let mut fence = ControllerFences::load(&self.folder.path().join(name)).unwrap();
        let own = (name, &signed);
        begin_identity((&store, &spaces), &mut fence, identity, own, (&self.deployment, EPOCH))
            .unwrap();
        drop(store);
        let id = fingerprint(&self.deployment.controller(&signed).unwrap());
        let mut house = House { name: name.to_owned(), disk, id, recipient, guard: None };
        house.guard = Some(self.wake(&house, EPOCH).unwrap());
        house
    }

    fn slots(&self, house: &str) -> SlotFile {
        SlotFile::open(&self.slot_file(house)).unwrap()
    }

    /// A host as its disk, its slots and its fence say.
    pub(crate) fn wake(&mut self, house: &House, now: Timestamp) -> Result<Guard, GuardError> {
        let spaces = Spaces::new().unwrap();
        let store = house.disk.open().unwrap();
        let keys = KeyStore::open(
            store.clone(),
            spaces.keys.clone(),
            self.slots(&house.name),
            KEY_FILE.as_bytes(),
        )
        .unwrap();
        let fence = ControllerFences::load(&self.folder.path().join(&house.name)).unwrap();
        let parts = Parts {
            store,
            spaces,
            keys,
            fence,
            deployment: self.deployment.clone(),
            revoked: self.revoked.clone(),
            schema: self.schema.clone(),
            rng: ChaCha20Rng::seed_from_u64(4),
        };
        Guard::open(parts, self.layout.clone(), now)
    }

    /// An owner whose stream has this number.
    pub(crate) fn person(&self, number: u8) -> Person {
        self.person_named(number, format!("owner-{number}"))
    }

    /// The authority has certified the person under this name.
    pub(crate) fn person_named(&self, number: u8, name: String) -> Person {
        let key = SigningKey::from_seed(&Secret::from_bytes([100 + number; 32]));
        let party = Party::signing(Role::Owner, name.as_str(), key.verifying_key());
        let certified = party.certify(Subject([number; 16]), &self.authority);
        let certified = self.deployment.owner(&certified).unwrap();
        Person {
            name,
            identity: OwnerIdentity { key, certified },
            stream: StreamId([number; 16]),
            secret: [number; 32],
            session: None,
            uploads: 0,
        }
    }

    pub(crate) fn annotation(
        &self,
        person: &Person,
        version: u32,
        policy: ResolvedPolicy,
    ) -> Signed<Annotation> {
        let annotation = Annotation {
            stream: person.stream,
            owner: person.identity.certified.id(),
            schema: self.schema.id(),
            version,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: vec![],
            policy,
        };
        Signed::new(&annotation, &person.identity.key)
    }

    pub(crate) fn choice(&self, person: &Person, version: u32, policy: ResolvedPolicy) -> Choice {
        let annotation = self.annotation(person, version, policy);
        Choice { annotation, owner: person.certificate() }
    }

    /// A person takes consent back; the key too if `erase`.
    pub(crate) fn withdrawal(person: &Person, erase: bool) -> WithdrawalRequest {
        person.identity.withdrawal(person.stream, erase)
    }

    pub(crate) fn handover(&mut self, person: &Person, house: &House) -> Handover {
        let owner = person.identity.certified.id();
        let purpose = Purpose { stream: person.stream, schema: self.schema.id(), owner };
        let master = MasterSecret::new(Secret::from_bytes(person.secret));
        let authority = self.deployment.authority();
        Handover {
            sealed: purpose.seal(authority, &house.recipient, &master, &mut self.rng).unwrap(),
            annotation: self.annotation(person, 1, self.policy()),
            owner: person.certificate(),
            placement: self.placement(person, 1, house.id, &format!("device-of-{}", person.name)),
        }
    }

    pub(crate) fn placement(
        &self,
        person: &Person,
        version: u32,
        controller: ControllerId,
        producer: &str,
    ) -> Signed<Placement> {
        let (stream, producer) = (person.stream, producer.to_owned());
        Signed::new(
            &Placement { stream, version, controller, producer, moved: None },
            &person.identity.key,
        )
    }

    /// Sends a second's event, and the border after it.
    pub(crate) fn send(&mut self, hall: &Hall, person: &mut Person, second: u64, value: i64) {
        let mut frames = Vec::new();
        let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
        let mut session = person.session.take().unwrap_or_else(|| {
            let master = MasterSecret::new(Secret::from_bytes(person.secret));
            let producer =
                Producer::for_schema(&master, person.stream, &self.schema, &self.layout).unwrap();
            let opened = producer.open(Start::First, at(second), &mut self.rng, &mut sink);
            opened.unwrap_or_else(|refused| panic!("{}", refused.error))
        });
        let encoder = Encoder::new(&self.schema, &self.layout).unwrap();
        let (values, rng) = ([Value::Number(value)], &mut self.rng);
        let time = Timestamp(at(second).0 + 500_000);
        let encode = |vector: &mut alpheus_encrypted_stream::producer::EventVector<'_>| {
            encoder.encode(&values, rng, |word, addend| vector.add(word, addend))
        };
        session.event(time, encode, &mut sink).unwrap();
        session.advance(at(second + 1), &mut sink).unwrap();
        person.session = Some(session);
        person.uploads += 1;
        let (stream, number) = (person.stream, person.uploads);
        let upload =
            Upload { stream, outbox: person.secret[..16].try_into().unwrap(), number, frames };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(hall.intake.take("device", vec![upload])).unwrap().unwrap();
    }
}

impl House {
    pub(crate) fn guard(&mut self) -> &mut Guard {
        self.guard.as_mut().unwrap()
    }

    /// Introduces its controllers and tells what the service does not know.
    pub(crate) fn tell(&mut self, hall: &mut Hall, town: &Town) {
        let certificates = self.guard().certificates();
        let Hall { registry, manager, .. } = hall;
        registry.introduce(manager, &town.deployment, &self.name, &certificates).unwrap();
        for (stream, notice) in self.guard().notices().some(usize::MAX).unwrap() {
            match notice.clone() {
                Notice::Registered(registration) => {
                    registry
                        .register(manager, &town.deployment, &self.name, *registration)
                        .unwrap();
                }
                Notice::Withdrawn(stream) => {
                    registry.withdraw(manager, Timestamp(0), &self.name, &stream).unwrap();
                }
            }
            self.guard().notices().delivered(&stream, &notice, true).unwrap();
        }
    }
}

impl Hall {
    /// The process ends; what is durable stays.
    pub(crate) fn stop(self) -> Machine {
        self.disk
    }

    /// Starts a query.
    pub(crate) fn ask(
        &mut self,
        sql: &str,
        now: Timestamp,
        rng: &mut ChaCha20Rng,
    ) -> ServiceOutput {
        self.ask_as("analyst", sql, now, rng).unwrap()
    }

    /// Starts a query of a consumer, if it may.
    pub(crate) fn ask_as(
        &mut self,
        consumer: &str,
        sql: &str,
        now: Timestamp,
        rng: &mut ChaCha20Rng,
    ) -> Result<ServiceOutput, QueryError> {
        let Statement::Create(create) = parse(sql).unwrap() else { panic!("{sql}") };
        let asking = QueryContext { now, from: None, consumer, readers: &|_| None };
        Ok(self.manager.ask(&create, asking, rng)?.1)
    }

    /// Sums what has come and closes what has passed.
    pub(crate) fn turn(&mut self, now: Timestamp) -> ServiceOutput {
        let service = &mut self.manager.service;
        service.ingest(now).unwrap();
        let mut all = ServiceOutput::default();
        let mut add = |round: ServiceOutput| {
            all.messages.extend(round.messages);
            all.rows.extend(round.rows);
        };
        while service.has_due(now) {
            add(service.close_windows(now, now).unwrap());
        }
        if service.deadline().is_some_and(|deadline| deadline <= now) {
            add(service.timeout(now).unwrap());
        }
        all
    }

    /// Carries messages to and fro until nobody has anything to say: to the hosts
    /// that are there. Rows that came of it.
    pub(crate) fn carry(
        &mut self,
        now: Timestamp,
        round: ServiceOutput,
        houses: &mut [&mut House],
    ) -> ServiceOutput {
        let mut all = ServiceOutput { messages: Vec::new(), rows: round.rows };
        let mut waiting = round.messages;
        while !waiting.is_empty() {
            let mut sorted: BTreeMap<ControllerId, Vec<ToController>> = BTreeMap::new();
            waiting
                .drain(..)
                .for_each(|message| sorted.entry(message.0).or_default().push(message));
            for house in houses.iter_mut() {
                let Some(messages) = sorted.remove(&house.id) else { continue };
                let guard = house.guard();
                guard.answer(now, messages).unwrap();
                let going = guard.outgoing_batch();
                let answered =
                    self.manager.service.receive(now, now, going.messages.clone()).unwrap();
                guard.arrived(&going);
                waiting.extend(answered.messages);
                all.rows.extend(answered.rows);
            }
            all.messages.extend(sorted.into_values().flatten());
        }
        all
    }
}
