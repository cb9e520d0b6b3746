//! A service, three hosts and three meters under a schedule of outages, step by step on a clock
//! that the test holds. Meters send one frame a tick.

use super::schedules::{Away, Schedule, WINDOW};
use super::world::{EPOCH, Hall, House, Person, Town};
use crate::common::recording::Draw;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::{SealingKey, SealingPublic};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::certificate::{Party, Role, Subject};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{OpeningSecrets, SetupError, Start};
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_stream_runtime::results::Row;
use alpheus_stream_runtime::service::ServiceOutput;
use alpheus_stream_runtime::storage::device_partition;
use alpheus_stream_runtime::stream_producer::{StreamProducer, StreamSession};
use alpheus_streams::server::outages::Outages;
use alpheus_streams::server::outboxes::Outboxes;
use alpheus_streams::wire::MailCursor;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::Machine;
use alpheus_transport::{Batch, NewRecord};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Runtime;

const SCHEMA: &str = "\
name: Meters
version: 1
tick: 30s
anchor: 2min
capacity: { population: 10, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 100000000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1, 3], window: 1min, alpha: 0, dropout: 1/2 }
";
const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 1 MINUTE) FROM Meters";
const TICK: u64 = 30;
/// Seconds that pass at once.
pub(super) const STEP: u64 = 10;
/// How long a window waits for late streams, and the service for those who were there.
const IDLE: Span = Span::seconds(60);
const RECOVERY: Span = Span::seconds(120);
const HOSTS: [&str; 3] = ["first", "second", "third"];

/// When it all begins: a window begins there.
const BEGIN: Timestamp = Timestamp(EPOCH.0 + 40_000_000);

/// Seconds after the beginning.
fn at(seconds: u64) -> Timestamp {
    BEGIN.plus(Span::seconds(seconds))
}

/// A meter with its device.
pub(super) struct Meter {
    person: Person,
    scale: u64,
    producer: Option<StreamProducer>,
    session: Option<StreamSession>,
    reached: Option<(u64, Timestamp)>,
    is_new: bool,
    /// Frames that the service does not have.
    waiting: Vec<Vec<u8>>,
    /// The sum of the open tick.
    open: u64,
    /// The sum of each tick that has a frame, by the tick's end.
    kept: BTreeMap<u64, u64>,
    rng: ChaCha20Rng,
}

impl Meter {
    /// What a meter's readings are multiples of, so that a sum shows who is in it.
    pub(super) fn scale(meter: usize) -> u64 {
        [1, 1_000, 1_000_000][meter]
    }

    /// What is kept of a window, if all of it is, in units of the scale.
    pub(super) fn kept_in(&self, start: u64, end: u64) -> Option<u64> {
        let ticks: Vec<u64> = self.kept.range(start + 1..=end).map(|(_, sum)| *sum).collect();
        (ticks.len() as u64 == WINDOW / TICK).then(|| ticks.iter().sum())
    }

    /// Reads once in the step from `second` on, and sends the borders up to its end.
    fn read(&mut self, second: u64, encoder: &Encoder, draw: &mut Draw) {
        let mut frames = Vec::new();
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        if self.session.is_none() && second.is_multiple_of(TICK) {
            let now = at(second);
            let start = if self.is_new { Start::First } else { Start::Again { now } };
            let producer = self.producer.take().unwrap();
            let opened = producer.open(start, now, self.reached, &mut self.rng, sink);
            self.session = Some(opened.unwrap_or_else(|(_, error)| panic!("{error}")));
            self.is_new = false;
        }
        if let Some(session) = &mut self.session {
            let reading = 1 + draw.below(9);
            self.open += reading;
            let values = [Value::Number(i64::try_from(reading * self.scale).unwrap())];
            let encode =
                |rng: &mut ChaCha20Rng,
                 vector: &mut alpheus_encrypted_stream::producer::EventVector<'_>| {
                    encoder.encode(&values, rng, |word, addend| vector.add(word, addend))
                };
            let time = Timestamp(at(second).0 + 5_000_000);
            session.event(time, &mut self.rng, encode, sink).unwrap();
            session.advance(at(second + STEP), &mut self.rng, sink).unwrap();
            if (second + STEP).is_multiple_of(TICK) {
                self.kept.insert(second + STEP, std::mem::take(&mut self.open));
            }
        }
        self.waiting.append(&mut frames);
    }

    /// Its process is killed: the open tick is lost.
    fn die(&mut self) {
        if let Some(session) = self.session.take() {
            self.reached = session.reached();
            self.producer = Some(session.abandon().0);
            self.open = 0;
        }
    }
}

