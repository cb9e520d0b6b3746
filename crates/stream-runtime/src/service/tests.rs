//! A service that stops while windows wait for their controllers' presences, or for their openings.

use super::Service;
use crate::embedded_deployment::{Controllers, EmbeddedDeployment, Member, Pace};
use crate::engine_kind::EngineKind;
use crate::query_planner::{QueryContext, plan_query};
use crate::results::OK;
use crate::storage::Topics;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_encrypted_stream::producer::Start;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_input::rows::Cell;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::{Fault, Machine};
use alpheus_transport::{Batch, LargeValue};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1min
capacity: { population: 10, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: -1000, max: 1000, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 1min, alpha: 0, dropout: 0 }
";
const POLICIES: &str = "\
schema: Meters
service: s.example
default: { reading: { option: crowd, clients: 1 } }
";
const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading) \
     WINDOW TUMBLING (SIZE 1 MINUTE) FROM Meters WITH (membership = 'fixed')";
const MINUTE: u64 = 60_000_000;
const START: u64 = 1_700_000_040_000_000;
/// The service's clock.
const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
const OWNERS: usize = 8;
/// More than are closed at a time.
const WINDOWS: u64 = 700;

fn open(folder: &Path, frames: &str, rng: &mut ChaCha20Rng) -> EmbeddedDeployment {
    let schema = Schema::from_yaml(&format!("frames: {frames}\n{SCHEMA}")).unwrap();
    let policies = Policies::from_yaml(POLICIES, &schema).unwrap();
    let member = |number: usize| {
        let name = format!("owner {number}");
        Member { key: name.clone(), owner: name, metadata: BTreeMap::new() }
    };
    let members: Vec<Member> = (0..OWNERS).map(member).collect();
    let pace = Pace::Live { timing: Timing::default(), idle: Span::seconds(60) };
    let each = Controllers::PerOwner;
    EmbeddedDeployment::open(folder, &schema, &members, &policies, each, pace, rng).unwrap()
}

/// Starts the query.
fn start(embedded: &mut EmbeddedDeployment, rng: &mut ChaCha20Rng) {
    let Statement::Create(create) = parse(QUERY).unwrap() else { panic!("no query") };
    let context = QueryContext::from(Timestamp(0));
    let planned = plan_query(&create, &embedded.manager.catalog, context, rng).unwrap();
    embedded.start(Timestamp(START), &planned.plans).unwrap();
}

/// Every device says 1 in the minute that begins then.
fn feed(embedded: &mut EmbeddedDeployment, from: Timestamp, rng: &mut ChaCha20Rng) {
    let mut batch = Batch::new();
    for device in &mut embedded.devices {
        if !device.is_online() {
            device.open(Start::First, from, rng, &mut batch).unwrap();
        }
        let one = [Cell::Number(1)];
        device.event(from.plus(Span(1)), &one, &embedded.encoder, rng, &mut batch).unwrap();
        device.advance(from.plus(Span(MINUTE)), rng, &mut batch).unwrap();
    }
    embedded.store.commit(batch).unwrap();
}

/// The summons do not arrive; the service writes a checkpoint, and stops.
fn a_window_that_waits_outlives_a_checkpoint(frames: &str) {
    let (folder, mut rng) = (tempfile::tempdir().unwrap(), ChaCha20Rng::seed_from_u64(1));
    let mut embedded = open(folder.path(), frames, &mut rng);
    start(&mut embedded, &mut rng);
    let mut clock = Timestamp(START);
    for _ in 0..2 {
        feed(&mut embedded, clock, &mut rng);
        clock = clock.plus(Span(MINUTE));
    }
    let service = &mut embedded.manager.service;
    service.ingest(clock).unwrap();
    let lost = service.close_windows(NOW, Timestamp(0)).unwrap();
    assert_eq!((lost.messages.len(), service.in_progress()), (2 * OWNERS, 2));
    service.checkpoint().unwrap();
    drop(embedded);

    let mut embedded = open(folder.path(), frames, &mut rng);
    let rows = embedded.pump(clock).unwrap();
    let opened = rows.iter().filter(|row| row.status == OK && row.outputs[0].1 == "8").count();
    assert_eq!(opened, 2, "of {} rows", rows.len());
    // What has ended is not asked for again, and nothing of it stays.
    embedded.manager.service.checkpoint().unwrap();
    drop(embedded);
    let mut embedded = open(folder.path(), frames, &mut rng);
    assert_eq!(embedded.pump(clock).unwrap(), []);
    assert_eq!(embedded.manager.service.results().unwrap().len(), 2);
}

