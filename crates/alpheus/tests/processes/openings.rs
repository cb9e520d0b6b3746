//! A service that is restarted while many windows wait for their openings.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_encrypted_stream::producer::Start;
use alpheus_input::rows::Cell;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_streams::runtime::embedded::{Controllers, Embedded, Member, Pace};
use alpheus_streams::runtime::planning::{QueryContext, plan_query};
use alpheus_streams::runtime::results::OK;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::path::Path;

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
const QUERY: &str =
    "CREATE STREAM Readings AS SELECT SUM(reading) WINDOW TUMBLING (SIZE 1 MINUTE) FROM Meters";
const MINUTE: u64 = 60_000_000;
const START: u64 = 1_700_000_040_000_000;
/// The service's clock.
const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
/// More than are closed at a time.
const WINDOWS: u64 = 700;
const OWNERS: usize = 8;

fn open(folder: &Path, rng: &mut ChaCha20Rng) -> Embedded {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    let policies = Policies::from_yaml(POLICIES, &schema).unwrap();
    let member = |number: usize| {
        let name = format!("owner {number}");
        Member { key: name.clone(), owner: name, metadata: BTreeMap::new() }
    };
    let members: Vec<Member> = (0..OWNERS).map(member).collect();
    let pace = Pace::Live { timing: Timing::default(), idle: Span::seconds(60) };
    let controllers = Controllers::PerOwner;
    Embedded::open(folder, &schema, &members, &policies, controllers, pace, rng).unwrap()
}

/// Every device says 1 in every window.
fn feed(embedded: &mut Embedded, rng: &mut ChaCha20Rng) {
    for window in 0..WINDOWS {
        let from = Timestamp(START + window * MINUTE);
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
}

/// All goes well until the opening sets, which do not arrive: a line is down.
fn until_openings(embedded: &mut Embedded, clock: Timestamp) {
    embedded.manager.service.ingest(clock).unwrap();
    while embedded.manager.service.has_due(Timestamp(0)) {
        let mut round = embedded.manager.service.close_windows(NOW, Timestamp(0)).unwrap();
        while !round.messages.is_empty() {
            let mut messages = round.messages;
            messages.retain(|(.., message)| !matches!(message, ServiceMessage::OpeningSet(_)));
            let answers = embedded.host.handle(clock, messages).unwrap();
            round = embedded.manager.service.receive(NOW, answers).unwrap();
            assert!(round.rows.is_empty(), "{:?}", round.rows);
        }
    }
    assert_eq!(embedded.manager.service.in_progress() as u64, WINDOWS);
}

#[test]
fn windows_that_wait_for_openings_outlive_a_restart() {
    let (folder, mut rng) = (tempfile::tempdir().unwrap(), ChaCha20Rng::seed_from_u64(1));
    let mut embedded = open(folder.path(), &mut rng);
    let Statement::Create(create) = parse(QUERY).unwrap() else { panic!("no query") };
    let planned =
        plan_query(&create, &embedded.manager.catalog, QueryContext::from(Timestamp(0)), &mut rng)
            .unwrap();
    embedded.start(Timestamp(START), &planned.plans).unwrap();
    feed(&mut embedded, &mut rng);
    let clock = Timestamp(START + WINDOWS * MINUTE);
    until_openings(&mut embedded, clock);
    drop(embedded);
    let rows = open(folder.path(), &mut rng).pump(clock).unwrap();
    let opened = rows.iter().filter(|row| row.status == OK && row.outputs[0].1 == "8").count();
    assert_eq!(opened as u64, WINDOWS, "of {} rows", rows.len());
}