/// All parties.
pub(super) struct Sea {
    town: Town,
    houses: Vec<House>,
    pub(super) meters: Vec<Meter>,
    hall: Option<Hall>,
    disk: Option<Machine>,
    outages: Outages,
    outboxes: Outboxes,
    cursors: [MailCursor; 3],
    encoder: Encoder,
    runtime: Runtime,
    second: u64,
    lives: u8,
    /// Results by the start of their windows, and when they came, in seconds.
    pub(super) rows: BTreeMap<u64, (Row, u64)>,
}

impl Sea {
    /// Everybody is there, and somebody has asked.
    pub(super) fn new(seed: u64) -> Sea {
        let mut town = Town::of(SCHEMA);
        let houses: Vec<House> = HOSTS.iter().map(|name| town.house(name)).collect();
        let hall = town.hall(Machine::new());
        let encoder = Encoder::new(&town.schema, &town.layout).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut sea = Sea {
            town,
            houses,
            meters: Vec::new(),
            hall: Some(hall),
            disk: None,
            outages: Outages::new(IDLE, RECOVERY),
            outboxes: Outboxes::new([0; 16]),
            cursors: Default::default(),
            encoder,
            runtime,
            second: 0,
            lives: 0,
            rows: BTreeMap::new(),
        };
        sea.check_frames();
        for number in 0..3 {
            sea.add_meter(number, seed);
        }
        let hall = sea.hall.as_mut().unwrap();
        let round = hall.ask(QUERY, at(0), &mut sea.town.rng);
        sea.deliver(round);
        sea.exchange(|_| true);
        sea
    }

    pub(super) fn second(&self) -> u64 {
        self.second
    }

    fn ingest_key(&self) -> (SealingKey, Digest, SealingPublic) {
        let key = SealingKey::from_seed(&Secret::from_bytes([50; 32]));
        let request = self.town.service_keys().ingest_request(&key);
        let certificate = request.certify(Subject([50; 16]), &self.town.authority);
        let (digest, public) = self.town.deployment.ingest(&certificate).unwrap();
        (key, digest, public)
    }

    fn check_frames(&mut self) {
        let (key, digest, _) = self.ingest_key();
        let (authority, schema) = (self.town.authority.verifying_key(), &self.town.schema);
        let ingest = Ingest::new(authority, schema.id(), schema.tick, [(digest, key)]);
        self.hall.as_mut().unwrap().manager.service.check_with(ingest);
    }

    /// A person with a stream at the house of the same number, and a device.
    fn add_meter(&mut self, number: u8, seed: u64) {
        let (town, place) = (&mut self.town, usize::from(number));
        let person = town.person(number + 1);
        let handover = town.handover(&person, &self.houses[place]);
        let hall = self.hall.as_mut().unwrap();
        self.houses[place].guard().take(at(0), &person.name, &handover).unwrap();
        self.houses[place].tell(hall, town);
        let (name, device) = (
            format!("device-of-{}", person.name),
            SigningKey::from_seed(&Secret::from_bytes([60 + number; 32])),
        );
        let request = Party::signing(Role::Device, name.as_str(), device.verifying_key());
        let signed = request.certify(Subject([60 + number; 16]), &town.authority);
        let (manager, deployment) = (&mut hall.manager, &town.deployment);
        hall.registry.introduce_device(manager, deployment, &name, &signed).unwrap();
        let certificate = deployment.device(&signed).unwrap().digest();
        let (_, ingest, ingest_key) = self.ingest_key();
        let authority = self.town.authority.verifying_key();
        let secrets = OpeningSecrets { device, certificate, authority, ingest, ingest_key };
        let master = MasterSecret::new(Secret::from_bytes(person.secret));
        let (schema, layout) = (&self.town.schema, &self.town.layout);
        let made = StreamProducer::for_schema(&master, person.stream, schema, layout, || {
            Ok::<_, SetupError>(secrets)
        });
        self.meters.push(Meter {
            person,
            scale: Meter::scale(place),
            producer: Some(made.unwrap()),
            session: None,
            reached: None,
            is_new: true,
            waiting: Vec::new(),
            open: 0,
            kept: BTreeMap::new(),
            rng: ChaCha20Rng::seed_from_u64(seed << 8 | u64::from(number)),
        });
    }

    /// Lets time pass, with those who are there.
    pub(super) fn step(&mut self, schedule: &Schedule, draw: &mut Draw) {
        let second = self.second;
        for (number, meter) in self.meters.iter_mut().enumerate() {
            match schedule.is_away(Away::Device(number), second) {
                true => meter.die(),
                false => meter.read(second, &self.encoder, draw),
            }
        }
        self.second += STEP;
        self.go_and_come(schedule, draw);
        for number in 0..self.meters.len() {
            let is_cut = [Away::CutOff(number), Away::Device(number)];
            if is_cut.iter().all(|away| !schedule.is_away(*away, second)) {
                self.upload(number);
            }
        }
        self.serve(second);
        self.exchange(|host| !schedule.is_away(Away::Host(host), second));
    }