#[test]
fn a_window_of_events_that_waits_for_presences_outlives_a_checkpoint() {
    a_window_that_waits_outlives_a_checkpoint("events");
}

#[test]
fn a_window_of_ticks_that_waits_for_presences_outlives_a_checkpoint() {
    a_window_that_waits_outlives_a_checkpoint("ticks");
}

/// A service whose store takes batches of a megabyte.
fn small_batches(machine: &Machine) -> Service {
    let schema = Schema::from_yaml(&format!("frames: ticks\n{SCHEMA}")).unwrap();
    let shape = Shape::of(&schema, &Layout::of(&schema).unwrap(), Span(0));
    let key = Arc::new(SigningKey::from_seed(&Secret::from_bytes([1; 32])));
    let (store, topics) = (machine.open().unwrap(), Topics::new(2).unwrap());
    Service::open(EngineKind::InProcess, store, &topics, key, shape, Timing::default()).unwrap()
}

fn admit(service: &mut Service, streams: std::ops::Range<u32>) {
    for number in streams {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        service.admit(StreamId(id));
    }
}

/// The engine's state, as its store has it after another checkpoint.
fn state(service: &mut Service) -> Vec<u8> {
    service.checkpoint().unwrap();
    let (store, topics) = (service.store(), service.topics());
    let stored = LargeValue::new(store.as_ref(), &topics.service, b"transformer/v1").read();
    stored.unwrap().unwrap()
}

#[test]
fn a_checkpoint_may_be_larger_than_a_batch_and_is_whole_or_not_there() {
    let machine = Machine::new().with_max_staged(1 << 20);
    let mut service = small_batches(&machine);
    admit(&mut service, 0..100_000);
    let first = state(&mut service);
    assert!(first.len() > 3 << 19, "{}", first.len());
    drop(service);
    let mut service = small_batches(&machine);
    assert!(state(&mut service) == first);
    // The disk is full when a part of the next one is written.
    admit(&mut service, 100_000..150_000);
    machine.inject(Fault::DiskFull, 1);
    assert!(service.checkpoint().is_err());
    machine.crash(1);
    drop(service);
    let mut service = small_batches(&machine);
    assert!(state(&mut service) == first, "the one before is whole");
    admit(&mut service, 100_000..150_000);
    let second = state(&mut service);
    assert!(second.len() > first.len());
    drop(service);
    assert!(state(&mut small_batches(&machine)) == second);
}

/// All goes well until the opening sets, which do not arrive: a line is down.
fn until_openings(embedded: &mut EmbeddedDeployment, clock: Timestamp) {
    embedded.manager.service.ingest(clock).unwrap();
    while embedded.manager.service.has_due(Timestamp(0)) {
        let mut outgoing = embedded.manager.service.close_windows(NOW, Timestamp(0)).unwrap();
        while !outgoing.messages.is_empty() {
            let mut messages = outgoing.messages;
            messages.retain(|(.., message)| !matches!(message, ServiceMessage::OpeningSet(_)));
            let answers = embedded.host.handle(clock, messages).unwrap();
            outgoing = embedded.manager.service.receive(NOW, clock, answers).unwrap();
            assert!(outgoing.rows.is_empty(), "{:?}", outgoing.rows);
        }
    }
    assert_eq!(embedded.manager.service.in_progress() as u64, WINDOWS);
}

#[test]
fn windows_that_wait_for_openings_outlive_a_restart() {
    let (folder, mut rng) = (tempfile::tempdir().unwrap(), ChaCha20Rng::seed_from_u64(1));
    let mut embedded = open(folder.path(), "ticks", &mut rng);
    start(&mut embedded, &mut rng);
    for window in 0..WINDOWS {
        feed(&mut embedded, Timestamp(START + window * MINUTE), &mut rng);
    }
    let clock = Timestamp(START + WINDOWS * MINUTE);
    until_openings(&mut embedded, clock);
    drop(embedded);
    let rows = open(folder.path(), "ticks", &mut rng).pump(clock).unwrap();
    let opened = rows.iter().filter(|row| row.status == OK && row.outputs[0].1 == "8").count();
    assert_eq!(opened as u64, WINDOWS, "of {} rows", rows.len());
}