    /// Service and hosts die, or start again.
    fn go_and_come(&mut self, schedule: &Schedule, draw: &mut Draw) {
        let now = at(self.second);
        for (number, house) in self.houses.iter_mut().enumerate() {
            let is_away = schedule.is_away(Away::Host(number), self.second - STEP);
            if is_away && house.guard.take().is_some() {
                house.disk.crash(draw.below(u64::MAX));
            } else if !is_away && house.guard.is_none() {
                house.guard = Some(self.town.wake(house, now).unwrap());
            }
        }
        match schedule.is_away(Away::Service, self.second - STEP) {
            true => {
                if let Some(hall) = self.hall.take() {
                    let disk = hall.stop();
                    disk.crash(draw.below(u64::MAX));
                    self.disk = Some(disk);
                }
            }
            false => self.start_service(),
        }
    }

    fn start_service(&mut self) {
        let Some(disk) = self.disk.take() else { return };
        let now = at(self.second);
        self.hall = Some(self.town.hall_at(disk, now));
        self.check_frames();
        self.lives += 1;
        self.outboxes = Outboxes::new([self.lives; 16]);
        self.outages = Outages::new(IDLE, RECOVERY);
        let service = &mut self.hall.as_mut().unwrap().manager.service;
        service.ingest(now).unwrap();
        self.outages.started(now, service, HOSTS.iter().map(|name| (*name).to_owned()).collect());
    }

    /// A device delivers what it has.
    fn upload(&mut self, number: usize) {
        let Some(hall) = &self.hall else { return };
        let meter = &mut self.meters[number];
        let (key, mut batch) = (meter.person.stream.0, Batch::new());
        let partition = device_partition(&hall.topics, &key);
        for frame in meter.waiting.drain(..) {
            let timestamp = at(self.second).0;
            let record = NewRecord { key: &key, value: &frame, timestamp, ..Default::default() };
            batch.append(&partition, &record).unwrap();
        }
        hall.store.commit(batch).unwrap();
    }

    /// What the service's thread does in its turns.
    fn serve(&mut self, before: u64) {
        let Some(hall) = &mut self.hall else { return };
        let (service, now) = (&mut hall.manager.service, at(self.second));
        // Its turns take a second at most.
        for second in before + 1..=self.second {
            self.outages.wake(at(second), service);
        }
        service.ingest(now).unwrap();
        self.outages.look(now, service, &self.outboxes);
        let (idle, mut rounds) = (self.outages.idle_limit(now), Vec::new());
        while service.has_due(idle) {
            rounds.push(service.close_windows(now, idle).unwrap());
        }
        if service.deadline().is_some_and(|deadline| deadline <= now) {
            rounds.push(service.timeout(now).unwrap());
        }
        service.checkpoint_if_worth().unwrap();
        rounds.into_iter().for_each(|round| self.deliver(round));
    }

    fn deliver(&mut self, round: ServiceOutput) {
        let hall = self.hall.as_ref().unwrap();
        for message in round.messages {
            let host = hall.registry.host_of(&message.0).unwrap();
            self.outboxes.leave(host, vec![message]);
        }
        for row in round.rows {
            let start = row.window_start / 1000 - BEGIN.0 / 1_000_000;
            let before = self.rows.insert(start, (row, self.second));
            assert!(before.is_none(), "window {start} has two results");
        }
    }

    /// Hosts that are there fetch messages and answer, until nobody has anything to say.
    fn exchange(&mut self, is_there: impl Fn(usize) -> bool) {
        let now = at(self.second);
        loop {
            let mut said = 0;
            for number in (0..HOSTS.len()).filter(|host| is_there(*host)) {
                if self.hall.is_none() {
                    return;
                }
                let fetch =
                    self.outboxes.fetch(HOSTS[number], self.cursors[number], Duration::ZERO);
                let post = self.runtime.block_on(fetch);
                self.cursors[number] = post.cursor;
                let guard = self.houses[number].guard();
                said += post.messages.len();
                guard.answer(now, post.messages).unwrap();
                let going = guard.outgoing_batch();
                said += going.messages.len();
                let service = &mut self.hall.as_mut().unwrap().manager.service;
                let round = service.receive(now, now, going.messages.clone()).unwrap();
                self.houses[number].guard().arrived(&going);
                self.deliver(round);
            }
            if said == 0 {
                return;
            }
        }
    }
}
